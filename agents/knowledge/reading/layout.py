"""Lines that lie anywhere on a page, in the order in which they are read: columns one by one, tables row by row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import atan2, cos, sin
from statistics import median
from typing import Any, NamedTuple

PROSE = 20
"""Characters of a line from which on it is taken for a line of a text, and not for the cell of a table."""
FEWEST = 3
"""Lines of a column."""
STEPS = 60
"""Places where a gap between columns is looked for."""


class Line(NamedTuple):
    text: str
    left: float
    top: float
    right: float
    bottom: float

    @property
    def height(self) -> float:
        return self.bottom - self.top

    @property
    def middle(self) -> float:
        return (self.top + self.bottom) / 2


def levelled(found: Sequence[tuple[Any, str]]) -> list[Line]:
    """From boxes of four corners (from the upper left one, clockwise), as if the page had not lain askew."""
    slopes = sorted(
        (atan2(box[1][1] - box[0][1], box[1][0] - box[0][0]), float(box[1][0] - box[0][0])) for box, _ in found
    )
    angle = _weighted_median(slopes)
    across, down = cos(angle), sin(angle)
    lines = []
    for box, text in found:
        corners = [(float(x) * across + float(y) * down, float(y) * across - float(x) * down) for x, y in box]
        (x0, y0), (x1, y1), (x2, y2), (x3, y3) = corners
        lines.append(Line(text, (x0 + x3) / 2, (y0 + y1) / 2, (x1 + x2) / 2, (y2 + y3) / 2))
    return lines


def arranged(lines: Sequence[Line]) -> str:
    paragraphs = _in_order(sorted(lines, key=lambda line: line.middle))
    return "\n\n".join(text for text in paragraphs if text)


def _in_order(lines: Sequence[Line]) -> list[str]:
    """Paragraphs, from lines that go down the page."""
    gap = _gap(lines)
    if gap is None:
        return _paragraphs(lines)
    told: list[str] = []
    band: list[Line] = []
    over: list[Line] = []
    for line in lines:
        if line.left < gap < line.right:
            told += _band(band, gap)
            band = []
            over.append(line)
        else:
            told += _paragraphs(over)
            over = []
            band.append(line)
    return [*told, *_paragraphs(over), *_band(band, gap)]


def _band(lines: Sequence[Line], gap: float) -> list[str]:
    sides = [line for line in lines if line.right <= gap], [line for line in lines if line.left >= gap]
    if all(_is_prose(side) for side in sides):
        return [text for side in sides for text in _in_order(side)]
    return _paragraphs(lines)


def _is_prose(lines: Sequence[Line]) -> bool:
    """A column of text; a table's are shorter, or of more than one length."""
    return len(lines) >= FEWEST and median(len(line.text) for line in lines) >= PROSE


def _gap(lines: Sequence[Line]) -> float | None:
    """Where the page is divided into columns, if it is: with texts on both sides, and few lines across."""
    long = [line for line in lines if len(line.text) >= PROSE]
    if len(long) < 2 * FEWEST:
        return None
    left, right = min(line.left for line in long), max(line.right for line in long)
    best: list[float] = []
    fewest = len(long) * 0.4
    for step in range(STEPS // 6, STEPS - STEPS // 6):
        place = left + (right - left) * step / STEPS
        before = [line for line in long if line.right <= place]
        after = [line for line in long if line.left >= place]
        across = len(long) - len(before) - len(after)
        if min(len(before), len(after)) < FEWEST or across > fewest or not _beside(before, after):
            continue
        if across < fewest:
            best, fewest = [], across
        best.append(place)
    return best[len(best) // 2] if best else None


def _beside(before: Sequence[Line], after: Sequence[Line]) -> bool:
    """Most of the shorter column has something of the other one at its height."""
    tops = max(before[0].top, after[0].top), min(before[-1].bottom, after[-1].bottom)
    heights = [side[-1].bottom - side[0].top for side in (before, after)]
    return tops[1] - tops[0] > 0.5 * min(heights)


def _paragraphs(lines: Sequence[Line]) -> list[str]:
    rows = _rows(lines)
    if not rows:
        return []
    height = median(line.height for line in lines)
    middles = [sum(line.middle for line in row) / len(row) for row in rows]
    steps = [below - above for above, below in pairwise(middles)]
    wide = max(1.6 * height, 1.4 * median(steps)) if steps else 0.0
    told = _row(rows[0])
    for step, row in zip(steps, rows[1:], strict=True):
        told += ("\n\n" if step > wide else "\n") + _row(row)
    return told.split("\n\n")


def _rows(lines: Iterable[Line]) -> list[list[Line]]:
    rows: list[list[Line]] = []
    for line in sorted(lines, key=lambda line: line.middle):
        if rows and abs(line.middle - rows[-1][-1].middle) < 0.5 * min(line.height, rows[-1][-1].height):
            rows[-1].append(line)
        else:
            rows.append([line])
    return rows


def _row(row: Sequence[Line]) -> str:
    cells = sorted(row, key=lambda line: line.left)
    told = cells[0].text
    for cell, following in pairwise(cells):
        told += ("  " if following.left - cell.right > cell.height else " ") + following.text
    return told


def _weighted_median(pairs: Sequence[tuple[float, float]]) -> float:
    half, passed = sum(weight for _, weight in pairs) / 2, 0.0
    for value, weight in pairs:
        passed += weight
        if passed >= half:
            return value
    return 0.0
