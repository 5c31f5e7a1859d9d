"""An ingestion that is killed at any step: the old version answers, the new one comes, and what was embedded is not
embedded again."""

from __future__ import annotations

import asyncio
import hashlib
import os
import signal
import sqlite3
import sys
import uuid
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agents.knowledge import ingesting
from agents.knowledge.library import Library
from agents.knowledge.parsing import Parsed
from agents.knowledge.stores import Stores
from mesh.access import Grant
from mesh.adapters.ollama import OllamaEmbedder
from mesh.adapters.qdrant import QdrantPassages
from mesh.adapters.shelf import DiskShelf
from mesh.adapters.vectors import SqliteVectors
from mesh.envelope import digest
from mesh.ingestions import Progress
from mesh.ports.documents import Chunk, Document, Part
from mesh.ports.models import Vector
from tests.processes import qdrant, serving

ASHA = Grant("+15551230001", frozenset(), tier="default")
BELA = Grant("+15551230002", frozenset(), tier="default")
MODEL = "multilingual-e5-small"
SECTIONS = 70
OLD = b"# House\n\nThe gate code is 4417.\n"
NEW = "# House\n\nThe gate code is 9326 (KANARIENVOGEL).\n" + "".join(
    f"\n## Room {number}\nRoom {number} has a window to the {('river', 'garden', 'street')[number % 3]}.\n"
    for number in range(SECTIONS)
)
TEXTS = SECTIONS + 1


@dataclass(frozen=True)
class Place:
    folder: Path
    qdrant_url: str
    models_url: str
    collection: str


class Counting(OllamaEmbedder):
    texts = 0

    async def documents(self, texts: Sequence[str]) -> list[Vector]:
        self.texts += len(texts)
        return await super().documents(texts)


@asynccontextmanager
async def library(place: Place) -> AsyncIterator[tuple[Library, Counting]]:
    embedder = Counting(place.models_url, model=MODEL, dims=384, query_prefix="query: ", document_prefix="passage: ")
    passages = await QdrantPassages.open(place.qdrant_url, model=MODEL, dims=384, collection=place.collection)
    try:
        shelf = await DiskShelf.open(place.folder / "shelf")
        cache = SqliteVectors(place.folder / "vectors.sqlite", model=MODEL, dims=384, prefix="passage: ")
        yield Library(Stores(shelf, passages, embedder, cache)), embedder
    finally:
        await passages.close()
        await embedder.close()


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    log = tmp_path_factory.mktemp("models") / "models.log"
    with (
        qdrant(tmp_path_factory.mktemp("qdrant")) as index,
        serving("mesh.testing.model", ready="/api/version", log=log) as models,
    ):
        yield index, models


@pytest.fixture
def place(servers: tuple[str, str], tmp_path: Path) -> Place:
    return Place(tmp_path, *servers, f"test-{uuid.uuid4().hex[:12]}")


CHILD = """
import asyncio, sys, time
from mesh.access import upkeep
from tests.contract.test_ingestion_killed import *

async def work(work: str, stage: str, done: int, place: Place) -> None:
    def stop_here(progress: Progress) -> None:
        if (progress.stage, progress.done) == (stage, done):
            print("here", flush=True)
            time.sleep(600)

    async with library(place) as (ours, _):
        if work == "ingest":
            await ours.ingesting.ingest(ASHA, "house.md", NEW.encode(), report=stop_here)
        else:
            (document,) = await ours.stores.shelf.documents(upkeep())
            await ours.ingesting.rebuild(upkeep(), document.document_id, anew=True, report=stop_here)

asyncio.run(work(sys.argv[1], sys.argv[2], int(sys.argv[3]), Place(Path(sys.argv[4]), *sys.argv[5:])))
"""


async def killed(work: str, stage: str, done: int, place: Place) -> None:
    """A process that is at it, and is killed there."""
    where = (str(place.folder), place.qdrant_url, place.models_url, place.collection)
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", CHILD, work, stage, str(done), *where, stdout=asyncio.subprocess.PIPE
    )
    assert child.stdout
    assert await child.stdout.readline() == b"here\n"
    os.kill(child.pid, signal.SIGKILL)
    assert await child.wait() == -signal.SIGKILL


def kept(place: Place) -> int:
    with closing(sqlite3.connect(place.folder / "vectors.sqlite")) as database:
        return int(database.execute("SELECT count(*) FROM vectors").fetchone()[0])


async def told(ours: Library, grant: Grant = ASHA) -> str:
    found = await ours.searching.search(grant, "What is the gate code?", limit=20)
    return " ".join(hit.passage.chunk.text for hit in found.hits)


@pytest.mark.parametrize(
    ("stage", "done"),
    [("embedding", 0), ("embedding", 40), ("embedding", TEXTS), ("finishing", TEXTS)],
)
async def test_it_is_resumed_and_only_what_is_missing_is_embedded(place: Place, stage: str, done: int) -> None:
    async with library(place) as (ours, _):
        await ours.ingesting.ingest(ASHA, "house.md", OLD)
    await killed("ingest", stage, done, place)
    before = kept(place) - 1  # one is of the old version
    assert before >= done
    async with library(place) as (ours, embedder):
        if stage != "finishing":  # from then on, the new passages are in
            assert "4417" in await told(ours)
            assert "KANARIENVOGEL" not in await told(ours)
        async with asyncio.timeout(60):
            assert await ours.ingesting.finish_interrupted()
        assert embedder.texts == TEXTS - before
        assert "KANARIENVOGEL" in await told(ours)
        assert "4417" not in await told(ours)
        assert "KANARIENVOGEL" not in await told(ours, BELA)
        (document,) = await ours.stores.shelf.documents(ASHA)
        assert document.chunks == TEXTS
        assert kept(place) == TEXTS, "of the old version nothing is kept"


async def test_what_was_killed_while_it_was_read_leaves_the_old_version_and_can_be_sent_again(place: Place) -> None:
    async with library(place) as (ours, _):
        await ours.ingesting.ingest(ASHA, "house.md", OLD)
    await killed("ingest", "reading", 0, place)
    async with library(place) as (ours, _):
        assert await ours.ingesting.finish_interrupted()
        assert "4417" in await told(ours)
        assert (await ours.ingesting.ingest(ASHA, "house.md", NEW.encode()))[1] == "replaced"


async def test_a_killed_rebuild_is_resumed_and_only_what_is_missing_is_embedded(place: Place) -> None:
    async with library(place) as (ours, _):
        added, _ = await ours.ingesting.ingest(ASHA, "house.md", NEW.encode())
    await killed("rebuild", "embedding", 40, place)
    before = kept(place)
    assert 40 <= before < TEXTS
    async with library(place) as (ours, embedder):
        assert "KANARIENVOGEL" in await told(ours)
        async with asyncio.timeout(60):
            assert await ours.ingesting.finish_interrupted()
        assert embedder.texts == TEXTS - before
        assert "KANARIENVOGEL" in await told(ours)
        (document,) = await ours.stores.shelf.documents(ASHA)
        assert document == replace(added, parts=())


async def begun(ours: Library, name: str, raw: bytes) -> Document:
    """As if it had broken off when it had been read."""
    sha256 = hashlib.sha256(raw).hexdigest()
    parts = (Part("", raw.decode()),)
    document = Document(
        digest(ASHA.client, name),
        *(ASHA.client, name, "private", sha256, len(raw), "text/markdown", datetime.now(UTC), 1, parts),
    )
    await ours.stores.shelf.put(ASHA, document, raw, complete=False)
    return document


async def live(ours: Library) -> set[str]:
    return {document.name for document in await ours.stores.shelf.documents(ASHA)}


@pytest.mark.parametrize("trouble", ["its bytes are gone", "it cannot be cut"])
async def test_a_document_that_cannot_be_finished_does_not_keep_the_others_waiting(
    place: Place, trouble: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut = ingesting._cut

    async def fails(document: Document) -> list[Chunk]:
        if document.name == "bad.md":
            raise RecursionError
        return await cut(document)

    async with library(place) as (ours, _):
        bad = await begun(ours, "bad.md", NEW.encode())
        await begun(ours, "gate.md", OLD)
        bytes_of_bad = place.folder / "shelf" / "raw" / bad.sha256
        if trouble == "its bytes are gone":
            bytes_of_bad.unlink()
        else:
            monkeypatch.setattr(ingesting, "_cut", fails)
        assert not await ours.ingesting.finish_interrupted()
        assert await live(ours) == {"gate.md"}
        monkeypatch.undo()
        bytes_of_bad.write_bytes(NEW.encode())
        assert await ours.ingesting.finish_interrupted()
        assert await live(ours) == {"bad.md", "gate.md"}


async def test_an_error_that_nobody_expected_is_logged_and_what_broke_off_is_finished_later(
    place: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(ingesting, "RETRY_AFTER", 0.01)
    async with library(place) as (ours, _):
        passages = ours.stores.passages
        prepare, prepared = passages.prepare, 0

        async def and_then_it_is_deleted() -> None:
            nonlocal prepared
            prepared += 1
            await prepare()
            if prepared == 1:
                await passages._client.delete_collection(place.collection)  # type: ignore[attr-defined]  # Qdrant's

        monkeypatch.setattr(passages, "prepare", and_then_it_is_deleted)
        await begun(ours, "house.md", NEW.encode())
        finishing = asyncio.create_task(ours.ingesting.keep_finishing())
        async with asyncio.timeout(30):
            while await live(ours) != {"house.md"}:
                assert not finishing.done()
                await asyncio.sleep(0.01)
        finishing.cancel()
        await asyncio.gather(finishing, return_exceptions=True)
    assert "404" in caplog.text
    assert "KANARIENVOGEL" not in caplog.text


async def test_while_scans_are_read_a_note_is_and_one_person_keeps_no_other_waiting(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, waits, goes_on = list[str](), asyncio.Event(), asyncio.Event()

    async def read(name: str, raw: bytes, **_: object) -> Parsed:
        reading.append(name)
        if name.endswith(".pdf"):
            await goes_on.wait()
        return Parsed("text/plain", (Part("", raw.decode()),))

    async def until(*names: str) -> None:
        async with asyncio.timeout(10):
            while reading != list(names):
                await asyncio.sleep(0.01)

    monkeypatch.setattr(ingesting, "parse", read)
    async with library(place) as (ours, _), asyncio.TaskGroup() as group:
        ingest = ours.ingesting.ingest
        group.create_task(ingest(ASHA, "one.pdf", OLD))
        await until("one.pdf")
        group.create_task(ingest(ASHA, "two.pdf", OLD, report=lambda _: waits.set()))
        await waits.wait()
        group.create_task(ingest(BELA, "three.pdf", OLD))
        await until("one.pdf", "three.pdf")
        async with asyncio.timeout(10):
            await ingest(ASHA, "note.md", OLD)
        assert reading == ["one.pdf", "three.pdf", "note.md"]
        goes_on.set()
        await until("one.pdf", "three.pdf", "note.md", "two.pdf")


async def test_a_document_that_is_sent_again_embeds_only_what_changed(place: Place) -> None:
    async with library(place) as (ours, embedder):
        await ours.ingesting.ingest(ASHA, "house.md", NEW.encode())
        embedder.texts = 0
        changed = NEW.replace("Room 5 has a window to the street", "Room 5 has a balcony to the street")
        assert changed != NEW
        await ours.ingesting.ingest(ASHA, "house.md", changed.encode())
        assert embedder.texts == 1
        embedder.texts = 0
        await ours.ingesting.ingest(BELA, "house.md", changed.encode())
        assert embedder.texts == TEXTS, "another's document of the same words is none of theirs"


async def test_a_deleted_document_is_in_no_file_and_not_in_the_cache(place: Place) -> None:
    async with library(place) as (ours, embedder):
        document, _ = await ours.ingesting.ingest(ASHA, "house.md", NEW.encode())
        await ours.ingesting.ingest(BELA, "house.md", OLD)
        assert kept(place) == TEXTS + 1
        await ours.delete(ASHA, document.document_id)
        assert kept(place) == 1
        embedder.texts = 0
        await ours.ingesting.ingest(ASHA, "house.md", NEW.encode())
        assert embedder.texts == TEXTS


async def test_while_one_document_is_embedded_the_next_one_is_read(place: Place) -> None:
    class Stopped(Counting):
        goes_on = asyncio.Event()

        async def documents(self, texts: Sequence[str]) -> list[Vector]:
            await self.goes_on.wait()
            return await super().documents(texts)

    async with library(place) as (ours, embedder):
        embedder.__class__ = Stopped
        second = list[Progress]()
        first = asyncio.create_task(ours.ingesting.ingest(ASHA, "house.md", NEW.encode()))
        after = asyncio.create_task(ours.ingesting.ingest(ASHA, "gate.md", OLD, report=second.append))
        async with asyncio.timeout(30):
            while second[-1:] != [Progress("embedding", 0, 1)]:
                await asyncio.sleep(0.01)
        assert not first.done()
        Stopped.goes_on.set()
        await asyncio.gather(first, after)
        assert [each.stage for each in second] == ["reading", "embedding", "embedding", "finishing"]
        assert second[-1] == Progress("finishing", 1, 1)
