"""Chunks that do not say who may see them: the system owner's alone, until they are made private."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from qdrant_client import models

from mesh.access import OWN_SYSTEM
from mesh.contracts.answers import Ask
from mesh.contracts.documents import ANSWER_FROM_DOCUMENTS, RETRIEVE_KNOWLEDGE_BASE, Search
from mesh.contracts.upkeep import TAG_CHUNKS, TagChunks, TaggedChunks
from mesh.errors import Denied
from tests.boundary.stage import DIMS, NAME, PUBLISHER, SECRET, Stage, leaked
from tests.people import ASHA, BEN, OWNER

QUESTION = Search(text="What is the fee of the gala?", limit=20)
OLD = "The fee of the gala was 7,413 zlotys."


async def finds(stage: Stage, client: str) -> bool:
    found = await stage.ask(client, RETRIEVE_KNOWLEDGE_BASE, QUESTION)
    return bool(leaked({"value": found.model_dump(mode="json")}))


async def untag(stage: Stage, document_id: str, *tags: str) -> None:
    these = models.FieldCondition(key="document_id", match=models.MatchValue(value=document_id))
    await stage.passages._client.delete_payload(
        stage.passages._collection, keys=list(tags), points=models.Filter(must=[these]), wait=True
    )


async def put_old(stage: Stage, point: int, **payload: Any) -> None:
    """As a version wrote it that knew of no owners, and that the shelf has never heard of."""
    vector = (await stage.library.stores.embedder.documents([OLD]))[0]
    old = models.PointStruct(id=point, vector={"dense": list(vector)}, payload={"text": OLD, **payload})
    await stage.passages._client.upsert(stage.passages._collection, [old], wait=True)


async def payloads(stage: Stage) -> list[dict[str, Any]]:
    points, _ = await stage.passages._client.scroll(stage.passages._collection, limit=100)
    return [point.payload or {} for point in points]


async def migrate(stage: Stage, *, dry_run: bool = False) -> list[TaggedChunks]:
    pages, after = [], None
    while True:
        page = await stage.ask(OWNER, TAG_CHUNKS, TagChunks(dry_run=dry_run, after=after))
        pages.append(page)
        if (after := page.following) is None:
            return pages


TAGS = [
    ("owner_identity",),
    ("visibility",),
    ("owner_identity", "visibility"),
    ("owner_identity", "visibility", "state"),
]


@pytest.mark.parametrize("shared", [False, True], ids=["private", "shared with everyone"])
@pytest.mark.parametrize("tags", TAGS, ids=" ".join)
async def test_a_chunk_that_lost_a_tag_is_the_system_owners_alone_until_it_is_tagged(
    stage: Stage, tags: tuple[str, ...], shared: bool
) -> None:
    card = await stage.ingest(PUBLISHER, NAME, SECRET, visibility="global" if shared else "private")
    await untag(stage, card.document_id, *tags)
    assert [await finds(stage, client) for client in (PUBLISHER, BEN, OWNER)] == [False, False, True]
    for client in (PUBLISHER, BEN):
        answer = await stage.ask(client, ANSWER_FROM_DOCUMENTS, Ask(text=QUESTION.text))
        assert not answer.grounded

    (page,) = await migrate(stage, dry_run=True)
    assert [(each.name, each.owner, each.shelved) for each in page.documents] == [(NAME, PUBLISHER, True)]
    assert page.left == page.documents[0].chunks == 2
    assert [await finds(stage, client) for client in (PUBLISHER, BEN, OWNER)] == [False, False, True], "it was dry"

    assert await migrate(stage) == [page]
    assert {(each["owner_identity"], each["visibility"]) for each in await payloads(stage)} == {(PUBLISHER, "private")}
    assert [await finds(stage, client) for client in (PUBLISHER, BEN, OWNER)] == [True, False, True]
    assert [each.documents for each in await migrate(stage)] == [()], "twice is once"

    await stage.library.ingesting.finish_interrupted()  # what the shelf shows to everyone, the index does again
    assert await finds(stage, BEN) == shared


async def test_a_chunk_that_the_shelf_has_never_heard_of_becomes_the_system_owners(stage: Stage) -> None:
    await put_old(stage, 1)
    await put_old(stage, 2, source_filename="old-notes.md", document_id="old")
    await put_old(stage, 3, source_filename=f"{ASHA}/ashas.md", document_id="hers", owner_identity=ASHA)
    everybody = (ASHA, BEN, OWNER)
    assert [await finds(stage, client) for client in everybody] == [False, False, True]
    (page,) = await migrate(stage)
    assert {(each.name, each.owner, each.shelved) for each in page.documents} == {
        ("without a name", OWNER, False),
        ("old-notes.md", OWNER, False),
        ("ashas.md", ASHA, False),
    }
    assert {(each["owner_identity"], each["visibility"]) for each in await payloads(stage)} == {
        (OWNER, "private"),
        (ASHA, "private"),
    }
    assert [await finds(stage, client) for client in everybody] == [False, False, True]


async def test_chunks_of_one_document_id_stay_with_whom_each_of_them_names(stage: Stage) -> None:
    """Earlier versions had ids that two people's files of one name shared."""
    for point, owner in enumerate((BEN, ASHA, BEN), 1):
        said = {"document_id": "report.pdf", "owner_identity": owner, "source_filename": f"{owner}/report.pdf"}
        await put_old(stage, point, **said)
    await migrate(stage)
    tagged = [(each["owner_identity"], each["visibility"], each["source_filename"]) for each in await payloads(stage)]
    assert sorted(tagged) == sorted((owner, "private", f"{owner}/report.pdf") for owner in (BEN, ASHA, BEN))


async def test_a_thousand_chunks_are_tagged_page_by_page(stage: Stage) -> None:
    vector = [1.0] + [0.0] * (DIMS - 1)
    for start in range(0, 1200, 400):
        points = [
            models.PointStruct(id=1 + start + n, vector={"dense": vector}, payload={"text": OLD, "document_id": "old"})
            for n in range(400)
        ]
        await stage.passages._client.upsert(stage.passages._collection, points, wait=True)
    looked, tagged = await migrate(stage, dry_run=True), await migrate(stage)
    for pages in (looked, tagged):
        assert [sum(each.chunks for each in page.documents) for page in pages] == [500, 500, 200]
    assert [page.left for page in tagged] == [1200, 700, 200]


async def test_what_is_being_deleted_is_not_the_system_owners_again(stage: Stage) -> None:
    card = await stage.ingest(OWNER, NAME, SECRET)
    await stage.library.stores.shelf.delete(await _grant(stage, OWNER), card.document_id)
    assert not await finds(stage, OWNER)


async def _grant(stage: Stage, client: str) -> Any:
    return await stage.gate.admit(client, "knowledge:search")


@pytest.mark.parametrize("client", [ASHA, PUBLISHER])
async def test_nobody_else_tags_anything_whatever_a_tier_says(stage: Stage, client: str) -> None:
    stage.people.allow(client, "knowledge:search", OWN_SYSTEM)
    await put_old(stage, 1)
    with pytest.raises(Denied):
        await stage.ask(client, TAG_CHUNKS, TagChunks(dry_run=True))
    with pytest.raises(Denied):
        await stage.passages.untagged(await _grant(stage, client))
    with pytest.raises(Denied):
        await stage.passages.tag(await _grant(stage, client), [], document_id="old", owner=client, name="x")


async def test_tagging_while_documents_come_in_loses_none(stage: Stage) -> None:
    await put_old(stage, 1)
    adding = [stage.ingest(ASHA, f"{n}-{NAME}", SECRET + b"%d" % n) for n in range(3)]
    await asyncio.gather(migrate(stage), *adding)
    (page,) = await migrate(stage)
    assert page.documents == ()
    assert await finds(stage, ASHA)
    assert not await finds(stage, BEN)
