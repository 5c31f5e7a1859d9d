"""Notes through the knowledge agent's door: what is saved, what leads to what, and that nobody is led to another's."""

from __future__ import annotations

import asyncio
import sqlite3
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from agents.knowledge.library import Library
from agents.knowledge.stores import Stores
from mesh.access import Grant
from mesh.adapters import notes as disk
from mesh.adapters.ollama import OllamaEmbedder
from mesh.adapters.qdrant import QdrantPassages
from mesh.adapters.shelf import DiskShelf
from mesh.contracts.answers import Nothing
from mesh.contracts.documents import (
    DELETE_DOCUMENT,
    GET_DOCUMENT,
    GET_DOCUMENT_TEXT,
    LIST_DOCUMENTS,
    RETRIEVE_KNOWLEDGE_BASE,
    SET_VISIBILITY,
    DocumentRef,
    Search,
    Visible,
)
from mesh.contracts.notes import FIND_NOTES, OWN_READ_PATHS, SAVE_NOTE, NoteSaved, NotesFound, NotesWanted, SaveNote
from mesh.envelope import Failed
from mesh.errors import Malformed, Misconfigured, TooLong
from tests.contract.test_knowledge_agent import ASHA, BELA, OWNER, PUBLISHER, Desk, shown
from tests.processes import models, qdrant


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    with qdrant(tmp_path_factory.mktemp("qdrant")) as index, models(tmp_path_factory.mktemp("models")) as served:
        yield index, served


@pytest.fixture
async def desk(urls: tuple[str, str], tmp_path: Path) -> AsyncIterator[Desk]:
    index, served = urls
    embedder = OllamaEmbedder(
        served, model="multilingual-e5-small", dims=384, query_prefix="query: ", document_prefix="passage: "
    )
    passages = await QdrantPassages.open(index, model=embedder.model, dims=384, collection=f"n-{uuid.uuid4().hex[:12]}")
    yield Desk(Library(Stores(await DiskShelf.open(tmp_path / "shelf"), passages, embedder)))
    await passages.close()
    await embedder.close()


async def save(desk: Desk, client: str, text: str, **more: Any) -> NoteSaved:
    message_id = more.pop("message_id", "") or uuid.uuid4().hex
    return await desk.ask(client, SAVE_NOTE, SaveNote(text=text, message_id=message_id, **more))


async def found(desk: Desk, client: str, **wanted: Any) -> list[str]:
    listed: NotesFound = await desk.ask(client, FIND_NOTES, NotesWanted(**wanted))
    return [note.begins for note in listed.notes]


async def near(desk: Desk, client: str, *ids: str, sees_all: bool = False) -> set[tuple[str, str]]:
    """Names and kinds of what these lead to."""
    grant = Grant(client, frozenset(), tier="default", sees_all=sees_all)
    shelf = desk.library.stores.shelf
    steps = await shelf.notes.near(grant, ids)
    names = {each.document_id: each.name for each in await shelf.documents(grant)}
    return {(names[step.other].split(" 20")[0], step.kind) for step in steps}


# ── saving ────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_note_is_a_private_document_named_by_its_first_words_and_its_day(desk: Desk) -> None:
    text = "The berth costs 7 euros a night, says Marta. #Boat #नाव See [[Berth plan]] and [[x.pdf|that]]."
    saved = await save(desk, ASHA, text)
    card = saved.document
    today = datetime.now(UTC).astimezone()
    assert card.name == f"The berth costs 7 euros a night {today:%Y-%m-%d}.md"
    assert (card.owner, card.visibility, card.note, saved.outcome) == (ASHA, "private", True, "added")
    assert (saved.tags, saved.links) == (("Boat", "नाव"), ("Berth plan", "x.pdf"))
    ref = DocumentRef(document_id=card.document_id)
    assert (await desk.ask(ASHA, GET_DOCUMENT_TEXT, ref)).text == text
    assert (await desk.ask(ASHA, GET_DOCUMENT, ref)).raw == text.encode()
    (hit,) = (await desk.ask(ASHA, RETRIEVE_KNOWLEDGE_BASE, Search(text="price of the berth"))).found
    assert hit.document.document_id == card.document_id


async def test_a_message_saves_once_however_often_it_is_asked(desk: Desk) -> None:
    first, again = [await save(desk, ASHA, "Gate code: ask Marta", message_id="SM1") for _ in range(2)]
    assert first == again
    assert len(await found(desk, ASHA)) == 1


async def test_what_broke_off_before_the_document_was_there_is_one_note_after_all(desk: Desk) -> None:
    def breaks(*_: object) -> None:
        raise RuntimeError("killed")

    library, whole = desk.library, desk.library.ingesting
    library.noting = type(library.noting)(library.stores, type("Broken", (), {"ingest": breaks})())
    with pytest.raises(RuntimeError, match="killed"):
        await library.noting.save(
            Grant(ASHA, frozenset(), tier="default"), SaveNote(text="Winter storage", message_id="SM1")
        )
    assert await found(desk, ASHA) == []
    library.noting = type(library.noting)(library.stores, whole)
    saved = await save(desk, ASHA, "Winter storage", message_id="SM1")
    assert saved.outcome == "added"
    assert "(2)" not in saved.document.name
    assert await found(desk, ASHA) == ["Winter storage"]


async def test_two_notes_that_begin_alike_have_names_of_their_own(desk: Desk) -> None:
    one, two = [await save(desk, ASHA, f"Call the sailmaker\n{each}") for each in ("on Monday", "on Friday")]
    assert two.document.name == one.document.name.replace(".md", " (2).md")
    assert len(await found(desk, ASHA)) == 2


async def test_the_same_text_again_is_the_note_that_is_there(desk: Desk) -> None:
    one, two = [await save(desk, ASHA, "Call the sailmaker") for _ in range(2)]
    assert (two.outcome, two.document.document_id) == ("unchanged", one.document.document_id)
    other = await save(desk, BELA, "Call the sailmaker")
    assert (other.outcome, other.document.owner) == ("added", BELA), "another's does not count"


@pytest.mark.parametrize("again", ["SM1", "SM2"])
async def test_a_note_that_everyone_sees_stays_so_when_it_is_saved_again(desk: Desk, again: str) -> None:
    text = "The quay is closed on Sundays."
    ref = (await save(desk, PUBLISHER, text, message_id="SM1")).document.document_id
    await desk.ask(PUBLISHER, SET_VISIBILITY, Visible(document_id=ref, visibility="global"))
    saved = await save(desk, PUBLISHER, text, message_id=again)
    assert (saved.document.document_id, saved.document.visibility) == (ref, "global")
    assert await desk.ask(ASHA, GET_DOCUMENT_TEXT, DocumentRef(document_id=ref))
    (hit,) = (await desk.ask(ASHA, RETRIEVE_KNOWLEDGE_BASE, Search(text="When is the quay closed?"))).found
    assert hit.document.document_id == ref


@pytest.mark.parametrize("text", ["", "  \n ", "\u202e\u200f", "\x00\x01"])
async def test_nothing_is_no_note(desk: Desk, text: str) -> None:
    outcome = await desk.run(ASHA, SAVE_NOTE, SaveNote(text=text, message_id="SM1"))
    assert isinstance(outcome, Failed)
    assert outcome.code == Malformed.code


async def test_a_note_that_is_far_too_long_is_refused_and_a_long_one_is_kept_whole(desk: Desk) -> None:
    outcome = await desk.run(ASHA, SAVE_NOTE, SaveNote(text="a " * (1 << 19), message_id="SM1"))
    assert isinstance(outcome, Failed)
    assert outcome.code == TooLong.code
    long = " ".join(f"Line {number} of the log." for number in range(600))
    card = (await save(desk, ASHA, long)).document
    assert (await desk.ask(ASHA, GET_DOCUMENT_TEXT, DocumentRef(document_id=card.document_id))).text == long
    assert card.chunks > 10


@pytest.mark.parametrize("text", ["#boat", "👍", "[[Berth plan]]", "\u202egnp.exe", "../../etc/passwd", "# Plan"])
async def test_an_odd_note_is_a_note_all_the_same(desk: Desk, text: str) -> None:
    card = (await save(desk, ASHA, text)).document
    assert card.name.endswith(".md")
    assert not set(card.name) & set("/\\\u202e#[]")
    assert len(await found(desk, ASHA)) == 1


async def test_many_notes_at_once_are_each_saved(desk: Desk) -> None:
    await asyncio.gather(*(save(desk, ASHA, f"Packing list\n{number}") for number in range(5)))
    assert len(await found(desk, ASHA)) == 5


# ── finding ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_notes_are_found_by_time_by_tag_and_by_what_they_are_about(desk: Desk) -> None:
    await save(desk, ASHA, "Parking behind the harbour is free after six. #boat")
    await save(desk, ASHA, "Marta repairs sails on Mondays. #Boat #people")
    await save(desk, ASHA, "Bread with seeds, from the mill.")
    now = datetime.now(UTC)
    assert [text[:5] for text in await found(desk, ASHA)] == ["Bread", "Marta", "Parki"], "newest first"
    assert [text[:5] for text in await found(desk, ASHA, tags=("BOAT",))] == ["Marta", "Parki"]
    assert [text[:5] for text in await found(desk, ASHA, tags=("boat", "people"))] == ["Marta"]
    assert [text[:5] for text in await found(desk, ASHA, about="parking")] == ["Parki"]
    assert [text[:5] for text in await found(desk, ASHA, about="parking", tags=("people",))] == ["Marta"], "the nearest"
    hour = timedelta(hours=1)
    assert len(await found(desk, ASHA, since=now - hour, until=now + hour)) == 3
    assert await found(desk, ASHA, until=now - hour) == []
    assert await found(desk, ASHA, since=now + hour, about="parking") == []
    some: NotesFound = await desk.ask(ASHA, FIND_NOTES, NotesWanted(limit=2))
    assert (len(some.notes), some.more) == (2, 1)


async def test_that_none_names_it_is_told(desk: Desk) -> None:
    await save(desk, ASHA, "Parking behind the harbour is free after six.")
    listed: NotesFound = await desk.ask(ASHA, FIND_NOTES, NotesWanted(about="umbrellas"))
    assert listed.nearest
    assert len(listed.notes) == 1


async def test_a_list_of_documents_tells_ones_own_notes(desk: Desk) -> None:
    await save(desk, ASHA, "Parking is free after six.")
    await desk.ingest(ASHA, "boat.md", b"# Boat\n\nA boat.\n")
    listed = (await desk.ask(ASHA, LIST_DOCUMENTS, Nothing())).documents
    assert {card.name.split()[0]: card.note for card in listed} == {"boat.md": False, "Parking": True}


async def test_a_deleted_note_is_gone_from_lists_and_leads_nowhere(desk: Desk, tmp_path: Path) -> None:
    plan = await save(desk, ASHA, "Berth plan: north side. #zanzibar")
    await save(desk, ASHA, "Ask about [[berth plan north side]]")
    await desk.ask(ASHA, DELETE_DOCUMENT, DocumentRef(document_id=plan.document.document_id))
    assert [text[:9] for text in await found(desk, ASHA)] == ["Ask about"]
    with closing(sqlite3.connect(tmp_path / "shelf" / "index.sqlite")) as database:
        assert database.execute("SELECT count(*) FROM notes").fetchone() == (1,)
        assert database.execute("SELECT count(*) FROM note_edges WHERE kind = 'tag'").fetchone() == (0,)


# ── one step further ──────────────────────────────────────────────────────────────────────────────────────────────


async def test_links_tags_and_replies_lead_one_step_both_ways(desk: Desk) -> None:
    plan = await save(desk, ASHA, "Berth plan\nNorth side, third from the left.", message_id="SMplan")
    ask = await save(desk, ASHA, "Ask Marta, see [[Berth plan]]. #sail")
    late = await save(desk, ASHA, "She comes at six.", replies_to=("SMplan",))
    sail = await save(desk, ASHA, "The new sail is grey. #SAIL", about=(late.document.document_id,))
    plan_id, ask_id, late_id, sail_id = (each.document.document_id for each in (plan, ask, late, sail))
    assert await near(desk, ASHA, plan_id) == {
        ("Ask Marta see Berth plan", "link"),
        ("She comes at six", "reply"),
    }
    assert await near(desk, ASHA, ask_id) == {
        ("Berth plan", "link"),
        ("The new sail is grey", "tag"),
    }
    assert ("Berth plan", "reply") in await near(desk, ASHA, late_id)
    assert await near(desk, ASHA, sail_id) == {
        ("Ask Marta see Berth plan", "tag"),
        ("She comes at six", "reply"),
    }


async def test_the_very_first_note_leads_on_though_a_search_found_none_before(desk: Desk) -> None:
    plan = (await desk.ingest(ASHA, "plan.md", b"# Plan\n\nBerths are on the north side.\n")).document.document_id
    assert await near(desk, ASHA, plan) == set()
    await save(desk, ASHA, "The harbour master has the [[plan]]")
    assert await near(desk, ASHA, plan) == {("The harbour master has the plan", "link")}


async def test_a_link_to_what_is_not_there_yet_leads_to_it_once_it_is(desk: Desk) -> None:
    ask = (await save(desk, ASHA, "Compare with [[Contract]]")).document.document_id
    assert await near(desk, ASHA, ask) == set()
    await desk.ingest(ASHA, "contract.md", b"# Contract\n\nThe deposit is 90 euros.\n")
    assert await near(desk, ASHA, ask) == {("contract.md", "link")}


async def test_a_tag_of_many_notes_leads_nowhere(desk: Desk) -> None:
    for number in range(disk.RARE + 1):
        last = (await save(desk, ASHA, f"Thing {number} #everything")).document.document_id
    assert await near(desk, ASHA, last) == set()


async def test_a_search_finds_what_the_found_note_leads_to(desk: Desk) -> None:
    for number in range(12):
        await desk.ingest(
            ASHA, f"shop{number}.md", f"# Shop {number}\n\nIt opens at {7 + number % 4}, daily.\n".encode()
        )
    await save(desk, ASHA, "Tom recommended the bakery on the corner of Mill Lane.", message_id="SMtom")
    await save(desk, ASHA, "Seven, not on Mondays.", replies_to=("SMtom",))
    asked = Search(text="How early can I go to the bakery that Tom recommended?")
    found = (await desk.ask(ASHA, RETRIEVE_KNOWLEDGE_BASE, asked)).found
    assert [each.passage[:5] for each in found[:2]] == ["Tom r", "Seven"]


# ── two tenants ───────────────────────────────────────────────────────────────────────────────────────────────────

CANARY = "KANARIENVOGEL"


async def _tangled(desk: Desk) -> list[NoteSaved]:
    """Everything of Bela's points at Asha's, and one note of Asha's that all may see does, too."""
    secret = await save(desk, ASHA, f"Secret berth {CANARY} 7,413 #rare [[Public berth]]", message_id="SMsecret")
    public = await save(
        desk, PUBLISHER, f"Public berth #rare [[Secret berth {CANARY} 7 413 Public berth]] [[Bela one]]"
    )
    await desk.ask(PUBLISHER, SET_VISIBILITY, Visible(document_id=public.document.document_id, visibility="global"))
    mine = await save(
        desk,
        BELA,
        f"Bela one #rare [[Secret berth {CANARY} 7 413 Public berth]] [[{secret.document.name}]]",
        replies_to=("SMsecret",),
        about=(secret.document.document_id,),
    )
    return [secret, public, mine]


@pytest.mark.parametrize("skill", OWN_READ_PATHS, ids=lambda skill: skill.name)
async def test_anothers_notes_are_in_no_list(desk: Desk, skill: Any) -> None:
    await _tangled(desk)
    for wanted in (NotesWanted(), NotesWanted(tags=("rare",)), NotesWanted(about=f"{CANARY} Secret berth 7,413")):
        assert CANARY in shown(await desk.run(ASHA, skill, wanted))
        theirs = await desk.ask(BELA, skill, wanted)
        assert [note.name.split()[0] for note in theirs.notes] == ["Bela"]
        assert theirs.more == 0
        assert (await desk.ask(OWNER, skill, wanted)).notes == (), "the system owner's own, too"


async def test_no_step_leads_to_anothers_note_or_tells_that_it_is_there(desk: Desk) -> None:
    secret, public, mine = await _tangled(desk)
    ids = [each.document.document_id for each in (secret, public, mine)]
    before = await near(desk, BELA, *ids)
    assert before == {
        ("Public berth Secret berth KANARIENVOGEL 7 413", "tag"),
        ("Bela one Secret berth KANARIENVOGEL 7 413", "tag"),
    }
    assert await near(desk, BELA, ids[0]) == set()
    theirs = shown(await desk.run(BELA, RETRIEVE_KNOWLEDGE_BASE, Search(text="Public berth", limit=20)))
    assert "7,413" not in theirs
    assert ids[0] not in theirs
    await desk.ask(ASHA, DELETE_DOCUMENT, DocumentRef(document_id=ids[0]))
    assert await near(desk, BELA, *ids) == before, "absent or foreign, it is the same"


async def test_anothers_notes_do_not_count_towards_a_tags_rarity(desk: Desk) -> None:
    one = (await save(desk, BELA, "One #rare")).document.document_id
    await save(desk, BELA, "Two #rare")
    for number in range(disk.RARE + 1):
        await save(desk, ASHA, f"Hidden {number} #rare")
    assert await near(desk, BELA, one) == {("Two", "tag")}


# ── the index ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_folder_without_notes_is_taken_over_and_one_of_a_newer_form_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "shelf"
    await DiskShelf.open(folder)
    with closing(sqlite3.connect(folder / "index.sqlite")) as database:
        database.executescript(
            "DROP TRIGGER note_goes; DROP TABLE note_edges; DROP TABLE notes; DROP TABLE notes_schema"
        )
    shelf = await DiskShelf.open(folder)
    assert await shelf.notes.noted(Grant(ASHA, frozenset(), tier="default")) == []
    with closing(sqlite3.connect(folder / "index.sqlite")) as database, database:
        database.execute("UPDATE notes_schema SET version = 99")
    with pytest.raises(Misconfigured, match="99"):
        await DiskShelf.open(folder)
