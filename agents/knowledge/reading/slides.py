"""PowerPoint files, slide by slide: groups, boxes, tables, charts, diagrams and notes.

What PowerPoint does not show is left out and named; comments are about a document, not of it, and are left out.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field

from . import LONGEST_TEXT, Parts, Unreadable
from .blocks import Block, Row, plain_text, tidy, written
from .drawings import ALTERNATE, CHART, DIAGRAM, FORMULA, ID, IMAGE, NEWER_CHART, A, chart, chosen, diagram, formula
from .elements import number
from .package import Damaged, Element, Link, Package
from .report import shortened
from .seen import Pictures, how
from .tables import Cell, Line, blocks_of

P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
CX = "{http://schemas.microsoft.com/office/drawing/2014/chartex}"
MOST_SLIDES = 2_000
MARGINS = "on every slide"
NO_TEXT = "no text could be read on it"
SEEN = 0.02
"""Share of the slide from which on a picture is worth a word."""
_DEEPEST = 5_000
_UNSAID = frozenset({"sldNum", "sldImg"})
_MARGIN = frozenset({"ftr", "dt", "hdr"})
_TITLES = frozenset({"title", "ctrTitle"})
_FILM = (A + "videoFile", A + "audioFile", A + "quickTimeFile", A + "wavAudioFile")
_BY_MACHINE = re.compile(
    r"description automatically generated|^\w*\s?\d*\.?(?:png|jpe?g|gif|emf|wmf|svg|bmp|tiff?)?$", re.I
)
"""Alternative texts that nobody wrote: a file's name, or what PowerPoint thought that it saw."""


@dataclass
class Slide:
    blocks: list[Block] = field(default_factory=list)
    margins: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    """What of it could not be read, and why."""
    pictures: int = 0
    """Whose text could not be read."""
    words: int = 0
    """Of pictures, among its blocks."""


def read(name: str, package: Package) -> Parts:
    sys.setrecursionlimit(_DEEPEST)
    damaged = Unreadable(f"{name} is damaged: its slides can't be opened. Please save it again as .pptx or PDF.")
    try:
        main = next((each.target for each in package.links("").values() if each.kind == "officeDocument"), "")
        root = package.xml(main or "ppt/presentation.xml")
        if root is None or root.tag != P + "presentation":
            raise damaged
        links = package.links(main or "ppt/presentation.xml")
    except Damaged as error:
        raise damaged from error
    ids = [each.get(ID + "id", "") for each in root.iterfind(f"{P}sldIdLst/{P}sldId")]
    if len(ids) > MOST_SLIDES:
        raise Unreadable(f"{name} has {len(ids):,} slides; I can take {MOST_SLIDES:,}. Please split it.", "limit")
    size = root.find(P + "sldSz")
    area = (number(size.get("cx")) * number(size.get("cy")) if size is not None else 0) or 9144000 * 6858000
    reading = _Reading(package, area)
    parts: Parts = []
    margins: dict[str, None] = {}
    length = 0
    for at, link_id in enumerate(ids, start=1):
        label = f"slide {at}"
        text, trouble, slide = reading.told(links.get(link_id))
        margins |= dict.fromkeys(slide.margins)
        length += len(text)
        alone = slide.words == len(slide.blocks)
        parts.append((label, text, f"{label}: {trouble}" if trouble else "", *how(slide.words, alone=alone)))
        if length > LONGEST_TEXT:
            raise Unreadable(f"{name} holds too much text (by {label}). Please split it.", "limit")
    if not length:
        raise Unreadable(_nothing(name, parts), "nothing")
    return [*parts, *([(MARGINS, "\n\n".join(margins), "")] if margins else [])]


def _nothing(name: str, parts: Parts) -> str:
    if not parts:
        why = "there is no slide in it"
    elif all("hidden" in part[2] for part in parts):
        why = "all of its slides are hidden"
    else:
        pictures = any("picture" in part[2] for part in parts)
        why = "there is nothing but pictures in it" if pictures else "there is no text in it"
    return f"{name} could not be read: {why}. Please send its text itself, as PowerPoint (.pptx), PDF or plain text."


class _Reading:
    def __init__(self, package: Package, area: int) -> None:
        self._package = package
        self._area = area
        self._seen = Pictures()
        self._part = ""
        self._masters: dict[str, list[str]] = {}

    def told(self, link: Link | None) -> tuple[str, str, Slide]:
        """Its text, and what is wrong with it."""
        try:
            root = self._package.xml(link.target) if link else None
            if link is None or root is None:
                return "", "it is missing from the file", Slide()
            if root.get("show") in ("0", "false"):
                return "", "it is hidden, so it was left out", Slide()
            slide = self._slide(root, link.target)
        except Damaged:
            return "", "it is damaged and could not be read", Slide()
        if slide.pictures:
            what = "a picture" if slide.pictures == 1 else f"{slide.pictures} pictures"
            slide.unread.insert(0, f"it holds {what} whose text could not be read")
        text = written(slide.blocks)
        if not text and not slide.unread:
            slide.unread.append(NO_TEXT)
        return text, "; ".join(dict.fromkeys(slide.unread)), slide

    def _slide(self, root: Element, part: str) -> Slide:
        self._part = part
        slide = Slide()
        tree = root.find(f"{P}cSld/{P}spTree")
        for shape in tree if tree is not None else ():
            self._shape(shape, slide)
        slide.blocks.sort(key=lambda block: block.level is None)  # its title first, wherever it is drawn
        self._notes(part, slide)
        if root.get("showMasterSp") not in ("0", "false"):
            slide.margins += self._behind(part)
        return slide

    def _behind(self, part: str) -> list[str]:
        """What the layout and the master say on each slide; their placeholders only ask for text."""
        found: list[str] = []
        for kind in ("slideLayout", "slideMaster"):
            link = next((each for each in self._package.links(part).values() if each.kind == kind), None)
            if link is None:
                break
            part = link.target
            if part not in self._masters:
                self._masters[part] = self._said_on(part)
            found += self._masters[part]
        return found

    def _said_on(self, part: str) -> list[str]:
        try:
            root = self._package.xml(part)
        except Damaged:
            return []
        shapes = root.iterfind(f"{P}cSld/{P}spTree//{P}sp") if root is not None else ()
        bodies = (shape.find(P + "txBody") for shape in shapes if shape.find(f"{P}nvSpPr/{P}nvPr/{P}ph") is None)
        return [block.text for body in bodies if body is not None for block in _paragraphs(body, listed=False)]

    def _notes(self, part: str, slide: Slide) -> None:
        link = next((each for each in self._package.links(part).values() if each.kind == "notesSlide"), None)
        try:
            root = self._package.xml(link.target) if link else None
        except Damaged:
            slide.unread.append("its notes are damaged and could not be read")
            return
        if root is None:
            return
        notes = Slide()
        for shape in root.iterfind(f"{P}cSld/{P}spTree//{P}sp"):
            self._shape(shape, notes)
        said = plain_text([block for block in notes.blocks if block.filled])
        if said:
            slide.blocks += [Block(f"Speaker notes: {said[0].text.removeprefix('- ')}"), *said[1:]]

    def _shape(self, shape: Element, slide: Slide) -> None:
        if shape.tag == ALTERNATE:
            option = chosen(shape)
            for each in option if option is not None else ():
                self._shape(each, slide)
            return
        about = shape.find(f"*/{P}cNvPr")
        if about is not None and about.get("hidden") in ("1", "true"):
            if any((each.text or "").strip() for each in shape.iter(A + "t")):
                slide.unread.append("it holds hidden text, which was left out")
            return
        match str(shape.tag).removeprefix(P):
            case "grpSp":
                for each in shape:
                    self._shape(each, slide)
            case "sp" | "cxnSp":
                self._box(shape, slide)
            case "graphicFrame":
                self._frame(shape, slide)
            case "pic":
                self._picture(shape, slide)

    def _box(self, shape: Element, slide: Slide) -> None:
        place = shape.find(f"{P}nvSpPr/{P}nvPr/{P}ph")
        kind = "" if place is None else place.get("type", "obj")
        if kind in _UNSAID:
            return
        listed = kind in ("obj", "body")
        body = shape.find(P + "txBody")
        blocks = list(_paragraphs(body, listed=listed)) if body is not None else []
        if kind in _MARGIN:
            slide.margins += [block.text for block in blocks if block.filled]
        elif kind in _TITLES:
            title = " ".join(" ".join(block.text.split()) for block in blocks if block.filled)
            slide.blocks += [Block(title, level=1)] if title else []
        else:
            slide.blocks += blocks
        fill = shape.find(P + "spPr")
        if fill is not None and fill.find(f"{A}blipFill/{IMAGE}") is not None:
            self._picture(shape, slide)

    # ── frames ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _frame(self, frame: Element, slide: Slide) -> None:
        for found in frame.iterfind(f"{A}graphic/{A}graphicData//*"):
            if found.tag == A + "tbl":
                slide.blocks += _table(found)
                return
            if found.tag in (CHART, NEWER_CHART):
                kind, link_id = "chart", found.get(ID + "id", "")
            elif found.tag == DIAGRAM:
                kind, link_id = "diagram", found.get(ID + "dm", "")
            elif found.tag == P + "oleObj":
                program = shortened(found.get("name") or found.get("progId") or "object")
                slide.unread.append(f"it holds an embedded file ({program}), which was not read")
                for picture in found.iter(P + "pic"):
                    self._picture(picture, slide, quietly=True)
                return
            else:
                continue
            blocks = self._linked(kind, found.tag == NEWER_CHART, link_id)
            slide.blocks += blocks
            if not blocks:
                slide.unread.append(f"it holds a {kind} whose text could not be read")
            return

    def _linked(self, kind: str, newer: bool, link_id: str) -> list[Block]:
        link = self._package.links(self._part).get(link_id)
        try:
            root = self._package.xml(link.target) if link else None
        except Damaged:
            return []
        if root is None:
            return []
        if kind == "diagram":
            return diagram(root)
        return _newer_chart(root) if newer else chart(root)

    def _picture(self, shape: Element, slide: Slide, *, quietly: bool = False) -> None:
        if any(shape.find(f".//{kind}") is not None for kind in _FILM):
            slide.unread.append("it holds a film or a recording, which was not read")
            return
        about = shape.find(f"*/{P}cNvPr")
        alt = " ".join((about.get("descr") or "").split()) if about is not None else ""
        if alt and not _BY_MACHINE.search(alt):
            slide.blocks.append(Block(f"Picture: {alt}"))
        if self._share(shape) < SEEN:
            return
        blip = shape.find(f".//{IMAGE}")
        link_id = (blip.get(ID + "embed") or blip.get(ID + "link") or "") if blip is not None else ""
        link = self._package.links(self._part).get(link_id)
        words = self._words(link.target) if link else None
        if words:
            slide.blocks.append(Block(tidy(words)))
            slide.words += 1
        if words is None and not quietly:
            slide.pictures += 1

    def _words(self, part: str) -> str | None:
        return self._seen.part(self._package, part)

    def _share(self, shape: Element) -> float:
        """Of the slide; where a placeholder leaves its size to the layout, all of it."""
        extent = shape.find(f"{P}spPr/{A}xfrm/{A}ext")
        if extent is None or shape.getparent().tag == P + "grpSp":
            return 1
        return number(extent.get("cx")) * number(extent.get("cy")) / self._area


# ── text ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _paragraphs(body: Element, *, listed: bool) -> Iterator[Block]:
    """`listed`: its paragraphs are points of a list, unless they say that they aren't."""
    counts: dict[int, int] = {}
    paragraphs = [(each, text) for each in body.iterfind(A + "p") if (text := tidy(_said(each)))]
    for paragraph, text in paragraphs:
        about = paragraph.find(A + "pPr")
        depth = number(about.get("lvl")) if about is not None else 0
        marks = {str(each.tag).removeprefix(A) for each in about} if about is not None else set()
        mark = ""
        if "buAutoNum" in marks:
            start = number(about.find(A + "buAutoNum").get("startAt"), 1) if about is not None else 1
            counts[depth] = counts.get(depth, start - 1) + 1
            mark = f"{counts[depth]}. "
        else:
            counts = {level: count for level, count in counts.items() if level < depth}
            if marks & {"buChar", "buBlip"} or (listed and "buNone" not in marks and len(paragraphs) > 1):
                mark = "- "
        yield Block(mark + text, depth=depth if mark else 0)


def _said(paragraph: Element) -> str:
    text = ""
    for child in paragraph:
        if child.tag == A + "br":
            text += "\n"
        elif child.tag in (A + "r", A + "fld"):
            text += (child.findtext(A + "t") or "").replace("_x000B_", "\n").replace("\v", "\n")
        else:  # a formula, which older programs get as a picture
            found = next((each for each in child.iter(FORMULA)), None)
            text += formula(found) if found is not None else ""
    return text


def _table(table: Element) -> list[Block]:
    about = table.find(A + "tblPr")
    lines: list[Line] = []
    for row in table.iterfind(A + "tr"):
        cells = []
        for at, cell in enumerate(row.iterfind(A + "tc")):
            if cell.get("hMerge") in ("1", "true"):
                continue
            body = cell.find(A + "txBody")
            blocks = tuple(_paragraphs(body, listed=False)) if body is not None else ()
            continues = cell.get("vMerge") in ("1", "true") and bool(lines)
            cells.append(Cell(blocks, at, number(cell.get("gridSpan"), 1), continues, stands_out=_is_bold(cell)))
        lines.append(Line(tuple(cells), header=False))
    return blocks_of(lines, lit=about is not None and about.get("firstRow") in ("1", "true"))


def _is_bold(cell: Element) -> bool:
    runs = [each.find(A + "rPr") for each in cell.iter(A + "r")]
    return bool(runs) and all(each is not None and each.get("b") in ("1", "true") for each in runs)


def _newer_chart(root: Element) -> list[Block]:
    title = "".join(each.text or "" for each in root.iterfind(f"{CX}chart/{CX}title//{A}t")).strip()
    found = [Block(title)] if title else []
    for data in root.iterfind(f"{CX}chartData/{CX}data"):
        columns = [
            [each.text or "" for each in level.iterfind(CX + "pt")]
            for dimension in (*data.iterfind(CX + "strDim"), *data.iterfind(CX + "numDim"))
            for level in dimension.iterfind(CX + "lvl")
        ]
        longest = max(map(len, columns), default=0)
        rows: list[Row] = [tuple(column[at] if at < len(column) else "" for column in columns) for at in range(longest)]
        found += [Block(rows=tuple(rows))] if rows else []
    return found
