"""Chunks of an earlier version, which do not say who may see them: the system owner's alone until they are tagged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from agents.knowledge.stores import Stores
from mesh.access import Grant
from mesh.ports.documents import Document
from mesh.ports.passages import Passage, Untagged
from mesh.settings import IDENTITY


@dataclass(frozen=True, slots=True)
class Tagged:
    """The chunks of one document, on one page of them."""

    name: str
    owner: str
    """Whose they are, or would be."""
    shelved: bool
    """Whether the shelf has its file."""
    chunks: int


@dataclass(frozen=True, slots=True)
class TaggedPage:
    left: int
    """How many there were before this page."""
    documents: tuple[Tagged, ...]
    following: int | str | None


async def tag(stores: Stores, grant: Grant, *, dry_run: bool, after: int | str | None) -> TaggedPage:
    """A page of them becomes private: their document's owner's where the shelf knows it, else whose they say they are,
    else the system owner's. Safe to repeat. What the shelf shows to everyone is shown again once the stores agree."""
    left, chunks, following = await stores.passages.untagged(grant, after=after)
    documents = await _shelved(stores, grant, chunks)
    tagged: Counter[tuple[str, str, bool]] = Counter()
    for document_id, said in dict.fromkeys((chunk.document_id, chunk.owner) for chunk in chunks):
        these = [chunk for chunk in chunks if (chunk.document_id, chunk.owner) == (document_id, said)]
        document = documents.get(document_id)
        owner, name = _whose(grant, document, these[0])
        tagged[name, owner, document is not None] += len(these)
        if not dry_run:
            await stores.passages.tag(grant, these, document_id=document_id, owner=owner, name=name)
    return TaggedPage(left, tuple(Tagged(*key, chunks) for key, chunks in tagged.items()), following)


async def _shelved(stores: Stores, grant: Grant, chunks: Sequence[Untagged]) -> Mapping[str, Document]:
    ids = sorted({chunk.document_id for chunk in chunks})
    return {found.document_id: found for found in await stores.shelf.documents(grant, only=ids)}


def _whose(grant: Grant, document: Document | None, chunk: Untagged) -> tuple[str, str]:
    if document:
        return document.owner, document.name
    owner = chunk.owner if IDENTITY.fullmatch(chunk.owner) else grant.client
    return owner, PurePosixPath(chunk.source_filename).name or "without a name"


def unshelved(grant: Grant, passages: Sequence[Passage], but: set[str]) -> dict[str, Document]:
    """What stands in for documents that the shelf does not have: to the system owner, of chunks that are nobody's or
    the system owner's own."""
    if not grant.sees_all:
        return {}
    return {
        passage.document_id: _standing_in(grant, passage)
        for passage in passages
        if passage.owner in ("", grant.client) and passage.document_id not in but
    }


def _standing_in(grant: Grant, passage: Passage) -> Document:
    return Document(
        document_id=passage.document_id,
        owner=passage.owner or grant.client,
        name=PurePosixPath(passage.source_filename).name or "without a name",
        visibility="private",
        sha256="",
        size=0,
        media_type="",
        ingested_at=passage.ingested_at,
        chunks=0,
    )
