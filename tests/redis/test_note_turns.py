"""Notes, from a message to its confirmation: the driver, the orchestrator's own handler, and a real knowledge agent
behind it."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from agents.knowledge import agent as knowledge
from agents.knowledge.library import Library
from agents.knowledge.stores import Stores
from agents.orchestrator import Desk
from agents.orchestrator import agent as orchestrator
from agents.orchestrator.turns import MOST_CLAIMS
from mesh.access import Gate, Grant
from mesh.adapters.ollama import OllamaEmbedder
from mesh.adapters.qdrant import QdrantPassages
from mesh.adapters.shelf import DiskShelf
from mesh.catalogue import say
from mesh.contracts.documents import ANSWER_FROM_DOCUMENTS
from mesh.contracts.memory import REMEMBER
from mesh.contracts.notes import SAVE_NOTE
from mesh.contracts.orchestrator import CONVERSE, Reply
from mesh.dispatch import Dispatcher
from mesh.envelope import Failed, Ok, Request
from mesh.ports.people import Client, Tier
from tests.processes import models, qdrant
from tests.redis.turn_stage import Stage

ALL = frozenset({"chat:converse", "knowledge:search", "documents:add", "memory:recall", "memory:write"})


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    with qdrant(tmp_path_factory.mktemp("qdrant")) as index, models(tmp_path_factory.mktemp("models")) as served:
        yield index, served


class Killed(BaseException):
    """As good as the end of a process: nothing handles it."""


@dataclass
class Town:
    """Who may what; one for all people of a test."""

    permissions: frozenset[str] = ALL

    async def client(self, identity: str) -> Client | None:
        return Client(identity, "someone", "default")

    async def tier(self, name: str) -> Tier | None:
        return Tier(name, self.permissions)


@dataclass
class Line:
    """The bus, without a queue between: the knowledge agent's dispatcher answers at once."""

    dispatcher: Dispatcher
    asked: list[str] = field(default_factory=list)
    dies_after: int = 99
    """Of saves: the worker is killed when that many are done, before it can say so."""

    async def ask(self, request: Request) -> Ok | Failed:
        self.asked.append(request.skill)
        outcome = await self.dispatcher.run(request)
        if request.skill == SAVE_NOTE.name:
            self.dies_after -= 1
            if self.dies_after == 0:
                raise Killed
        return outcome


@dataclass
class Chat:
    stage: Stage
    library: Library
    town: Town
    line: Line
    orchestrator: Dispatcher
    count: int = 0

    async def local(self, request: Request) -> Ok | Failed:
        return await self.orchestrator.run(request) if request.skill == CONVERSE.name else self.stage.cleared

    async def hears(self, text: str, *, quoted: str = "", message_id: str = "", **more: Any) -> str:
        self.count += 1
        message_id = message_id or f"SM{self.stage.person}-{self.count}"
        return await self.stage.hear(message_id, text, quoted=quoted, **more)

    async def says(self, text: str, *, quoted: str = "", **more: Any) -> str:
        """What comes back."""
        before = len(await self.stage.received())
        await self.hears(text, quoted=quoted, **more)
        await self.stage.driver.take(self.stage.chat, self.local)
        return "\n---\n".join((await self.stage.received())[before:])

    async def last_sid(self) -> str:
        return (await self.stage.phone.replies(self.stage.person))[-1].sid

    @property
    def grant(self) -> Grant:
        return Grant(self.stage.person, frozenset(), tier="default")

    async def notes(self) -> list[str]:
        return [note.begins for note in await self.library.stores.shelf.notes.noted(self.grant)][::-1]

    async def steps(self) -> set[tuple[str, str, str]]:
        shelf = self.library.stores.shelf
        noted = {note.document_id: note.begins for note in await shelf.notes.noted(self.grant)}
        found = await shelf.notes.near(self.grant, list(noted))
        return {(noted[step.document_id], noted[step.other], step.kind) for step in found}


@pytest.fixture
async def chat(stage: Stage, urls: tuple[str, str], tmp_path: Path) -> AsyncIterator[Chat]:
    index, served = urls
    embedder = OllamaEmbedder(
        served, model="multilingual-e5-small", dims=384, query_prefix="query: ", document_prefix="passage: "
    )
    passages = await QdrantPassages.open(index, model=embedder.model, dims=384, collection=f"t-{uuid.uuid4().hex[:12]}")
    library = Library(Stores(await DiskShelf.open(tmp_path / "shelf"), passages, embedder))
    town = Town()
    gate = Gate(town, system_owner="+15550000000", unknown_tier="default", fresh_for=0)
    line = Line(Dispatcher(knowledge, library, gate, cast(Any, None)))
    nowhere = cast(Any, None)  # no message of these tests is routed by its likeness to an example
    desk = Desk(stage.driver, stage.sender, nowhere, nowhere, greets=False)
    yield Chat(stage, library, town, line, Dispatcher(orchestrator, desk, gate, cast(Any, line)))
    await passages.close()
    await embedder.close()


# ── saving ────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_note_is_confirmed_with_its_name_its_tags_and_the_way_back(chat: Chat) -> None:
    said = await chat.says("note: The berth costs 7 euros #boat, see [[Plan]]")
    day = f"{datetime.now(UTC).astimezone():%Y-%m-%d}"
    assert said.splitlines() == [
        say("note_saved", "en", name=f"The berth costs 7 euros see Plan {day}.md"),
        say("note_tags", "en", tags="#boat"),
        say("note_links", "en", links="[[Plan]]"),
        say("document_visible_to", "en", who_sees=say("seen_by_you", "en")),
        say("note_undo", "en"),
    ]
    assert await chat.notes() == ["The berth costs 7 euros #boat, see [[Plan]]"]
    assert REMEMBER.name not in chat.line.asked


async def test_delete_undoes_it_at_once_or_later_as_a_reply_to_its_confirmation(chat: Chat) -> None:
    await chat.says("note: one")
    sid = await chat.last_sid()
    await chat.says("note: two")
    assert "*Two" in await chat.says("delete")
    assert await chat.notes() == ["one"]
    await chat.says("note: three")
    assert "*One" in await chat.says("delete", quoted=sid)
    assert await chat.notes() == ["three"]


async def test_two_notes_in_one_breath_are_two(chat: Chat) -> None:
    chat.stage.be_quiet(0.2)
    await chat.hears("note: a is red")
    said = await chat.says("note: b is blue")
    assert said.count(say("note_undo", "en")) == 2
    assert await chat.notes() == ["a is red", "b is blue"]


async def test_a_worker_that_dies_after_saving_saves_once_and_tells_it_as_new(chat: Chat) -> None:
    chat.line.dies_after = 1
    with pytest.raises(Killed):
        await chat.says("note: the spare key is with Marta")
    assert await chat.notes() == ["the spare key is with Marta"]
    await chat.stage.driver.take(chat.stage.chat, chat.local)
    (said,) = await chat.stage.received()
    assert say("note_saved", "en", name="")[:-1] in said
    assert chat.line.asked.count(SAVE_NOTE.name) == 2 < MOST_CLAIMS
    assert await chat.notes() == ["the spare key is with Marta"]


@pytest.mark.parametrize(
    ("language", "text"),
    [("es", "nota: pan"), ("fr", "note : pain"), ("de", "Notiz: Brot"), ("pt", "nota: pão"), ("hi", "नोट: रोटी")],
)
async def test_it_is_confirmed_in_the_persons_language(chat: Chat, language: str, text: str) -> None:
    await chat.stage.sender.people.note(chat.stage.person, language=language)
    assert say("note_undo", language) in await chat.says(text)
    assert await chat.notes() == [text.partition(":")[2].strip()]


async def test_an_empty_note_is_asked_about_and_an_endless_one_is_to_be_a_file(chat: Chat) -> None:
    assert await chat.says("note:") == say("note_ask", "en")
    assert "too long for a note" in await chat.says("note: " + "x " * 60_000)
    assert "nothing in that note" in await chat.says("note: \u202e\u2066")
    assert await chat.notes() == []


async def test_who_may_add_no_documents_may_save_no_notes(chat: Chat) -> None:
    chat.town.permissions = ALL - {"documents:add"}
    assert await chat.says("note: secret") == say("may_not_add_documents", "en")
    assert chat.line.asked == []


# ── saving what was said ──────────────────────────────────────────────────────────────────────────────────────────


def answering(text: str) -> Reply:
    return Reply(text=text, skill=ANSWER_FROM_DOCUMENTS.name)


async def heard_and_answered(chat: Chat, text: str, reply: Reply) -> str:
    """A turn of another skill's; the id of the message."""
    before = chat.stage.says
    chat.stage.says = lambda request: Ok(value=reply.model_dump(mode="json"))
    message_id = await chat.hears(text)
    await chat.stage.take()
    chat.stage.says = before
    if reply.skill:
        await chat.stage.sender.people.note(chat.stage.person, answered_by=message_id)
    return message_id


async def test_save_this_as_a_reply_saves_that_message_of_theirs_or_ours(chat: Chat) -> None:
    mine = await heard_and_answered(chat, "Marta mends sails.", Reply(text="Good to know."))
    ours = await chat.last_sid()
    await heard_and_answered(chat, "Something else.", Reply(text="Yes."))
    assert say("note_saved_theirs", "en", name="*")[:20] in await chat.says("save this", quoted=mine)
    assert say("note_saved_ours", "en", name="*")[:20] in await chat.says("save this", quoted=ours)
    assert await chat.notes() == ["Marta mends sails.", "Good to know."]
    assert ("Good to know.", "Marta mends sails.", "reply") in await chat.steps(), "it answered that message"


async def test_save_this_alone_saves_the_answer_to_a_question_and_else_what_they_wrote(chat: Chat) -> None:
    await heard_and_answered(chat, "How much is a berth?", answering("7 euros."))
    assert "my answer" in await chat.says("save this")
    await heard_and_answered(chat, "Marta mends sails.", Reply(text="Good to know."))
    await chat.says("/help")
    assert "your message" in await chat.says("save this")
    assert await chat.notes() == ["How much is a berth?\n\n7 euros.", "Marta mends sails."]


async def test_what_is_gone_or_was_never_said_is_not_saved(chat: Chat) -> None:
    assert await chat.says("save this") == say("save_nothing", "en")
    assert await chat.says("save this", quoted="SMlong-ago") == say("save_gone", "en")
    assert await chat.notes() == []


async def test_another_chats_message_cannot_be_saved_by_its_id(chat: Chat) -> None:
    message_id = await heard_and_answered(chat, "KANARIENVOGEL", Reply(text="7,413"))
    ours = await chat.last_sid()
    other = chat.stage.person
    chat.stage.person = other[:-1] + str((int(other[-1]) + 1) % 10) + "9"
    for quoted in (message_id, ours):
        assert await chat.says("save this", quoted=quoted) == say("save_gone", "en")
    assert "KANARIENVOGEL" not in await chat.says("note: mine", quoted=message_id)
    assert await chat.notes() == ["mine"]


async def test_a_note_that_replies_to_a_notes_confirmation_leads_to_it(chat: Chat) -> None:
    await chat.says("note: Berth plan")
    await chat.says("note: Marta must see it", quoted=await chat.last_sid())
    assert {("Marta must see it", "Berth plan", "reply"), ("Berth plan", "Marta must see it", "reply")} <= (
        await chat.steps()
    )


# ── asking ────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_what_was_saved_this_week_is_listed_and_a_single_one_can_be_deleted_from_there(chat: Chat) -> None:
    await chat.says("note: Parking behind the harbour is free after six #boat")
    await chat.says("note: Marta mends sails")
    said = await chat.says("What did I save this week?")
    assert said.startswith("Your notes · ")
    assert said.index("Marta") < said.index("Parking")
    said = await chat.says("what did I save this week about parking?")
    assert "harbour is free" in said
    assert "Marta" not in said
    assert "*Parking" in await chat.says("delete", quoted=await chat.last_sid())
    assert await chat.notes() == ["Marta mends sails"]


async def test_what_was_saved_before_or_with_another_tag_is_not_listed(chat: Chat) -> None:
    await chat.says("note: Parking is free #boat")
    last_year = datetime.now(UTC).astimezone().year - 1
    for asked in ("my notes from yesterday", "notes tagged #sail", f"my notes from {last_year}-05-01"):
        said = await chat.says(asked)
        assert "Parking" not in said
        assert say("notes_none", "en", facts="~").split("~")[0] in said
    assert "Parking" in await chat.says("notes tagged #Boat")
    assert "Parking" in await chat.says("/notes parking")
    assert "Parking" in await chat.says("my notes")


async def test_it_is_asked_in_spanish_too(chat: Chat) -> None:
    await chat.says("nota: El aparcamiento del puerto es gratis")
    said = await chat.says("¿Qué guardé esta semana sobre el aparcamiento?")
    assert said.startswith("Tus notas · ")
    assert "puerto es gratis" in said
    assert "gratis" not in await chat.says("mis notas de ayer")


async def test_notes_are_told_apart_among_the_files_and_in_what_is_kept(chat: Chat) -> None:
    await chat.says("note: Parking is free")
    said = await chat.says("/files")
    assert said.startswith(say("files_notes", "en", count=1))
    chat.town.permissions = ALL - {"memory:recall"}
    assert say("mydata_notes", "en", count=1) in await chat.says("/mydata")


async def test_a_day_is_the_days_of_the_meshs_own_clock(chat: Chat) -> None:
    await chat.says("note: late")
    (note,) = await chat.library.stores.shelf.notes.noted(chat.grant)
    assert abs(note.saved_at - datetime.now(UTC)) < timedelta(minutes=2)
    assert "late" in await chat.says("my notes from today")
