"""An answer from what the library holds, with its sources; or none, and how sure of that."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from agents.knowledge import unaided
from agents.knowledge.answering import Extract
from agents.knowledge.judging import MULTILINGUAL_E5_SMALL, Judgement
from agents.knowledge.library import Library
from agents.knowledge.replying import reply
from agents.knowledge.searching import Hit, Searched
from agents.knowledge.units import Candidate
from mesh.access import Grant
from mesh.catalogue import say
from mesh.contracts.answers import Answer, Ask, Source
from mesh.ports.models import Vector
from mesh.text import language


async def answered(library: Library, grant: Grant, asked: Ask) -> Answer:
    hits: dict[str, Hit] = {}
    searches: list[Searched] = []

    async def search(text: str) -> tuple[Vector, list[Candidate]]:
        found = await library.searching.evidence(grant, text)
        searches.append(found)
        hits.update((hit.reference, hit) for hit in found.hits)
        return found.vector or unaided.QUESTION, [candidate(hit, grant) for hit in found.hits]

    async def embed(texts: Sequence[str]) -> Sequence[Vector]:
        if searches[-1].vector:
            return await library.stores.embedder.documents(texts)
        return [unaided.SENTENCE] * len(texts)

    known = "\n".join(memory.text for memory in asked.memories)
    text = await library.stores.transforming.alone(asked.text, asked.history)
    judgement = await _judgement(library, grant)
    replied = await reply(text, asked.history, search, embed, known, judgement)
    if lost := [found for found in searches if not found.vector and found.level != "hybrid"]:
        unaided.check(asked.text, replied.extracts, lost[-1])
    steps = tuple(dict.fromkeys(f"search: {found.level}" for found in searches))
    if not replied.extracts:
        return Answer(confidence=replied.confidence, steps=steps)
    lines = [extract.shown or extract.quotation for extract in replied.extracts]
    spoken = language(asked.text)
    lines += [say("not_sure_about", spoken, question=question) for question in replied.unanswered]
    return Answer(
        text="\n\n".join(lines),
        sources=tuple(_source(hits[extract.passage_id], extract) for extract in replied.extracts),
        grounded=True,
        confidence=replied.confidence,
        unanswered=replied.unanswered,
        steps=steps,
    )


async def _judgement(library: Library, grant: Grant) -> Judgement:
    kept = await library.stores.calibrations.of(grant) if library.stores.calibrations else None
    if kept is None or kept.model != library.stores.embedder.model:
        return MULTILINGUAL_E5_SMALL
    return MULTILINGUAL_E5_SMALL.stricter_by(kept.stricter)


def candidate(hit: Hit, grant: Grant) -> Candidate:
    return Candidate(
        id=hit.reference,
        text=hit.passage.chunk.text,
        heading_path=hit.passage.chunk.heading_path,
        source=PurePosixPath(hit.document.name).stem,
        cosine=hit.passage.dense,
        sparse=hit.passage.sparse or 0.0,
        score=hit.score,
        own=hit.document.owner == grant.client and hit.document.visibility == "private",
    )


def _source(hit: Hit, extract: Extract) -> Source:
    return Source(
        kind="document",
        name=hit.document.name,
        section=hit.section,
        quote=extract.quotation,
        reference=hit.reference,
    )
