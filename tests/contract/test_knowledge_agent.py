"""The knowledge agent through its own door: real models, a real index, and what each person may and may not see."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import time
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from docx import Document as WordFile
from qdrant_client import AsyncQdrantClient
from qdrant_client import models as qmodels

from agents.knowledge import agent
from agents.knowledge.fallback import in_texts
from agents.knowledge.library import Library, open_library
from agents.knowledge.stores import Stores
from mesh.access import Gate, Grant, upkeep
from mesh.adapters.ollama import OllamaEmbedder
from mesh.adapters.qdrant import QdrantPassages
from mesh.adapters.shelf import DiskShelf
from mesh.contracts.answers import Ask, Line, Nothing
from mesh.contracts.documents import (
    ANSWER_FROM_DOCUMENTS,
    DELETE_DOCUMENT,
    FIND_SOURCE_DOCUMENT,
    GET_DOCUMENT,
    GET_DOCUMENT_TEXT,
    INGEST,
    LIST_DOCUMENTS,
    READ_PATHS,
    RETRIEVE_KNOWLEDGE_BASE,
    SEARCH_WITHIN_DOCUMENT,
    SET_VISIBILITY,
    SHOW_DOCUMENT,
    DocumentCard,
    DocumentName,
    DocumentRef,
    Ingest,
    Ingested,
    Search,
    SearchWithin,
    Visible,
)
from mesh.dispatch import Dispatcher
from mesh.envelope import Failed, Ok, Wire
from mesh.errors import Denied, Malformed, NotFound, Unavailable, Unreadable
from mesh.ports.documents import Shelf, Visibility
from mesh.ports.models import Vector
from mesh.ports.passages import PassageIndex
from mesh.ports.people import Client, Tier
from mesh.settings import Settings
from mesh.skills import Skill
from mesh.wiring import Parts
from tests.asking import Asking
from tests.unit import word_files

ASHA, BELA, PUBLISHER, OWNER = "+15551230001", "+15551230002", "+15551230003", "+15550000000"
_BASIC = frozenset({"knowledge:search", "documents:add"})
_TIERS = {"default": _BASIC, "publisher": _BASIC | {"documents:publish"}}

SECRET = b"# Contract\n\n## Fee\nThe fee of the gala is 7,413 zlotys (KANARIENVOGEL).\n\n## Notice\nThirty days.\n"
CANARIES = ("7,413", "KANARIENVOGEL", "secret-contract", "Thirty days")
PRICES = b"# Prices\n\n## Rooms\nA double room costs 84 euros per night.\n\n## Parking\nParking costs 7 euros.\n"


class Names:
    """Who is on which tier."""

    async def client(self, identity: str) -> Client | None:
        return Client(identity, "someone", "publisher" if identity == PUBLISHER else "default")

    async def tier(self, name: str) -> Tier | None:
        return Tier(name, _TIERS[name])


class Desk(Asking):
    """The agent as its worker runs it, without the bus."""

    def __init__(self, library: Library) -> None:
        self.library = library
        gate = Gate(Names(), system_owner=OWNER, unknown_tier="default")
        super().__init__(Dispatcher(agent, library, gate, cast(Any, None)))

    async def ingest(self, client: str, name: str, raw: bytes, **more: Any) -> Ingested:
        return await self.ask(client, INGEST, Ingest(name=name, raw=raw, **more))


class Opened(Parts):
    """What the agent is given at its start, with stores that are open already."""

    def __init__(self, stores: Stores, home: Path, embedder: Any = None) -> None:
        super().__init__(Settings(adiyan_home=home), cast(Any, None))
        self._stores = stores
        self._embedder = embedder or stores.embedder

    def embedder(self) -> Any:
        return self._embedder

    async def shelf(self) -> Shelf:
        return self._stores.shelf

    async def passages(self) -> PassageIndex:
        return self._stores.passages

    def embedding_cache(self) -> Any:
        return self._stores.cache

    def ingestions(self) -> Any:
        return self._stores.ingestions


@pytest.fixture(scope="module")
def collection() -> str:
    return f"test-{uuid.uuid4().hex[:12]}"


@pytest.fixture
async def desk(qdrant_url: str, models_url: str, collection: str, tmp_path: Path) -> AsyncIterator[Desk]:
    embedder = OllamaEmbedder(
        models_url,
        model="multilingual-e5-small",
        dims=384,
        query_prefix="query: ",
        document_prefix="passage: ",
    )
    passages = await QdrantPassages.open(qdrant_url, model=embedder.model, dims=384, collection=collection)
    yield Desk(Library(Stores(await DiskShelf.open(tmp_path / "shelf"), passages, embedder)))
    every = qmodels.FieldCondition(key="state", match=qmodels.MatchAny(any=["live", "coming"]))
    await passages._client.delete(collection, qmodels.FilterSelector(filter=qmodels.Filter(must=[every])))
    await passages.close()
    await embedder.close()


# ── incident b: one person's document in another's answer ─────────────────────────────────────────────────────────

Probes = Callable[[DocumentCard], Sequence[Wire]]
PROBES: dict[str, Probes] = {
    RETRIEVE_KNOWLEDGE_BASE.name: lambda card: [
        Search(text="KANARIENVOGEL gala fee", limit=20),
        Search(text="secret-contract"),
    ],
    SEARCH_WITHIN_DOCUMENT.name: lambda card: [SearchWithin(document_id=card.document_id, text="gala fee")],
    FIND_SOURCE_DOCUMENT.name: lambda card: [
        DocumentName(name="secret-contract.md"),
        DocumentName(name="SECRET-CONTRACT"),
        DocumentName(name=f"{ASHA}/secret-contract.md"),
        DocumentName(name="the fee of the gala"),
    ],
    GET_DOCUMENT_TEXT.name: lambda card: [DocumentRef(document_id=card.document_id)],
    GET_DOCUMENT.name: lambda card: [DocumentRef(document_id=card.document_id)],
    LIST_DOCUMENTS.name: lambda card: [Nothing()],
    SHOW_DOCUMENT.name: lambda card: [DocumentRef(document_id=card.document_id)],
}


def shown(outcome: Ok | Failed) -> str:
    """All that the asker gets, the bytes of files included."""
    body = outcome.model_dump(mode="json")
    raw = body["value"].get("raw", "") if isinstance(body.get("value"), dict) else ""
    return json.dumps(body, ensure_ascii=False) + base64.b64decode(raw + "==").decode(errors="replace")


@pytest.mark.parametrize("skill", READ_PATHS, ids=lambda skill: skill.name)
async def test_a_private_document_never_surfaces_for_another(desk: Desk, skill: Skill[Any, Any]) -> None:
    secret = (await desk.ingest(ASHA, "secret-contract.md", SECRET)).document
    await desk.ingest(PUBLISHER, "prices.md", PRICES, visibility="global")
    for probe in PROBES[skill.name](secret):
        own = shown(await desk.run(ASHA, skill, probe))
        assert any(canary in own for canary in CANARIES), "the probe must find it for the one who may see it"
        theirs = shown(await desk.run(BELA, skill, probe))
        leaked = [canary for canary in (*CANARIES, secret.document_id) if canary in theirs]
        assert not leaked, f"{skill.name} shows {leaked}"


@pytest.mark.parametrize("skill", [SEARCH_WITHIN_DOCUMENT, GET_DOCUMENT_TEXT, GET_DOCUMENT], ids=lambda s: s.name)
async def test_what_is_foreign_and_what_is_absent_look_the_same(desk: Desk, skill: Skill[Any, Any]) -> None:
    secret = (await desk.ingest(ASHA, "secret-contract.md", SECRET)).document
    absent = secret.model_copy(update={"document_id": "0" * 32})
    foreign = await desk.run(BELA, skill, PROBES[skill.name](secret)[0])
    assert foreign == await desk.run(BELA, skill, PROBES[skill.name](absent)[0])
    assert isinstance(foreign, Failed)
    assert foreign.code == NotFound.code


async def test_an_answer_never_quotes_anothers_document(desk: Desk) -> None:
    await desk.ingest(ASHA, "secret-contract.md", SECRET)
    question = Ask(text="What is the fee of the gala?")
    assert "7,413" in shown(await desk.run(ASHA, ANSWER_FROM_DOCUMENTS, question))
    theirs = await desk.run(BELA, ANSWER_FROM_DOCUMENTS, question)
    assert not any(canary in shown(theirs) for canary in CANARIES)


async def test_an_index_that_disagrees_with_the_shelf_shows_nothing(desk: Desk, tmp_path: Path) -> None:
    await desk.ingest(ASHA, "secret-contract.md", SECRET)
    desk.library.stores.shelf = await DiskShelf.open(tmp_path / "another")
    assert (await desk.ask(ASHA, RETRIEVE_KNOWLEDGE_BASE, Search(text="gala fee"))).found == ()


async def test_the_system_owner_sees_every_document(desk: Desk) -> None:
    await desk.ingest(ASHA, "secret-contract.md", SECRET)
    assert len((await desk.ask(OWNER, LIST_DOCUMENTS, Nothing())).documents) == 1


# ── finding ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_fact_in_a_file_of_five_sections_is_found(desk: Desk) -> None:
    titles = ["Breakfast", "Pool", "Pets", "Parking", "Wi-Fi"]
    facts = [
        "From 8 to 10.",
        "Open in summer.",
        "Small dogs are fine.",
        "The gate code is 4417.",
        "It is free.",
    ]
    guide = "# Guide\n" + "".join(f"\n## {t}\n{f}\n" for t, f in zip(titles, facts, strict=True))
    await desk.ingest(PUBLISHER, "guide.md", guide.encode(), visibility="global")
    found = await desk.ask(BELA, RETRIEVE_KNOWLEDGE_BASE, Search(text="How do I get my car through the gate?"))
    assert found.found[0].passage == "The gate code is 4417."
    assert found.found[0].heading_path == ("Guide", "Parking")
    assert found.level == "hybrid"


async def test_sections_are_those_of_what_a_file_is_and_not_of_its_name(desk: Desk) -> None:
    page = b"<html><h1>Prices</h1><h2>Rooms</h2><p>A double room costs 84 euros.<h2>Parking</h2><p>It costs 7 euros."
    card = (await desk.ingest(ASHA, "prices.asp", page)).document
    paths = [("Prices", "Rooms"), ("Prices", "Parking")]
    kept = await desk.ask(ASHA, SHOW_DOCUMENT, DocumentRef(document_id=card.document_id))
    assert [each.heading_path for each in kept.chunks] == paths
    indexed = await desk.ask(ASHA, RETRIEVE_KNOWLEDGE_BASE, Search(text="euros of parking and rooms"))
    assert sorted(each.heading_path for each in indexed.found) == sorted(paths)
    fallen = await in_texts(desk.library.stores.shelf, upkeep(), "euros of parking and rooms", limit=5)
    assert sorted(passage.chunk.heading_path for passage, _ in fallen) == sorted(paths)


async def test_neighbours_are_found_in_one_piece_and_twice_told_is_told_once(desk: Desk) -> None:
    story = " ".join(
        f"On day {n} the keeper of the lighthouse at Cape {n} wrote that the lamp burned." for n in range(20)
    )
    await desk.ingest(PUBLISHER, "diary.txt", story.encode(), visibility="global")
    await desk.ingest(PUBLISHER, "copy.txt", story.encode(), visibility="global")
    found = await desk.ask(BELA, RETRIEVE_KNOWLEDGE_BASE, Search(text="What did the keeper of the lighthouse write?"))
    assert [each.passage for each in found.found] == [story]


async def test_each_question_of_a_message_is_searched_for(desk: Desk) -> None:
    await desk.ingest(PUBLISHER, "prices.md", PRICES, visibility="global")
    both = Search(text="What does a double room cost and what does parking cost?", limit=2)
    found = await desk.ask(BELA, RETRIEVE_KNOWLEDGE_BASE, both)
    assert {each.heading_path[-1] for each in found.found} == {"Rooms", "Parking"}


async def test_an_acronym_is_written_out_as_ones_own_documents_do_and_not_anothers(desk: Desk) -> None:
    await desk.ingest(ASHA, "secret-contract.md", b"# S\n\nThe zebra quota ledger (ZQL) is KANARIENVOGEL.")
    await desk.ingest(PUBLISHER, "zebra.md", b"# Z\n\nThe zebra quota ledger is blue.", visibility="global")
    seen: list[str] = []
    queries = desk.library.stores.embedder.queries

    async def heard(texts: Sequence[str]) -> list[Vector]:
        seen.extend(texts)
        return await queries(texts)

    desk.library.stores.embedder.queries = heard  # type: ignore[method-assign]  # to hear what is searched for
    await desk.ask(BELA, RETRIEVE_KNOWLEDGE_BASE, Search(text="What colour is the ZQL?"))
    await desk.ask(ASHA, RETRIEVE_KNOWLEDGE_BASE, Search(text="What colour is the ZQL?"))
    once = "What colour is the ZQL?"
    assert seen == [once, once, f"{once} (zebra quota ledger)"]


async def test_a_follow_up_is_answered_for_what_the_question_before_named(desk: Desk) -> None:
    told = b"# Boats\n\n## Marigold\nMarigold was built in Cadiz.\n\n## Petunia\nPetunia was built in Bergen.\n"
    await desk.ingest(PUBLISHER, "boats.md", told, visibility="global")
    before = (Line(who="person", text="How long is the Petunia?"), Line(who="mesh", text="Twelve metres."))
    answer = await desk.ask(BELA, ANSWER_FROM_DOCUMENTS, Ask(text="Where was it built?", history=before))
    assert "Bergen" in answer.text


FILM = b"# Loose Ankles\nLoose Ankles is a comedy film of 1930 that was directed by Ted Wilde.\n"
WILDE = b"# Ted Wilde\nHe lies at Forest Lawn (KANARIENVOGEL).\n"
OTHER_FILMS = "\n".join(f"# Film {n}\nIt is a film of 19{n}; its director lies in town {n}." for n in range(20, 30))
WHERE_HE_LIES = Search(text="Where does the director of the film Loose Ankles lie buried?", limit=5)


async def test_what_only_a_found_passage_names_is_found_too(desk: Desk) -> None:
    await desk.ingest(ASHA, "film.md", FILM)
    await desk.ingest(ASHA, "others.md", OTHER_FILMS.encode())
    before = await desk.ask(ASHA, RETRIEVE_KNOWLEDGE_BASE, WHERE_HE_LIES)
    await desk.ingest(ASHA, "wilde.md", WILDE)
    after = await desk.ask(ASHA, RETRIEVE_KNOWLEDGE_BASE, WHERE_HE_LIES)
    assert before.found[0].document.name == after.found[0].document.name == "film.md"
    assert [found.document.name for found in after.found].count("wilde.md") == 1
    plain = await desk.library.searching.search(
        Grant(ASHA, frozenset(), tier="default"), WHERE_HE_LIES.text, limit=WHERE_HE_LIES.limit
    )
    assert "wilde.md" not in [hit.document.name for hit in plain.hits], "its own words do not find it"


async def test_a_chain_of_names_is_followed_two_steps(desk: Desk) -> None:
    wives = "\n".join(f"# Film {n}\nThe wife of the director of film {n} lies in town {n}." for n in range(20, 30))
    await desk.ingest(ASHA, "film.md", FILM)
    await desk.ingest(ASHA, "others.md", wives.encode())
    await desk.ingest(ASHA, "wilde.md", b"# Ted Wilde\nHe married Anna Larsen.\n")
    await desk.ingest(ASHA, "larsen.md", b"# Anna Larsen\nShe rests at Forest Lawn.\n")
    asked = Search(text="Where does the wife of the director of the film Loose Ankles lie buried?", limit=5)
    found = (await desk.ask(ASHA, RETRIEVE_KNOWLEDGE_BASE, asked)).found
    assert {"film.md", "wilde.md", "larsen.md"} <= {each.document.name for each in found}


async def test_a_name_that_leads_to_anothers_document_leads_nowhere(desk: Desk) -> None:
    await desk.ingest(ASHA, "film.md", FILM)
    await desk.ingest(ASHA, "others.md", OTHER_FILMS.encode())
    before = await desk.ask(ASHA, RETRIEVE_KNOWLEDGE_BASE, WHERE_HE_LIES)
    secret = (await desk.ingest(BELA, "wilde.md", WILDE)).document
    after = await desk.ask(ASHA, RETRIEVE_KNOWLEDGE_BASE, WHERE_HE_LIES)
    assert [found.passage for found in after.found] == [found.passage for found in before.found], "nor is it counted"
    assert "KANARIENVOGEL" not in after.model_dump_json()
    await desk.ask(BELA, DELETE_DOCUMENT, DocumentRef(document_id=secret.document_id))
    await desk.ingest(PUBLISHER, "wilde.md", WILDE, visibility="global")
    shared = await desk.ask(ASHA, RETRIEVE_KNOWLEDGE_BASE, WHERE_HE_LIES)
    assert "KANARIENVOGEL" in shared.model_dump_json(), "it would be followed if she might see it"


async def test_the_number_of_findings_is_bounded(desk: Desk) -> None:
    many = "\n".join(f"## Room {n}\nRoom {n} looks to the river.\n" for n in range(25))
    await desk.ingest(ASHA, "rooms.md", many.encode())
    for asked, given in ((1000, 20), (3, 3), (-5, 1)):
        found = await desk.ask(ASHA, RETRIEVE_KNOWLEDGE_BASE, Search(text="river room", limit=asked))
        assert len(found.found) == given


async def test_an_empty_question_finds_nothing(desk: Desk) -> None:
    assert (await desk.ask(ASHA, RETRIEVE_KNOWLEDGE_BASE, Search(text="  \n"))).found == ()


@pytest.mark.parametrize("name", ["Prices.md", "prices.MD", "PRICES", " prices.md "])
async def test_a_document_is_found_by_its_name(desk: Desk, name: str) -> None:
    await desk.ingest(PUBLISHER, "prices.md", PRICES, visibility="global")
    found = await desk.ask(BELA, FIND_SOURCE_DOCUMENT, DocumentName(name=name))
    assert [card.name for card in found.documents] == ["prices.md"]


async def test_ones_own_document_comes_before_another_of_that_name(desk: Desk) -> None:
    await desk.ingest(PUBLISHER, "prices.md", PRICES, visibility="global")
    await desk.ingest(BELA, "prices.md", b"My own notes on prices.")
    found = await desk.ask(BELA, FIND_SOURCE_DOCUMENT, DocumentName(name="prices"))
    assert [card.owner for card in found.documents] == [BELA, PUBLISHER]


async def test_a_document_is_found_by_what_is_in_it(desk: Desk) -> None:
    await desk.ingest(ASHA, "a.md", PRICES)
    await desk.ingest(ASHA, "b.md", b"# Yoga\nClasses are at seven in the morning.\n")
    found = await desk.ask(ASHA, FIND_SOURCE_DOCUMENT, DocumentName(name="cost of a double room per night"))
    assert [card.name for card in found.documents] == ["a.md", "b.md"]


async def test_a_file_comes_back_byte_for_byte(desk: Desk) -> None:
    card = (await desk.ingest(ASHA, "prices.md", PRICES)).document
    file = await desk.ask(ASHA, GET_DOCUMENT, DocumentRef(document_id=card.document_id))
    assert (file.raw, file.media_type, file.document) == (PRICES, "text/markdown", card)


# ── answers ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_an_answer_is_a_quotation_with_its_source(desk: Desk) -> None:
    card = (await desk.ingest(PUBLISHER, "prices.md", PRICES, visibility="global")).document
    answer = await desk.ask(BELA, ANSWER_FROM_DOCUMENTS, Ask(text="How much does a double room cost?"))
    assert answer.grounded
    assert answer.text == "A double room costs 84 euros per night."
    (source,) = answer.sources
    assert (source.kind, source.name, source.section) == ("document", "prices.md", "Prices › Rooms")
    assert source.quote == answer.text
    assert source.reference.startswith(f"{card.document_id}#")


async def test_what_no_document_says_is_not_answered(desk: Desk) -> None:
    await desk.ingest(PUBLISHER, "prices.md", PRICES, visibility="global")
    answer = await desk.ask(BELA, ANSWER_FROM_DOCUMENTS, Ask(text="Who won the chess olympiad in 1972?"))
    assert not answer.grounded
    assert answer.sources == ()


async def test_without_documents_nothing_is_answered(desk: Desk) -> None:
    answer = await desk.ask(BELA, ANSWER_FROM_DOCUMENTS, Ask(text="How much does a room cost?"))
    assert not answer.grounded


# ── ingestion ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_document_is_added_then_unchanged_then_replaced(desk: Desk) -> None:
    assert (await desk.ingest(ASHA, "prices.md", PRICES)).outcome == "added"
    before = desk.library.stores.embedder
    desk.library.stores.embedder = cast(Any, None)  # an unchanged document needs none
    assert (await desk.ingest(ASHA, "prices.md", PRICES)).outcome == "unchanged"
    desk.library.stores.embedder = before
    assert (await desk.ingest(ASHA, "prices.md", PRICES.replace(b"84", b"91"))).outcome == "replaced"
    found = await desk.ask(ASHA, RETRIEVE_KNOWLEDGE_BASE, Search(text="double room", limit=20))
    assert "91 euros" in found.found[0].passage
    assert not any("84 euros" in each.passage for each in found.found)
    assert len((await desk.ask(ASHA, LIST_DOCUMENTS, Nothing())).documents) == 1


async def test_publishing_needs_a_permission_that_the_default_tier_lacks(desk: Desk) -> None:
    with pytest.raises(Denied):
        await desk.ingest(ASHA, "prices.md", PRICES, visibility="global")
    assert (await desk.ask(ASHA, LIST_DOCUMENTS, Nothing())).documents == ()


async def test_a_document_can_become_private_again(desk: Desk) -> None:
    await desk.ingest(PUBLISHER, "prices.md", PRICES, visibility="global")
    assert (await desk.ingest(PUBLISHER, "prices.md", PRICES)).outcome == "replaced"
    assert (await desk.ask(BELA, RETRIEVE_KNOWLEDGE_BASE, Search(text="double room"))).found == ()


async def test_only_the_system_owner_adds_in_anothers_name(desk: Desk) -> None:
    with pytest.raises(Denied):
        await desk.ingest(PUBLISHER, "prices.md", PRICES, owner=BELA)
    assert (await desk.ingest(OWNER, "prices.md", PRICES, owner=BELA)).document.owner == BELA
    assert len((await desk.ask(BELA, LIST_DOCUMENTS, Nothing())).documents) == 1


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("../../etc/passwd.txt", "passwd.txt"),
        ("C:\\Users\\a\\prices.md", "prices.md"),
        ("a\u202egpj.txt", "agpj.txt"),
        ("  two\n lines .md", "two lines .md"),
        ("cafe\u0301.md", "café.md"),
        ("x" * 300 + ".md", "x" * 197 + ".md"),
    ],
)
async def test_file_names_are_made_harmless(desk: Desk, sent: str, kept: str) -> None:
    assert (await desk.ingest(ASHA, sent, b"Some words.")).document.name == kept


@pytest.mark.parametrize("name", ["", "..", "/", "\x00\x01", " . "])
async def test_a_file_without_a_name_is_refused(desk: Desk, name: str) -> None:
    with pytest.raises(Malformed, match="no name"):
        await desk.ingest(ASHA, name, b"Some words.")


async def test_a_page_that_could_not_be_read_is_named(desk: Desk) -> None:
    from tests.unit.test_parsing import pdf

    told = await desk.ingest(ASHA, "rules.pdf", pdf("Quiet from ten.", "No smoking.", ""))
    assert told.parts == 3
    (trouble,) = told.troubles
    assert trouble.startswith("page 3: no text could be read")
    (listed,) = (await desk.ask(ASHA, LIST_DOCUMENTS, Nothing())).documents
    assert listed.troubles == told.troubles
    found = await desk.ask(ASHA, RETRIEVE_KNOWLEDGE_BASE, Search(text="When is it quiet?", limit=1))
    assert found.found[0].part == "page 1"


@pytest.mark.parametrize(
    ("name", "raw", "why"),
    [
        ("letter.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "is an old Office file"),
        ("clip.mp4", b"\x00\x00\x00\x18ftypmp42" + bytes(50), "is a video or sound recording"),
        ("letter.rtf", b"{\\rtf1 hello}", "is an RTF document"),
        ("setup", b"MZ" + bytes(600), "is a program"),
    ],
)
async def test_a_kind_that_cannot_be_read_is_named_with_what_can(desk: Desk, name: str, raw: bytes, why: str) -> None:
    with pytest.raises(Unreadable, match=rf"^{name} {why}.*PDF, Word \(\.docx\), Markdown or plain text\.$"):
        await desk.ingest(ASHA, name, raw)


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("cut.pdf", b"%PDF-1.4\n%"),
        ("cut.png", b"\x89PNG\r\n\x1a\n" + bytes(50)),
        ("cut.docx", b"PK\x03\x04xx"),
        ("no.txt", b""),
    ],
)
async def test_a_broken_file_is_unreadable_and_named(desk: Desk, name: str, raw: bytes) -> None:
    with pytest.raises(Unreadable, match=f"^{name} .* send it again"):
        await desk.ingest(ASHA, name, raw)


@pytest.mark.parametrize("name", ["notes.txt", "notes.md"])
async def test_a_text_file_is_one_part_without_trouble(desk: Desk, name: str) -> None:
    told = await desk.ingest(ASHA, name, b"Quiet from ten. No smoking.")
    assert (told.parts, told.troubles, told.document.chunks) == (1, (), 1)


async def test_ten_full_pages_are_counted_and_searchable_to_the_last(desk: Desk) -> None:
    from tests.unit.test_parsing import pdf

    def page(number: int) -> str:
        lines = (
            f"Clause {number}.{line}: the tenant of room {line} pays {number * 100 + line} euros." for line in range(55)
        )
        return ") Tj 0 -13 Td (".join(lines)

    raw = pdf(*(page(number) for number in range(1, 11)))
    told = await desk.ingest(ASHA, "lease.pdf", raw)
    assert (told.parts, told.troubles) == (10, ())
    assert told.document.chunks >= 40
    found = await desk.ask(ASHA, RETRIEVE_KNOWLEDGE_BASE, Search(text="What does clause 10.54 say?", limit=3))
    assert any("1054 euros" in each.passage and each.part == "page 10" for each in found.found)


# ── incident d: the one part that mattered gave no text, and nobody was told ──────────────────────────────────────


def price_list(picture: bytes = b"") -> bytes:
    """Rooms in a table, and packages in a picture."""
    made = WordFile()
    made.add_heading("Casa Verde", 0)
    made.add_heading("Rooms", 1)
    word_files.table(
        ("Room", "Low season", "High season"), ("Double", "84 €", "121 €"), ("Suite", "150 €", "210 €"), into=made
    )
    made.add_heading("Notice", 1)
    made.add_paragraph("The word for the cellar is KANARIENVOGEL.")
    made.add_heading("Packages", 1)
    made.add_picture(io.BytesIO(picture) if picture else word_files.png())
    return word_files.raw_of(made)


@pytest.mark.parametrize("name", ["prices.docx", "prices.doc", "prices"])
async def test_a_row_of_a_table_in_a_word_file_is_answered_with_its_section(desk: Desk, name: str) -> None:
    await desk.ingest(PUBLISHER, name, price_list(), visibility="global")
    answer = await desk.ask(BELA, ANSWER_FROM_DOCUMENTS, Ask(text="How much is the suite in the high season?"))
    assert answer.grounded
    assert "High season: 210 €" in answer.text
    assert "121" not in answer.text
    (source,) = answer.sources
    assert (source.name, source.section) == (name, "Casa Verde › Rooms")


async def test_a_picture_that_cannot_be_read_in_a_word_file_is_named_to_the_one_who_sent_it(
    desk: Desk,
) -> None:
    whole = price_list(word_files.png().getvalue())
    picture = bytearray(word_files.png().getvalue())
    picture[41:51] = bytes(10)  # what is drawn
    damaged = price_list(bytes(picture))
    assert (await desk.ingest(ASHA, "whole.docx", whole)).troubles == ()
    told = await desk.ingest(ASHA, "prices.docx", damaged)
    (trouble,) = told.troubles
    assert trouble.startswith("picture 1 (under “Packages”): its text could not be read")
    listed = {each.name: each for each in (await desk.ask(ASHA, LIST_DOCUMENTS, Nothing())).documents}
    assert listed["prices.docx"].troubles == told.troubles
    again = await desk.ingest(ASHA, "prices.docx", damaged)
    assert again.troubles == told.troubles


async def test_a_page_that_is_a_picture_is_read_and_found(desk: Desk) -> None:
    from tests.unit.drawn import drawn, scan

    told = await desk.ingest(ASHA, "deck.pdf", scan(drawn("The sailing package costs 310 euros."), drawn("Thank you.")))
    assert told.troubles == ()
    found = await desk.ask(ASHA, RETRIEVE_KNOWLEDGE_BASE, Search(text="What does the sailing package cost?", limit=1))
    assert (found.found[0].passage, found.found[0].part) == ("The sailing package costs 310 euros.", "page 1")


async def test_anothers_word_file_does_not_exist(desk: Desk) -> None:
    await desk.ingest(ASHA, "prices.docx", price_list())
    question = Ask(text="What is the word for the cellar?")
    assert "KANARIENVOGEL" in shown(await desk.run(ASHA, ANSWER_FROM_DOCUMENTS, question))
    assert "KANARIENVOGEL" not in shown(await desk.run(BELA, ANSWER_FROM_DOCUMENTS, question))
    found = await desk.ask(BELA, RETRIEVE_KNOWLEDGE_BASE, Search(text="KANARIENVOGEL cellar", limit=20))
    assert found.found == ()


async def test_a_file_that_cannot_be_read_leaves_nothing_behind(desk: Desk, tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match=r"menu\.pdf is damaged"):
        await desk.ingest(ASHA, "menu.pdf", b"\x89PNG\r\n\x1a\n" + bytes(50))
    assert (await desk.ask(ASHA, LIST_DOCUMENTS, Nothing())).documents == ()
    assert list((tmp_path / "shelf" / "raw").iterdir()) == []


async def test_an_ingestion_that_broke_off_is_finished_at_the_next_start(desk: Desk, tmp_path: Path) -> None:
    working = desk.library.stores.passages
    await desk.ingest(ASHA, "prices.md", PRICES)
    desk.library.stores.passages = cast(Any, None)  # as if the process died while it wrote vectors
    assert isinstance(await desk.run(ASHA, INGEST, Ingest(name="prices.md", raw=PRICES + b"New.")), Failed)

    shelf = await DiskShelf.open(tmp_path / "shelf")
    restarted = Library(Stores(shelf, working, desk.library.stores.embedder))
    found = await Desk(restarted).ask(ASHA, RETRIEVE_KNOWLEDGE_BASE, Search(text="double room", limit=20))
    assert found.found, "the old version answers meanwhile"
    async with asyncio.timeout(30):
        assert await restarted.ingesting.finish_interrupted()
    (card,) = (await Desk(restarted).ask(ASHA, LIST_DOCUMENTS, Nothing())).documents
    assert card.size == len(PRICES) + 4


async def test_a_deleted_index_is_made_again_from_the_files(desk: Desk, qdrant_url: str, models_url: str) -> None:
    await desk.ingest(ASHA, "prices.md", PRICES)
    client = AsyncQdrantClient(qdrant_url, check_compatibility=False)
    elsewhere = f"test-{uuid.uuid4().hex[:12]}"
    desk.library.stores.passages = await QdrantPassages.open(
        qdrant_url, model=desk.library.stores.embedder.model, dims=384, collection=elsewhere
    )
    assert not (await desk.ask(ASHA, RETRIEVE_KNOWLEDGE_BASE, Search(text="double room"))).found
    assert await desk.library.ingesting.finish_interrupted()
    found = (await desk.ask(ASHA, RETRIEVE_KNOWLEDGE_BASE, Search(text="double room"))).found
    assert "84 euros" in found[0].passage
    assert not (await desk.ask(BELA, RETRIEVE_KNOWLEDGE_BASE, Search(text="double room"))).found
    await desk.library.stores.passages.close()
    await client.delete_collection(elsewhere)
    await client.close()


async def test_a_version_that_broke_off_does_not_come_after_one_that_was_sent_later(desk: Desk) -> None:
    working = desk.library.stores.passages
    await desk.ingest(ASHA, "prices.md", PRICES)
    desk.library.stores.passages = cast(Any, None)
    await desk.run(ASHA, INGEST, Ingest(name="prices.md", raw=PRICES + b"A mistake."))
    desk.library.stores.passages = working
    assert (await desk.ingest(ASHA, "prices.md", PRICES)).outcome == "replaced"
    assert await desk.library.ingesting.finish_interrupted()
    (card,) = (await desk.ask(ASHA, LIST_DOCUMENTS, Nothing())).documents
    assert card.size == len(PRICES)


async def test_an_ingestion_that_ran_out_of_time_is_finished_in_the_background(desk: Desk, tmp_path: Path) -> None:
    library = desk.library

    class Slow:
        model, dims = library.stores.embedder.model, library.stores.embedder.dims
        queries = alike = staticmethod(library.stores.embedder.queries)
        waits = True

        async def probe(self) -> None:
            pass

        async def documents(self, texts: Sequence[str]) -> list[Vector]:
            if Slow.waits:
                await asyncio.Event().wait()
            return await library.stores.embedder.documents(texts)

    async with open_library(Opened(library.stores, tmp_path, Slow())) as opened:
        slow = Desk(opened)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(2):
                await slow.ingest(ASHA, "prices.md", PRICES)
        Slow.waits = False
        async with asyncio.timeout(20):
            while not (await slow.ask(ASHA, LIST_DOCUMENTS, Nothing())).documents:
                await asyncio.sleep(0.05)


# ── who sees it, afterwards ───────────────────────────────────────────────────────────────────────────────────────


class Broken:
    """A store that breaks when this is called: before it does anything, or after it has done it."""

    def __init__(self, store: Any, call: str, *, done: bool = False) -> None:
        self._store, self._call, self._done = store, call, done

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._store, name)

        async def breaks(*given: Any) -> None:
            if self._done:
                await real(*given)
            raise Unavailable(detail="broken")

        return breaks if name == self._call else real


async def show(desk: Desk, client: str, card: DocumentCard, visibility: Visibility) -> DocumentCard:
    return await desk.ask(client, SET_VISIBILITY, Visible(document_id=card.document_id, visibility=visibility))


async def seen(desk: Desk, client: str, card: DocumentCard) -> set[str]:
    """By which read paths; what an index holds that the shelf does not show is looked for, too."""
    paths = set()
    for skill in READ_PATHS:
        for probe in PROBES[skill.name](card):
            answer = shown(await desk.run(client, skill, probe))
            if any(canary in answer for canary in CANARIES):
                paths.add(skill.name)
    return paths


EVERY_PATH = {skill.name for skill in READ_PATHS}


async def test_a_document_is_shared_with_everyone_and_taken_back(desk: Desk) -> None:
    card = (await desk.ingest(PUBLISHER, "secret-contract.md", SECRET)).document
    assert await seen(desk, BELA, card) == set()
    assert (await show(desk, PUBLISHER, card, "global")).visibility == "global"
    assert await seen(desk, BELA, card) == EVERY_PATH
    assert await show(desk, PUBLISHER, card, "private") == card
    assert await seen(desk, BELA, card) == set()
    assert await seen(desk, PUBLISHER, card) == EVERY_PATH


async def test_sharing_with_everyone_needs_a_permission_of_its_own_and_says_so(desk: Desk) -> None:
    card = (await desk.ingest(ASHA, "secret-contract.md", SECRET)).document
    with pytest.raises(Denied, match=r"isn't part of your plan\. It stays visible to you alone"):
        await show(desk, ASHA, card, "global")
    with pytest.raises(Denied, match="stays visible to you alone"):
        await desk.ingest(ASHA, "more.md", SECRET, visibility="global")
    assert await seen(desk, BELA, card) == set()


async def test_one_may_always_take_ones_own_document_back(desk: Desk) -> None:
    """Also who may publish no more."""
    card = (await desk.ingest(OWNER, "secret-contract.md", SECRET, owner=ASHA, visibility="global")).document
    assert (await show(desk, ASHA, card, "private")).visibility == "private"
    assert await seen(desk, BELA, card) == set()


async def test_the_system_owner_may_change_and_delete_anybodys_document(desk: Desk) -> None:
    card = (await desk.ingest(ASHA, "secret-contract.md", SECRET)).document
    assert (await show(desk, OWNER, card, "global")).owner == ASHA
    assert await seen(desk, BELA, card) == EVERY_PATH
    assert (await desk.ask(OWNER, DELETE_DOCUMENT, DocumentRef(document_id=card.document_id))).name == card.name
    assert await seen(desk, ASHA, card) == set()


def wishes(document_id: str) -> dict[str, tuple[Skill[Any, Any], Wire]]:
    return {
        "private": (SET_VISIBILITY, Visible(document_id=document_id, visibility="private")),
        "global": (SET_VISIBILITY, Visible(document_id=document_id, visibility="global")),
        "delete": (DELETE_DOCUMENT, DocumentRef(document_id=document_id)),
    }


@pytest.mark.parametrize("wish", ["private", "global", "delete"])
@pytest.mark.parametrize("visibility", ["private", "global"])
async def test_to_who_is_not_its_owner_a_document_is_absent(desk: Desk, wish: str, visibility: Visibility) -> None:
    """In what is said; and nothing is waited for, though its owner is at it."""
    card = (await desk.ingest(OWNER, "secret-contract.md", SECRET, owner=ASHA, visibility=visibility)).document
    async with desk.library.stores.shelf.hold(card.document_id), asyncio.timeout(10):
        foreign = await desk.run(PUBLISHER, *wishes(card.document_id)[wish])
    assert foreign == await desk.run(PUBLISHER, *wishes("0" * 32)[wish])
    assert isinstance(foreign, Failed)
    assert foreign.code == NotFound.code
    assert (await desk.ask(ASHA, LIST_DOCUMENTS, Nothing())).documents == (card,)


@pytest.mark.parametrize("wish", ["private", "delete"])
async def test_what_is_foreign_takes_as_long_as_what_is_absent(desk: Desk, wish: str) -> None:
    card = (await desk.ingest(ASHA, "secret-contract.md", SECRET)).document
    took: dict[str, list[float]] = {"foreign": [], "absent": []}
    for _ in range(40):
        for what, document_id in (("foreign", card.document_id), ("absent", "0" * 32)):
            began = time.perf_counter()
            await desk.run(BELA, *wishes(document_id)[wish])
            took[what].append(time.perf_counter() - began)
    foreign, absent = sorted(took["foreign"])[20], sorted(took["absent"])[20]
    assert 0.5 < foreign / absent < 2


@pytest.mark.parametrize(("before", "after"), [("private", "global"), ("global", "private")])
@pytest.mark.parametrize("store", ["shelf", "passages"])
@pytest.mark.parametrize("done", [False, True])
async def test_wherever_a_change_breaks_off_the_stricter_rule_holds_until_it_is_done_all_the_same(
    desk: Desk, before: Visibility, after: Visibility, store: str, done: bool
) -> None:
    library = desk.library
    card = (await desk.ingest(PUBLISHER, "secret-contract.md", SECRET, visibility=before)).document
    working = getattr(library.stores, store)
    setattr(library.stores, store, Broken(working, "set_visibility", done=done))
    with pytest.raises(Unavailable):
        await show(desk, PUBLISHER, card, after)
    setattr(library.stores, store, working)

    (shelved,) = await library.stores.shelf.documents(upkeep())
    agreed = await library.stores.passages.indexed(upkeep(), visibility=shelved.visibility) == {card.document_id}
    expected = EVERY_PATH if shelved.visibility == "global" and agreed else set()
    assert await seen(desk, BELA, card) == expected
    assert await seen(desk, PUBLISHER, card) == EVERY_PATH
    assert (expected == EVERY_PATH) == (after == "global" and store == "shelf" and done)
    (listed,) = (await desk.ask(PUBLISHER, LIST_DOCUMENTS, Nothing())).documents
    assert listed.becoming == ("" if store == "shelf" and done else after), "where it stands is told"

    restarted = Library(Stores(library.stores.shelf, library.stores.passages, library.stores.embedder))
    assert await restarted.ingesting.finish_interrupted()
    assert await library.stores.passages.indexed(upkeep(), visibility=after) == {card.document_id}
    assert await library.stores.passages.indexed(upkeep(), visibility=before) == set()
    assert await seen(Desk(restarted), BELA, card) == (EVERY_PATH if after == "global" else set())
    (listed,) = (await desk.ask(PUBLISHER, LIST_DOCUMENTS, Nothing())).documents
    assert (listed.visibility, listed.becoming) == (after, "")


async def test_a_version_that_is_not_finished_yet_comes_out_as_private_as_was_wished_meanwhile(
    desk: Desk,
) -> None:
    library = desk.library
    card = (await desk.ingest(PUBLISHER, "secret-contract.md", SECRET, visibility="global")).document
    working, library.stores.passages = library.stores.passages, cast(Any, Broken(library.stores.passages, "put"))
    with pytest.raises(Unavailable):
        await desk.ingest(PUBLISHER, "secret-contract.md", SECRET + b"More.", visibility="global")
    library.stores.passages = working
    await show(desk, PUBLISHER, card, "private")
    assert await library.ingesting.finish_interrupted()
    (listed,) = (await desk.ask(PUBLISHER, LIST_DOCUMENTS, Nothing())).documents
    assert (listed.size, listed.visibility) == (len(SECRET) + 5, "private")
    assert await seen(desk, BELA, card) == set()


# ── deleting ──────────────────────────────────────────────────────────────────────────────────────────────────────


async def delete(desk: Desk, client: str, card: DocumentCard) -> DocumentCard:
    return await desk.ask(client, DELETE_DOCUMENT, DocumentRef(document_id=card.document_id))


async def test_a_deleted_document_is_in_no_store(desk: Desk, tmp_path: Path) -> None:
    card = (await desk.ingest(PUBLISHER, "secret-contract.md", SECRET, visibility="global")).document
    kept = (await desk.ingest(PUBLISHER, "prices.md", PRICES)).document
    assert await delete(desk, PUBLISHER, card) == card
    assert await seen(desk, PUBLISHER, card) == set()
    with pytest.raises(NotFound):
        await delete(desk, PUBLISHER, card)
    assert await desk.library.stores.passages.indexed(upkeep()) == {kept.document_id}
    assert await desk.library.stores.shelf.leaving(upkeep()) == []
    files = [file for file in (tmp_path / "shelf").rglob("*") if file.is_file()]
    assert not [file for file in files if any(canary.encode() in file.read_bytes() for canary in CANARIES)]
    assert (await desk.ask(PUBLISHER, LIST_DOCUMENTS, Nothing())).documents == (kept,)
    assert (await desk.ingest(PUBLISHER, "secret-contract.md", SECRET)).outcome == "added"


@pytest.mark.parametrize(
    ("store", "call", "done"),
    [
        ("shelf", "delete", True),
        ("passages", "delete", False),
        ("passages", "delete", True),
        ("shelf", "gone", False),
        ("shelf", "gone", True),
    ],
)
async def test_a_deletion_that_breaks_off_ends_in_the_document_being_gone(
    desk: Desk, store: str, call: str, done: bool
) -> None:
    library = desk.library
    card = (await desk.ingest(ASHA, "secret-contract.md", SECRET)).document
    working = getattr(library.stores, store)
    setattr(library.stores, store, Broken(working, call, done=done))
    with pytest.raises(Unavailable):
        await delete(desk, ASHA, card)
    setattr(library.stores, store, working)
    assert await seen(desk, ASHA, card) == set(), "it answers no more, though it is not all gone"

    assert await Library(
        Stores(library.stores.shelf, library.stores.passages, library.stores.embedder)
    ).ingesting.finish_interrupted()
    assert await library.stores.passages.indexed(upkeep()) == set()
    assert await library.stores.shelf.leaving(upkeep()) == []
    assert (await desk.ask(ASHA, LIST_DOCUMENTS, Nothing())).documents == ()


async def test_deleting_again_takes_up_what_broke_off_and_its_owner_is_told_that_it_is_out_of_sight(
    desk: Desk,
) -> None:
    library = desk.library
    card = (await desk.ingest(ASHA, "secret-contract.md", SECRET)).document
    working, library.stores.passages = library.stores.passages, cast(Any, Broken(library.stores.passages, "delete"))
    with pytest.raises(Unavailable, match=r"Nobody can see secret-contract\.md any more"):
        await delete(desk, ASHA, card)
    library.stores.passages = working
    with pytest.raises(NotFound):
        await show(desk, ASHA, card, "private")
    with pytest.raises(NotFound):
        await delete(desk, BELA, card)
    assert (await delete(desk, ASHA, card)).name == card.name
    assert await library.stores.passages.indexed(upkeep()) == set()


async def test_what_broke_off_before_anything_was_done_leaves_the_document_as_it_was(desk: Desk) -> None:
    library = desk.library
    card = (await desk.ingest(ASHA, "secret-contract.md", SECRET)).document
    working, library.stores.shelf = library.stores.shelf, cast(Any, Broken(library.stores.shelf, "delete"))
    with pytest.raises(Unavailable):
        await delete(desk, ASHA, card)
    library.stores.shelf = working
    assert await library.ingesting.finish_interrupted()
    assert await seen(desk, ASHA, card) == EVERY_PATH


async def test_a_version_that_was_coming_does_not_come_after_the_deletion(desk: Desk) -> None:
    library = desk.library
    card = (await desk.ingest(ASHA, "secret-contract.md", PRICES)).document
    working, library.stores.passages = library.stores.passages, cast(Any, Broken(library.stores.passages, "put"))
    with pytest.raises(Unavailable):
        await desk.ingest(ASHA, "secret-contract.md", SECRET)
    library.stores.passages = working
    await delete(desk, ASHA, card)
    assert await library.ingesting.finish_interrupted()
    assert await seen(desk, ASHA, card) == set()
    assert await library.stores.passages.indexed(upkeep()) == set()


async def test_a_first_version_that_never_came_can_be_deleted(desk: Desk) -> None:
    library = desk.library
    working, library.stores.passages = (
        library.stores.passages,
        cast(Any, Broken(library.stores.passages, "put", done=True)),
    )
    with pytest.raises(Unavailable):
        await desk.ingest(ASHA, "secret-contract.md", SECRET)
    library.stores.passages = working
    (coming,) = await library.stores.shelf.unfinished(upkeep())
    await desk.ask(ASHA, DELETE_DOCUMENT, DocumentRef(document_id=coming.document_id))
    assert await library.ingesting.finish_interrupted()
    assert await library.stores.passages.indexed(upkeep()) == set()
    assert (await desk.ask(ASHA, LIST_DOCUMENTS, Nothing())).documents == ()


async def test_what_is_sent_again_before_the_deletion_is_finished_stays(desk: Desk) -> None:
    library = desk.library
    card = (await desk.ingest(ASHA, "secret-contract.md", SECRET)).document
    working, library.stores.passages = library.stores.passages, cast(Any, Broken(library.stores.passages, "delete"))
    with pytest.raises(Unavailable):
        await delete(desk, ASHA, card)
    library.stores.passages = working
    assert (await desk.ingest(ASHA, "secret-contract.md", SECRET)).outcome == "added"
    assert await library.ingesting.finish_interrupted()
    assert await seen(desk, ASHA, card) == EVERY_PATH
    assert await seen(desk, BELA, card) == set()


async def test_an_unfinished_deletion_is_taken_up_in_the_background(desk: Desk, tmp_path: Path) -> None:
    library = desk.library
    card = (await desk.ingest(ASHA, "secret-contract.md", SECRET)).document

    async with open_library(Opened(library.stores, tmp_path)) as opened:
        opened.stores.passages, working = cast(Any, Broken(library.stores.passages, "delete")), opened.stores.passages
        with pytest.raises(Unavailable):
            await delete(Desk(opened), ASHA, card)
        opened.stores.passages = working
        async with asyncio.timeout(20):
            while await library.stores.shelf.leaving(upkeep()):
                await asyncio.sleep(0.05)
    assert await library.stores.passages.indexed(upkeep()) == set()
