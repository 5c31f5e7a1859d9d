"""Pages of a PDF that are pictures, or hold some, are drawn and read by OCR."""

from __future__ import annotations

import ctypes
from collections.abc import Collection, Sequence
from typing import Any

import pypdfium2 as pdfium  # type: ignore[import-untyped]  # it has no types

from .layout import Line, arranged
from .mending import hyphens_marked
from .ocr import MOST_PIXELS, TOO_MANY, Found, Reader
from .pages import (
    BLANK,
    DAMAGED,
    DOUBTFUL_LETTERS,
    NO_TEXT,
    NO_WORDS,
    PICTURE,
    PICTURE_IN_PART,
    PICTURE_OVER_MOST,
    Page,
)
from .pdf_pictures import Box, Shown, around, share

FINEST = 300 / 72
"""Pixels to a point."""
COARSE = 100 / 72
"""Below, what is written may be too small to be seen."""
LONGEST = 2_000
"""Pixels of what is looked at more closely."""
SHAPES = 150
FEW = 200
"""A page of so many shapes and so few characters: its letters may have been drawn."""
MOST_OF_PAGE = 0.5

Pixels = Any
Size = tuple[int, int]


def look(document: Any, pages: Sequence[Page], reader: Reader) -> None:
    """First the pages that would be lost, then those that hold pictures. One that is shown again is not read again."""
    seen: set[object] = set()
    for number in sorted(range(len(pages)), key=lambda number: bool(pages[number].text)):
        page = pages[number]
        if page.trouble == DAMAGED:
            continue
        if reader.spent:
            _pass(page, seen)
            continue
        try:
            if not page.text or page.trouble == DOUBTFUL_LETTERS:
                _whole(document[number], page, reader)
            elif page.shown and needs_look(page, seen):
                _beside_text(document[number], page, page.shown, reader, seen)
        except (pdfium.PdfiumError, ValueError):
            page.trouble = page.trouble or PICTURE if page.text else DAMAGED


def _pass(page: Page, seen: set[object]) -> None:
    if page.trouble == NO_TEXT:
        page.trouble = TOO_MANY
    elif page.shown and not page.trouble and (regions := page.shown.unread(seen)):
        page.trouble = PICTURE_OVER_MOST if sum(map(share, regions)) >= MOST_OF_PAGE else PICTURE


def needs_look(page: Page, seen: Collection[object] = ()) -> bool:
    return not page.text or bool(page.trouble) or _is_drawn(page) or bool(page.shown and page.shown.unread(seen))


def _is_drawn(page: Page) -> bool:
    return page.shown is not None and page.shown.shapes >= SHAPES and page.characters < FEW


def _whole(pdf_page: Any, page: Page, reader: Reader) -> None:
    pixels, scale = _drawn(pdf_page)
    if _is_blank(pixels):
        page.trouble = BLANK if page.trouble == NO_TEXT else page.trouble
        return
    found = reader.read(pixels)
    if not found.lines and not found.trouble and scale < COARSE:
        found = _closer(pdf_page, pixels, scale, reader)
    if found.lines and (not page.text or not found.trouble):
        page.text, page.trouble, page.how = hyphens_marked(found.text), found.trouble, "ocr"
    elif page.trouble == NO_TEXT:
        page.trouble = found.trouble or NO_WORDS


def _beside_text(pdf_page: Any, page: Page, shown: Shown, reader: Reader, seen: set[object]) -> None:
    regions = shown.unread(seen)
    covered = sum(share(region) for region in regions)
    pixels, _ = _drawn(pdf_page)
    size = pixels.shape[1], pixels.shape[0]
    boxes = [_in_pixels(pdf_page, size, around(region, shown.frame)) for region in regions]
    if _is_drawn(page) or covered >= MOST_OF_PAGE:
        boxes = [(0, 0, *size)]
    seen.update(which for which, _ in shown.pictures)
    written = _written(pdf_page, size)
    found = [
        _apart(reader.read(pixels[top:bottom, left:right]), left, top, written) for left, top, right, bottom in boxes
    ]
    lines = [line for each in found for line in each.lines]
    if lines:
        page.text = f"{page.text}\n\n{hyphens_marked(arranged(lines))}"
        page.how = "partly ocr"
    if page.trouble or not any(each.trouble for each in found):
        return
    if lines:
        page.trouble = PICTURE_IN_PART
    else:
        page.trouble = PICTURE_OVER_MOST if covered >= MOST_OF_PAGE else PICTURE


def _apart(found: Found, left: int, top: int, written: Any) -> Found:
    """Without the lines that are there as text."""
    lines = [
        line._replace(left=line.left + left, right=line.right + left, top=line.top + top, bottom=line.bottom + top)
        for line in found.lines
    ]
    return Found(tuple(line for line in lines if not _is_written(line, written)), found.trouble)


def _is_written(line: Line, written: Any) -> bool:
    across, down = written[:, 0], written[:, 1]
    inside = (across >= line.left) & (across <= line.right) & (down >= line.top) & (down <= line.bottom)
    return bool(inside.sum() >= max(1, 0.3 * len(line.text.replace(" ", ""))))


# ── drawing ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _drawn(page: Any) -> tuple[Pixels, float]:
    width, height = page.get_size()
    scale = min(FINEST, (MOST_PIXELS / max(1.0, width * height)) ** 0.5)
    return _bitmap(page, scale), scale


def _bitmap(page: Any, scale: float, crop: tuple[float, float, float, float] = (0, 0, 0, 0)) -> Pixels:
    bitmap = page.render(scale=scale, crop=crop, force_bitmap_format=pdfium.raw.FPDFBitmap_BGR)
    try:
        return bitmap.to_numpy().copy()
    finally:
        bitmap.close()


def _closer(page: Any, pixels: Pixels, scale: float, reader: Reader) -> Found:
    """On an enormous page, only where there is something."""
    rows, columns = (_inked(pixels).any(axis=axis).nonzero()[0] for axis in (1, 0))
    if not len(rows) or not len(columns):
        return Found()
    height, width = pixels.shape[:2]
    left, top = max(0, columns[0] - 2) / scale, max(0, rows[0] - 2) / scale
    right, bottom = max(0, width - columns[-1] - 3) / scale, max(0, height - rows[-1] - 3) / scale
    wide, high = width / scale - left - right, height / scale - top - bottom
    closer = min(FINEST, (MOST_PIXELS / max(1.0, wide * high)) ** 0.5, LONGEST / max(1.0, wide, high))
    if closer < 1.5 * scale:
        return Found()
    return reader.read(_bitmap(page, closer, (left, bottom, right, top)))


def _is_blank(pixels: Pixels) -> bool:
    return not _inked(pixels).any()


def _inked(pixels: Pixels) -> Any:
    """Where it differs from its paper."""
    import numpy

    grey = pixels.mean(axis=2)
    return abs(grey - numpy.median(grey[:: max(1, len(grey) // 500)])) > 12


def _in_pixels(page: Any, size: Size, box: Box) -> tuple[int, int, int, int]:
    """Left, top, right and bottom; the page may be turned."""
    (x0, y0), (x1, y1) = (_pixel(page, size, x, y) for x, y in (box[:2], box[2:]))
    left, right = sorted(min(max(x, 0), size[0]) for x in (x0, x1))
    top, bottom = sorted(min(max(y, 0), size[1]) for y in (y0, y1))
    return left, top, max(right, left + 1), max(bottom, top + 1)


def _pixel(page: Any, size: Size, x: float, y: float) -> tuple[int, int]:
    across, down = ctypes.c_int(), ctypes.c_int()
    pdfium.raw.FPDF_PageToDevice(page, 0, 0, *size, 0, x, y, across, down)
    return across.value, down.value


def _written(page: Any, size: Size) -> Any:
    """The middles of its characters, in pixels."""
    import numpy

    textpage = page.get_textpage()
    boxes = (textpage.get_charbox(i) for i in range(textpage.count_chars()))
    middles = [_pixel(page, size, (box[0] + box[2]) / 2, (box[1] + box[3]) / 2) for box in boxes]
    textpage.close()
    return numpy.array(middles, dtype=float).reshape(-1, 2)
