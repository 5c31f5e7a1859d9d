"""mem0 as the store of facts: what it keeps, whose it shows, and its traps."""

from __future__ import annotations

import asyncio
import os
import socket
import sqlite3
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from qdrant_client import QdrantClient
from qdrant_client.models import Distance, VectorParams

from mesh.access import Grant
from mesh.adapters.mem0 import Mem0Facts
from mesh.errors import Crashed, Misconfigured, NotFound, Unavailable
from tests.people import ASHA, BEN, OWNER
from tests.processes import free_port

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
MODEL, DIMS = "multilingual-e5-small", 384


def grant(client: str, *, sees_all: bool = False) -> Grant:
    return Grant(client, frozenset({"memory:recall", "memory:write"}), "gold", sees_all=sees_all)


@pytest.fixture
def collection() -> str:
    return f"memories_{uuid.uuid4().hex[:12]}"


@pytest.fixture
async def facts(qdrant_url: str, models_url: str, tmp_path: Path, collection: str) -> AsyncIterator[Mem0Facts]:
    opened = await _open(qdrant_url, models_url, tmp_path, collection)
    yield opened
    await opened.close()


async def _open(
    qdrant_url: str, models_url: str, folder: Path, collection: str, *, model: str = MODEL, dims: int = DIMS
) -> Mem0Facts:
    return await Mem0Facts.open(
        qdrant_url=qdrant_url, ollama_host=models_url, model=model, dims=dims, folder=folder, collection=collection
    )


async def _tell(facts: Mem0Facts, who: str, *texts: str) -> list[str]:
    return [
        (await facts.add(grant(who), text, told_at=NOON + timedelta(minutes=i), message_id=f"m{i}")).fact_id
        for i, text in enumerate(texts)
    ]


async def test_a_fact_comes_back_with_when_and_where_it_was_told(facts: Mem0Facts) -> None:
    (fact_id,) = await _tell(facts, ASHA, "My favourite colour is teal.")
    (found,) = await facts.nearest(grant(ASHA), "What is my favourite colour?", limit=3)
    assert (found.fact_id, found.text, found.told_at) == (fact_id, "My favourite colour is teal.", NOON)
    assert found.message_id == "m0"
    assert 0.85 < found.similarity < 0.99


async def test_the_nearest_come_first_and_no_more_than_asked_for(facts: Mem0Facts) -> None:
    await _tell(facts, ASHA, "I live in Lyon.", "My favourite colour is teal.", "I am allergic to peanuts.")
    found = await facts.nearest(grant(ASHA), "Which colour do I like?", limit=2)
    assert found[0].text == "My favourite colour is teal."
    assert len(found) == 2
    assert found[0].similarity > found[1].similarity


async def test_what_one_person_told_is_nobody_elses(facts: Mem0Facts) -> None:
    await _tell(facts, ASHA, "My password hint is KANARIENVOGEL.")
    await _tell(facts, BEN, "My password hint is ZEISIG.")
    for who, own in ((ASHA, "KANARIENVOGEL"), (BEN, "ZEISIG")):
        for found in (
            await facts.nearest(grant(who), "password hint KANARIENVOGEL ZEISIG", limit=50),
            await facts.all(grant(who)),
            await facts.told_in(grant(who), "m0"),
        ):
            assert [own in fact.text for fact in found] == [True]


async def test_the_owner_of_the_system_has_memories_of_his_own_and_sees_no_others(facts: Mem0Facts) -> None:
    await _tell(facts, ASHA, "My password hint is KANARIENVOGEL.")
    assert await facts.nearest(grant(OWNER, sees_all=True), "password hint", limit=50) == []
    assert await facts.all(grant(OWNER, sees_all=True)) == []


async def test_mem0_itself_reads_a_star_as_everyone(facts: Mem0Facts) -> None:
    """Why `_person` exists. When this fails, mem0 has closed the hole, and the decision can be shortened."""
    await _tell(facts, ASHA, "My password hint is KANARIENVOGEL.")
    await _tell(facts, BEN, "My password hint is ZEISIG.")
    raw: Any = facts._memory
    everyone = await asyncio.to_thread(raw.search, "password hint", filters={"user_id": "*"}, top_k=50)
    assert {result["user_id"] for result in everyone["results"]} == {ASHA, BEN}


@pytest.mark.parametrize(
    "client", ["*", "", " ", "mesh", "+*", "user_id", f"{ASHA}\n", f" {ASHA}", f"{ASHA},{BEN}", "null"]
)
async def test_nobody_can_ask_as_everyone(facts: Mem0Facts, client: str) -> None:
    await _tell(facts, ASHA, "My password hint is KANARIENVOGEL.")
    for sees_all in (False, True):
        nobody = grant(client, sees_all=sees_all)
        with pytest.raises(ValueError, match="nobody"):
            await facts.nearest(nobody, "password hint", limit=5)
        with pytest.raises(ValueError, match="nobody"):
            await facts.all(nobody)
        with pytest.raises(ValueError, match="nobody"):
            await facts.told_in(nobody, "m0")
        with pytest.raises(ValueError, match="nobody"):
            await facts.add(nobody, "x", told_at=NOON, message_id="m")
        with pytest.raises(ValueError, match="nobody"):
            await facts.supersede(nobody, str(uuid.uuid4()), by="x", at=NOON)


@pytest.mark.parametrize("client", [["+15551230001", "+15551230002"], {"ne": ""}, None, 15551230001])
async def test_an_operator_in_place_of_a_person_is_refused(facts: Mem0Facts, client: Any) -> None:
    with pytest.raises(ValueError, match="nobody"):
        await facts.all(grant(client))


async def test_a_star_for_a_message_matches_no_message(facts: Mem0Facts) -> None:
    await _tell(facts, ASHA, "I live in Lyon.")
    assert await facts.told_in(grant(ASHA), "*") == []
    assert await facts.told_in(grant(ASHA), "") == []


async def test_should_mem0_ever_return_a_strangers_fact_it_stops_here(
    facts: Mem0Facts, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _tell(facts, BEN, "My password hint is ZEISIG.")
    honest = facts._memory.search

    def widened(query: str, *, filters: dict[str, str], **more: Any) -> Any:
        return honest(query, filters={**filters, "user_id": "*"}, **more)

    monkeypatch.setattr(facts._memory, "search", widened)
    with pytest.raises(Crashed):
        await facts.nearest(grant(ASHA), "password hint", limit=5)


async def test_a_superseded_fact_is_kept_and_no_longer_found(
    facts: Mem0Facts, qdrant_url: str, collection: str
) -> None:
    old, new = await _tell(facts, ASHA, "My favourite colour is blue.", "My favourite colour is teal.")
    await facts.supersede(grant(ASHA), old, by=new, at=NOON + timedelta(days=1))
    assert [fact.fact_id for fact in await facts.nearest(grant(ASHA), "favourite colour blue", limit=1)] == [new]
    assert [fact.fact_id for fact in await facts.all(grant(ASHA))] == [new]
    (kept,) = await facts.told_in(grant(ASHA), "m0")
    assert (kept.fact_id, kept.superseded_by, kept.told_at) == (old, new, NOON)
    with closing(QdrantClient(url=qdrant_url, check_compatibility=False)) as client:
        (point,) = client.retrieve(collection, [old])
    assert point.payload is not None
    assert point.payload["valid_to"] == (NOON + timedelta(days=1)).isoformat()
    assert point.payload["valid_from"] == NOON.isoformat()


async def test_live_facts_are_chosen_in_the_query_and_not_afterwards(facts: Mem0Facts) -> None:
    """Sixty superseded neighbours would fill a result that is filtered afterwards."""
    await asyncio.gather(
        *(
            facts.add(grant(ASHA), f"My favourite colour is blue {n}.", told_at=NOON, message_id=f"b{n}")
            for n in range(70)
        )
    )
    (far,) = await _tell(facts, ASHA, "I am allergic to peanuts.")
    for fact in await facts.all(grant(ASHA)):
        if fact.fact_id != far:
            await facts.supersede(grant(ASHA), fact.fact_id, by=far, at=NOON)
    assert [fact.fact_id for fact in await facts.nearest(grant(ASHA), "favourite colour blue", limit=1)] == [far]


async def test_nobody_supersedes_what_another_person_told(facts: Mem0Facts) -> None:
    (fact_id,) = await _tell(facts, ASHA, "I live in Lyon.")
    for who in (grant(BEN), grant(OWNER, sees_all=True)):
        with pytest.raises(NotFound):
            await facts.supersede(who, fact_id, by="x", at=NOON)
    for unknown in (str(uuid.uuid4()), "*", "", "not an id"):
        with pytest.raises(NotFound):
            await facts.supersede(grant(ASHA), unknown, by="x", at=NOON)
    assert len(await facts.all(grant(ASHA))) == 1


async def test_what_is_erased_is_in_no_list_and_not_in_mem0s_history(facts: Mem0Facts, tmp_path: Path) -> None:
    old, new, other = await _tell(facts, ASHA, "I live in KANARIENVOGEL.", "I live in Lyon.", "I like jazz.")
    (bens,) = await _tell(facts, BEN, "I live in ZEISIG.")
    await facts.supersede(grant(ASHA), old, by=new, at=NOON)
    assert [fact.fact_id for fact in await facts.all(grant(ASHA), superseded=True)] == [old, new, other]
    await facts.erase(grant(ASHA), [old])
    await facts.erase(grant(ASHA), [old])
    assert [fact.fact_id for fact in await facts.all(grant(ASHA), superseded=True)] == [new, other]
    assert _history(tmp_path) == {new, other, bens}
    await facts.erase(grant(ASHA))
    assert await facts.all(grant(ASHA), superseded=True) == []
    assert _history(tmp_path) == {bens}
    assert [fact.fact_id for fact in await facts.all(grant(BEN))] == [bens]


def _history(folder: Path) -> set[str]:
    with closing(sqlite3.connect(folder / "history.db")) as database:
        return {memory_id for (memory_id,) in database.execute("SELECT memory_id FROM history")}


async def test_an_empty_list_erases_nothing(facts: Mem0Facts) -> None:
    await _tell(facts, ASHA, "I live in Lyon.")
    await facts.erase(grant(ASHA), [])
    assert len(await facts.all(grant(ASHA))) == 1


async def test_nobody_erases_what_another_person_told(facts: Mem0Facts, tmp_path: Path) -> None:
    (fact_id,) = await _tell(facts, ASHA, "I live in Lyon.")
    for who in (grant(BEN), grant(OWNER, sees_all=True)):
        await facts.erase(who, [fact_id])
        await facts.erase(who)
    for client in ("*", "", "mesh"):
        with pytest.raises(ValueError, match="nobody"):
            await facts.erase(grant(client))
    assert [fact.fact_id for fact in await facts.all(grant(ASHA))] == [fact_id]
    assert _history(tmp_path) == {fact_id}


async def test_an_erasure_that_breaks_off_is_taken_up_by_the_next_one(
    facts: Mem0Facts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _tell(facts, ASHA, "I live in Lyon.")

    def broken(*_: Any, **__: Any) -> None:
        raise ConnectionError

    with monkeypatch.context() as patch:
        patch.setattr(facts._qdrant, "delete", broken)
        with pytest.raises(Unavailable):
            await facts.erase(grant(ASHA))
    await facts.erase(grant(ASHA))
    assert await facts.all(grant(ASHA)) == []
    assert _history(tmp_path) == set()


async def test_more_facts_than_are_listed_at_once_are_all_erased(
    facts: Mem0Facts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mesh.adapters.mem0.LISTED", 3)
    await _tell(facts, ASHA, *(f"I like dish {n}." for n in range(10)))
    await facts.erase(grant(ASHA))
    assert await facts.all(grant(ASHA), superseded=True) == []
    assert _history(tmp_path) == set()


async def test_facts_outlive_the_process_that_stored_them(
    facts: Mem0Facts, qdrant_url: str, models_url: str, tmp_path: Path, collection: str
) -> None:
    await _tell(facts, ASHA, "I live in Lyon.")
    again = await _open(qdrant_url, models_url, tmp_path, collection)
    assert [fact.text for fact in await again.all(grant(ASHA))] == ["I live in Lyon."]
    await again.close()


async def test_eight_processes_may_open_at_once(
    qdrant_url: str, models_url: str, tmp_path: Path, collection: str
) -> None:
    opened = await asyncio.gather(*(_open(qdrant_url, models_url, tmp_path / str(n), collection) for n in range(8)))
    for each in opened:
        await each.close()


async def test_a_model_with_other_vectors_stops_start_up(
    facts: Mem0Facts, qdrant_url: str, models_url: str, tmp_path: Path, collection: str
) -> None:
    with pytest.raises(Misconfigured, match=r"EMBEDDING_DIMS.*768.*384"):
        await _open(qdrant_url, models_url, tmp_path, f"{collection}_2", dims=768)
    with pytest.raises(Misconfigured, match="no model nomic-embed-text"):
        await _open(qdrant_url, models_url, tmp_path, collection, model="nomic-embed-text")
    with closing(QdrantClient(url=qdrant_url, check_compatibility=False)) as client:
        client.create_collection(f"{collection}_3", VectorParams(size=8, distance=Distance.COSINE))
    with pytest.raises(Misconfigured, match="8 dimensions"):
        await _open(qdrant_url, models_url, tmp_path, f"{collection}_3")


async def test_a_store_or_a_model_server_that_is_gone_is_unavailable(
    facts: Mem0Facts, qdrant_url: str, models_url: str, tmp_path: Path, collection: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(Unavailable):
        await _open(nowhere, models_url, tmp_path, collection)
    with pytest.raises(Unavailable):
        await _open(qdrant_url, nowhere, tmp_path, collection)
    import ollama

    monkeypatch.setattr(facts._memory.embedding_model, "client", ollama.Client(host=nowhere))
    with pytest.raises(Unavailable):
        await facts.add(grant(ASHA), "I live in Lyon.", told_at=NOON, message_id="m")
    with pytest.raises(Unavailable):
        await facts.nearest(grant(ASHA), "Where do I live?", limit=3)


async def test_a_model_server_that_hangs_costs_a_time_limit_and_no_more(
    facts: Mem0Facts, monkeypatch: pytest.MonkeyPatch
) -> None:
    import httpx
    import ollama

    with socket.create_server(("127.0.0.1", 0)) as deaf:
        hung = ollama.Client(host=f"http://127.0.0.1:{deaf.getsockname()[1]}", timeout=httpx.Timeout(0.3))
        monkeypatch.setattr(facts._memory.embedding_model, "client", hung)
        with pytest.raises(Unavailable):
            await facts.nearest(grant(ASHA), "Where do I live?", limit=3)


async def test_no_chat_model_is_asked_and_no_word_leaves_the_machine(facts: Mem0Facts, tmp_path: Path) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("a chat model was asked")

    facts._memory.llm.generate_response = refuse
    await _tell(facts, ASHA, "I live in Lyon.", "My dog's name is Rex.")
    assert len(await facts.nearest(grant(ASHA), "Where do I live?", limit=5)) == 2
    from mem0.memory import telemetry

    assert telemetry.MEM0_TELEMETRY is False
    assert facts._memory.vector_store._has_bm25_slot is False


async def test_opening_touches_nothing_outside_its_folder(
    qdrant_url: str, models_url: str, tmp_path: Path, collection: str
) -> None:
    """In a process of its own: mem0 reads its environment once, at its import."""
    code = (
        "import asyncio, sys; from pathlib import Path; from mesh.adapters.mem0 import Mem0Facts\n"
        "async def main():\n"
        f"    facts = await Mem0Facts.open(qdrant_url={qdrant_url!r}, ollama_host={models_url!r}, model={MODEL!r},"
        f" dims={DIMS}, folder=Path({str(tmp_path / 'memory')!r}), collection={collection!r})\n"
        "    await facts.close()\n"
        "asyncio.run(main())\n"
    )
    home = tmp_path / "home"
    home.mkdir()
    environment = {**os.environ, "HOME": str(home), "TMPDIR": str(tmp_path)}
    environment.pop("MEM0_DIR", None)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, env=environment, stderr=subprocess.PIPE, cwd=Path(__file__).parents[2]
    )
    _, said = await process.communicate()
    assert process.returncode == 0, said.decode()
    assert list(home.iterdir()) == []
    assert {each.name for each in (tmp_path / "memory").iterdir()} == {"history.db", "mem0"}
    with closing(QdrantClient(url=qdrant_url, check_compatibility=False)) as client:
        assert "mem0migrations" not in {each.name for each in client.get_collections().collections}
