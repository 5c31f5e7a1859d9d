"""The handlers: what a person told is taken in, recalled, and answered from. Nothing here names a person: the grant is
the person."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Literal
from weakref import WeakValueDictionary

from agents.memory import wording
from agents.memory.bearing import answers, touches
from agents.memory.extracting import Stated, facts_in
from agents.memory.forgetting import named, with_versions
from agents.memory.judging import New, Outdated, Restated, Supersedes, judge, merged, settle
from agents.memory.questions import Question
from agents.memory.questions import ask as asked
from agents.memory.recency import calibrated, over_fetch, rerank
from agents.memory.subjects import read, same_subject
from mesh.access import Grant
from mesh.context import Context
from mesh.contracts.answers import Answer, Ask, Memory, Nothing, Source
from mesh.contracts.memory import (
    ANSWER_FROM_MEMORY,
    EXPORT_MEMORY,
    FORGET,
    NOTE,
    RECALL,
    REMEMBER,
    Forget,
    Forgotten,
    Recall,
    Recalled,
    Remember,
    Remembered,
    Told,
)
from mesh.dispatch import Agent
from mesh.ports.memory import Fact, FactStore
from mesh.wiring import Parts

log = logging.getLogger(__name__)

NEAREST = 10
"""Live facts that a new one is judged against."""
ANSWERED = 5
"""Facts in one answer: several allergies, several languages."""
LISTED = 10
CONSIDERED = 15
ANSWERS_LEAD = 0.05
"""In cosine: half of the span between the worst right fact and the best wrong one."""

_AND = re.compile(r",? (?:and|y) (?=(?:what|when|where|who|how|which|qué|cuál|cuándo|dónde|quién|cómo)\b)", re.I)


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Taken:
    """One statement, and what became of it."""

    fact: Fact
    outcome: Literal["new", "restated", "superseding", "outdated"]
    replaced: tuple[Fact, ...] = ()


@dataclass
class Diary:
    """One person's statements are taken in one after another: two that contradict must see one another. That holds
    within a process; several copies of this agent need the chat's lease in the ledger for it."""

    facts: FactStore
    now: Callable[[], datetime] = _now
    _turns: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)

    async def take_in(self, grant: Grant, text: str, *, message_id: str, said_at: datetime) -> list[Taken]:
        """Safe to repeat with the same message id, also after a crash half-way."""
        stated = facts_in(text)
        if not stated:
            return []
        turn = self._turns.setdefault(grant.client, asyncio.Lock())
        async with turn:
            known = {fact.text.casefold(): fact for fact in await self.facts.told_in(grant, message_id)}
            taken = [await self._take(grant, one, known, message_id, said_at) for one in stated]
        return [one for one in taken if one is not None]

    async def forget(self, grant: Grant, about: str) -> list[Fact]:
        """What is gone, oldest first. Nothing of it is said in the log."""
        turn = self._turns.setdefault(grant.client, asyncio.Lock())
        async with turn:
            kept = await self.facts.all(grant, superseded=True)
            if not about.strip():
                await self.facts.erase(grant)
                return kept
            cosines = {fact.fact_id: fact.similarity for fact in await self.facts.nearest(grant, about, limit=NEAREST)}
            compared = [replace(fact, similarity=cosines.get(fact.fact_id, 0.0)) for fact in kept]
            gone = with_versions(named(about, compared), compared)
            if gone:
                await self.facts.erase(grant, [fact.fact_id for fact in gone])
            return gone

    async def _take(
        self, grant: Grant, stated: Stated, known: dict[str, Fact], message_id: str, said_at: datetime
    ) -> Taken | None:
        meant: Fact | None = None
        if stated.loose:
            settled = settle(stated, list(reversed(await self.facts.all(grant))), said_at=said_at)
            if settled is None:
                return None
            stated, meant = settled
        already = known.get(stated.text.casefold()) or _kept_in(known, stated)
        if already and already.superseded_by:
            return Taken(already, "restated")
        near = await self.facts.nearest(grant, stated.text, limit=NEAREST)
        others = [fact for fact in near if already is None or fact.fact_id != already.fact_id]
        verdict = judge(stated, others, told_at=said_at)
        if isinstance(verdict, New) and meant and (already is None or meant.fact_id != already.fact_id):
            others, verdict = [*others, meant], Supersedes((meant.fact_id,))
        if isinstance(verdict, Supersedes) and already is None:
            stated = merged(stated, [fact for fact in others if fact.fact_id in verdict.fact_ids])
        if isinstance(verdict, Restated):
            return Taken(next(fact for fact in others if fact.fact_id == verdict.fact_id), "restated")
        fact = already or await self.facts.add(grant, stated.text, told_at=said_at, message_id=message_id)
        if isinstance(verdict, Supersedes):
            replaced = tuple(other for other in others if other.fact_id in verdict.fact_ids)
            for old in replaced:
                await self.facts.supersede(grant, old.fact_id, by=fact.fact_id, at=said_at)
            return Taken(fact, "superseding", replaced)
        if isinstance(verdict, Outdated):
            later = next(other for other in others if other.fact_id == verdict.by)
            await self.facts.supersede(grant, fact.fact_id, by=later.fact_id, at=later.told_at)
            return Taken(fact, "outdated", (later,))
        return Taken(fact, "restated" if already else "new")


def _kept_in(known: dict[str, Fact], stated: Stated) -> Fact | None:
    """The fact that an earlier run merged this correction into."""
    said = read(stated.text).terms
    return next((fact for fact in known.values() if stated.corrects and said <= read(fact.text).terms), None)


@asynccontextmanager
async def open_diary(parts: Parts) -> AsyncIterator[Diary]:
    facts = await parts.facts()
    try:
        yield Diary(facts)
    finally:
        await facts.close()


agent: Agent[Diary] = Agent("memory", opens=open_diary)


@agent.handles(REMEMBER)
async def remember(told: Remember, ctx: Context[Diary]) -> Remembered:
    taken = await ctx.own.take_in(ctx.grant, told.text, message_id=told.message_id, said_at=_aware(told.said_at))
    return Remembered(
        new=tuple(one.fact.text for one in taken if one.outcome in ("new", "superseding")),
        restated=tuple(one.fact.text for one in taken if one.outcome == "restated"),
        superseded=tuple(
            text
            for one in taken
            for text in ([one.fact.text] if one.outcome == "outdated" else [old.text for old in one.replaced])
        ),
    )


@agent.handles(NOTE)
async def note(said: Ask, ctx: Context[Diary]) -> Answer:
    taken = await ctx.own.take_in(ctx.grant, said.text, message_id=said.message_id, said_at=ctx.own.now())
    if not taken:
        return Answer()
    speech = wording.speech(said.text)
    lines = [
        speech.kept_already.format(one.fact.text)
        if one.outcome == "restated"
        else speech.replaced.format(one.fact.text, one.replaced[0].text)
        if one.replaced
        else speech.noted.format(one.fact.text)
        for one in taken
    ]
    return Answer(
        text="\n".join(lines), sources=tuple(_source(one.fact) for one in taken), grounded=True, confidence=0.9
    )


@agent.handles(EXPORT_MEMORY)
async def export(_: Nothing, ctx: Context[Diary]) -> Told:
    facts = await ctx.own.facts.all(ctx.grant)
    return Told(
        memories=tuple(Memory(fact_id=fact.fact_id, text=fact.text, told_at=fact.told_at, score=1.0) for fact in facts)
    )


@agent.handles(FORGET)
async def forget(unwanted: Forget, ctx: Context[Diary]) -> Forgotten:
    texts = tuple(fact.text for fact in await ctx.own.forget(ctx.grant, unwanted.about))
    await ctx.bus.drop_results([REMEMBER.name, NOTE.name], texts)
    return Forgotten(texts=texts)


@agent.handles(RECALL)
async def recall(wanted: Recall, ctx: Context[Diary]) -> Recalled:
    diary, question = ctx.own, asked(wanted.about)
    near = await diary.facts.nearest(ctx.grant, wanted.about, limit=over_fetch(wanted.limit))
    kept = [fact for fact in near if touches(question, read(fact.text), fact.similarity)]
    ranked = rerank([_raised(question, fact) for fact in kept], now=diary.now(), latest=question.latest)
    return Recalled(memories=tuple(ranked[: wanted.limit]))


def _raised(question: Question, fact: Fact) -> Fact:
    """A fact that answers comes before one that only sounds like the question."""
    if not _answers(question, fact):
        return fact
    return replace(fact, similarity=min(1.0, fact.similarity + ANSWERS_LEAD))


@agent.handles(ANSWER_FROM_MEMORY)
async def answer(ask: Ask, ctx: Context[Diary]) -> Answer:
    """Asks the store and not `ask.memories`: those were live when they were recalled, and may have been corrected."""
    speech = wording.speech(ask.text)
    if asked(ask.text).everything:
        return _listing(await ctx.own.facts.all(ctx.grant), speech)
    found: dict[str, Fact] = {}
    for part in _AND.split(ask.text):
        found |= {fact.fact_id: fact for fact in await _answering(ctx, part)}
    facts = list(found.values())
    if not facts:
        return Answer()
    text = "\n".join(speech.told.format(wording.day(fact.told_at), fact.text) for fact in facts)
    return Answer(
        text=text,
        sources=tuple(_source(fact) for fact in facts),
        grounded=True,
        confidence=round(max(calibrated(fact.similarity) for fact in facts), 4),
    )


async def _answering(ctx: Context[Diary], text: str) -> list[Fact]:
    question = asked(text)
    if not question.wanted:
        return []
    near = await ctx.own.facts.nearest(ctx.grant, text, limit=CONSIDERED)
    return _chosen(question, [fact for fact in near if _answers(question, fact)])


def _answers(question: Question, fact: Fact) -> bool:
    return answers(question, fact.text, fact.similarity)


def _chosen(question: Question, fitting: list[Fact]) -> list[Fact]:
    """The best one; all of its kind where one may have several; the newest where only one can hold."""
    if not fitting:
        return []
    best = read(fitting[0].text)
    alike = fitting[:1] + [fact for fact in fitting[1:] if same_subject(read(fact.text), best)]
    if question.latest or best.single:
        return [max(alike, key=lambda fact: fact.told_at)]
    return alike[:ANSWERED]


def _listing(facts: Sequence[Fact], speech: wording.Speech) -> Answer:
    newest = sorted(facts, key=lambda fact: fact.told_at, reverse=True)[:LISTED]
    if not newest:
        return Answer(text=speech.nothing, grounded=True, confidence=1.0)
    lines = [f"• {fact.text}" for fact in newest]
    return Answer(
        text="\n".join([speech.known, *lines]),
        sources=tuple(_source(fact) for fact in newest),
        grounded=True,
        confidence=1.0,
    )


def _source(fact: Fact) -> Source:
    return Source(kind="memory", name=f"you, {wording.day(fact.told_at)}", quote=fact.text, reference=fact.fact_id)


def _aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
