"""A chat's turn, step by step through the ledger: plan, store, recheck, send, settle."""

from __future__ import annotations

import asyncio
import logging
import time
from datetime import UTC, datetime

from agents.orchestrator import words
from mesh.context import Local
from mesh.contracts import CLEAR_TO_SEND, CONVERSE, Reply, Turn
from mesh.envelope import Failed, Request
from mesh.errors import Ambiguous, Refused, Throttled
from mesh.lease import Lease, LeaseLost, TurnRecord
from mesh.ledger import Ledger
from mesh.ports import Channel

log = logging.getLogger(__name__)

MOST_CLAIMS = 4
"""A turn that was taken up so often without an end crashes its worker: it gets an apology."""
MOST_SENDS = 30
SETTLE_AFTER_S = 2.0
"""A provider may list a message a moment after it took it."""
BACK_OFF_S = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)


class Driver:
    """Takes a chat's turns while it holds the lease."""

    def __init__(self, ledger: Ledger, channel: Channel, *, turn_seconds: float) -> None:
        self._ledger = ledger
        self._channel = channel
        self._turn_seconds = turn_seconds

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
            await lease.planned(turn, await self._plan(turn, local))
        elif turn.state == "ready":
            await self._ready(lease, turn, local)
        elif turn.state == "sending":
            await self._settle(lease, turn)

    async def _plan(self, turn: TurnRecord, local: Local) -> Reply:
        message = await self._ledger.message(turn.turn_id)
        if message is None:
            return Reply(text=words.CRASHING, steps=("the message is no longer kept",))
        outcome = await local(
            _request(
                turn,
                CONVERSE.name,
                Turn(
                    chat=turn.chat,
                    text=message.text,
                    media=message.media,
                    message_id=turn.turn_id,
                    history=await self._ledger.window(turn.chat),
                ).model_dump(mode="json"),
                self._turn_seconds,
            )
        )
        if isinstance(outcome, Failed):
            return Reply(text=outcome.user_text, steps=(f"{CONVERSE.name} {outcome.code}",))
        return Reply.model_validate(outcome.value)

    async def _ready(self, lease: Lease, turn: TurnRecord, local: Local) -> None:
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
        await asyncio.sleep(max(0.0, turn.sending_at + SETTLE_AFTER_S - time.time()))
        reply = turn.reply or Reply(text=words.CRASHING)
        try:
            held = await self._channel.find(
                sender=turn.sender,
                recipient=turn.recipient,
                text=words.fit(reply.text, self._channel.limit),
                since=datetime.fromtimestamp(turn.first_intent_at or turn.sending_at, UTC),
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
        message = await self._ledger.message(turn.turn_id)
        await lease.sent(turn, provider_id, message.text if message else "", reply)


def _request(turn: TurnRecord, skill: str, payload: object, seconds: float) -> Request:
    return Request.model_validate(
        {
            "client": turn.recipient,
            "skill": skill,
            "payload": payload,
            "trace": turn.turn_id[-16:],
            "key": turn.turn_id,
            "deadline": time.time() + seconds,
        }
    )


def _back_off(times: int) -> float:
    return BACK_OFF_S[min(times, len(BACK_OFF_S) - 1)]
