"""Tables of web pages, put together cell by cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .blocks import Block
from .elements import number
from .package import Element
from .tables import WIDEST, Cell, Line, blocks_of

SPANNED = 200
"""Rows, at most."""
_PARAGRAPHS = 5
"""In one cell: more are a text, and the table arranges it."""


@dataclass
class Table:
    outer: list[Block]
    """Of what the table stands in."""
    header: bool = False
    """Of the row that is open: all of its cells are names so far."""
    in_head: bool = False
    lines: list[Line] = field(default_factory=list)
    cells: list[Cell] = field(default_factory=list)
    reach: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Rows that a cell above still takes, and its width, by column."""

    def add(self, element: Element, blocks: Sequence[Block]) -> None:
        at = self._pass_over()
        span = min(max(number(element.get("colspan"), 1), 1), WIDEST)
        down = min(max(number(element.get("rowspan"), 1), 1), SPANNED)
        bold = element.tag == "th" or (len(element) > 0 and element[0].tag in ("b", "strong") and not element.text)
        self.header = self.header and element.tag == "th"
        if down > 1:
            self.reach[at] = (down, span)
        self.cells.append(Cell(tuple(blocks), at, span, continues=False, stands_out=bold))

    def end_row(self) -> None:
        if self.cells:
            self._pass_over()
            self.lines.append(Line(tuple(self.cells), header=self.in_head or self.header))
            self.reach = {at: (down - 1, span) for at, (down, span) in self.reach.items() if down > 1}
        self.cells = []

    def blocks(self, element: Element) -> list[Block]:
        if self._is_layout(element):
            return [block for line in self.lines for cell in line.cells for block in cell.blocks]
        return blocks_of(self.lines, lit=False) if self.lines else []

    def _pass_over(self) -> int:
        """The next column; cells above that reach down into the row go on there."""
        at = self.cells[-1].at + self.cells[-1].span if self.cells else 0
        while at in self.reach and at < WIDEST * 4:
            _, span = self.reach[at]
            self.cells.append(Cell((), at, span, continues=True, stands_out=False))
            at += span
        return at

    def _is_layout(self, element: Element) -> bool:
        """It only arranges text on the page, as those of e-mails do."""
        if element.get("role") in ("presentation", "none"):
            return True
        cells = [cell for line in self.lines for cell in line.cells]
        if any(cell.at >= WIDEST for cell in cells):  # what lies beyond would be lost
            return True
        if any(line.header for line in self.lines):
            return False
        nested = any(len(block.rows) > 1 for cell in cells for block in cell.blocks)
        return nested or any(len(cell.blocks) > _PARAGRAPHS for cell in cells)
