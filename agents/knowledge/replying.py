"""The reply to a message: each of its questions is answered from what a search finds for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from agents.knowledge.answering import Embed, Extract, Vector, extracts
from agents.knowledge.asking import follow_up, left_out, respelled
from agents.knowledge.units import Candidate
from mesh.contracts import Line
from mesh.questions import is_personal, parts
from mesh.text import words

NEAR = 1.0
"""In rating: two passages as near as this are equally likely to be the one."""

Search = Callable[[str], Awaitable[tuple[Vector, Sequence[Candidate]]]]


@dataclass(frozen=True, slots=True)
class Replied:
    extracts: tuple[Extract, ...] = ()
    """Those that answer, in the order of the questions; none is part of another."""
    unanswered: tuple[str, ...] = ()
    """Questions of a message whose other questions were answered."""
    confidence: float = 0.0
    """Of the weakest answer; where there is none, of the best that is not one."""


@dataclass(frozen=True, slots=True)
class Tried:
    extract: Extract
    passage: Candidate

    @property
    def own(self) -> bool:
        return self.passage.own

    @property
    def says(self) -> frozenset[str]:
        """The terms of what is quoted and of its headings."""
        return frozenset(words(f"{self.passage.context}\n{self.extract.quotation}"))


async def reply(text: str, history: Sequence[Line], search: Search, embed: Embed) -> Replied:
    if follow := follow_up(text, history):
        together, new = follow
        for tried in await _tried(together, search, embed):
            if tried.extract.answers and new & tried.says:
                return Replied((tried.extract,), (), tried.extract.confidence)
    questions = parts(text)
    results = [await _answered(question, search, embed) for question in questions]
    if len(questions) > 1 and not any(result.extracts for result in results):
        return await _answered(text, search, embed)
    answered = [result for result in results if result.extracts]
    if not answered:
        return max(results, key=lambda result: result.confidence)
    return Replied(
        _distinct([extract for result in answered for extract in result.extracts]),
        tuple(question for question, result in zip(questions, results, strict=True) if not result.extracts),
        min(result.confidence for result in answered),
    )


async def _answered(question: str, search: Search, embed: Embed) -> Replied:
    found = await _tried(question, search, embed)
    chosen = _chosen(question, found)
    if not chosen:
        return Replied(confidence=max((each.extract.confidence for each in found[:1]), default=0.0))
    said = frozenset[str]().union(*(each.says for each in chosen))
    if rest := left_out(question, said):
        chosen += _chosen(rest, await _tried(rest, search, embed))
    return Replied(_distinct([each.extract for each in chosen]), (), min(each.extract.confidence for each in chosen))


def _chosen(question: str, found: Sequence[Tried]) -> list[Tried]:
    """The best that answers, unless the best of all is far ahead of it and does not. To "when is my order ready?" one's
    own document answers first, and a general one after it."""
    answering = [each for each in found if each.extract.answers]
    best = [each for each in answering if each.extract.evidence.lead > -NEAR][:1]
    if not is_personal(question) or (best and best[0].own):
        return best
    return [each for each in answering if each.own][:1] + best


async def _tried(question: str, search: Search, embed: Embed) -> list[Tried]:
    """Where none answers, once more with the spelling of
    the documents."""
    vector, candidates = await search(question)
    found = await extracts(question, vector, candidates, embed)
    if not any(each.answers for each in found[:1]):
        corrected = respelled(question, (f"{each.context}\n{each.text}" for each in candidates))
        if corrected != question:
            vector, candidates = await search(corrected)
            found = await extracts(corrected, vector, candidates, embed)
    known = {candidate.id: candidate for candidate in candidates}
    return [Tried(each, known[each.passage_id]) for each in found]


def _distinct(found: Sequence[Extract]) -> tuple[Extract, ...]:
    kept: list[Extract] = []
    for each in found:
        if any(each.quotation in other.quotation for other in kept):
            continue
        kept = [other for other in kept if other.quotation not in each.quotation]
        kept.append(each)
    return tuple(kept)
