"""A document as others on the bus see it."""

from __future__ import annotations

from mesh.contracts.documents import DocumentCard
from mesh.ports.documents import Document


def card_of(document: Document) -> DocumentCard:
    return DocumentCard(
        document_id=document.document_id,
        name=document.name,
        owner=document.owner,
        visibility=document.visibility,
        size=document.size,
        chunks=document.chunks,
        ingested_at=document.ingested_at,
        troubles=tuple(part.trouble for part in document.parts if part.trouble),
        becoming=document.becoming,
    )
