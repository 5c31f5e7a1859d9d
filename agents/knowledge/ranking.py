"""How the two legs of a search, by meaning and by words, become one order."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from statistics import fmean
from typing import Literal, TypeVar

Id = TypeVar("Id", bound=Hashable)
Mode = Literal["calibrated", "rrf"]

# Chosen on one half of SQuAD 2's questions, reported on the other (docs/benchmarks.md).
LEXICAL_WEIGHT = 0.5
RANK_CONSTANT = 60

# Cosines of one embedder crowd into a narrow band (sd 0.016 within a list of multilingual-e5's, more with
# others). A list too short to show its own spread borrows from this one.
_TYPICAL_SPREAD = 0.02
_BORROWED = 5


def spread(cosines: Mapping[Id, float]) -> float:
    """The standard deviation of a list's cosines, drawn to the typical one where the list is short."""
    count = len(cosines)
    centre = fmean(cosines.values()) if count else 0.0
    squares = sum((value - centre) ** 2 for value in cosines.values())
    return float(((squares + _BORROWED * _TYPICAL_SPREAD**2) / (count + _BORROWED)) ** 0.5)


def fuse(
    dense: Mapping[Id, float],
    sparse: Mapping[Id, float],
    *,
    mode: Mode = "calibrated",
    lexical_weight: float = LEXICAL_WEIGHT,
) -> list[tuple[Id, float]]:
    """All of both lists, best first; give the best 40 or so of each leg.

    Args:
        dense: cosines. What only the other leg found is given the lowest cosine of the list.
        sparse: BM25 sums, inverse document frequency included. What is missing is given 0.
        mode: `calibrated` scores are the cosine plus `lexical_weight` x the spread of the cosines x BM25, so
            they keep the cosine's scale and hold for any embedder; `rrf` scores are sums of reciprocal ranks,
            on which no floor makes sense.
    """
    scores = _calibrated(dense, sparse, lexical_weight) if mode == "calibrated" else _reciprocal(dense, sparse)
    return sorted(scores.items(), key=lambda found: (-found[1], -dense.get(found[0], 0.0), str(found[0])))


def _calibrated(dense: Mapping[Id, float], sparse: Mapping[Id, float], weight: float) -> dict[Id, float]:
    lowest = min(dense.values(), default=0.0)
    unit = weight * spread(dense)
    return {key: dense.get(key, lowest) + unit * sparse.get(key, 0.0) for key in (*dense, *sparse)}


def _reciprocal(dense: Mapping[Id, float], sparse: Mapping[Id, float]) -> dict[Id, float]:
    scores: dict[Id, float] = {}
    for leg in (dense, sparse):
        ranked = sorted(leg, key=lambda key: (-leg[key], str(key)))
        for rank, key in enumerate(ranked, start=1):
            scores[key] = scores.get(key, 0.0) + 1 / (RANK_CONSTANT + rank)
    return scores
