"""Who sees a document is changed by its owner alone; it reaches the index as a job whose state is told, and until then
the stricter of the two rules holds."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from mesh.access import upkeep
from mesh.adapters.qdrant import QdrantPassages
from mesh.cli.admin import seen_by
from mesh.contracts.answers import Nothing
from mesh.contracts.documents import (
    DELETE_DOCUMENT,
    GET_DOCUMENT,
    INGEST,
    LIST_DOCUMENTS,
    RETRIEVE_KNOWLEDGE_BASE,
    SET_VISIBILITY,
    DocumentCard,
    DocumentRef,
    Ingest,
    Search,
    Visible,
)
from mesh.envelope import pseudonym
from mesh.errors import Denied, NotFound, Unavailable
from mesh.ports.documents import Visibility
from tests.boundary.stage import DIMS, NAME, PUBLISHER, SECRET, Stage, leaked
from tests.people import ASHA, BEN, OWNER
from tests.processes import qdrant


async def finds(stage: Stage, client: str) -> bool:
    found = await stage.ask(client, RETRIEVE_KNOWLEDGE_BASE, Search(text="What is the fee of the gala?"))
    return bool(leaked(found.model_dump(mode="json")))


async def wish(stage: Stage, client: str, card: DocumentCard, visibility: Visibility) -> DocumentCard:
    return await stage.ask(client, SET_VISIBILITY, Visible(document_id=card.document_id, visibility=visibility))


async def listed(stage: Stage, client: str) -> list[DocumentCard]:
    return list((await stage.ask(client, LIST_DOCUMENTS, Nothing())).documents)


@asynccontextmanager
async def without_index(stage: Stage, folder: Path) -> AsyncIterator[None]:
    """The index's process is killed for as long as this lasts; it is another one, that has everything, afterwards."""
    working = stage.library.stores.passages
    with qdrant(folder) as url:
        dying = await QdrantPassages.open(url, model="multilingual-e5-small", dims=DIMS, collection="dying")
    stage.library.stores.passages = dying
    try:
        yield
    finally:
        await dying.close()
        stage.library.stores.passages = working


@pytest.mark.parametrize(("before", "after"), [("private", "global"), ("global", "private")])
async def test_an_edit_that_the_index_misses_is_told_and_done_when_it_is_back(
    stage: Stage, tmp_path: Path, before: Visibility, after: Visibility
) -> None:
    card = await stage.ingest(PUBLISHER, NAME, SECRET, visibility=before)
    told = "everyone" if after == "global" else "you alone"
    async with without_index(stage, tmp_path / "dying"):
        with pytest.raises(Unavailable, match=f"visible to {told}"):
            await wish(stage, PUBLISHER, card, after)
        (stands,) = await listed(stage, PUBLISHER)
        assert (stands.visibility, stands.becoming) == ("private", after)
        assert seen_by(stands) == f"{PUBLISHER} (being made {after})"
        assert await listed(stage, BEN) == []
        with pytest.raises(NotFound):
            await stage.ask(BEN, GET_DOCUMENT, DocumentRef(document_id=card.document_id))
    assert not await finds(stage, BEN), "the index says otherwise, and the stricter of the two holds"
    assert await finds(stage, PUBLISHER)

    assert await stage.library.ingesting.finish_interrupted()
    (done,) = await listed(stage, PUBLISHER)
    assert (done.visibility, done.becoming) == (after, "")
    assert await finds(stage, BEN) == (after == "global")
    assert await stage.passages.indexed(upkeep(), visibility=after) == {card.document_id}


async def test_the_last_of_two_wishes_counts_whatever_came_of_the_first(stage: Stage, tmp_path: Path) -> None:
    card = await stage.ingest(PUBLISHER, NAME, SECRET)
    async with without_index(stage, tmp_path / "dying"):
        with pytest.raises(Unavailable):
            await wish(stage, PUBLISHER, card, "global")
        with pytest.raises(Unavailable):
            await wish(stage, PUBLISHER, card, "private")
    await stage.library.ingesting.finish_interrupted()
    assert [(each.visibility, each.becoming) for each in await listed(stage, PUBLISHER)] == [("private", "")]
    assert not await finds(stage, BEN)


async def test_a_share_that_waits_is_lost_with_the_document_and_not_inherited_by_the_next(
    stage: Stage, tmp_path: Path
) -> None:
    card = await stage.ingest(PUBLISHER, NAME, SECRET)
    async with without_index(stage, tmp_path / "dying"):
        with pytest.raises(Unavailable):
            await wish(stage, PUBLISHER, card, "global")
        with pytest.raises(Unavailable):
            await stage.ask(PUBLISHER, DELETE_DOCUMENT, DocumentRef(document_id=card.document_id))
    await stage.library.ingesting.finish_interrupted()
    await stage.ingest(PUBLISHER, NAME, SECRET)
    await stage.library.ingesting.finish_interrupted()
    assert [each.visibility for each in await listed(stage, PUBLISHER)] == ["private"]
    assert not await finds(stage, BEN)


# ── who may ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_sharing_takes_the_permission_at_every_entry(stage: Stage) -> None:
    card = await stage.ingest(ASHA, NAME, SECRET)
    with pytest.raises(Denied):
        await wish(stage, ASHA, card, "global")
    for raw in (SECRET, b"# Another\n\nversion of it."):
        with pytest.raises(Denied):
            await stage.ask(ASHA, INGEST, Ingest(name=NAME, raw=raw, visibility="global"))
    assert [(each.visibility, each.becoming) for each in await listed(stage, ASHA)] == [("private", "")]
    assert await listed(stage, BEN) == []


async def test_a_permission_that_was_taken_away_shares_nothing_more_and_takes_back_what_was(stage: Stage) -> None:
    card = await stage.ingest(PUBLISHER, NAME, SECRET, visibility="global")
    stage.people.allow(PUBLISHER, "knowledge:search", "documents:add")
    assert (await wish(stage, PUBLISHER, card, "private")).visibility == "private"
    with pytest.raises(Denied):
        await wish(stage, PUBLISHER, card, "global")


@pytest.mark.parametrize("sees", [False, True], ids=["unseen", "seen"])
async def test_what_is_anothers_is_neither_shared_hidden_nor_deleted(stage: Stage, sees: bool) -> None:
    visibility: Visibility = "global" if sees else "private"
    card = await stage.ingest(OWNER, NAME, SECRET, owner=ASHA, visibility=visibility)
    for wanted in ("private", "global"):
        with pytest.raises(NotFound):
            await wish(stage, PUBLISHER, card, wanted)
    with pytest.raises(NotFound):
        await stage.ask(PUBLISHER, DELETE_DOCUMENT, DocumentRef(document_id=card.document_id))
    assert await listed(stage, ASHA) == [card]


async def test_many_wishes_at_once_end_with_stores_that_agree(stage: Stage) -> None:
    card = await stage.ingest(PUBLISHER, NAME, SECRET)
    wanted: tuple[Visibility, ...] = ("global", "private", "global", "private", "global")
    await asyncio.gather(*(wish(stage, PUBLISHER, card, each) for each in wanted))
    (ended,) = await listed(stage, PUBLISHER)
    assert ended.becoming == ""
    assert await stage.passages.indexed(upkeep(), visibility=ended.visibility) == {card.document_id}


# ── the system owner ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("skill", "payload"),
    [
        (LIST_DOCUMENTS, Nothing()),
        (RETRIEVE_KNOWLEDGE_BASE, Search(text="What is the fee of the gala?")),
    ],
    ids=["the shelf", "the index"],
)
async def test_that_the_system_owner_reads_is_logged_without_a_word_or_a_number(
    stage: Stage, skill: Any, payload: Any, caplog: pytest.LogCaptureFixture
) -> None:
    await stage.ingest(ASHA, NAME, SECRET)
    caplog.clear()
    with caplog.at_level(logging.INFO):
        assert leaked((await stage.ask(OWNER, skill, payload)).model_dump(mode="json"))
    lines = [record.getMessage() for record in caplog.records if "sees_all=true" in record.getMessage()]
    assert lines
    assert all(f"client={pseudonym(OWNER)}" in line for line in lines)
    assert not leaked({"value": caplog.text}, OWNER, ASHA, "fee of the")
    caplog.clear()
    with caplog.at_level(logging.INFO):
        await stage.ask(BEN, skill, payload)
    assert "sees_all" not in caplog.text
