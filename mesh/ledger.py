"""What promises; arq only executes. Every accepted message ends in one outcome, per chat in the order accepted.

A message is `accepted` into its chat's list; a turn takes it through `planned → ready → sending → sent | dead`, under
the chat's lease (see `mesh.lease`).
"""

from __future__ import annotations

import json
import time
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from redis.asyncio import Redis
from redis.exceptions import RedisError

from mesh.bus import BELL_TOKENS, enqueue_keys, pack
from mesh.connections import Batched, answer
from mesh.contracts import TAKE_TURNS, Line
from mesh.envelope import MESH, Request, digest, new_trace
from mesh.lease import (
    DEAD,
    DUE,
    KEPT_MS,
    TURN,
    Lease,
    Leases,
    TurnRecord,
    lease_key,
    message_key,
    now_ms,
    queue_key,
    reachable,
    record_of,
    sent_key,
    turn_key,
    window_key,
)
from mesh.ports import Delivery, Inbound

TURN_JOB_S = 24 * 3600.0

_RANK = ("queued", "sending", "sent", "delivered", "read")
_ENDED = ("failed", "undelivered")

RECENT = "mesh:recent"
RECENT_KEPT = 500

# KEYS: message, chat's queue, due, recent, job, arq's queue, bell.
# ARGV: message id, chat, body, now ms, kept ms, job id, job, job's life ms.
ACCEPT = """
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('HSET', KEYS[1], 'chat', ARGV[2], 'body', ARGV[3], 'at', ARGV[4], 'state', 'accepted')
redis.call('PEXPIRE', KEYS[1], ARGV[5])
redis.call('RPUSH', KEYS[2], ARGV[1])
redis.call('ZADD', KEYS[3], 'NX', ARGV[4], ARGV[2])
redis.call('LPUSH', KEYS[4], ARGV[1])
redis.call('LTRIM', KEYS[4], 0, {kept} - 1)
redis.call('SET', KEYS[5], ARGV[7], 'PX', ARGV[8])
redis.call('ZADD', KEYS[6], ARGV[4], ARGV[6])
if redis.call('LLEN', KEYS[7]) < {tokens} then redis.call('LPUSH', KEYS[7], '1') end
return 1
""".replace("{tokens}", str(BELL_TOKENS)).replace("{kept}", str(RECENT_KEPT))

# KEYS: sent index. ARGV: turn prefix, state, its rank, error code. Delivery only moves forward.
DELIVERED = """
local turn = redis.call('GET', KEYS[1])
if not turn then return 0 end
local key = ARGV[1] .. turn
local rank = tonumber(redis.call('HGET', key, 'delivery_rank') or '-1')
if tonumber(ARGV[3]) <= rank then return 0 end
redis.call('HSET', key, 'delivery', ARGV[2], 'delivery_rank', ARGV[3], 'delivery_error', ARGV[4])
return 1
"""


@dataclass(frozen=True, slots=True)
class Accepted:
    """A message, and the turn that answers it once one has begun. `accepted_at` is in seconds since the epoch."""

    message: Inbound
    accepted_at: float
    turn: TurnRecord | None


class Ledger:
    """Over a Redis client that it does not own. Raises `Unavailable` when Redis can't be reached or is full."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._accept = Batched(redis, ACCEPT)
        self._leases = Leases(redis)
        self._delivered = redis.register_script(DELIVERED)

    async def close(self) -> None:
        await self._accept.close()

    # ── the gateway's side ────────────────────────────────────────────────────────────────────────────────────

    async def accept(self, message: Inbound) -> bool:
        """Durable and deduplicated when it returns; False for a message that was accepted before."""
        now = now_ms()
        request = _turn_request(message.chat, message.message_id)
        with reachable():
            new = await self._accept(
                [
                    message_key(message.message_id),
                    queue_key(message.chat),
                    DUE,
                    RECENT,
                    *enqueue_keys(TAKE_TURNS.queue, request.job_id)[:3],
                ],
                [
                    message.message_id,
                    message.chat,
                    _pack_inbound(message),
                    now,
                    KEPT_MS,
                    request.job_id,
                    pack(request),
                    int(TURN_JOB_S * 1000),
                ],
            )
        return bool(new)

    async def delivered(self, delivery: Delivery) -> None:
        """Callbacks come out of order: a later state is never undone by an earlier one."""
        rank = len(_RANK) if delivery.state in _ENDED else _rank(delivery.state)
        with reachable():
            await self._delivered(
                keys=[sent_key(delivery.provider_id)],
                args=[TURN, delivery.state, rank, delivery.error_code],
            )

    async def ready(self) -> bool:
        try:
            return bool(await self._redis.ping())
        except RedisError:
            return False

    # ── the orchestrator's side ───────────────────────────────────────────────────────────────────────────────

    def lease(self, chat: str) -> AbstractAsyncContextManager[Lease | None]:
        """None when another worker has the chat: it will find what was added."""
        return self._leases.hold(chat)

    async def window(self, chat: str) -> tuple[Line, ...]:
        """The last lines of the conversation, oldest first."""
        with reachable():
            lines = await answer(self._redis.lrange(window_key(chat), 0, -1))
        return tuple(Line.model_validate_json(line) for line in lines)

    async def message(self, message_id: str) -> Inbound | None:
        with reachable():
            body = await answer(self._redis.hget(message_key(message_id), "body"))
        return _unpack_inbound(body) if body else None

    async def is_known(self, provider_id: str) -> bool:
        """Whether a turn has already been settled with this message of the provider's."""
        with reachable():
            return bool(await self._redis.exists(sent_key(provider_id)))

    async def overdue(self, older_than_s: float) -> list[str]:
        """Chats that are due for so long, and that nobody holds: the sweeper kicks them."""
        with reachable():
            due = await self._redis.zrangebyscore(DUE, "-inf", now_ms() - int(older_than_s * 1000), 0, 200)
            chats = [chat.decode() for chat in due]
            held = await self._redis.mget([lease_key(chat) for chat in chats]) if chats else []
        return [chat for chat, lease in zip(chats, held, strict=True) if lease is None]

    # ── looking ───────────────────────────────────────────────────────────────────────────────────────────────

    async def turn(self, message_id: str) -> TurnRecord | None:
        """The turn that answers this message, once one has begun."""
        with reachable():
            fields = await answer(self._redis.hgetall(turn_key(message_id)))
            accepted = await answer(self._redis.hget(message_key(message_id), "at"))
        return record_of(message_id, fields, int(accepted or 0) / 1000) if fields else None

    async def recent(self, limit: int = 50) -> list[Accepted]:
        """The messages accepted last, newest first: of the last 500 those that are still kept."""
        with reachable():
            ids = [each.decode() for each in await answer(self._redis.lrange(RECENT, 0, limit - 1))]
            async with self._redis.pipeline(transaction=False) as pipe:
                for message_id in ids:
                    pipe.hmget(message_key(message_id), ["body", "at"])
                    pipe.hgetall(turn_key(message_id))
                found = await pipe.execute()
        return [
            _accepted(body, int(at) / 1000, turn)
            for (body, at), turn in zip(found[::2], found[1::2], strict=True)
            if body
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
        deadline=time.time() + TURN_JOB_S,
    )


def _pack_inbound(message: Inbound) -> str:
    return json.dumps(
        {
            "message_id": message.message_id,
            "sender": message.sender,
            "recipient": message.recipient,
            "text": message.text,
            "media": message.media,
            "fields": message.fields,
        }
    )


def _unpack_inbound(body: str | bytes) -> Inbound:
    return Inbound(**json.loads(body))


def _accepted(body: bytes, at: float, turn: dict[bytes, bytes]) -> Accepted:
    message = _unpack_inbound(body)
    return Accepted(message, at, record_of(message.message_id, turn, at) if turn else None)


def _rank(state: str) -> int:
    return _RANK.index(state) if state in _RANK else -1
