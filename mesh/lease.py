"""One chat's turn, and the right to change it. Each step is one Lua script that checks the lease's fencing token: a
worker that slept through its lease can change nothing. The steps live in Redis, so that whoever takes the lease next
goes on from the last finished one."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import RedisError

from mesh.contracts import Line, Reply
from mesh.errors import MeshError, Unavailable

KEPT_MS = 7 * 24 * 3600 * 1000
"""How long a provider's message id is remembered, and an ended turn kept."""
LEASE_MS = 10_000
RENEW_S = 3.0
WINDOW_LINES = 12

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
  if ARGV[3] == 'dead' or redis.call('HGET', KEYS[2], 'dead_letter') then redis.call('LPUSH', KEYS[6], ARGV[8]) end
  if ARGV[3] == 'sent' then redis.call('SET', KEYS[7], ARGV[8], 'PX', ARGV[5]) end
end
return 1
"""


STEPS = ("planned", "ready", "sending", "sent", "dead")


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
    delivery_error: str = ""
    accepted_at: float = 0.0
    planned_at: float = 0.0
    ready_at: float = 0.0
    sending_at: float = 0.0
    sent_at: float = 0.0
    dead_at: float = 0.0
    first_intent_at: float = 0.0

    @property
    def recipient(self) -> str:
        return self.chat.partition("|")[2]

    @property
    def sender(self) -> str:
        return self.chat.partition("|")[0]


class Leases:
    """Gives out chats, each to one holder at a time."""

    def __init__(self, redis: Redis) -> None:
        self._take = redis.register_script(LEASE)
        self.renew = redis.register_script(RENEW)
        self.claim = redis.register_script(CLAIM)
        self.advance = redis.register_script(ADVANCE)

    @asynccontextmanager
    async def hold(self, chat: str) -> AsyncIterator[Lease | None]:
        """None when another holder has the chat: it will find what was added."""
        with reachable():
            token = await self._take(keys=[lease_key(chat), FENCE], args=[LEASE_MS])
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
                await self.renew(keys=[lease_key(chat)], args=[str(token), 0])


class Lease:
    """The right to change one chat's turn, until it is lost."""

    def __init__(self, leases: Leases, chat: str, token: str) -> None:
        self._leases = leases
        self.chat = chat
        self._token = token

    async def keep(self) -> None:
        while True:
            await asyncio.sleep(RENEW_S)
            with contextlib.suppress(RedisError):
                await self._leases.renew(keys=[lease_key(self.chat)], args=[self._token, LEASE_MS])

    async def next(self) -> TurnRecord | None:
        """The turn to work on; None when the chat is done, and then the lease is gone. Raises `LeaseLost`."""
        with reachable():
            claimed = await self._leases.claim(
                keys=[lease_key(self.chat), queue_key(self.chat), current_key(self.chat), DUE],
                args=[self._token, self.chat, TURN, now_ms()],
            )
        if claimed is None:
            return None
        turn_id, flat = claimed
        return record_of(turn_id.decode(), dict(zip(flat[::2], flat[1::2], strict=True)))

    async def planned(self, turn: TurnRecord, reply: Reply, *, gave_up: bool = False) -> None:
        """`gave_up`: the reply is an apology, and the turn becomes a dead letter all the same."""
        fields = {"reason": "it keeps failing", "dead_letter": "1"} if gave_up else {}
        await self._advance(turn, "planned", "ready", {"reply": reply.model_dump_json(), **fields})

    async def revised(self, turn: TurnRecord, reply: Reply) -> None:
        await self._advance(turn, "ready", "ready", {"reply": reply.model_dump_json()})

    async def sending(self, turn: TurnRecord) -> None:
        """The intent is stored before the provider is asked."""
        first = {} if turn.first_intent_at else {"first_intent_at": str(now_ms())}
        await self._advance(turn, "ready", "sending", first)

    async def not_sent(self, turn: TurnRecord) -> None:
        await self._advance(turn, "sending", "ready", {})

    async def sent(self, turn: TurnRecord, provider_id: str, said: str, reply: Reply) -> None:
        await self._advance(
            turn,
            "sending",
            "sent",
            {"provider_id": provider_id},
            lines=said_and_answered(said, reply),
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
        with reachable():
            done = await self._leases.advance(
                keys=[
                    lease_key(self.chat),
                    turn_key(turn.turn_id),
                    current_key(self.chat),
                    message_key(turn.turn_id),
                    window_key(self.chat),
                    DEAD,
                    sent_key(sent_as),
                ],
                args=[
                    self._token,
                    from_,
                    to,
                    now_ms(),
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

DUE, FENCE, DEAD, TURN = "mesh:due", "mesh:fence", "mesh:dead", "mesh:turn:"


def message_key(message_id: str) -> str:
    return f"mesh:in:{message_id}"


def queue_key(chat: str) -> str:
    return f"mesh:chat:{chat}:queue"


def current_key(chat: str) -> str:
    return f"mesh:chat:{chat}:turn"


def lease_key(chat: str) -> str:
    return f"mesh:chat:{chat}:lease"


def window_key(chat: str) -> str:
    return f"mesh:chat:{chat}:window"


def turn_key(turn_id: str) -> str:
    return TURN + turn_id


def sent_key(provider_id: str) -> str:
    return f"mesh:sent:{provider_id}"


def now_ms() -> int:
    return int(time.time() * 1000)


def said_and_answered(said: str, reply: Reply) -> tuple[Line, ...]:
    return (Line(who="person", text=said), Line(who="mesh", text=reply.text))


def record_of(turn_id: str, raw: dict[bytes, bytes], accepted_at: float = 0.0) -> TurnRecord:
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
        delivery_error=fields.get("delivery_error", ""),
        accepted_at=accepted_at,
        **{f"{step}_at": int(fields.get(f"{step}_at", 0)) / 1000 for step in STEPS},
        first_intent_at=int(fields.get("first_intent_at", 0)) / 1000,
    )


@contextlib.contextmanager
def reachable() -> Iterator[None]:
    try:
        yield
    except RedisError as error:
        if "LEASELOST" in str(error):
            raise LeaseLost from error
        raise Unavailable(detail=f"redis: {type(error).__name__}") from error
