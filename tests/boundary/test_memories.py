"""Memories: everything that might be asked, in a world where Asha told something and in one where she did not. The
others are told the same, byte for byte; and the system owner is one of them."""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

import pytest
import pytest_asyncio

from agents.memory.diary import Diary
from agents.memory.diary import agent as memory
from mesh.access import Gate
from mesh.adapters.mem0 import Mem0Facts
from mesh.contracts.memory import ANSWER_FROM_MEMORY, EXPORT_MEMORY, RECALL, REMEMBER
from mesh.dispatch import Dispatcher
from mesh.errors import Denied
from mesh.ports.people import Tier
from mesh.skills import Skill
from tests.boundary.probes import STRANGE, TEXTS
from tests.boundary.stage import BARE, BLOCKED, DIMS, leaked, unsaid
from tests.people import ASHA, BEN, OWNER, STRANGER, Directory

pytestmark = pytest.mark.asyncio(loop_scope="module")

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
TOLD = ("My favourite bird is the KANARIENVOGEL.", "My dog is called Treppenwitz.", "My PIN hint is 7,413.")
OWN = ("My favourite bird is the wren.", "My dog is called Rex.")
ASKED = ("What is my favourite bird?", "What do you know about me?", "What is my dog's name?", "KANARIENVOGEL", "7,413")
SHORT = [text for each in TEXTS.values() for text in each if len(text) < 10_000]
PATHS: dict[str, tuple[Skill[Any, Any], str]] = {
    RECALL.name: (RECALL, "about"),
    ANSWER_FROM_MEMORY.name: (ANSWER_FROM_MEMORY, "text"),
    EXPORT_MEMORY.name: (EXPORT_MEMORY, "client"),
}
OTHERS = {BEN: "another client", STRANGER: "a stranger who may be remembered", OWNER: "the system owner"}


@dataclass(frozen=True, slots=True)
class World:
    dispatcher: Dispatcher
    without: dict[tuple[str, str], list[dict[str, Any]]]

    async def call(self, client: str, skill: Skill[Any, Any], payload: Any) -> dict[str, Any]:
        body = {"client": client, "skill": skill.name, "payload": payload, "trace": "t", "key": uuid.uuid4().hex}
        return await self.dispatcher.dispatch({}, {**body, "deadline": time.time() + 60})

    async def asked(self, client: str, path: str) -> list[dict[str, Any]]:
        return [await self.call(client, PATHS[path][0], payload) for payload in payloads(path)]

    async def tell(self, client: str, *texts: str) -> None:
        for number, text in enumerate(texts):
            said = {"text": text, "message_id": f"{client}-{number}", "said_at": NOON.isoformat()}
            assert (await self.call(client, REMEMBER, said))["outcome"] == "ok"


def payloads(path: str) -> list[dict[str, Any]]:
    _, field = PATHS[path]
    if path == EXPORT_MEMORY.name:
        return [{}, {"client": ASHA}, {"user_id": "*"}, {"user_id": [ASHA]}, {"filters": {"user_id": "*"}}]
    return [{field: text} for text in (*ASKED, *SHORT, *STRANGE)] + [{field: ASKED[0], "user_id": "*", "limit": 1000}]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(index_url: str, scripted_url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    people = Directory()
    for person in (ASHA, BEN, BLOCKED):
        people.allow(person, "memory:recall", "memory:write")
    people.allow(BARE, "chat:converse")
    people.block(BLOCKED)
    people.known["stranger"] = Tier("stranger", frozenset({"memory:recall", "memory:write"}))
    facts = await Mem0Facts.open(
        qdrant_url=index_url,
        ollama_host=scripted_url,
        model="multilingual-e5-small",
        dims=DIMS,
        folder=tmp_path_factory.mktemp("memories"),
        collection=f"memories-{uuid.uuid4().hex[:12]}",
    )
    gate = Gate(people, system_owner=OWNER, unknown_tier="stranger", fresh_for=0)
    made = World(Dispatcher(memory, Diary(facts, now=lambda: NOON), gate, cast(Any, None)), {})
    await made.tell(BEN, *OWN)
    made.without.update({(client, path): await made.asked(client, path) for client in OTHERS for path in PATHS})
    await made.tell(ASHA, *TOLD)
    yield made
    await facts.close()


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("client", OTHERS, ids=OTHERS.values())
async def test_what_another_person_told_is_in_no_answer_and_changes_none(world: World, client: str, path: str) -> None:
    after = await world.asked(client, path)
    for payload, before, now in zip(payloads(path), world.without[client, path], after, strict=True):
        assert not leaked(unsaid(now, payload)), payload
        assert before == now, payload


@pytest.mark.parametrize("path", PATHS)
async def test_who_told_it_is_told_it(world: World, path: str) -> None:
    answers = zip(payloads(path), await world.asked(ASHA, path), strict=True)
    assert any(leaked(unsaid(answer, payload)) for payload, answer in answers)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("client", [BARE, BLOCKED], ids=["without the permission", "blocked"])
async def test_who_may_recall_nothing_is_told_that(world: World, client: str, path: str) -> None:
    assert {answer["code"] for answer in await world.asked(client, path)} == {Denied.code}
