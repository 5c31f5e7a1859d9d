"""The owner's commands for tiers, agents and queues: the real ones, against a real Redis and a real MongoDB that are
configured, without a mesh."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import redis
from pymongo import MongoClient
from pymongo.database import Database

from mesh.adapters.mongo import MongoRoster
from mesh.bus import Bus
from mesh.cards import announce
from mesh.configuration import agents, tiers
from mesh.contracts.answers import Ask
from mesh.envelope import Request
from mesh.ports.people import Client
from mesh.settings import ROOT
from tests.people import ASHA, BEN
from tests.processes import free_port
from tests.redis.test_cards import skill
from tests.stores import QUIET, mongodb

pytestmark = [QUIET, pytest.mark.timeout(120)]

GUIDE = """
import asyncio
from contextlib import asynccontextmanager
from datetime import timedelta
from mesh.contracts.answers import Answer, Ask
from mesh.dispatch import Agent
from mesh.skills import Card, Skill

LEAD = Skill(
    name="guide.lead", takes=Ask, returns=Answer, needs="guide:follow", within=timedelta(seconds=20), kept=True,
    card=Card(summary="Shows the way.", examples=("Where is the pool?",)),
)

@asynccontextmanager
async def nothing(parts):
    yield None

agent = Agent("guide", opens=nothing)

@agent.handles(LEAD)
async def lead(ask, ctx):
    return Answer(text="This way.", grounded=True)
"""


@dataclass
class Owner:
    """Somebody at a prompt, whose terminal is a pipe of 80 columns."""

    environment: dict[str, str]
    database: Database[dict[str, Any]]

    def types(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*arguments),
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def reads(self, *arguments: str) -> str:
        ran = self.types(*arguments)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    def told(self, *arguments: str) -> str:
        """What is wrong with it: one sentence, and exit code 1."""
        ran = self.types(*arguments)
        assert ran.returncode == 1
        assert ran.stdout == ""
        assert len(ran.stderr.splitlines()) == 1
        return ran.stderr

    @staticmethod
    def command(*arguments: str) -> list[str]:
        return [sys.executable, "-m", "mesh.cli", *arguments]


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with mongodb(tmp_path_factory.mktemp("mongodb")) as address:
        yield address


@pytest.fixture
async def owner(uri: str, redis_url: str, tmp_path: Path) -> AsyncIterator[Owner]:
    """Of a mesh with Asha and Ben, and with the tiers and agents of `config/`."""
    name = f"adiyan_test_{uuid.uuid4().hex[:12]}"
    (tmp_path / "agent_guide.py").write_text(GUIDE)
    given = {
        "ADIYAN_HOME": str(tmp_path / "home"),
        "REDIS_URL": redis_url,
        "MONGODB_URI": uri,
        "MONGODB_DATABASE": name,
        "COLUMNS": "80",
        "PYTHONPATH": str(tmp_path),
    }
    roster = await MongoRoster.open(uri, name)
    await roster.seed(tiers(ROOT / "config"), agents(ROOT / "config"))
    await roster.register(Client(ASHA, "Asha", "default"))
    await roster.register(Client(BEN, "Ben", "gold"))
    await roster.close()
    with MongoClient[dict[str, Any]](uri) as client:
        yield Owner({**os.environ, **given}, client[name])
        client.drop_database(name)


def row(name: str, text: str) -> list[str]:
    """The cells of the line that begins with this name; two spaces at least are between them."""
    (line,) = [each for each in text.splitlines() if each.startswith(f"{name} ")]
    return re.split(r" {2,}", line)


# ── tiers ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_tiers_are_listed_with_their_clients_permissions_and_refusals(owner: Owner) -> None:
    text = owner.reads("tiers", "list")
    assert row("gold", text)[1] == "1"
    assert "knowledge:search" in row("gold", text)[2]
    assert row("publisher", text)[1] == "0"
    stranger = row("stranger", text)
    assert stranger[1:3] == ["0 and whoever is not registered", "nothing"]
    assert stranger[3].endswith("then write again."), "a pipe gets whole lines, however long"
    assert not [line for line in text.splitlines() if line != line.rstrip()]


def test_a_tier_is_shown_with_what_it_lets_one_do_and_who_is_on_it(owner: Owner) -> None:
    text = owner.reads("tiers", "show", "gold")
    assert row("clients", text)[1] == f"Ben ({BEN})"
    assert row("refusal", text)[1].startswith("the usual words: That isn't part of your plan")
    assert row("config/tiers.yaml", text)[1] == "the same"
    assert row("memory:write", text)[1:] == ["be remembered", "memory.remember, memory.note, memory.forget"]
    assert "knowledge.answer" in row("knowledge:search", text)[2]
    assert "register" in owner.reads("tiers", "show", "stranger")


def test_where_mongodb_differs_from_the_file_it_is_said_which_counts(owner: Owner) -> None:
    owner.database["tiers"].update_one(
        {"_id": "gold"}, {"$set": {"permissions": ["chat:converse", "guide:follow"], "refusal": "No."}}
    )
    differs = row("config/tiers.yaml", owner.reads("tiers", "show", "gold"))[1]
    assert differs.startswith("differs, and MongoDB counts: +guide:follow -analysis:ask")
    assert differs.endswith("another refusal")
    owner.database["tiers"].insert_one({"_id": "silver", "permissions": []})
    assert "MongoDB alone" in owner.reads("tiers", "show", "silver")


def test_a_permission_of_an_agent_of_ones_own_is_explained_by_its_card(owner: Owner) -> None:
    owner.database["agents"].insert_one({"_id": "guide", "module": "agent_guide", "copies": 0})
    owner.reads("tiers", "grant", "gold", "guide:follow", "guide:feed")
    text = owner.reads("tiers", "show", "gold")
    assert row("guide:follow", text)[1:] == ["Shows the way.", "guide.lead"]
    assert row("guide:feed", text)[1:] == ["do nothing: no skill needs it"]


def test_a_grant_and_a_revocation_say_what_changed_and_are_safe_to_repeat(owner: Owner) -> None:
    grant = ("tiers", "grant", "gold", "documents:publish", "chat:converse")
    assert owner.reads(*grant) == "gold: +documents:publish\n"
    assert owner.reads(*grant) == "gold: unchanged\n"
    assert owner.reads("tiers", "revoke", "gold", "documents:publish", "chat:converse") == (
        "gold: -chat:converse -documents:publish\n"
    )
    (found,) = owner.database["tiers"].find({"_id": "gold"})
    assert "chat:converse" not in found["permissions"]
    assert "documents:add" in found["permissions"]
    assert (
        owner.database["audit"].count_documents({"what": {"in": "tiers", "name": "gold"}, "before": {"$ne": None}}) == 2
    )


def test_a_permission_that_no_skill_needs_is_granted_with_a_warning(owner: Owner) -> None:
    ran = owner.types("tiers", "grant", "gold", "documents:pubish")
    assert (ran.returncode, ran.stdout) == (0, "gold: +documents:pubish\n")
    assert "no skill needs documents:pubish yet. Did you mean documents:publish" in ran.stderr
    ran = owner.types("tiers", "revoke", "gold", "memory:wirte")
    assert (ran.returncode, ran.stdout) == (0, "gold: unchanged\n")
    assert "gold does not have memory:wirte. Did you mean memory:write" in ran.stderr


# ── agents ────────────────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def running(owner: Owner, agent: str) -> Iterator[subprocess.Popen[bytes]]:
    """`adiyan run AGENT`, until it has given a sign of life."""
    needs = {
        "QDRANT_URL": "http://127.0.0.1:9",
        "OLLAMA_HOST": "http://127.0.0.1:9",
        "PUBLIC_URL": "http://127.0.0.1:9",
    }
    twilio = {"TWILIO_ACCOUNT_SID": "AC" + "1" * 32, "TWILIO_AUTH_TOKEN": "secret"}
    process = subprocess.Popen(
        owner.command("run", agent), cwd=ROOT, env={**owner.environment, **needs, **twilio}, stderr=subprocess.DEVNULL
    )
    try:
        with redis.Redis.from_url(owner.environment["REDIS_URL"]) as client:
            until(lambda: bool(client.keys(f"mesh:worker:{agent}:*")) or process.poll() is not None)
        yield process
    finally:
        process.terminate()
        process.wait(timeout=20)


def until(condition: Callable[[], bool], within_s: float = 30.0) -> None:
    end = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_agents_are_listed_with_their_workers_and_what_those_did(owner: Owner) -> None:
    owner.database["agents"].insert_one({"_id": "guide", "module": "agent_guide", "copies": 1})
    owner.database["agents"].update_one({"_id": "memory"}, {"$set": {"copies": 0}})
    with running(owner, "guide"):
        text = owner.reads("agents", "list")
        owner.database["agents"].delete_one({"_id": "guide"})
        without = owner.reads("agents", "list")
    assert row("name", text) == ["name", "module", "copies", "workers", "running", "done", "failed"]
    assert row("guide", text) == ["guide", "agent_guide", "1", "1", "0", "0", "0"]
    assert row("memory", text)[2] == "off"
    assert row("knowledge", text)[2:4] == ["1", "0"]
    assert row("guide", without)[1:3] == ["not in MongoDB", "1"]


def test_an_agent_is_shown_with_its_workers_its_queue_and_who_may_use_its_skills(owner: Owner) -> None:
    owner.database["agents"].insert_one({"_id": "guide", "module": "agent_guide", "copies": 1})
    owner.reads("tiers", "grant", "gold", "guide:follow")
    with running(owner, "guide") as process:
        text = owner.reads("agents", "show", "guide")
    assert row("module", text)[1] == "agent_guide"
    assert row("copies", text)[1] == "1"
    assert row("workers", text)[1].startswith(f"process {process.pid}, for ")
    assert row("queue", text)[1] == "mesh:guide: 0 waiting, 0 running, 0 failed"
    assert row("guide.lead", text)[1:] == ["guide:follow", "20 s", "yes", "gold", "Shows the way."]
    assert row("orchestrator.take_turns", owner.reads("agents", "show", "orchestrator"))[4] == "the mesh itself"


def test_an_entry_or_a_module_that_is_broken_is_told_beside_the_others(owner: Owner) -> None:
    owner.database["agents"].insert_one({"_id": "guide", "module": "agent_guide", "copies": "many"})
    owner.database["agents"].insert_one({"_id": "ghost", "module": "agent_ghost", "copies": 1})
    ran = owner.types("agents", "list")
    assert ran.returncode == 0
    assert row("guide", ran.stdout)[1:3] == ["?", "?"]
    assert row("memory", ran.stdout)[1] == "agents.memory"
    assert "MongoDB, agent guide: copies" in ran.stderr
    ran = owner.types("agents", "show", "ghost")
    assert ran.returncode == 0
    assert "agent_ghost can't be imported" in ran.stderr
    assert row("memory:write", owner.reads("tiers", "show", "gold"))[2] == "memory.remember, memory.note, memory.forget"


def test_scaling_says_what_changed(owner: Owner) -> None:
    assert owner.reads("agents", "scale", "memory", "3") == "memory: 1 → 3 copies\n"
    assert owner.reads("agents", "scale", "memory", "3") == "memory: 3 copies, unchanged\n"
    assert owner.reads("agents", "scale", "memory", "0") == "memory: 3 → off\n"
    (found,) = owner.database["agents"].find({"_id": "memory"})
    assert found["copies"] == 0
    assert "it is off" in owner.reads("agents", "show", "memory")


def test_an_agent_that_was_deleted_stays_away_until_it_is_scaled(owner: Owner) -> None:
    owner.database["agents"].delete_one({"_id": "memory"})
    ran = owner.types("agents", "list")
    assert "memory" not in ran.stdout
    assert "`adiyan agents scale memory 1` brings it back" in ran.stderr
    assert owner.reads("agents", "scale", "memory", "2") == "memory: new, 2 copies\n"
    assert row("memory", owner.reads("agents", "list"))[2] == "2"


# ── queues ────────────────────────────────────────────────────────────────────────────────────────────────────────


async def backlog(redis_url: str, count: int) -> None:
    """Of an agent that was there once."""
    lead = skill("guide.lead")
    async with Bus(redis_url) as bus:
        await announce(bus.redis, [lead])
        for number in range(count):
            payload = Ask(text="Where?", message_id="m").model_dump(mode="json")
            deadline = time.time() + 600
            await bus.tell(
                Request(client=ASHA, skill=lead.name, payload=payload, trace="t", key=str(number), deadline=deadline)
            )


async def test_queues_show_what_waits_and_for_how_long(owner: Owner) -> None:
    owner.database["agents"].insert_one({"_id": "guide", "module": "agent_guide", "copies": 0})
    await backlog(owner.environment["REDIS_URL"], 3)
    text = owner.reads("queues")
    assert row("agent", text) == ["agent", "waiting", "running", "failed today", "oldest", "workers"]
    guide = row("guide", text)
    assert guide[:4] == ["guide (off)", "3", "0", "0"]
    assert re.fullmatch(r"[\d.]+ s", guide[4])
    found = {each["agent"]: each for each in json.loads(owner.reads("queues", "--json"))}
    assert (found["guide"]["waiting"], found["guide"]["workers"]) == (3, 0)
    assert found["guide"]["oldest_s"] > 0
    assert found["memory"] == {
        "agent": "memory", "waiting": 0, "running": 0, "failed": 0, "oldest_s": None, "workers": 0,
    }  # fmt: skip
    owner.database["agents"].delete_one({"_id": "guide"})
    assert row("guide", owner.reads("queues"))[0] == "guide (not in MongoDB)"


async def test_watching_the_queues_follows_them_and_ends_with_ctrl_c(owner: Owner) -> None:
    owner.database["agents"].insert_one({"_id": "guide", "module": "agent_guide", "copies": 0})
    process = subprocess.Popen(
        owner.command("queues", "--watch"), cwd=ROOT, env=owner.environment, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    waiting = []
    for line in process.stdout:
        if line.startswith("guide"):
            waiting.append(re.split(r" {2,}", line)[1])
            if waiting[-1] == "2":
                break
            if len(waiting) == 1:
                await backlog(owner.environment["REDIS_URL"], 2)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    assert process.returncode == 0
    assert waiting[0] == "0"


def test_in_a_terminal_of_80_columns_no_name_is_cut(owner: Owner) -> None:
    main, other = pty.openpty()
    with subprocess.Popen(
        owner.command("tiers", "show", "gold"), cwd=ROOT, env={**owner.environment, "TERM": "dumb"}, stdout=other
    ) as process:
        os.close(other)
        text = b""
        while chunk := _read(main):
            text += chunk
    os.close(main)
    assert process.returncode == 0
    seen = text.decode().replace("\r\n", "\n")
    assert "…" not in seen
    assert "documents:publish" not in seen
    for name in ("knowledge:search", "analysis:ask", "orchestrator.clear_to_send"):
        assert name in seen
    assert all(len(line) <= 80 for line in seen.split("\n\n")[-1].splitlines())


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # the other end is closed
        return b""


# ── mistakes ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("tiers", "show", "glod"), ("no tier called 'glod'", "Did you mean gold?", "publisher, stranger")),
        (("tiers", "grant", "glod", "a:b"), ("no tier called 'glod'", "Did you mean gold?")),
        (("tiers", "grant", "gold", "publish"), ("'publish' is not a permission", "area:verb")),
        (("tiers", "grant", "gold", "ledger:drive"), ("the mesh itself",)),
        (("agents", "show", "memroy"), ("no agent called 'memroy'", "Did you mean memory?")),
        (("agents", "scale", "memroy", "2"), ("no agent called 'memroy'", "Did you mean memory?")),
        (("agents", "scale", "orchestrator", "0"), ("can't be switched off", "nobody would be answered")),
        (("agents", "scale", "memory", "65"), ("less than or equal to 64",)),
        (("queues", "--watch", "--json"), ("Choose one",)),
    ],
)
def test_a_mistake_is_told_in_a_sentence_and_changes_nothing(
    owner: Owner, arguments: tuple[str, ...], words: tuple[str, ...]
) -> None:
    before = [*owner.database["tiers"].find(), *owner.database["agents"].find()]
    told = owner.told(*arguments)
    for word in words:
        assert word in told
    assert [*owner.database["tiers"].find(), *owner.database["agents"].find()] == before


@pytest.mark.parametrize("arguments", [("tiers", "list"), ("agents", "show", "memory"), ("queues",)])
def test_without_a_mesh_it_is_said_how_to_start_one(owner: Owner, arguments: tuple[str, ...]) -> None:
    del owner.environment["MONGODB_URI"]
    told = owner.told(*arguments)
    assert "No mesh is running" in told
    assert "./run up" in told
    assert "MONGODB_URI" in told


def test_a_store_that_is_away_is_named_without_its_password(owner: Owner) -> None:
    port = free_port()
    owner.environment["REDIS_URL"] = f"redis://:hunter2@127.0.0.1:{port}/0"
    told = owner.told("queues")
    assert f"Redis at 127.0.0.1:{port} can't be reached" in told
    assert "hunter2" not in told
    owner.environment["MONGODB_URI"] = f"mongodb://me:hunter2@127.0.0.1:{port}/?serverSelectionTimeoutMS=200"
    told = owner.told("tiers", "list")
    assert f"MongoDB at 127.0.0.1:{port} can't be reached" in told
    assert "hunter2" not in told


@pytest.mark.parametrize(
    "command",
    [
        *("tiers", "tiers list", "tiers show", "tiers grant", "tiers revoke"),
        *("agents", "agents list", "agents show", "agents scale", "queues"),
    ],
)
def test_help_comes_with_an_example(command: str) -> None:
    ran = subprocess.run(
        Owner.command(*command.split(), "--help"), cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert f"adiyan {command}" in ran.stdout


def test_nobody_waits_for_an_agent_that_is_switched_off(owner: Owner, tmp_path: Path) -> None:
    owner.reads("agents", "scale", "knowledge", "0")
    (tmp_path / "prices.md").write_text("# Prices\n")
    for command in (("kb", "add", str(tmp_path / "prices.md"), "--global"), ("kb", "list")):
        began = time.monotonic()
        assert "adiyan agents scale knowledge 1" in owner.told(*command)
        assert time.monotonic() - began < 10
