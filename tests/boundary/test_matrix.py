"""Principals × read paths × everything that might be asked: nothing foreign in any answer, and a world in which the
foreign document exists answers byte for byte as one in which it does not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio

from mesh.contracts.documents import DELETE_DOCUMENT, FIND_SOURCE_DOCUMENT, GET_DOCUMENT_TEXT, SET_VISIBILITY
from mesh.contracts.notes import FIND_NOTES
from mesh.envelope import digest
from mesh.errors import Denied, NotFound
from mesh.skills import Skill
from tests.boundary.probes import BY_ID, BY_TEXT, EVERY_PATH, HONEST, payloads
from tests.boundary.stage import (
    BARE,
    BLOCKED,
    CANARY,
    NAME,
    NOTE,
    PUBLISHER,
    SECRET,
    Stage,
    leaked,
    shown,
    staged,
    unsaid,
)
from tests.people import ASHA, BEN, OWNER, STRANGER

pytestmark = pytest.mark.asyncio(loop_scope="module")

SECRET_ID = digest(ASHA, NAME)
ABSENT_ID = digest(ASHA, "no-such-contract.md")
OTHERS = {BEN: "another client", STRANGER: "a stranger who may search"}


@dataclass(frozen=True, slots=True)
class World:
    """Asha's contract and her note are in it; `without` is what others were told before."""

    stage: Stage
    note_id: str
    without: dict[tuple[str, str], list[dict[str, Any]]]

    async def asked(self, client: str, path: str) -> list[dict[str, Any]]:
        return await asked(self.stage, client, path)


async def asked(stage: Stage, client: str, path: str) -> list[dict[str, Any]]:
    skill, _ = EVERY_PATH[path]
    return [await stage.call(client, skill, payload) for payload in payloads(path, SECRET_ID)]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(index_url: str, scripted_url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    async with staged(index_url, scripted_url, tmp_path_factory.mktemp("world")) as stage:
        await stage.furnish()
        without = {(client, path): await asked(stage, client, path) for client in OTHERS for path in EVERY_PATH}
        assert (await stage.ingest(ASHA, NAME, SECRET)).document_id == SECRET_ID
        yield World(stage, (await stage.note(ASHA, NOTE)).document_id, without)


@pytest.mark.parametrize("path", EVERY_PATH)
@pytest.mark.parametrize("client", OTHERS, ids=OTHERS.values())
async def test_nothing_foreign_is_shown_and_nothing_tells_that_it_is_there(
    world: World, client: str, path: str
) -> None:
    tried = list(payloads(path, SECRET_ID))
    for payload, before, after in zip(tried, world.without[client, path], await world.asked(client, path), strict=True):
        assert not leaked(unsaid(after, payload), world.note_id), payload
        assert before == after, f"{path} tells that a foreign document is there: {str(payload)[:200]!r}"


@pytest.mark.parametrize("path", EVERY_PATH)
@pytest.mark.parametrize("client", [ASHA, OWNER], ids=["its owner", "the system owner"])
async def test_who_may_see_it_does(world: World, client: str, path: str) -> None:
    """Or the matrix would be of blanks."""
    skill, payload = EVERY_PATH[path]
    wanted = {FIND_SOURCE_DOCUMENT.name: NAME, FIND_NOTES.name: ""}.get(path, HONEST[0])
    answer = await world.stage.call(client, skill, payload(SECRET_ID if path in BY_ID else wanted))
    may = client == ASHA or path != FIND_NOTES.name  # notes are their writer's alone, also to the system owner
    assert bool(leaked(answer)) == may


@pytest.mark.parametrize("path", EVERY_PATH)
@pytest.mark.parametrize("client", [BARE, BLOCKED], ids=["without the permission", "blocked"])
async def test_who_may_search_nothing_is_told_that_and_no_more(world: World, client: str, path: str) -> None:
    answers = await world.asked(client, path)
    assert {answer["code"] for answer in answers} == {Denied.code}
    assert len({answer["user_text"] for answer in answers}) == 1, "whatever was asked"


@pytest.mark.parametrize(
    "client", ["", "*", "%", "+", f"{ASHA}\n", f" {ASHA}", "mesh", "null", "whatsapp:*", "' OR 1=1 --"]
)
async def test_who_is_nobody_is_shown_nothing_although_strangers_may_search(world: World, client: str) -> None:
    for path, (skill, payload) in EVERY_PATH.items():
        answer = await world.stage.call(client, skill, payload(SECRET_ID if path in BY_ID else HONEST[0]))
        assert answer["outcome"] == "failed", path
        assert not leaked(answer), path


@pytest.mark.parametrize("path", BY_ID)
@pytest.mark.parametrize("client", [BEN, STRANGER])
async def test_a_foreign_id_and_an_absent_one_have_the_same_answer(world: World, client: str, path: str) -> None:
    skill, payload = BY_ID[path]
    absent = await world.stage.call(client, skill, payload(ABSENT_ID))
    assert absent["code"] == NotFound.code
    for foreign in (SECRET_ID, world.note_id):
        assert await world.stage.call(client, skill, payload(foreign)) == absent


WISHES: dict[str, tuple[Skill[Any, Any], dict[str, Any]]] = {
    "private": (SET_VISIBILITY, {"visibility": "private"}),
    "global": (SET_VISIBILITY, {"visibility": "global"}),
    "delete": (DELETE_DOCUMENT, {}),
}


@pytest.mark.parametrize("wish", WISHES)
async def test_who_changes_a_foreign_document_is_told_as_of_an_absent_one(world: World, wish: str) -> None:
    skill, payload = WISHES[wish]
    absent = await world.stage.call(PUBLISHER, skill, {**payload, "document_id": ABSENT_ID})
    assert absent["code"] == NotFound.code
    for foreign in (SECRET_ID, world.note_id):
        assert await world.stage.call(PUBLISHER, skill, {**payload, "document_id": foreign}) == absent
    assert leaked(await world.stage.call(ASHA, *_reading(SECRET_ID))), "and nothing became of it"


def _reading(document_id: str) -> tuple[Skill[Any, Any], dict[str, Any]]:
    skill, payload = BY_ID[GET_DOCUMENT_TEXT.name]
    return skill, payload(document_id)


async def test_a_document_of_the_same_name_and_words_is_ones_own_and_no_other(world: World) -> None:
    """Guessing everything right brings nobody nearer to the other's."""
    guessed = await world.stage.ingest(PUBLISHER, NAME, SECRET.replace(CANARY.encode(), b"a guess"))
    assert guessed.document_id != SECRET_ID
    for path, (skill, payload) in BY_TEXT.items():
        answer = await world.stage.call(PUBLISHER, skill, payload(NAME))
        assert CANARY not in unsaid(answer, payload(NAME)), path
        assert SECRET_ID not in shown(answer), path
