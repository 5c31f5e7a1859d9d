"""The promises of the port `PassageIndex`, kept by a real Qdrant (QDRANT_URL) or by the embedded one."""

from __future__ import annotations

import asyncio
import hashlib
import math
import random
import uuid
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from qdrant_client import models

from mesh.access import Grant
from mesh.adapters.qdrant import QdrantPassages
from mesh.adapters.qdrant_scope import scope
from mesh.envelope import digest
from mesh.errors import Denied, Misconfigured, Unavailable
from mesh.names import forms
from mesh.ports.documents import Chunk, Document, Visibility
from mesh.ports.models import Vector
from mesh.ports.passages import PassageIndex
from tests.processes import free_port

DIMS = 16
ASHA = Grant("+15551230001", frozenset(), tier="default")
BELA = Grant("+15551230002", frozenset(), tier="default")
OWNER = Grant("+15550000000", frozenset(), tier="system_owner", sees_all=True)


@pytest.fixture(scope="module")
def collection() -> str:
    return new_collection()


def new_collection() -> str:
    return f"test-{uuid.uuid4().hex[:12]}"


@pytest.fixture
async def passages(qdrant_url: str, collection: str) -> AsyncIterator[QdrantPassages]:
    opened = await QdrantPassages.open(qdrant_url, model="m", dims=DIMS, collection=collection)
    yield opened
    every = models.FieldCondition(key="state", match=models.MatchAny(any=["live", "coming"]))
    await opened._client.delete(collection, models.FilterSelector(filter=models.Filter(must=[every])))
    await opened.close()


def vector(seed: str) -> list[float]:
    numbers = random.Random(seed)
    drawn = [numbers.gauss(0, 1) for _ in range(DIMS)]
    length = math.hypot(*drawn)
    return [each / length for each in drawn]


async def put(
    passages: PassageIndex,
    owner: Grant,
    texts: Sequence[str],
    *,
    name: str = "notes.md",
    visibility: Visibility = "private",
) -> Document:
    made = Document(
        document_id=digest(owner.client, name),
        owner=owner.client,
        name=name,
        visibility=visibility,
        sha256=hashlib.sha256("\n".join(texts).encode()).hexdigest(),
        size=1,
        media_type="text/markdown",
        ingested_at=datetime(2026, 1, 2, tzinfo=UTC),
        chunks=len(texts),
    )
    chunks = [Chunk(index, text, ("Guide", "Rooms"), "page 2", 7) for index, text in enumerate(texts)]
    await passages.put(owner, made, chunks, [vector(text) for text in texts])
    return made


async def texts(passages: PassageIndex, grant: Grant, about: str, *, limit: int = 50) -> set[str]:
    found = await passages.search(grant, about, vector(about), limit=limit)
    return {passage.chunk.text for passage in found}


async def test_a_passage_comes_back_as_it_was_put(passages: QdrantPassages) -> None:
    made = await put(passages, ASHA, ["The gate code is 4417."])
    (found,) = await passages.search(ASHA, "gate code", vector("The gate code is 4417."), limit=5)
    assert found.chunk == Chunk(0, "The gate code is 4417.", ("Guide", "Rooms"), "page 2", 7)
    assert found.document_id == made.document_id
    assert found.source_filename == "+15551230001/notes.md"
    assert found.ingested_at == made.ingested_at
    assert found.dense == pytest.approx(1.0, abs=1e-4)
    assert found.sparse is not None
    assert found.sparse > 0


async def test_both_legs_are_returned_and_unfused(passages: QdrantPassages) -> None:
    await put(passages, ASHA, [f"filler number {n}" for n in range(30)] + ["the zebra sleeps"])
    near = "filler number 3"
    found = await passages.search(ASHA, "zebra", vector(near), limit=2)
    by_text = {passage.chunk.text: passage for passage in found}
    assert len(found) == 3
    assert by_text[near].sparse is None
    zebra = by_text["the zebra sleeps"]
    assert zebra.sparse is not None
    cosine = sum(a * b for a, b in zip(vector(near), vector("the zebra sleeps"), strict=True))
    assert zebra.dense == pytest.approx(cosine, abs=1e-4), "its cosine is known though only its words matched"


async def test_headings_and_file_name_are_found_by_their_words(passages: QdrantPassages) -> None:
    await put(passages, ASHA, ["From 60 euros."], name="price-list.md")
    (by_heading,) = await passages.search(ASHA, "rooms", vector("x"), limit=5)
    (by_name,) = await passages.search(ASHA, "price", vector("x"), limit=5)
    assert by_heading.sparse is not None
    assert by_name.sparse is not None


async def test_a_question_without_words_is_answered_by_meaning_alone(passages: QdrantPassages) -> None:
    await put(passages, ASHA, ["Words."])
    assert len(await passages.search(ASHA, "?!", vector("x"), limit=5)) == 1


async def test_a_search_can_be_held_to_one_document(passages: QdrantPassages) -> None:
    await put(passages, ASHA, ["here zebra"], name="a.md")
    other = await put(passages, ASHA, ["there zebra"], name="b.md")
    found = await passages.search(ASHA, "zebra", vector("x"), limit=5, within=other.document_id)
    assert {passage.chunk.text for passage in found} == {"there zebra"}


async def test_what_is_called_so_is_found_whatever_its_words(passages: QdrantPassages) -> None:
    await put(passages, ASHA, ["From 60 euros."], name="Price list (2026).md")
    await put(passages, ASHA, ["filler"], name="other.md")
    (found,) = await passages.called(ASHA, [*forms("Price list"), "nothing"], "zebra", vector("x"), limit=5)
    assert (found.chunk.text, found.sparse) == ("From 60 euros.", None)
    assert found.dense is not None
    (found,) = await passages.called(ASHA, forms("Price list"), "how many euros?", vector("x"), limit=5)
    assert found.sparse
    assert await passages.called(ASHA, [], "euros", vector("x"), limit=5) == []


# ── who sees what ─────────────────────────────────────────────────────────────────────────────────────────────────


async def test_two_people_never_see_each_others_passages(passages: QdrantPassages) -> None:
    mine = await put(passages, ASHA, ["ASHA-CANARY 4417"])
    await put(passages, BELA, ["BELA-CANARY 9921"])
    assert await texts(passages, ASHA, "BELA-CANARY 9921") == {"ASHA-CANARY 4417"}
    assert await texts(passages, BELA, "ASHA-CANARY 4417") == {"BELA-CANARY 9921"}
    within = await passages.search(
        BELA, "ASHA-CANARY 4417", vector("ASHA-CANARY 4417"), limit=50, within=mine.document_id
    )
    assert within == []


async def test_nobody_finds_anothers_passage_by_its_name(passages: QdrantPassages) -> None:
    made = await put(passages, BELA, ["BELA-CANARY 9921"], name="price list.md")
    asked = [name for title in ("price list", "Guide", "Rooms") for name in forms(title)]
    assert await passages.called(ASHA, asked, "BELA-CANARY 9921", vector("BELA-CANARY 9921"), limit=5) == []
    assert len(await passages.called(BELA, asked, "x", vector("x"), limit=5)) == 1
    await passages.set_visibility(BELA, made.document_id, "global")
    assert len(await passages.called(ASHA, asked, "x", vector("x"), limit=5)) == 1


async def test_everyone_sees_what_is_global(passages: QdrantPassages) -> None:
    await put(passages, ASHA, ["prices for all"], visibility="global")
    assert await texts(passages, BELA, "prices") == {"prices for all"}


async def test_who_sees_a_document_can_be_changed_by_its_owner_alone(passages: QdrantPassages) -> None:
    made = await put(passages, ASHA, ["prices for all", "and for you"])
    await passages.set_visibility(BELA, made.document_id, "global")
    assert await texts(passages, BELA, "prices") == set()
    await passages.set_visibility(ASHA, made.document_id, "global")
    assert await texts(passages, BELA, "prices") == {"prices for all", "and for you"}
    assert await passages.indexed(BELA, visibility="global") == {made.document_id}
    assert await passages.indexed(ASHA, visibility="private") == set()
    await passages.set_visibility(OWNER, made.document_id, "private")
    assert await texts(passages, BELA, "prices") == set()
    assert await texts(passages, ASHA, "prices") == {"prices for all", "and for you"}


async def test_a_document_is_deleted_by_its_owner_alone_and_nothing_else_with_it(passages: QdrantPassages) -> None:
    made = await put(passages, ASHA, ["zebra one"], visibility="global")
    await put(passages, ASHA, ["zebra two"], name="other.md")
    await put(passages, BELA, ["zebra three"])
    await passages.delete(BELA, made.document_id)
    assert await texts(passages, ASHA, "zebra") == {"zebra one", "zebra two"}
    await passages.delete(ASHA, made.document_id)
    await passages.delete(ASHA, made.document_id)
    assert await texts(passages, OWNER, "zebra") == {"zebra two", "zebra three"}


@pytest.mark.parametrize("client", ["", "*", "mesh"])
async def test_nobody_changes_anything(passages: QdrantPassages, client: str) -> None:
    made = await put(passages, ASHA, ["zebra"], visibility="global")
    nobody = Grant(client, frozenset(), tier="")
    with pytest.raises(ValueError, match="nobody"):
        await passages.delete(nobody, made.document_id)
    with pytest.raises(ValueError, match="nobody"):
        await passages.set_visibility(nobody, made.document_id, "private")


async def test_the_system_owner_sees_all_and_it_is_logged(
    passages: QdrantPassages, caplog: pytest.LogCaptureFixture
) -> None:
    await put(passages, ASHA, ["a"])
    await put(passages, BELA, ["b"])
    with caplog.at_level("INFO", logger="mesh.adapters.qdrant_scope"):
        assert await texts(passages, OWNER, "x") == {"a", "b"}
    assert "sees_all=true" in caplog.text
    assert OWNER.client not in caplog.text


@pytest.mark.parametrize("client", ["", "  ", "*", "**", "+*", "mesh", "null", "+15551230001\n"])
async def test_nobody_is_not_everybody(passages: QdrantPassages, client: str) -> None:
    with pytest.raises(ValueError, match="nobody"):
        await passages.search(Grant(client, frozenset(), tier=""), "x", vector("x"), limit=5)


@pytest.mark.parametrize("grant", [ASHA, OWNER])
def test_a_filter_is_never_empty(grant: Grant) -> None:
    assert scope(grant).must


async def test_a_point_without_tags_is_seen_by_the_system_owner_only(passages: QdrantPassages, collection: str) -> None:
    point = models.PointStruct(id=1, vector={"dense": vector("x")}, payload={"text": "untagged", "state": "live"})
    await passages._client.upsert(collection, points=[point])
    assert await texts(passages, ASHA, "x") == set()
    assert await texts(passages, OWNER, "x") == {"untagged"}


async def test_nobody_puts_in_anothers_name(passages: QdrantPassages) -> None:
    made = await put(passages, ASHA, ["a"])
    with pytest.raises(Denied):
        await passages.put(BELA, replace(made, sha256="f" * 64), [Chunk(0, "b")], [vector("b")])
    assert await texts(passages, ASHA, "x") == {"a"}


# ── versions ──────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_new_version_takes_the_place_of_the_old(passages: QdrantPassages) -> None:
    await put(passages, ASHA, [f"old {n}" for n in range(5)])
    await put(passages, ASHA, ["new 0", "new 1"])
    assert await texts(passages, ASHA, "old") == {"new 0", "new 1"}


async def test_the_same_version_again_changes_nothing(passages: QdrantPassages) -> None:
    await put(passages, ASHA, ["a", "b"])
    await put(passages, ASHA, ["a", "b"])
    found = await passages.search(ASHA, "a", vector("a"), limit=50)
    assert sorted(passage.chunk.text for passage in found) == ["a", "b"]


async def test_other_passages_of_the_same_bytes_take_the_old_ones_place_all_at_once(passages: QdrantPassages) -> None:
    """Vectors come one by one; a reader of today may make other passages of a file than one of yesterday did."""
    made = await put(passages, ASHA, [f"old {n}" for n in range(70)])
    seen: list[set[str]] = []

    async def coming() -> AsyncIterator[Vector]:
        for n in range(130):
            if n in (1, 65, 129):  # two batches are written by the last of them
                seen.append(await texts(passages, ASHA, "old", limit=300))
            yield vector(f"new {n}")

    await passages.put(ASHA, made, [Chunk(n, f"new {n}") for n in range(130)], coming())
    assert seen == 3 * [{f"old {n}" for n in range(70)}]
    assert await texts(passages, ASHA, "new", limit=300) == {f"new {n}" for n in range(130)}


@pytest.mark.parametrize("count", [2, 4])
async def test_more_or_fewer_vectors_than_passages_are_refused(passages: QdrantPassages, count: int) -> None:
    made = await put(passages, ASHA, ["old"])
    with pytest.raises(ValueError, match="vectors than chunks"):
        await passages.put(ASHA, made, [Chunk(n, f"new {n}") for n in range(3)], [vector(f"{n}") for n in range(count)])
    assert await texts(passages, ASHA, "old") == {"old"}


async def test_a_deleted_collection_is_made_again_when_it_is_needed(passages: QdrantPassages, collection: str) -> None:
    await passages._client.delete_collection(collection)
    await passages.prepare()
    await put(passages, ASHA, ["a"])
    assert await texts(passages, ASHA, "a") == {"a"}


async def test_a_document_may_become_private_again(passages: QdrantPassages) -> None:
    await put(passages, ASHA, ["a"], visibility="global")
    await put(passages, ASHA, ["a"], visibility="private")
    assert await texts(passages, BELA, "a") == set()
    assert await texts(passages, ASHA, "a") == {"a"}


@pytest.mark.parametrize("same_text", [False, True])
async def test_while_a_version_is_swapped_there_is_no_gap_and_nothing_foreign(
    passages: QdrantPassages, same_text: bool
) -> None:
    await put(passages, BELA, [f"foreign {n}" for n in range(100)])
    await put(passages, ASHA, [f"round 0 passage {n}" for n in range(100)])
    seen: list[set[str]] = []
    done = asyncio.Event()

    async def watch() -> None:
        while not done.is_set():
            seen.append(await texts(passages, ASHA, "passage", limit=300))

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(watch())
        for round_ in range(1, 4):
            shown = 0 if same_text else round_
            await put(passages, ASHA, [f"round {shown} passage {n}" for n in range(100)])
        done.set()
    assert len(seen) > 3
    assert all(len(found) >= 100 for found in seen), "the old version answers until the new one is complete"
    assert not any(text.startswith("foreign") for found in seen for text in found)


async def test_an_upload_that_broke_off_is_invisible_and_can_be_repeated(
    passages: QdrantPassages, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put(passages, ASHA, ["old"])
    with monkeypatch.context() as patched:
        patched.setattr(passages._writer, "set_payload", _breaks)
        with pytest.raises(ConnectionResetError):
            await put(passages, ASHA, ["new", "newer"])
    assert await texts(passages, ASHA, "new") == {"old"}
    await put(passages, ASHA, ["new", "newer"])
    assert await texts(passages, ASHA, "new") == {"new", "newer"}


async def _breaks(*_: object, **__: object) -> None:
    raise ConnectionResetError


# ── opening ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("model", "dims"), [("other", DIMS), ("m", DIMS * 2)])
async def test_another_model_is_refused_and_the_way_out_is_named(
    passages: QdrantPassages, qdrant_url: str, collection: str, model: str, dims: int
) -> None:
    with pytest.raises(Misconfigured, match="embedded again from their files"):
        await QdrantPassages.open(qdrant_url, model=model, dims=dims, collection=collection)


async def test_what_an_earlier_version_wrote_is_told_its_words_and_names_anew(qdrant_url: str) -> None:
    name = new_collection()
    earlier = await QdrantPassages.open(qdrant_url, model="m", dims=DIMS, collection=name)
    await put(earlier, ASHA, ["the zebra sleeps", "a lion wakes"])
    client, everything = earlier._client, models.Filter(must_not=[models.HasIdCondition(has_id=[])])
    points, _ = await client.scroll(name)
    for point in points:
        wrong = models.SparseVector(indices=[1], values=[1.0])
        await client.update_vectors(name, [models.PointVectors(id=point.id, vector={"sparse": wrong})])
    await client.delete_payload(name, ["names"], points=everything)
    await client.update_collection(name, metadata={"schema": 1})
    assert await earlier.by_words(ASHA, "zebra", limit=5) == []

    now = await QdrantPassages.open(qdrant_url, model="m", dims=DIMS, collection=name)
    assert [found.chunk.text for found in await now.by_words(ASHA, "zebra", limit=5)] == ["the zebra sleeps"]
    assert await now.by_words(BELA, "zebra", limit=5) == []
    called = await now.called(ASHA, forms("Rooms"), "zebra", vector("zebra"), limit=5)
    assert len(called) == 2
    metadata = (await client.get_collection(name)).config.metadata
    assert metadata == {"embedding_model": "m", "embedding_dims": DIMS, "schema": 2}
    (nearest, *_) = await now.by_meaning(ASHA, vector("a lion wakes"), limit=2)
    assert nearest.chunk.text == "a lion wakes"
    assert nearest.dense == pytest.approx(1.0, abs=1e-4)
    await client.delete_collection(name)
    await earlier.close()
    await now.close()


async def test_a_passage_that_is_deleted_while_its_page_is_told_anew_holds_up_no_other(
    qdrant_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = new_collection()
    opened = await QdrantPassages.open(qdrant_url, model="m", dims=DIMS, collection=name)
    await put(opened, ASHA, ["the zebra sleeps", "a lion wakes"])
    client = opened._client
    await client.update_collection(name, metadata={"schema": 1})
    seen, scroll = list[str](), client.scroll

    async def deleted_meanwhile(*args: Any, **more: Any) -> Any:
        page = await scroll(*args, **more)
        seen.extend(str((point.payload or {})["text"]) for point in page[0])
        if len(seen) == 2:
            await client.delete(name, models.PointIdsList(points=[page[0][0].id]), wait=True)
        return page

    monkeypatch.setattr(client, "scroll", deleted_meanwhile)
    await opened.prepare()
    _, left, *again = seen
    assert again == [left]
    assert await texts(opened, ASHA, left) == {left}
    assert ((await client.get_collection(name)).config.metadata or {})["schema"] == 2
    await client.delete_collection(name)
    await opened.close()


async def test_opening_again_keeps_what_is_there(passages: QdrantPassages, qdrant_url: str, collection: str) -> None:
    await put(passages, ASHA, ["a"])
    again = await QdrantPassages.open(qdrant_url, model="m", dims=DIMS, collection=collection)
    assert await texts(again, ASHA, "a") == {"a"}
    await again.close()


async def test_a_strange_collection_is_refused(passages: QdrantPassages, qdrant_url: str) -> None:
    name = new_collection()
    size = models.VectorParams(size=4, distance=models.Distance.DOT)
    await passages._client.create_collection(name, vectors_config=size)
    with pytest.raises(Misconfigured, match="not made by Adiyan"):
        await QdrantPassages.open(qdrant_url, model="m", dims=4, collection=name)
    await passages._client.delete_collection(name)


async def test_several_may_open_a_new_one_at_once(qdrant_url: str) -> None:
    name = new_collection()
    opened = await asyncio.gather(
        *(QdrantPassages.open(qdrant_url, model="m", dims=DIMS, collection=name) for _ in range(3))
    )
    await opened[0]._client.delete_collection(name)
    for each in opened:
        await each.close()


async def test_no_qdrant_is_unavailable() -> None:
    with pytest.raises(Unavailable):
        await QdrantPassages.open(f"http://127.0.0.1:{free_port()}", model="m", dims=DIMS)
