"""What is quoted around the unit that answers, and how it looks to the person who asked."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import regex

from agents.knowledge.units import HOURS, Unit
from agents.knowledge.wishes import PRICE, Wish
from mesh.bounds import QUANTITY, fits
from mesh.text import content_words, words

WHOLE_SECTION = 350  # characters; a section up to this is quoted whole
QUOTATION = 450  # characters; what a quotation grows to, unless one sentence is longer


_POINTS_BACK = regex.compile(
    r"(?:he|she|it|they|his|her|its|their|él|ella|ellos|ellas|er|sie|es|ihr|sein|ihre|seine|il|elle|ils|elles|ele|ela|eles|elas"
    r"|वह|वे|उसका|उसकी|उनका|उनकी)\b",
    regex.IGNORECASE,
)


class Asked(Protocol):
    text: str
    wish: Wish | None
    known: str
    """What the asker told earlier, where the question is about themselves."""

    def coverage(self, terms: frozenset[str]) -> float | None: ...


Rated = Mapping[tuple[str, int], float]
"""By passage and place."""


def quoted(asked: Asked, chosen: Unit, everything: Sequence[Unit], rated: Rated) -> list[Unit]:
    same = [unit for unit in everything if unit.group == chosen.group]
    if chosen.kind == "row":
        return _rows(asked, chosen, same, rated)
    if priced := _priced(asked, chosen, same):
        return priced
    if len(joined(everything)) <= WHOLE_SECTION:
        return list(everything)
    if (chosen.kind == "item" or chosen.label == HOURS) and len(joined(same)) <= QUOTATION:
        return same
    first = last = same.index(next(unit for unit in same if unit.place == chosen.place))
    while True:  # the sentence after first: it qualifies; then the one before, and that first where "she" is in it
        after = [(first, last + 1)] if last + 1 < len(same) else []
        before = [(first - 1, last)] if first else []
        grown = before + after if _POINTS_BACK.match(same[first].text) else after + before
        fitting = [(a, b) for a, b in grown if b - a < 3 and len(joined(same[a : b + 1])) <= WHOLE_SECTION]
        if not fitting:
            return same[first : last + 1]
        first, last = fitting[0]


def joined(units: Iterable[Unit]) -> str:
    """Sentences on one line, items, rows and their author's lines on lines of their own; a list with the line that
    opens it."""
    told = ""
    above: Unit | None = None
    for unit in units:
        if above is None:
            told = f"{unit.label}\n{unit.text}" if _opens(unit) else unit.text
        else:
            told += _between(above, unit) + unit.text
        above = unit
    return told


def shown(units: Sequence[Unit]) -> str:
    """As `joined`, but rows read like a sentence, and what stands under a heading has it above, in bold."""
    told = ""
    above: Unit | None = None
    for place, unit in enumerate(units):
        heading = ""
        if above is None or (unit.label and unit.label != above.label and unit.headed):
            under = [other for other in units[place:] if other.label == unit.label]
            heading = _heading(unit, under)
        told += (_between(above, unit) if above else "") + heading + unit.shown
        above = unit
    return told


def _opens(unit: Unit) -> bool:
    return unit.kind == "item" and unit.label.endswith((":", "："))


def _between(above: Unit, unit: Unit) -> str:
    flows = above.group == unit.group and unit.kind in ("sentence", "reply") and not unit.own_line
    return " " if flows else "\n"


def _heading(unit: Unit, under: Sequence[Unit]) -> str:
    """Where what stands under it does not have all its words."""
    if _opens(unit):
        return f"{unit.label}\n"
    if unit.kind == "reply":
        return ""  # it begins with its question
    title = unit.label if unit.headed else next(reversed(unit.passage.heading_path), "")
    said = frozenset(words(" ".join(each.text for each in under)))
    bare = title.replace("*", "").strip(" :")
    return f"*{bare}*\n" if set(content_words(bare)) - said else ""


# ── one of many ───────────────────────────────────────────────────────────────────────────────────────────────────


def _rows(asked: Asked, chosen: Unit, table: Sequence[Unit], rated: Rated) -> list[Unit]:
    """The row, with those that the question's words do not tell from it."""
    for told in (asked.text, *(line for line in asked.known.splitlines() if asked.coverage(frozenset(words(line))))):
        table = _within_bounds(told, table)
    if chosen not in table:
        chosen = max(table, key=lambda row: (asked.coverage(row.terms) or 0.0, -row.place))
    best = asked.coverage(chosen.terms)
    if best:
        kept = [row for row in table if (asked.coverage(row.terms) or 0.0) >= best - 1e-9 or row.place == chosen.place]
    else:
        kept = list(table)
    known = frozenset(content_words(asked.known))
    named = [row for row in kept if row.cells and _own(row.cells[0][1], kept) & known]
    if len(named) == 1:  # of the plans, the one that they told they have
        return named
    kept.sort(key=lambda row: (row.place != chosen.place, -rated.get((row.passage.id, row.place), -math.inf)))
    shortest = kept[:1]
    for row in kept[1:4]:
        if len(joined([*shortest, row])) <= QUOTATION:
            shortest.append(row)
    return sorted(shortest, key=lambda row: row.place)


def _own(name: str, rows: Sequence[Unit]) -> frozenset[str]:
    """The words of a row's name that no other row's name has."""
    others = [row.cells[0][1] for row in rows if row.cells and row.cells[0][1] != name]
    return frozenset(content_words(name)) - frozenset(content_words(" ".join(others)))


def _priced(asked: Asked, chosen: Unit, listed: Sequence[Unit]) -> list[Unit]:
    """Of a list of prices, what was asked for; nothing where it is no such list, or the words do not tell."""
    if asked.wish is not PRICE or not PRICE.answer.search(chosen.text) or len(listed) < 3:
        return []
    if chosen.kind != "item" and not (chosen.own_line and all(unit.own_line for unit in listed[1:])):
        return []
    if 2 * sum(bool(PRICE.answer.search(unit.text)) for unit in listed) < len(listed):
        return []
    best = asked.coverage(chosen.terms) or 0.0
    kept = [unit for unit in listed if best and (asked.coverage(unit.terms) or 0.0) >= best - 1e-9]
    if len(kept) > 1 and len(joined(listed)) <= QUOTATION:
        return []  # several fit: what is left out could be what applies
    return kept if chosen in kept and len(kept) < len(listed) else []


# ── "a dog of 20 lb" and "up to 25 lb" ────────────────────────────────────────────────────────────────────────────


def _within_bounds(question: str, rows: Sequence[Unit]) -> Sequence[Unit]:
    """Without the rows that are for another size, age or number than the question's."""
    for quantity in QUANTITY.finditer(question):
        number, unit = float(quantity["n"]), words(quantity["unit"])
        verdicts = [fits(row.cells[0][1] if row.cells else row.text, number, unit) for row in rows]
        if sum(verdict is not None for verdict in verdicts) > 1 and any(verdicts):
            return [row for row, verdict in zip(rows, verdicts, strict=True) if verdict is not False]
    return rows
