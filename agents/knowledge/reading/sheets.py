"""Excel files, sheet by sheet, read as a stream: what the file declares about its size is not believed.

Values are those that were saved with the formulas. What Excel does not show is left out and named; charts say again
what cells say, and are left out.
"""

from __future__ import annotations

import re
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import IO
from zipfile import BadZipFile

from lxml import etree  # type: ignore[import-untyped]  # it has no types

from . import LONGEST_TEXT, Parts, Unreadable, grid
from .blocks import Block, written
from .drawings import ID, IMAGE, SMALLEST, A
from .elements import number
from .numbers import PLAIN, Form, form_of, shown
from .package import Damaged, Element, Link, Package
from .seen import Pictures, how

MOST_CELLS = 1_000_000
"""Filled ones, of all sheets."""
MOST_BYTES = 1 << 30
"""Of one sheet, unpacked."""
WITHIN_S = 40.0
"""Of processor time: what comes later is named."""
MOST_SHEETS = 500
LONGEST_CELL = 32_767
REPEATED = 80
"""Characters: what is longer is not said again in each row that a merged cell spans."""
SPANNED = 1_000
"""Rows, at most."""

_REFERENCE = re.compile(r"\$?([A-Z]{1,3})\$?(\d{1,7})")
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")
_DEFAULT_NAME = re.compile(r"[^\W\d]+ ?\d{1,3}")
_CODE = re.compile(r'&(?:"[^"]*"|\d{1,3}|K[\w+-]{6}|[A-Z])')
"""In headers and footers: fonts, sizes, places, page numbers."""
_THREADED = "[Threaded comment]"
_TOO_MUCH = "it holds more than I can take; the rows from {} on were left out"

Forms = tuple[Form, ...]


@dataclass
class Sheet:
    lines: list[grid.Line] = field(default_factory=list)
    headers: set[int] = field(default_factory=set)
    merged: list[tuple[int, int, int, int]] = field(default_factory=list)
    """First row and column, last row and column."""
    hidden_columns: list[tuple[int, int]] = field(default_factory=list)
    hidden_rows: int = 0
    hides_columns: bool = False
    margins: list[str] = field(default_factory=list)
    """Printed above and below."""
    uncounted: list[str] = field(default_factory=list)
    """Cells with formulas whose value was not saved."""
    unread: list[str] = field(default_factory=list)


def read(name: str, package: Package) -> Parts:
    damaged = Unreadable(f"{name} is damaged: its sheets can't be opened. Please save it again as .xlsx or PDF.")
    try:
        main = next((each.target for each in package.links("").values() if each.kind == "officeDocument"), "")
        main = main or "xl/workbook.xml"
        root = package.xml(main)
        if root is None or etree.QName(root).localname != "workbook":
            raise damaged
        book = _Book(name, package, main, root)
    except Damaged as error:
        raise damaged from error
    sheets = root.findall("{*}sheets/{*}sheet")
    if len(sheets) > MOST_SHEETS:
        raise Unreadable(f"{name} has {len(sheets):,} sheets; I can take {MOST_SHEETS:,}. Please split it.", "limit")
    parts: Parts = []
    for sheet in sheets:
        title = sheet.get("name", "")
        label = f"sheet {title}"
        if sheet.get("state") in ("hidden", "veryHidden"):
            parts.append((label, "", f"{label}: it is hidden, so it was left out"))
            continue
        text, trouble, words = book.told(title, sheet.get(ID + "id", ""), alone=len(sheets) == 1)
        if text or trouble:
            parts.append((label, text, f"{label}: {trouble}" if trouble else "", *how(words)))
    if sum(len(part[1]) for part in parts) > LONGEST_TEXT:
        raise Unreadable(f"{name} holds too much text. Please split it.", "limit")
    if not any(part[1] for part in parts):
        why = "; ".join(part[2] for part in parts[:3]) or "there is nothing in its cells"
        raise Unreadable(f"{name} could not be read: {why}. Please check the file and send it again.", "nothing")
    return parts


class _Book:
    def __init__(self, name: str, package: Package, main: str, root: Element) -> None:
        self._name = name
        self._package = package
        self._links = package.links(main)
        self._cells_left = MOST_CELLS
        self._until = time.process_time() + WITHIN_S
        about = root.find("{*}workbookPr")
        self._since_1904 = about is not None and about.get("date1904") in ("1", "true")
        self._forms, self._bold = self._styles()
        self._strings = self._shared()
        self._seen = Pictures()

    def told(self, title: str, link_id: str, *, alone: bool) -> tuple[str, str, int]:
        """A sheet's text, what is wrong with it, and how many pictures' words are in it."""
        link = self._links.get(link_id)
        if link is None:
            return "", "it is missing from the file", 0
        if link.kind != "worksheet":
            return "", "it holds no cells, and could not be read", 0
        sheet = Sheet()
        before = self._seen.found
        try:
            self._tables(link, sheet)
            self._fill(link, sheet)
            blocks = [*grid.blocks(self._lines(sheet)), *self._drawn(link, sheet), *self._comments(link)]
            blocks += map(Block, sheet.margins)
        except Damaged:
            return "", "it is damaged and could not be read", 0
        if blocks and not (alone and _DEFAULT_NAME.fullmatch(title)):
            blocks.insert(0, Block(title, level=1))
        if sheet.uncounted:
            first, count = sheet.uncounted[0], len(sheet.uncounted)
            which = f"{count} formulas (first {first}) have" if count > 1 else f"the formula in {first} has"
            sheet.unread.append(f"{which} no value saved; please open it in Excel, save it and send it again")
        if sheet.hidden_rows:
            were = "rows were" if sheet.hidden_rows > 1 else "row was"
            sheet.unread.append(f"{sheet.hidden_rows:,} hidden {were} left out")
        if sheet.hides_columns:
            sheet.unread.append("its hidden columns were left out")
        return written(blocks), "; ".join(sheet.unread), self._seen.found - before

    # ── what cells refer to ───────────────────────────────────────────────────────────────────────────────────────

    def _target(self, kind: str) -> str:
        return next((each.target for each in self._links.values() if each.kind == kind), "")

    def _styles(self) -> tuple[list[Forms], list[bool]]:
        try:
            root = self._package.xml(self._target("styles"))
        except Damaged:
            root = None
        if root is None:
            return [], []
        codes = {number(each.get("numFmtId")): each.get("formatCode", "") for each in root.iterfind("{*}numFmts/*")}
        bold = []
        for font in root.iterfind("{*}fonts/{*}font"):
            mark = font.find("{*}b")
            bold.append(mark is not None and mark.get("val") not in ("0", "false"))
        styles = root.findall("{*}cellXfs/{*}xf")
        ids = [number(each.get("numFmtId")) for each in styles]
        fonts = [number(each.get("fontId")) for each in styles]
        return [form_of(each, codes.get(each, "")) for each in ids], [at < len(bold) and bold[at] for at in fonts]

    def _shared(self) -> list[str]:
        stream = self._package.open(self._target("sharedStrings"))
        found: list[str] = []
        length = 0
        for item in _elements(stream, ("{*}si",)) if stream else ():
            found.append(_text(item))
            length += len(found[-1])
            if length > 2 * LONGEST_TEXT:
                raise Unreadable(f"{self._name} holds too much text. Please split it.", "limit")
        return found

    # ── cells ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _tables(self, link: Link, sheet: Sheet) -> None:
        for each in self._package.links(link.target).values():
            root = self._package.xml(each.target) if each.kind == "table" else None
            if root is not None and root.get("headerRowCount") != "0" and (box := _box(root.get("ref", ""))):
                sheet.headers.add(box[0])

    def _fill(self, link: Link, sheet: Sheet) -> None:
        stream = self._package.open(link.target)
        if stream is None:
            raise Damaged(link.target)
        row = 0
        for element in _elements(stream, ("{*}row", "{*}col", "{*}mergeCell", "{*}autoFilter", "{*}headerFooter")):
            match etree.QName(element).localname:
                case "row":
                    row = number(element.get("r"), row + 1)
                    if not len(element):
                        continue
                    if self._cells_left <= 0 or time.process_time() > self._until:
                        sheet.unread.append(_TOO_MUCH.format(f"row {row:,}"))
                        return
                    self._row(element, row, sheet)
                case "col" if element.get("hidden") in ("1", "true"):
                    sheet.hidden_columns.append((number(element.get("min")), number(element.get("max"))))
                case "mergeCell":
                    sheet.merged += [box] if (box := _box(element.get("ref", ""))) else []
                case "headerFooter":
                    said = (" ".join(_CODE.sub(" ", each.text or "").split()) for each in element)
                    sheet.margins += [text for text in dict.fromkeys(said) if text]
                case "autoFilter" if box := _box(element.get("ref", "")):
                    sheet.headers.add(box[0])

    def _row(self, element: Element, row: int, sheet: Sheet) -> None:
        cells: dict[int, str] = {}
        bold = True
        at = 0
        for cell in element:
            found = _REFERENCE.fullmatch(cell.get("r") or "")
            at = _column(found[1]) if found else at + 1
            text = self._said(cell, sheet)
            if not text:
                continue
            if any(first <= at <= last for first, last in sheet.hidden_columns):
                sheet.hides_columns = True
                continue
            cells[at] = text
            style = number(cell.get("s"))
            bold = bold and style < len(self._bold) and self._bold[style]
        if not cells:
            return
        if element.get("hidden") in ("1", "true"):
            sheet.hidden_rows += 1
            return
        self._cells_left -= len(cells)
        sheet.lines.append(grid.Line(row, cells, stands_out=bold))

    def _said(self, cell: Element, sheet: Sheet) -> str:
        kind = cell.get("t", "n")
        if kind == "inlineStr":
            inline = cell.find("{*}is")
            return _tidy(_text(inline)) if inline is not None else ""
        value = cell.findtext("{*}v")
        if value is None or (value == "" and kind != "str"):
            if cell.find("{*}f") is not None:
                sheet.uncounted.append(cell.get("r") or "?")
            return ""
        match kind:
            case "s":
                place = number(value, -1)
                return _tidy(self._strings[place]) if 0 <= place < len(self._strings) else ""
            case "b":
                return "TRUE" if value == "1" else "FALSE"
            case "d":
                return str(value).removesuffix("T00:00:00").replace("T", " ")
            case "n":
                style = number(cell.get("s"))
                forms = self._forms[style] if 0 <= style < len(self._forms) else (PLAIN,)
                return shown(value, forms, self._since_1904)
        return _tidy(_unescaped(value))

    def _lines(self, sheet: Sheet) -> list[grid.Line]:
        lines = sorted(sheet.lines, key=lambda line: line.at)
        by_row = {line.at: line for line in lines}
        for first_row, first, last_row, last in sheet.merged:
            text = by_row[first_row].cells.get(first, "") if first_row in by_row else ""
            if not text or len(text) > REPEATED:
                continue
            for row in range(first_row + 1, min(last_row, first_row + SPANNED) + 1):
                if row in by_row:
                    by_row[row].cells.setdefault(first, text)
            below = by_row.get(last_row + 1)
            if last > first and below and last - first < 100 and first_row == last_row and len(lines) > 2:
                self._spread(by_row[first_row], below, first, last, text)
        for line in lines:
            items = sorted(line.cells.items())
            line.cells.clear()
            line.cells.update(items)
        return [replace(line, header=True) if line.at in sheet.headers else line for line in lines]

    def _spread(self, line: grid.Line, below: grid.Line, first: int, last: int, text: str) -> None:
        """A name over several columns is the name of each; a title over all of them is none."""
        if set(below.cells) - set(range(first, last + 1)) and len(line.cells) > 1:
            for at in range(first, last + 1):
                line.cells.setdefault(at, text)

    # ── what is not in cells ──────────────────────────────────────────────────────────────────────────────────────

    def _comments(self, link: Link) -> list[Block]:
        found: dict[str, str] = {}
        for each in self._package.links(link.target).values():
            if each.kind not in ("comments", "threadedComment"):
                continue
            root = self._package.xml(each.target)
            for comment in root.iter("{*}comment", "{*}threadedComment") if root is not None else ():
                text = _tidy(_text(comment))
                reference = comment.get("ref", "")
                if text and not text.startswith(_THREADED):
                    found[reference] = f"{found[reference]}; {text}" if reference in found else text
        return [Block(f"Note on {reference}: {text}") for reference, text in found.items()]

    def _drawn(self, link: Link, sheet: Sheet) -> Iterator[Block]:
        for each in self._package.links(link.target).values():
            root = self._package.xml(each.target) if each.kind == "drawing" else None
            if root is None:
                continue
            for shape in root.iter("{*}sp"):
                lines = ("".join(text.text or "" for text in line.iter(A + "t")) for line in shape.iter(A + "p"))
                if said := "\n".join(line.strip() for line in lines if line.strip()):
                    yield Block(said)
            unread = 0
            for picture in root.iter("{*}pic"):
                words = self._words(picture, each)
                unread += words is None
                if words:
                    yield Block(words)
            if unread:
                what = "a picture" if unread == 1 else f"{unread} pictures"
                sheet.unread.append(f"it holds {what} whose text could not be read")

    def _words(self, picture: Element, drawing: Link) -> str | None:
        extent = picture.find(f".//{A}xfrm/{A}ext")
        if extent is not None and 0 < min(number(extent.get("cx")), number(extent.get("cy"))) < SMALLEST * 9525:
            return ""
        blip = picture.find(f".//{IMAGE}")
        link = self._package.links(drawing.target).get(blip.get(ID + "embed", "")) if blip is not None else None
        if link is None:
            return None
        return self._seen.part(self._package, link.target)


# ── a stream of elements ──────────────────────────────────────────────────────────────────────────────────────────


class _Weighed:
    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._left = MOST_BYTES

    def read(self, size: int = -1) -> bytes:
        content = self._stream.read(size)
        self._left -= len(content)
        if self._left < 0:
            raise Damaged("it unpacks to far more than a sheet holds")
        return content


def _elements(stream: IO[bytes], tags: tuple[str, ...]) -> Iterator[Element]:
    """Each is forgotten after its turn."""
    try:
        for _, element in etree.iterparse(
            _Weighed(stream), tag=tags, resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False
        ):
            yield element
            parent = element.getparent()
            element.clear()
            if parent is not None:
                while element.getprevious() is not None:
                    del parent[0]
    except (etree.XMLSyntaxError, BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError) as error:
        raise Damaged("sheet") from error
    finally:
        stream.close()


def _text(item: Element) -> str:
    """Without the readings above Japanese words."""
    found = (each for each in item.iter("{*}t", "{*}text") if each.getparent().tag.rpartition("}")[2] != "rPh")
    return _unescaped("".join(each.text or "" for each in found))


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text) if "_x" in text else text


def _tidy(text: str) -> str:
    return " ".join(text[:LONGEST_CELL].split())


def _column(letters: str) -> int:
    at = 0
    for letter in letters:
        at = at * 26 + ord(letter) - 64
    return at


def _box(reference: str) -> tuple[int, int, int, int] | None:
    first, _, last = reference.partition(":")
    corner, opposite = _REFERENCE.fullmatch(first), _REFERENCE.fullmatch(last or first)
    if corner is None or opposite is None:
        return None
    return int(corner[2]), _column(corner[1]), int(opposite[2]), _column(opposite[1])
