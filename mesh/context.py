"""What a handler holds while it works: its grant, its agent's resources, and the way to ask others."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from mesh import clock
from mesh.access import Grant
from mesh.envelope import Failed, Ok, Request, digest
from mesh.errors import TimedOut, rebuild
from mesh.skills import Skill

if TYPE_CHECKING:
    from mesh.bus import Bus
    from mesh.envelope import Wire

Own = TypeVar("Own")
RESERVED_S = 0.5

In = TypeVar("In", bound="Wire")
Out = TypeVar("Out", bound="Wire")

Local = Callable[[Request], Awaitable[Ok | Failed]]
"""Runs a request in this process, through the same gate."""


@dataclass(frozen=True, slots=True)
class Context(Generic[Own]):
    grant: Grant
    own: Own
    """What the agent opened at start: its stores and models."""
    request: Request
    bus: Bus
    local: Local = field(repr=False)

    async def ask(self, skill: Skill[In, Out], payload: In) -> Out:
        """Raises the error that the other side failed with; its text is fit for the person to read."""
        outcome = await self.bus.ask(self.child(skill, payload))
        return unwrap(skill, outcome)

    async def tell(self, skill: Skill[In, Any], payload: In, *, within: timedelta | None = None) -> None:
        """Enqueues and does not wait. The work has its own deadline: the asker's turn may be over by then."""
        child = self.child(skill, payload, deadline=clock.now() + (within or skill.within).total_seconds())
        await self.bus.tell(child)

    @property
    def _before_own_end(self) -> float:
        """A little earlier than one's own deadline, so that there is time to say that another was too late."""
        left = self.request.deadline - clock.now()
        return self.request.deadline - min(RESERVED_S, max(0.0, left / 10))

    def child(self, skill: Skill[In, Any], payload: In, *, deadline: float | None = None) -> Request:
        """The key hashes the parent's, so that a restarted turn attaches to work that is already done."""
        body = payload.model_dump(mode="json")
        return Request(
            client=self.grant.client,
            skill=skill.name,
            payload=body,
            trace=self.request.trace,
            key=digest(self.request.key, skill.name, payload.model_dump_json()),
            deadline=deadline or min(self._before_own_end, clock.now() + skill.within.total_seconds()),
        )


def unwrap(skill: Skill[In, Out], outcome: Ok | Failed | None) -> Out:
    if outcome is None:
        raise TimedOut(detail=f"no answer from {skill.name} before the deadline")
    if isinstance(outcome, Failed):
        raise rebuild(outcome.code, outcome.user_text, detail=f"from {skill.name}")
    return skill.returns.model_validate(outcome.value)
