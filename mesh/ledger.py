"""What promises; arq only executes. Every accepted message ends in one outcome, per chat in the order accepted.

A message is `accepted` into its chat's list; a turn takes it through `planned → ready → sending → sent | dead`, under
the chat's lease (see `mesh.lease`).
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager

from redis.asyncio import Redis
from redis.exceptions import RedisError

from mesh import clock, scripts
from mesh.bus import enqueue_keys, pack
from mesh.connections import Batched, answer
from mesh.contracts.answers import Line
from mesh.contracts.orchestrator import TAKE_TURNS, Piece
from mesh.envelope import MESH, Request, digest, new_trace
from mesh.incoming import NOTICE, is_stop, kind_of, pack_inbound, unpack_inbound
from mesh.lease import (
    DEAD,
    DUE,
    KEPT_MS,
    OUTCOMES,
    QUEUES,
    TURN,
    UNDELIVERED,
    Lease,
    Leases,
    Quiet,
    TurnRecord,
    Waiting,
    client_key,
    lease_key,
    message_key,
    overflow_key,
    person_key,
    queue_key,
    reachable,
    record_of,
    sent_keys,
    turn_key,
    waiting_key,
    waiting_of,
    window_key,
)
from mesh.ports.channel import Delivery, Inbound
from mesh.versions import REDIS, REDIS_KEY

TURN_JOB_S = 24 * 3600.0

_RANK = ("queued", "sending", "sent", "delivered", "read")
_ENDED = ("failed", "undelivered")

RECENT = "mesh:recent"

log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, slots=True)
class Accepted:
    """A message, and the turn that answers it once one has begun. `accepted_at` is in seconds since the epoch."""

    message: Inbound
    accepted_at: float
    turn: TurnRecord | None


@dataclasses.dataclass(frozen=True, slots=True)
class Undelivered:
    """A message of ours that the provider took, and could not deliver."""

    turn_id: str
    provider_id: str
    code: str = ""

    @property
    def entry(self) -> str:
        return f"{self.turn_id}\n{self.provider_id}\n{self.code}"


@dataclasses.dataclass(frozen=True, slots=True)
class Caps:
    """How many messages may wait: in one chat, and of one client in all of its chats."""

    chat: int = 50
    client: int = 200


NEVER_QUIET, USUAL_CAPS = Quiet(), Caps()
BEFORE = "mesh:catch-up:before"
LOOKING, LOOKED, SEEN = "mesh:catch-up:looking", "mesh:catch-up:looked", "mesh:catch-up:seen"
CANCELS = "mesh:cancel"
"""The channel on which a chat is named when its person cancels."""


class Ledger:
    """Over a Redis client that it does not own. Raises `Unavailable` when Redis can't be reached or is full."""

    def __init__(self, redis: Redis, *, quiet: Quiet = NEVER_QUIET, caps: Caps = USUAL_CAPS) -> None:
        self._redis = redis
        self._caps = caps
        self._accept = Batched(redis, scripts.ACCEPT)
        self._leases = Leases(redis, quiet)
        self._delivered = redis.register_script(scripts.DELIVERED)
        self._overdue = redis.register_script(scripts.OVERDUE)
        self._look = redis.register_script(scripts.LOOK)
        self._looked = redis.register_script(scripts.LOOKED)
        self._undelivered = redis.register_script(scripts.UNDELIVERED)
        self._wait = redis.register_script(scripts.WAIT)

    async def close(self) -> None:
        await self._accept.close()

    # ── the gateway's side ────────────────────────────────────────────────────────────────────────────────────

    async def accept(self, message: Inbound) -> bool:
        """Durable and deduplicated when it returns; False for a message that was accepted before. One that is over the
        caps is kept, and answered together with the others that are: by a word that it was too much."""
        request = _turn_request(message.chat, message.message_id)
        with reachable():
            result = await self._accept(
                [
                    message_key(message.message_id),
                    queue_key(message.chat),
                    DUE,
                    RECENT,
                    *enqueue_keys(TAKE_TURNS.queue, request.job_id)[:3],
                    client_key(message.sender),
                    overflow_key(message.chat),
                    CANCELS,
                    person_key(message.sender),
                ],
                [
                    message.message_id,
                    message.chat,
                    pack_inbound(message),
                    kind_of(message),
                    KEPT_MS,
                    request.job_id,
                    pack(request),
                    int(TURN_JOB_S * 1000),
                    *QUEUES,
                    self._caps.chat,
                    self._caps.client,
                    int(is_stop(message)),
                ],
            )
        return bool(result)

    async def delivered(self, delivery: Delivery) -> None:
        """Callbacks come out of order: a later state is never undone by an earlier one."""
        failed = delivery.state in _ENDED
        rank = len(_RANK) if failed else _rank(delivery.state)
        with reachable():
            await self._delivered(
                keys=[*sent_keys(delivery.provider_id)],
                args=[TURN, delivery.provider_id, delivery.state, rank, delivery.error_code, int(failed)],
            )

    async def ready(self) -> bool:
        """False also where a newer release has written what is there."""
        try:
            kept = await answer(self._redis.get(REDIS_KEY))
        except RedisError:
            return False
        return kept is None or kept == str(REDIS).encode()

    # ── the orchestrator's side ───────────────────────────────────────────────────────────────────────────────

    def lease(self, chat: str) -> AbstractAsyncContextManager[Lease | None]:
        """None when another worker has the chat: it will find what was added."""
        return self._leases.hold(chat)

    async def window(self, chat: str) -> tuple[Line, ...]:
        """The last lines of the conversation, oldest first."""
        with reachable():
            lines = await answer(self._redis.lrange(window_key(chat), 0, -1))
        return tuple(Line.model_validate_json(line) for line in lines)

    async def forget(self, chat: str) -> int:
        """The words of both sides, of all turns that have ended; that they were there, and how they ended, stays.
        Returns how many messages that were. Looks through everything that is kept: rare, and not quick."""
        forgotten = 0
        with reachable():
            await self._redis.delete(window_key(chat), waiting_key(chat))
            async for key in self._redis.scan_iter(match=message_key("*"), count=1000):
                whose, state, turn, body = await answer(self._redis.hmget(key, ["chat", "state", "turn", "body"]))
                if whose != chat.encode() or (state or b"").decode() not in (*OUTCOMES, "over"):
                    continue
                left = dataclasses.replace(
                    unpack_inbound(body), text="", fields={}, attachments=(), quoted="", button=""
                )
                await answer(self._redis.hset(key, "body", pack_inbound(left)))
                await answer(self._redis.hdel(turn_key((turn or b"").decode()), "reply"))
                forgotten += 1
        return forgotten

    async def said(self, provider_id: str, chat: str) -> Line | None:
        """What a message of this chat said, ours or the person's; None when it is kept no more, or of another chat."""
        message = await self.message(provider_id)
        if message:
            return Line(who="person", text=message.text) if message.chat == chat and message.text else None
        turn = await self.turn_of(provider_id, chat)
        return Line(who="mesh", text=turn.reply.text) if turn and turn.reply else None

    async def turn_of(self, provider_id: str, chat: str) -> TurnRecord | None:
        """The turn of this chat that a message, ours or the person's, belongs to."""
        with reachable():
            turn_id = await self._redis.get(sent_keys(provider_id)[0])
        turn = await self.turn(turn_id.decode() if turn_id else provider_id)
        return turn if turn and turn.chat == chat else None

    async def message(self, message_id: str) -> Inbound | None:
        with reachable():
            body = await answer(self._redis.hget(message_key(message_id), "body"))
        return unpack_inbound(body) if body else None

    async def messages(self, turn: TurnRecord) -> list[Inbound]:
        """Those of a turn that are still kept, in order."""
        found = [await self.message(message_id) for message_id in turn.messages]
        return [message for message in found if message]

    async def left_out(self, chat: str) -> int:
        """How many messages of a chat were over the cap, since it was last asked."""
        with reachable():
            return int(await answer(self._redis.getdel(overflow_key(chat))) or 0)

    async def begin_look(self, every_s: float) -> float | None:
        """For who looks at what the provider received: since when, in seconds since the epoch; 0 when nobody ever did.
        None when another has looked in this period."""
        with reachable():
            since = await self._look(keys=[LOOKING, LOOKED], args=[int(every_s * 900)])
        return None if since is None else since / 1000

    async def end_look(self, ids: list[str]) -> set[str]:
        """Those of them that the look before has seen, too."""
        with reachable():
            before = await self._looked(keys=[LOOKING, LOOKED, SEEN], args=ids)
        return {id_ for id_, seen in zip(ids, before, strict=True) if seen}

    async def leave(self, ids: list[str]) -> None:
        """Messages that are not to be caught up: they came before the mesh. Their webhooks are taken all the same."""
        if ids:
            with reachable():
                await answer(self._redis.sadd(BEFORE, *ids))
                await self._redis.pexpire(BEFORE, KEPT_MS)

    async def left(self, ids: list[str]) -> set[str]:
        if not ids:
            return set()
        with reachable():
            before = await answer(self._redis.smismember(BEFORE, ids))
        return {id_ for id_, was in zip(ids, before, strict=True) if was}

    async def cancels(self) -> AsyncIterator[str]:
        """Chats whose person cancels, as it happens. One may be missed while Redis can't be reached: the message is in
        the chat's list all the same."""
        while True:
            try:
                async with self._redis.pubsub() as channel:
                    await channel.subscribe(CANCELS)
                    async for heard in channel.listen():
                        if heard["type"] == "message":
                            yield heard["data"].decode()
            except RedisError as error:
                log.warning("! cancels can't be heard: %s", type(error).__name__)
                await asyncio.sleep(1)

    async def is_known(self, provider_id: str) -> bool:
        """Whether a turn has already been settled with this message of the provider's."""
        with reachable():
            return bool(await self._redis.exists(sent_keys(provider_id)[0]))

    async def notify(
        self, chat: str, text: str, key: str, *, template: str = "", piece: Piece | None = None, times: int = 0
    ) -> bool:
        """The mesh writes first: what is said goes the way of a reply, in the chat's order and once for each `key`."""
        sender, _, recipient = chat.partition("|")
        notice = Inbound(
            message_id=f"{NOTICE}{digest(chat, key)}",
            sender=recipient,
            recipient=sender,
            text=text,
            fields=_noted(piece or Piece(text=text, template=template), times),
        )
        return await self.accept(notice)

    async def undelivered(self) -> Undelivered | None:
        """One that nobody follows up; whoever took it has a minute."""
        with reachable():
            found = await self._undelivered(keys=[UNDELIVERED], args=[60_000])
        return Undelivered(*found.decode().split("\n")) if found else None

    async def followed_up(self, what: Undelivered) -> None:
        with reachable():
            await self._redis.zrem(UNDELIVERED, what.entry)

    async def wait(self, turn: TurnRecord, text: str) -> bool:
        """A reply that was sent, and could not be delivered, waits for the person's next message. False: it does
        already."""
        with reachable():
            kept = Waiting(turn_id=turn.turn_id, text=text).model_dump_json()
            return bool(await self._wait(keys=[turn_key(turn.turn_id), waiting_key(turn.chat)], args=[kept, KEPT_MS]))

    async def waiting(self, chat: str) -> list[Waiting]:
        with reachable():
            return [waiting_of(kept) for kept in await answer(self._redis.lrange(waiting_key(chat), 0, -1))]

    async def bury(self, turn: TurnRecord, reason: str) -> None:
        """A reply that was sent and never came to its person is a dead letter."""
        with reachable():
            if await answer(self._redis.hsetnx(turn_key(turn.turn_id), "dead_letter", "1")):
                await answer(self._redis.hset(turn_key(turn.turn_id), "reason", reason))
                await answer(self._redis.lpush(DEAD, turn.turn_id))

    async def overdue(self, older_than_s: float) -> list[str]:
        """Chats that are due for so long, and that nobody holds: the sweeper kicks them."""
        with reachable():
            due = await self._overdue(keys=[DUE], args=[int(older_than_s * 1000), 200])
            chats = [chat.decode() for chat in due]
            held = await self._redis.mget([lease_key(chat) for chat in chats]) if chats else []
        return [chat for chat, lease in zip(chats, held, strict=True) if lease is None]

    # ── looking ───────────────────────────────────────────────────────────────────────────────────────────────

    async def turn(self, message_id: str) -> TurnRecord | None:
        """The turn that answers this message, once one has begun; perhaps together with others."""
        with reachable():
            accepted, turn_id = await answer(self._redis.hmget(message_key(message_id), ["at", "turn"]))
            turn_id = (turn_id or message_id.encode()).decode()
            fields = await answer(self._redis.hgetall(turn_key(turn_id)))
        return record_of(turn_id, fields, int(accepted or 0) / 1000) if fields else None

    async def recent(self, limit: int = 50) -> list[Accepted]:
        """The messages accepted last, newest first: of the last 500 those that are still kept."""
        with reachable():
            ids = [each.decode() for each in await answer(self._redis.lrange(RECENT, 0, limit - 1))]
            async with self._redis.pipeline(transaction=False) as pipe:
                for message_id in ids:
                    pipe.hmget(message_key(message_id), ["body", "at", "turn"])
                kept = [(id_, *found) for id_, found in zip(ids, await pipe.execute(), strict=True) if found[0]]
                turns = [(turn or id_.encode()).decode() for id_, _, _, turn in kept]
                for turn_id in turns:
                    pipe.hgetall(turn_key(turn_id))
                found = await pipe.execute()
        return [
            _accepted(body, int(at) / 1000, turn_id, fields)
            for (_, body, at, _), turn_id, fields in zip(kept, turns, found, strict=True)
        ]

    async def dead(self, limit: int = 100) -> list[str]:
        """Ids of the messages whose turns died, newest first."""
        with reachable():
            return [turn.decode() for turn in await answer(self._redis.lrange(DEAD, 0, limit - 1))]


# ── keys and forms ────────────────────────────────────────────────────────────────────────────────────────────────


def turn_kick(chat: str) -> Request:
    """A request that makes a worker look at the chat; one a second is one job."""
    return _turn_request(chat, f"kick {int(time.time())}")


def _turn_request(chat: str, key: str) -> Request:
    return Request(
        client=MESH,
        skill=TAKE_TURNS.name,
        payload={"chat": chat},
        trace=new_trace(),
        key=digest(chat, key),
        deadline=clock.now() + TURN_JOB_S,
    )


def _noted(piece: Piece, times: int) -> dict[str, str]:
    """What a notice is sent as, where a text says too little, and how often it was sent before."""
    fields = {"Piece": piece.model_dump_json()} if piece.template or piece.document_id else {}
    return {**fields, "Times": str(times)} if times else fields


def _accepted(body: bytes, at: float, turn_id: str, fields: dict[bytes, bytes]) -> Accepted:
    return Accepted(unpack_inbound(body), at, record_of(turn_id, fields, at) if fields else None)


def _rank(state: str) -> int:
    return _RANK.index(state) if state in _RANK else -1
