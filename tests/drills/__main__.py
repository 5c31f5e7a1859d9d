"""Fault drills: the real processes of a mesh, the simulated Twilio, and something that goes wrong.

Each drill says which messages it acknowledged (by a 2xx to their webhooks) ended in one outcome, in order. What is
counted comes from the simulated Twilio's log alone.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from mesh.process import until_signalled
from tests.drills import DRILLS
from tests.drills.drill import FAILS, Drill, Result, run
from tests.drills.play import Tell
from tests.drills.stage import Skipped, Stage, Wanted, staged

EXAMPLES = """examples:
  python -m tests.drills --list
  python -m tests.drills storm --json storm.json
  python -m tests.drills kill-gateway throttled --messages 50 --seed 7
  python -m tests.drills                 all of them, one after the other: about half an hour
"""
SHOWN = ("messages", "acknowledged", *FAILS, "p50_s", "p95_s", "kills")
TELL_EVERY_S = 10.0


class Progress:
    """One line that changes, in a terminal; a line every ten seconds elsewhere."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._status = console.status("") if console.is_terminal else None
        self._told = time.monotonic()

    def __enter__(self) -> Progress:
        if self._status:
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._status:
            self._status.stop()

    def about(self, name: str) -> Tell:
        began = time.monotonic()

        def tell(text: str) -> None:
            line = f"{name} {time.monotonic() - began:4.0f} s  {text}"
            if self._status:
                self._status.update(line)
            elif time.monotonic() - self._told >= TELL_EVERY_S:
                self._told = time.monotonic()
                self._console.print(line, highlight=False)

        return tell


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.drills",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="drills to run; none: all of them")
    parser.add_argument("--messages", type=int, default=0, metavar="N", help="how many, where a drill can choose")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="what is left to chance (default 0)")
    parser.add_argument("--short", action="store_true", help="the forms that the test suite runs")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the figures go, by drill")
    parser.add_argument("--keep", action="store_true", help="keep the data and the logs, and say where they are")
    parser.add_argument("--list", action="store_true", help="say which drills there are")
    chosen = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 150)
    if chosen.list:
        _list(console)
        return 0
    unknown = [name for name in chosen.names if name not in DRILLS]
    if unknown:
        parser.error(f"there is no drill called {unknown[0]}; --list says which there are")
    if chosen.messages < 0:
        parser.error("--messages must be 1 or more")
    drills = [drill for name, drill in DRILLS.items() if name in chosen.names or not chosen.names]
    folder = Path(tempfile.mkdtemp(prefix="adiyan-drills-"))
    logging.basicConfig(filename=folder / "supervisor.log", format="%(asctime)s %(message)s")
    try:
        with Progress(console) as progress:
            done = asyncio.run(until_signalled(_run(drills, chosen, folder, progress)))
    finally:
        if chosen.keep:
            console.print(f"kept in {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    if done is None:
        console.print("interrupted; nothing is left running")
        return 130
    results, skipped = done
    _print(console, results, skipped)
    if chosen.json:
        figures = {each.drill.name: each.figures() for each in results}
        chosen.json.write_text(json.dumps(figures | {name: {"skipped": why} for name, why in skipped}, indent=1))
    return 0 if not any(each.complaints for each in results) else 1


async def _run(
    drills: list[Drill], chosen: argparse.Namespace, folder: Path, progress: Progress
) -> tuple[list[Result], list[tuple[str, str]]]:
    """Drills that can share a mesh do."""
    results: list[Result] = []
    skipped: list[tuple[str, str]] = []
    for number, (wanted, group) in enumerate(_groups(drills)):
        progress.about(group[0].name)("starting a mesh …")
        home = folder / f"mesh-{number}"
        try:
            async with staged(wanted, home) as stage:
                done = [await _one(drill, stage, chosen, progress) for drill in group]
                results += await _looked_at_again(done)
                if chosen.keep:
                    (home / "twilio.json").write_text(json.dumps(await stage.log()))
        except Skipped as why:
            skipped += [(drill.name, str(why)) for drill in group]
    return results, skipped


async def _one(drill: Drill, stage: Stage, chosen: argparse.Namespace, progress: Progress) -> Result:
    tell = progress.about(drill.name)
    tell(drill.about)
    return await run(drill, stage, messages=chosen.messages, seed=chosen.seed, short=chosen.short, tell=tell)


async def _looked_at_again(results: list[Result]) -> list[Result]:
    """At the end of a mesh: a reply too many may have come after its drill."""
    return [replace(each, verdict=await each.play.verdict()) for each in results]


def _groups(drills: list[Drill]) -> Iterable[tuple[Wanted, list[Drill]]]:
    shared: dict[Wanted, list[Drill]] = {}
    for drill in drills:
        if not drill.alone:
            shared.setdefault(drill.wanted, []).append(drill)
    yield from shared.items()
    yield from ((drill.wanted, [drill]) for drill in drills if drill.alone)


def _list(console: Console) -> None:
    table = Table("drill", "what goes wrong", "messages", box=None)
    for drill in DRILLS.values():
        table.add_row(drill.name, drill.about, str(drill.messages))
    console.print(table)


def _print(console: Console, results: list[Result], skipped: list[tuple[str, str]]) -> None:
    table = Table("drill", *(name.replace("_", " ") for name in SHOWN), "")
    for each in results:
        figures: dict[str, Any] = each.figures()
        cells = ["–" if figures[name] is None else str(figures[name]) for name in SHOWN]
        table.add_row(each.drill.name, *cells, "[red]failed[/]" if each.complaints else "[green]passed[/]")
    console.print(table)
    for each in results:
        for complaint in each.complaints:
            console.print(f"{each.drill.name}: {complaint}", highlight=False, markup=False)
    for name, why in skipped:
        console.print(f"{name}: skipped: {why}", highlight=False, markup=False)


sys.exit(main())
