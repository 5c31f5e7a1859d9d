"""PDF, page by page. A page whose words are in a picture, or in letters that the file does not explain, is named."""

from __future__ import annotations

import ctypes
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from math import ceil, floor
from typing import Any
from zlib import crc32

import pypdfium2 as pdfium  # type: ignore[import-untyped]  # it has no types

from . import LONGEST_TEXT, Parts, Unreadable, plain

MOST_PAGES = 5_000
NO_TEXT = "no text could be read (it may be a scan)"
DAMAGED = "it is damaged and could not be read"
UNKNOWN_LETTERS = "its letters could not be read: the file does not say which they are"
DOUBTFUL_LETTERS = "some of its text may be wrong: the file does not say which letters it is made of"

SEEN = 0.03
"""Share of the page from which on a picture is worth a word."""
MOST_OF_PAGE = 0.5
CHARACTERS = 250
"""Over a picture as large as the page: with fewer, its text is not there."""
NAMED = 10
"""Pages with pictures that are named one by one."""

_SOFT_HYPHEN = re.compile("[\x02\ufffe]\\s*")  # what PDFium makes of a hyphen at the end of a line
_LENGTH = re.compile(rb"/Linearized\b.{0,200}?/L\s+(\d+)", re.DOTALL)
_ASIDE = (0xFFFD, *range(0x20))
_GRID = 40

Box = tuple[float, float, float, float]
Cell = tuple[int, int]


@dataclass
class Page:
    text: str = ""
    trouble: str = ""
    pictures: list[tuple[object, frozenset[Cell]]] = field(default_factory=list)
    """What tells a picture from others, and the cells of the page that it covers."""
    written: Counter[Cell] = field(default_factory=Counter)
    """Characters in each cell; only where there are pictures."""


def read(name: str, raw: bytes) -> Parts:
    try:
        document = pdfium.PdfDocument(raw)
        pages = len(document)
        if document.get_formtype() != pdfium.raw.FORMTYPE_NONE:
            document.init_forms()
    except pdfium.PdfiumError as error:
        if "password" in str(error).lower():
            raise Unreadable(
                f"{name} is protected by a password. Please send a copy without one (print it to a new PDF)."
            ) from error
        if _cut_off(raw):
            raise Unreadable(f"{name} is cut off: its end is missing. Please send it again.") from error
        raise Unreadable(f"{name} is damaged: it can't be opened as a PDF. Please save it again and resend.") from error
    if _cut_off(raw):
        raise Unreadable(f"{name} is cut off: its end is missing. Please send it again.")
    if pages > MOST_PAGES:
        raise Unreadable(f"{name} has {pages:,} pages; {MOST_PAGES:,} are the most that I can take. Please split it.")
    found = _pages(name, document, pages)
    if not any(page.text for page in found):
        raise Unreadable(_nothing(name, found))
    _name_pictures(found)
    return [
        (label, page.text, f"{label}: {page.trouble}" if page.trouble else "")
        for label, page in ((f"page {number}", page) for number, page in enumerate(found, start=1))
    ]


def _nothing(name: str, pages: Sequence[Page]) -> str:
    which = "its page has" if len(pages) == 1 else f"none of its {len(pages)} pages has"
    if any(page.trouble == UNKNOWN_LETTERS for page in pages):
        which, why = which + " letters that I can make out", "the file does not say which they are"
    else:
        which, why = which + (" no text in it" if len(pages) == 1 else " text in it"), "it may be a scan"
    return f"{name} could not be read: {which} ({why}). Please send a PDF in which text can be selected, or plain text."


def _cut_off(raw: bytes) -> bool:
    if stated := _LENGTH.search(raw[:1024]):
        return int(stated[1]) > len(raw)
    return b"%%EOF" not in raw[-65_536:]


def _pages(name: str, document: Any, pages: int) -> list[Page]:
    found: list[Page] = []
    length = 0
    for index in range(pages):
        found.append(_page(document, index))
        length += len(found[-1].text)
        if length > LONGEST_TEXT:
            raise Unreadable(
                f"{name} holds too much text ({LONGEST_TEXT:,} characters by page {index + 1}). Please split it."
            )
    return found


def _page(document: Any, index: int) -> Page:
    try:
        page = document[index]
        if document.formenv:  # what was filled in is no text of the page until it is made one
            page.flatten()
            page.close()
            page = document[index]
        textpage = page.get_textpage()
        try:
            return _read(page, textpage)
        finally:
            textpage.close()
            page.close()
    except (pdfium.PdfiumError, ValueError):
        return Page(trouble=DAMAGED)


def _read(page: Any, textpage: Any) -> Page:
    written = _SOFT_HYPHEN.sub("", textpage.get_text_range())
    text = plain(written).strip()
    letters = [c for c in written if not c.isspace()]
    unknown = sum(ord(c) in _ASIDE or unicodedata.category(c) in ("Co", "Cn") for c in letters)
    if 2 * unknown > len(letters):
        return Page(trouble=UNKNOWN_LETTERS)
    if not text:
        return Page(trouble=NO_TEXT)
    characters = textpage.count_chars()
    doubtful = sum(pdfium.raw.FPDFText_HasUnicodeMapError(textpage, i) == 1 for i in range(characters))
    found = Page(text, DOUBTFUL_LETTERS if 5 * doubtful > characters or 5 * unknown > len(letters) else "")
    frame = page.get_cropbox()
    for image, transforms in _images(page.raw):
        if cells := _cells(_box(image, transforms), frame):
            found.pictures.append((_which(image, page.raw), cells))
    if found.pictures:
        boxes = (textpage.get_charbox(i) for i in range(characters))
        found.written = Counter(cell for box in boxes for cell in [_cell(_centre(box), frame)] if cell)
    return found


# ── pictures ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _name_pictures(pages: Sequence[Page]) -> None:
    """Names the pages that hold a picture without text over it, unless it is on most of the pages: a background."""
    on = Counter(which for page in pages for which in {which for which, _ in page.pictures})
    everywhere = {which for which, count in on.items() if count > 2 and 2 * count > len(pages)}
    told = []
    for number, page in enumerate(pages, start=1):
        pictures = [cells for which, cells in page.pictures if which not in everywhere]
        if not page.trouble and (trouble := _about(pictures, page.written)):
            page.trouble = trouble
            told.append(number)
    if len(told) > NAMED + 1:
        first, *others = told[NAMED:]
        for number in others:
            pages[number - 1].trouble = ""
        pages[first - 1].trouble = f"it holds a picture whose text could not be read; so do pages {_ranges(others)}"


def _about(pictures: Sequence[frozenset[Cell]], written: Counter[Cell]) -> str:
    covered = frozenset[Cell]().union(*pictures)
    share = len(covered) / _GRID**2
    if share < SEEN or sum(written[cell] for cell in covered) >= CHARACTERS * share:
        return ""
    if share >= MOST_OF_PAGE:
        return "it holds a picture over most of the page; its text could not be read"
    return "it holds a picture whose text could not be read"


def _images(holder: Any, transforms: tuple[Any, ...] = ()) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """Also those in forms, which have coordinates of their own."""
    api = pdfium.raw
    count = (api.FPDFFormObj_CountObjects if transforms else api.FPDFPage_CountObjects)(holder)
    get = api.FPDFFormObj_GetObject if transforms else api.FPDFPage_GetObject
    for i in range(count):
        thing = get(holder, i)
        kind = api.FPDFPageObj_GetType(thing)
        if kind == api.FPDF_PAGEOBJ_IMAGE:
            yield thing, transforms
        elif kind == api.FPDF_PAGEOBJ_FORM and len(transforms) < 10:
            matrix = api.FS_MATRIX()
            if api.FPDFPageObj_GetMatrix(thing, matrix):
                yield from _images(thing, (*transforms, matrix))


def _which(image: Any, page: Any) -> object:
    api = pdfium.raw
    about = api.FPDF_IMAGEOBJ_METADATA()
    api.FPDFImageObj_GetImageMetadata(image, page, about)
    content = (ctypes.c_ubyte * api.FPDFImageObj_GetImageDataRaw(image, None, 0))()
    api.FPDFImageObj_GetImageDataRaw(image, content, len(content))
    return about.width, about.height, len(content), crc32(content)


def _box(image: Any, transforms: tuple[Any, ...]) -> Box:
    api = pdfium.raw
    sides = [ctypes.c_float() for _ in range(4)]
    api.FPDFPageObj_GetBounds(image, *sides)
    left, bottom, right, top = (side.value for side in sides)
    corners = [(x, y) for x in (left, right) for y in (bottom, top)]
    for m in reversed(transforms):
        corners = [(m.a * x + m.c * y + m.e, m.b * x + m.d * y + m.f) for x, y in corners]
    across, up = zip(*corners, strict=True)
    return min(across), min(up), max(across), max(up)


def _cells(box: Box, frame: Box) -> frozenset[Cell]:
    left, bottom, right, top = box
    width, height = (frame[2] - frame[0]) or 1, (frame[3] - frame[1]) or 1
    columns = _between((left - frame[0]) / width, (right - frame[0]) / width)
    rows = _between((bottom - frame[1]) / height, (top - frame[1]) / height)
    return frozenset((column, row) for column in columns for row in rows)


def _between(start: float, end: float) -> range:
    """All that is touched: a scan may come in strips thinner than a cell."""
    return range(max(0, floor(start * _GRID + 0.01)), min(_GRID, ceil(end * _GRID - 0.01)))


def _cell(point: tuple[float, float], frame: Box) -> Cell | None:
    width, height = (frame[2] - frame[0]) or 1, (frame[3] - frame[1]) or 1
    across, up = (point[0] - frame[0]) / width, (point[1] - frame[1]) / height
    return (int(across * _GRID), int(up * _GRID)) if 0 <= across < 1 and 0 <= up < 1 else None


def _centre(box: Box) -> tuple[float, float]:
    return (box[0] + box[2]) / 2, (box[1] + box[3]) / 2


def _ranges(numbers: Sequence[int]) -> str:
    """1, 3–5"""
    runs = [[number for _, number in run] for _, run in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0])]
    return ", ".join(f"{run[0]}–{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)
