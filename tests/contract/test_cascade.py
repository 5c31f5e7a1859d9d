"""The levels of a search, with parts taken away while it runs: each names itself, and none shows what is another's."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from qdrant_client import models

from agents.knowledge.breaker import Breaker
from agents.knowledge.searching import Searching
from mesh.access import Grant
from mesh.adapters.ollama import OllamaEmbedder
from mesh.contracts.answers import Ask
from mesh.contracts.documents import (
    ANSWER_FROM_DOCUMENTS,
    DELETE_DOCUMENT,
    FIND_SOURCE_DOCUMENT,
    INGEST,
    RETRIEVE_KNOWLEDGE_BASE,
    SEARCH_WITHIN_DOCUMENT,
    SET_VISIBILITY,
    DocumentName,
    DocumentRef,
    Findings,
    Ingest,
    Search,
    SearchWithin,
    Visible,
)
from mesh.contracts.notes import FIND_NOTES, SAVE_NOTE, NotesFound, NotesWanted, SaveNote
from mesh.envelope import Failed
from mesh.errors import Unavailable
from mesh.ports.models import Vector
from mesh.ports.notes import Link
from mesh.skills import Skill
from tests.boundary.stage import CANARIES, NAME, NOTE, SECRET, Stage, leaked, staged
from tests.people import ASHA, BEN
from tests.processes import Restartable, free_port

QUESTION = "What is the fee of the gala in zlotys?"
LEVELS = ("hybrid", "dense", "sparse", "text", "names")
BACK_WITHIN = 20.0


class Parts:
    """What the search stands on, each of which can go and come back at the same address."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        data = str(folder / "data")
        self.index = Restartable("mesh.embedded.qdrant", "--data", data, ready="/readyz", log=folder / "qdrant.log")
        self.models = Restartable("mesh.testing.model", ready="/api/version", log=folder / "models.log")

    def all_up(self) -> None:
        self.index.start()
        self.models.start()

    def all_down(self) -> None:
        self.index.kill()
        self.models.kill()


@pytest.fixture(scope="module")
def kept_parts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parts]:
    parts = Parts(tmp_path_factory.mktemp("parts"))
    yield parts
    parts.all_down()


@pytest.fixture
def parts(kept_parts: Parts) -> Parts:
    kept_parts.all_up()
    return kept_parts


@pytest.fixture
async def stage(parts: Parts, tmp_path: Path) -> AsyncIterator[Stage]:
    async with staged(parts.index.url, parts.models.url, tmp_path) as opened:
        await opened.furnish()
        yield opened
        parts.all_up()  # the stage takes its collection away


async def down_to(level: str, stage: Stage, parts: Parts, folder: Path) -> None:
    match level:
        case "dense":
            await without_words(stage)
        case "sparse":
            parts.models.kill()
        case "text":
            parts.index.kill()
        case "names":
            parts.index.kill()
            damage(folder, "parts")


async def without_words(stage: Stage) -> None:
    """The collection again, without its sparse vectors."""
    client, name = stage.passages._client, stage.passages._collection
    kept = await client.get_collection(name)
    points, _ = await client.scroll(name, limit=1000, with_vectors=["dense"])
    await client.delete_collection(name)
    await client.create_collection(name, vectors_config=kept.config.params.vectors, metadata=kept.config.metadata)
    await client.upsert(
        name, [models.PointStruct(id=each.id, vector=each.vector or {}, payload=each.payload) for each in points]
    )


def damage(folder: Path, table: str = "") -> None:
    """Overwrites a table's first page in the shelf's index; the file's, where none is named."""
    file = folder / "shelf" / "index.sqlite"
    with sqlite3.connect(file) as database:
        (size,) = database.execute("PRAGMA page_size").fetchone()
        rows = database.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchall()
    database.close()
    page = rows[0][0] if table else 1
    with file.open("r+b") as opened:
        opened.seek((page - 1) * size)
        opened.write(b"\xff" * size)


async def found(stage: Stage, client: str, text: str = QUESTION) -> Findings:
    return await stage.ask(client, RETRIEVE_KNOWLEDGE_BASE, Search(text=text, limit=20))


async def until(claim: Callable[[], Awaitable[bool]]) -> None:
    end = time.monotonic() + BACK_WITHIN
    while not await claim():
        assert time.monotonic() < end, "it did not come back"
        await asyncio.sleep(0.1)


# ── who sees what, at each level ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("level", LEVELS)
async def test_each_level_names_itself_and_shows_nobody_what_is_anothers(
    level: str, stage: Stage, parts: Parts, tmp_path: Path
) -> None:
    secret = await stage.ingest(ASHA, NAME, SECRET)
    bens = await stage.ingest(BEN, "ben-notes.md", b"# Notes\n\nBen's own notes on a gala.\n")
    await down_to(level, stage, parts, tmp_path)

    texts = (QUESTION, " ".join(CANARIES), NAME, "zugspitze contract", "*", "gala OR 1=1 --", secret.document_id)
    hers = [await found(stage, ASHA, text) for text in texts]
    assert {each.level for each in hers[:2]} == {level}
    assert any(leaked(each.model_dump(mode="json")) for each in hers), "its owner finds it at this level"
    for text in texts:
        his = await found(stage, BEN, text)
        wordless = {"dense"} if text == "*" else set()
        assert his.level in {level, "names", *wordless}, "a text that nothing holds leads down to the names"
        assert not leaked(his.model_dump(mode="json"), secret.document_id)
    for skill, asked in (
        (SEARCH_WITHIN_DOCUMENT, SearchWithin(document_id=secret.document_id, text=QUESTION)),
        (SEARCH_WITHIN_DOCUMENT, SearchWithin(document_id=bens.document_id, text=QUESTION)),
        (FIND_SOURCE_DOCUMENT, DocumentName(name="the contract of the gala")),
        (ANSWER_FROM_DOCUMENTS, Ask(text=QUESTION)),
    ):
        outcome = await stage.run(BEN, skill, asked)
        assert not leaked(outcome.model_dump(mode="json"), secret.document_id), skill.name
    within = SearchWithin(document_id=secret.document_id, text=f"{QUESTION} {NAME}", limit=20)
    inside = await stage.ask(ASHA, SEARCH_WITHIN_DOCUMENT, within)
    assert inside.level == level
    assert {each.document.document_id for each in inside.found} == {secret.document_id}, "it stays in the document"


async def test_what_became_private_is_gone_from_the_levels_below_at_once(stage: Stage, parts: Parts) -> None:
    shared = await stage.ingest(ASHA, NAME, SECRET)
    grant = await stage.gate.admit(ASHA, "knowledge:search")
    await stage.library.stores.shelf.set_visibility(grant, shared.document_id, "global")
    parts.index.kill()
    assert leaked((await found(stage, BEN)).model_dump(mode="json"))
    await stage.library.stores.shelf.set_visibility(grant, shared.document_id, "private")
    assert not leaked((await found(stage, BEN)).model_dump(mode="json"))


# ── down, and up again ────────────────────────────────────────────────────────────────────────────────────────────


async def test_it_goes_down_and_comes_back_while_it_runs(stage: Stage, parts: Parts) -> None:
    await stage.ingest(ASHA, NAME, SECRET)
    assert (await found(stage, ASHA)).level == "hybrid"
    parts.models.kill()
    assert (await found(stage, ASHA)).level == "sparse"
    parts.index.kill()
    assert (await found(stage, ASHA)).level == "text"
    parts.index.start()
    await until(lambda: at(stage, "sparse"))
    parts.models.start()
    await until(lambda: at(stage, "hybrid"))


async def at(stage: Stage, level: str) -> bool:
    return (await found(stage, ASHA)).level == level


async def test_an_index_that_hangs_costs_one_message_its_patience_and_the_next_ones_nothing(
    stage: Stage, parts: Parts
) -> None:
    await stage.ingest(ASHA, NAME, SECRET)
    patience = 1.0
    stage.library.searching = Searching(
        stage.library.stores,
        _words=Breaker("words", within=patience),
        _meaning=Breaker("meaning", within=patience),
    )
    os.kill(parts.index.pid, signal.SIGSTOP)
    try:
        took = []
        for _ in range(3):
            began = time.monotonic()
            assert (await found(stage, ASHA)).level == "text"
            took.append(time.monotonic() - began)
    finally:
        os.kill(parts.index.pid, signal.SIGCONT)
    assert took[0] >= patience, "it did hang"
    assert min(took[1:]) < patience / 2
    await until(lambda: at(stage, "hybrid"))


async def test_an_index_that_hangs_after_the_search_costs_its_patience_and_nothing_that_was_found(
    stage: Stage, parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = await stage.ingest(ASHA, NAME, SECRET)
    stage.library.searching = Searching(stage.library.stores, _meaning=Breaker("meaning", within=1.0))

    async def stops(_: Grant, document_ids: Sequence[str]) -> list[Link]:
        os.kill(parts.index.pid, signal.SIGSTOP)
        return [Link(document_ids[0], "a-note-that-was-not-found", "reply")]

    monkeypatch.setattr(stage.library.stores.shelf.notes, "near", stops)
    try:
        async with asyncio.timeout(5):
            findings = await found(stage, ASHA)
    finally:
        os.kill(parts.index.pid, signal.SIGCONT)
    assert findings.level == "hybrid"
    assert findings.found[0].document.document_id == secret.document_id


async def test_of_several_questions_the_lowest_level_is_named(stage: Stage) -> None:
    await stage.ingest(ASHA, NAME, SECRET)
    embedder = cast(OllamaEmbedder, stage.library.stores.embedder)
    whole, asked = embedder.queries, list[str]()

    async def goes_after_the_first(texts: Sequence[str]) -> list[Vector]:
        asked.extend(texts)
        if len(asked) > 1:
            raise Unavailable
        return await whole(texts)

    embedder.queries = goes_after_the_first  # type: ignore[method-assign]  # of a server that goes
    assert (await found(stage, ASHA, f"{QUESTION} When does the gala begin?")).level == "sparse"
    assert len(asked) == 2


async def test_the_levels_below_find_the_passage_that_the_index_finds(stage: Stage, parts: Parts) -> None:
    await stage.ingest(ASHA, NAME, SECRET)
    above = (await found(stage, ASHA)).found
    parts.index.kill()
    below = (await found(stage, ASHA)).found
    assert below[0].passage in {each.passage for each in above}
    assert "7,413" in below[0].passage
    assert below[0].heading_path == ("Gala TREPPENWITZ", "Fee SCHNAPSIDEE")


SPELT = {
    "politique hotel chiens": "Les politiques de l'hôtel: les chiens paient 9 euros.",
    "कुत्तों का शुल्क": "कुत्तों के लिए शुल्क नौ यूरो है।",
    "犬の料金": "犬の料金は九ユーロです。",
    "1250": "Der Preis beträgt 1.250 Euro.",
    "policy": "Our policies are strict.",
}


async def test_raw_text_is_found_in_any_script_and_spelling(stage: Stage, parts: Parts) -> None:
    made = {
        asked: await stage.ingest(ASHA, f"x{place}.md", text.encode())
        for place, (asked, text) in enumerate(SPELT.items())
    }
    parts.index.kill()
    for asked, card in made.items():
        findings = await found(stage, ASHA, asked)
        assert findings.level == "text", asked
        assert findings.found[0].document.document_id == card.document_id, asked


# ── the shelf damaged ─────────────────────────────────────────────────────────────────────────────────────────────


async def test_texts_that_are_damaged_do_not_stop_the_index(stage: Stage, tmp_path: Path) -> None:
    await stage.ingest(ASHA, NAME, SECRET)
    damage(tmp_path, "parts")
    findings = await found(stage, ASHA)
    assert findings.level == "hybrid"
    assert leaked(findings.model_dump(mode="json"))


@pytest.mark.parametrize("index_too", [False, True])
async def test_without_the_shelf_nothing_is_shown_and_that_is_said(
    index_too: bool, stage: Stage, parts: Parts, tmp_path: Path
) -> None:
    """The index alone does not know what became private since."""
    await stage.ingest(ASHA, NAME, SECRET)
    damage(tmp_path)
    if index_too:
        parts.index.kill()
    for skill, asked in ((RETRIEVE_KNOWLEDGE_BASE, Search(text=QUESTION)), (ANSWER_FROM_DOCUMENTS, Ask(text=QUESTION))):
        outcome = await stage.run(ASHA, skill, asked)
        assert outcome == Failed(code="unavailable", user_text=Unavailable.default)


async def test_what_would_be_written_to_it_is_refused_in_the_same_words(stage: Stage, tmp_path: Path) -> None:
    card = await stage.ingest(ASHA, NAME, SECRET)
    damage(tmp_path)
    writing: list[tuple[Skill[Any, Any], Any]] = [
        (INGEST, Ingest(name="new.md", raw=SECRET)),
        (SAVE_NOTE, SaveNote(text="The gala is late.", message_id="m")),
        (SET_VISIBILITY, Visible(document_id=card.document_id, visibility="private")),
        (DELETE_DOCUMENT, DocumentRef(document_id=card.document_id)),
        (FIND_NOTES, NotesWanted()),
    ]
    for skill, asked in writing:
        outcome = await stage.run(ASHA, skill, asked)
        assert outcome == Failed(code="unavailable", user_text=Unavailable.default), skill.name


# ── notes ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("gone", ["models", "index"])
async def test_notes_are_found_by_their_words_and_nobody_elses(gone: str, stage: Stage, parts: Parts) -> None:
    await stage.note(ASHA, NOTE)
    await stage.note(ASHA, "Parking is free after six.")
    await stage.note(BEN, "The caterer of the gala has to be called.")
    getattr(parts, gone).kill()
    for client, expected in ((ASHA, [NOTE]), (BEN, ["The caterer of the gala has to be called."])):
        listed: NotesFound = await stage.ask(client, FIND_NOTES, NotesWanted(about="the caterer"))
        assert [each.begins for each in listed.notes] == expected
        assert not listed.nearest


# ── answers ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("level", ["sparse", "text"])
async def test_an_answer_by_words_alone_must_say_what_was_asked(
    level: str, stage: Stage, parts: Parts, tmp_path: Path
) -> None:
    await stage.ingest(ASHA, NAME, SECRET)
    await down_to(level, stage, parts, tmp_path)
    answer = await stage.ask(ASHA, ANSWER_FROM_DOCUMENTS, Ask(text="What is the fee of the gala?"))
    assert "7,413" in answer.text
    assert answer.steps == (f"search: {level}",)
    for near_miss in ("What is the fee of the regatta?", "Who pays the band?", "Wie teuer ist das Fest?"):
        outcome = await stage.run(ASHA, ANSWER_FROM_DOCUMENTS, Ask(text=near_miss))
        assert outcome == Failed(code="unavailable", user_text=Unavailable.default), "not: I don't know that"


async def test_where_only_names_are_left_the_files_are_named_and_nothing_is_quoted(
    stage: Stage, parts: Parts, tmp_path: Path
) -> None:
    await stage.ingest(ASHA, "gala-contract.md", SECRET)
    await down_to("names", stage, parts, tmp_path)
    outcome = await stage.run(ASHA, ANSWER_FROM_DOCUMENTS, Ask(text="What does the gala contract cost?"))
    assert isinstance(outcome, Failed)
    assert outcome.code == "unavailable"
    assert "gala-contract.md" in outcome.user_text
    assert not leaked(outcome.user_text), "no word of what is in it"


async def test_an_answer_says_how_it_was_searched_for(stage: Stage) -> None:
    await stage.ingest(ASHA, NAME, SECRET)
    answer = await stage.ask(ASHA, ANSWER_FROM_DOCUMENTS, Ask(text=QUESTION))
    assert answer.steps == ("search: hybrid",)


class HalfGone(OllamaEmbedder):
    """The model server goes once the question is embedded."""

    def __init__(self, whole: OllamaEmbedder, gone: OllamaEmbedder) -> None:
        self.queries = whole.queries  # type: ignore[method-assign]  # of two servers
        self.documents = gone.documents  # type: ignore[method-assign]
        self.model, self.dims = whole.model, whole.dims


async def test_a_model_server_that_goes_before_the_sentences_is_an_apology(stage: Stage) -> None:
    await stage.ingest(ASHA, NAME, SECRET)
    whole: Any = stage.library.stores.embedder
    gone = OllamaEmbedder(
        f"http://127.0.0.1:{free_port()}", model=whole.model, dims=whole.dims, query_prefix="", document_prefix=""
    )
    stage.library.stores.embedder = HalfGone(whole, gone)
    outcome = await stage.run(ASHA, ANSWER_FROM_DOCUMENTS, Ask(text=QUESTION))
    assert outcome == Failed(code="unavailable", user_text=Unavailable.default)
    await gone.close()
