"""Tables of a Word file, so that each row can be understood alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from .blocks import Block, Row, flat

WIDEST = 64
"""Columns: Word has 63 at most."""
REPEATED = 80
"""Characters: what is longer is not said again in each row that a merged cell spans."""
DEEPEST_HEADER = 3
_SHORT = 40
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_DIGIT = re.compile(r"\d")


@dataclass(frozen=True, slots=True)
class Cell:
    blocks: tuple[Block, ...]
    at: int
    span: int
    continues: bool
    """The cell above goes on."""
    stands_out: bool
    """Bold or shaded."""


@dataclass(frozen=True, slots=True)
class Line:
    cells: tuple[Cell, ...]
    header: bool
    """Said to be repeated on each page."""


def blocks_of(lines: Sequence[Line], *, lit: bool) -> list[Block]:
    """`lit`: the table's style makes its first row stand out."""
    if _is_layout(lines):
        return [block for line in lines for cell in line.cells for block in cell.blocks]
    rows, origins = _grid(lines)
    kept = [at for at in range(WIDEST) if any(at < len(row) and row[at] for row in origins)]
    found: list[Block] = []
    while len(rows) > 1 and len(kept) > 1 and _is_caption(lines[0], rows[0], kept):
        found.append(Block(flat(lines[0].cells[0].blocks)))
        lines, rows = lines[1:], rows[1:]
    table = [tuple(row[at] for at in kept) for row in rows]
    deep, named = _header(lines, rows, kept, lit)
    if deep:
        table = [named, *table[deep:]]
    table = [row for row in table if any(row)]
    return [*found, Block(rows=tuple(table), header=deep > 0 and len(table) > 1)] if table else found


def _is_layout(lines: Sequence[Line]) -> bool:
    """A table that only arranges text on the page: one column, one row of paragraphs, or headings inside."""
    if max((len(line.cells) for line in lines), default=0) <= 1:
        return True
    if len(lines) == 1 and any(len(cell.blocks) > 1 for cell in lines[0].cells):
        return True
    inside = (cell for line in lines[1:] for cell in line.cells[1:])
    return any(block.level is not None for cell in inside for block in cell.blocks)


def _grid(lines: Sequence[Line]) -> tuple[list[list[str]], list[list[str]]]:
    """Texts by row and column; with those of merged cells in each row that they span, and without."""
    rows: list[list[str]] = []
    origins: list[list[str]] = []
    for line in lines:
        row, origin = [""] * WIDEST, [""] * WIDEST
        for cell in line.cells:
            if cell.at < WIDEST:
                origin[cell.at] = row[cell.at] = flat(cell.blocks)
                if cell.continues and len(rows[-1][cell.at]) <= REPEATED:
                    row[cell.at] = rows[-1][cell.at]
        rows.append(row)
        origins.append(origin)
    return rows, origins


def _is_caption(line: Line, row: Sequence[str], kept: Sequence[int]) -> bool:
    """One cell over the whole width, above the columns."""
    return len(line.cells) == 1 and bool(row[line.cells[0].at]) and line.cells[0].span > kept[-1] - line.cells[0].at


def _spread(line: Line, row: Sequence[str]) -> list[str]:
    spread = list(row)
    for cell in line.cells:
        for at in range(cell.at, min(cell.at + cell.span, WIDEST)):
            spread[at] = row[cell.at]
    return spread


def _header(lines: Sequence[Line], rows: Sequence[Sequence[str]], kept: Sequence[int], lit: bool) -> tuple[int, Row]:
    """How many rows name the columns, and the names, said in full."""
    stated = 0
    while stated < len(lines) and lines[stated].header:
        stated += 1
    if 0 < stated < len(lines):
        return stated, _names(lines, rows, kept, stated)
    deep = 1
    while deep < min(len(rows) - 1, DEEPEST_HEADER) and _goes_on(lines[deep - 1], lines[deep], rows[deep]):
        deep += 1
    named = _names(lines, rows, kept, deep)
    below = [tuple(row[at] for at in kept) for row in rows[deep:]]
    if below and (lit or _stands_out(lines) or _names_columns(named, below)):
        return deep, named
    return 0, ()


def _names(lines: Sequence[Line], rows: Sequence[Sequence[str]], kept: Sequence[int], deep: int) -> Row:
    spread = [_spread(line, row) for line, row in zip(lines[:deep], rows, strict=False)]
    return tuple(" ".join(dict.fromkeys(row[at] for row in spread if row[at])) for at in kept)


def _stands_out(lines: Sequence[Line]) -> bool:
    first, second = ([cell.stands_out for cell in line.cells if flat(cell.blocks)] for line in lines[:2])
    return bool(first) and all(first) and not all(second)


def _names_columns(named: Row, below: Sequence[Row]) -> bool:
    """No number among the names, and only numbers in some column below them; or many short names."""
    if any(_DIGIT.search(_YEAR.sub("", name)) for name in named) or sum(map(bool, named)) < 2:
        return False
    for name, *column in list(zip(named, *below, strict=True))[1:]:
        said = [cell for cell in column if cell]
        if name and said and all(_DIGIT.search(cell) for cell in said):
            return True
    return len(named) > 2 and all(0 < len(name) <= _SHORT for name in named)


def _goes_on(above: Line, line: Line, row: Sequence[str]) -> bool:
    """A second row of names, under cells that span several columns or both rows."""
    if any(_DIGIT.search(_YEAR.sub("", cell)) for cell in row):
        return False
    return any(cell.continues for cell in line.cells) or any(cell.span > 1 for cell in above.cells)
