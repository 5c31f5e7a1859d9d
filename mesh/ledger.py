"""What promises; arq only executes. Every accepted message ends in one outcome, per chat in the order accepted.

A message is `accepted` into its chat's list; a turn takes it through `planned → ready → sending → sent | dead`. Each
step is one Lua script. A turn's steps need the chat's lease, and each checks its fencing token, so that a worker that
slept through its lease can change nothing. The steps live in Redis: whoever takes the lease next goes on from the
last finished one.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import RedisError

from mesh.bus import BELL_TOKENS, enqueue_keys, pack
from mesh.connections import Batched, answer
from mesh.contracts import TAKE_TURNS, Line, Reply
from mesh.envelope import MESH, Request, digest, new_trace
from mesh.errors import MeshError, Unavailable
from mesh.ports import Delivery, Inbound

log = logging.getLogger(__name__)

KEPT_MS = 7 * 24 * 3600 * 1000
"""How long a provider's message id is remembered, and an ended turn kept."""
LEASE_MS = 10_000
RENEW_S = 3.0
WINDOW_LINES = 12
TURN_JOB_S = 24 * 3600.0

_RANK = ("queued", "sending", "sent", "delivered", "read")
_ENDED = ("failed", "undelivered")

# KEYS: message, chat's queue, due, job, result, arq's queue, bell.
# ARGV: message id, chat, body, now ms, kept ms, job id, job, job's life ms.
ACCEPT = """
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('HSET', KEYS[1], 'chat', ARGV[2], 'body', ARGV[3], 'at', ARGV[4], 'state', 'accepted')
redis.call('PEXPIRE', KEYS[1], ARGV[5])
redis.call('RPUSH', KEYS[2], ARGV[1])
redis.call('ZADD', KEYS[3], 'NX', ARGV[4], ARGV[2])
redis.call('SET', KEYS[4], ARGV[7], 'PX', ARGV[8])
redis.call('ZADD', KEYS[6], ARGV[4], ARGV[6])
redis.call('LPUSH', KEYS[7], '1')
redis.call('LTRIM', KEYS[7], 0, {tokens} - 1)
return 1
""".replace("{tokens}", str(BELL_TOKENS))

# KEYS: lease, fence. ARGV: life ms. The token, or 0 when somebody holds the lease.
LEASE = """
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
local token = redis.call('INCR', KEYS[2])
redis.call('SET', KEYS[1], token, 'PX', ARGV[1])
return token
"""

# KEYS: lease. ARGV: token, life ms (0: give it back).
RENEW = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if ARGV[2] == '0' then redis.call('DEL', KEYS[1]) else redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 1
"""

# KEYS: lease, queue, current turn, due. ARGV: token, chat, turn prefix, now ms.
# The turn to go on with, or a new one; nil when the chat has nothing left, and then the lease is given back in the
# same step, so that no message can fall between the look and the leave.
CLAIM = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return redis.error_reply('LEASELOST') end
local turn = redis.call('GET', KEYS[3])
if not turn then
  turn = redis.call('LPOP', KEYS[2])
  if not turn then
    redis.call('ZREM', KEYS[4], ARGV[2])
    redis.call('DEL', KEYS[1])
    return false
  end
  redis.call('SET', KEYS[3], turn)
  redis.call('HSET', ARGV[3] .. turn, 'chat', ARGV[2], 'message', turn, 'state', 'planned', 'planned_at', ARGV[4])
end
local key = ARGV[3] .. turn
redis.call('HINCRBY', key, 'claims', 1)
return {turn, redis.call('HGETALL', key)}
"""

# KEYS: lease, turn, current turn, message, window, dead, sent index.
# ARGV: token, from, to, now ms, kept ms, ended 1/0, lines kept, turn id, then field-value pairs.
ADVANCE = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if redis.call('HGET', KEYS[2], 'state') ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[2], 'state', ARGV[3], ARGV[3] .. '_at', ARGV[4])
for i = 9, #ARGV, 2 do
  if ARGV[i] == '+line' then
    redis.call('RPUSH', KEYS[5], ARGV[i + 1])
  else
    redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 1])
  end
end
if ARGV[3] == 'sending' then redis.call('HINCRBY', KEYS[2], 'attempts', 1) end
if ARGV[6] == '1' then
  redis.call('DEL', KEYS[3])
  redis.call('HSET', KEYS[4], 'state', ARGV[3])
  redis.call('PEXPIRE', KEYS[2], ARGV[5])
  redis.call('LTRIM', KEYS[5], -tonumber(ARGV[7]), -1)
  redis.call('PEXPIRE', KEYS[5], ARGV[5])
  if ARGV[3] == 'dead' then redis.call('LPUSH', KEYS[6], ARGV[8]) end
  if ARGV[3] == 'sent' then redis.call('SET', KEYS[7], ARGV[8], 'PX', ARGV[5]) end
end
return 1
"""

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


class LeaseLost(MeshError):
    """Another worker has the chat now: stop, and change nothing."""

    code = "lease_lost"


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """A turn as it stands. Times are seconds since the epoch; 0 where the step was not reached."""

    turn_id: str
    """The id of the message that it answers."""
    chat: str
    state: str
    reply: Reply | None
    claims: int
    attempts: int
    provider_id: str = ""
    reason: str = ""
    delivery: str = ""
    accepted_at: float = 0.0
    planned_at: float = 0.0
    ready_at: float = 0.0
    sending_at: float = 0.0
    sent_at: float = 0.0
    first_intent_at: float = 0.0

    @property
    def recipient(self) -> str:
        return self.chat.partition("|")[2]

    @property
    def sender(self) -> str:
        return self.chat.partition("|")[0]


class Ledger:
    """Over a Redis client that it does not own. Raises `Unavailable` when Redis can't be reached or is full."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._accept = Batched(redis, ACCEPT)
        self._lease = redis.register_script(LEASE)
        self._renew = redis.register_script(RENEW)
        self._claim = redis.register_script(CLAIM)
        self._advance = redis.register_script(ADVANCE)
        self._delivered = redis.register_script(DELIVERED)

    async def close(self) -> None:
        await self._accept.close()

    # ── the gateway's side ────────────────────────────────────────────────────────────────────────────────────

    async def accept(self, message: Inbound) -> bool:
        """Durable and deduplicated when it returns; False for a message that was accepted before."""
        now = _now_ms()
        request = _turn_request(message.chat, message.message_id)
        with _reachable():
            new = await self._accept(
                [
                    _message_key(message.message_id),
                    _queue_key(message.chat),
                    _DUE,
                    *enqueue_keys(TAKE_TURNS.queue, request.job_id)[:4],
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
        with _reachable():
            await self._delivered(
                keys=[_sent_key(delivery.provider_id)],
                args=[_TURN, delivery.state, rank, delivery.error_code],
            )

    async def ready(self) -> bool:
        try:
            return bool(await self._redis.ping())
        except RedisError:
            return False

    # ── the orchestrator's side ───────────────────────────────────────────────────────────────────────────────

    @asynccontextmanager
    async def lease(self, chat: str) -> AsyncIterator[Lease | None]:
        """None when another worker has the chat: it will find what was added."""
        with _reachable():
            token = await self._lease(keys=[_lease_key(chat), _FENCE], args=[LEASE_MS])
        if not token:
            yield None
            return
        lease = Lease(self, chat, str(token))
        renewer = asyncio.create_task(lease.keep(), name=f"lease {token}")
        try:
            yield lease
        finally:
            renewer.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await renewer
            with contextlib.suppress(RedisError):
                await self._renew(keys=[_lease_key(chat)], args=[str(token), 0])

    async def window(self, chat: str) -> tuple[Line, ...]:
        """The last lines of the conversation, oldest first."""
        with _reachable():
            lines = await answer(self._redis.lrange(_window_key(chat), 0, -1))
        return tuple(Line.model_validate_json(line) for line in lines)

    async def message(self, message_id: str) -> Inbound | None:
        with _reachable():
            body = await answer(self._redis.hget(_message_key(message_id), "body"))
        return _unpack_inbound(body) if body else None

    async def is_known(self, provider_id: str) -> bool:
        """Whether a turn has already been settled with this message of the provider's."""
        with _reachable():
            return bool(await self._redis.exists(_sent_key(provider_id)))

    async def overdue(self, older_than_s: float) -> list[str]:
        """Chats that are due for so long, and that nobody holds: the sweeper kicks them."""
        with _reachable():
            due = await self._redis.zrangebyscore(_DUE, "-inf", _now_ms() - int(older_than_s * 1000), 0, 200)
            chats = [chat.decode() for chat in due]
            held = await self._redis.mget([_lease_key(chat) for chat in chats]) if chats else []
        return [chat for chat, lease in zip(chats, held, strict=True) if lease is None]

    # ── looking ───────────────────────────────────────────────────────────────────────────────────────────────

    async def turn(self, message_id: str) -> TurnRecord | None:
        """The turn that answers this message, once one has begun."""
        with _reachable():
            fields = await answer(self._redis.hgetall(_turn_key(message_id)))
            accepted = await answer(self._redis.hget(_message_key(message_id), "at"))
        return _record(message_id, fields, int(accepted or 0) / 1000) if fields else None

    async def dead(self, limit: int = 100) -> list[str]:
        """Ids of the messages whose turns died, newest first."""
        with _reachable():
            return [turn.decode() for turn in await answer(self._redis.lrange(_DEAD, 0, limit - 1))]


class Lease:
    """The right to change one chat's turn, until it is lost."""

    def __init__(self, ledger: Ledger, chat: str, token: str) -> None:
        self._ledger = ledger
        self.chat = chat
        self._token = token

    async def keep(self) -> None:
        while True:
            await asyncio.sleep(RENEW_S)
            with contextlib.suppress(RedisError):
                await self._ledger._renew(keys=[_lease_key(self.chat)], args=[self._token, LEASE_MS])

    async def next(self) -> TurnRecord | None:
        """The turn to work on; None when the chat is done, and then the lease is gone. Raises `LeaseLost`."""
        with _reachable():
            claimed = await self._ledger._claim(
                keys=[_lease_key(self.chat), _queue_key(self.chat), _current_key(self.chat), _DUE],
                args=[self._token, self.chat, _TURN, _now_ms()],
            )
        if claimed is None:
            return None
        turn_id, flat = claimed
        return _record(turn_id.decode(), dict(zip(flat[::2], flat[1::2], strict=True)))

    async def planned(self, turn: TurnRecord, reply: Reply) -> None:
        await self._advance(turn, "planned", "ready", {"reply": reply.model_dump_json()})

    async def revised(self, turn: TurnRecord, reply: Reply) -> None:
        await self._advance(turn, "ready", "ready", {"reply": reply.model_dump_json()})

    async def sending(self, turn: TurnRecord) -> None:
        """The intent is stored before the provider is asked."""
        first = {} if turn.first_intent_at else {"first_intent_at": str(_now_ms())}
        await self._advance(turn, "ready", "sending", first)

    async def not_sent(self, turn: TurnRecord) -> None:
        await self._advance(turn, "sending", "ready", {})

    async def sent(self, turn: TurnRecord, provider_id: str, said: str, reply: Reply) -> None:
        await self._advance(
            turn,
            "sending",
            "sent",
            {"provider_id": provider_id},
            lines=_lines(said, reply),
            sent_as=provider_id,
        )

    async def died(self, turn: TurnRecord, state: str, reason: str) -> None:
        await self._advance(turn, state, "dead", {"reason": reason})

    async def _advance(
        self,
        turn: TurnRecord,
        from_: str,
        to: str,
        fields: dict[str, str],
        *,
        lines: tuple[Line, ...] = (),
        sent_as: str = "",
    ) -> None:
        pairs: list[str] = [part for pair in fields.items() for part in pair]
        for line in lines:
            pairs += ["+line", line.model_dump_json()]
        with _reachable():
            done = await self._ledger._advance(
                keys=[
                    _lease_key(self.chat),
                    _turn_key(turn.turn_id),
                    _current_key(self.chat),
                    _message_key(turn.turn_id),
                    _window_key(self.chat),
                    _DEAD,
                    _sent_key(sent_as),
                ],
                args=[
                    self._token,
                    from_,
                    to,
                    _now_ms(),
                    KEPT_MS,
                    int(to in ("sent", "dead")),
                    WINDOW_LINES,
                    turn.turn_id,
                    *pairs,
                ],
            )
        if not done:
            raise LeaseLost(detail=f"{from_} → {to} of {turn.turn_id}")


# ── keys and forms ────────────────────────────────────────────────────────────────────────────────────────────────

_DUE, _FENCE, _DEAD, _TURN = "mesh:due", "mesh:fence", "mesh:dead", "mesh:turn:"


def _message_key(message_id: str) -> str:
    return f"mesh:in:{message_id}"


def _queue_key(chat: str) -> str:
    return f"mesh:chat:{chat}:queue"


def _current_key(chat: str) -> str:
    return f"mesh:chat:{chat}:turn"


def _lease_key(chat: str) -> str:
    return f"mesh:chat:{chat}:lease"


def _window_key(chat: str) -> str:
    return f"mesh:chat:{chat}:window"


def _turn_key(turn_id: str) -> str:
    return _TURN + turn_id


def _sent_key(provider_id: str) -> str:
    return f"mesh:sent:{provider_id}"


def _now_ms() -> int:
    return int(time.time() * 1000)


def _rank(state: str) -> int:
    return _RANK.index(state) if state in _RANK else -1


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


def _lines(said: str, reply: Reply) -> tuple[Line, ...]:
    return (Line(who="person", text=said), Line(who="mesh", text=reply.text))


def _record(turn_id: str, raw: dict[bytes, bytes], accepted_at: float = 0.0) -> TurnRecord:
    fields: dict[str, Any] = {name.decode(): value.decode() for name, value in raw.items()}
    reply = fields.get("reply")
    return TurnRecord(
        turn_id=turn_id,
        chat=fields["chat"],
        state=fields["state"],
        reply=Reply.model_validate_json(reply) if reply else None,
        claims=int(fields.get("claims", 0)),
        attempts=int(fields.get("attempts", 0)),
        provider_id=fields.get("provider_id", ""),
        reason=fields.get("reason", ""),
        delivery=fields.get("delivery", ""),
        accepted_at=accepted_at,
        **{f"{step}_at": int(fields.get(f"{step}_at", 0)) / 1000 for step in ("planned", "ready", "sending", "sent")},
        first_intent_at=int(fields.get("first_intent_at", 0)) / 1000,
    )


@contextlib.contextmanager
def _reachable() -> Iterator[None]:
    try:
        yield
    except RedisError as error:
        if "LEASELOST" in str(error):
            raise LeaseLost from error
        raise Unavailable(detail=f"redis: {type(error).__name__}") from error
