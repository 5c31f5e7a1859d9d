"""Which agents should have a worker."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

from mesh.configuration import read_agents
from mesh.errors import MeshError

log = logging.getLogger(__name__)

LOOK_EVERY_S = 2.0

Documents = list[dict[str, Any]]


class Configured:
    """As MongoDB has them, at most a few seconds ago; until it can be read, as `first` says. Nobody waits for it."""

    def __init__(self, first: Documents, read: Callable[[], Awaitable[Documents]] | None) -> None:
        self._names = _names(first)
        self._read = read
        self._looked_at = float("-inf")
        self._looking: asyncio.Task[None] | None = None

    def names(self) -> list[str]:
        due = time.monotonic() - self._looked_at > LOOK_EVERY_S
        if self._read and due and (self._looking is None or self._looking.done()):
            self._looking = asyncio.create_task(self._look(self._read), name="look for agents")
        return self._names

    async def close(self) -> None:
        if self._looking:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)

    async def _look(self, read: Callable[[], Awaitable[Documents]]) -> None:
        try:
            self._names = _names(await read())
        except MeshError as error:
            log.warning("! the agents can't be read; shown as they were: %s", error.detail or error.user_text)
        self._looked_at = time.monotonic()


def _names(documents: Documents) -> list[str]:
    """Those that are on; an entry that can't be read may still have workers."""
    agents = read_agents(documents)
    return sorted({*(name for name in agents.good if agents.serves(name)), *agents.bad})
