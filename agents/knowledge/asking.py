"""From a message to what is asked: what follows up on the last question, what an answer left out, slips of spelling. By
rules, without a chat model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import regex

from agents.knowledge.wishes import WISH_WORDS
from mesh.contracts.answers import Line
from mesh.questions import OPENERS
from mesh.text import content_words, words

_FOLLOWS = regex.compile(
    r"^\W*(?:(?:and|or|also|ok(?:ay)?,?|but|y|o|pero|et|und|e|और)\s+)*"
    r"(?:(?:what|how) about|and|or|y|et|und|e|qu[eé] tal|और)\s+(?P<rest>\S.*)$",
    regex.IGNORECASE | regex.DOTALL,
)
_ELLIPTICAL = 5  # words; "and for children under six?" says only what is different
_WRITTEN = regex.compile(r"\p{L}{5,}")


def follow_up(text: str, history: Sequence[Line]) -> tuple[str, frozenset[str]] | None:
    """ "And on Sundays?" after "When is the pool open?": both together, and the terms that an answer must name."""
    found = _FOLLOWS.match(text)
    before = next((line.text for line in reversed(history) if line.who == "person"), "")
    if not found or not before or len(before) > 300:
        return None
    rest = found["rest"]
    new = frozenset(content_words(rest))
    if not new or len(rest.split()) > _ELLIPTICAL or regex.match(rf"{OPENERS}\b", rest, regex.IGNORECASE):
        return None
    return f"{before} {rest}", new


_COORDINATES = regex.compile(r"\s+(?:and|y|e|&|und|et|और)\s+", regex.IGNORECASE)
_WORD = regex.compile(r"[\p{L}\p{M}\p{N}][\p{L}\p{M}\p{N}'’-]*")


def left_out(text: str, said: frozenset[str]) -> str | None:
    """The question again, for the half of "How much are parking and breakfast?" that an answer says nothing of."""
    halves = _COORDINATES.split(text)
    if len(halves) != 2:
        return None
    left, right = halves
    framed = WISH_WORDS.sub(" ", left)
    mine, other = set(content_words(framed)), set(content_words(WISH_WORDS.sub(" ", right)))
    if not mine or not other or (mine & said and other & said):
        return None
    if other & said:
        return left
    if mine & said:
        named = {word for word in _WORD.findall(framed) if content_words(word)}
        return f"{_WORD.sub(lambda found: '' if found.group() in named else found.group(), left)} {right}"
    return None


# ── spelling ──────────────────────────────────────────────────────────────────────────────────────────────────────

_ALWAYS_KNOWN = (
    "price",
    "prices",
    "phone",
    "number",
    "address",
    "hours",
    "opening",
    "email",
    "where",
    "which",
    "there",
)
"""What is asked with, whether or not a document says it."""


def respelled(text: str, passages: Iterable[str]) -> str:
    """With the words that no passage has replaced by one that looks almost the same; the text itself if none is."""
    known = Counter(word for passage in passages for word in _WRITTEN.findall(passage.casefold()))
    known.update(_ALWAYS_KNOWN)
    terms = {term for word in known for term in words(word)}
    beginning: dict[str, list[str]] = {}
    for word in known:
        beginning.setdefault(word[0], []).append(word)

    def right(found: regex.Match[str]) -> str:
        word = found.group().casefold()
        if not content_words(word) or set(words(word)) & terms:
            return str(found.group())
        near = [other for other in beginning.get(word[0], ()) if _slip(word, other)]
        return str(max(near, key=lambda other: known[other])) if near else str(found.group())

    return str(_WRITTEN.sub(right, text))


def _slip(word: str, other: str) -> bool:
    """One letter too many, too few, wrong or exchanged with the next; two in a long word. The first one is the same."""
    allowed = 1 if len(word) < 8 else 2
    return abs(len(word) - len(other)) <= allowed and _distance(word, other, allowed) <= allowed


def _distance(left: str, right: str, most: int) -> int:
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        after = [i]
        for j, b in enumerate(right, 1):
            cost = min(row[j] + 1, after[j - 1] + 1, row[j - 1] + (a != b))
            if before and i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                cost = min(cost, before[j - 2] + 1)
            after.append(cost)
        if min(after) > most:
            return most + 1
        before, row = row, after
    return row[-1]
