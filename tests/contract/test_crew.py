"""Processes as a real MongoDB has the agents: what changes there is started and stopped within two seconds. The
processes are small ones of Python, since it is about which of them run."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest
from pymongo import AsyncMongoClient
from pymongo.asynchronous.collection import AsyncCollection

from mesh.adapters.mongo import MongoRoster
from mesh.configuration import AgentEntry
from mesh.crew import Crew
from mesh.embedded.supervisor import READY_FILE, Part, Supervisor
from mesh.settings import ROOT
from tests.stores import QUIET, mongodb

pytestmark = QUIET

WITHIN_S = 2.0
READY = f"import os, pathlib, signal, sys, time; pathlib.Path(os.environ['{READY_FILE}']).touch(); "
MODULES = {
    "agents.broken": "raise SystemExit('the ink is dry')",
    "agents.busy": f"{READY} signal.signal(signal.SIGTERM, lambda *_: (time.sleep(3), sys.exit())); time.sleep(600)",
}
"""What a process of this module does; any other is ready, and waits."""


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with mongodb(tmp_path_factory.mktemp("mongodb")) as address:
        yield address


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing is measured, MongoDB is looked at more often, so that the test takes less time."""
    monkeypatch.setattr("mesh.crew.LOOK_EVERY_S", 0.1)


def process(entry: AgentEntry, number: int) -> Part:
    code = MODULES.get(entry.module, f"{READY} time.sleep(600)")
    return Part(f"{entry.name}-{number}", (sys.executable, "-c", code, entry.module))


@dataclass
class Scene:
    supervisor: Supervisor
    agents: AsyncCollection[dict[str, Any]]
    crew: Crew
    told: list[str] = field(default_factory=list)

    def pids(self, name: str) -> list[int]:
        """Of the copies that are kept, the oldest first."""
        return [each.pid for each in self._processes(name)]

    def modules(self, name: str) -> set[str]:
        return {each.cmdline()[-1] for each in self._processes(name)}

    def _processes(self, name: str) -> list[psutil.Process]:
        return [
            psutil.Process(running.process.pid)
            for running in self.supervisor.running
            if running.part.name.startswith(f"{name}-") and running.process and running.process.returncode is None
        ]

    async def change(self, name: str, **fields: object) -> None:
        await self.agents.update_one({"_id": name}, {"$set": {"name": name, **fields}}, upsert=True)


@asynccontextmanager
async def scene(uri: str, home: Path, **copies: int) -> AsyncIterator[Scene]:
    told: list[str] = []
    database = f"adiyan_test_{uuid.uuid4().hex[:12]}"
    async with AsyncExitStack() as stack:
        roster = await MongoRoster.open(uri, database)
        stack.push_async_callback(roster.close)
        client = await stack.enter_async_context(AsyncMongoClient[dict[str, Any]](uri))
        supervisor = await stack.enter_async_context(Supervisor(home))
        crew = Crew(supervisor, roster, process, told.append)
        opened = Scene(supervisor, client[database]["agents"], crew, told)
        for name, count in {"orchestrator": 1, **copies}.items():
            await opened.change(name, module=f"agents.{name}", copies=count)
        await supervisor.start_together(*await crew.first(ROOT / "config"))
        async with crew.watching():
            yield opened
        await client.drop_database(database)


async def took(condition: Callable[[], bool], within_s: float = 15.0) -> float:
    began = time.monotonic()
    async with asyncio.timeout(within_s):
        while not condition():
            await asyncio.sleep(0.02)
    return time.monotonic() - began


async def test_more_copies_are_started_within_two_seconds(uri: str, tmp_path: Path) -> None:
    async with scene(uri, tmp_path, memory=1) as on:
        before = on.pids("memory")
        await on.change("memory", copies=3)
        assert await took(lambda: len(on.pids("memory")) == 3) < WITHIN_S
        assert on.pids("memory")[:1] == before
        await took(lambda: {"memory-2 is up.", "memory-3 is up."} <= set(on.told))
        assert "memory: 1 → 3 copies" in on.told


async def test_fewer_copies_stop_the_newest_within_two_seconds(uri: str, tmp_path: Path) -> None:
    async with scene(uri, tmp_path, memory=3) as on:
        before = on.pids("memory")
        await on.change("memory", copies=1)
        assert await took(lambda: on.pids("memory") == before[:1]) < WITHIN_S
        await took(lambda: len(on.supervisor.running) == 2)


async def test_an_agent_that_is_added_starts_and_one_that_is_removed_stops(uri: str, tmp_path: Path) -> None:
    async with scene(uri, tmp_path) as on:
        await on.change("guide", module="agents.guide", copies=1)
        assert await took(lambda: on.modules("guide") == {"agents.guide"}) < WITHIN_S
        await on.agents.delete_one({"_id": "guide"})
        assert await took(lambda: not on.pids("guide")) < WITHIN_S
        assert on.told[-1] == "guide: removed"


async def test_another_module_starts_every_copy_anew(uri: str, tmp_path: Path) -> None:
    async with scene(uri, tmp_path, guide=2) as on:
        before = set(on.pids("guide"))
        await on.change("guide", module="agents.better")
        assert await took(lambda: on.modules("guide") == {"agents.better"}) < WITHIN_S
        assert not before & set(on.pids("guide"))
        assert len(on.pids("guide")) == 2


async def test_one_that_is_busy_ending_does_not_hold_up_the_others(uri: str, tmp_path: Path) -> None:
    async with scene(uri, tmp_path, busy=1) as on:
        await on.change("busy", copies=0)
        await took(lambda: "busy: 1 → off" in on.told)
        assert on.pids("busy"), "it was given time"
        await on.change("guide", module="agents.guide", copies=1)
        assert await took(lambda: bool(on.pids("guide"))) < WITHIN_S
        assert on.pids("busy")


@pytest.mark.usefixtures("often")
async def test_what_was_stopped_on_purpose_is_not_started_again(uri: str, tmp_path: Path) -> None:
    """It dies while it is kept, and is switched off while the keeper waits to start it again."""
    async with scene(uri, tmp_path, guide=1) as on:
        (kept,) = [each for each in on.supervisor.running if each.part.name == "guide-1"]
        os.kill(on.pids("guide")[0], signal.SIGKILL)
        await on.change("guide", copies=0)
        await took(lambda: kept not in on.supervisor.running)
        restarts = kept.restarts
        for _ in range(2):  # two more looks, longer than the keeper's pause
            on.told.clear()
            await on.change("memory", module="agents.memory", copies=1)
            await took(lambda: bool(on.told))
            await on.agents.delete_one({"_id": "memory"})
            await took(lambda: "memory: removed" in on.told)
        assert kept.restarts == restarts
        assert not on.pids("guide")


@pytest.mark.usefixtures("often")
async def test_what_dies_is_started_again_after_a_change_too(uri: str, tmp_path: Path) -> None:
    async with scene(uri, tmp_path) as on:
        await on.change("guide", module="agents.guide", copies=1)
        await took(lambda: "guide-1 is up." in on.told)
        (first,) = on.pids("guide")
        os.kill(first, signal.SIGKILL)
        await took(lambda: on.pids("guide") not in ([], [first]))


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"copies": "many"}, "copies"),
        ({"copies": -1}, "copies"),
        ({"copies": 1000}, "copies"),
        ({"module": "rm -rf"}, "module"),
        ({"colour": "teal"}, "colour"),
        ({"name": "gateway"}, "process of the mesh itself"),
    ],
)
async def test_a_bad_entry_is_told_once_and_leaves_everything_as_it_was(
    uri: str, tmp_path: Path, fields: dict[str, object], word: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with scene(uri, tmp_path, memory=1) as on:
        before = on.pids("memory")
        await on.agents.update_one({"_id": "memory"}, {"$set": {"name": "memory", **fields}})
        if "name" in fields:
            await on.change("memory", module="agents.memory", copies=1)
            await on.agents.insert_one({"module": "agents.gateway", "copies": 1, **fields})
        await on.change("guide", module="agents.guide", copies=1)
        await took(lambda: bool(on.pids("guide")))
        await on.change("guide", copies=2)
        await took(lambda: len(on.pids("guide")) == 2)
        assert on.pids("memory") == before
        assert not on.pids("gateway")
        assert len([each for each in caplog.messages if word in each]) == 1


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("entry", [None, {"copies": 0}, {"module": 7}])
async def test_the_orchestrator_stays_whatever_is_written(
    uri: str, tmp_path: Path, entry: dict[str, object] | None, caplog: pytest.LogCaptureFixture
) -> None:
    async with scene(uri, tmp_path) as on:
        before = on.pids("orchestrator")
        if entry is None:
            await on.agents.delete_one({"_id": "orchestrator"})
        else:
            await on.change("orchestrator", **entry)
        await took(lambda: "orchestrator" in caplog.text)
        await on.change("guide", module="agents.guide", copies=1)
        await took(lambda: bool(on.pids("guide")))
        assert on.pids("orchestrator") == before
        assert len(before) == 1


async def test_a_mesh_whose_orchestrator_was_deleted_or_spoiled_starts_with_one(uri: str, tmp_path: Path) -> None:
    for name, document in (("deleted", None), ("spoiled", {"name": "orchestrator", "module": "agents.o", "copies": 0})):
        database = f"adiyan_test_{uuid.uuid4().hex[:12]}"
        roster = await MongoRoster.open(uri, database)
        async with AsyncMongoClient[dict[str, Any]](uri) as client, Supervisor(tmp_path / name) as supervisor:
            if document:
                await client[database]["agents"].insert_one({"_id": "orchestrator", **document})
            parts = await Crew(supervisor, roster, process, lambda _: None).first(ROOT / "config")
            assert [part.name for part in parts] == ["orchestrator-1"]
            await client.drop_database(database)
        await roster.close()


@pytest.mark.usefixtures("often")
async def test_one_that_cannot_start_is_told_with_its_last_words_and_the_others_go_on(
    uri: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with scene(uri, tmp_path, memory=1) as on:
        before = on.pids("memory")
        await on.change("broken", module="agents.broken", copies=1)
        await took(lambda: "broken-1 did not start: the ink is dry" in caplog.text)
        await on.change("broken", module="agents.mended")
        await took(lambda: "broken-1 is up." in on.told)
        assert on.pids("memory") == before


@pytest.mark.usefixtures("often")
async def test_without_mongodb_nothing_changes_and_afterwards_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("mesh.adapters.mongo.TIMEOUT_MS", 300)
    with mongodb(tmp_path / "mongodb") as uri:
        port = uri.partition("/?")[0].rpartition(":")[2]
        (server,) = [each for each in psutil.Process().children() if port in each.cmdline()]
        async with scene(uri, tmp_path / "home", memory=2) as on:
            before = on.pids("memory"), on.pids("orchestrator")
            server.suspend()
            await took(lambda: "MongoDB can't be read" in caplog.text)
            assert (on.pids("memory"), on.pids("orchestrator")) == before
            server.resume()
            await on.change("memory", copies=1)
            await took(lambda: on.pids("memory") == before[0][:1])
            assert caplog.text.count("MongoDB can't be read") == 1


@pytest.mark.usefixtures("often")
async def test_leaving_in_the_middle_of_a_change_leaves_nothing_behind(uri: str, tmp_path: Path) -> None:
    async with scene(uri, tmp_path, memory=1, busy=1) as on:
        await on.change("busy", copies=0)
        await on.change("memory", copies=4)
        await took(lambda: len(on.pids("memory")) == 4)
        pids = [*on.pids("memory"), *on.pids("busy"), *on.pids("orchestrator")]
    assert len(pids) == 6
    assert not [pid for pid in pids if psutil.pid_exists(pid)]
    assert asyncio.all_tasks() == {asyncio.current_task()}, "nobody is left who would start another"
