"""Pages that were read, or not, and how that is told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from . import Parts
from .ocr import TOO_MANY

if TYPE_CHECKING:
    from .pdf_pictures import Shown

BLANK = "it is blank"
DAMAGED = "it is damaged and could not be read"
DOUBTFUL_LETTERS = "some of its text may be wrong: the file does not say which letters it is made of"
NO_TEXT = "no text could be read (it may be a scan)"
NO_WORDS = "no text could be read: it has no words that I can make out"
PICTURE = "it holds a picture whose text could not be read"
PICTURE_IN_PART = "it holds a picture, and some of its text could not be read, or may be wrong"
PICTURE_OVER_MOST = "it holds a picture over most of the page; its text could not be read"
UNKNOWN_LETTERS = "its letters could not be read: the file does not say which they are"

NAMED = 10
"""Pages with the same trouble that are named one by one."""
_OTHERS = ((PICTURE, frozenset({PICTURE, PICTURE_OVER_MOST}), "so do"), (TOO_MANY, frozenset({TOO_MANY}), "nor were"))


@dataclass
class Page:
    text: str = ""
    trouble: str = ""
    how: str = ""
    characters: int = 0
    shown: Shown | None = None


def told(pages: Sequence[Page], kind: str = "page") -> Parts:
    for trouble, alike, so_are in _OTHERS:
        _fold([number for number, page in enumerate(pages, start=1) if page.trouble in alike], pages, trouble, so_are)
    return list(_parts(pages, kind))


def _parts(pages: Sequence[Page], kind: str) -> Iterator[tuple[str, ...]]:
    for number, page in enumerate(pages, start=1):
        label = f"{kind} {number}"
        trouble = f"{label}: {page.trouble}" if page.trouble else ""
        yield (label, page.text, trouble, page.how) if page.how else (label, page.text, trouble)


def _fold(numbers: Sequence[int], pages: Sequence[Page], trouble: str, so_are: str) -> None:
    if len(numbers) <= NAMED + 1:
        return
    first, *others = numbers[NAMED:]
    for number in others:
        pages[number - 1].trouble = ""
    pages[first - 1].trouble = f"{trouble}; {so_are} pages {_ranges(others)}"


def _ranges(numbers: Sequence[int]) -> str:
    """1, 3–5"""
    runs = [[number for _, number in run] for _, run in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0])]
    return ", ".join(f"{run[0]}–{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)
