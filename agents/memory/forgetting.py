"""Which facts a person means who asks for something to be forgotten. What is erased cannot be had back: in doubt it is
kept, and the person is told that nothing was found."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from agents.memory.lexicon import concepts, known
from agents.memory.subjects import read
from mesh.ports.memory import Fact

ALIKE = 0.93
"""Cosine from which a fact is meant although its words are others: far above that of a neighbouring subject (.89)."""


def named(about: str, facts: Sequence[Fact]) -> list[Fact]:
    """All that the words name: every content word of `about` is in the fact, and the fact is of whom they speak. "My
    name" is not the dog's; "Rex" is whatever was told of Rex. `similarity` is that to `about`, or 0."""
    wanted = frozenset(concepts(about))
    if not wanted:
        return []
    return [fact for fact in facts if _names(wanted, fact.text)] or [fact for fact in facts if fact.similarity >= ALIKE]


def _names(wanted: frozenset[str], text: str) -> bool:
    statement = read(text)
    everyones = not any(known(term) for term in wanted)
    return wanted <= statement.terms and (everyones or statement.owners <= wanted)


def with_versions(chosen: Collection[Fact], facts: Sequence[Fact]) -> list[Fact]:
    """Also what they replaced, and what replaced them, in the order of `facts`."""
    found = {fact.fact_id for fact in chosen}
    while True:
        linked = {
            each
            for fact in facts
            if fact.superseded_by and {fact.fact_id, fact.superseded_by} & found
            for each in (fact.fact_id, fact.superseded_by)
        }
        if linked <= found:
            return [fact for fact in facts if fact.fact_id in found]
        found |= linked
