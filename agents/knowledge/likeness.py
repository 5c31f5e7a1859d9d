"""Words that mean the same in another form: paediatrician and paediatrics, directed and director."""

from __future__ import annotations

import math
from functools import lru_cache

RELATIVE = 0.8
_SHORTEST = 5
_BEGINNING = 4


def alike(term: str, terms: frozenset[str]) -> float:
    """1 for the term itself, `RELATIVE` for one that begins as it does, else 0."""
    if term in terms:
        return 1.0
    if len(term) >= _SHORTEST and term.isalpha():
        for other in _by_beginning(terms).get(term[:_BEGINNING], ()):
            needed = max(_BEGINNING, math.ceil(0.6 * max(len(term), len(other))))
            if term[:needed] == other[:needed] and len(other) >= needed:
                return RELATIVE
    return 0.0


@lru_cache(maxsize=1024)
def _by_beginning(terms: frozenset[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for term in terms:
        found.setdefault(term[:_BEGINNING], []).append(term)
    return found
