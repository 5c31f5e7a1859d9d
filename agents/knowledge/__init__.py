"""The knowledge agent: documents in, passages, files and grounded answers out."""

from __future__ import annotations

import asyncio
from pathlib import PurePosixPath

from agents.knowledge.answering import Extract
from agents.knowledge.chunking import chunk
from agents.knowledge.library import Library, open_library
from agents.knowledge.replying import reply
from agents.knowledge.searching import Hit
from agents.knowledge.units import Candidate
from mesh.access import Grant
from mesh.catalogue import say
from mesh.context import Context
from mesh.contracts import (
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
    Answer,
    Ask,
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
    Nothing,
    PartRead,
    Search,
    SearchWithin,
    Source,
    Visible,
)
from mesh.dispatch import Agent
from mesh.errors import Malformed
from mesh.ports import Document, Vector
from mesh.text import language

LARGEST_FILE = 16 << 20
"""Bytes that go over the bus in one piece."""

agent: Agent[Library] = Agent("knowledge", opens=open_library)


@agent.handles(RETRIEVE_KNOWLEDGE_BASE)
async def retrieve_knowledge_base(search: Search, ctx: Context[Library]) -> Findings:
    return _findings(await ctx.own.searching.search(ctx.grant, search.text, limit=search.limit))


@agent.handles(SEARCH_WITHIN_DOCUMENT)
async def search_within_document(search: SearchWithin, ctx: Context[Library]) -> Findings:
    document = await ctx.own.document(ctx.grant, search.document_id)
    return _findings(
        await ctx.own.searching.search(ctx.grant, search.text, limit=search.limit, within=document.document_id)
    )


@agent.handles(FIND_SOURCE_DOCUMENT)
async def find_source_document(wanted: DocumentName, ctx: Context[Library]) -> DocumentCards:
    return _cards(await ctx.own.find(ctx.grant, wanted.name))


@agent.handles(GET_DOCUMENT_TEXT)
async def get_document_text(wanted: DocumentRef, ctx: Context[Library]) -> DocumentText:
    document = await ctx.own.text(ctx.grant, wanted.document_id)
    text = "\n\n".join(part.text for part in document.parts if part.text)
    _check_size(document, len(text.encode()))
    return DocumentText(document=_card(document), text=text)


@agent.handles(SHOW_DOCUMENT)
async def show_document(wanted: DocumentRef, ctx: Context[Library]) -> DocumentParts:
    document = await ctx.own.text(ctx.grant, wanted.document_id)
    _check_size(document, 2 * sum(len(part.text.encode()) for part in document.parts))
    chunks = await asyncio.to_thread(chunk, document.name, document.parts)
    return DocumentParts(
        document=_card(document),
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
    return DocumentFile(document=_card(document), media_type=document.media_type, raw=raw)


@agent.handles(LIST_DOCUMENTS)
async def list_documents(_: Nothing, ctx: Context[Library]) -> DocumentCards:
    return _cards(await ctx.own.stores.shelf.documents(ctx.grant))


@agent.handles(INGEST)
async def ingest(sent: Ingest, ctx: Context[Library]) -> Ingested:
    document, outcome = await ctx.own.ingesting.ingest(
        ctx.grant, sent.name, sent.raw, owner=sent.owner, visibility=sent.visibility
    )
    card = _card(document)
    return Ingested(document=card, outcome=outcome, parts=len(document.parts), troubles=card.troubles)


@agent.handles(SET_VISIBILITY)
async def set_visibility(wanted: Visible, ctx: Context[Library]) -> DocumentCard:
    return _card(await ctx.own.set_visibility(ctx.grant, wanted.document_id, wanted.visibility))


@agent.handles(DELETE_DOCUMENT)
async def delete_document(unwanted: DocumentRef, ctx: Context[Library]) -> DocumentCard:
    return _card(await ctx.own.delete(ctx.grant, unwanted.document_id))


@agent.handles(ANSWER_FROM_DOCUMENTS)
async def answer_from_documents(asked: Ask, ctx: Context[Library]) -> Answer:
    hits: dict[str, Hit] = {}

    async def search(text: str) -> tuple[Vector, list[Candidate]]:
        vector, found = await ctx.own.searching.evidence(ctx.grant, text)
        hits.update((hit.reference, hit) for hit in found)
        return vector, [_candidate(hit, ctx.grant) for hit in found]

    known = "\n".join(memory.text for memory in asked.memories)
    replied = await reply(asked.text, asked.history, search, ctx.own.stores.embedder.documents, known)
    if not replied.extracts:
        return Answer(confidence=replied.confidence)
    lines = [extract.shown or extract.quotation for extract in replied.extracts]
    spoken = language(asked.text)
    lines += [say("not_sure_about", spoken, question=question) for question in replied.unanswered]
    sources = tuple(_source(hits[extract.passage_id], extract) for extract in replied.extracts)
    return Answer(
        text="\n\n".join(lines),
        sources=sources,
        grounded=True,
        confidence=replied.confidence,
        unanswered=replied.unanswered,
    )


def _source(hit: Hit, extract: Extract) -> Source:
    return Source(
        kind="document",
        name=hit.document.name,
        section=hit.section,
        quote=extract.quotation,
        reference=hit.reference,
    )


def _candidate(hit: Hit, grant: Grant) -> Candidate:
    return Candidate(
        id=hit.reference,
        text=hit.passage.chunk.text,
        heading_path=hit.passage.chunk.heading_path,
        source=PurePosixPath(hit.document.name).stem,
        cosine=hit.passage.dense,
        score=hit.score,
        own=hit.document.owner == grant.client and hit.document.visibility == "private",
    )


def _check_size(document: Document, size: int) -> None:
    if size > LARGEST_FILE:
        raise Malformed(
            f"{document.name} is too large to send here ({size >> 20} MB; {LARGEST_FILE >> 20} MB at most). "
            "Please ask for a part of it."
        )


def _findings(hits: list[Hit]) -> Findings:
    return Findings(
        found=tuple(
            Found(
                document=_card(hit.document),
                passage=hit.passage.chunk.text,
                heading_path=hit.passage.chunk.heading_path,
                part=hit.passage.chunk.part,
                similarity=hit.passage.dense or 0.0,
            )
            for hit in hits
        )
    )


def _cards(documents: list[Document]) -> DocumentCards:
    return DocumentCards(documents=tuple(_card(document) for document in documents))


def _card(document: Document) -> DocumentCard:
    return DocumentCard(
        document_id=document.document_id,
        name=document.name,
        owner=document.owner,
        visibility=document.visibility,
        size=document.size,
        chunks=document.chunks,
        ingested_at=document.ingested_at,
        troubles=tuple(part.trouble for part in document.parts if part.trouble),
    )
