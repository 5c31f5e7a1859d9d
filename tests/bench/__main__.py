"""`python -m tests.bench NAME [--data DIR] [--json FILE]`."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.bench import bus, documents, gateway, mesh, speech, turn

Figures = dict[str, object]
BENCHES: dict[str, Callable[[], Coroutine[Any, Any, Figures]]] = {
    "bus": bus.run,
    "documents": documents.run,
    "gateway": gateway.run,
    "mesh": mesh.run,
    "speech": speech.run,
    "turn": turn.run,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("name", choices=sorted(BENCHES))
    parser.add_argument("--json", type=Path, help="where the figures go")
    parser.add_argument("--data", type=Path, help="a folder of files with a manifest.json (documents)")
    chosen = parser.parse_args()
    bench = partial(documents.run, chosen.data) if chosen.data and chosen.name == "documents" else BENCHES[chosen.name]
    figures = asyncio.run(bench())
    figures["machine"] = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    figures["load_1m"] = round(os.getloadavg()[0], 2)
    _print(chosen.name, figures)
    if chosen.json:
        chosen.json.write_text(json.dumps(figures, indent=1))


def _print(name: str, figures: Figures) -> None:
    table = Table("figure", "value", title=f"bench {name}", title_justify="left")
    for key, value in figures.items():
        table.add_row(key, json.dumps(value) if isinstance(value, dict) else str(value))
    Console().print(table)


main()
