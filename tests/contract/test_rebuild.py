"""`adiyan kb rebuild`: the same answers from the raw files alone, and better ones where they are read better today."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from qdrant_client import AsyncQdrantClient

from agents.knowledge import agent, ingesting
from agents.knowledge.library import Library
from agents.knowledge.parsing import Parsed
from agents.knowledge.stores import Stores
from mesh.access import OWN_SYSTEM, Gate, upkeep
from mesh.adapters.ollama import OllamaEmbedder
from mesh.adapters.qdrant import QdrantPassages
from mesh.adapters.shelf import DiskShelf
from mesh.adapters.vectors import SqliteVectors
from mesh.contracts.documents import READ_PATHS, RETRIEVE_KNOWLEDGE_BASE, Search
from mesh.contracts.upkeep import REBUILD, Rebuild, Rebuilt
from mesh.envelope import Failed
from mesh.errors import Denied, NotFound
from mesh.ports.documents import Document, Part
from mesh.ports.models import Vector
from mesh.ports.people import Client, Tier
from tests.contract.test_knowledge_agent import (
    ASHA,
    BELA,
    CANARIES,
    OWNER,
    PRICES,
    PROBES,
    PUBLISHER,
    SECRET,
    Desk,
    shown,
)
from tests.processes import models, qdrant

MODEL = "multilingual-e5-small"
QUESTIONS = (
    "What is the fee of the gala?",
    "How much is a double room?",
    "parking",
    "KANARIENVOGEL",
    "When does the yoga class begin?",
    "notice period",
)
YOGA = b"# Yoga\n\n## Classes\nClasses begin at seven in the morning.\n\n## Price\nA class costs 12 euros.\n"


class Counting(OllamaEmbedder):
    texts = 0
    stopped = asyncio.Event()
    """Set: it works. Cleared: whoever asks, waits."""

    async def documents(self, texts: Sequence[str]) -> list[Vector]:
        await self.stopped.wait()
        self.texts += len(texts)
        return await super().documents(texts)


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    with qdrant(tmp_path_factory.mktemp("qdrant")) as index, models(tmp_path_factory.mktemp("models")) as host:
        yield index, host


@pytest.fixture
async def desk(urls: tuple[str, str], tmp_path: Path) -> AsyncIterator[Desk]:
    index, host = urls
    embedder = Counting(host, model=MODEL, dims=384, query_prefix="query: ", document_prefix="passage: ")
    embedder.stopped = asyncio.Event()
    embedder.stopped.set()
    passages = await QdrantPassages.open(index, model=MODEL, dims=384, collection=f"test-{tmp_path.name}")
    cache = SqliteVectors(tmp_path / "vectors.sqlite", model=MODEL, dims=384, prefix="passage: ")
    yield Desk(Library(Stores(await DiskShelf.open(tmp_path / "shelf"), passages, embedder, cache)))
    await passages.close()
    await embedder.close()


async def filled(desk: Desk) -> list[str]:
    """Two people's own documents, and one for everyone; their ids."""
    added = [
        await desk.ingest(ASHA, "secret-contract.md", SECRET),
        await desk.ingest(BELA, "yoga.md", YOGA),
        await desk.ingest(PUBLISHER, "prices.md", PRICES, visibility="global"),
    ]
    return [each.document.document_id for each in added]


@dataclass(frozen=True)
class Answers:
    """To each person's every question: which passages, where they stand, and all scores of them in that order."""

    passages: list[tuple[object, ...]]
    scores: list[float]

    def same_as(self, others: Answers) -> bool:
        return self.passages == others.passages and self.scores == pytest.approx(others.scores, abs=1e-6)


async def answers(desk: Desk) -> Answers:
    found = Answers([], [])
    for client in (ASHA, BELA, OWNER):
        grant = await Gate(Names(), system_owner=OWNER, unknown_tier="default").admit(client, "knowledge:search")
        for question in QUESTIONS:
            for hit in (await desk.library.searching.search(grant, question, limit=20)).hits:
                found.passages.append((client, question, hit.reference, hit.passage.chunk, hit.document))
                found.passages.append((hit.passage.source_filename, hit.passage.ingested_at))
                found.scores.extend((hit.score, hit.passage.dense or -1.0, hit.passage.sparse or -1.0))
    return found


class Names:
    async def client(self, identity: str) -> Client | None:
        return Client(identity, "someone", "generous")

    async def tier(self, name: str) -> Tier | None:
        return Tier(name, frozenset({"knowledge:search", "documents:add", OWN_SYSTEM}))


async def rebuilt(desk: Desk, document_id: str, *, anew: bool = False) -> Rebuilt:
    return await desk.ask(OWNER, REBUILD, Rebuild(document_id=document_id, anew=anew))


async def delete_collection(desk: Desk, urls: tuple[str, str]) -> None:
    passages: Any = desk.library.stores.passages
    client = AsyncQdrantClient(urls[0], check_compatibility=False)
    await client.delete_collection(passages._collection)
    await client.close()


@pytest.mark.parametrize("anew", [False, True])
async def test_from_the_files_alone_the_same_questions_get_the_same_answers(
    desk: Desk, urls: tuple[str, str], anew: bool
) -> None:
    ids = await filled(desk)
    before = await answers(desk)
    assert len(before.scores) > len(QUESTIONS), "the questions find something"
    embedder: Any = desk.library.stores.embedder
    embedder.texts = 0
    await delete_collection(desk, urls)
    for document_id in ids:
        assert (await rebuilt(desk, document_id, anew=anew)).kept == ""
    assert before.same_as(await answers(desk))
    assert embedder.texts == (6 if anew else 0), "vectors come from the cache, unless they are to be made anew"


async def test_rebuilding_twice_and_without_need_changes_nothing(desk: Desk) -> None:
    ids = await filled(desk)
    before = await answers(desk)
    for document_id in (*ids, *ids):
        await rebuilt(desk, document_id)
    assert before.same_as(await answers(desk))


async def test_afterwards_nobody_finds_anothers_document_on_any_path(desk: Desk, urls: tuple[str, str]) -> None:
    ids = await filled(desk)
    await delete_collection(desk, urls)
    cards = {document_id: (await rebuilt(desk, document_id)).document for document_id in ids}
    secret = cards[ids[0]]
    assert (secret.owner, secret.visibility) == (ASHA, "private")
    for skill in READ_PATHS:
        for probe in PROBES[skill.name](secret):
            own = shown(await desk.run(ASHA, skill, probe))
            assert any(canary in own for canary in CANARIES)
            theirs = shown(await desk.run(BELA, skill, probe))
            assert not [canary for canary in (*CANARIES, secret.document_id) if canary in theirs], skill.name


async def test_only_the_system_owner_may_whatever_a_tier_says(desk: Desk) -> None:
    ids = await filled(desk)
    generous = Desk(desk.library)
    generous.dispatcher._gate = Gate(Names(), system_owner=OWNER, unknown_tier="default")
    for client in (ASHA, BELA):
        refused = await generous.run(client, REBUILD, Rebuild(document_id=ids[0]))
        assert isinstance(refused, Failed)
        assert refused.code == Denied.code
    absent = await generous.run(OWNER, REBUILD, Rebuild(document_id="0" * 32))
    assert isinstance(absent, Failed)
    assert absent.code == NotFound.code
    assert REBUILD.name in {skill.name for skill in agent.skills}


async def as_it_was_read_once(desk: Desk, document: Document, raw: bytes, *texts: str) -> None:
    """By a reader of an earlier release."""
    ours = desk.library
    parts = tuple(Part(f"page {number}", text) for number, text in enumerate(texts, 1))
    old = replace(document, parts=parts, chunks=len(parts))
    await ours.stores.shelf.put(upkeep(), old, raw, complete=False)
    assert await ours.ingesting.finish_interrupted()


async def test_what_is_read_better_today_is_found_and_the_old_passages_answer_until_then(desk: Desk) -> None:
    await filled(desk)
    (before,) = [each for each in await desk.library.stores.shelf.documents(upkeep()) if each.name == "yoga.md"]
    await as_it_was_read_once(desk, before, YOGA, "Classes begin at seven, as the old reader had it.", "Garbled.")

    async def found() -> str:
        told = await desk.ask(BELA, RETRIEVE_KNOWLEDGE_BASE, Search(text="When do yoga classes begin?", limit=20))
        return " ".join(each.passage for each in told.found)

    embedder: Any = desk.library.stores.embedder
    embedder.stopped.clear()
    rebuilding = asyncio.create_task(rebuilt(desk, before.document_id))
    async with asyncio.timeout(30):
        while not await desk.library.stores.shelf.unfinished(upkeep()):
            await asyncio.sleep(0.02)
    assert "as the old reader had it" in await found()
    assert "Garbled" in await found()
    assert "12 euros" not in await found()
    embedder.stopped.set()
    done = await rebuilding
    assert (done.kept, done.document.chunks) == ("", 2)
    assert "as the old reader had it" not in await found()
    assert "12 euros" in await found()
    (after,) = [each for each in await desk.library.stores.shelf.documents(upkeep()) if each.name == "yoga.md"]
    assert after == before, "its owner, who sees it, and when it was sent are as before"


async def test_a_file_that_is_refused_today_keeps_its_passages_and_is_named(desk: Desk, urls: tuple[str, str]) -> None:
    await filled(desk)
    (card,) = [each for each in await desk.library.stores.shelf.documents(upkeep()) if each.name == "yoga.md"]
    raw = b"\x89PNG\r\n\x1a\n" + bytes(50)
    broken = replace(card, sha256=hashlib.sha256(raw).hexdigest(), size=len(raw))
    await as_it_was_read_once(desk, broken, raw, "Classes begin at seven, as the old reader had it.")
    for _ in range(2):
        told = await rebuilt(desk, card.document_id)
        assert told.kept.startswith("yoga.md is damaged")
        assert told.document.chunks == 1
        found = await desk.ask(BELA, RETRIEVE_KNOWLEDGE_BASE, Search(text="When do yoga classes begin?"))
        assert found.found[0].passage == "Classes begin at seven, as the old reader had it."
        await delete_collection(desk, urls)  # and they come back from the text that was read then


async def test_a_page_that_ocr_read_keeps_its_text_where_there_is_none_today(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the page that was there as text is read as it is read today."""
    await filled(desk)
    (card,) = [each for each in await desk.library.stores.shelf.documents(upkeep()) if each.name == "yoga.md"]
    scanned = (Part("page 1", "The deposit is 90 euros.", how="ocr"), Part("page 2", "As the old reader had it."))
    ours = desk.library
    await ours.stores.shelf.put(upkeep(), replace(card, parts=scanned, chunks=2), YOGA, complete=False)
    assert await ours.ingesting.finish_interrupted()

    async def without_ocr(*_: object, **__: object) -> Parsed:
        unread = Part("page 1", "", trouble="page 1 is a picture, and there is no OCR here")
        return Parsed("application/pdf", (unread, Part("page 2", "The garage is 40 euros.")))

    monkeypatch.setattr(ingesting, "parse", without_ocr)
    told = await rebuilt(desk, card.document_id)
    assert (told.kept, told.document.troubles) == ("", ())
    found = await desk.ask(BELA, RETRIEVE_KNOWLEDGE_BASE, Search(text="How much is the deposit?", limit=20))
    passages = [each.passage for each in found.found]
    assert "The deposit is 90 euros." in passages
    assert "The garage is 40 euros." in passages
    assert "As the old reader had it." not in passages


async def test_a_newer_version_that_broke_off_is_not_overtaken_by_the_rebuild(desk: Desk) -> None:
    ids = await filled(desk)
    embedder: Any = desk.library.stores.embedder
    embedder.stopped.clear()
    newer = asyncio.create_task(desk.ingest(BELA, "yoga.md", YOGA.replace(b"seven", b"nine")))
    async with asyncio.timeout(30):
        while not await desk.library.stores.shelf.unfinished(upkeep()):
            await asyncio.sleep(0.02)
    newer.cancel()
    await asyncio.gather(newer, return_exceptions=True)
    embedder.stopped.set()
    await rebuilt(desk, ids[1])
    found = await desk.ask(BELA, RETRIEVE_KNOWLEDGE_BASE, Search(text="When do yoga classes begin?", limit=20))
    passages = " ".join(each.passage for each in found.found)
    assert "nine" in passages
    assert "seven" not in passages
