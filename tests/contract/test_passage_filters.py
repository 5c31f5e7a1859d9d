"""What the product asks Qdrant: nothing without a filter, and no filter on what has no index."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import httpx
import pytest
from qdrant_client import models
from qdrant_client.http.exceptions import UnexpectedResponse

from mesh.access import Grant
from mesh.adapters import qdrant_queries as queries
from mesh.adapters.qdrant import QdrantPassages
from mesh.errors import Unavailable
from mesh.ports.passages import Untagged
from tests.contract.test_passages import ASHA, BELA, DIMS, OWNER, new_collection, put, vector

Heard = list[tuple[str, Any]]


@pytest.fixture
async def passages(qdrant_url: str) -> AsyncIterator[QdrantPassages]:
    opened = await QdrantPassages.open(qdrant_url, model="m", dims=DIMS, collection=new_collection())
    yield opened
    await opened._client.delete_collection(opened._collection)
    await opened.close()


@pytest.fixture
def heard(passages: QdrantPassages) -> Heard:
    """Every request from now on: its path below the collection, and its body."""
    kept: Heard = []

    async def listen(request: httpx.Request, go_on: Callable[[httpx.Request], Awaitable[httpx.Response]]) -> Any:
        body = json.loads(request.content) if request.content else None
        kept.append((request.url.path.partition(passages._collection)[2], body))
        return await go_on(request)

    passages._client.http.client.add_middleware(listen)
    return kept


async def use_all(passages: QdrantPassages) -> None:
    for person in (ASHA, BELA):
        made = await put(passages, person, ["zebra one", "zebra two"])
        await passages.set_visibility(person, made.document_id, "global")
        for within in (None, made.document_id):
            words = await passages.by_words(person, "zebra", limit=5, within=within)
            await passages.by_meaning(person, vector("x"), limit=5, within=within, besides=words)
        await passages.indexed(person, visibility="global")
    await passages.search(OWNER, "zebra", vector("x"), limit=5)
    _, untagged, _ = await passages.untagged(OWNER)
    assert untagged == []
    lost = Untagged(point="6c2f8a54-6d0b-4b0e-9a83-6a3c2f0f7c11", document_id="d", source_filename="", owner="")
    await passages.tag(OWNER, [lost], document_id="d", owner=ASHA.client, name="n.md")
    await passages.delete(ASHA, made.document_id)


def conditions(body: Any) -> Iterator[str]:
    """The fields that any filter in it looks at."""
    if isinstance(body, list):
        for each in body:
            yield from conditions(each)
    elif isinstance(body, dict):
        if "match" in body or "range" in body or set(body) == {"key"}:
            yield body["key"]
        yield from (key for each in body.values() for key in conditions(each))


async def test_every_field_that_is_filtered_has_an_index(passages: QdrantPassages, heard: Heard) -> None:
    await use_all(passages)
    filtered = {key for _, body in heard for key in conditions(body)}
    assert {"state", "visibility", "owner_identity", "document_id"} <= filtered
    indexed = (await passages._client.get_collection(passages._collection)).payload_schema
    assert filtered <= indexed.keys()


async def test_no_search_is_sent_without_a_filter(passages: QdrantPassages, heard: Heard) -> None:
    await use_all(passages)
    asked = [each for path, body in heard if path == "/points/query/batch" for each in body["searches"]]
    assert len(asked) >= 10
    for each in asked:
        assert "prefetch" not in each
        assert "state" in set(conditions(each["filter"]))


@pytest.mark.parametrize("empty", [models.Filter(), models.Filter(must=[]), models.Filter(should=[], must_not=[])])
def test_an_empty_filter_raises(empty: models.Filter) -> None:
    with pytest.raises(ValueError, match="held to nobody"):
        queries.by_words("zebra", empty, 5)
    with pytest.raises(ValueError, match="held to nobody"):
        queries.by_meaning(vector("x"), empty, 5)


@pytest.mark.parametrize(
    "malformed",
    [
        {"must": [{"key": "owner_identity", "mtch": {"value": ASHA.client}}]},
        {"must": [{"key": "owner_identity", "match": {"value": ASHA.client}}], "shoud": []},
        {"must": "owner_identity"},
        [],
    ],
)
async def test_a_malformed_filter_raises(passages: QdrantPassages, malformed: Any) -> None:
    await put(passages, ASHA, ["zebra"])
    query = queries.by_meaning(vector("x"), models.Filter(must=[models.HasIdCondition(has_id=[1])]), 5)
    with pytest.raises(UnexpectedResponse, match="400"):
        await queries.ask(passages._client, passages._collection, [{**query, "filter": malformed}])


async def test_a_client_who_is_nobody_raises_on_either_leg(passages: QdrantPassages) -> None:
    nobody = Grant("", frozenset(), tier="default")
    with pytest.raises(ValueError, match="nobody"):
        await passages.by_words(nobody, "zebra", limit=5)
    with pytest.raises(ValueError, match="nobody"):
        await passages.by_meaning(nobody, vector("x"), limit=5)


async def test_cosines_are_told_only_of_what_the_grant_may_see(passages: QdrantPassages) -> None:
    await put(passages, ASHA, ["ASHA-CANARY zebra"])
    hers = await passages.by_words(ASHA, "zebra", limit=5)
    (stolen,) = await passages.by_meaning(BELA, vector("x"), limit=5, besides=hers)
    assert stolen.dense is None, "it was handed in, and nothing was learned of it"


async def test_a_collection_that_is_gone_is_a_part_that_is_gone(passages: QdrantPassages) -> None:
    other = QdrantPassages(passages._client, new_collection(), model="m", dims=DIMS)
    for ask in (other.by_words(ASHA, "zebra", limit=5), other.by_meaning(ASHA, vector("x"), limit=5)):
        with pytest.raises(Unavailable):
            await ask
