"""Questions that ask for one cell of a table: which row they name, and whether its cell is empty."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

import regex

from agents.knowledge.likeness import alike
from agents.knowledge.units import Unit
from agents.knowledge.wishes import Wish
from mesh.text import content_words

_MINUTES = regex.compile(r"(\d)\s?min\b\.?", regex.IGNORECASE)


def named_row(subject: Collection[str], chosen: Unit, units: Sequence[Unit]) -> Unit:
    """Of the table that was chosen from, the one row whose name has words of the question that no other has; the
    `chosen` one where there is none such, or several."""
    rows = _rows(chosen, units)
    columns = frozenset(content_words(" ".join(column for row in rows for column, _ in row.cells)))
    asked = [term for term in subject if not alike(term, columns)]
    names = [frozenset(content_words(row.cells[0][1])) for row in rows]
    often = Counter(term for name in names for term in name)
    own = [frozenset(term for term in name if often[term] == 1) for name in names]
    named = [row for row, its in zip(rows, own, strict=True) if any(alike(term, its) for term in asked)]
    return named[0] if len(named) == 1 else chosen


def is_empty(subject: Collection[str], wish: Wish | None, row: Unit, units: Sequence[Unit]) -> bool:
    """Whether other rows have what is asked for, in a column that the question names or in one of that kind, and this
    one has nothing there."""
    rows = _rows(row, units)
    filled = {column for column, _ in row.cells}
    columns = {column for other in rows for column, _ in other.cells[1:] if column}
    title = frozenset(content_words(row.cells[0][1])) if row.cells else frozenset()
    asked = {column for column in columns if any(alike(term, title) == 0 and _has(column, term) for term in subject)}
    if not asked and wish and wish.met(row.text) <= 0:
        asked = {column for column in columns if wish.question.search(column) or _is_of_kind(column, wish, rows)}
    return bool(asked) and not asked & filled


def _rows(chosen: Unit, units: Sequence[Unit]) -> list[Unit]:
    if not chosen.cells:
        return []
    return [
        unit for unit in units if unit.cells and unit.group == chosen.group and unit.passage.id == chosen.passage.id
    ]


def _has(column: str, term: str) -> bool:
    return alike(term, frozenset(content_words(column))) > 0


def _is_of_kind(column: str, wish: Wish, rows: Sequence[Unit]) -> bool:
    cells = [_MINUTES.sub(r"\1 minutes", cell) for row in rows for name, cell in row.cells if name == column]
    return 2 * sum(wish.met(cell) > 0 for cell in cells) > len(cells)
