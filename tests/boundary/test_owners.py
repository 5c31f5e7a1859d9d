"""What is the system owner's alone: the skills that no tier gives, and the command line."""

from __future__ import annotations

import io
import sqlite3
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from agents.knowledge import agent as knowledge
from mesh.access import OWN_SYSTEM, Gate
from mesh.adapters import shelf_tables
from mesh.bus import Bus
from mesh.cli.admin import all_documents
from mesh.cli.calibrating import calibrate
from mesh.cli.documents import shown
from mesh.cli.migrating import stores, tag_chunks
from mesh.cli.withheld import why
from mesh.dispatch import Dispatcher
from mesh.envelope import MESH
from mesh.errors import Denied, Malformed, NotFound
from mesh.ports.people import Client
from mesh.settings import load
from mesh.skills import Skill
from mesh.wiring import open_roster
from mesh.worker import MeshWorker
from tests.boundary import old_shelves
from tests.boundary.stage import BARE, BLOCKED, NAME, PUBLISHER, SECRET, Stage, leaked
from tests.boundary.test_registry import every_agent
from tests.boundary.test_untagged import put_old
from tests.people import ASHA, BEN, OWNER, STRANGER
from tests.redis.stage import working
from tests.stores import QUIET, mongodb

pytestmark = QUIET

OWNERS: list[Skill[Any, Any]] = [
    skill for agent in every_agent() for skill in agent.skills if skill.needs == OWN_SYSTEM
]


@pytest.mark.parametrize("skill", [each for each in OWNERS if each.name in knowledge.handlers], ids=lambda s: s.name)
async def test_what_is_the_system_owners_alone_is_refused_to_everybody_else(
    stage: Stage, skill: Skill[Any, Any]
) -> None:
    for client in (ASHA, BEN, STRANGER, BARE, PUBLISHER):
        stage.people.allow(client, "knowledge:search", OWN_SYSTEM)  # whatever somebody wrote into MongoDB
    for client in (ASHA, BEN, STRANGER, BARE, PUBLISHER, BLOCKED, MESH):
        answer = await stage.call(
            client, skill, {"document_id": "0" * 32, "client": ASHA, "text": "fee", "dry_run": True}
        )
        assert answer["code"] == Denied.code, client


def test_no_other_agent_has_such_a_skill_without_a_test() -> None:
    assert {skill.name for skill in OWNERS} <= knowledge.handlers.keys()


# ── the command line ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def mongodb_uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with mongodb(tmp_path_factory.mktemp("boundary-mongodb")) as uri:
        yield uri


@pytest.fixture
async def served(
    stage: Stage,
    index_url: str,
    redis_url: str,
    mongodb_uri: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Stage]:
    """The knowledge agent at work, for commands that find it as they find a mesh of real servers."""
    for name, value in (
        ("REDIS_URL", redis_url),
        ("MONGODB_URI", mongodb_uri),
        ("MONGODB_DATABASE", f"boundary-{uuid.uuid4().hex[:8]}"),
        ("QDRANT_URL", index_url),
        ("ADIYAN_HOME", str(tmp_path / "home")),
    ):
        monkeypatch.setenv(name, value)
    roster = await open_roster(load())
    for person in (ASHA, BEN):
        await roster.register(Client(person, person, "default"))
    gate = Gate(roster, system_owner=OWNER, unknown_tier="stranger", fresh_for=0)
    async with (
        Bus(redis_url) as bus,
        working(MeshWorker("knowledge", Dispatcher(knowledge, stage.library, gate, bus), redis_url)),
    ):
        yield stage
    await roster.close()


async def test_the_commands_show_a_client_what_that_client_may_see(served: Stage) -> None:
    await served.furnish()
    await served.ingest(ASHA, NAME, SECRET)
    assert leaked({"value": await all_documents("")})
    assert leaked({"value": await all_documents(ASHA)})
    assert not leaked({"value": await all_documents(BEN)})
    parts, passages = await shown(NAME, ASHA)
    assert leaked({"value": [*parts.facts, *passages.rows]})
    for name in (NAME, f"{ASHA}/{NAME}"):
        with pytest.raises(NotFound, match="no document called"):
            await shown(name, BEN)
    with pytest.raises(Denied):
        await all_documents(STRANGER)


async def test_why_something_was_withheld_is_told_without_saying_what(served: Stage) -> None:
    await served.furnish()
    await served.ingest(ASHA, NAME, SECRET)
    sheet = await why(BEN, "What is the fee of the gala?")
    said = {"value": [*sheet.facts, *sheet.heads, *sheet.rows]}
    assert not leaked(said, ASHA)
    (searched, *_) = sheet.rows
    assert sheet.heads[:4] == ("read path", "matched", "may see", "private of another")
    assert searched[0] == "knowledge.retrieve_knowledge_base"
    assert searched[3] == "2"
    assert ("knowledge:search", "yes, by tier default") in sheet.facts
    refused = dict((await why(STRANGER, "What is the fee of the gala?")).facts)
    assert refused["knowledge:search"] == "no, so nothing at all is found: tier stranger lacks knowledge:search"
    with pytest.raises(Malformed):
        await why(OWNER, "What is the fee of the gala?")


async def test_chunks_without_tags_are_shown_and_then_tagged(served: Stage) -> None:
    await put_old(served, 1, source_filename="old.md", document_id="old")
    console = Console(file=io.StringIO())
    for dry_run, becomes in ((True, "would become"), (False, "became")):
        count, sheet = await tag_chunks(console, dry_run=dry_run)
        assert count == 1
        assert sheet.heads[2] == becomes
        assert sheet.rows == [("old.md", "1", f"private: {OWNER}", "no")]
        assert len(sheet.notes) == 1
    assert (await tag_chunks(console, dry_run=False))[0] == 0


async def test_the_versions_of_all_stores_are_told(served: Stage, tmp_path: Path) -> None:
    sheet, well = await stores(dry_run=True)
    told = {row[0]: row[2:] for row in sheet.rows}
    assert well, sheet.notes
    assert told["clients"] == ("1", "1", "nothing: it is up to date")
    assert told["messages"] == ("before the first", "1", "it becomes 1")
    assert told["documents"][2] == "it is made at the first start"
    sheet, well = await stores(dry_run=False)
    assert {row[0]: row[4] for row in sheet.rows}["messages"] == "it has become 1"
    assert (await stores(dry_run=True))[0].rows[3][4] == "nothing: it is up to date"
    assert not (tmp_path / "home").exists(), "nothing is made that was not there"


async def test_without_a_mesh_the_folders_are_looked_at_and_the_rest_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old_shelves.write(tmp_path / "knowledge", 2)
    monkeypatch.setenv("ADIYAN_HOME", str(tmp_path))
    for name in ("REDIS_URL", "MONGODB_URI", "QDRANT_URL"):
        monkeypatch.delenv(name, raising=False)
    sheet, well = await stores(dry_run=True)
    assert well
    assert sheet.rows[0][2:] == ("2", str(shelf_tables.SCHEMA), f"it becomes {shelf_tables.SCHEMA}")
    assert "REDIS_URL, MONGODB_URI, QDRANT_URL" in sheet.notes[0]
    sheet, _ = await stores(dry_run=False)
    assert sheet.rows[0][4] == f"it has become {shelf_tables.SCHEMA}"
    with closing(sqlite3.connect(tmp_path / "knowledge" / "index.sqlite")) as database:
        database.execute("PRAGMA user_version = 99")
    sheet, well = await stores(dry_run=False)
    assert not well
    assert sheet.rows[0][4] == "it is left alone: a newer Adiyan wrote it"


async def test_what_calibrating_learns_is_shown_by_number(served: Stage) -> None:
    rooms = "".join(
        f"## Room {n}\n\nThe quiet blue room number {n} costs {40 + n} euros a night.\n\n" for n in range(14)
    )
    await served.ingest(ASHA, NAME, SECRET)
    assert (await calibrate(Console(file=io.StringIO()))).notes
    await served.ingest(OWNER, "rooms.md", rooms.encode(), visibility="global")
    sheet = await calibrate(Console(file=io.StringIO()))
    ((viewer, asked, *_),) = sheet.rows
    assert (viewer, asked) == ("everybody", "14")
    assert not leaked({"value": [*sheet.heads, *sheet.rows]})
