"""The scripted model server, through the clients that use it, unmodified."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from datetime import date, datetime
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal
from uuid import UUID

import httpx
import ollama
import pytest
from pydantic import BaseModel, Field, TypeAdapter

from mesh.testing.instances import instance
from mesh.testing.model import MAX_BODY_BYTES
from mesh.testing.script import ModelScript, Step
from mesh.testing.stage import KEPT
from tests.processes import serving

EMBEDDER, CHAT, THINKING = "multilingual-e5-small", "scripted", "scripted-thinking"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("model")
    with serving("mesh.testing.model", ready="/api/version", log=folder / "model.log") as address:
        yield address


@pytest.fixture(scope="module")
def client(url: str) -> Iterator[ollama.Client]:
    opened = ollama.Client(host=url)
    yield opened
    opened._client.close()


@pytest.fixture
async def script(url: str) -> AsyncIterator[ModelScript]:
    async with ModelScript(url) as opened:
        await opened.reset()
        yield opened


def ask(client: ollama.Client, text: str, model: str = CHAT, **more: Any) -> ollama.ChatResponse:
    found: ollama.ChatResponse = client.chat(model=model, messages=[{"role": "user", "content": text}], **more)
    return found


# ── the form ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_it_has_an_embedding_model_a_chat_model_and_one_that_thinks(url: str, client: ollama.Client) -> None:
    names = [f"{name}:latest" for name in (EMBEDDER, CHAT, THINKING)]
    assert [each.model for each in client.list().models] == names
    assert [each.model for each in client.ps().models] == names
    assert client.show(EMBEDDER).capabilities == ["embedding"]
    assert client.show(CHAT).capabilities == ["completion"]
    assert client.show(f"{THINKING}:latest").capabilities == ["completion", "thinking"]
    assert client.pull(CHAT).status == "success"
    assert [each.status for each in client.pull(CHAT, stream=True)] == ["success"]
    assert httpx.get(url).text == "Ollama is running"
    assert httpx.get(f"{url}/api/version").json()["version"]


def test_a_model_that_is_not_there_is_reported_as_ollama_does(url: str, client: ollama.Client) -> None:
    for path in ("embed", "embeddings", "chat", "generate", "show", "pull"):
        answer = httpx.post(f"{url}/api/{path}", json={"model": "llama3"})
        assert answer.status_code == 404, path
        assert answer.json() == {"error": 'model "llama3" not found, try pulling it first'}
    with pytest.raises(ollama.ResponseError, match="does not support chat"):
        ask(client, "hi", EMBEDDER)
    with pytest.raises(ollama.ResponseError, match="does not support embeddings"):
        client.embed(model=CHAT, input="hi")
    with pytest.raises(ollama.ResponseError, match="does not support thinking"):
        ask(client, "hi", think=False)


@pytest.mark.parametrize(
    "body", ["{", "[]", "{}", '{"model": "scripted", "messages": [1]}', " " * MAX_BODY_BYTES + "{}"]
)
def test_a_request_that_makes_no_sense_is_refused(url: str, body: str) -> None:
    answer = httpx.post(f"{url}/api/chat", content=body, timeout=30)
    assert answer.status_code in (400, 413)
    assert answer.json()["error"]


def test_names_and_sizes_are_chosen_at_start_and_it_is_up_within_a_second() -> None:
    options = ("--port", "0", "--embedding-model", "nomic", "--dims", "768", "--chat-model", "qwen")
    began = time.monotonic()
    command = [sys.executable, "-m", "mesh.testing.model", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().rpartition(" ")[2].strip()
        client = ollama.Client(host=address)
        assert len(client.embed(model="nomic", input="a").embeddings[0]) == 768
        assert time.monotonic() - began < 3, "a second, on a machine that does nothing else"
        assert ask(client, "hi", "qwen").message.content == "ok"
        client._client.close()
        process.terminate()


def test_it_ends_at_once_even_while_a_call_hangs() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "mesh.testing.model", "--port", "0"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        address = process.stdout.readline().rpartition(" ")[2].strip()
        httpx.post(f"{address}/simulate/script", json={"next": [{"do": "hang"}]})
        body = {"model": CHAT, "messages": [{"role": "user", "content": "hi"}]}
        hanging = threading.Thread(target=lambda: httpx.post(f"{address}/api/chat", json=body, timeout=30))
        hanging.start()
        until = time.monotonic() + 10
        while not httpx.get(f"{address}/simulate/log").json()["chats"]:
            assert time.monotonic() < until
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        process.wait(10)
        hanging.join()
        assert time.monotonic() - began < 3


# ── vectors ───────────────────────────────────────────────────────────────────────────────────────────────────────


def embed(client: ollama.Client, *texts: str) -> list[list[float]]:
    return [list(vector) for vector in client.embed(model=EMBEDDER, input=list(texts)).embeddings]


def cosine(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


def test_vectors_are_of_unit_length_and_a_prefix_changes_nothing(client: ollama.Client) -> None:
    vectors = embed(client, "passage: hours", "query: hours", "hours", "नमस्ते", "🙂", "…", "")
    assert [cosine(vector, vector) for vector in vectors] == pytest.approx([1.0] * 7, abs=1e-5)
    assert vectors[0] == vectors[1] == vectors[2] != vectors[3]
    assert {len(vector) for vector in vectors} == {384}
    assert list(client.embeddings(model=EMBEDDER, prompt="hours").embedding) == vectors[0]


def test_texts_that_share_words_are_near_and_all_cosines_lie_where_those_of_e5_do(client: ollama.Client) -> None:
    asked, told, other, same = embed(
        client,
        "query: When does the pool open?",
        "passage: The pool is opened at nine.",
        "passage: A goat eats grass.",
        "passage: when does the POOL open",
    )
    assert cosine(asked, same) > 0.99
    assert cosine(asked, same) > cosine(asked, told) > cosine(asked, other) + 0.03
    assert 0.7 < cosine(asked, other) < 0.8


@pytest.fixture
def quiet_mem0(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEM0_TELEMETRY", "False")
    monkeypatch.setenv("MEM0_DIR", str(tmp_path))


@pytest.mark.usefixtures("quiet_mem0")
async def test_llamaindex_and_mem0_embed(url: str, client: ollama.Client) -> None:
    from llama_index.embeddings.ollama import OllamaEmbedding
    from mem0.configs.embeddings.base import BaseEmbedderConfig
    from mem0.embeddings.ollama import OllamaEmbedding as Mem0Embedding

    index = OllamaEmbedding(model_name=EMBEDDER, base_url=url, query_instruction="query:", text_instruction="passage:")
    assert index.get_query_embedding("hours") == embed(client, "hours")[0]
    index._client._client.close()
    await index._async_client._client.aclose()
    mem0 = Mem0Embedding(BaseEmbedderConfig(model=EMBEDDER, ollama_base_url=url, embedding_dims=384))
    assert mem0.embed("likes tea", "add") == embed(client, "likes tea")[0]
    mem0.client._client.close()


@pytest.mark.usefixtures("quiet_mem0")
async def test_mem0_chats(url: str, script: ModelScript) -> None:
    from mem0.configs.llms.base import BaseLlmConfig
    from mem0.llms.ollama import OllamaLLM

    await script.next(Step(say={"facts": ["likes tea"]}))
    llm = OllamaLLM(BaseLlmConfig(model=CHAT))
    llm.client._client.close()
    llm.client = ollama.Client(host=url)
    asked = [{"role": "user", "content": "What did I say?"}]
    said = llm.generate_response(asked, response_format={"type": "json_object"})
    assert json.loads(said) == {"facts": ["likes tea"]}
    llm.client._client.close()


# ── chat ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_it_says_what_it_is_told_in_order_and_then_the_least(client: ollama.Client, script: ModelScript) -> None:
    await script.next(Step(say="One."), Step(say={"two": 2}))
    said = [ask(client, "hi").message.content for _ in range(3)]
    assert said == ["One.", '{"two": 2}', "ok"]
    assert [heard.done for heard in await script.heard()] == ["say", "say", "default"]


async def test_a_stream_gives_the_same_in_pieces(url: str, script: ModelScript) -> None:
    text = "नमस्ते — a text in some pieces."
    await script.next(Step(say=text), Step(say=text))
    client = ollama.AsyncClient(host=url)
    asked = [{"role": "user", "content": "hi"}]
    pieces = [piece async for piece in await client.chat(model=CHAT, messages=asked, stream=True)]
    assert "".join(piece.message.content or "" for piece in pieces) == text
    assert [piece.done for piece in pieces[-2:]] == [False, True]
    assert pieces[-1].done_reason == "stop"
    written = [piece.response async for piece in await client.generate(model=CHAT, prompt="hi", stream=True)]
    assert "".join(piece or "" for piece in written) == text
    await client._client.aclose()


async def test_a_rule_holds_for_every_call_that_it_fits_and_takes_no_step(
    client: ollama.Client, script: ModelScript
) -> None:
    await script.rules(Step(when=("room", "price"), say="84"), Step(when="pool", say="at nine"))
    await script.next(Step(say="next"), Step(when="gym", say="at six"))
    asked = ["the price of a room?", "a room?", "the pool?", "the gym?", "the price of a room?"]
    assert [ask(client, text).message.content for text in asked] == ["84", "next", "at nine", "at six", "84"]
    assert await script.left() == []


async def test_what_was_heard_is_told(client: ollama.Client, script: ModelScript) -> None:
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "hello"},
        {"role": "user", "content": "and?"},
    ]
    client.chat(model=THINKING, messages=messages, format="json", options={"num_ctx": 9_000}, think=True)
    client.generate(model=CHAT, prompt="write", system="Be long.")
    chat, generated = await script.heard()
    assert (chat.system, chat.prompt) == ("Be brief.", "hi\n\nhello\n\nand?")
    assert (chat.model, chat.format, chat.options, chat.think) == (THINKING, "json", {"num_ctx": 9_000}, True)
    assert (generated.system, generated.prompt) == ("Be long.", "write")
    assert [heard.ended for heard in (chat, generated)] == ["answered", "answered"]
    await script.reset()
    assert await script.heard() == []


async def test_only_the_newest_calls_are_kept(url: str, script: ModelScript) -> None:
    async with httpx.AsyncClient(base_url=url) as http:
        for number in range(KEPT + 5):
            await http.post("/api/chat", json={"model": CHAT, "messages": [{"content": f"call {number}"}]})
    kept = [heard.prompt for heard in await script.heard()]
    assert kept == [f"call {number}" for number in range(5, KEPT + 5)]


def test_a_model_that_thinks_does_so_unless_it_is_told_not_to(client: ollama.Client, script: ModelScript) -> None:
    assert ask(client, "hi", THINKING).message.thinking
    assert ask(client, "hi", THINKING, think=False).message.thinking is None
    assert ask(client, "hi").message.thinking is None


async def test_a_prompt_longer_than_the_window_is_cut_from_the_front_without_a_word(
    client: ollama.Client, script: ModelScript
) -> None:
    await script.rules(Step(when="FIRST", say="seen whole"), Step(when="LAST", say="seen the end"))
    long = "FIRST " + "word " * 2_000 + "LAST"
    whole = ask(client, long, options={"num_ctx": 4_000})
    assert (whole.message.content, whole.prompt_eval_count) == ("seen whole", 2_503)
    cut = ask(client, long, options={"num_ctx": 2_000})
    assert (cut.message.content, cut.prompt_eval_count) == ("seen the end", 1_002)


@pytest.mark.parametrize(
    ("step", "said", "ended"),
    [
        (Step(do="prose", say={"a": 1}), '```json\n{"a": 1}\n```', "stop"),
        (Step(do="malformed", say={"a": 1, "b": 2}), '{"a": 1, "', "stop"),
        (Step(do="truncated", say={"a": 1, "b": 2}), '{"a": 1, "', "length"),
        (Step(do="wrong_shape"), '["not"', "stop"),
        (Step(do="repeat", say="and so"), "and so and so and so", "length"),
        (Step(say="x" * 1_000), "x" * 400, "length"),
    ],
    ids=lambda value: value.do if isinstance(value, Step) else None,
)
async def test_it_misbehaves_as_it_is_told(
    client: ollama.Client, script: ModelScript, step: Step, said: str, ended: str
) -> None:
    await script.next(step)
    answer = ask(client, "hi", options={"num_predict": 100})
    assert said in (answer.message.content or "")
    assert len(answer.message.content or "") <= 400
    assert answer.done_reason == ended


async def test_it_fails_as_it_is_told(client: ollama.Client, script: ModelScript) -> None:
    await script.next(Step(do="fail", status=500), Step(do="missing"), Step(do="drop"), Step(do="empty"))
    for status in (500, 404):
        with pytest.raises(ollama.ResponseError) as caught:
            ask(client, "hi")
        assert caught.value.status_code == status
    with pytest.raises(httpx.RemoteProtocolError):
        ask(client, "hi")
    assert ask(client, "hi").message.content == ""


async def test_it_takes_its_time_and_notices_when_nobody_waits(url: str, script: ModelScript) -> None:
    await script.next(Step(say="slowly", seconds=0.2), Step(do="hang"))
    body = {"model": CHAT, "messages": [{"role": "user", "content": "hi"}], "stream": False}
    async with httpx.AsyncClient(base_url=url) as http:
        began = time.monotonic()
        assert (await http.post("/api/chat", json=body)).json()["message"]["content"] == "slowly"
        assert time.monotonic() - began >= 0.2
        with pytest.raises(httpx.ReadTimeout):
            await http.post("/api/chat", json=body, timeout=0.3)
    async with asyncio.timeout(10):
        while (await script.heard())[-1].ended != "gone":
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("step", [{"do": "dance"}, {"sing": "la"}, {"do": "fail", "status": 200}, 7])
async def test_a_step_that_it_does_not_know_is_refused(url: str, script: ModelScript, step: object) -> None:
    for path, name in (("script", "next"), ("rules", "rules")):
        answer = httpx.post(f"{url}/simulate/{path}", json={name: [step]})
        assert answer.status_code == 400
        assert "no such step" in answer.json()["error"]


# ── the least that fits a schema ──────────────────────────────────────────────────────────────────────────────────


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Inner(BaseModel):
    at: datetime
    on: date
    key: UUID
    pair: tuple[int, str]


class Call(BaseModel):
    kind: Literal["call"]
    colour: Colour


class Stop(BaseModel):
    kind: Literal["stop"]


class Everything(BaseModel):
    text: str = Field(min_length=4)
    short: str = Field(max_length=1)
    count: int = Field(gt=3)
    below: int = Field(lt=-2)
    share: float = Field(ge=0, le=1)
    tags: list[str] = Field(min_length=2)
    inner: Inner
    maybe: Inner | None
    action: Annotated[Call | Stop, Field(discriminator="kind")]
    by_name: dict[str, int]
    left_out: str = "default"
    again: list[Everything] = []


@pytest.mark.parametrize("shape", [Everything, Inner, Colour, list[Stop], str, bool, dict[str, Any], Any])
def test_the_least_answer_fits_its_schema(shape: Any) -> None:
    adapter = TypeAdapter(shape)
    adapter.validate_python(instance(adapter.json_schema()), strict=False)


def test_an_endless_schema_comes_to_an_end() -> None:
    endless = {
        "$ref": "#/$defs/A",
        "$defs": {"A": {"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#/$defs/A"}}}},
    }
    assert json.dumps(instance(endless))
