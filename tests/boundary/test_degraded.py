"""Where a part is gone, less is found; what is found is held to the same rule."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from mesh.adapters.ollama import OllamaEmbedder
from mesh.contracts.documents import RETRIEVE_KNOWLEDGE_BASE
from tests.boundary.probes import BY_TEXT, EVERY_PATH, HONEST, MALFORMED, payloads
from tests.boundary.stage import DIMS, NAME, NOTE, SECRET, Stage, leaked, unsaid
from tests.boundary.test_becoming import without_index
from tests.people import ASHA, BEN, STRANGER
from tests.processes import free_port


@asynccontextmanager
async def without_model(stage: Stage, _: Path) -> AsyncIterator[None]:
    working = stage.library.stores.embedder
    gone = OllamaEmbedder(
        f"http://127.0.0.1:{free_port()}", model=working.model, dims=DIMS, query_prefix="", document_prefix=""
    )
    stage.library.stores.embedder = gone
    try:
        yield
    finally:
        await gone.close()
        stage.library.stores.embedder = working


@asynccontextmanager
async def without_both(stage: Stage, folder: Path) -> AsyncIterator[None]:
    async with without_index(stage, folder), without_model(stage, folder):
        yield


@pytest.mark.parametrize("gone", [without_index, without_model, without_both], ids=["index", "model", "both"])
async def test_a_search_that_fell_a_level_is_held_to_the_same_rule(stage: Stage, tmp_path: Path, gone: Any) -> None:
    await stage.furnish()
    card = await stage.ingest(ASHA, NAME, SECRET)
    note = await stage.note(ASHA, NOTE)
    async with gone(stage, tmp_path / "dying"):
        own = await stage.call(ASHA, RETRIEVE_KNOWLEDGE_BASE, {"text": HONEST[0], "limit": 20})
        assert leaked(own), "it must be found for who may see it"
        assert own["value"]["level"] != "hybrid"
        for client in (BEN, STRANGER):
            for path, (skill, _) in EVERY_PATH.items():
                for payload in payloads(path, card.document_id):
                    if MALFORMED[5] in payload.values():
                        continue  # a megabyte, tried where all is well
                    answer = await stage.call(client, skill, payload)
                    assert not leaked(unsaid(answer, payload), note.document_id), (path, payload)
        for path, (skill, payload_of) in BY_TEXT.items():
            answer = await stage.call(BEN, skill, payload_of(HONEST[0]))
            assert not leaked(answer), path
