"""How the two legs of a search, by meaning and by words, become one order."""

from __future__ import annotations

import logging
from collections.abc import Hashable, Mapping, Sequence
from datetime import UTC, datetime
from importlib import import_module
from statistics import fmean
from typing import TypeVar

from agents.knowledge.lifecycle import standing
from mesh.errors import Misconfigured, Unavailable
from mesh.ports.passages import Passage, Reranker
from mesh.settings import SearchMode

log = logging.getLogger(__name__)

Id = TypeVar("Id", bound=Hashable)

# Chosen on one half of the questions, reported on the other (docs/benchmarks.md).
LEXICAL_WEIGHT = 0.5
RANK_CONSTANT = 60

# Of `five_signal`, as the design has it.
DENSE, LEXICAL, RECENCY, STANDING = 0.60, 0.28, 0.07, 0.05
HALF_LIFE_DAYS = 180.0

# Cosines of one embedder crowd into a narrow band (sd 0.016 within a list of multilingual-e5's, more with
# others). A list too short to show its own spread borrows from this one.
_TYPICAL_SPREAD = 0.02
_BORROWED = 5


async def ranked(
    question: str,
    passages: Sequence[Passage],
    *,
    mode: SearchMode = "calibrated",
    reranker: Reranker | None = None,
    per_leg: int = 40,
) -> list[tuple[int, float]]:
    """The places of the passages, best first, with their scores.

    The reranker says in which order the first ones come, and the scores are dealt anew in that order: they keep their
    scale, whatever the reranker's is. `per_leg` is how many the leg by meaning was asked for.
    """
    dense = {place: passage.dense for place, passage in enumerate(passages) if passage.dense is not None}
    sparse = {place: passage.sparse for place, passage in enumerate(passages) if passage.sparse is not None}
    if mode == "five_signal":
        found = five_signal(passages, dense, sparse, per_leg=per_leg)
    else:
        found = fuse(dense, sparse, mode=mode)
    first = found[: reranker.most] if reranker else []
    if reranker is None or len(first) < 2:
        return found
    try:
        relevance = await reranker.rerank(question, [passages[place] for place, _ in first])
    except Unavailable as error:
        log.warning("! reranker detail=%r", error.detail)
        return found
    order = sorted(range(len(first)), key=lambda number: -relevance[number])
    scores = (score for _, score in first)
    return [*((first[number][0], score) for number, score in zip(order, scores, strict=True)), *found[len(first) :]]


def loaded(path: str) -> Reranker | None:
    """What `search_reranker` names. Raises `Misconfigured`."""
    if not path:
        return None
    module, _, name = path.partition(":")
    try:
        made: Reranker = getattr(import_module(module), name)()
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise Misconfigured(
            f"Setting search_reranker (SEARCH_RERANKER) is {path!r}, which can't be used: {error}. Name a class as "
            "module:name, or leave it empty for none."
        ) from error
    return made


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
    mode: SearchMode = "calibrated",
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
    scores = _reciprocal(dense, sparse) if mode == "rrf" else _calibrated(dense, sparse, lexical_weight)
    return _sorted(scores, dense)


def five_signal(
    passages: Sequence[Passage],
    dense: Mapping[int, float],
    sparse: Mapping[int, float],
    *,
    per_leg: int,
    now: datetime | None = None,
) -> list[tuple[int, float]]:
    """Scores in [0, 1]: meaning, words, how new, and what a document is. Words alone rescue nothing: what was not among
    the nearest `per_leg` by meaning counts without them."""
    now = now or datetime.now(UTC)
    nearest = sorted(dense.values(), reverse=True)[:per_leg]
    floor = nearest[-1] if nearest else 1.0
    most = max(sparse.values(), default=0.0) or 1.0
    scores: dict[int, float] = {}
    for place, passage in enumerate(passages):
        cosine = dense.get(place, 0.0)
        words = sparse.get(place, 0.0) / most if cosine >= floor else 0.0
        age = max(0.0, (now - passage.ingested_at).total_seconds() / 86_400)
        scores[place] = (
            DENSE * max(0.0, cosine)
            + LEXICAL * words
            + RECENCY * 0.5 ** (age / HALF_LIFE_DAYS)
            + STANDING * standing(passage)
        )
    return _sorted(scores, dense)


def _sorted(scores: Mapping[Id, float], dense: Mapping[Id, float]) -> list[tuple[Id, float]]:
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
