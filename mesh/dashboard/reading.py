"""What the page shows, as it stands in Redis: typed, and without a word of HTML."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter

from mesh.contracts.orchestrator import Reply
from mesh.errors import Unavailable
from mesh.ingestions import Ingestion
from mesh.lease import OUTCOMES, STEPS, TurnRecord
from mesh.ledger import Accepted, Ledger
from mesh.queues import QueueState, WorkerState

SHOWN = 60
DEAD_COUNTED = 1000
FRESH_S = 0.5
"""Several who look at once cost one look."""
WITHIN_S = 3.0
LATE_S = 30.0
"""A message that has no outcome by then is pointed out."""
DELIVERY_FAILED = ("failed", "undelivered")


@dataclass(frozen=True, slots=True)
class Step:
    """A state that a turn reached, and how long after the one before."""

    name: str
    after_s: float


@dataclass(frozen=True, slots=True)
class Exchange:
    """A message and what became of it. Times are seconds."""

    message_id: str
    text: str
    media: int
    at: float
    state: str
    path: tuple[Step, ...]
    took_s: float | None
    """From acceptance to its outcome; None while it has none."""
    reply: str = ""
    skill: str = ""
    sources: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    attempts: int = 0
    delivery: str = ""
    delivery_error: str = ""
    reason: str = ""

    @property
    def failed(self) -> bool:
        """Neither what is deliberately not said, nor what waits for its person to write again."""
        if self.state in ("silent", "waiting"):
            return False
        return bool(self.state == "dead" or self.reason or self.delivery in DELIVERY_FAILED)

    def is_late(self, now: float) -> bool:
        return self.took_s is None and now - self.at > LATE_S


@dataclass(frozen=True, slots=True)
class Conversation:
    """One person's, with the newest exchange first."""

    who: str
    number: str
    """The number of ours that they wrote to."""
    exchanges: tuple[Exchange, ...]


@dataclass(frozen=True, slots=True)
class Snapshot:
    at: float
    queues: tuple[QueueState, ...]
    workers: tuple[WorkerState, ...]
    conversations: tuple[Conversation, ...]
    dead: int
    """Dead letters, those included that are no longer among the conversations; at most 1,000 are counted."""
    ingestions: tuple[Ingestion, ...] = ()
    """Documents that are being read in."""


class Reader:
    """Over a ledger that it does not own, and what `mesh.queues` tells."""

    def __init__(
        self,
        queues: Callable[[], Awaitable[list[QueueState]]],
        workers: Callable[[], Awaitable[list[WorkerState]]],
        ingestions: Callable[[], Awaitable[list[Ingestion]]],
        ledger: Ledger,
    ) -> None:
        self._queues = queues
        self._workers = workers
        self._ingestions = ingestions
        self._ledger = ledger
        self._one_at_a_time = asyncio.Lock()
        self._kept: Snapshot | None = None

    async def look(self) -> Snapshot:
        """At most half a second old. Raises `Unavailable`, within seconds, when Redis can't be reached."""
        try:
            async with asyncio.timeout(WITHIN_S), self._one_at_a_time:
                if self._kept is None or not 0 <= time.time() - self._kept.at < FRESH_S:
                    self._kept = await self._look()
                return self._kept
        except TimeoutError as error:
            raise Unavailable(detail=f"redis: no answer within {WITHIN_S:.0f} s") from error

    async def _look(self) -> Snapshot:
        return Snapshot(
            at=time.time(),
            queues=tuple(await self._queues()),
            workers=tuple(await self._workers()),
            ingestions=tuple(await self._ingestions()),
            conversations=_by_chat(await self._ledger.recent(SHOWN)),
            dead=len(await self._ledger.dead(DEAD_COUNTED)),
        )


def _by_chat(recent: Sequence[Accepted]) -> tuple[Conversation, ...]:
    """The one that was written to last comes first."""
    chats: dict[str, list[Accepted]] = {}
    for each in recent:
        chats.setdefault(each.message.chat, []).append(each)
    return tuple(
        Conversation(found[0].message.sender, found[0].message.recipient, tuple(map(_exchange, found)))
        for found in chats.values()
    )


def _exchange(accepted: Accepted) -> Exchange:
    message, at = accepted.message, accepted.accepted_at
    began = Exchange(message.message_id, message.text, message.media, at, "accepted", (Step("accepted", 0.0),), None)
    return _answered(began, accepted.turn) if accepted.turn else began


def _answered(began: Exchange, turn: TurnRecord) -> Exchange:
    reply = turn.reply or Reply(text="")
    ended_at = getattr(turn, f"{turn.state}_at") if turn.state in OUTCOMES else None
    return replace(
        began,
        state=turn.state,
        path=_path(began.at, turn),
        took_s=max(0.0, ended_at - began.at) if ended_at else None,
        reply=reply.text,
        skill=reply.skill,
        sources=tuple(dict.fromkeys(source.label for source in reply.sources)),
        steps=reply.steps,
        attempts=turn.attempts,
        delivery=turn.delivery,
        delivery_error=turn.delivery_error,
        reason=turn.reason,
    )


def _path(accepted_at: float, turn: TurnRecord) -> tuple[Step, ...]:
    """A step that was taken again is where it was last."""
    reached = [(getattr(turn, f"{name}_at"), name) for name in STEPS]
    path, before = [Step("accepted", 0.0)], accepted_at
    for at, name in sorted((each for each in reached if each[0]), key=itemgetter(0)):
        path.append(Step(name, max(0.0, at - before)))
        before = at
    return tuple(path)
