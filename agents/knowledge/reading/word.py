"""Word files: their text as Markdown, and by name whatever of them could not be read.

Comments are about a document, not of it: they are left out.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from . import LONGEST_TEXT, Parts, Unreadable
from .blocks import plain_text, written
from .body import Body
from .package import Damaged, Element, Package, W
from .report import Report
from .seen import how

USUAL = "word/document.xml"
MARGINS = "header and footer"
TEXT_PLEASE = "Please send its text itself, as Word (.docx), PDF in which text can be selected, or plain text."

_OTHERS = (
    ("ppt/", "a PowerPoint file"),
    ("xl/", "an Excel file"),
    ("content.xml", "an OpenDocument file"),
    ("meta-inf/", "an e-book"),
)
_DEEPEST = 5_000  # calls: an element within an element takes three, and the parser allows 256 of them


def other_kind(package: Package) -> str:
    """What an archive is that is no Word file; empty for one that is."""
    if package.holds("word/"):
        return ""
    return next((kind for start, kind in _OTHERS if package.holds(start)), "a compressed file")


def read(name: str, package: Package) -> Parts:
    sys.setrecursionlimit(_DEEPEST)
    damaged = Unreadable(f"{name} is damaged: its text can't be opened. Please save it again as .docx or PDF.")
    try:
        main = _main(package)
        root = package.xml(main)
        if root is None or root.tag != W + "document":
            raise damaged
        report = Report()
        body = Body(package, main, report)
        blocks = body.read(root, main)
        words = body.pictures
        margins = _margins(body, package, main, root)
    except Damaged as error:
        raise damaged from error
    text = written(blocks)
    if max(len(text), len(margins)) > LONGEST_TEXT:
        raise Unreadable(f"{name} holds too much text ({len(text):,} characters). Please split it.", "limit")
    if not margins and (not text or (report and all(block.level is not None for block in blocks if block.filled))):
        raise Unreadable(_nothing(name, text, report), "nothing")
    alone = words == sum(block.filled for block in blocks)
    told: Parts = [("", text, "", *how(words, alone=alone))]
    if margins:
        told.append((MARGINS, margins, "", *how(body.pictures - words)))
    return [*told, *report.parts()]


def _nothing(name: str, text: str, report: Report) -> str:
    holds = ["headings"] if text else []
    if report.pictures:
        holds.append("pictures" if report.pictures > 1 else "a picture")
    elif report and not text:
        holds.append("what I can't read yet")
    why = f"there is nothing but {' and '.join(holds)} in it" if holds else "there is no text in it"
    return f"{name} could not be read: {why}. {TEXT_PLEASE}"


def _main(package: Package) -> str:
    found = (link.target for link in package.links("").values() if link.kind == "officeDocument")
    return next(found, USUAL)


def _margins(body: Body, package: Package, main: str, root: Element) -> str:
    """The text of headers and footers, each once, however many pages and sections it is on."""
    links = package.links(main)
    told: dict[str, None] = {}
    seen = set()
    for kind, link_id in _references(root):
        link = links.get(link_id)
        if link and link.target not in seen:
            seen.add(link.target)
            story = body.optional(link.target)
            if story is not None:
                told[written(plain_text(body.read(story, link.target, f"the {kind}")))] = None
    return "\n\n".join(text for text in told if text)


def _references(root: Element) -> Iterator[tuple[str, str]]:
    for section in root.iter(W + "sectPr"):
        for reference in section:
            kind = str(reference.tag).removeprefix(W).removesuffix("Reference")
            if kind in ("header", "footer"):
                yield kind, next((value for key, value in reference.attrib.items() if key.endswith("}id")), "")
