"""The analysis agent: what takes more than one look-up. It has no store of its own; all that it finds comes from other
agents' skills, with the grant of whoever asks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from agents.analysis.deciding import ByModel, ByRules, plan_of
from agents.analysis.grounding import grounded
from agents.analysis.investigating import Investigated, investigate
from agents.analysis.tools import toolbox
from mesh.cards import Cards
from mesh.context import Context
from mesh.contracts.analysis import ANALYSE
from mesh.contracts.answers import Answer, Ask
from mesh.dispatch import Agent
from mesh.ports.models import ChatModel
from mesh.wiring import Parts


@dataclass(frozen=True, slots=True)
class Study:
    model: ChatModel | None
    cards: Cards


@asynccontextmanager
async def open_study(parts: Parts) -> AsyncIterator[Study]:
    model = parts.chat_model()
    if model:
        await model.probe()
    roster = await parts.roster()
    yield Study(model, Cards(parts.bus.redis, roster.agents))


agent: Agent[Study] = Agent("analysis", opens=open_study)


@agent.handles(ANALYSE)
async def analyse(ask: Ask, ctx: Context[Study]) -> Answer:
    """By the model where there is one; by rules where there is none, or where it came to nothing."""
    by_model = await _investigated(ask, ctx, ByModel(ctx.own.model)) if ctx.own.model else None
    if by_model and by_model.conclusion and by_model.ended == "finished":
        return _answer(by_model, ask)
    plan = plan_of(ask.text)
    by_rules = await _investigated(ask, ctx, ByRules(plan)) if plan else None
    found = by_rules if by_rules and by_rules.conclusion else by_model or by_rules
    return _answer(found, ask) if found else Answer()


async def _investigated(ask: Ask, ctx: Context[Study], mind: ByModel | ByRules) -> Investigated:
    own = ctx.own.cards
    cards = [found for found in await own.current() if found.skill.name != ANALYSE.name]
    return await investigate(ask, mind, toolbox(ask, ctx, own.serves, cards), deadline=ctx.request.deadline)


def _answer(investigated: Investigated, ask: Ask) -> Answer:
    steps = (*investigated.steps, investigated.ended)
    found = investigated.conclusion
    if found is None:
        return Answer(steps=steps)
    known = [text for each in investigated.pad.findings for text in (each.claim, each.quote)]
    still_open = tuple(each for each in investigated.pad.open if grounded(each, known, question=ask.text))
    return Answer(
        text=found.text,
        sources=found.sources,
        grounded=True,
        confidence=found.confidence,
        unanswered=still_open if investigated.ended != "finished" else (),
        steps=steps,
    )
