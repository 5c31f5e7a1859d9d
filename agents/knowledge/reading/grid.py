"""Rows of cells as blocks, so that each row can be understood alone. For spreadsheets and files of separated values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from .blocks import Block, Row

LONGEST_HEADER = 350
"""Characters: a longer one is not kept with every few rows, so each row says its names itself."""
_NAME = 60
_NEAR = 3
"""Empty rows that a table can go on after."""
_DIGIT = re.compile(r"\d")
_VALUE = re.compile(r"\W*\d|(?:TRUE|FALSE)$")
"""What names no column."""
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")


@dataclass(frozen=True, slots=True)
class Line:
    at: int
    """Row number."""
    cells: dict[int, str]
    """Those that are filled, by column."""
    header: bool = False
    """Said to name the columns."""
    stands_out: bool = False
    """All of its cells are bold."""


def blocks(lines: Sequence[Line]) -> Iterator[Block]:
    """Empty rows part tables, unless the next one has no header and the same columns."""
    header: dict[int, str] = {}
    ended = 0
    for together in (table for run in _runs(lines) for table in _side_by_side(run)):
        captions, run = _captions(together)
        yield from (Block(" ".join(line.cells.values())) for line in captions)
        named = _header(run)
        if named:
            header, body = named, run[1:]
        else:
            goes_on = not captions and run[0].at - ended <= _NEAR + 1 and _fits(run, header)
            header, body = header if goes_on else {}, run
        ended = run[-1].at
        yield from _table(header, body)


def _runs(lines: Sequence[Line]) -> Iterator[list[Line]]:
    run: list[Line] = []
    for line in lines:
        if run and (line.at > run[-1].at + 1 or line.header):
            yield run
            run = []
        run.append(line)
    if run:
        yield run


def _side_by_side(run: list[Line]) -> list[list[Line]]:
    """Tables next to one another: an empty column between them, names above each, and not as long as one another."""
    columns = sorted(set().union(*(line.cells for line in run)))
    starts = [at for before, at in pairwise([-1, *columns]) if at - before > 1]
    if len(starts) < 2:
        return [run]
    found = []
    for start, after in pairwise([*starts, columns[-1] + 1]):
        part = [replace(line, cells={k: v for k, v in line.cells.items() if start <= k < after}) for line in run]
        found.append([line for line in part if line.cells])
    ends = {part[-1].at for part in found}
    return found if len(ends) == len(found) and all(_header(_captions(part)[1]) for part in found) else [run]


def _captions(run: list[Line]) -> tuple[list[Line], list[Line]]:
    """What stands alone above the columns."""
    count = 0
    while count < len(run) - 1 and len(run[count].cells) == 1 and not run[count].header:
        count += 1
    if len(run[count].cells) == 1:
        count = 0
    return run[:count], run[count:]


def _header(run: Sequence[Line]) -> dict[int, str]:
    first, below = run[0], run[1:]
    if not below or (len(first.cells) < 2 and not first.header):
        return {}
    if first.header or (first.stands_out and not all(line.stands_out for line in below)):
        return first.cells
    names = list(first.cells.values())
    if any(_VALUE.match(_YEAR.sub("", name)) or len(name) > _NAME for name in names) or len(set(names)) < len(names):
        return {}
    columns = set().union(*(line.cells for line in run))
    if len(names) * 2 <= len(columns):
        return {}
    if _numbers_below(first, below):
        return first.cells
    plain = not any(_DIGIT.search(_YEAR.sub("", name)) for name in names)
    return first.cells if plain and (len(names) > 2 or len(below) > 2) else {}


def _numbers_below(first: Line, below: Sequence[Line]) -> bool:
    columns = ([line.cells[at] for line in below if at in line.cells] for at in list(first.cells)[1:])
    return any(column and all(_DIGIT.search(cell) for cell in column) for column in columns)


def _fits(run: Sequence[Line], header: dict[int, str]) -> bool:
    return bool(header) and all(len(line.cells) > 1 and not set(line.cells) - set(header) for line in run)


def _table(header: dict[int, str], body: Sequence[Line]) -> Iterator[Block]:
    columns = sorted(set(header).union(*(line.cells for line in body)))
    if not columns:
        return
    if len(columns) == 1:
        texts = [header[columns[0]]] if header else []
        yield Block("\n".join([*texts, *(line.cells.get(columns[0], "") for line in body)]))
        return
    if sum(map(len, header.values())) > LONGEST_HEADER:
        yield Block("Columns: " + "; ".join(header[at] for at in columns if at in header))
        for line in body:
            yield Block("; ".join(f"{header[at]}: {cell}" if at in header else cell for at, cell in line.cells.items()))
        return
    if not header and len(columns) > 2 and sum(len(line.cells) for line in body) * 2 < len(columns) * len(body):
        for line in body:  # a form: cells here and there
            yield Block(" | ".join(line.cells.values()))
        return
    rows: list[Row] = [tuple(line.cells.get(at, "") for at in columns) for line in body]
    if header:
        rows.insert(0, tuple(header.get(at, "") for at in columns))
    yield Block(rows=tuple(rows), header=bool(header) and len(rows) > 1)
