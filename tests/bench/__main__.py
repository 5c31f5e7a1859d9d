"""`python -m tests.bench NAME [--data DIR] [--json FILE]`; other options are the bench's own."""

from __future__ import annotations

import argparse
import asyncio
import inspect
import json
import os
import platform
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.bench import (
    abstention,
    boundary,
    bus,
    documents,
    gateway,
    ingest,
    mesh,
    multihop,
    notes,
    retrieval,
    search,
    speech,
    turn,
)

Figures = dict[str, object]
BENCHES: dict[str, Callable[..., Coroutine[Any, Any, Figures]]] = {
    "abstention": abstention.run,
    "boundary": boundary.run,
    "bus": bus.run,
    "documents": documents.run,
    "gateway": gateway.run,
    "ingest": ingest.run,
    "mesh": mesh.run,
    "multihop": multihop.run,
    "notes": notes.run,
    "retrieval": retrieval.run,
    "search": search.run,
    "speech": speech.run,
    "turn": turn.run,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("name", choices=sorted(BENCHES))
    parser.add_argument("--json", type=Path, help="where the figures go")
    parser.add_argument(
        "--data", type=Path, help="a folder: of files with a manifest.json, or of corpus*.jsonl and so on"
    )
    parser.add_argument("--language", help="of the questions, as their file names it: queries.en.jsonl")
    parser.add_argument("--corpus-language", help="of the documents; the questions' own if it is not said")
    parser.add_argument("--regime", help="labelled, gold-removed or off-topic (abstention)")
    parser.add_argument("--other", type=Path, help="the folder whose questions are off-topic (abstention)")
    parser.add_argument("--chunks", type=int, help="at most, of the documents (ingest)")
    chosen = parser.parse_args()
    bench = BENCHES[chosen.name]
    given = {name: value for name, value in vars(chosen).items() if name not in ("name", "json") and value is not None}
    if foreign := given.keys() - inspect.signature(bench).parameters.keys():
        parser.error(f"{chosen.name} takes no --{min(foreign).replace('_', '-')}")
    figures = asyncio.run(bench(**given))
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
