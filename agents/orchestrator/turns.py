"""A chat's turn, step by step through the ledger: plan, store, recheck, send, settle."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

from agents.orchestrator import words
from agents.orchestrator.manners import before
from agents.orchestrator.sending import MOST_SENDS, Sender
from mesh import clock
from mesh.catalogue import say, say_error
from mesh.context import Local
from mesh.contracts.answers import Source
from mesh.contracts.orchestrator import CLEAR_TO_SEND, CONVERSE, Piece, Reply, SentFile, Standing, Turn
from mesh.envelope import Failed, Ok, Request, digest
from mesh.errors import ChannelError
from mesh.lease import Lease, LeaseLost, TurnRecord, Waiting

log = logging.getLogger(__name__)

MOST_CLAIMS = 4
"""A turn that was taken up so often without an end crashes its worker: it gets an apology."""
TYPING_SHOWS_S = 20.0
FILE_TOLD_S = 10.0
"""Who has sent a file is told sooner that it takes longer."""


@dataclass(frozen=True, slots=True)
class Patience:
    """In seconds from the moment that a turn is taken up: when the person sees that somebody types, when they are told
    that it takes longer, and when it ends."""

    typing: float = 2.0
    still_working: float = 20.0
    turn: float = 60.0
    file: float = 300.0
    """Of a turn that takes in a file."""


class Driver:
    """Takes a chat's turns while it holds the lease."""

    def __init__(self, sender: Sender, patience: Patience) -> None:
        self._sender = sender
        self._ledger = sender.ledger
        self._channel = sender.channel
        self._patience = patience
        self._planning: dict[str, asyncio.Task[Ok | Failed]] = {}

    def interrupt(self, chat: str) -> None:
        """The person cancels: what is planned for them here ends at once."""
        if task := self._planning.get(chat):
            task.cancel()

    async def take(self, chat: str, local: Local) -> None:
        async with self._ledger.lease(chat) as lease:
            if lease is None:
                return
            try:
                while turn := await lease.next():
                    await self._step(lease, turn, local)
            except LeaseLost:
                log.warning("! a lease was lost; another worker goes on with the chat")

    async def _step(self, lease: Lease, turn: TurnRecord, local: Local) -> None:
        if turn.state == "planned" and turn.claims > MOST_CLAIMS:
            log.error("! turn=%s claims=%d gives up with an apology", turn.turn_id, turn.claims)
            await lease.planned(turn, await self._apology(turn), gave_up=True)
            await self._sender.gave_up(turn)
        elif turn.state == "planned":
            reply = await self._planned(lease, turn, local)
            if reply and reply.silent:
                await lease.silenced(turn, "planned", reply.silent)
            elif reply:
                waiting = [] if turn.kind == "notice" else await self._ledger.waiting(turn.chat)
                waited, sources = await self._still_said(turn, waiting, local)
                reply = reply.model_copy(update={"sources": tuple(dict.fromkeys((*sources, *reply.sources)))})
                whole = await self._sender.pieced(turn, reply, waited, await self._spoken(turn))
                await lease.planned(turn, whole, took=len(waiting) if waited else 0)
        elif turn.state == "ready":
            await self._ready(lease, turn, local)
        elif turn.state == "sending":
            await self._sender.settle(lease, turn)

    async def _still_said(
        self, turn: TurnRecord, waiting: Sequence[Waiting], local: Local
    ) -> tuple[list[str], tuple[Source, ...]]:
        """What is said of what waited, and what it stands on. Of an answer whose sources have gone meanwhile, that they
        have; while that can't be looked up, nothing, and all of it goes on waiting."""
        turns = [await self._ledger.turn(each.turn_id) for each in waiting]
        stood = [each.reply.sources if each and each.reply else () for each in turns]
        standing = Standing(sources=tuple(source for sources in stood for source in sources))
        if not standing.sources:
            return [each.text for each in waiting], ()
        seconds = CLEAR_TO_SEND.within.total_seconds()
        outcome = await local(_request(turn, CLEAR_TO_SEND.name, standing.model_dump(mode="json"), seconds))
        if isinstance(outcome, Failed):
            return [], ()
        left = Standing.model_validate(outcome.value).sources
        gone = say("earlier_gone", await self._spoken(turn))
        texts = [
            each.text if all(source in left for source in sources) else gone
            for each, sources in zip(waiting, stood, strict=True)
        ]
        return list(dict.fromkeys(texts)), left

    async def _planned(self, lease: Lease, turn: TurnRecord, local: Local) -> Reply | None:
        """None: the person wrote on, or cancelled, and the turn is to be planned again."""
        messages = await self._ledger.messages(turn)
        if not messages:
            return await self._apology(turn, "the message is no longer kept")
        if (reply := await before(turn, messages, self._sender.people)) is not None:
            return reply
        file = any(message.kind == "document" for message in messages)
        if text := words.without_a_search(turn.kind, await self._spoken(turn), file=file):
            return Reply(text=text)
        if turn.kind == "over":
            return Reply(text=words.too_many(await self._ledger.left_out(turn.chat), await self._spoken(turn)))
        asked = Turn(
            chat=turn.chat,
            text="\n".join(message.text for message in messages if message.text.strip()),
            media=sum(message.media for message in messages),
            message_id=messages[-1].message_id,
            history=await self._ledger.window(turn.chat),
            kind=messages[-1].kind,
            files=tuple(SentFile(**dataclasses.asdict(each)) for message in messages for each in message.attachments),
            quoted=messages[-1].quoted,
            button=messages[-1].button,
        )
        request = _request(turn, CONVERSE.name, asked.model_dump(mode="json"), self._left(turn))
        task = asyncio.ensure_future(local(request))
        self._planning[turn.chat] = task
        company = asyncio.create_task(self._keep_company(lease, turn, messages[-1].message_id))
        try:
            outcome = await task
        except asyncio.CancelledError:
            if not task.cancelled() or _is_cancelled():
                task.cancel()
                raise
            return None if await lease.gather(turn) else Reply(text=say("cancelled", await self._spoken(turn)))
        finally:
            del self._planning[turn.chat]
            company.cancel()
            await asyncio.gather(company, return_exceptions=True)
        if isinstance(outcome, Failed):
            text = say_error(outcome.code, outcome.user_text, await self._spoken(turn))
            return Reply(text=text, steps=(f"{CONVERSE.name} {outcome.code}",))
        return Reply.model_validate(outcome.value)

    async def _spoken(self, turn: TurnRecord) -> str:
        """The person's language, as far as it is known."""
        return (await self._sender.people.of(turn.recipient)).language

    async def _apology(self, turn: TurnRecord, *steps: str) -> Reply:
        return Reply(text=say("crashing", await self._spoken(turn)), steps=steps)

    def _left(self, turn: TurnRecord) -> float:
        """Until the turn's deadline; one that was interrupted by a crash has a third of its time in any case."""
        whole = self._patience.file if turn.kind == "media" else self._patience.turn
        return max(turn.planned_at + whole - turn.claimed_at, whole / 3)

    async def _keep_company(self, lease: Lease, turn: TurnRecord, message_id: str) -> None:
        """Somebody types, and once: it takes longer. Neither is the answer, so neither is tried again."""
        people = {"sender": turn.sender, "recipient": turn.recipient}
        began = time.monotonic()
        await asyncio.sleep(self._patience.typing)
        still_working = min(self._patience.still_working, FILE_TOLD_S if turn.kind == "media" else math.inf)
        told = still_working <= 0
        while True:
            await self._channel.typing(**people, message_id=message_id)
            until_told = still_working - (time.monotonic() - began)
            await asyncio.sleep(TYPING_SHOWS_S if told else min(max(0.0, until_told), TYPING_SHOWS_S))
            if not told and time.monotonic() - began >= still_working:
                told = True
                if await lease.first_time(turn, "still_working"):
                    with contextlib.suppress(ChannelError):
                        await self._channel.send(**people, text=say("still_working", await self._spoken(turn)))

    async def _ready(self, lease: Lease, turn: TurnRecord, local: Local) -> None:
        if await lease.gather(turn):
            return  # a newer message made the draft stale
        reply = turn.reply or await self._apology(turn)
        if not reply.regardless:
            clear = await local(_request(turn, CLEAR_TO_SEND.name, {}, CLEAR_TO_SEND.within.total_seconds()))
            if isinstance(clear, Failed) and reply.text != clear.user_text:
                before = reply.pieces[: turn.part]
                reply = Reply(
                    text=clear.user_text,
                    pieces=(*before, Piece(text=clear.user_text)) if before else (),
                    steps=(*reply.steps, f"{CLEAR_TO_SEND.name} {clear.code}"),
                )
                await lease.revised(turn, reply, alone=True)
            if silence := (await self._sender.people.of(turn.recipient)).silence:
                await lease.silenced(turn, "ready", silence)
                return
        if turn.attempts >= MOST_SENDS:
            await lease.died(turn, "ready", f"not sent after {turn.attempts} attempts")
            await self._sender.gave_up(turn)
            return
        await lease.sending(turn)
        await self._sender.send(lease, turn, reply)


def _is_cancelled() -> bool:
    """Whether it is this work that is to end, and not only what it waited for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _request(turn: TurnRecord, skill: str, payload: object, seconds: float) -> Request:
    return Request.model_validate(
        {
            "client": turn.recipient,
            "skill": skill,
            "payload": payload,
            "trace": turn.turn_id[-16:],
            "key": digest(*turn.messages) if len(turn.messages) > 1 else turn.turn_id,
            "deadline": clock.now() + seconds,
        }
    )
