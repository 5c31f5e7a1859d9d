"""Where a page of a PDF shows pictures, and which of them nothing is written over."""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from math import ceil, floor
from typing import Any
from zlib import crc32

import pypdfium2 as pdfium  # type: ignore[import-untyped]  # it has no types

CHARACTERS = 250
"""Over a picture as large as the page: with fewer, its text is not there."""
LEAST = 4
"""Cells of a picture that may hold a word."""

_GRID = 40

Box = tuple[float, float, float, float]
Cell = tuple[int, int]


@dataclass
class Shown:
    """What a page shows besides its text."""

    frame: Box
    pictures: list[tuple[object, frozenset[Cell]]] = field(default_factory=list)
    """What tells a picture from others, and the cells of the page that it covers."""
    written: Counter[Cell] = field(default_factory=Counter)
    """Characters in each cell; only where there are pictures."""
    shapes: int = 0

    def unread(self, aside: Collection[object] = ()) -> list[frozenset[Cell]]:
        """Regions of pictures that hardly anything is written over, without the pictures `aside`."""
        covered = frozenset[Cell]().union(*(cells for which, cells in self.pictures if which not in aside))
        return [
            region
            for region in _regions(covered)
            if sum(self.written[cell] for cell in region) < CHARACTERS * share(region)
        ]


def shown(page: Any, textpage: Any) -> Shown:
    found = Shown(page.get_cropbox())
    for thing, transforms in _objects(page.raw):
        if pdfium.raw.FPDFPageObj_GetType(thing) != pdfium.raw.FPDF_PAGEOBJ_IMAGE:
            found.shapes += 1
        elif cells := _cells(_box(thing, transforms), found.frame):
            found.pictures.append((_which(thing, page.raw), cells))
    if found.pictures:
        boxes = (textpage.get_charbox(i) for i in range(textpage.count_chars()))
        found.written = Counter(cell for box in boxes for cell in [_cell(_centre(box), found.frame)] if cell)
    return found


def share(cells: Collection[Cell]) -> float:
    """Of the page."""
    return len(cells) / _GRID**2


def _regions(cells: Collection[Cell]) -> Iterator[frozenset[Cell]]:
    """Pictures that touch are one: a scan may come in strips. What is too small for a word is left out."""
    left = set(cells)
    while left:
        near = {left.pop()}
        region = set(near)
        while near:
            near = {(x + dx, y + dy) for x, y in near for dx in (-1, 0, 1) for dy in (-1, 0, 1)} & left
            left -= near
            region |= near
        if len(region) >= LEAST:
            yield frozenset(region)


def around(cells: Collection[Cell], frame: Box) -> Box:
    columns, rows = [column for column, _ in cells], [row for _, row in cells]
    width, height = (frame[2] - frame[0]) / _GRID, (frame[3] - frame[1]) / _GRID
    return (
        frame[0] + min(columns) * width,
        frame[1] + min(rows) * height,
        frame[0] + (max(columns) + 1) * width,
        frame[1] + (max(rows) + 1) * height,
    )


def _objects(holder: Any, transforms: tuple[Any, ...] = ()) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """Pictures and shapes, also those in forms, which have coordinates of their own."""
    api = pdfium.raw
    count = (api.FPDFFormObj_CountObjects if transforms else api.FPDFPage_CountObjects)(holder)
    get = api.FPDFFormObj_GetObject if transforms else api.FPDFPage_GetObject
    for i in range(count):
        thing = get(holder, i)
        kind = api.FPDFPageObj_GetType(thing)
        if kind in (api.FPDF_PAGEOBJ_IMAGE, api.FPDF_PAGEOBJ_PATH, api.FPDF_PAGEOBJ_SHADING):
            yield thing, transforms
        elif kind == api.FPDF_PAGEOBJ_FORM and len(transforms) < 10:
            matrix = api.FS_MATRIX()
            if api.FPDFPageObj_GetMatrix(thing, matrix):
                yield from _objects(thing, (*transforms, matrix))


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
