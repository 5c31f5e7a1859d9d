"""The agents' processes on one machine, kept as MongoDB has the agents. An entry that can't be read changes nothing."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from mesh.configuration import ORCHESTRATOR, AgentEntry, agents, read_agents
from mesh.embedded.supervisor import Part, Running, Supervisor
from mesh.errors import Unavailable
from mesh.ports.people import Roster

log = logging.getLogger(__name__)

LOOK_EVERY_S = 1.0
"""How long a change in MongoDB may go unnoticed."""


class Crew:
    """`first` says what to start with; inside `watching`, processes are started and stopped as MongoDB changes."""

    def __init__(
        self,
        supervisor: Supervisor,
        roster: Roster,
        process: Callable[[AgentEntry, int], Part],
        tell: Callable[[str], None],
    ) -> None:
        self._supervisor = supervisor
        self._roster = roster
        self._process = process
        self._tell = tell
        self._entries: dict[str, AgentEntry] = {}
        self._copies: dict[str, list[Running]] = {}
        self._new: list[Running] = []
        """Launched, and not ready yet."""
        self._ending: set[asyncio.Task[None]] = set()
        self._warned: dict[str, str] = {}

    async def first(self, config: Path) -> list[Part]:
        """Always with an orchestrator: a mesh without one could not be put right, and nobody would be answered."""
        own = next(entry for entry in agents(config) if entry["name"] == ORCHESTRATOR)
        found = read_agents(await self._roster.agents())
        if ORCHESTRATOR not in {*found.good, *found.bad}:
            await self._roster.seed([], [own], again=True)
        self._warn_of(found.bad)
        self._entries = {ORCHESTRATOR: AgentEntry.model_validate(own), **found.good}
        return [part for entry in self._entries.values() for part in self._parts(entry)]

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Once the first ones are started."""
        started = {running.part.name: running for running in self._supervisor.running}
        for entry in self._entries.values():
            self._copies[entry.name] = [started[part.name] for part in self._parts(entry)]
        watch = asyncio.create_task(self._watch(), name="watch the agents")
        try:
            yield
        finally:
            tasks = [watch, *self._ending]  # the supervisor ends whatever still runs
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            try:
                await self.look()
            except Unavailable as error:
                self._warn("", f"MongoDB can't be read, so the agents stay as they are: {error.detail}")
            except Exception:  # a defect in one look must not end the watching
                log.exception("! the agents could not be looked at")
            else:
                self._warned.pop("", None)
            await self._tell_of_the_new()

    async def look(self) -> None:
        found = read_agents(await self._roster.agents())
        if ORCHESTRATOR not in found.good:
            found.bad.setdefault(ORCHESTRATOR, "MongoDB has no orchestrator: nobody would be answered.")
        self._warn_of(found.bad)
        for name in self._entries.keys() - found.good.keys() - found.bad.keys():
            self._tell(f"{name}: removed")
            for running in self._copies.pop(name):
                self._end(running)
            del self._entries[name]
        for entry in found.good.values():
            if entry != self._entries.get(entry.name):
                await self._fit(entry)

    async def _fit(self, entry: AgentEntry) -> None:
        before = self._entries.get(entry.name)
        self._entries[entry.name] = entry
        self._tell(change(before, entry))
        copies = self._copies.setdefault(entry.name, [])
        stay = entry.copies if before is None or before.module == entry.module else 0
        while len(copies) > stay:
            self._end(copies.pop())
        for part in self._parts(entry)[len(copies) :]:
            copies.append(await self._supervisor.launch(part))
            self._new.append(copies[-1])

    def _end(self, running: Running) -> None:
        """Not waited for: it takes nothing more, and may finish what it is at while others start."""
        if running in self._new:
            self._new.remove(running)
        self._warned.pop(running.part.name, None)
        task = asyncio.create_task(self._supervisor.stop(running), name=f"stop {running.part.name}")
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def _tell_of_the_new(self) -> None:
        for running in list(self._new):
            name = running.part.name
            if await running.is_ready():
                self._new.remove(running)
                self._tell(f"{name} is up.")
            elif running.restarts:
                self._warn(name, f"{name} did not start: {running.last_words()} (log: {running.log_file})")

    def _warn_of(self, bad: dict[str, str]) -> None:
        for name in self._entries.keys() - bad.keys():
            self._warned.pop(f"entry {name}", None)
        for name, trouble in bad.items():
            self._warn(f"entry {name}", f"{trouble} It is left as it was.")

    def _warn(self, about: str, text: str) -> None:
        """Once, until the trouble is another."""
        if self._warned.get(about) != text:
            self._warned[about] = text
            log.warning("! %s", text)

    def _parts(self, entry: AgentEntry) -> list[Part]:
        return [self._process(entry, number) for number in range(1, entry.copies + 1)]


def change(before: AgentEntry | None, after: AgentEntry) -> str:
    """`memory: 1 → 3 copies`."""
    copies = "off" if after.copies == 0 else "1 copy" if after.copies == 1 else f"{after.copies} copies"
    if before is None:
        return f"{after.name}: new, {copies}"
    moved = [] if before.module == after.module else [f"module {before.module} → {after.module}"]
    if before.copies != after.copies:
        moved.append(f"{before.copies or 'off'} → {copies}")
    return f"{after.name}: {', '.join(moved) or f'{copies}, unchanged'}"
