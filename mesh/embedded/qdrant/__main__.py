"""`python -m mesh.embedded.qdrant --data DIR --port N`: loopback only. SIGTERM flushes and ends it."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
from pathlib import Path

import uvicorn

from mesh.embedded.qdrant.server import app
from mesh.embedded.qdrant.store import InUse, own

OPTIMIZE_AFTER = 10_000


def main() -> None:
    options = _options()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)-7s qdrant %(message)s")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # uvicorn puts this back, and raises the signal again
    try:
        lock = own(options.data)
    except InUse as error:
        raise SystemExit(f"embedded qdrant: {error}") from error
    with lock:
        uvicorn.run(
            app(options.data, options.optimize_after),
            host="127.0.0.1",
            port=options.port,
            log_level="warning",
            access_log=False,
            lifespan="on",
            timeout_graceful_shutdown=1,
        )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m mesh.embedded.qdrant", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder; one server at a time may have it")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument(
        "--optimize-after",
        type=int,
        default=OPTIMIZE_AFTER,
        metavar="POINTS",
        help="written to a collection until its index is built again (default: %(default)s)",
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
