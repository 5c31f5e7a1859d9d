"""Mends what the making of a page does to its words: hyphens at line ends, ligatures, and letters out of order."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence

BROKEN = "\u00ad\n"
"""A hyphen at the end of a line, which may belong to the word or not."""

_WORD = re.compile(r"\w+(?:-\w+)*")
_BROKEN = re.compile(rf"(\w+){BROKEN}(\w+)")
_HYPHEN = re.compile(r"(?<=[^\W\d_])[-‐]\n(?=[^\W\d_])")
_LIGATURES = re.compile("[\ufb00-\ufb06\ufb13-\ufb17\ufb1d-\ufb4f\ufb50-\ufbff\ufd50-\ufdfb\ufe70-\ufefc]")
_MARK_BEFORE = re.compile(" ([\u064b-\u0652])([\u0621-\u064a])")
_JOINED = re.compile("([A-Za-z])([\u0621-\u064a])")
_LAM = "\u0644"
_ALEFS = frozenset("\u0622\u0623\u0625\u0627")

Spot = tuple[float, float]


def mended(texts: Sequence[str]) -> list[str]:
    """Of all pages at once: how a word is written elsewhere tells whether its hyphen is one."""
    known = Counter(word.lower() for text in texts for word in _WORD.findall(text))
    whole = (_BROKEN.sub(lambda found: _joined(found[1], found[2], known), _unligated(text)) for text in texts)
    return [text.replace(BROKEN, "-\n").replace("\u00ad", "") for text in whole]


def hyphens_marked(text: str) -> str:
    """In a text whose hyphens at line ends are like all others."""
    return _HYPHEN.sub(BROKEN, text)


def _joined(start: str, end: str, known: Counter[str]) -> str:
    whole, compound = f"{start}{end}".lower(), f"{start}-{end}".lower()
    if end[0].isupper() or end[0].isdigit() or start[-1].isdigit() or known[compound] > known[whole]:
        return f"{start}-{end}"
    return start + end


def _unligated(text: str) -> str:
    return _LIGATURES.sub(lambda found: unicodedata.normalize("NFKC", found[0]), text)


# ── Arabic ────────────────────────────────────────────────────────────────────────────────────────────────────────


def is_arabic(text: str) -> bool:
    return any("\u0600" <= c <= "\u06ff" for c in text)


def in_logical_order(letters: Iterable[tuple[str, Spot]]) -> str:
    """From characters with the places where they are drawn. A lam and the alef after it are drawn as one, and are then
    taken for an alef and a lam."""
    told: list[str] = []
    before: Spot | None = None
    for letter, spot in letters:
        if letter == _LAM and spot == before and told[-1] in _ALEFS:
            told.insert(-1, letter)
        else:
            told.append(letter)
        before = spot
    return _JOINED.sub(r"\1 \2", _MARK_BEFORE.sub(r"\2\1", "".join(told)))
