"""What a document is made of once it is read, and how it is written down: as Markdown, which the chunker knows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

Row = tuple[str, ...]

_SPACES = re.compile("[ \u00a0\u2007\u202f]+")
_UNSEEN = re.compile("[\u00ad\u200b\ufeff\x00-\x08\x0b-\x1f]")
_RULE = re.compile(r"[-=_*~\s]*")
_STRUCTURE = re.compile(r"#{1,6}(?=\s|$)|```|~~~|<(?=[a-z!?/])", re.IGNORECASE)
"""At the start of a line, what Markdown would take for a heading, for code or for a web page."""
_MARKS = re.compile(r"[\\`*_\[\]<&#]")
_ITEM = re.compile(r"(?:[-*+•·▪◦‣●○–—]|\(?\d{1,3}[.)]|\(?[a-z]\)) ")
_SAYS = re.compile(r"[:：]\s*\S|[.!?।。؟]$")
"""A heading that is a statement: it must be found even if nothing stands below it."""
_KEY = 60
"""Characters: a longer first cell names nothing."""


@dataclass(frozen=True, slots=True)
class Block:
    text: str = ""
    level: int | None = None
    """Of a heading: 0 for a title."""
    depth: int = 0
    """In a list."""
    rows: tuple[Row, ...] = ()
    """Of a table."""
    header: bool = False
    """Whether the first row names the columns."""

    @property
    def filled(self) -> bool:
        return bool(self.text or self.rows)


def tidy(text: str) -> str:
    """Levels white space; tabs and line breaks stay."""
    lines = _SPACES.sub(" ", _UNSEEN.sub("", text)).split("\n")
    return "\n".join(line for each in lines if (line := each.strip()))


def flat(blocks: Sequence[Block]) -> str:
    """On one line, as the cell of a table."""
    written = ""
    for block in blocks:
        if block.rows:
            text = "; ".join(", ".join(cell for cell in row if cell) for row in block.rows)
        else:
            text = " ".join(block.text.split())
        item = text.startswith("- ")
        written += ("; " if item and written and not written.endswith(":") else " ") + text.removeprefix("- ")
    return written.strip()


def plain_text(blocks: Sequence[Block]) -> list[Block]:
    """The same without headings: what stands in a box or a margin opens no section."""
    return [replace(block, level=None) for block in blocks]


def written(blocks: Sequence[Block]) -> str:
    blocks = [block for block in blocks if block.filled]
    if all(block.level is not None for block in blocks):
        blocks = plain_text(blocks)  # styled for its looks: there would be nothing under the headings
    titled = any(block.level == 0 for block in blocks)
    text = ""
    above = ""
    for block in _stated(blocks):
        lines = _lines(block, titled)
        kind = _kind(block, lines)
        text += ("\n" if kind and kind == above else "\n\n") + lines if text else lines
        above = kind
    return text


def _stated(blocks: Sequence[Block]) -> Iterator[Block]:
    """Repeats as text what only a heading says."""
    for block, below in pairwise([*blocks, Block(level=0)]):
        yield block
        empty = block.level is not None and below.level is not None and below.level <= block.level
        if empty and _SAYS.search(block.text):
            yield replace(block, level=None)


def _kind(block: Block, lines: str) -> str:
    """Blocks of one kind stand on lines next to one another; empty for those that stand apart."""
    if block.level is not None or block.rows:
        return ""
    if _ITEM.match(lines.lstrip()):
        return "item"
    return "row" if "\t" in lines else ""


def _lines(block: Block, titled: bool) -> str:
    if block.level is not None:
        level = min(block.level + titled, 6)
        return "#" * level + " " + _MARKS.sub(r"\\\g<0>", " ".join(block.text.split()))
    if block.rows:
        return _table(block)
    indent = "  " * min(block.depth, 8)
    lines = [_guarded(line) for line in block.text.split("\n") if not _RULE.fullmatch(line)]
    return indent + f"\n{indent}  ".join(lines) if _ITEM.match(block.text) else "\n".join(lines)


def guarded(text: str) -> str:
    """Plain text, of which Markdown would take nothing for structure."""
    return "\n".join(map(_guarded, text.split("\n")))


def _guarded(line: str) -> str:
    return f"\\{line}" if _STRUCTURE.match(line) else line


def _table(block: Block) -> str:
    width = max(len(row) for row in block.rows)
    if width == 2 and not block.header and all(0 < len(row[0]) <= _KEY for row in block.rows):
        return "\n".join(f"{key.rstrip(' :')}: {said}" if said else key for key, said in block.rows)
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in block.rows]
    if block.header:
        lines.insert(1, "|" + "---|" * width)
    return "\n".join(lines)
