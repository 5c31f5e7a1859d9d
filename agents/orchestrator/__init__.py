"""Owns a chat's turn: who is it, what do we remember, which skill is it for, what does it say."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from agents.orchestrator import noting, words
from agents.orchestrator.alerts import Alerts
from agents.orchestrator.attached import heard, noted, taken_in
from agents.orchestrator.catching_up import keep_catching_up
from agents.orchestrator.commanding import COMMANDS, KEPT_DAYS, Order
from agents.orchestrator.manners import spoken_by
from agents.orchestrator.notes_asked import asked
from agents.orchestrator.routing import Router
from agents.orchestrator.sending import Sender
from agents.orchestrator.standing import still_there
from agents.orchestrator.turns import Driver, Patience
from mesh.bus import Bus
from mesh.cards import Cards, Routable
from mesh.catalogue import say, say_error
from mesh.commands import command_of
from mesh.context import Context
from mesh.contracts.answers import Answer, Ask, Memory, Nothing
from mesh.contracts.memory import NOTE, RECALL, REMEMBER, Recall, Remember
from mesh.contracts.orchestrator import CLEAR_TO_SEND, CONVERSE, TAKE_TURNS, Chat, Piece, Reply, Standing, Turn
from mesh.dispatch import Agent
from mesh.errors import Denied, MeshError, Unavailable
from mesh.ledger import Ledger, turn_kick
from mesh.people import Person
from mesh.ports.models import Transcriber
from mesh.wiring import Parts

log = logging.getLogger(__name__)

MOST_SKILLS = 4
"""How many skills may be asked before it is said that the answer is not known."""
INJECTED = 2
DRAFTED_S = 900.0
"""No turn is drafted for longer."""
OBEYED = {**COMMANDS, **noting.COMMANDS}
SWEEP_EVERY_S = 2.0
OVERDUE_S = 3.0


@dataclass(frozen=True, slots=True)
class Desk:
    driver: Driver
    sender: Sender
    router: Router
    cards: Cards
    transcriber: Transcriber | None = None
    greets: bool = True
    document_buttons: str = ""


@asynccontextmanager
async def open_desk(parts: Parts) -> AsyncIterator[Desk]:
    ledger, chosen = parts.ledger(), parts.settings
    patience = Patience(still_working=chosen.still_working_seconds, turn=chosen.turn_seconds)
    channel = parts.channel()
    people = parts.people()
    alerts = Alerts(ledger, parts.counters(), people, number=chosen.number, owner=chosen.system_owner)
    links = parts.links()

    async def link_of(piece: Piece, client: str) -> str:
        return await links.address(piece.document_id, client, piece.name)

    sender = Sender(ledger, channel, people, alerts, link_of, chosen.window_template)
    driver = Driver(sender, patience)
    router = Router(parts.embedder())
    roster = await parts.roster()
    beside = [
        asyncio.create_task(_sweep(ledger, parts.bus), name="sweeper"),
        asyncio.create_task(_hear_cancels(ledger, driver), name="cancels"),
        asyncio.create_task(sender.keep_following_up(), name="following up"),
    ]
    if chosen.catch_up_seconds:
        first, *others = chosen.numbers
        catching_up = keep_catching_up(ledger, channel, first, chosen.catch_up_seconds, *others)
        beside.append(asyncio.create_task(catching_up, name="catching up"))
    try:
        cards = Cards(parts.bus.redis, roster.agents)
        yield Desk(driver, sender, router, cards, parts.transcriber(), chosen.greet, chosen.document_buttons)
    finally:
        for task in beside:
            task.cancel()
        await asyncio.gather(*beside, return_exceptions=True)


agent: Agent[Desk] = Agent("orchestrator", opens=open_desk, at_once=256)


@agent.handles(TAKE_TURNS)
async def take_turns(chat: Chat, ctx: Context[Desk]) -> Nothing:
    await ctx.own.driver.take(chat.chat, ctx.local)
    return Nothing()


@agent.handles(CLEAR_TO_SEND)
async def clear_to_send(standing: Standing, ctx: Context[Desk]) -> Standing:
    """The gate has just looked again: being here is the answer to whether anything may be sent."""
    return Standing(sources=tuple(await still_there(standing.sources, ctx)))


@agent.handles(CONVERSE)
async def converse(turn: Turn, ctx: Context[Desk]) -> Reply:
    people, client = ctx.own.sender.people, ctx.grant.client
    person = await people.of(client)
    language = spoken_by(person, _own_words(turn) if person.language else turn.text)
    reply = await _reply(turn, person, language, ctx)
    noted: dict[str, str | float] = {}
    if language != person.language:
        noted["language"] = language
    if reply.skill:
        noted |= {"answered_by": turn.message_id, "answered_at": time.time()}
    if ctx.own.greets and await _to_be_greeted(person, turn, ctx.own.sender.ledger):
        noted |= {"greeted_by": turn.message_id, "greeted_at": time.time()}
        reply = _prefixed(reply, say("first_contact", language, days=KEPT_DAYS))
    if noted:
        await people.note(client, **noted)
    return reply


def _own_words(turn: Turn) -> str:
    """HELP is the same word in every language, and a file's name may be in any."""
    return "" if turn.files or command_of(turn.text, turn.button) else turn.text


async def _to_be_greeted(person: Person, turn: Turn, ledger: Ledger) -> bool:
    """A greeting whose draft was not sent, since they wrote on, is still to be given: the turn is the same."""
    if person.greeted_by in ("", turn.message_id):
        return True
    if time.time() - person.greeted_at > DRAFTED_S:
        return False
    now, then = [await ledger.turn(each) for each in (turn.message_id, person.greeted_by)]
    return now is not None and then is not None and now.turn_id == then.turn_id


def _prefixed(reply: Reply, text: str) -> Reply:
    pieces = (Piece(text=text), *reply.pieces) if reply.pieces else ()
    return reply.model_copy(update={"text": f"{text}\n\n{reply.text}", "pieces": pieces})


async def _reply(turn: Turn, person: Person, language: str, ctx: Context[Desk]) -> Reply:
    sender = ctx.own.sender
    command = command_of(turn.text, turn.button)
    order = command and Order(command, turn, person, language, sender.ledger, sender.people, sender.alerts)
    if order and order.command.name in OBEYED and not turn.files:
        return await OBEYED[order.command.name](order, ctx)
    if turn.kind in ("document", "image") and turn.files:
        confirmed = await taken_in(turn, language, ctx, sender.channel, sender.people, ctx.own.document_buttons)
        if order and order.command.name in ("note", "save"):
            return await noting.beside_a_file(order, confirmed, ctx)
        return await _answered_too(confirmed, turn, language, ctx) if turn.text.strip() else confirmed
    if turn.kind == "audio" and turn.files:
        said = await heard(turn, language, sender.channel, ctx.own.transcriber)
        if isinstance(said, Reply):
            return said
        asked = turn.model_copy(update={"text": said})
        quoted = Reply(text=say("voice_heard", language, text=said))
        return await _answered_too(quoted, asked, spoken_by(person, said), ctx)
    word = noted(turn, language)
    if word and not (turn.kind in ("image", "video") and turn.text.strip()):
        return word
    reply = await _answer(turn, language, ctx)
    return _prefixed(reply, word.text) if word else reply


async def _answered_too(first: Reply, turn: Turn, language: str, ctx: Context[Desk]) -> Reply:
    """What was done with a file is said, whatever becomes of the question beside it."""
    try:
        answer = await _answer(turn, language, ctx)
    except MeshError as error:
        answer = Reply(text=say_error(error.code, error.user_text, language), steps=(f"answer {error.code}",))
    together = _prefixed(answer, first.text)
    return together.model_copy(update={"sources": (*first.sources, *answer.sources)})


async def _answer(turn: Turn, language: str, ctx: Context[Desk]) -> Reply:
    if wanted := asked(turn.text):
        listed = await noting.answered(wanted, partial(say, language=language), ctx)
        if listed:
            return listed
    small = await ctx.own.router.small_talk(turn.text, {name: card for name, (card, _) in words.SMALL_TALK.items()})
    if small:
        return Reply(text=say(words.SMALL_TALK[small][1], language), steps=(f"small talk: {small}",))
    if turn.quoted and (quoted := await ctx.own.sender.ledger.said(turn.quoted, turn.chat)):
        turn = turn.model_copy(update={"history": (*turn.history, quoted)})
    recalled, ranked = await asyncio.gather(_recalled(turn, ctx), _ranked(turn, ctx))
    ask = Ask(memories=recalled, history=turn.history, text=turn.text, message_id=turn.message_id)
    reply = await _first_grounded(ask, ranked, language, ctx)
    if reply.skill != NOTE.name:
        await _remember(turn, ctx)
    if not reply.skill:
        await ctx.own.sender.alerts.unanswered()
    return reply


async def _recalled(turn: Turn, ctx: Context[Desk]) -> tuple[Memory, ...]:
    if not ctx.grant.covers(RECALL.needs):
        return ()
    try:
        if not await ctx.own.cards.serves(RECALL):
            return ()
        return (await ctx.ask(RECALL, Recall(about=turn.text, limit=INJECTED))).memories
    except MeshError as error:  # an answer without memory is better than none
        log.warning("! recall failed code=%s detail=%s", error.code, error.detail)
        return ()


async def _ranked(turn: Turn, ctx: Context[Desk]) -> list[Routable]:
    """Only skills that this grant covers, of agents that are on; best first."""
    cards = {found.skill.name: found for found in await ctx.own.cards.current()}
    covered = {name: found for name, found in cards.items() if ctx.grant.covers(found.skill.needs)}
    if not covered:
        if any(ctx.grant.covers(found.skill.needs) for found in await ctx.own.cards.switched_off()):
            raise Unavailable(detail="what is covered is switched off")
        raise Denied(ctx.grant.refusal, detail="no skill is covered")
    ranked = await ctx.own.router.ranked(turn.text, {name: found.card for name, found in covered.items()})
    return [covered[name] for name, _ in ranked[:MOST_SKILLS]]


async def _first_grounded(ask: Ask, ranked: list[Routable], language: str, ctx: Context[Desk]) -> Reply:
    steps: list[str] = []
    failure: MeshError | None = None
    for routable in ranked:
        began = time.perf_counter()
        try:
            if not await ctx.own.cards.serves(routable.skill):  # switched off while another skill was asked
                raise Unavailable
            answer = await ctx.ask(routable.skill, ask)
            outcome = "grounded" if answer.grounded else "nothing found"
        except MeshError as error:
            answer, outcome = Answer(), error.code
            failure = failure or error
        steps.append(f"{routable.skill.name} {outcome} {(time.perf_counter() - began) * 1000:.0f} ms")
        steps += [f"  {step}" for step in answer.steps]
        if answer.grounded:
            return Reply(
                text=words.with_source(answer.text, answer.sources, language),
                sources=answer.sources,
                skill=routable.skill.name,
                steps=tuple(steps),
            )
    if failure:
        return Reply(text=say_error(failure.code, failure.user_text, language), steps=tuple(steps))
    return Reply(text=say("unknown", language), steps=tuple(steps))


async def _remember(turn: Turn, ctx: Context[Desk]) -> None:
    """Off the reply path."""
    if not ctx.grant.covers(REMEMBER.needs) or len(turn.text) > 2000:
        return
    try:
        if not await ctx.own.cards.serves(REMEMBER):
            return
        said = Remember(text=turn.text, message_id=turn.message_id, said_at=datetime.now(UTC))
        await ctx.tell(REMEMBER, said)
    except MeshError as error:
        log.warning("! nothing was remembered code=%s detail=%s", error.code, error.detail)


async def _sweep(ledger: Ledger, bus: Bus) -> None:
    """Kicks chats that are due and that no worker holds: a lost job must not become silence."""
    while True:
        await asyncio.sleep(SWEEP_EVERY_S)
        try:
            for chat in await ledger.overdue(OVERDUE_S):
                await bus.tell(turn_kick(chat))
        except MeshError as error:
            log.warning("! sweep failed code=%s detail=%s", error.code, error.detail)


async def _hear_cancels(ledger: Ledger, driver: Driver) -> None:
    async for chat in ledger.cancels():
        driver.interrupt(chat)
