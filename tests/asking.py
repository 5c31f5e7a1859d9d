"""An agent as its worker runs it, behind its gate, without the bus."""

from __future__ import annotations

import time
import uuid
from typing import Any, TypeVar

from mesh.context import unwrap
from mesh.dispatch import Dispatcher
from mesh.envelope import Failed, Ok, Request, Wire
from mesh.skills import Skill

Out = TypeVar("Out", bound=Wire)


class Asking:
    def __init__(self, dispatcher: Dispatcher) -> None:
        self.dispatcher = dispatcher

    async def run(self, client: str, skill: Skill[Any, Any], payload: Wire) -> Ok | Failed:
        return await self.dispatcher.run(
            Request(
                client=client,
                skill=skill.name,
                payload=payload.model_dump(mode="json"),
                trace="t",
                key=uuid.uuid4().hex,
                deadline=time.time() + 60,
            )
        )

    async def ask(self, client: str, skill: Skill[Any, Out], payload: Wire) -> Out:
        return unwrap(skill, await self.run(client, skill, payload))
