"""Files of values separated by commas, semicolons, tabs or bars."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator
from typing import Literal

from . import LONGEST_TEXT, Parts, Unreadable, plain
from .blocks import written
from .grid import Line, blocks

MOST_ROWS = 200_000
SEPARATORS = ",;\t|"
_SAMPLE = 200
"""Rows that tell the separator."""
_LONGEST_QUOTED = 50
"""Lines of one value: a longer one was opened by a stray quotation mark."""


def separator(text: str) -> str:
    """What parts the same number of values in most of the first rows; empty when nothing does."""
    stated = text[:10].lstrip("\ufeff").lower()
    if stated.startswith("sep=") and len(text) > 4:
        return text.lstrip("\ufeff")[4]
    start = text[:200_000]
    worth = {}
    for sign in SEPARATORS:
        counts = Counter(len(row) for _, row in zip(range(_SAMPLE), _rows(start, sign), strict=False) if any(row))
        wide = {count: rows for count, rows in counts.items() if count > 1}
        if wide:
            usual, rows = max(wide.items(), key=lambda pair: (pair[1], pair[0]))
            share = rows / counts.total()
            worth[sign] = (share > 0.5, round(share, 1), usual)
    best = max(worth, key=lambda sign: worth[sign], default="")
    return best if best and worth[best][0] else ""


def read(name: str, text: str, doubt: str) -> Parts:
    text = plain(text)
    sign = separator(text)
    trouble = f"{name}: {doubt}" if doubt else ""
    if not sign:
        return [("", text, trouble)]
    if text.lstrip("\ufeff").lower().startswith("sep="):
        text = text.partition("\n")[2]
    lines = []
    for at, row in enumerate(_rows(text, sign), start=1):
        if at > MOST_ROWS:
            cut = f"the rows from {at:,} on were left out: {MOST_ROWS:,} are the most that I can take"
            trouble = f"{trouble}; {cut}" if trouble else f"{name}: {cut}"
            break
        cells = {place: said for place, cell in enumerate(row) if (said := " ".join(cell.split()))}
        if cells:
            lines.append(Line(at, cells))
    found = written(list(blocks(lines)))
    if not found:
        raise Unreadable(f"{name} has no values in it. Please check the file and send it again.", "nothing")
    if len(found) > LONGEST_TEXT:
        raise Unreadable(f"{name} holds too much text. Please send it in several files.", "limit")
    return [("", found, trouble)]


def _rows(text: str, sign: str) -> Iterator[list[str]]:
    csv.field_size_limit(LONGEST_TEXT)
    yield from csv.reader(io.StringIO(text, newline=""), delimiter=sign, quoting=_quoting(text, sign))


def _quoting(text: str, sign: str) -> Literal[0, 3]:
    """Quotation marks that are never closed would make one value of the whole file."""
    try:
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=sign):
            if any(cell.count("\n") > _LONGEST_QUOTED for cell in row):
                return csv.QUOTE_NONE
    except csv.Error:
        return csv.QUOTE_NONE
    return csv.QUOTE_MINIMAL
