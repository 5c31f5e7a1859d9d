"""OpenDocument (LibreOffice): texts, sheets and slides. Comments, deleted text and what is hidden are left out."""

from __future__ import annotations

import posixpath
import sys
from collections.abc import Iterator
from itertools import count

from . import LONGEST_TEXT, Parts, Unreadable, grid
from .blocks import Block, flat, plain_text, tidy, written
from .elements import number
from .package import Damaged, Element, Package
from .seen import Pictures, how
from .tables import Cell, Line, blocks_of

_NAMES = "urn:oasis:names:tc:opendocument:xmlns:"
OFFICE, TEXT, TABLE, DRAW, STYLE, SHOW, SVG = (
    f"{{{_NAMES}{name}:1.0}}"
    for name in ("office", "text", "table", "drawing", "style", "presentation", "svg-compatible")
)
LINK = "{http://www.w3.org/1999/xlink}href"
MARGINS = "header and footer"
MOST_CELLS = 1_000_000
MOST_COLUMNS = 2_000
MOST_REPEATS = 100
"""Of a row or a cell that is written once and meant many times."""
SMALLEST = 1.0
"""Centimetres: a smaller picture is an icon or a line."""
_CENTIMETRES = {"cm": 1.0, "mm": 0.1, "in": 2.54, "pt": 2.54 / 72, "px": 2.54 / 96}
_DEEPEST = 5_000
_ASIDE = ("tracked-changes", "annotation", "annotation-end", "sequence-decls", "variable-decls", "forms", "ruby-text")
_LISTED = ("table-of-content", "alphabetical-index", "illustration-index", "named-expressions", "database-ranges")
_UNSEEN = ("hidden-text", "hidden-paragraph", "event-listeners", "soft-page-break")
_GONE = frozenset((*_ASIDE, *_LISTED, *_UNSEEN, "notes", "shapes"))


def read(name: str, package: Package) -> tuple[str, Parts]:
    """And which of them it is: text, spreadsheet or presentation."""
    sys.setrecursionlimit(_DEEPEST)
    if b"encryption-data" in (package.picture("META-INF/manifest.xml") or b""):
        raise Unreadable(f"{name} is protected by a password. Please send a copy without one.", "password")
    damaged = Unreadable(f"{name} is damaged: its text can't be opened. Please save it again, or as PDF.")
    try:
        root, styles = package.xml("content.xml"), package.xml("styles.xml")
    except Damaged as error:
        raise damaged from error
    body = root.find(OFFICE + "body") if root is not None else None
    if body is None or not len(body):
        raise damaged
    reading = _Reading(package, [each for each in (root, styles) if each is not None])
    kind = _name(body[0])
    parts = list(_parts(kind, body[0], styles, reading))
    length = sum(len(part[1]) for part in parts)
    if length > LONGEST_TEXT:
        raise Unreadable(f"{name} holds too much text ({length:,} characters). Please split it.", "limit")
    if not length:
        raise Unreadable(f"{name} could not be read: there is no text in it. Please send its text itself.", "nothing")
    return kind, parts


def _parts(kind: str, body: Element, styles: Element | None, reading: _Reading) -> Iterator[tuple[str, ...]]:
    match kind:
        case "spreadsheet":
            for table in body.iterfind(TABLE + "table"):
                title = table.get(TABLE + "name", "")
                yield from reading.part(f"sheet {title}", table, reading.sheet(table), title)
        case "presentation" | "drawing":
            for at, page in enumerate(body.iterfind(DRAW + "page"), start=1):
                yield from reading.part(f"slide {at}", page, reading.slide(page))
        case _:
            yield from reading.part("", body, reading.blocks(body))
            margins = dict.fromkeys(written(plain_text(blocks)) for blocks in reading.margins(styles))
            if told := "\n\n".join(text for text in margins if text):
                yield MARGINS, told, ""


class _Reading:
    def __init__(self, package: Package, roots: list[Element]) -> None:
        self._package = package
        self._seen = Pictures()
        self._hidden: set[str] = set()
        """Styles of what is not shown."""
        for root in roots:
            for style in root.iter(STYLE + "style"):
                if any(_hides(properties) for properties in style):
                    self._hidden.add(style.get(STYLE + "name", ""))
        self._notes: list[Block] = []
        self._numbers = count(1)
        self._cells_left = MOST_CELLS
        self._unread: dict[str, int] = {}

    def part(self, label: str, element: Element, blocks: Iterator[Block], title: str = "") -> Iterator[tuple[str, ...]]:
        style = element.get(TABLE + "style-name") or element.get(DRAW + "style-name") or ""
        if style in self._hidden:
            yield label, "", f"{label}: it is hidden, so it was left out"
            return
        before = self._seen.found
        found = [block for block in blocks if block.filled]
        text = written([Block(title, level=1), *found] if title and found else found)
        unread = [f"{times} {what}s" if times > 1 else f"a {what}" for what, times in self._unread.items()]
        self._unread = {}
        trouble = f"{label or 'the text'}: it holds {', '.join(unread)} that could not be read" if unread else ""
        if text or trouble:
            yield label, text, trouble, *how(self._seen.found - before, alone=len(found) == self._seen.found - before)

    # ── text ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def blocks(self, parent: Element, depth: int = 0) -> Iterator[Block]:
        for child in parent:
            name = _name(child)
            if name in _GONE or self._is_hidden(child):
                continue
            if name in ("p", "h"):
                after: list[Block] = []
                text = tidy(self._line(child, after))
                yield Block(text, number(child.get(TEXT + "outline-level"), 1) if name == "h" else None)
                yield from after
                yield from self._told()
            elif name == "list":
                yield from self._list(child, depth)
            elif name == "table":
                yield from self._table(child)
            elif name == "frame":
                yield from self._frame(child)
            else:
                yield from self.blocks(child, depth)

    def margins(self, styles: Element | None) -> Iterator[list[Block]]:
        for master in styles.iter(STYLE + "master-page") if styles is not None else ():
            for each in master:
                if _name(each).startswith(("header", "footer")):
                    yield list(self.blocks(each))

    def _is_hidden(self, element: Element) -> bool:
        style = element.get(TEXT + "style-name") or element.get(DRAW + "style-name") or ""
        return style in self._hidden or element.get(TEXT + "display") == "none"

    def _told(self) -> list[Block]:
        notes, self._notes = self._notes, []
        return notes

    def _list(self, parent: Element, depth: int) -> Iterator[Block]:
        for item in parent:
            first = True
            for block in self.blocks(item, depth + 1):
                if first and block.filled and not block.rows and block.level is None:
                    block = Block(f"- {block.text}", depth=depth)
                    first = False
                yield block

    def _line(self, parent: Element, after: list[Block]) -> str:
        text = parent.text or ""
        for child in parent:
            name = _name(child)
            if name in _GONE or self._is_hidden(child):
                pass
            elif name == "s":
                text += " " * min(number(child.get(TEXT + "c"), 1), 100)
            elif name in ("tab", "line-break"):
                text += "\t" if name == "tab" else "\n"
            elif name == "note":
                mark = f"[{next(self._numbers)}]"
                said = child.find(TEXT + "note-body")
                note = flat(list(self.blocks(said))) if said is not None else ""
                self._notes.append(Block(f"{mark} {note}"))
                text += mark
            elif name == "frame":
                after += self._frame(child)
            elif child.tag.startswith(DRAW):
                after += self.blocks(child)
            else:
                text += self._line(child, after)
            text += child.tail or ""
        return text

    def _table(self, table: Element) -> Iterator[Block]:
        lines = []
        for row, header in _rows(table):
            cells = []
            at = 0
            for cell in row:
                times = min(number(cell.get(TABLE + "number-columns-repeated"), 1), MOST_REPEATS)
                span = min(max(1, number(cell.get(TABLE + "number-columns-spanned"), 1)), MOST_REPEATS)
                if _name(cell) == "table-cell":
                    said = tuple(block for block in self.blocks(cell) if block.filled)
                    cells += [Cell(said, at + n, span, continues=False, stands_out=False) for n in range(times)]
                at += times
            lines.append(Line(tuple(cells), header=header))
        yield from blocks_of(lines, lit=False)

    # ── what is drawn ─────────────────────────────────────────────────────────────────────────────────────────────

    def _frame(self, frame: Element) -> Iterator[Block]:
        inside = [_name(each) for each in frame]
        for child in frame:
            match _name(child):
                case "text-box" | "table":
                    yield from plain_text(list(self.blocks([child] if _name(child) == "table" else child)))
                case "object" | "object-ole":
                    yield from self._object(child)
                case "plugin" | "applet" | "floating-frame":
                    self._cannot("embedded object")
                case "image" if not {"object", "object-ole"} & set(inside):
                    yield from self._picture(frame, child)

    def _object(self, element: Element) -> Iterator[Block]:
        """A chart keeps its numbers as a table."""
        part = posixpath.normpath(posixpath.join(element.get(LINK, ""), "content.xml"))
        try:
            root = self._package.xml(part) if _name(element) == "object" else None
        except Damaged:
            root = None
        found = [
            block for each in (root.iter(TABLE + "table") if root is not None else ()) for block in self._table(each)
        ]
        if not found:
            self._cannot("embedded object")
        yield from found

    def _picture(self, frame: Element, image: Element) -> Iterator[Block]:
        alts = (frame.findtext(SVG + kind) for kind in ("desc", "title"))
        alt = " ".join((next(filter(None, alts), "") or "").split())
        if alt:
            yield Block(f"Picture: {alt}")
        if min((_centimetres(frame.get(SVG + side, "")) for side in ("width", "height")), default=SMALLEST) < SMALLEST:
            return
        words = self._seen.part(self._package, posixpath.normpath(image.get(LINK, "")))
        if words is None:
            self._cannot("picture")
        elif words:
            yield Block(tidy(words))

    def _cannot(self, what: str) -> None:
        self._unread[what] = self._unread.get(what, 0) + 1

    # ── slides and sheets ─────────────────────────────────────────────────────────────────────────────────────────

    def slide(self, page: Element) -> Iterator[Block]:
        shapes = [each for each in page if _name(each) not in _GONE]
        titles = [each for each in shapes if each.get(SHOW + "class") == "title"]
        for title in titles:
            if said := flat(list(self.blocks(title))):
                yield Block(said, level=1)
        for shape in shapes:
            if shape not in titles:
                yield from plain_text(list(self.blocks([shape])))
        notes = page.find(SHOW + "notes")
        said = flat(plain_text(list(self.blocks(notes)))) if notes is not None else ""
        if said:
            yield Block(f"Speaker notes: {said}")

    def sheet(self, table: Element) -> Iterator[Block]:
        columns = _hidden_columns(table)
        lines: list[grid.Line] = []
        at = 0
        for row, header in _rows(table):
            times = number(row.get(TABLE + "number-rows-repeated"), 1)
            cells = self._cells(row, columns)
            if row.get(TABLE + "visibility") in ("collapse", "filter"):
                if cells:
                    self._cannot("hidden row")
            elif cells:
                lines += [grid.Line(at + n, cells, header) for n in range(min(times, MOST_REPEATS))]
            at += max(times, 1)
        yield from grid.blocks(lines)
        shapes = table.find(TABLE + "shapes")
        if shapes is not None:
            yield from plain_text(list(self.blocks(shapes)))

    def _cells(self, row: Element, hidden: set[int]) -> dict[int, str]:
        found: dict[int, str] = {}
        at = 0
        for cell in row:
            times = max(1, number(cell.get(TABLE + "number-columns-repeated"), 1))
            if _name(cell) == "table-cell" and len(cell) and self._cells_left > 0:
                said = flat(list(self.blocks(cell)))
                if said:
                    places = range(at, min(at + min(times, MOST_REPEATS), MOST_COLUMNS))
                    found |= {place: said for place in places if place not in hidden}
                    self._cells_left -= len(places)
                    if self._cells_left <= 0:
                        self._cannot("cell too many")
            at += times
        return found


def _name(element: Element) -> str:
    """Empty for what is no element."""
    return str(element.tag).rpartition("}")[2] if isinstance(element.tag, str) else ""


def _hides(properties: Element) -> bool:
    return bool(
        properties.get(TEXT + "display") == "none"
        or properties.get(TABLE + "display") == "false"
        or properties.get(SHOW + "visibility") == "hidden"
    )


def _rows(table: Element, header: bool = False) -> Iterator[tuple[Element, bool]]:
    for child in table:
        match _name(child):
            case "table-row":
                yield child, header
            case "table-header-rows":
                yield from _rows(child, header=True)
            case "table-row-group" | "table-rows":
                yield from _rows(child, header)


def _hidden_columns(table: Element) -> set[int]:
    found: set[int] = set()
    at = 0
    for column in table.iter(TABLE + "table-column"):
        times = max(1, number(column.get(TABLE + "number-columns-repeated"), 1))
        if column.get(TABLE + "visibility") in ("collapse", "filter"):
            found |= set(range(at, min(at + times, MOST_COLUMNS)))
        at += times
    return found


def _centimetres(length: str) -> float:
    try:
        return float(length[:-2]) * _CENTIMETRES[length[-2:]]
    except (ValueError, KeyError):
        return SMALLEST
