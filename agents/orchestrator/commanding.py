"""What a person asks of the mesh itself: their files, what is kept of them, a human, and why it said that."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from agents.orchestrator.alerts import Alerts
from agents.orchestrator.standing import still_there
from mesh.catalogue import say
from mesh.commands import ALL, Command
from mesh.context import Context
from mesh.contracts.answers import Nothing, Source
from mesh.contracts.documents import (
    DELETE_DOCUMENT,
    FIND_SOURCE_DOCUMENT,
    LIST_DOCUMENTS,
    SET_VISIBILITY,
    DocumentCard,
    DocumentName,
    DocumentRef,
    Visible,
)
from mesh.contracts.memory import EXPORT_MEMORY, FORGET, Forget
from mesh.contracts.orchestrator import Piece, Reply, Turn
from mesh.errors import NotFound
from mesh.lease import KEPT_MS, TurnRecord
from mesh.ledger import Ledger
from mesh.people import People, Person

QUOTED = 200
"""Characters of a source that `/why` shows."""
NOTES_SHOWN = 10
"""By `/files`, of the newest; `/notes` lists more."""
RECENT_S = 3600
"""For so long a file is `it`: what is deleted can't be had back."""
KEPT_DAYS = KEPT_MS // 86_400_000


@dataclass(frozen=True, slots=True)
class Order:
    command: Command
    turn: Turn
    person: Person
    language: str
    ledger: Ledger
    people: People
    alerts: Alerts

    def say(self, key: str, **values: object) -> str:
        return say(key, self.language, **values)


Obey = Callable[[Order, Context[Any]], Awaitable[Reply]]
"""Raises what the asked agents fail with; its text is for the person."""


async def _help(order: Order, _: Context[Any]) -> Reply:
    return Reply(text=order.say("help"))


async def _cancel(order: Order, _: Context[Any]) -> Reply:
    return Reply(text=order.say("nothing_to_cancel"))


async def _why(order: Order, ctx: Context[Any]) -> Reply:
    """What was deleted, forgotten or made private since is quoted no more."""
    turn = await order.ledger.turn(order.person.answered_by) if order.person.answered_by else None
    sources = await still_there(turn.reply.sources if turn and turn.reply else (), ctx)
    if not sources:
        return Reply(text=order.say("why_nothing"))
    lines = dict.fromkeys(order.say("why_line", name=_source(each)) for each in sources)
    return Reply(text="\n".join([order.say("why_intro"), *lines]))


def _source(source: Source) -> str:
    quote = " ".join(source.quote.split())
    if len(quote) > QUOTED:
        quote = quote[:QUOTED].rsplit(" ", 1)[0] + " …"
    return f"{source.label}: “{quote}”" if quote else source.label


async def _mydata(order: Order, ctx: Context[Any]) -> Reply:
    documents = await _own(ctx)
    told = await ctx.ask(EXPORT_MEMORY, Nothing()) if ctx.grant.covers(EXPORT_MEMORY.needs) else None
    memories = told.memories if told else ()
    kept = order.say("mydata_kept", days=KEPT_DAYS)
    if not documents and not memories:
        return Reply(text=f"{order.say('mydata_nothing')}\n\n{kept}")
    lines = [order.say("mydata_intro")]
    files, notes = [[each for each in documents if each.note is note] for note in (False, True)]
    if files:
        lines += ["", order.say("mydata_documents", count=len(files)), *(f"   – {each.name}" for each in files)]
    if notes:
        lines += ["", order.say("mydata_notes", count=len(notes)), *(f"   – {each.name}" for each in notes)]
    if memories:
        lines += ["", order.say("mydata_memories", count=len(memories)), *(f"   – {each.text}" for each in memories)]
    return Reply(text="\n".join([*lines, "", kept]))


async def _forget(order: Order, ctx: Context[Any]) -> Reply:
    about = order.command.argument.strip()
    if not about:
        return Reply(text=order.say("forget_ask"))
    everything = about == ALL
    gone = await ctx.ask(FORGET, Forget(about="" if everything else about))
    if everything:
        await order.ledger.forget(order.turn.chat)
    elif not gone.texts:
        return Reply(text=order.say("forgotten_nothing"))
    return Reply(text=order.say("forgotten", count=len(gone.texts)))


async def _human(order: Order, ctx: Context[Any]) -> Reply:
    await order.people.note(ctx.grant.client, handed_over_at=time.time(), silenced_by=order.turn.message_id)
    await order.alerts.wants_human(ctx.grant.client, order.turn.message_id)
    return Reply(text=order.say("handed_over"), regardless=True)


async def _files(order: Order, ctx: Context[Any]) -> Reply:
    every = (await ctx.ask(LIST_DOCUMENTS, Nothing())).documents
    if not every:
        return Reply(text=order.say("files_none"))
    documents = [each for each in every if not each.note]
    notes = sorted((each for each in every if each.note), key=lambda each: each.ingested_at, reverse=True)
    lines = [order.say("files_intro"), *(_file_line(order, each) for each in documents)] if documents else []
    if notes:
        lines += ["", order.say("files_notes", count=len(notes)), *(_file_line(order, n) for n in notes[:NOTES_SHOWN])]
    return Reply(text="\n".join(lines).strip())


def _file_line(order: Order, card: DocumentCard) -> str:
    return order.say("files_line", name=card.name, who_sees=who_sees(card, order.language))


def who_sees(card: DocumentCard, language: str) -> str:
    return say("seen_by_all" if card.visibility == "global" else "seen_by_you", language)


async def _private(order: Order, ctx: Context[Any]) -> Reply:
    return await _made(order, ctx, "document_now_private", lambda card: _visible(ctx, card, public=False))


async def _share(order: Order, ctx: Context[Any]) -> Reply:
    if not ctx.grant.covers("documents:publish"):
        return Reply(text=order.say("document_may_not_share"))
    return await _made(order, ctx, "document_now_shared", lambda card: _visible(ctx, card, public=True))


async def _delete(order: Order, ctx: Context[Any]) -> Reply:
    async def delete(card: DocumentCard) -> None:
        await ctx.ask(DELETE_DOCUMENT, DocumentRef(document_id=card.document_id))
        await order.people.note(ctx.grant.client, document_id="")

    return await _made(order, ctx, "document_deleted", delete)


async def _visible(ctx: Context[Any], card: DocumentCard, *, public: bool) -> None:
    wanted = Visible(document_id=card.document_id, visibility="global" if public else "private")
    await ctx.ask(SET_VISIBILITY, wanted)


async def _made(order: Order, ctx: Context[Any], done: str, make: Callable[[DocumentCard], Awaitable[None]]) -> Reply:
    """With the document that is named, or that a quoted message is about, or the one that was spoken of just now; one's
    own, that is."""
    own, named = await _own(ctx), order.command.argument.strip()
    if named:
        chosen = [each for each in own if each.name.casefold() == named.casefold()]
    elif order.turn.quoted:
        about = await _quoted(order)
        chosen = [each for each in own if each.document_id in about]
        chosen = chosen if len(chosen) == 1 else []
    else:
        recent = time.time() - order.person.document_at < RECENT_S
        chosen = [each for each in own if recent and each.document_id == order.person.document_id]
    if not chosen:
        return Reply(text=order.say("no_such_file" if named else "document_which"))
    await make(chosen[0])
    return Reply(text=order.say(done, name=chosen[0].name))


async def _own(ctx: Context[Any]) -> list[DocumentCard]:
    if not ctx.grant.covers(LIST_DOCUMENTS.needs):
        return []
    documents = (await ctx.ask(LIST_DOCUMENTS, Nothing())).documents
    return [each for each in documents if each.owner == ctx.grant.client]


async def _send_file(order: Order, ctx: Context[Any]) -> Reply:
    """The one that is named, or was spoken of last, or that the last answer stands on."""
    card = await _wanted(order, ctx)
    if card is None:
        return Reply(text=order.say("no_such_file" if order.command.argument else "document_which"))
    await order.people.note(ctx.grant.client, document_id=card.document_id, document_at=time.time())
    text = order.say("here_is_the_file", name=card.name)
    pieces = (Piece(text=text), Piece(document_id=card.document_id, name=card.name))
    return Reply(text=text, pieces=pieces, sources=(source_of(card),))


def source_of(card: DocumentCard) -> Source:
    """So that a reply to a message about a document tells which one is meant."""
    return Source(kind="document", name=card.name, reference=card.document_id)


async def _wanted(order: Order, ctx: Context[Any]) -> DocumentCard | None:
    if named := order.command.argument.strip():
        return await _called(named, ctx)
    documents = {each.document_id: each for each in (await ctx.ask(LIST_DOCUMENTS, Nothing())).documents}
    if order.turn.quoted:
        wanted = await _quoted(order)
    else:
        person = order.person
        answer = await order.ledger.turn(person.answered_by) if person.answered_by else None
        wanted = documents_of(answer)
        wanted.insert(0 if person.document_at > person.answered_at else len(wanted), person.document_id)
    return next((documents[each] for each in wanted if each in documents), None)


async def _quoted(order: Order) -> list[str]:
    """The documents that the quoted message is about: their confirmation, or an answer that stands on them."""
    return documents_of(await order.ledger.turn_of(order.turn.quoted, order.turn.chat))


def documents_of(turn: TurnRecord | None) -> list[str]:
    sources = turn.reply.sources if turn and turn.reply else ()
    return list(dict.fromkeys(each.reference.partition("#")[0] for each in sources if each.kind == "document"))


async def _called(named: str, ctx: Context[Any]) -> DocumentCard | None:
    """By its name, with or without its ending; what is no file's name may be words about it."""
    wanted = named.casefold()
    documents = (await ctx.ask(LIST_DOCUMENTS, Nothing())).documents
    for card in sorted(documents, key=lambda each: each.owner != ctx.grant.client):  # of two, one's own
        if wanted in (card.name.casefold(), PurePosixPath(card.name).stem.casefold()):
            return card
    if PurePosixPath(named).suffix:
        return None
    try:
        return (await ctx.ask(FIND_SOURCE_DOCUMENT, DocumentName(name=named))).documents[0]
    except (NotFound, IndexError):
        return None


COMMANDS: Mapping[str, Obey] = {
    "help": _help,
    "cancel": _cancel,
    "why": _why,
    "mydata": _mydata,
    "forget": _forget,
    "human": _human,
    "files": _files,
    "private": _private,
    "share": _share,
    "delete": _delete,
    "send_file": _send_file,
}
