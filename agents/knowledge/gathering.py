"""What of a search goes to an answer: no passage twice, neighbours in one piece, and no more than a reader takes in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from agents.knowledge.cutting import header
from mesh.ports.documents import Chunk
from mesh.text import Kind, sentences, words
from mesh.tokens import most_tokens

if TYPE_CHECKING:
    from agents.knowledge.searching import Hit

BUDGET = 2_500
"""Tokens: answers get worse beyond about so much retrieved text."""
ALIKE = 0.9
"""The share of their different words that two passages have in common when one of them is enough."""
LOOKED_AT = 12
"""So many of the best hits are looked at."""
_WIDEST = 2_400
"""Characters of neighbours in one piece."""
_WHITE = 4
"""Characters between two chunks, at the most, that only white space can be."""


def gathered(hits: Sequence[Hit], *, limit: int, budget: int = BUDGET) -> list[Hit]:
    """At most `limit`, best first; the first is always there, whatever its length."""
    chosen: list[Hit] = []
    spent = 0
    for hit in _joined(_distinct(hits[: max(LOOKED_AT, limit)]), limit):
        spent += most_tokens("\n".join((*hit.passage.chunk.heading_path, hit.passage.chunk.text)))
        if chosen and spent > budget:
            break
        chosen.append(hit)
    return chosen


def _distinct(hits: Sequence[Hit]) -> list[Hit]:
    """The first of those that say the same in the same words; the best of them."""
    kept: list[tuple[Hit, frozenset[str]]] = []
    for hit in hits:
        terms = frozenset(words(hit.passage.chunk.text))
        if not any(_alike(terms, other) for _, other in kept):
            kept.append((hit, terms))
    return [hit for hit, _ in kept]


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    return bool(one) and len(one & other) >= ALIKE * len(one | other)


def _joined(hits: Iterable[Hit], limit: int) -> list[Hit]:
    """The first `limit`, where what follows on one of them counts as part of it."""
    found: list[Hit] = []
    for hit in hits:
        for place, other in enumerate(found):
            if together := _neighbours(other, hit):
                found[place] = together
                break
        else:
            if len(found) == limit:
                break
            found.append(hit)
    return found


def _neighbours(better: Hit, other: Hit) -> Hit | None:
    """Both in one piece, in the place and with the score of the better one."""
    one, two = sorted((better.passage.chunk, other.passage.chunk), key=lambda chunk: chunk.start)
    apart = better.document.document_id != other.document.document_id or one.heading_path != two.heading_path
    if apart or one.part != two.part or (text := _in_one(one, two)) is None:
        return None
    return replace(better, passage=replace(better.passage, chunk=replace(one, text=text)))


def _in_one(one: Chunk, two: Chunk) -> str | None:
    """None where the second does not follow on the first."""
    gap = two.start - one.start - len(one.text)
    if gap > _WHITE:
        return None
    above = header(two.text)
    goes_on = bool(above) and above in one.text and _kind(_last_line(one.text)) == "row"
    rest = two.text.removeprefix(above) if goes_on else two.text
    text = _put_together(one.text, two.text, rest, gap)
    if text is None and (repeated := header(one.text)):  # which takes no room in the document
        text = _put_together(one.text, two.text, rest, gap + len(repeated))
    return text if text and len(text) <= _WIDEST else None


def _put_together(one: str, two: str, rest: str, gap: int) -> str | None:
    """`rest` is the second without the header of a table that goes on."""
    if gap <= 0:
        overlap = -gap
        follows = overlap < len(one) and one[len(one) - overlap :] == rest[:overlap]
        return one + rest[overlap:] if follows else None
    if gap == 1:
        return one + ("\n" if _begins_a_line(one, rest) else " ") + rest
    return one + "\n" * gap + two if gap <= _WHITE else None  # rows so far apart are another table's


def _begins_a_line(one: str, rest: str) -> bool:
    """A row or an item, and not what is left of a row."""
    kind = _kind(rest.partition("\n")[0])
    barred = _last_line(one).startswith("|")
    return kind == "item" or (kind == "row" and (rest.startswith("|") or not barred))


def _last_line(text: str) -> str:
    return text.rpartition("\n")[2]


def _kind(line: str) -> Kind:
    return next((span.kind for span in sentences(line)), "sentence")
