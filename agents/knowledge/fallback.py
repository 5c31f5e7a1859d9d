"""What is searched when the index can't be: the text that the shelf keeps, then the names of its files."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Iterator, Sequence

from agents.knowledge.chunking import chunk
from mesh.access import Grant
from mesh.ports.documents import Chunk, Document, Shelf
from mesh.ports.passages import Passage
from mesh.text import content_words, sparse_document, sparse_query, under_names, words

READ = 12
"""Documents that are cut and rated."""
LONGEST_READ = 400_000
"""Characters of one; a longer one is rated by its beginning."""
NAMED = 5


async def in_texts(
    shelf: Shelf, grant: Grant, text: str, *, limit: int, within: Sequence[str] | None = None
) -> list[tuple[Passage, Document]]:
    """By words alone, as the index would cut and rate them; best first. Raises `Unavailable`."""
    beginnings = _beginnings(text)
    if not beginnings:
        return []
    documents = await shelf.holding(grant, beginnings, limit=READ, within=within)
    return await asyncio.to_thread(_rated, text, documents, limit)


async def in_names(
    shelf: Shelf, grant: Grant, text: str, *, within: Sequence[str] | None = None
) -> list[tuple[Passage, Document]]:
    """Files whose names, endings or days fit, with no word of what is in them. Raises `Unavailable`."""
    asked = set(content_words(text))
    documents = await shelf.documents(grant, only=within)
    rated = [(len(asked & set(words(_label(document)))), document) for document in documents]
    best = sorted((each for each in rated if each[0]), key=lambda each: -each[0])[:NAMED]
    return [(_passage(document, Chunk(0, ""), float(score)), document) for score, document in best]


def _beginnings(text: str) -> list[str]:
    """Of the question's words, without the endings that a text may write otherwise: `policies`, `policy`. Numbers are
    looked for where there is no word, as they may be written."""
    terms = dict.fromkeys(content_words(text) or words(text))
    spelt = [term[: max(4, len(term) - 2)] for term in terms if not term[0].isdecimal()]
    return spelt or [form for term in terms for form in _written(term)]


def _written(number: str) -> list[str]:
    if not number.isdecimal() or len(number) < 4:
        return [number]
    return [number, f"{int(number):,}", f"{int(number):,}".replace(",", ".")]


def _label(document: Document) -> str:
    return f"{document.name.replace('.', ' ')} {document.ingested_at:%d %B %Y}"


def _rated(text: str, documents: Sequence[Document], limit: int) -> list[tuple[Passage, Document]]:
    asked, _ = sparse_query(text)
    cut = [(each, document, _weights(document, each)) for document in documents for each in _cut(document)]
    often = Counter(term for _, _, weights in cut for term in asked if term in weights)
    rare = {term: math.log1p((len(cut) - count + 0.5) / (count + 0.5)) for term, count in often.items()}
    found = [
        (_passage(document, each, sum(rare[term] * weights[term] for term in asked if term in weights)), document)
        for each, document, weights in cut
    ]
    best = sorted(found, key=lambda each: -(each[0].sparse or 0.0))[:limit]
    return [each for each in best if each[0].sparse]


def _cut(document: Document) -> Iterator[Chunk]:
    left = LONGEST_READ
    for each in chunk(document.media_type, document.parts):
        left -= len(each.text)
        if left < 0:
            return
        yield each


def _weights(document: Document, each: Chunk) -> dict[int, float]:
    return dict(zip(*sparse_document(under_names(document.name, each.heading_path, each.text)), strict=True))


def _passage(document: Document, each: Chunk, score: float) -> Passage:
    return Passage(
        document_id=document.document_id,
        source_filename=f"{document.owner}/{document.name}",
        chunk=each,
        dense=None,
        sparse=score,
        ingested_at=document.ingested_at,
        owner=document.owner,
    )
