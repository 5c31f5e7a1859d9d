"""The embedded Qdrant, through the clients that use it, unmodified.

With QDRANT_URL set, what is true of any Qdrant runs against that one; what is ours alone is skipped.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import httpx
import pytest
from qdrant_client import AsyncQdrantClient, QdrantClient, models
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

ELSEWHERE = os.environ.get("QDRANT_URL", "")
ours = pytest.mark.skipif(bool(ELSEWHERE), reason="true of the embedded server only; QDRANT_URL names another")

DENSE = "dense"
SPARSE = "sparse"


class Server:
    """A child process on a free port; `start` returns when it is ready."""

    def __init__(self, data: Path, *more: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.url = f"http://127.0.0.1:{self.port}"
        self.command = [sys.executable, "-m", "mesh.embedded.qdrant", "--data", str(data)]
        self.command += ["--port", str(self.port), *more]
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> Self:
        self.process = subprocess.Popen(self.command, stderr=subprocess.PIPE, text=True)
        eventually(self._answers, 15)
        return self

    def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.process.communicate()[1]
        with contextlib.suppress(httpx.TransportError):
            return httpx.get(f"{self.url}/readyz").is_success
        return False

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        if self.process is not None and self.process.poll() is None:
            self.end(signal.SIGKILL)

    def end(self, how: signal.Signals) -> tuple[int, str]:
        """The exit code, and what it said on standard error."""
        assert self.process is not None
        self.process.send_signal(how)
        said = self.process.communicate(timeout=10)[1]
        return self.process.returncode, said


def eventually(condition: Callable[[], bool], within_s: float) -> None:
    until = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < until, f"not within {within_s} s"
        time.sleep(0.02)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if ELSEWHERE:
        yield ELSEWHERE
        return
    with Server(tmp_path_factory.mktemp("qdrant")) as server:
        yield server.url


@pytest.fixture(scope="module")
def http(url: str) -> Iterator[httpx.Client]:
    """For what the client would not send."""
    with httpx.Client(base_url=url) as opened:
        yield opened


@pytest.fixture(scope="module")
def client(url: str) -> Iterator[QdrantClient]:
    with closing(url) as opened:
        yield opened


@contextlib.contextmanager
def closing(url: str) -> Iterator[QdrantClient]:
    opened = QdrantClient(url=url, timeout=20, check_compatibility=False)
    try:
        yield opened
    finally:
        opened.close()


@pytest.fixture(scope="module")
def shelf(client: QdrantClient) -> Iterator[str]:
    """A collection of two named vectors with six points: to be read only."""
    with made(client) as name:
        fill(client, name)
        yield name


@pytest.fixture
def blank(client: QdrantClient) -> Iterator[str]:
    """The same, empty, for one test alone."""
    with made(client) as name:
        yield name


@pytest.fixture
def draft(client: QdrantClient, blank: str) -> str:
    """The same, filled, for one test alone."""
    fill(client, blank)
    return blank


@contextlib.contextmanager
def made(client: QdrantClient) -> Iterator[str]:
    name = f"t-{uuid.uuid4().hex}"
    create(client, name)
    yield name
    client.delete_collection(name)


def fill(client: QdrantClient, name: str) -> None:
    client.create_payload_index(name, "size", models.PayloadSchemaType.INTEGER)
    client.create_payload_index(name, "owner", models.PayloadSchemaType.KEYWORD)
    client.upsert(name, [point(number) for number in range(1, 7)])


def create(client: QdrantClient, name: str) -> None:
    client.create_collection(
        name,
        vectors_config={DENSE: models.VectorParams(size=3, distance=models.Distance.COSINE)},
        sparse_vectors_config={SPARSE: models.SparseVectorParams(modifier=models.Modifier.IDF)},
    )


def point(number: int) -> models.PointStruct:
    """Even ones are Asha's, odd ones Ben's. Word 1 is in all of them, word 100+n in one."""
    vectors: dict[str, Any] = {
        DENSE: [1.0, float(number), 0.0],
        SPARSE: models.SparseVector(indices=[1, 100 + number], values=[1.0, 1.0]),
    }
    payload = {
        "owner": "asha" if number % 2 == 0 else "ben",
        "size": number,
        "text": f"page {number} of the report",
        "when": f"2024-01-{number:02}T00:00:00Z",
        "tags": [{"name": "even" if number % 2 == 0 else "odd", "rank": number}],
        "place": {"lon": float(number), "lat": 0.0},
        "note": None,
        "even": number % 2 == 0,
        "mixed": [1, True][number % 2],
    }
    return models.PointStruct(id=number, vector=vectors, payload=payload)


def field(key: str, **test: Any) -> models.FieldCondition:
    return models.FieldCondition(key=key, **test)


def selected(client: QdrantClient, name: str, **clauses: Any) -> set[Any]:
    found, _ = client.scroll(name, scroll_filter=models.Filter(**clauses), limit=100)
    return {item.id for item in found}


def ids(answer: models.QueryResponse) -> list[Any]:
    return [item.id for item in answer.points]


# collections


def test_a_collection_is_described_as_it_was_created(client: QdrantClient, shelf: str) -> None:
    assert client.collection_exists(shelf)
    assert shelf in [item.name for item in client.get_collections().collections]
    params = client.get_collection(shelf).config.params
    assert isinstance(params.vectors, dict)
    assert params.vectors[DENSE].size == 3
    assert params.sparse_vectors is not None
    assert params.sparse_vectors[SPARSE].modifier == models.Modifier.IDF


def test_creating_a_collection_twice_is_a_conflict(client: QdrantClient, shelf: str) -> None:
    with pytest.raises(UnexpectedResponse, match="already exists") as raised:
        create(client, shelf)
    assert raised.value.status_code == 409


def test_an_unknown_collection_is_not_found(http: httpx.Client, client: QdrantClient) -> None:
    assert not client.collection_exists("nowhere")
    answer = http.post("/collections/nowhere/points/count", json={})
    assert answer.status_code == 404
    assert answer.json()["status"]["error"] == "Not found: Collection `nowhere` doesn't exist!"


def test_metadata_of_a_collection_is_kept_and_amended(client: QdrantClient) -> None:
    name = f"t-{uuid.uuid4().hex}"
    vectors = models.VectorParams(size=3, distance=models.Distance.DOT)
    client.create_collection(name, vectors_config=vectors, metadata={"model": "e5", "size": 3})
    client.update_collection(name, metadata={"model": "nomic"})
    assert client.get_collection(name).config.metadata == {"model": "nomic", "size": 3}
    client.delete_collection(name)


def test_a_payload_index_is_listed_until_it_is_deleted(client: QdrantClient, draft: str) -> None:
    schema = client.get_collection(draft).payload_schema
    assert schema["size"].data_type == models.PayloadSchemaType.INTEGER
    assert schema["size"].points == 6
    client.delete_payload_index(draft, "size")
    assert "size" not in client.get_collection(draft).payload_schema


# writing


def test_points_come_back_as_they_were_written(client: QdrantClient, blank: str) -> None:
    one, two = 2**63, str(uuid.uuid4())
    payload = {"a": [1, 2.5, None, True, {"b": "é🙂"}]}
    vectors: dict[str, Any] = {DENSE: [[0, 3, 4], [1, 0, 0]]}
    client.upsert(blank, models.Batch(ids=[one, two], vectors=vectors, payloads=[payload, {}]))
    found = {item.id: item for item in client.retrieve(blank, [one, two], with_vectors=True)}
    assert found[one].payload == payload
    vector = found[one].vector
    assert isinstance(vector, dict)
    assert vector[DENSE] == pytest.approx([0, 0.6, 0.8])
    assert found[two].payload == {}


def test_one_wrong_vector_keeps_the_whole_batch_out(client: QdrantClient, blank: str) -> None:
    short = models.PointStruct(id=9, vector={DENSE: [1.0]}, payload={})
    with pytest.raises(UnexpectedResponse, match="expected dim: 3, got 1") as raised:
        client.upsert(blank, [point(1), short])
    assert raised.value.status_code == 400
    assert client.count(blank).count == 0


def test_an_unknown_vector_name_is_refused(client: QdrantClient, blank: str) -> None:
    stray = models.PointStruct(id=9, vector={"other": [1.0, 2.0, 3.0]}, payload={})
    with pytest.raises(UnexpectedResponse, match="Not existing vector name error: other"):
        client.upsert(blank, [stray])


def test_payloads_are_set_overwritten_and_deleted_by_id_and_by_filter(client: QdrantClient, draft: str) -> None:
    bens = models.Filter(must=[field("owner", match=models.MatchValue(value="ben"))])
    client.set_payload(draft, {"seen": True}, points=bens)
    client.set_payload(draft, {"rank": 5}, points=[2], key="inner")
    client.overwrite_payload(draft, {"only": 1}, points=[4])
    client.delete_payload(draft, ["text"], points=[6])
    client.clear_payload(draft, points_selector=[5])
    found = {item.id: item.payload or {} for item in client.scroll(draft, limit=10)[0]}
    assert [found[number].get("seen") for number in (1, 2, 3)] == [True, None, True]
    assert found[2]["inner"] == {"rank": 5}
    assert found[4] == {"only": 1}
    assert "text" not in found[6]
    assert found[5] == {}


def test_a_moved_vector_is_found_at_its_new_place(client: QdrantClient, draft: str) -> None:
    client.update_vectors(draft, [models.PointVectors(id=6, vector={DENSE: [0.0, 0.0, 1.0]})])
    assert ids(client.query_points(draft, query=[0.0, 0.0, 1.0], using=DENSE, limit=1)) == [6]
    client.delete_vectors(draft, [DENSE], points=[6])
    assert 6 not in ids(client.query_points(draft, query=[0.0, 0.0, 1.0], using=DENSE, limit=10))


def test_points_are_deleted_by_id_and_by_filter(client: QdrantClient, draft: str) -> None:
    client.delete(draft, [1, 999])
    client.delete(draft, models.Filter(must=[field("size", range=models.Range(gte=5))]))
    assert selected(client, draft) == {2, 3, 4}


def test_several_updates_are_sent_at_once(client: QdrantClient, draft: str) -> None:
    client.batch_update_points(
        draft,
        [
            models.DeleteOperation(delete=models.PointIdsList(points=[1])),
            models.UpsertOperation(upsert=models.PointsList(points=[point(7)])),
        ],
    )
    assert selected(client, draft) == {2, 3, 4, 5, 6, 7}


# filters


@pytest.mark.parametrize(
    ("clauses", "expected"),
    [
        ({"must": [field("owner", match=models.MatchValue(value="asha"))]}, {2, 4, 6}),
        ({"must": [field("even", match=models.MatchValue(value=True))]}, {2, 4, 6}),
        ({"must_not": [field("even", match=models.MatchValue(value=False))]}, {2, 4, 6}),
        ({"must": [field("mixed", match=models.MatchValue(value=1))]}, {2, 4, 6}),
        ({"must": field("size", match=models.MatchAny(any=[1, 9]))}, {1}),
        ({"must": [field("size", match=models.MatchAny(any=[]))]}, set()),
        ({"must": [field("size", match=models.MatchExcept(**{"except": [1, 2]}))]}, {3, 4, 5, 6}),
        ({"must": [field("text", match=models.MatchText(text="page 3"))]}, {3}),
        ({"must": [field("size", range=models.Range(gt=2, lte=4))]}, {3, 4}),
        ({"must": [field("when", range=models.DatetimeRange(lt="2024-01-03T00:00:00Z"))]}, {1, 2}),
        ({"must": [field("tags", values_count=models.ValuesCount(gte=2))]}, set()),
        (
            {
                "must": [
                    field(
                        "place",
                        geo_radius=models.GeoRadius(center=models.GeoPoint(lon=3, lat=0), radius=120_000),
                    )
                ]
            },
            {2, 3, 4},
        ),
        (
            {
                "must": [
                    models.NestedCondition(
                        nested=models.Nested(
                            key="tags",
                            filter=models.Filter(
                                must=[
                                    field("name", match=models.MatchValue(value="even")),
                                    field("rank", range=models.Range(gte=3)),
                                ]
                            ),
                        )
                    )
                ]
            },
            {4, 6},
        ),
        ({"must": [models.IsNullCondition(is_null=models.PayloadField(key="note"))]}, {1, 2, 3, 4, 5, 6}),
        ({"must_not": [models.IsEmptyCondition(is_empty=models.PayloadField(key="note"))]}, set()),
        ({"must": [models.HasIdCondition(has_id=[2, 77])]}, {2}),
        ({"must": [models.HasVectorCondition(has_vector=SPARSE)]}, {1, 2, 3, 4, 5, 6}),
        (
            {
                "must": [
                    models.Filter(
                        should=[
                            field("size", match=models.MatchValue(value=1)),
                            field("size", match=models.MatchValue(value=2)),
                        ]
                    )
                ],
                "must_not": [field("owner", match=models.MatchValue(value="ben"))],
            },
            {2},
        ),
        (
            {
                "min_should": models.MinShould(
                    conditions=[
                        field("owner", match=models.MatchValue(value="asha")),
                        field("size", range=models.Range(gt=3)),
                        field("size", range=models.Range(gt=5)),
                    ],
                    min_count=2,
                )
            },
            {4, 6},
        ),
    ],
)
def test_a_filter_selects_what_it_says(
    client: QdrantClient, shelf: str, clauses: dict[str, Any], expected: set[int]
) -> None:
    assert selected(client, shelf, **clauses) == expected


def test_no_filter_and_an_empty_one_read_everything(http: httpx.Client, shelf: str) -> None:
    nothings: list[dict[str, Any]] = [{}, {"filter": None}, {"filter": {}}]
    for nothing in nothings:
        answer = http.post(f"/collections/{shelf}/points/count", json=nothing)
        assert answer.json()["result"]["count"] == 6


BEN = {"key": "owner", "match": {"value": "ben"}}

MALFORMED: list[Any] = [
    {"musty": [BEN]},
    {"must": [BEN], "and": [BEN]},
    {"must": "owner"},
    {"must": [{"key": "owner", "match": {"equals": "ben"}}]},
    {"must": [{"key": "owner", "like": "ben"}]},
    {"must": [{"key": "owner", "match": {"value": 1.5}}]},
    {"must": [{"owner": "ben"}]},
    {"must": [BEN | {"extra": 1}]},
    {"must": [{"key": "size", "range": {"above": 1}}]},
    {"must": [{"has_id": ["not-an-id"]}]},
    {"must": [{"nested": {"key": "tags"}}]},
    ["must"],
    "must",
]
WIDENING: list[Any] = [
    {"must": []},
    {"should": []},
    {"must_not": []},
    {"must": [{}]},
    {"must": [BEN, {}]},
    {"must": [{"must": []}]},
    {"must": [{"should": [{"must_not": None}]}]},
    {"must": [], "must_not": [BEN]},
    {"must": [{"nested": {"key": "tags", "filter": {}}}]},
    {"must": [{"key": "owner"}]},
    {"must": [{"key": "owner", "match": None}]},
    {"must": [{"key": "owner", "match": {"value": "ben"}, "range": {"gt": 1}}]},
    {"must": [{"key": "size", "range": {}}]},
    {"min_should": {"conditions": [BEN], "min_count": 0}},
    {"min_should": {"conditions": [], "min_count": 1}},
]
"""What the engine, left to itself, takes for "everything"."""


def requests_with(condition: Any) -> list[tuple[str, dict[str, Any]]]:
    asked = {"query": [1.0, 2.0, 3.0], "using": DENSE}
    return [
        ("points/count", {"filter": condition}),
        ("points/scroll", {"filter": condition}),
        ("points/query", asked | {"filter": condition}),
        ("points/query", {"query": {"fusion": "rrf"}, "prefetch": asked | {"filter": condition}}),
        ("points/query/batch", {"searches": [asked, asked | {"filter": condition}]}),
        ("facet", {"key": "owner", "filter": condition}),
        ("points/payload", {"payload": {"hit": 1}, "filter": condition}),
        ("points/payload/delete", {"keys": ["size"], "filter": condition}),
        ("points/delete", {"filter": condition}),
    ]


def assert_refused_everywhere(http: httpx.Client, client: QdrantClient, shelf: str, condition: Any) -> None:
    before = client.scroll(shelf, limit=10)[0]
    for path, body in requests_with(condition):
        answer = http.post(f"/collections/{shelf}/{path}", json=body)
        assert answer.status_code == 400, (path, answer.text)
        assert answer.json()["status"]["error"]
    assert client.scroll(shelf, limit=10)[0] == before


@pytest.mark.parametrize("condition", MALFORMED, ids=json.dumps)
def test_a_malformed_filter_is_refused_and_changes_nothing(
    http: httpx.Client, client: QdrantClient, shelf: str, condition: Any
) -> None:
    assert_refused_everywhere(http, client, shelf, condition)


@ours
@pytest.mark.parametrize("condition", WIDENING, ids=json.dumps)
def test_a_filter_that_would_select_everything_fails_closed(
    http: httpx.Client, client: QdrantClient, shelf: str, condition: Any
) -> None:
    assert_refused_everywhere(http, client, shelf, condition)


@ours
@pytest.mark.parametrize("body", [{}, {"filter": None}, {"filter": {}}, {"filter": {}, "points": [1]}], ids=json.dumps)
def test_deleting_without_saying_what_deletes_nothing(http: httpx.Client, shelf: str, body: Any) -> None:
    assert http.post(f"/collections/{shelf}/points/delete", json=body).status_code == 400
    answer = http.post(f"/collections/{shelf}/points/count", json={})
    assert answer.json()["result"]["count"] == 6


@ours
@pytest.mark.parametrize(
    "text",
    [
        '{"filter": {"must": [{"key": "owner", "match": {"value": "ben"}}], "must": []}}',
        '{"filter": {"must": [{"key": "size", "range": {"gt": NaN}}]}}',
        '{"filtre": {"must": [{"key": "owner", "match": {"value": "ben"}}]}}',
        '{"filter": ' + '{"must":[' * 5000 + "]}" * 5000 + "}",
        '{"filter": ' + '{"must":[' * 60 + '{"has_id":[1]}' + "]}" * 60 + "}",
        "{",
    ],
    ids=["key-twice", "nan", "misspelt", "bottomless", "deep", "cut-off"],
)
def test_json_that_leaves_room_for_doubt_is_refused(http: httpx.Client, shelf: str, text: str) -> None:
    assert http.post(f"/collections/{shelf}/points/count", content=text).status_code == 400


# queries


def test_the_nearest_come_first_with_cosine_scores(client: QdrantClient, shelf: str) -> None:
    answer = client.query_points(shelf, query=[1.0, 2.0, 0.0], using=DENSE, limit=3, with_payload=["size"])
    assert ids(answer)[0] == 2
    assert answer.points[0].score == pytest.approx(1)
    assert answer.points[0].payload == {"size": 2}
    beyond = client.query_points(shelf, query=[1.0, 2.0, 0.0], using=DENSE, limit=1, offset=1)
    assert ids(beyond) == ids(answer)[1:2]
    close = client.query_points(shelf, query=[1.0, 2.0, 0.0], using=DENSE, score_threshold=0.9999)
    assert ids(close) == [2]


def test_a_rare_word_outweighs_a_common_one(client: QdrantClient, shelf: str) -> None:
    words = models.SparseVector(indices=[1, 104], values=[1.0, 1.0])
    answer = client.query_points(shelf, query=words, using=SPARSE, limit=2)
    assert ids(answer)[0] == 4
    assert answer.points[0].score > 5 * answer.points[1].score


def test_how_rare_a_word_is_can_be_counted_among_some_points(client: QdrantClient, shelf: str) -> None:
    """Word 104 is in one point of all, so it is rare; among that point alone it is as common as word 1."""
    one = models.Filter(must=[models.HasIdCondition(has_id=[4])])
    among = models.SearchParams(idf=models.IdfCorpusParams(corpus=one))
    rare, common = models.SparseVector(indices=[104], values=[1.0]), models.SparseVector(indices=[1], values=[1.0])

    def score(words: models.SparseVector, params: models.SearchParams | None = None) -> float:
        answer = client.query_points(shelf, query=words, using=SPARSE, query_filter=one, search_params=params)
        return answer.points[0].score

    assert score(rare) > 5 * score(common)
    assert score(rare, among) == pytest.approx(score(common, among), rel=0.01)
    with pytest.raises(UnexpectedResponse, match="empty filter"):
        client.query_points(shelf, query=rare, using=SPARSE, search_params=models.SearchParams(idf={"corpus": {}}))


def test_asking_by_a_point_leaves_that_point_out(client: QdrantClient, shelf: str) -> None:
    assert ids(client.query_points(shelf, query=3, using=DENSE, limit=2)) == [4, 5]
    with pytest.raises(UnexpectedResponse, match="99") as raised:
        client.query_points(shelf, query=99, using=DENSE)
    assert raised.value.status_code == 404


def test_fusion_joins_both_vectors_under_the_filter_of_each(client: QdrantClient, shelf: str) -> None:
    bens = models.Filter(must=[field("owner", match=models.MatchValue(value="ben"))])
    words = models.SparseVector(indices=[101], values=[1.0])
    legs = [
        models.Prefetch(query=[1.0, 5.0, 0.0], using=DENSE, filter=bens, limit=3),
        models.Prefetch(query=words, using=SPARSE, filter=bens, limit=3),
    ]
    for fusion in (models.Fusion.RRF, models.Fusion.DBSF):
        answer = client.query_points(shelf, prefetch=legs, query=models.FusionQuery(fusion=fusion))
        assert set(ids(answer)) == {1, 3, 5}
    weighted = models.RrfQuery(rrf=models.Rrf(weights=[1.0, 9.0]))
    assert ids(client.query_points(shelf, prefetch=legs, query=weighted))[0] == 1


def test_points_come_ordered_by_a_field_or_at_random(client: QdrantClient, shelf: str) -> None:
    down = models.OrderByQuery(order_by=models.OrderBy(key="size", direction=models.Direction.DESC))
    assert ids(client.query_points(shelf, query=down, limit=2)) == [6, 5]
    ordered, _ = client.scroll(shelf, order_by=models.OrderBy(key="size", start_from=4), limit=2)
    assert [item.id for item in ordered] == [4, 5]
    drawn = client.query_points(shelf, query=models.SampleQuery(sample=models.Sample.RANDOM), limit=6)
    assert set(ids(drawn)) == {1, 2, 3, 4, 5, 6}


def test_a_batch_of_queries_is_answered_in_order(client: QdrantClient, shelf: str) -> None:
    asked = [models.QueryRequest(query=[1.0, float(n), 0.0], using=DENSE, limit=1) for n in (5, 1, 3)]
    assert [ids(answer) for answer in client.query_batch_points(shelf, asked)] == [[5], [1], [3]]


def test_scrolling_page_by_page_visits_every_point_once(client: QdrantClient, shelf: str) -> None:
    seen: list[Any] = []
    offset: Any = None
    while True:
        page, offset = client.scroll(shelf, limit=4, offset=offset)
        seen += [item.id for item in page]
        if offset is None:
            break
    assert seen == [1, 2, 3, 4, 5, 6]


def test_facets_count_the_values_of_a_field(client: QdrantClient, shelf: str) -> None:
    hits = client.facet(shelf, "owner").hits
    assert {hit.value: hit.count for hit in hits} == {"asha": 3, "ben": 3}


@ours
def test_an_unsupported_kind_of_query_is_refused_by_its_name(client: QdrantClient, shelf: str) -> None:
    liked = models.RecommendQuery(recommend=models.RecommendInput(positive=[1]))
    with pytest.raises(UnexpectedResponse, match="`recommend` is not supported") as raised:
        client.query_points(shelf, query=liked, using=DENSE)
    assert raised.value.status_code == 400


async def test_the_async_client_is_served_alike(url: str, draft: str) -> None:
    client = AsyncQdrantClient(url=url)
    await client.upsert(draft, [point(7)])
    answer = await client.query_points(draft, query=[1.0, 7.0, 0.0], using=DENSE, limit=1)
    assert [item.id for item in answer.points] == [7]
    assert (await client.count(draft)).count == 7
    await client.close()


# the libraries that use it


def test_mem0_keeps_finds_changes_and_deletes(
    client: QdrantClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEM0_TELEMETRY", "False")
    monkeypatch.setenv("MEM0_DIR", str(tmp_path))
    from mem0.vector_stores.qdrant import Qdrant

    store = Qdrant(f"t-{uuid.uuid4().hex}", embedding_model_dims=3, client=client)
    tea, coffee = str(uuid.uuid4()), str(uuid.uuid4())
    payloads = [{"data": "likes tea", "user_id": "asha"}, {"data": "likes coffee", "user_id": "ben"}]
    store.insert([[1, 0, 0], [0.9, 0.1, 0]], payloads, [tea, coffee])

    found = store.search("", [1, 0, 0], top_k=5, filters={"user_id": "ben"})
    assert [item.id for item in found] == [coffee]
    store.update(tea, payload={"data": "likes chai"})
    assert store.get(tea).payload == {"data": "likes chai", "user_id": "asha"}
    assert len(store.list(filters={"OR": [{"user_id": "asha"}, {"user_id": "ben"}]})[0]) == 2
    store.delete(coffee)
    assert [item.id for item in store.list()[0]] == [tea]
    store.reset()
    assert store.list()[0] == []
    store.delete_col()


def words(texts: list[str]) -> tuple[list[list[int]], list[list[float]]]:
    indices = [sorted({sum(word.encode()) for word in text.lower().split()}) for text in texts]
    return indices, [[1.0] * len(row) for row in indices]


async def test_llamaindex_searches_hybrid_filters_and_deletes(url: str, client: QdrantClient) -> None:
    from llama_index.core.schema import BaseNode, NodeRelationship, RelatedNodeInfo, TextNode
    from llama_index.core.vector_stores.types import (
        FilterOperator,
        MetadataFilter,
        MetadataFilters,
        VectorStoreQuery,
        VectorStoreQueryMode,
    )
    from llama_index.vector_stores.qdrant import QdrantVectorStore

    aclient = AsyncQdrantClient(url=url)
    store = QdrantVectorStore(
        collection_name=f"t-{uuid.uuid4().hex}",
        client=client,
        aclient=aclient,
        enable_hybrid=True,
        sparse_doc_fn=words,
        sparse_query_fn=words,
    )
    nodes: list[BaseNode] = [
        TextNode(
            id_=str(uuid.uuid4()),
            text=text,
            embedding=vector,
            metadata={"owner": owner},
            relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=f"doc-{owner}")},
        )
        for text, vector, owner in (
            ("opening hours", [1.0, 0.0, 0.0], "asha"),
            ("price list", [0.0, 1.0, 0.0], "ben"),
            ("opening speech", [0.9, 0.1, 0.0], "ben"),
        )
    ]
    store.add(nodes[:2])
    await store.async_add(nodes[2:])

    owned = MetadataFilters(filters=[MetadataFilter(key="owner", value=["ben"], operator=FilterOperator.IN)])
    query = VectorStoreQuery(
        query_embedding=[1.0, 0.0, 0.0],
        query_str="opening",
        similarity_top_k=2,
        sparse_top_k=2,
        mode=VectorStoreQueryMode.HYBRID,
        filters=owned,
    )
    for answer in (store.query(query), await store.aquery(query)):
        assert answer.ids is not None
        assert answer.ids[0] == nodes[2].node_id
        assert nodes[0].node_id not in answer.ids

    query.filters = MetadataFilters(filters=[MetadataFilters(filters=[])])
    if not ELSEWHERE:  # LlamaIndex drops the empty filter inside, and sends an empty `must`
        with pytest.raises(UnexpectedResponse, match="refused"):
            store.query(query)
        with pytest.raises(UnexpectedResponse, match="refused"):
            store.delete_nodes()

    store.delete("doc-ben")
    assert [node.node_id for node in store.get_nodes(node_ids=[node.node_id for node in nodes])] == [nodes[0].node_id]
    store.clear()
    await aclient.close()


# the process


@ours
def test_nothing_acknowledged_is_lost_when_the_server_is_killed(tmp_path: Path) -> None:
    acknowledged: list[int] = []
    with Server(tmp_path) as server:
        with closing(server.url) as client:
            create(client, "kept")
        for round_ in range(3):
            killer = threading.Thread(target=kill_at, args=(server, acknowledged, len(acknowledged) + 40))
            killer.start()
            with closing(server.url) as client, contextlib.suppress(ResponseHandlingException):
                for number in itertools.count(1000 * round_):
                    client.upsert("kept", [point(number % 28 + 1).model_copy(update={"id": number})])
                    acknowledged.append(number)
            killer.join()
            server.start()
            with closing(server.url) as client:
                found = {item.id for item in client.retrieve("kept", acknowledged)}
            assert found == set(acknowledged)
        assert len(acknowledged) >= 120


def kill_at(server: Server, acknowledged: list[int], count: int) -> None:
    eventually(lambda: len(acknowledged) >= count, 10)
    server.end(signal.SIGKILL)


@ours
def test_a_vector_that_would_break_the_engine_is_refused_and_the_collection_lives_on(tmp_path: Path) -> None:
    deep: Any = 1
    for _ in range(500):
        deep = {"x": deep}
    bad: list[dict[str, Any]] = [
        {"vector": {SPARSE: {"indices": [1, 2], "values": [1.0]}}},
        {"vector": {SPARSE: {"indices": [1, 1], "values": [1.0, 1.0]}}},
        {"vector": {SPARSE: {"indices": [-1], "values": [1.0]}}},
        {"vector": {DENSE: [1e300, 0, 0]}},
        {"vector": {DENSE: ["a", 0, 0]}},
        {"vector": {DENSE: [1, 2, 3]}, "payload": {"deep": deep}},
        {"vector": {DENSE: {"text": "hello", "model": "any"}}},
    ]
    with Server(tmp_path) as server:
        with closing(server.url) as client:
            create(client, "c")
            for body in bad:
                put = {"points": [{"id": 9, **body}]}
                answer = httpx.put(f"{server.url}/collections/c/points?wait=true", json=put)
                assert answer.status_code == 400, answer.text
            client.upsert("c", [point(1)])
        server.end(signal.SIGKILL)
        server.start()
        with closing(server.url) as client:
            assert selected(client, "c") == {1}


@ours
def test_a_second_server_on_the_same_data_is_turned_away(tmp_path: Path) -> None:
    with Server(tmp_path):
        command = Server(tmp_path).command
        second = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    assert second.returncode == 1
    assert "is in use by another embedded Qdrant" in second.stderr
    assert second.stderr.count("\n") == 1


@ours
def test_sigterm_ends_it_at_once_and_cleanly(tmp_path: Path) -> None:
    with Server(tmp_path) as server, closing(server.url) as client:
        create(client, "c")
        client.upsert("c", [point(1)])
        began = time.monotonic()
        code, said = server.end(signal.SIGTERM)
    assert (code, said) == (0, "")
    assert time.monotonic() - began < 2


@ours
def test_what_was_half_made_or_half_dropped_is_cleared_away_at_the_next_start(tmp_path: Path) -> None:
    with Server(tmp_path) as server:
        with closing(server.url) as client:
            create(client, "whole")
            create(client, "half é")
        server.end(signal.SIGKILL)
        folders = tmp_path / "collections"
        (folders / "half%20%C3%A9" / "collection.json").unlink()
        (folders / "whole" / "shard-2" / "segments").mkdir(parents=True)

        server.start()
        with closing(server.url) as client:
            assert [item.name for item in client.get_collections().collections] == ["whole"]
            create(client, "half é")
        _, said = server.end(signal.SIGTERM)
    assert "collection=half é was half made or half dropped; removed" in said
    assert not (folders / "whole" / "shard-2").exists()


@ours
def test_a_collection_that_cannot_be_opened_leaves_the_others_alone_and_can_be_deleted(
    tmp_path: Path,
) -> None:
    with Server(tmp_path) as server:
        with closing(server.url) as client:
            create(client, "good")
            create(client, "bad")
        server.end(signal.SIGKILL)
        (tmp_path / "collections" / "bad" / "shard-1" / "edge_config.json").write_text("{")
        server.start()
        with closing(server.url) as client:
            assert client.count("good").count == 0
            with pytest.raises(UnexpectedResponse, match="delete it and build it again"):
                client.count("bad")
            client.delete_collection("bad")
            create(client, "bad")
            assert client.count("bad").count == 0


@ours
@pytest.mark.parametrize("name", ["..", "a/b", "a:b", "x" * 300])
def test_a_name_that_is_no_folder_name_makes_no_collection(http: httpx.Client, name: str) -> None:
    path = http.base_url.copy_with(raw_path=f"/collections/{name.replace('/', '%2F')}".encode())
    body = {"vectors": {"size": 3, "distance": "Dot"}}
    assert http.put(path, json=body).status_code in {400, 404}


@ours
def test_an_index_is_built_while_the_collection_is_read_and_written(tmp_path: Path) -> None:
    rows = [[float((row * 31 + column * 17) % 101) for column in range(64)] for row in range(2000)]
    late = models.Filter(must=[field("late", match=models.MatchValue(value=True))])
    with Server(tmp_path, "--optimize-after", "400") as server:
        with closing(server.url) as client:
            client.create_collection(
                "c",
                vectors_config=models.VectorParams(size=64, distance=models.Distance.DOT),
                optimizers_config=models.OptimizersConfigDiff(indexing_threshold=100),
            )
            for begin in range(0, 2000, 500):
                part = range(begin, begin + 500)
                client.upsert("c", [models.PointStruct(id=row, vector=rows[row], payload={}) for row in part])
            written = 2000
            until = time.monotonic() + 20
            while (client.get_collection("c").indexed_vectors_count or 0) < 2000:
                assert time.monotonic() < until
                client.upsert("c", [models.PointStruct(id=written, vector=rows[0], payload={"late": True})])
                assert client.query_points("c", query=rows[5], limit=1).points
                written += 1
            assert client.count("c").count == written
            assert client.count("c", count_filter=late).count == written - 2000 > 0
        server.end(signal.SIGKILL)
        server.start()
        with closing(server.url) as client:
            assert client.count("c", count_filter=late).count == written - 2000
            assert (client.get_collection("c").indexed_vectors_count or 0) >= 2000


# ── what was deleted is not kept ──────────────────────────────────────────────────────────────────────────────────


def holding(folder: Path, canary: bytes) -> list[Path]:
    return [file for file in folder.rglob("*") if file.is_file() and canary in file.read_bytes()]


def cleared(data: Path) -> bool:
    return not (data / "collections" / "c" / "erased").exists()


def told(client: QdrantClient) -> None:
    client.create_collection(
        "c",
        vectors_config={DENSE: models.VectorParams(size=3, distance=models.Distance.COSINE)},
        sparse_vectors_config={SPARSE: models.SparseVectorParams(modifier=models.Modifier.IDF)},
        metadata={"made": "here"},
    )
    client.create_payload_index("c", "who", models.PayloadSchemaType.KEYWORD)
    sparse = models.SparseVector(indices=[1, 7], values=[0.5, 1.0])
    client.upsert(
        "c",
        [
            models.PointStruct(
                id=number,
                vector={DENSE: [1.0, number, 0.5], SPARSE: sparse},
                payload={"who": "asha", "text": f"KANARIENVOGEL {number}"}
                if number % 2
                else {"who": "ben", "text": f"ZEISIG {number}", "kept": [number, {"deep": None}]},
            )
            for number in range(1, 1201)
        ],
    )


ASHAS = models.Filter(must=[models.FieldCondition(key="who", match=models.MatchValue(value="asha"))])


@ours
def test_no_byte_of_a_deleted_point_stays_in_the_files_and_all_else_stays(tmp_path: Path) -> None:
    with Server(tmp_path) as server, closing(server.url) as client:
        told(client)
        before, _ = client.scroll("c", limit=5000, with_vectors=True, scroll_filter=models.Filter(must_not=[ASHAS]))
        client.delete("c", models.FilterSelector(filter=ASHAS))
        assert holding(tmp_path, b"KANARIENVOGEL"), "the engine itself leaves it there"
        eventually(lambda: bool(list(tmp_path.glob("collections/c/shard-2*"))), 10)
        for late in range(2000, 2020):  # while it is written anew
            client.upsert("c", [models.PointStruct(id=late, vector={DENSE: [1, 0, 0]}, payload={"who": "late"})])
            assert client.query_points("c", query=[1.0, 5.0, 0.5], using=DENSE, limit=1).points
        eventually(lambda: cleared(tmp_path), 30)
        assert holding(tmp_path, b"KANARIENVOGEL") == []
        assert holding(tmp_path, b"ZEISIG")
        after, _ = client.scroll("c", limit=5000, with_vectors=True, scroll_filter=models.Filter(must_not=[ASHAS]))
        assert after[: len(before)] == before
        assert [point.id for point in after[len(before) :]] == list(range(2000, 2020))
        facet = client.facet("c", "who", exact=True)
        assert {hit.value: hit.count for hit in facet.hits} == {"ben": 600, "late": 20}
        assert client.get_collection("c").payload_schema["who"].data_type == models.PayloadSchemaType.KEYWORD
        server.end(signal.SIGKILL)
        server.start()
        with closing(server.url) as again:
            assert again.count("c").count == 620
            found = again.query_points("c", query=models.SparseVector(indices=[7], values=[1.0]), using=SPARSE, limit=3)
            assert len(found.points) == 3


@ours
def test_a_server_that_is_killed_after_a_deletion_clears_its_files_when_it_is_back(tmp_path: Path) -> None:
    with Server(tmp_path) as server:
        with closing(server.url) as client:
            told(client)
            client.delete("c", models.FilterSelector(filter=ASHAS))
            server.end(signal.SIGKILL)
        server.start()
        eventually(lambda: cleared(tmp_path), 30)
        assert holding(tmp_path, b"KANARIENVOGEL") == []
        with closing(server.url) as client:
            assert client.count("c").count == 600


@ours
def test_a_deletion_of_nothing_writes_nothing_anew(tmp_path: Path) -> None:
    with Server(tmp_path) as server, closing(server.url) as client:
        told(client)
        client.delete("c", models.PointIdsList(points=[99_999]))
        folder = tmp_path / "collections" / "c"
        assert not (folder / "erased").exists()
        client.delete("c", models.PointIdsList(points=[1]))
        assert (folder / "erased").exists()
