"""The reply to a message: each of its questions is answered from what a search finds for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from agents.knowledge.answering import Embed, Extract, Vector, extracts
from agents.knowledge.asking import follow_up, left_out, respelled
from agents.knowledge.chaining import steps
from agents.knowledge.judging import MULTILINGUAL_E5_SMALL, Judgement
from agents.knowledge.quoting import shown
from agents.knowledge.units import Candidate
from agents.knowledge.wishes import WISH_WORDS
from mesh.contracts.answers import Line
from mesh.questions import as_written, is_personal, parts, questions_alone, tidied
from mesh.text import content_words, words

NEAR = 1.0
"""In rating: two passages as near as this are equally likely to be the one."""
NEARLY_ANSWERS = 0.4
MOST_ALIKE = 3
FURTHER = 2
"""Steps: the skipper of the largest boat takes two."""
IN_STEPS = 0.75
"""The confidence, at most, of what two sentences say together."""
DESCRIBED = 0.45
"""The confidence, at most, of a sentence that only names what the question describes."""

Search = Callable[[str], Awaitable[tuple[Vector, Sequence[Candidate]]]]


@dataclass(frozen=True, slots=True)
class Replied:
    extracts: tuple[Extract, ...] = ()
    """Those that answer, in the order of the questions; none is part of another."""
    unanswered: tuple[str, ...] = ()
    """Questions of a message whose other questions were answered, in the person's words. One whose subject is in what
    is quoted is not named: a person sees for themselves whether that says it."""
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


async def reply(
    text: str,
    history: Sequence[Line],
    search: Search,
    embed: Embed,
    known: str = "",
    judgement: Judgement = MULTILINGUAL_E5_SMALL,
) -> Replied:
    """`known`: what the person told earlier that bears on it."""
    replied = await _replied(tidied(text), history, Reader(search, embed, known, judgement))
    asked = questions_alone(tidied(text))
    if not replied.extracts and asked != tidied(text):  # "do you take puppies? She is 12 weeks old"
        return await _replied(asked, (), Reader(search, embed, known, judgement))
    return replied


async def _replied(text: str, history: Sequence[Line], reader: Reader) -> Replied:
    if follow := follow_up(text, history):
        together, new = follow
        for tried in await reader.tried(together):
            if tried.extract.answers and new & tried.says:
                return Replied((tried.extract,), (), tried.extract.confidence)
    questions = parts(text)
    results = [await _answered(question, reader) for question in questions]
    if len(questions) > 1 and not any(result.extracts for result in results):
        return await _answered(text, reader)
    answered = [result for result in results if result.extracts]
    if not answered:
        return max(results, key=lambda result: result.confidence)
    found = _distinct([extract for result in answered for extract in result.extracts])
    said = frozenset(words("\n".join(f"{each.shown}\n{each.quotation}" for each in found)))
    open_ = [question for question, result in zip(questions, results, strict=True) if not result.extracts]
    return Replied(
        found,
        tuple(as_written(question) for question in open_ if not _speaks_of(said, as_written(question))),
        min(result.confidence for result in answered),
    )


def _speaks_of(said: frozenset[str], question: str) -> bool:
    """Whether half of a question's subject words are there."""
    subject = set(content_words(WISH_WORDS.sub(" ", question)))
    return bool(subject) and 2 * len(subject & said) >= len(subject)


async def _answered(question: str, reader: Reader) -> Replied:
    found = await reader.tried(question)
    chosen = _chosen(question, found, reader.known)
    if opened := await _opened(question, chosen, reader):
        return opened
    if not chosen:
        return Replied(confidence=max((each.extract.confidence for each in found[:1]), default=0.0))
    said = frozenset[str]().union(*(each.says for each in chosen))
    if rest := left_out(question, said):
        chosen += _chosen(rest, await reader.tried(rest), reader.known)
    return Replied(_distinct([each.extract for each in chosen]), (), min(each.extract.confidence for each in chosen))


async def _opened(question: str, chosen: Sequence[Tried], reader: Reader, further: int = FURTHER) -> Replied | None:
    """In steps, where what was found says at most who or what the question describes. Without an extract where that is
    all that can be said."""
    ways = [
        step
        for step in steps(question, reader.candidates)
        if not any(step.says_more(each.extract, each.passage) for each in chosen)
    ]
    for step in ways:
        again = _chosen(step.question, await reader.tried(step.question), reader.known)[:1]
        after = await _opened(step.question, again, reader, further - 1) if further > 1 else None
        if after is None:
            after = Replied(tuple(each.extract for each in again if step.answered(each.extract, each.passage)))
        if not after.extracts:
            continue
        last = after.extracts[-1]
        if last.said == step.unit.text:
            return None  # it says both who it is and what is asked
        named = replace(last, quotation=step.unit.text, passage_id=step.unit.passage.id, shown=shown([step.unit]))
        return Replied(_distinct([named, *after.extracts]), (), min(IN_STEPS, last.confidence))
    if chosen and any(step.is_all_of(chosen[0].extract, chosen[0].passage) for step in ways):
        return Replied(confidence=min(DESCRIBED, chosen[0].extract.confidence))
    return None


def _chosen(question: str, found: Sequence[Tried], known: str) -> list[Tried]:
    """The best that answers, unless the best of all is far ahead of it and does not. To "when is my order ready?" one's
    own document answers first, and a general one after it."""
    answering = [each for each in found if each.extract.answers]
    best = [each for each in answering if each.extract.evidence.lead > -NEAR][:1]
    if answering and answering[0].extract.evidence.wanted > 0 > max(found, key=_lead).extract.evidence.wanted:
        best = answering[:1]  # "small service: 49 euros", though what a small service is comes nearer to the question
    if best and not best[0].own:
        best = _alike(question, best[0], found, known if is_personal(question) else "")
    if not is_personal(question) or (best and best[0].own):
        return best
    return [each for each in answering if each.own][:1] + best


def _lead(tried: Tried) -> float:
    return tried.extract.evidence.lead


def _alike(question: str, best: Tried, found: Sequence[Tried], known: str) -> list[Tried]:
    """With its neighbours under one heading, where the question does not tell them apart: how long is "the package",
    of three? What the person told earlier may tell."""
    above, asked = best.passage.heading_path[:-1], set(content_words(question))
    if not above:
        return [best]
    near = [
        each
        for each in found
        if each.passage.heading_path[:-1] == above
        and each.passage.heading_path != best.passage.heading_path
        and each.passage.source == best.passage.source
        and each.extract.evidence.lead > -NEAR
        and each.extract.evidence.wanted == best.extract.evidence.wanted
        and each.extract.confidence >= NEARLY_ANSWERS
    ]
    every = [best, *near][:MOST_ALIKE]
    titles = [set(content_words(each.passage.heading_path[-1])) for each in every]
    if not near or any(title & asked for title in titles):
        return [best]
    theirs = [each for each, title in zip(every, titles, strict=True) if title & set(content_words(known))]
    return theirs if len(theirs) == 1 else every


@dataclass(slots=True)
class Reader:
    search: Search
    embed: Embed
    known: str = ""
    judgement: Judgement = MULTILINGUAL_E5_SMALL
    candidates: Sequence[Candidate] = ()
    """What the last search found."""

    async def tried(self, question: str) -> list[Tried]:
        """Where none answers, once more with the spelling of the documents."""
        vector, candidates = await self.search(question)
        found = await extracts(question, vector, candidates, self.embed, judgement=self.judgement, known=self.known)
        if not any(each.answers for each in found[:1]):
            corrected = respelled(question, (f"{each.context}\n{each.text}" for each in candidates))
            if corrected != question:
                vector, candidates = await self.search(corrected)
                found = await extracts(
                    corrected, vector, candidates, self.embed, judgement=self.judgement, known=self.known
                )
        self.candidates = candidates
        passages = {candidate.id: candidate for candidate in candidates}
        return [Tried(each, passages[each.passage_id]) for each in found]


def _distinct(found: Sequence[Extract]) -> tuple[Extract, ...]:
    kept: list[Extract] = []
    for each in found:
        if any(each.quotation in other.quotation for other in kept):
            continue
        kept = [other for other in kept if other.quotation not in each.quotation]
        kept.append(each)
    return tuple(kept)
