"""The knowledge agent: documents in, passages, files and grounded answers out."""

from __future__ import annotations

import asyncio

from agents.knowledge.calibrating import PAGE, keep, probes, sound_out
from agents.knowledge.cards import card_of
from agents.knowledge.chunking import chunk
from agents.knowledge.gathering import gathered
from agents.knowledge.grounding import answered
from agents.knowledge.library import Library, open_library
from agents.knowledge.searching import MOST, Searched
from agents.knowledge.tagging import tag
from agents.knowledge.withholding import REASONS, Path, withheld
from mesh.access import as_seen_by
from mesh.context import Context
from mesh.contracts.answers import Answer, Ask, Nothing
from mesh.contracts.documents import (
    ANSWER_FROM_DOCUMENTS,
    DELETE_DOCUMENT,
    FIND_SOURCE_DOCUMENT,
    GET_DOCUMENT,
    GET_DOCUMENT_TEXT,
    INGEST,
    LIST_DOCUMENTS,
    RETRIEVE_KNOWLEDGE_BASE,
    SEARCH_WITHIN_DOCUMENT,
    SET_VISIBILITY,
    SHOW_DOCUMENT,
    ChunkKept,
    DocumentCard,
    DocumentCards,
    DocumentFile,
    DocumentName,
    DocumentParts,
    DocumentRef,
    DocumentText,
    Findings,
    Found,
    Ingest,
    Ingested,
    PartRead,
    Search,
    SearchWithin,
    Visible,
)
from mesh.contracts.notes import FIND_NOTES, SAVE_NOTE, NoteCard, NoteSaved, NotesFound, NotesWanted, SaveNote
from mesh.contracts.upkeep import (
    CALIBRATE,
    READ_FOLDERS,
    REBUILD,
    SOUND_OUT,
    TAG_CHUNKS,
    WHY_WITHHELD,
    Calibrate,
    FoldersRead,
    Held,
    ReadFolders,
    ReadPath,
    Rebuild,
    Rebuilt,
    Soundings,
    SoundOut,
    TagChunks,
    TaggedChunks,
    TaggedDocument,
    Thresholds,
    WhyWithheld,
    Withheld,
)
from mesh.dispatch import Agent
from mesh.errors import Malformed
from mesh.ports.documents import Document
from mesh.ports.notes import Note
from mesh.settings import IDENTITY

LARGEST_FILE = 16 << 20
"""Bytes that go over the bus in one piece."""
MOST_NOTES = 50
LONGEST_ASKED = 20_000
"""Characters of a question, which may be several messages in one. A megabyte would hold up everybody for seconds."""

agent: Agent[Library] = Agent("knowledge", opens=open_library)


@agent.handles(RETRIEVE_KNOWLEDGE_BASE)
async def retrieve_knowledge_base(search: Search, ctx: Context[Library]) -> Findings:
    searched = await ctx.own.searching.search(ctx.grant, search.text, limit=MOST, hop=search.limit)
    return _findings(searched, search.limit)


@agent.handles(SEARCH_WITHIN_DOCUMENT)
async def search_within_document(search: SearchWithin, ctx: Context[Library]) -> Findings:
    document = await ctx.own.document(ctx.grant, search.document_id)
    searched = await ctx.own.searching.search(ctx.grant, search.text, limit=MOST, within=document.document_id)
    return _findings(searched, search.limit)


@agent.handles(FIND_SOURCE_DOCUMENT)
async def find_source_document(wanted: DocumentName, ctx: Context[Library]) -> DocumentCards:
    return _cards(await ctx.own.find(ctx.grant, wanted.name))


@agent.handles(GET_DOCUMENT_TEXT)
async def get_document_text(wanted: DocumentRef, ctx: Context[Library]) -> DocumentText:
    document = await ctx.own.text(ctx.grant, wanted.document_id)
    text = "\n\n".join(part.text for part in document.parts if part.text)
    _check_size(document, len(text.encode()))
    return DocumentText(document=card_of(document), text=text)


@agent.handles(SHOW_DOCUMENT)
async def show_document(wanted: DocumentRef, ctx: Context[Library]) -> DocumentParts:
    document = await ctx.own.text(ctx.grant, wanted.document_id)
    _check_size(document, 2 * sum(len(part.text.encode()) for part in document.parts))
    chunks = await asyncio.to_thread(chunk, document.media_type, document.parts)
    return DocumentParts(
        document=card_of(document),
        parts=tuple(
            PartRead(label=part.label, characters=len(part.text), how=part.how, trouble=part.trouble)
            for part in document.parts
        ),
        chunks=tuple(ChunkKept(heading_path=each.heading_path, part=each.part, text=each.text) for each in chunks),
    )


@agent.handles(GET_DOCUMENT)
async def get_document(wanted: DocumentRef, ctx: Context[Library]) -> DocumentFile:
    document = await ctx.own.document(ctx.grant, wanted.document_id)
    _check_size(document, document.size)
    raw = await ctx.own.raw(ctx.grant, document)
    return DocumentFile(document=card_of(document), media_type=document.media_type, raw=raw)


@agent.handles(LIST_DOCUMENTS)
async def list_documents(_: Nothing, ctx: Context[Library]) -> DocumentCards:
    shelf = ctx.own.stores.shelf
    notes = {note.document_id for note in await shelf.notes.noted(ctx.grant)}
    cards = _cards(await shelf.documents(ctx.grant)).documents
    return DocumentCards(
        documents=tuple(card.model_copy(update={"note": True}) if card.document_id in notes else card for card in cards)
    )


@agent.handles(INGEST)
async def ingest(sent: Ingest, ctx: Context[Library]) -> Ingested:
    document, outcome = await ctx.own.ingesting.ingest(
        ctx.grant, sent.name, sent.raw, owner=sent.owner, visibility=sent.visibility
    )
    card = card_of(document)
    return Ingested(document=card, outcome=outcome, parts=len(document.parts), troubles=card.troubles)


@agent.handles(SAVE_NOTE)
async def save_note(wanted: SaveNote, ctx: Context[Library]) -> NoteSaved:
    saved = await ctx.own.noting.save(ctx.grant, wanted)
    card = card_of(saved.document).model_copy(update={"note": True})
    return NoteSaved(document=card, outcome=saved.outcome, tags=saved.written.tags, links=saved.written.links)


@agent.handles(FIND_NOTES)
async def find_notes(wanted: NotesWanted, ctx: Context[Library]) -> NotesFound:
    found, nearest = await ctx.own.noting.find(ctx.grant, wanted)
    shown = found[: max(1, min(wanted.limit, MOST_NOTES))]
    return NotesFound(notes=tuple(map(_note_card, shown)), more=len(found) - len(shown), nearest=nearest)


@agent.handles(READ_FOLDERS, hourly=ReadFolders())
async def read_folders(asked: ReadFolders, ctx: Context[Library]) -> FoldersRead:
    read = await ctx.own.following.look(ctx.grant)
    if any(each.left for each in read):
        await ctx.tell(READ_FOLDERS, ReadFolders(turn=asked.turn + 1))
    return FoldersRead(folders=read)


@agent.handles(REBUILD)
async def rebuild(wanted: Rebuild, ctx: Context[Library]) -> Rebuilt:
    document, refused = await ctx.own.ingesting.rebuild(ctx.grant, wanted.document_id, anew=wanted.anew)
    return Rebuilt(document=card_of(document), kept=refused.user_text if refused else "")


@agent.handles(SET_VISIBILITY)
async def set_visibility(wanted: Visible, ctx: Context[Library]) -> DocumentCard:
    return card_of(await ctx.own.set_visibility(ctx.grant, wanted.document_id, wanted.visibility))


@agent.handles(DELETE_DOCUMENT)
async def delete_document(unwanted: DocumentRef, ctx: Context[Library]) -> DocumentCard:
    return card_of(await ctx.own.delete(ctx.grant, unwanted.document_id))


@agent.handles(TAG_CHUNKS)
async def tag_chunks(wanted: TagChunks, ctx: Context[Library]) -> TaggedChunks:
    page = await tag(ctx.own.stores, ctx.grant, dry_run=wanted.dry_run, after=wanted.after)
    if page.documents and not wanted.dry_run and page.following is None:
        ctx.own.ingesting.look_again()
    documents = tuple(
        TaggedDocument(name=each.name, owner=each.owner, shelved=each.shelved, chunks=each.chunks)
        for each in page.documents
    )
    return TaggedChunks(left=page.left, documents=documents, following=page.following)


@agent.handles(WHY_WITHHELD)
async def why_withheld(asked: WhyWithheld, ctx: Context[Library]) -> Withheld:
    if not IDENTITY.fullmatch(asked.client):
        raise Malformed(f"{asked.client!r} is not an identity such as +15551230001.")
    client = as_seen_by(ctx.grant, asked.client)
    paths = await withheld(ctx.own, ctx.grant, client, asked.text)
    answer = await answered(ctx.own, client, Ask(text=asked.text[:LONGEST_ASKED]))
    return Withheld(paths=tuple(map(_path, paths)), answered=answer.grounded)


@agent.handles(SOUND_OUT)
async def sound_out_corpus(wanted: SoundOut, ctx: Context[Library]) -> Soundings:
    asked = await probes(ctx.own, ctx.grant)
    after = wanted.after + PAGE
    found = await sound_out(ctx.own, ctx.grant, asked[max(0, wanted.after) : after])
    return Soundings(
        total=len(asked),
        found=tuple(found),
        following=after if after < len(asked) else None,
    )


@agent.handles(CALIBRATE)
async def calibrate(wanted: Calibrate, ctx: Context[Library]) -> Thresholds:
    return Thresholds(learnt=tuple(await keep(ctx.own, ctx.grant, wanted.found)))


@agent.handles(ANSWER_FROM_DOCUMENTS)
async def answer_from_documents(asked: Ask, ctx: Context[Library]) -> Answer:
    return await answered(ctx.own, ctx.grant, asked.model_copy(update={"text": asked.text[:LONGEST_ASKED]}))


def _path(path: Path) -> ReadPath:
    held = tuple(Held(reason=reason, count=path.reasons[reason]) for reason in REASONS)
    return ReadPath(
        name=path.name, rule=path.rule, counted=path.counts, matched=path.matched, seen=path.seen, held=held
    )


def _check_size(document: Document, size: int) -> None:
    if size > LARGEST_FILE:
        raise Malformed(
            f"{document.name} is too large to send here ({size >> 20} MB; {LARGEST_FILE >> 20} MB at most). "
            "Please ask for a part of it."
        )


def _findings(searched: Searched, limit: int) -> Findings:
    return Findings(
        level=searched.level,
        found=tuple(
            Found(
                document=card_of(hit.document),
                passage=hit.passage.chunk.text,
                heading_path=hit.passage.chunk.heading_path,
                part=hit.passage.chunk.part,
                similarity=hit.passage.dense or 0.0,
            )
            for hit in gathered(searched.hits, limit=max(1, min(limit, MOST)))
        ),
    )


def _note_card(note: Note) -> NoteCard:
    return NoteCard(document_id=note.document_id, name=note.name, saved_at=note.saved_at, begins=note.begins)


def _cards(documents: list[Document]) -> DocumentCards:
    return DocumentCards(documents=tuple(card_of(document) for document in documents))
