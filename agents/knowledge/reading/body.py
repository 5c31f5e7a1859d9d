"""The text of a Word file as a person reads it: without what was deleted, what is hidden, and the code of fields."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from .blocks import Block, flat, plain_text, tidy
from .drawings import (
    BOX,
    CHART,
    DIAGRAM,
    FORMULA,
    ID,
    IMAGE,
    INK,
    LETTERING,
    NEWER_CHART,
    OBJECT,
    OLDER_IMAGE,
    WORDS,
    chart,
    diagram,
    formula,
    hidden,
    picture,
    things,
)
from .elements import (
    GONE,
    children_of,
    chosen_in,
    code_of,
    content_of,
    has_bit,
    is_placeholder,
    name_of,
    number,
    on,
    raised,
    runs_on,
    text_of,
    value,
)
from .package import Damaged, Element, Package, W
from .report import Report, shortened
from .seen import Pictures
from .styles import BULLET, Lists, Styles, level_of
from .tables import Cell, Line, blocks_of

LONGEST_HEADING = 200
"""Characters: what is longer is a paragraph in a heading's style."""

DEEPEST_FIELD = 20
TOP = 4
"""Rows of a table: a title or two, the names of the columns, and one to compare with."""
NOTES = ("footnote", "endnote")
_CODED = frozenset({"PAGE", "NUMPAGES", "SECTIONPAGES"})
_OBJECTS = {"Excel": "embedded Excel sheet", "Word": "embedded Word document", "PowerPoint": "embedded presentation"}


@dataclass
class Field:
    code: str = ""
    shown: bool = False


class Body:
    """Reads one story after the other: the body, headers, footers; notes where they are referred to."""

    def __init__(self, package: Package, main: str, report: Report) -> None:
        self._package = package
        self._main = main
        self._report = report
        self._styles = Styles(self._aside("styles"))
        self._lists = Lists(self._aside("numbering"), self._styles)
        self._notes = {(kind, note.get(W + "id")): note for kind in NOTES for note in self._notes_of(kind)}
        self._pictures = Pictures()
        self._told: dict[tuple[str, str], str] = {}
        self._waiting: list[Block] = []
        self._fields: list[Field] = []
        self._carried = ""
        self._part = main
        self._story = ""
        self._inside = self._boxed = 0
        self._heading = self._last = ""
        self._seen: set[str] = set()

    @property
    def pictures(self) -> int:
        """In which there were words."""
        return self._pictures.found

    def read(self, root: Element, part: str, story: str = "") -> list[Block]:
        """`story` is empty for the body, else how a person calls it: the header."""
        self._part, self._story, self._fields, self._carried = part, story, [], ""
        return self._blocks(root)

    def optional(self, part: str) -> Element | None:
        """What the document can be read without, if badly."""
        try:
            return self._package.xml(part)
        except Damaged:
            self._report.damaged(part.rpartition("/")[2])
            return None

    def _aside(self, kind: str) -> Element | None:
        part = self._beside(kind)
        return self.optional(part) if part else None

    def _notes_of(self, kind: str) -> Iterator[Element]:
        root = self._aside(f"{kind}s")
        return iter(()) if root is None else root.iterfind(W + kind)

    def _beside(self, kind: str) -> str:
        found = (link.target for link in self._package.links(self._main).values() if link.kind == kind)
        return next(found, "")

    def _linked(self, link_id: str) -> str:
        link = self._package.links(self._part).get(link_id)
        return link.target if link else ""

    # ── blocks ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _blocks(self, parent: Element) -> list[Block]:
        found: list[Block] = []
        for child in parent:
            match name_of(child):
                case "p":
                    found += self._paragraph(child)
                case "tbl":
                    found += self._table(child)
                case "altChunk":
                    self._report.unread("inserted file")
                    self._report.settle(self._where())
                case _ if child.tag == FORMULA:
                    found.append(Block(formula(child)))
                case name if name in GONE or name.endswith("Pr"):
                    continue
                case "sdt" if is_placeholder(child):
                    continue
                case _:
                    found += self._blocks(content_of(child))
            if not self._inside:
                found += self._waiting
                self._waiting = []
        if self._carried:
            found.append(Block(tidy(self._carried)))
            self._carried = ""
        return found

    def _paragraph(self, paragraph: Element) -> list[Block]:
        properties = paragraph.find(W + "pPr")
        style = self._styles.of(properties)
        if self._styles.is_entry(style):
            return []
        outline = value(properties, "outlineLvl")
        level = self._styles.level(style) if outline is None else level_of(outline)
        line: list[str] = []
        after: list[Block] = []
        self._inline(paragraph, line, after, bool(self._styles.switch(style, "vanish")), marks=level is None)
        for field in self._fields:
            field.shown = True  # a field that is not closed must not swallow the rest
        whole, self._carried = self._carried + "".join(line), ""
        if runs_on(properties):
            self._carried = whole
            return after
        text = tidy(whole)
        if label := self._lists.label(properties, style):
            mark = label[0] if level is None or label[0] != BULLET else ""
            text = f"{mark} {text}" if text and mark else text
        block = Block(text, level if len(text) <= LONGEST_HEADING else None, label[1] if label else 0)
        if text and not self._boxed and not self._story:
            if block.level is not None:
                self._heading = text
            self._last = text
        self._report.settle(self._where())
        return [block, *after]

    def _where(self) -> str:
        if self._story:
            return f"in {self._story}"
        if self._heading:
            return f"under “{shortened(self._heading)}”"
        return f"after “{shortened(self._last)}”" if self._last else "at the start"

    # ── tables ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _table(self, table: Element) -> list[Block]:
        look = table.find(f"{W}tblPr/{W}tblLook")
        flagged = look is not None and (look.get(W + "firstRow") in ("1", "true") or has_bit(look.get(W + "val"), 0x20))
        lit = flagged and self._styles.lights_first_row(value(table, "tblPr/tblStyle") or "")
        lines: list[Line] = []
        with self._within():
            above: set[int] = set()
            for row in children_of(table, "tr"):
                if row.find(f"{W}trPr/{W}del") is None:
                    cells = tuple(self._cells(row, above, top=len(lines) < TOP))
                    lines.append(Line(cells, bool(on(row, "trPr/tblHeader"))))
                    above = {cell.at for cell in cells}
        return blocks_of(lines, lit=lit)

    def _cells(self, row: Element, above: set[int], *, top: bool) -> Iterator[Cell]:
        """`above` are the columns in which the row before has cells; looks matter only at the `top`."""
        at = number(value(row, "trPr/gridBefore"))
        for cell in children_of(row, "tc"):
            properties = cell.find(W + "tcPr")
            if properties is not None and properties.find(W + "cellDel") is not None:
                continue
            span = max(1, number(value(properties, "gridSpan"), 1))
            merged, across = value(properties, "vMerge"), value(properties, "hMerge")
            if across is None or across == "restart":
                continues = merged is not None and merged != "restart" and at in above
                read = [] if continues else self._blocks(cell)  # Word does not show what else is in there
                blocks = tuple(block for block in read if block.filled)
                yield Cell(blocks, at, span, continues, top and self._stands_out(cell))
            at += span

    def _stands_out(self, cell: Element) -> bool:
        shade = cell.find(f"{W}tcPr/{W}shd")
        if shade is not None and shade.get(W + "fill", "auto").casefold() not in ("auto", "ffffff"):
            return True
        for paragraph in cell.iter(W + "p"):
            bold = bool(self._styles.switch(self._styles.of(paragraph.find(W + "pPr")), "b"))
            for run in paragraph.iter(W + "r"):
                own = on(run, "rPr/b")
                if run.find(W + "t") is not None and not (bold if own is None else own):
                    return False
        return True

    @contextmanager
    def _within(self, *, box: bool = False) -> Iterator[None]:
        """Notes wait until it ends, and what a box holds is no place in the document."""
        self._inside += 1
        self._boxed += box
        yield
        self._inside -= 1
        self._boxed -= box

    # ── inside of a paragraph ─────────────────────────────────────────────────────────────────────────────────────

    def _inline(
        self, parent: Element, line: list[str], after: list[Block], unseen: bool, *, marks: bool = True
    ) -> None:
        """Appends to `line`; what stands beside it, such as a text box, to `after`. `unseen` is hidden text."""
        for child in parent:
            name = name_of(child)
            if name in GONE or name.endswith("Pr"):
                continue
            if name == "r":
                begun = len(line)
                self._inline(child, line, after, self._is_unseen(child, unseen), marks=marks)
                if value(child, "rPr/vertAlign") == "superscript":
                    line[begun:] = [raised("".join(line[:begun]), "".join(line[begun:]))]
            elif name in ("drawing", "pict", "object"):
                self._drawing(child, after, unseen)
            elif name in ("fldChar", "instrText"):
                self._field(child, name, line)
            elif name in ("footnoteReference", "endnoteReference"):
                mark = "" if unseen else self._note(name.removesuffix("Reference"), child.get(W + "id", ""))
                line.append(mark if marks else "")
            elif name in ("p", "tbl"):
                after += self._blocks([child])
            elif child.tag == FORMULA:
                self._write(formula(child), line, unseen)
            elif (text := text_of(child, name)) is not None:
                self._write(text, line, unseen)
            elif not (name == "sdt" and is_placeholder(child)) and not (name == "fldSimple" and self._is_coded(child)):
                self._inline(content_of(child), line, after, unseen, marks=marks)

    def _write(self, text: str, line: list[str], unseen: bool) -> None:
        if not all(field.shown for field in self._fields):
            return
        if self._story and any(code_of(field.code) in _CODED for field in self._fields):
            return
        if not unseen:
            line.append(text)
        elif text.strip():
            self._report.hides()

    def _is_unseen(self, run: Element, around: bool) -> bool:
        own = on(run, "rPr/vanish")
        if own is None and (style := value(run, "rPr/rStyle")):
            own = self._styles.switch(style, "vanish")
        return around if own is None else own

    def _field(self, mark: Element, name: str, line: list[str]) -> None:
        kind = mark.get(W + "fldCharType")
        if kind == "begin":
            self._fields = [*self._fields[-DEEPEST_FIELD:], Field()]
            line.append(chosen_in(mark.find(W + "ffData")))
        elif self._fields and name == "instrText":
            self._fields[-1].code += mark.text or ""
        elif self._fields and kind == "separate":
            self._fields[-1].shown = True
        elif self._fields and kind == "end":
            self._fields.pop()

    def _is_coded(self, field: Element) -> bool:
        return bool(self._story) and code_of(field.get(W + "instr", "")) in _CODED

    def _note(self, kind: str, note_id: str) -> str:
        """Its mark; the note itself comes after the paragraph or the table that refers to it."""
        if (kind, note_id) in self._told:
            return self._told[kind, note_id]
        note = self._notes.get((kind, note_id))
        if note is None:
            return ""
        self._told[kind, note_id] = mark = f"[{len(self._told) + 1}]"
        before, self._part = self._part, self._beside(f"{kind}s")
        with self._within(box=True):
            text = flat(self._blocks(note))
        self._part = before
        self._waiting.append(Block(f"{mark} {text}"))
        return mark

    # ── what is drawn ─────────────────────────────────────────────────────────────────────────────────────────────

    def _drawing(self, drawing: Element, after: list[Block], unseen: bool) -> None:
        if unseen or hidden(drawing):
            self._report.hides()
            return
        words = []
        embeds = any(each.tag == OBJECT for each in drawing.iter())
        for thing in things(drawing):
            if thing.tag == BOX:
                with self._within(box=True):
                    after += plain_text(self._blocks(thing))
            elif thing.tag in (IMAGE, OLDER_IMAGE):
                if not embeds:  # there, it only shows what the object looks like
                    after += self._picture(thing, drawing)
            elif thing.tag in (CHART, DIAGRAM):
                after += self._graphic(thing)
            elif thing.tag == NEWER_CHART:
                self._report.unread("chart", "its numbers could not be read")
            elif thing.tag == INK:
                self._report.unread("drawing")
            elif thing.tag == OBJECT:
                program = thing.get("ProgID", "").partition(".")[0]
                self._report.unread(_OBJECTS.get(program, "embedded file" if program != "Equation" else "formula"))
            elif thing.tag == LETTERING:
                after.append(Block(tidy(thing.get("string", ""))))
            elif thing.tag == FORMULA:
                after.append(Block(formula(thing)))
            elif thing.tag in WORDS:
                words.append(thing.text or "")
        after.append(Block(tidy(" ".join(words))))

    def _picture(self, image: Element, drawing: Element) -> list[Block]:
        found = picture(image, drawing)
        target = self._linked(found.link)
        if not target or not self._report.shows(self._package.same(target), found):
            return []
        words = self._pictures.part(self._package, target)
        if words is None:
            self._report.picture(found)
        said = [f"Picture: {found.alt}"] if found.alt else []
        return [Block(text) for text in (*said, tidy(words or "")) if text]

    def _graphic(self, thing: Element) -> list[Block]:
        kind, reader, link = ("chart", chart, "id") if thing.tag == CHART else ("diagram", diagram, "dm")
        target = self._linked(thing.get(ID + link, ""))
        if target in self._seen:
            return []
        self._seen.add(target)
        root = self.optional(target) if target else None
        found = reader(root) if root is not None else []
        if not found:
            self._report.unread(
                kind, "its numbers could not be read" if kind == "chart" else "its text could not be read"
            )
        return found
