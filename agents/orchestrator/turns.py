"""A chat's turn, step by step through the ledger: plan, store, recheck, send, settle."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from dataclasses import dataclass
from datetime import UTC, datetime

from agents.orchestrator import words
from mesh import clock
from mesh.context import Local
from mesh.contracts import CLEAR_TO_SEND, CONVERSE, Reply, Turn
from mesh.envelope import Failed, Ok, Request, digest
from mesh.errors import Ambiguous, ChannelError, Refused, Throttled
from mesh.lease import Lease, LeaseLost, TurnRecord
from mesh.ledger import Ledger
from mesh.ports import Channel

log = logging.getLogger(__name__)

MOST_CLAIMS = 4
"""A turn that was taken up so often without an end crashes its worker: it gets an apology."""
MOST_SENDS = 30
SETTLE_AFTER_S = 2.0
"""A provider may list a message a moment after it took it."""
TYPING_SHOWS_S = 20.0
CLOCKS_DIFFER_S = 120.0
"""How far the provider's clock may be from Redis's. A reply of an earlier turn in the same words is told by its id."""
BACK_OFF_S = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)


@dataclass(frozen=True, slots=True)
class Patience:
    """In seconds from the moment that a turn is taken up: when the person sees that somebody types, when they are told
    that it takes longer, and when it ends."""

    typing: float = 2.0
    still_working: float = 20.0
    turn: float = 60.0


class Driver:
    """Takes a chat's turns while it holds the lease."""

    def __init__(self, ledger: Ledger, channel: Channel, patience: Patience) -> None:
        self._ledger = ledger
        self._channel = channel
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
            await lease.planned(turn, Reply(text=words.CRASHING), gave_up=True)
        elif turn.state == "planned":
            reply = await self._planned(lease, turn, local)
            if reply:
                await lease.planned(turn, reply)
        elif turn.state == "ready":
            await self._ready(lease, turn, local)
        elif turn.state == "sending":
            await self._settle(lease, turn)

    async def _planned(self, lease: Lease, turn: TurnRecord, local: Local) -> Reply | None:
        """None: the person wrote on, or cancelled, and the turn is to be planned again."""
        messages = await self._ledger.messages(turn)
        if not messages:
            return Reply(text=words.CRASHING, steps=("the message is no longer kept",))
        if turn.kind in words.WITHOUT_A_SEARCH:
            return Reply(text=words.WITHOUT_A_SEARCH[turn.kind])
        if turn.kind == "over":
            return Reply(text=words.too_many(await self._ledger.left_out(turn.chat)))
        asked = Turn(
            chat=turn.chat,
            text="\n".join(message.text for message in messages if message.text.strip()),
            media=sum(message.media for message in messages),
            message_id=messages[-1].message_id,
            history=await self._ledger.window(turn.chat),
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
            return None if await lease.gather(turn) else Reply(text=words.CANCELLED)
        finally:
            del self._planning[turn.chat]
            company.cancel()
            await asyncio.gather(company, return_exceptions=True)
        if isinstance(outcome, Failed):
            return Reply(text=outcome.user_text, steps=(f"{CONVERSE.name} {outcome.code}",))
        return Reply.model_validate(outcome.value)

    def _left(self, turn: TurnRecord) -> float:
        """Until the turn's deadline; one that was interrupted by a crash has a third of its time in any case."""
        whole = self._patience.turn
        return max(turn.planned_at + whole - turn.claimed_at, whole / 3)

    async def _keep_company(self, lease: Lease, turn: TurnRecord, message_id: str) -> None:
        """Somebody types, and once: it takes longer. Neither is the answer, so neither is tried again."""
        people = {"sender": turn.sender, "recipient": turn.recipient}
        began = time.monotonic()
        await asyncio.sleep(self._patience.typing)
        told = self._patience.still_working <= 0
        while True:
            await self._channel.typing(**people, message_id=message_id)
            until_told = self._patience.still_working - (time.monotonic() - began)
            await asyncio.sleep(TYPING_SHOWS_S if told else min(max(0.0, until_told), TYPING_SHOWS_S))
            if not told and time.monotonic() - began >= self._patience.still_working:
                told = True
                if await lease.first_time(turn, "still_working"):
                    with contextlib.suppress(ChannelError):
                        await self._channel.send(**people, text=words.STILL_WORKING)

    async def _ready(self, lease: Lease, turn: TurnRecord, local: Local) -> None:
        if await lease.gather(turn):
            return  # a newer message made the draft stale
        reply = turn.reply or Reply(text=words.CRASHING)
        clear = await local(_request(turn, CLEAR_TO_SEND.name, {}, CLEAR_TO_SEND.within.total_seconds()))
        if isinstance(clear, Failed) and reply.text != clear.user_text:
            reply = Reply(text=clear.user_text, steps=(*reply.steps, f"{CLEAR_TO_SEND.name} {clear.code}"))
            await lease.revised(turn, reply)
        if turn.attempts >= MOST_SENDS:
            await lease.died(turn, "ready", f"not sent after {turn.attempts} attempts")
            return
        await lease.sending(turn)
        await self._send(lease, turn, reply)

    async def _send(self, lease: Lease, turn: TurnRecord, reply: Reply) -> None:
        lease.check()
        try:
            provider_id = await self._channel.send(
                sender=turn.sender, recipient=turn.recipient, text=words.fit(reply.text, self._channel.limit)
            )
        except Throttled as error:
            log.info("~ turn=%s throttled detail=%s", turn.turn_id, error.detail)
            await asyncio.sleep(max(error.retry_after, _back_off(turn.attempts)))
            await lease.not_sent(turn)
        except Ambiguous as error:
            log.warning("! turn=%s ambiguous send detail=%s", turn.turn_id, error.detail)
        except Refused as error:
            log.error("! turn=%s refused code=%s", turn.turn_id, error.provider_code)
            await lease.died(turn, "sending", f"the provider refused it: {error.provider_code}")
        else:
            await self._sent(lease, turn, provider_id, reply)

    async def _settle(self, lease: Lease, turn: TurnRecord) -> None:
        """It may have been taken before the line broke or the worker died: look before sending again."""
        await asyncio.sleep(max(0.0, turn.sending_at + SETTLE_AFTER_S - turn.claimed_at))
        reply = turn.reply or Reply(text=words.CRASHING)
        try:
            held = await self._channel.find(
                sender=turn.sender,
                recipient=turn.recipient,
                text=words.fit(reply.text, self._channel.limit),
                since=datetime.fromtimestamp((turn.first_intent_at or turn.sending_at) - CLOCKS_DIFFER_S, UTC),
            )
        except (Throttled, Ambiguous) as error:
            log.warning("! turn=%s can't be settled yet: %s", turn.turn_id, error.code)
            await asyncio.sleep(_back_off(turn.claims))
            return
        for provider_id in held:
            if not await self._ledger.is_known(provider_id):
                await self._sent(lease, turn, provider_id, reply)
                return
        await lease.not_sent(turn)

    async def _sent(self, lease: Lease, turn: TurnRecord, provider_id: str, reply: Reply) -> None:
        said = "\n".join(message.text for message in await self._ledger.messages(turn))
        await lease.sent(turn, provider_id, said, reply)


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


def _back_off(times: int) -> float:
    return BACK_OFF_S[min(times, len(BACK_OFF_S) - 1)]
