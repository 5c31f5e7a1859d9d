"""One chat's turn, and the right to change it. Each step is one Lua script that checks the lease's fencing token: a
worker that slept through its lease can change nothing. The steps live in Redis, so that whoever takes the lease next
goes on from the last finished one."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError
from redis.asyncio import Redis
from redis.exceptions import RedisError

from mesh import scripts
from mesh.contracts.answers import Line
from mesh.contracts.orchestrator import Reply
from mesh.envelope import Wire
from mesh.errors import MeshError, Unavailable

KEPT_MS = 7 * 24 * 3600 * 1000
"""How long a provider's message id is remembered, and an ended turn kept."""
LEASE_MS = 10_000
RENEW_S = 3.0
WINDOW_LINES = 12
MOST_MESSAGES = 20
"""Of one turn."""
MOST_MERGES = 3
"""How often a newer message may make a draft stale: somebody who never stops writing is answered all the same."""


STEPS = ("planned", "ready", "sending", "sent", "dead", "silent", "waiting")
"""The last four are outcomes. `silent`: nothing is to be said, for a recorded reason. `waiting`: the provider takes the
reply only once its person has written again."""


class LeaseLost(MeshError):
    """Another worker has the chat now: stop, and change nothing."""

    code = "lease_lost"


@dataclass(frozen=True, slots=True)
class Quiet:
    """Several short messages in a row are answered once: when nothing more came for `seconds`, and after `longest` in
    any case. 0: each message by itself."""

    seconds: float = 0.0
    longest: float = 5.0


class Waiting(Wire):
    """What is said before the next reply: `text` of a turn's, for which the provider had to wait for its person."""

    turn_id: str = ""
    """Empty for one of an earlier version."""
    text: str


def waiting_of(kept: bytes) -> Waiting:
    try:
        return Waiting.model_validate_json(kept)
    except ValidationError:
        return Waiting(text=kept.decode())


OUTCOMES = STEPS[3:]


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
    messages: tuple[str, ...] = ()
    """Ids of all messages that it answers, in order."""
    kind: str = ""
    """Of its first message (see `mesh.incoming.kind_of`), or `cancelled`."""
    part: int = 0
    """Which piece of the reply is next; those before it are sent."""
    provider_id: str = ""
    """Of the piece that was sent last."""
    pieces: Mapping[str, int] = field(default_factory=dict)
    """Which piece each of the provider's ids is."""
    reason: str = ""
    delivery: str = ""
    delivery_error: str = ""
    accepted_at: float = 0.0
    planned_at: float = 0.0
    ready_at: float = 0.0
    sending_at: float = 0.0
    sent_at: float = 0.0
    dead_at: float = 0.0
    silent_at: float = 0.0
    waiting_at: float = 0.0
    first_intent_at: float = 0.0
    claimed_at: float = 0.0
    """When it was taken up last. As all times here by Redis's clock: never compare them to another."""

    @property
    def recipient(self) -> str:
        return self.chat.partition("|")[2]

    @property
    def sender(self) -> str:
        return self.chat.partition("|")[0]


class Leases:
    """Gives out chats, each to one holder at a time."""

    def __init__(self, redis: Redis, quiet: Quiet) -> None:
        self.quiet = quiet
        self._take = redis.register_script(scripts.LEASE)
        self.renew = redis.register_script(scripts.RENEW)
        self.claim = redis.register_script(scripts.CLAIM)
        self.gather = redis.register_script(scripts.GATHER)
        self.once = redis.register_script(scripts.ONCE)
        self.advance = redis.register_script(scripts.ADVANCE)

    @asynccontextmanager
    async def hold(self, chat: str) -> AsyncIterator[Lease | None]:
        """None when another holder has the chat: it will find what was added."""
        asked_at = time.monotonic()
        with reachable():
            token = await self._take(keys=[lease_key(chat), FENCE], args=[LEASE_MS])
        if not token:
            yield None
            return
        lease = Lease(self, chat, str(token), asked_at)
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

    def __init__(self, leases: Leases, chat: str, token: str, held_at: float) -> None:
        self._leases = leases
        self.chat = chat
        self._token = token
        self._held_at = held_at

    async def keep(self) -> None:
        while True:
            await asyncio.sleep(RENEW_S)
            with contextlib.suppress(RedisError):
                asked_at = time.monotonic()
                if await self._leases.renew(keys=[lease_key(self.chat)], args=[self._token, LEASE_MS]):
                    self._held_at = asked_at

    def check(self) -> None:
        """For what no script can fence, such as a send: raises `LeaseLost` when this process was held up for so long
        that another may have the chat by now."""
        if time.monotonic() - self._held_at > LEASE_MS / 1000:
            raise LeaseLost(detail="held up for longer than the lease")

    async def next(self) -> TurnRecord | None:
        """The turn to work on, once its person is quiet; None when the chat is done, and then the lease is gone. Raises
        `LeaseLost`."""
        while isinstance(claimed := await self._claim(), int):
            await asyncio.sleep(claimed / 1000)
        if claimed is None:
            return None
        turn_id, flat = claimed
        return record_of(turn_id.decode(), dict(zip(flat[::2], flat[1::2], strict=True)))

    async def _claim(self) -> Any:
        quiet = self._leases.quiet
        with reachable():
            return await self._leases.claim(
                keys=[lease_key(self.chat), queue_key(self.chat), current_key(self.chat), DUE],
                args=[
                    *(self._token, self.chat, TURN, MESSAGE),
                    *(int(quiet.seconds * 1000), int(quiet.longest * 1000), MOST_MESSAGES),
                ],
            )

    async def gather(self, turn: TurnRecord) -> bool:
        """Whether the person wrote on, or cancelled, before the reply was under way: then the turn is planned again,
        with what they wrote. Raises `LeaseLost`."""
        with reachable():
            taken = await self._leases.gather(
                keys=[lease_key(self.chat), queue_key(self.chat), turn_key(turn.turn_id)],
                args=[
                    *(self._token, MESSAGE, turn.turn_id),
                    *(int(self._leases.quiet.seconds * 1000), MOST_MESSAGES, MOST_MERGES),
                ],
            )
        return bool(taken)

    async def first_time(self, turn: TurnRecord, what: str) -> bool:
        """For what may be done once in a turn, whoever works on it. Raises `LeaseLost`."""
        with reachable():
            keys = [lease_key(self.chat), turn_key(turn.turn_id)]
            return bool(await self._leases.once(keys=keys, args=[self._token, what]))

    async def planned(self, turn: TurnRecord, reply: Reply, *, gave_up: bool = False, took: int = 0) -> None:
        """`gave_up`: the reply is an apology, and the turn becomes a dead letter all the same. `took`: how many of the
        replies that waited are in this one."""
        fields = {"reason": "it keeps failing", "dead_letter": "1"} if gave_up else {}
        if took:
            fields["took"] = str(took)
        await self._advance(turn, "planned", "ready", {"reply": reply.model_dump_json(), **fields})

    async def silenced(self, turn: TurnRecord, state: str, reason: str) -> None:
        """Nothing is said, and that is its outcome."""
        await self._advance(turn, state, "silent", {"reason": reason})

    async def waits(self, turn: TurnRecord, reason: str, text: str) -> None:
        """The provider does not take it before its person has written again: `text` is put before that reply."""
        kept = Waiting(turn_id=turn.turn_id, text=text).model_dump_json()
        await self._advance(turn, "sending", "waiting", {"reason": reason, "+wait": kept})

    async def revised(self, turn: TurnRecord, reply: Reply, *, alone: bool = False) -> None:
        """`alone`: without the replies that waited, which go on waiting."""
        fields = {"reply": reply.model_dump_json()} | ({"-": "took"} if alone else {})
        await self._advance(turn, "ready", "ready", fields)

    async def sending(self, turn: TurnRecord) -> None:
        """The intent is stored before the provider is asked."""
        await self._advance(turn, "ready", "sending", {})

    async def not_sent(self, turn: TurnRecord) -> None:
        await self._advance(turn, "sending", "ready", {})

    async def part_sent(self, turn: TurnRecord, provider_id: str) -> None:
        """There is more of the reply."""
        fields = {"part": str(turn.part + 1), "attempts": "0", "-": "first_intent_at"}
        await self._advance(turn, "sending", "ready", fields, sent_as=provider_id)

    async def sent(self, turn: TurnRecord, provider_id: str, lines: tuple[Line, ...]) -> None:
        """All of it; `lines` are added to the conversation."""
        await self._advance(turn, "sending", "sent", {}, lines=lines, sent_as=provider_id)

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
        if sent_as:
            pairs += ["+sent", f"{turn.part} {sent_as}"]
        with reachable():
            done = await self._leases.advance(
                keys=[
                    lease_key(self.chat),
                    turn_key(turn.turn_id),
                    current_key(self.chat),
                    window_key(self.chat),
                    DEAD,
                    *sent_keys(sent_as),
                    waiting_key(self.chat),
                ],
                args=[
                    self._token,
                    from_,
                    to,
                    KEPT_MS,
                    int(to in OUTCOMES),
                    WINDOW_LINES,
                    turn.turn_id,
                    MESSAGE,
                    *pairs,
                ],
            )
        if not done:
            raise LeaseLost(detail=f"{from_} → {to} of {turn.turn_id}")


# ── keys and forms ────────────────────────────────────────────────────────────────────────────────────────────────

DUE, FENCE, DEAD, TURN, MESSAGE = "mesh:due", "mesh:fence", "mesh:dead", "mesh:turn:", "mesh:in:"
UNDELIVERED = "mesh:undelivered"
QUEUES = ("mesh:chat:", ":queue")
"""What stands before and after a chat, in the name of its list of messages."""


def message_key(message_id: str) -> str:
    return MESSAGE + message_id


def queue_key(chat: str) -> str:
    return chat.join(QUEUES)


def overflow_key(chat: str) -> str:
    return f"mesh:chat:{chat}:over"


def person_key(client: str) -> str:
    return f"mesh:person:{client}"


def client_key(client: str) -> str:
    return f"mesh:client:{client}:chats"


def current_key(chat: str) -> str:
    return f"mesh:chat:{chat}:turn"


def lease_key(chat: str) -> str:
    return f"mesh:chat:{chat}:lease"


def window_key(chat: str) -> str:
    return f"mesh:chat:{chat}:window"


def turn_key(turn_id: str) -> str:
    return TURN + turn_id


def sent_keys(provider_id: str) -> tuple[str, str, str]:
    """Which turn it belongs to, what was told of it before that was known, and all that could not be delivered."""
    return f"mesh:sent:{provider_id}", f"mesh:early:{provider_id}", UNDELIVERED


def waiting_key(chat: str) -> str:
    return f"mesh:chat:{chat}:waiting"


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
        messages=tuple(fields.get("messages", turn_id).split("\n")),
        kind=fields.get("kind", ""),
        part=int(fields.get("part", 0)),
        provider_id=fields.get("provider_id", ""),
        pieces={name[6:]: int(part) for name, part in fields.items() if name.startswith("piece:")},
        reason=fields.get("reason", ""),
        delivery=fields.get("delivery", ""),
        delivery_error=fields.get("delivery_error", ""),
        accepted_at=accepted_at,
        **{f"{step}_at": int(fields.get(f"{step}_at", 0)) / 1000 for step in STEPS},
        first_intent_at=int(fields.get("first_intent_at", 0)) / 1000,
        claimed_at=int(fields.get("claimed_at", 0)) / 1000,
    )


@contextlib.contextmanager
def reachable() -> Iterator[None]:
    try:
        yield
    except RedisError as error:
        if "LEASELOST" in str(error):
            raise LeaseLost from error
        raise Unavailable(detail=f"redis: {type(error).__name__}") from error
