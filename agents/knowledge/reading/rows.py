"""Puts the cells of a row together again: PDFium begins a new line wherever the base line changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

ALIKE = 0.6
"""Share of the lower line's height at which two lines are one."""

CLOSE = 0.15
"""Share of its height that a word is away from the sign that belongs to it."""

Box = tuple[float, float, float, float]


@dataclass
class Run:
    """Characters of a line, from one index to another."""

    start: int
    end: int
    bottom: float
    top: float


def rejoined(text: str, textpage: Any) -> str:
    """`text` is all of the page's, a character for each of PDFium's."""
    if len(text) != textpage.count_chars():
        return text
    told: list[str] = []
    row: list[Run] = []
    for run in _runs(text, textpage):
        if row and not _is_beside(row[-1], run):
            told.append(_told(row, text, textpage))
            row = []
        row.append(run)
    return "\n".join([*told, _told(row, text, textpage)] if row else told)


def _runs(text: str, textpage: Any) -> list[Run]:
    found, start = [], 0
    for line in text.split("\n"):
        inner = line.strip()
        if inner:
            first = start + line.index(inner)
            ends = [textpage.get_charbox(i) for i in (first, first + len(inner) - 1)]
            found.append(Run(start, start + len(line), min(box[1] for box in ends), max(box[3] for box in ends)))
        else:
            found.append(Run(start, start + len(line), 0, 0))
        start += len(line) + 1
    return found


def _is_beside(before: Run, after: Run) -> bool:
    heights = before.top - before.bottom, after.top - after.bottom
    shared = min(before.top, after.top) - max(before.bottom, after.bottom)
    return min(heights) > 0 and shared >= ALIKE * min(heights)


def _told(row: Sequence[Run], text: str, textpage: Any) -> str:
    """From left to right, unless they overlap: then as they come."""
    plain = "\n".join(text[run.start : run.end].rstrip("\r") for run in row)
    if len(row) == 1:
        return plain
    words = sorted((box, word) for run in row for box, word in _words(run, text, textpage))
    told = words[0][1]
    for (before, _), (after, word) in pairwise(words):
        gap, height = after[0] - before[2], before[3] - before[1]
        if gap < -0.5:
            return plain
        told += word if gap < CLOSE * height else f" {word}"
    return told


def _words(run: Run, text: str, textpage: Any) -> list[tuple[Box, str]]:
    found, start = [], run.start
    for word in text[run.start : run.end].split(" "):
        if word.strip():
            boxes = [textpage.get_charbox(start + i) for i, c in enumerate(word) if not c.isspace()]
            left, bottoms, right, tops = zip(*boxes, strict=True)
            found.append(((min(left), min(bottoms), max(right), max(tops)), word.strip()))
        start += len(word) + 1
    return found
