"""The one function that arq may call. It admits a request through the gate, runs the handler within its time, and
turns whatever happens into an outcome: nothing is ever raised across the bus."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pydantic import ValidationError

from mesh import clock
from mesh.access import Gate
from mesh.context import Context
from mesh.envelope import Failed, Ok, Request, Wire, pseudonym
from mesh.errors import Crashed, Malformed, MeshError, TimedOut
from mesh.skills import Skill

if TYPE_CHECKING:
    from mesh.bus import Bus
    from mesh.wiring import Parts

log = logging.getLogger(__name__)

Own = TypeVar("Own")
In = TypeVar("In", bound=Wire)
Out = TypeVar("Out", bound=Wire)
Handler = Callable[[Any, Context[Any]], Awaitable[Wire]]


@asynccontextmanager
async def _nothing(parts: Parts) -> AsyncIterator[None]:
    yield None


@dataclass
class Agent(Generic[Own]):
    """A named set of handlers, and what they need opened. One module-level `agent` per agent package."""

    name: str
    opens: Callable[[Parts], AbstractAsyncContextManager[Own]]
    handlers: dict[str, tuple[Skill[Any, Any], Handler]] = field(default_factory=dict)
    hourly: dict[str, Wire] = field(default_factory=dict)
    """Skills that the system owner asks for every hour, and what is asked."""
    at_once: int = 32
    """Jobs that one worker of it runs at the same time."""

    def handles(
        self, skill: Skill[In, Out], *, hourly: In | None = None
    ) -> Callable[[Callable[[In, Context[Own]], Awaitable[Out]]], Callable[[In, Context[Own]], Awaitable[Out]]]:
        if skill.name.partition(".")[0] != self.name:
            raise ValueError(f"{skill.name} is not a skill of {self.name}")
        if skill.name in self.handlers:
            raise ValueError(f"{skill.name} is handled twice")

        def register(
            handler: Callable[[In, Context[Own]], Awaitable[Out]],
        ) -> Callable[[In, Context[Own]], Awaitable[Out]]:
            self.handlers[skill.name] = (skill, handler)
            if hourly is not None:
                self.hourly[skill.name] = hourly
            return handler

        return register

    @property
    def skills(self) -> list[Skill[Any, Any]]:
        return [skill for skill, _ in self.handlers.values()]


class Dispatcher:
    def __init__(self, agent: Agent[Any], own: Any, gate: Gate, bus: Bus) -> None:
        self._agent = agent
        self._own = own
        self._gate = gate
        self._bus = bus

    async def dispatch(self, job: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
        """What the worker registers with arq."""
        try:
            request = Request.model_validate(body)
        except ValidationError as error:
            log.error("! request malformed errors=%d", error.error_count())
            return _failed(Malformed()).model_dump(mode="json")
        return (await self.run(request)).model_dump(mode="json")

    async def refusal(self, body: dict[str, Any]) -> dict[str, Any] | None:
        """What to say instead of a kept result to a client who may no longer have it; None when it may."""
        try:
            request = Request.model_validate(body)
            skill, _ = self._agent.handlers[request.skill]
            await self._gate.admit(request.client, skill.needs, fresh=skill.fresh)
        except (ValidationError, KeyError):
            return _failed(Malformed()).model_dump(mode="json")
        except MeshError as error:
            return _failed(error).model_dump(mode="json")
        return None

    def keeps(self, skill: str) -> bool:
        found = self._agent.handlers.get(skill)
        return found is not None and found[0].kept

    async def run(self, request: Request) -> Ok | Failed:
        began = time.perf_counter()
        try:
            outcome: Ok | Failed = Ok(value=(await self._admitted(request)).model_dump(mode="json"))
            code, detail = "ok", ""
        except MeshError as error:
            outcome, code, detail = _failed(error), error.code, error.detail
        except Exception:  # the boundary: a defect in one handler becomes an apology, never a lost message
            log.exception("! skill=%s trace=%s", request.skill, request.trace)
            outcome, code, detail = _failed(Crashed()), Crashed.code, ""
        if log.isEnabledFor(logging.INFO):
            log.info(
                "← skill=%s outcome=%s client=%s trace=%s took_ms=%.1f%s",
                request.skill,
                code,
                pseudonym(request.client),
                request.trace,
                (time.perf_counter() - began) * 1000,
                f" detail={detail!r}" if detail else "",
            )
        return outcome

    async def _admitted(self, request: Request) -> Wire:
        left = request.deadline - clock.now()
        if left <= 0:
            raise TimedOut(detail="the deadline had passed before the work began")
        found = self._agent.handlers.get(request.skill)
        if found is None:
            raise Crashed(detail=f"{self._agent.name} has no skill {request.skill}")
        skill, handler = found
        grant = await self._gate.admit(request.client, skill.needs, fresh=skill.fresh)
        try:
            payload = skill.takes.model_validate(request.payload)
        except ValidationError as error:
            raise Malformed(detail=f"{error.error_count()} errors in the payload of {skill.name}") from error
        context = Context(grant=grant, own=self._own, request=request, bus=self._bus, local=self.run)
        try:
            async with asyncio.timeout(min(left, skill.within.total_seconds())):
                return await handler(payload, context)
        except TimeoutError as error:
            raise TimedOut(detail=f"{skill.name} did not finish in time") from error


def _failed(error: MeshError) -> Failed:
    return Failed(code=error.code, user_text=error.user_text)
