"""A change in MongoDB, as its own shell would make it, is effective within two seconds: for tiers and clients at the
gate, for agents in a whole mesh."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from pymongo import AsyncMongoClient
from pymongo.asynchronous.database import AsyncDatabase
from redis.asyncio import Redis

from mesh.access import Gate
from mesh.adapters.mongo import MongoRoster
from mesh.bus import Bus
from mesh.cards import KEY
from mesh.connections import answer, connect
from mesh.dispatch import Dispatcher
from mesh.envelope import Ok
from mesh.ports.people import Client, Tier
from mesh.queues import queues, workers
from mesh.settings import load
from mesh.testing.phone import Phone
from mesh.worker import MeshWorker
from tests.journey.test_mesh import adiyan, ask, said_until, start
from tests.people import ASHA, OWNER
from tests.redis.stage import READ, Stage, request, working
from tests.stores import QUIET, mongodb

pytestmark = [QUIET, pytest.mark.timeout(120)]

WITHIN_S = 2.0
_keys = itertools.count()

Document = dict[str, Any]


async def took(condition: Callable[[], bool | Awaitable[bool]], within_s: float = 40.0) -> float:
    """Seconds until it holds."""
    began = time.monotonic()
    async with asyncio.timeout(within_s):
        while True:
            holds = condition()
            if holds if isinstance(holds, bool) else await holds:
                return time.monotonic() - began
            await asyncio.sleep(0.02)


# ── tiers and clients, at the gate of a worker ────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with mongodb(tmp_path_factory.mktemp("mongodb")) as address:
        yield address


@dataclass
class Office:
    """A worker whose one skill needs `stage:act`, and the MongoDB that its gate reads."""

    bus: Bus
    database: AsyncDatabase[Document]

    async def is_let_in(self) -> bool:
        outcome = await self.bus.ask(request(READ, "hello", key=f"key {next(_keys)}"))
        assert outcome is not None
        return isinstance(outcome, Ok)

    async def is_refused(self) -> bool:
        return not await self.is_let_in()


@pytest.fixture
async def office(uri: str, redis_url: str) -> AsyncIterator[Office]:
    name = f"adiyan_test_{uuid.uuid4().hex[:12]}"
    roster = await MongoRoster.open(uri, name)
    await roster.seed([Tier("gold", frozenset({"stage:act", "a:b"})), Tier("plain", frozenset({"a:b"}))], [])
    await roster.register(Client(ASHA, "Asha", "gold"))
    stage = Stage()
    gate = Gate(roster, system_owner=OWNER, unknown_tier="plain")
    async with AsyncMongoClient[Document](uri) as client, Bus(redis_url) as bus:
        worker = MeshWorker("stage", Dispatcher(stage.agent, None, gate, bus), redis_url)
        async with working(worker):
            opened = Office(bus, client[name])
            assert await opened.is_let_in()
            yield opened
        await client.drop_database(name)
    await roster.close()


async def test_a_permission_that_is_taken_from_a_tier_is_denied_within_two_seconds(office: Office) -> None:
    await office.database["tiers"].update_one({"_id": "gold"}, {"$pull": {"permissions": "stage:act"}})
    assert await took(office.is_refused) < WITHIN_S
    await office.database["tiers"].update_one({"_id": "gold"}, {"$push": {"permissions": "stage:act"}})
    assert await took(office.is_let_in) < WITHIN_S


async def test_a_client_who_is_blocked_gets_nothing_within_two_seconds(office: Office) -> None:
    await office.database["clients"].update_one({"_id": ASHA}, {"$set": {"blocked": True}})
    assert await took(office.is_refused) < WITHIN_S
    await office.database["clients"].update_one({"_id": ASHA}, {"$set": {"blocked": False}})
    assert await took(office.is_let_in) < WITHIN_S


async def test_a_client_who_changes_tier_has_that_ones_permissions_within_two_seconds(office: Office) -> None:
    await office.database["clients"].update_one({"_id": ASHA}, {"$set": {"tier": "plain"}})
    assert await took(office.is_refused) < WITHIN_S
    await office.database["tiers"].update_one({"_id": "plain"}, {"$push": {"permissions": "stage:act"}})
    assert await took(office.is_let_in) < WITHIN_S
    await office.database["tiers"].delete_one({"_id": "plain"})
    assert await took(office.is_refused) < WITHIN_S


# ── agents, in a whole mesh ───────────────────────────────────────────────────────────────────────────────────────

WEATHER = """
from contextlib import asynccontextmanager
from datetime import timedelta
from mesh.contracts.answers import Answer, Ask
from mesh.dispatch import Agent
from mesh.skills import Card, Skill

ASKED = "What will the weather be like tomorrow?"
FORECAST = Skill(
    name="weather.forecast", takes=Ask, returns=Answer, needs="weather:ask", within=timedelta(seconds=20),
    card=Card(summary="Tells the weather.", examples=(ASKED, "Will it rain today?"), hears="question"),
)

@asynccontextmanager
async def nothing(parts):
    yield None

agent = Agent("weather", opens=nothing)

@agent.handles(FORECAST)
async def forecast(ask, ctx):
    return Answer(text="There will be {kind}.", grounded=True)
"""
QUESTION = "What will the weather be like tomorrow?"
PRICES = "# Rooms\n\nA double room costs 84 euros a night.\n"


@dataclass
class Whole:
    """An `adiyan up`, its stores, and its people."""

    home: Path
    pid: int
    said: Callable[[str], str]
    database: AsyncDatabase[Document]
    redis: Redis
    phone: Phone

    def pids(self, agent: str) -> list[int]:
        """The oldest first."""
        found = [each for each in psutil.Process(self.pid).children() if command(each)[-2:] == ["run", agent]]
        return [each.pid for each in sorted(found, key=lambda each: each.create_time())]

    async def change(self, agent: str, **fields: object) -> None:
        await self.database["agents"].update_one({"_id": agent}, {"$set": {"name": agent, **fields}}, upsert=True)

    async def told(self, word: str) -> float:
        """Seconds until `up` says it on its console."""
        began = time.monotonic()
        await asyncio.to_thread(self.said, word)
        return time.monotonic() - began

    async def works(self, agent: str, copies: int = 1) -> bool:
        alive = [each.pid for each in await workers(self.redis) if each.agent == agent]
        return sorted(alive) == sorted(self.pids(agent)) and len(alive) == copies

    async def queued(self, agent: str) -> int:
        (state,) = [each for each in await queues(self.redis, [agent]) if each.agent == agent]
        return state.waiting + state.running


def command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except (psutil.NoSuchProcess, psutil.ZombieProcess):  # it has just ended
        return []


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, int, Callable[[str], str]]]:
    home, code = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("code")
    for kind in ("sun", "snow"):
        (code / f"weather_{kind}.py").write_text(WEATHER.replace("{kind}", kind))
    process = start(home, PYTHONPATH=str(code), DASHBOARD_PORT="0")
    out = process.stdout
    assert out is not None
    said_until(out, "The mesh is up")
    (home / "prices.md").write_text(PRICES)
    for arguments in (
        ("clients", "register", ASHA, "--name", "Asha", "--tier", "gold"),
        ("tiers", "grant", "gold", "weather:ask"),
        ("kb", "add", str(home / "prices.md"), "--global"),
    ):
        ran = adiyan(home, *arguments)
        assert ran.returncode == 0, ran.stderr
    try:
        yield home, process.pid, lambda word: said_until(out, word)
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=40)


@pytest.fixture
async def mesh(up: tuple[Path, int, Callable[[str], str]]) -> AsyncIterator[Whole]:
    home, pid, said = up
    async with joined(home) as (database, redis, phone):
        yield Whole(home, pid, said, database, redis, phone)


@asynccontextmanager
async def joined(home: Path) -> AsyncIterator[tuple[AsyncDatabase[Document], Redis, Phone]]:
    record = json.loads((home / "mesh.json").read_text())
    given = record["environment"]
    redis = connect(given["REDIS_URL"])
    async with AsyncMongoClient[Document](given["MONGODB_URI"]) as client, Phone(record["phone"]) as phone:
        yield client[load().mongodb_database], redis, phone
    await redis.aclose()


async def test_copies_are_started_and_stopped_while_the_mesh_runs(mesh: Whole) -> None:
    (first,) = mesh.pids("memory")
    await mesh.change("memory", copies=3)
    assert await took(lambda: len(mesh.pids("memory")) == 3) < WITHIN_S
    await took(lambda: mesh.works("memory", 3))
    await mesh.change("memory", copies=1)
    assert await mesh.told("memory: 3 → 1 copy") < WITHIN_S
    await took(lambda: mesh.pids("memory") == [first])
    await took(lambda: mesh.works("memory"))


async def test_an_agent_is_added_changed_and_removed_while_the_mesh_runs(mesh: Whole) -> None:
    await mesh.change("weather", module="weather_sun", copies=1)
    assert await took(lambda: len(mesh.pids("weather")) == 1) < WITHIN_S
    (first,) = mesh.pids("weather")
    await took(lambda: mesh.works("weather"))
    assert "sun" in await ask(mesh.phone, ASHA, QUESTION)

    await mesh.change("weather", module="weather_snow")
    assert await took(lambda: bool(set(mesh.pids("weather")) - {first})) < WITHIN_S
    await took(lambda: mesh.works("weather"))
    assert first not in mesh.pids("weather")
    assert "snow" in await ask(mesh.phone, ASHA, QUESTION)

    await mesh.database["agents"].delete_one({"_id": "weather"})
    removed = time.monotonic()
    assert await mesh.told("weather: removed") < WITHIN_S
    await took(lambda: not mesh.pids("weather"))
    assert await answer(mesh.redis.hexists(KEY, "weather.forecast")), "its card is still announced"
    await asyncio.sleep(max(0.0, removed + WITHIN_S - time.monotonic()))  # the claim: from then on
    reply = await ask(mesh.phone, ASHA, QUESTION)
    assert "snow" not in reply
    assert "sun" not in reply
    assert await mesh.queued("weather") == 0, "nobody waited for an agent that is not there"


async def test_an_agent_that_is_switched_off_is_told_nothing_and_holds_nobody_up(mesh: Whole) -> None:
    await took(lambda: mesh.works("memory"))
    await mesh.change("memory", copies=0)
    off = time.monotonic()
    assert await mesh.told("memory: 1 → off") < WITHIN_S
    await took(lambda: not mesh.pids("memory"))
    await asyncio.sleep(max(0.0, off + WITHIN_S - time.monotonic()))  # the claim: from then on
    assert "84 euros" in await ask(mesh.phone, ASHA, "How much is a double room?")
    assert await mesh.queued("memory") == 0, "a recall would have waited there for four seconds"
    await mesh.change("memory", copies=1)
    assert await took(lambda: len(mesh.pids("memory")) == 1) < WITHIN_S
    await took(lambda: mesh.works("memory"))


async def test_what_is_off_is_said_to_be_away_and_not_to_be_another_plan(mesh: Whole) -> None:
    """A client who may only search, while the only agent that searches is off."""
    await mesh.database["tiers"].insert_one({"_id": "reader", "permissions": ["chat:converse", "knowledge:search"]})
    await mesh.database["clients"].update_one({"_id": ASHA}, {"$set": {"tier": "reader"}})
    await mesh.change("knowledge", copies=0)
    await took(lambda: not mesh.pids("knowledge"))

    async def away() -> bool:
        return "right now" in await ask(mesh.phone, ASHA, "How much is a double room?")

    await took(away)
    await mesh.database["clients"].update_one({"_id": ASHA}, {"$set": {"tier": "gold"}})
    await mesh.change("knowledge", copies=1)
    await took(lambda: mesh.works("knowledge"))


async def test_a_bad_entry_is_told_and_the_mesh_goes_on(mesh: Whole) -> None:
    await took(lambda: mesh.works("memory"))
    (memory,) = mesh.pids("memory")
    await mesh.change("memory", copies="plenty")
    assert await mesh.told("agent memory: copies") < WITHIN_S
    await mesh.change("weather", module="weather_nowhere", copies=1)
    assert "weather_nowhere can't be imported" in await asyncio.to_thread(mesh.said, "weather did not start")
    assert "84 euros" in await ask(mesh.phone, ASHA, "How much is a double room?")
    assert mesh.pids("memory") == [memory]
    await mesh.database["agents"].delete_one({"_id": "weather"})
    await mesh.change("memory", copies=1)
    assert await mesh.told("weather: removed") < WITHIN_S
    await took(lambda: not mesh.pids("weather"))


async def test_ctrl_c_after_a_change_leaves_nothing_behind(tmp_path: Path) -> None:
    process = start(tmp_path, DASHBOARD_PORT="0")
    assert process.stdout is not None
    await asyncio.to_thread(said_until, process.stdout, "The mesh is up")
    async with joined(tmp_path) as (database, _, _):
        await database["agents"].update_one({"_id": "knowledge"}, {"$set": {"copies": 3}})
        await database["agents"].update_one({"_id": "memory"}, {"$set": {"copies": 0}})
    await asyncio.to_thread(said_until, process.stdout, "memory: 1 → off")
    children = psutil.Process(process.pid).children(recursive=True)
    assert sum(command(each)[-1:] == ["knowledge"] for each in children) == 3
    process.send_signal(signal.SIGINT)
    rest, _ = await asyncio.to_thread(process.communicate, timeout=40)
    assert process.returncode == 0, rest
    assert "Traceback" not in rest
    left = [each for each in children if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]
    assert not left
    assert not os.path.exists(tmp_path / "mesh.json")
