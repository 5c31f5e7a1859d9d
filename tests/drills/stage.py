"""A mesh for the drills: its real processes in a folder of their own, the drills' agent among them, and ways to do to
each process what a machine may do to it."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from redis.asyncio import Redis

from mesh.connections import connect
from mesh.embedded.parts import http_says_ok
from mesh.embedded.supervisor import Part, Running, Supervisor, free_port
from mesh.ledger import LOOKED, Ledger
from mesh.ports.people import Client, Roster
from mesh.settings import ROOT, Settings, load
from mesh.testing.phone import Phone
from mesh.testing.script import ModelScript
from mesh.up import Mesh, Started
from mesh.wiring import open_roster
from tests.drills import echo
from tests.drills.verdict import Log

REVOCABLE = "revocable"
"""A tier for the drill that takes it away."""
REFUSAL = "You are not served here any more."
WITHIN_S = 30.0
"""For a condition that a drill waits for."""


class Skipped(Exception):
    """The text says what this machine lacks."""


@dataclass(frozen=True)
class Wanted:
    """The kind of mesh that a drill needs."""

    agents: tuple[str, ...] = ("orchestrator",)
    """Beside the drills' own."""
    copies: int = 1
    chat_model: str = ""
    catch_up_s: float = 2.0
    quiet_s: float = 0.0
    """0: each message is answered by itself."""
    disk_mb: int = 0
    """The size of Redis's disk; 0: as large as the machine's."""

    @property
    def needs_qdrant(self) -> bool:
        return bool({"knowledge", "memory"} & {*self.agents})


SMALL = Wanted()
TWICE = Wanted(copies=2, catch_up_s=15.0)
QUIET = Wanted(copies=2, catch_up_s=15.0, quiet_s=1.0)
WHOLE = Wanted(agents=("orchestrator", "knowledge", "memory", "analysis"), chat_model="scripted")


class Stage:
    """The running mesh, the doubles of the provider and of the model, and what can be done to them."""

    def __init__(
        self,
        mesh: Mesh,
        started: Started,
        *,
        phone: Phone,
        model: ModelScript,
        roster: Roster,
        redis: Redis,
        folder: Path,
    ) -> None:
        self.started = started
        self.phone = phone
        self.model = model
        self.roster = roster
        self.redis = redis
        """To choose the moment of a kill, and to do something to Redis itself; never for a verdict."""
        self.kills = 0
        self.home = started.settings.adiyan_home
        self._mesh = mesh
        self._folder = folder
        self._ledger = Ledger(redis)
        self._people = 0
        self._tokens = 0
        self._log: dict[str, list[dict[str, Any]]] = {}
        self._logging = asyncio.Lock()

    # ── people and messages ───────────────────────────────────────────────────────────────────────────────────────

    async def people(self, count: int, tier: str = "default") -> list[str]:
        """Registered clients who have not written yet."""
        people = [f"+1555{self._people + number:07d}" for number in range(1, count + 1)]
        self._people += count
        for person in people:
            await self.roster.register(Client(person, person, tier))
        return people

    def token(self) -> str:
        self._tokens += 1
        return echo.token_of(self._tokens)

    async def log(self) -> Log:
        """The simulated Twilio's, all of it; only what is new is fetched."""
        async with self._logging:
            last = max((entries[-1]["n"] for entries in self._log.values() if entries), default=0)
            for kind, entries in (await self.phone.log(last)).items():
                self._log.setdefault(kind, []).extend(entries)
        return self._log

    # ── what is done to processes ─────────────────────────────────────────────────────────────────────────────────

    def copies(self, name: str) -> list[Running]:
        """`orchestrator` is also `orchestrator-2`."""
        running = self._mesh.supervisor.running
        return [each for each in running if each.part.name == name or each.part.name.startswith(f"{name}-")]

    def alive(self, name: str) -> list[int]:
        """Their process ids."""
        processes = [each.process for each in self.copies(name)]
        return [each.pid for each in processes if each is not None and each.returncode is None]

    def kill(self, *names: str) -> None:
        """SIGKILL to all copies."""
        for pid in [pid for name in names for pid in self.alive(name)]:
            self.kill_process(pid)

    def kill_process(self, pid: int) -> None:
        with contextlib.suppress(ProcessLookupError):  # it was faster
            os.kill(pid, signal.SIGKILL)
            self.kills += 1

    @asynccontextmanager
    async def down(self, name: str) -> AsyncIterator[None]:
        """Killed, and not started again until the block ends."""
        supervisor, running = self._mesh.supervisor, self.copies(name)
        order = [each.part.name for each in supervisor.running]
        self.kill(name)
        for each in running:
            await supervisor.stop(each)
        try:
            yield
        finally:
            await supervisor.start_together(*(each.part for each in running))
            supervisor.running.sort(key=lambda each: order.index(each.part.name))  # ended in this order, last one first

    @contextmanager
    def frozen(self, name: str, longest: float = 30.0) -> Iterator[None]:
        """SIGSTOP until the block ends. A guard of its own ends it after `longest` seconds, whatever becomes of this
        process: what is stopped can't be told to end."""
        pids = self.alive(name)
        command = ("/bin/sh", "-c", 'sleep "$0"; kill -CONT "$@"', str(longest), *map(str, pids))
        with subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL) as guard:
            try:
                for pid in pids:
                    os.kill(pid, signal.SIGSTOP)
                yield
            finally:
                for pid in pids:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGCONT)
                os.killpg(guard.pid, signal.SIGKILL)

    @asynccontextmanager
    async def another(self, agent: str, **environment: str) -> AsyncIterator[None]:
        """One more copy of an agent, with an environment of its own, until the block ends."""
        command = (sys.executable, "-m", "mesh.cli", "run", agent)
        part = Part(f"extra-{agent}", command, None, {**self.started.environment, **environment})
        running = await self._mesh.supervisor.launch(part)
        try:
            await until(running.is_ready, f"{part.name} is ready", within=90)
            yield
        finally:
            await self._mesh.supervisor.stop(running)

    # ── moments ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def reaches(self, sid: str, state: str) -> None:
        """Until the turn of a message is in this state. For timing alone."""

        async def there() -> bool:
            turn = await self._ledger.turn(sid)
            return turn is not None and turn.state == state

        await until(there, f"a turn is {state}")

    async def looked(self) -> None:
        """Until the mesh has looked into the provider's list once."""

        async def has_looked() -> bool:
            return bool(await self.redis.exists(LOOKED))

        await until(has_looked, "the mesh looks into the provider's list")

    async def held(self, token: str) -> None:
        await until((self._folder / f"{token}.held").exists, f"{token} is held")

    def let_go(self, token: str) -> None:
        (self._folder / f"{token}.go").touch()

    async def close(self) -> None:
        await self._ledger.close()


@asynccontextmanager
async def staged(wanted: Wanted, folder: Path) -> AsyncIterator[Stage]:
    """All of it is gone when the block ends."""
    held = folder / "held"
    held.mkdir(parents=True)
    config = _config(wanted, folder / "config")
    async with AsyncExitStack() as stack:
        stack.enter_context(_environment(PYTHONPATH=str(ROOT), **{echo.FOLDER: str(held)}))
        supervisor = await stack.enter_async_context(Supervisor(folder / "model"))
        port = free_port()
        model = f"http://127.0.0.1:{port}"
        command = (sys.executable, "-m", "mesh.testing.model", "--port", str(port))
        await supervisor.start(Part("model-scripted", command, http_says_ok(model)))
        if wanted.disk_mb:
            stack.enter_context(_disk(folder / "home" / "redis", wanted.disk_mb))
        mesh = Mesh(_settings(wanted, folder / "home", config, model))
        started = await stack.enter_async_context(mesh)
        roster = await open_roster(started.settings)
        stack.push_async_callback(roster.close)
        redis = connect(started.settings.redis_url)
        stack.push_async_callback(redis.aclose)
        stage = Stage(
            mesh,
            started,
            phone=await stack.enter_async_context(Phone(started.phone)),
            model=await stack.enter_async_context(ModelScript(model)),
            roster=roster,
            redis=redis,
            folder=held,
        )
        stack.push_async_callback(stage.close)
        yield stage


def _config(wanted: Wanted, folder: Path) -> Path:
    """As the repository's, with the agents that are wanted, the drills' own, and a tier that can be taken away."""
    shutil.copytree(ROOT / "config", folder, ignore=shutil.ignore_patterns("demo"))
    for file in (folder / "agents").iterdir():
        file.unlink()
    entries = {name: f"agents.{name}" for name in wanted.agents} | {"echo": echo.__name__}
    for name, module in entries.items():
        copies = wanted.copies if name in ("orchestrator", "echo") else 1
        entry = {"name": name, "module": module, "copies": copies}
        (folder / "agents" / f"{name}.yaml").write_text(yaml.safe_dump(entry))
    tiers = yaml.safe_load((folder / "tiers.yaml").read_text())
    tiers.append({"name": REVOCABLE, "permissions": ["chat:converse"], "refusal": REFUSAL})
    (folder / "tiers.yaml").write_text(yaml.safe_dump(tiers))
    return folder


def _settings(wanted: Wanted, home: Path, config: Path, model: str) -> Settings:
    """Everything embedded, whatever the environment says."""
    given: dict[str, object] = {
        "redis_url": "",
        "mongodb_uri": "",
        "qdrant_url": "" if wanted.needs_qdrant else "http://127.0.0.1:9",
        "ollama_host": model,
        "twilio_account_sid": "",
        "public_url": "",
        "gateway_port": 0,
        "dashboard_port": 0,
        "chat_model": wanted.chat_model,
        "chat_seconds": 2.0,
        "quiet_seconds": wanted.quiet_s,
        "catch_up_seconds": wanted.catch_up_s,
        "most_waiting": 1000,
    }
    return load(adiyan_home=home, adiyan_config=config, **given)


@contextmanager
def _disk(folder: Path, megabytes: int) -> Iterator[None]:
    """In memory, and so small that it can be filled. Raises `Skipped` where one can't be mounted."""
    folder.mkdir(parents=True)
    command = ("mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder))
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise Skipped("a small disk can't be mounted here (that takes root)") from error
    try:
        yield
    finally:
        subprocess.run(("umount", str(folder)), check=False, capture_output=True)


@contextmanager
def _environment(**values: str) -> Iterator[None]:
    """What every child inherits."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


async def until(condition: Callable[[], bool | Awaitable[bool]], what: str, within: float = WITHIN_S) -> None:
    """Raises `TimeoutError` that says what it waited for."""
    end = time.monotonic() + within
    while time.monotonic() < end:
        found = condition()
        if await found if inspect.isawaitable(found) else found:
            return
        await asyncio.sleep(0.02)
    raise TimeoutError(f"not within {within:.0f} s: {what}")
