"""Why was this withheld? Told to the system owner, in counts: no content, and no names."""

from __future__ import annotations

import pytest

from agents.knowledge.withholding import LOWER, MOVING, PRIVATE, REASONS, UNSHELVED, UNTAGGED
from mesh.access import OWN_SYSTEM
from mesh.contracts.documents import FIND_SOURCE_DOCUMENT, LIST_DOCUMENTS, READ_PATHS, RETRIEVE_KNOWLEDGE_BASE
from mesh.contracts.upkeep import WHY_WITHHELD, ReadPath, WhyWithheld, Withheld
from mesh.errors import Denied, Malformed
from tests.boundary.stage import NAME, PUBLISHER, SECRET, Stage, leaked
from tests.boundary.test_untagged import put_old, untag
from tests.people import ASHA, BEN, OWNER

QUESTION = "What is the fee of the gala?"


async def why(stage: Stage, client: str, text: str = QUESTION) -> Withheld:
    return await stage.ask(OWNER, WHY_WITHHELD, WhyWithheld(client=client, text=text))


def path(found: Withheld, name: str) -> ReadPath:
    return next(each for each in found.paths if each.name == name)


def held(found: Withheld, name: str) -> dict[str, int]:
    return {each.reason: each.count for each in path(found, name).held if each.count}


async def test_a_foreign_document_is_counted_and_neither_named_nor_quoted(stage: Stage) -> None:
    await stage.furnish()
    card = await stage.ingest(ASHA, NAME, SECRET)
    found = await why(stage, BEN)
    assert held(found, RETRIEVE_KNOWLEDGE_BASE.name) == {PRIVATE: 2}
    assert held(found, LIST_DOCUMENTS.name) == {PRIVATE: 1}
    assert path(found, LIST_DOCUMENTS.name).seen == 2
    assert {each.name for each in found.paths} == {each.name for each in READ_PATHS}, "each of them is there"
    assert not leaked(found.model_dump(mode="json"), card.document_id, ASHA, card.owner)


async def test_by_its_name_it_is_counted_too(stage: Stage) -> None:
    await stage.furnish()
    await stage.ingest(ASHA, NAME, SECRET)
    assert held(await why(stage, BEN, NAME), FIND_SOURCE_DOCUMENT.name) == {PRIVATE: 1}


async def test_to_its_owner_nothing_of_it_is_withheld(stage: Stage) -> None:
    await stage.ingest(ASHA, NAME, SECRET)
    found = await why(stage, ASHA)
    assert found.answered
    assert [held(found, each.name) for each in found.paths] == [{}] * len(found.paths)
    assert path(found, RETRIEVE_KNOWLEDGE_BASE.name).seen == path(found, RETRIEVE_KNOWLEDGE_BASE.name).matched == 2


async def test_each_reason_is_told_apart(stage: Stage) -> None:
    untagged = await stage.ingest(ASHA, "untagged.md", SECRET)
    moving = await stage.ingest(PUBLISHER, "moving.md", SECRET)
    await stage.ingest(ASHA, NAME, SECRET)
    await put_old(stage, 1, document_id="gone", owner_identity=ASHA, visibility="private", state="live")
    await untag(stage, untagged.document_id, "owner_identity")
    await stage.library.stores.shelf.wish(
        await stage.gate.admit(PUBLISHER, "documents:add"), moving.document_id, "global"
    )
    found = await why(stage, BEN)
    assert held(found, RETRIEVE_KNOWLEDGE_BASE.name) == {PRIVATE: 2, UNTAGGED: 2, MOVING: 2, UNSHELVED: 1}
    assert held(found, LIST_DOCUMENTS.name) == {PRIVATE: 2, MOVING: 1}
    assert tuple(each.reason for each in found.paths[0].held) == REASONS


def many(word: str, each: str, count: int) -> bytes:
    return "\n\n".join(f"## {word} {n}\n\nThe {word} number {n} has {each}." for n in range(count)).encode()


async def test_what_others_fit_better_than_is_ranked_lower_and_nothing_of_it_moves(stage: Stage) -> None:
    """The beehive is the rarer word in what the client sees, and with another's document in it the aardvark is: so the
    stalls come first for the system owner, and the huts for the client."""
    both = many("stall", "an aardvark", 60) + b"\n\n" + many("hut", "a beehive", 40)
    shared = await stage.ingest(OWNER, "shared.md", both, visibility="global")
    await stage.ingest(ASHA, "asha.md", many("pen", "a beehive", 150))
    question = "Which of them has an aardvark or a beehive?"
    found = held(await why(stage, BEN, question), RETRIEVE_KNOWLEDGE_BASE.name)
    assert found.pop(PRIVATE)
    assert found.keys() == {LOWER}
    await stage.passages.set_visibility(await stage.gate.admit(OWNER, OWN_SYSTEM), shared.document_id, "private")
    lagging = held(await why(stage, BEN, question), RETRIEVE_KNOWLEDGE_BASE.name)
    assert lagging[MOVING]
    assert LOWER not in lagging, "the shelf shows it to everyone, and the index has yet to be told"


async def test_what_was_seen_and_too_weak_is_below_the_floor(stage: Stage) -> None:
    await stage.furnish()
    found = await why(stage, BEN, "Who won the chess olympiad in 1972?")
    assert not found.answered
    assert path(found, RETRIEVE_KNOWLEDGE_BASE.name).seen > 0
    assert held(found, RETRIEVE_KNOWLEDGE_BASE.name) == {}


@pytest.mark.parametrize("client", ["", "*", "%", "mesh", "+1555*", "' OR 1=1"])
async def test_nobody_in_particular_is_refused(stage: Stage, client: str) -> None:
    with pytest.raises(Malformed):
        await why(stage, client)


@pytest.mark.parametrize("client", [ASHA, BEN, PUBLISHER])
async def test_nobody_else_is_told_whatever_a_tier_says(stage: Stage, client: str) -> None:
    stage.people.allow(client, "knowledge:search", OWN_SYSTEM)
    for about in (ASHA, client):
        with pytest.raises(Denied):
            await stage.ask(client, WHY_WITHHELD, WhyWithheld(client=about, text=QUESTION))
