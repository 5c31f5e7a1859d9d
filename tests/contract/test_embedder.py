"""The embedder's port, against the embedded model server, or the one that OLLAMA_HOST names."""

from __future__ import annotations

import math
import os
from collections.abc import AsyncIterator, Iterator

import pytest

from mesh.adapters.ollama import OllamaEmbedder
from mesh.errors import Misconfigured, Unavailable
from tests.processes import models

MODEL, DIMS = os.environ.get("EMBEDDING_MODEL", "multilingual-e5-small"), int(os.environ.get("EMBEDDING_DIMS", "384"))


def embedder_at(host: str, *, model: str = MODEL, dims: int = DIMS) -> OllamaEmbedder:
    return OllamaEmbedder(host, model=model, dims=dims, query_prefix="query: ", document_prefix="passage: ", timeout=20)


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if configured := os.environ.get("OLLAMA_HOST"):
        yield configured
        return
    with models(tmp_path_factory.mktemp("models")) as url:
        yield url


@pytest.fixture
async def embedder(host: str) -> AsyncIterator[OllamaEmbedder]:
    made = embedder_at(host)
    yield made
    await made.close()


async def test_vectors_come_in_the_order_of_the_texts_however_many(embedder: OllamaEmbedder) -> None:
    texts = [f"sentence number {number}" for number in range(20)]
    together = await embedder.documents(texts)
    (alone,) = await embedder.documents(texts[17:18])
    assert together[17] == pytest.approx(alone, abs=1e-6)
    assert len(together) == 20


async def test_vectors_are_of_unit_length_and_of_the_configured_size(embedder: OllamaEmbedder) -> None:
    for vector in [*await embedder.queries(["hello"]), *await embedder.documents(["नमस्ते"])]:
        assert len(vector) == embedder.dims
        assert math.hypot(*vector) == pytest.approx(1.0, abs=1e-6)


async def test_a_question_is_nearer_to_its_answer_than_to_another(embedder: OllamaEmbedder) -> None:
    (question,) = await embedder.queries(["When are you open?"])
    right, wrong = await embedder.documents(["The shop opens at nine.", "A goat eats grass."])
    assert sum(map(float.__mul__, question, right)) > sum(map(float.__mul__, question, wrong))


async def test_no_texts_are_no_vectors(embedder: OllamaEmbedder) -> None:
    assert await embedder.documents([]) == []


async def test_a_wrong_size_is_named_at_start_with_the_setting_and_the_right_one(host: str) -> None:
    wrong = embedder_at(host, dims=768)
    with pytest.raises(Misconfigured, match=rf"EMBEDDING_DIMS.*768.*set it to {DIMS}"):
        await wrong.probe()
    await wrong.close()


async def test_a_model_that_the_server_does_not_have_is_named(host: str) -> None:
    wrong = embedder_at(host, model="no-such-model")
    with pytest.raises(Misconfigured, match=r"no-such-model.*EMBEDDING_MODEL"):
        await wrong.probe()
    await wrong.close()


async def test_a_server_that_does_not_listen_is_unavailable() -> None:
    nobody = embedder_at("http://127.0.0.1:1")
    with pytest.raises(Unavailable):
        await nobody.queries(["hello"])
    await nobody.close()
