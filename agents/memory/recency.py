"""How memories are ranked: similarity first, and time only where it decides something."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from agents.memory.subjects import read, same_subject
from mesh.contracts.answers import Memory
from mesh.ports.memory import Fact

Mode = Literal["competing", "blanket"]

# multilingual-e5-small, question against told fact, both as queries; 49 questions with an answer, 41 without
# (tests/unit/data/memory/recall.jsonl): the right fact lies at .82-.93, the best wrong one at .78-.91. Ranking by
# cosine is right (48 of 49 first); no floor on it separates. So the floor only takes away what is plainly foreign,
# and what a question is about is decided by `agents.memory.bearing`.
LOWEST, HIGHEST = 0.76, 0.94
FLOOR = 0.25
"""Of the calibrated similarity: a cosine of .805."""


def calibrated(cosine: float) -> float:
    """In [0, 1]."""
    return min(1.0, max(0.0, (cosine - LOWEST) / (HIGHEST - LOWEST)))


def over_fetch(limit: int) -> int:
    return max(3 * limit, 10)


@dataclass(slots=True)
class _Ranked:
    fact: Fact
    score: float


def rerank(
    facts: Sequence[Fact],
    *,
    now: datetime,
    half_life_days: float = 14,
    mode: Mode = "competing",
    latest: bool = False,
    floor: float = FLOOR,
) -> list[Memory]:
    """Best first, scores in [0, 1], without what lies under the floor.

    `competing`: an older memory fades against a newer one about the same subject, and never outranks it; with
    `latest` all of them compete. `blanket`: everything fades with its age, stable facts as well.
    """
    kept = [_Ranked(fact, score) for fact in facts if (score := calibrated(fact.similarity)) >= floor]
    if mode == "blanket":
        for one in kept:
            one.score *= _faded(now - one.fact.told_at, half_life_days)
    else:
        _fade_rivals(kept, half_life_days, latest)
    kept.sort(key=lambda one: (-one.score, -one.fact.told_at.timestamp()))
    return [_memory(one) for one in kept]


def _fade_rivals(kept: list[_Ranked], half_life_days: float, latest: bool) -> None:
    newest_first = sorted(kept, key=lambda one: one.fact.told_at, reverse=True)
    for position, one in enumerate(newest_first):
        newer = [
            other
            for other in newest_first[:position]
            if other.fact.told_at > one.fact.told_at and (latest or _rivals(one.fact, other.fact))
        ]
        if newer:
            top = newer[0]
            faded = _faded(top.fact.told_at - one.fact.told_at, half_life_days)
            one.score = min(one.score, *(other.score for other in newer)) * faded


def _rivals(a: Fact, b: Fact) -> bool:
    left, right = read(a.text), read(b.text)
    return left.single and right.single and same_subject(left, right)


def _faded(age: timedelta, half_life_days: float) -> float:
    days = max(0.0, age.total_seconds() / 86_400)
    return float(0.5 ** (days / half_life_days))


def _memory(one: _Ranked) -> Memory:
    return Memory(fact_id=one.fact.fact_id, text=one.fact.text, told_at=one.fact.told_at, score=round(one.score, 4))
