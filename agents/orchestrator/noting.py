"""Notes in chat: saving what was written just now or what a message said, and asking for what was saved when."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agents.orchestrator.commanding import Obey, Order, documents_of, source_of, who_sees
from agents.orchestrator.notes_asked import Asked, named
from mesh.commands import command_of
from mesh.context import Context
from mesh.contracts.analysis import ANALYSE
from mesh.contracts.answers import Source
from mesh.contracts.documents import ANSWER_FROM_DOCUMENTS
from mesh.contracts.memory import ANSWER_FROM_MEMORY
from mesh.contracts.notes import FIND_NOTES, SAVE_NOTE, NoteSaved, NotesFound, NotesWanted, SaveNote
from mesh.contracts.orchestrator import Piece, Reply
from mesh.ledger import Ledger

Say = Callable[..., str]

ANSWERS = frozenset({ANSWER_FROM_DOCUMENTS.name, ANSWER_FROM_MEMORY.name, ANALYSE.name})
"""What "save this" means right after one of them spoke."""
LONGEST_CHAIN = 3
SHOWN = 10
BEGINNING = 90
"""Characters of a note in a list."""


# ── saving ────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Found:
    """What is to be saved. `whose` is part of a catalogue key: nobody's word, the person's, or ours."""

    text: str
    whose: str
    said_id: str = ""


async def note(order: Order, ctx: Context[Any]) -> Reply:
    if order.command.argument:
        return await _saved(Found(order.command.argument, ""), order, ctx)
    return await save(order, ctx) if order.turn.quoted else Reply(text=order.say("note_ask"))


async def beside_a_file(order: Order, confirmed: Reply, ctx: Context[Any]) -> Reply:
    """A caption. "save this" is about the file, which is saved; a note is one of its own, and about the file."""
    if not order.command.argument:
        return confirmed
    reply = await _saved(
        Found(order.command.argument, ""), order, ctx, tuple(each.reference for each in confirmed.sources)
    )
    return reply.model_copy(
        update={
            "text": f"{confirmed.text}\n\n{reply.text}",
            "pieces": (*confirmed.pieces, Piece(text=reply.text)) if confirmed.pieces else (),
            "sources": (*confirmed.sources, *reply.sources),
            "steps": (*confirmed.steps, *reply.steps),
        }
    )


async def save(order: Order, ctx: Context[Any]) -> Reply:
    """The message that is replied to; else the last one: our answer to a question, or what they wrote."""
    found = await _quoted(order) if order.turn.quoted else await _last(order)
    if found is None:
        return Reply(text=order.say("save_gone" if order.turn.quoted else "save_nothing"))
    return await _saved(found, order, ctx)


async def _quoted(order: Order) -> Found | None:
    line = await order.ledger.said(order.turn.quoted, order.turn.chat)
    if line is None or not line.text.strip():
        return None
    mine = line.who == "mesh"
    return Found(line.text if mine else _bare(line.text), "_ours" if mine else "_theirs", order.turn.quoted)


def _bare(text: str) -> str:
    """Of a note, the note."""
    command = command_of(text)
    return command.argument if command and command.name == "note" and command.argument else text


async def _last(order: Order) -> Found | None:
    lines = list(order.turn.history)
    for place in range(len(lines) - 1, -1, -1):
        said = lines[place]
        if said.who != "person" or (said.text.strip() and command_of(said.text)):
            continue
        if not said.text.strip():
            return None  # a file, which is kept already
        answered = await order.ledger.turn(order.person.answered_by) if order.person.answered_by else None
        reply = answered.reply if answered else None
        following = lines[place + 1].text if place + 1 < len(lines) else ""
        if answered and reply and reply.skill in ANSWERS and following == reply.text:
            return Found(f"{said.text}\n\n{reply.text}", "_ours", answered.turn_id)
        return Found(said.text, "_theirs")
    return None


async def _saved(found: Found, order: Order, ctx: Context[Any], files: tuple[str, ...] = ()) -> Reply:
    if not ctx.grant.covers(SAVE_NOTE.needs):
        return Reply(text=order.say("may_not_add_documents"))
    chain, about = await _chain(found.said_id or order.turn.quoted, order.turn.chat, order.ledger)
    wanted = SaveNote(
        text=found.text,
        message_id=order.turn.message_id,
        said_id=found.said_id,
        replies_to=chain,
        about=(*about, *files),
    )
    saved = await ctx.ask(SAVE_NOTE, wanted)
    await order.people.note(ctx.grant.client, document_id=saved.document.document_id, document_at=time.time())
    return Reply(text=_confirmed(saved, found, order), sources=(source_of(saved.document),), steps=(SAVE_NOTE.name,))


async def _chain(first: str, chat: str, ledger: Ledger) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The messages of this chat that led to it, nearest first, and the documents that the nearest is about."""
    about = documents_of(await ledger.turn_of(first, chat)) if first else []
    chain: list[str] = []
    following = first
    while following and following not in chain and len(chain) < LONGEST_CHAIN:
        turn = await ledger.turn_of(following, chat)
        if turn is None:
            break
        chain.append(following)
        messages = await ledger.messages(turn)
        if following not in turn.messages and turn.turn_id not in chain:
            chain.append(turn.turn_id)  # a message of ours answers theirs
        following = next((each.quoted for each in reversed(messages) if each.quoted), "")
    return tuple(chain), tuple(about)


def _confirmed(saved: NoteSaved, found: Found, order: Order) -> str:
    key = "note_known" if saved.outcome == "unchanged" else f"note_saved{found.whose}"
    lines = [order.say(key, name=saved.document.name)]
    if saved.tags:
        lines.append(order.say("note_tags", tags=" ".join(f"#{tag}" for tag in saved.tags)))
    if saved.links:
        lines.append(order.say("note_links", links=", ".join(f"[[{link}]]" for link in saved.links)))
    lines.append(order.say("document_visible_to", who_sees=who_sees(saved.document, order.language)))
    lines.append(order.say("note_undo"))
    return "\n".join(lines)


# ── asking ────────────────────────────────────────────────────────────────────────────────────────────────────────


async def notes(order: Order, ctx: Context[Any]) -> Reply:
    wanted = named(order.command.argument)
    return _listed(await _found(wanted, ctx), wanted, order.say)


async def answered(wanted: Asked, say: Say, ctx: Context[Any]) -> Reply | None:
    """None: nothing that they saved names it, and it was asked for by its words alone: a document may know."""
    if not ctx.grant.covers(FIND_NOTES.needs):
        return None
    found = await _found(wanted, ctx)
    if wanted.about and not wanted.days and not wanted.tags and (found.nearest or not found.notes):
        return None
    return _listed(found, wanted, say)


async def _found(wanted: Asked, ctx: Context[Any]) -> NotesFound:
    days = wanted.days
    return await ctx.ask(
        FIND_NOTES,
        NotesWanted(
            since=days.since if days else None,
            until=days.until if days else None,
            tags=wanted.tags,
            about=wanted.about,
            limit=SHOWN,
        ),
    )


def _listed(found: NotesFound, wanted: Asked, say: Say) -> Reply:
    if not found.notes:
        return Reply(text=say("notes_none", facts=wanted.facts), steps=(FIND_NOTES.name,))
    head = say("notes_nearest", about=wanted.about) if found.nearest else say("notes_intro", facts=wanted.facts)
    lines = [head, *(f"• *{each.name}*: {_beginning(each.begins)}" for each in found.notes)]
    if found.more:
        lines.append(say("notes_more", count=found.more))
    sources = tuple(
        Source(kind="document", name=each.name, reference=each.document_id, quote=_beginning(each.begins))
        for each in found.notes
    )
    return Reply(text="\n".join(lines), sources=sources, skill=FIND_NOTES.name, steps=(FIND_NOTES.name,))


def _beginning(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= BEGINNING else line[:BEGINNING].rsplit(" ", 1)[0] + " …"


COMMANDS: Mapping[str, Obey] = {"note": note, "save": save, "notes": notes}
