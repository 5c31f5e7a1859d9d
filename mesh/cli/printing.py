"""Tables and pages for a person at a terminal; into a file or a pipe, a row is one line, however long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.table import Table

Row = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sheet:
    """Facts, a table under them, and what is odd, which goes to standard error."""

    facts: Sequence[tuple[str, str]] = ()
    heads: Row = ()
    rows: Sequence[Row] = ()
    notes: list[str] = field(default_factory=list)


def show(console: Console, seen: RenderableType) -> None:
    if console.is_terminal:
        console.print(seen)
        return
    wide = Console(highlight=False, width=10_000)
    with wide.capture() as captured:
        wide.print(seen)
    for line in captured.get().splitlines():
        print(line.rstrip())


def table(heads: Row, rows: Sequence[Row]) -> Table:
    made = Table(*heads, box=None, pad_edge=False, header_style="bold")
    made.columns[0].no_wrap = True  # a name is copied from here
    for column in made.columns:
        column.overflow = "fold"
    for row in rows:
        made.add_row(*map(escape, row))
    return made


def print_sheet(console: Console, sheet: Sheet) -> None:
    wide = max((len(name) for name, _ in sheet.facts), default=0)
    for name, text in sheet.facts:
        console.print(f"[bold]{name.ljust(wide)}[/]  {escape(text)}", soft_wrap=True)
    if sheet.facts and sheet.rows:
        console.print()
    if sheet.rows:
        show(console, table(sheet.heads, sheet.rows))
    print_notes(sheet.notes)


def print_notes(notes: Sequence[str]) -> None:
    console = Console(stderr=True, highlight=False)
    for note in notes:
        console.print(f"[yellow]![/] {escape(note)}", soft_wrap=True)
