"""How strict to be with a corpus, learned from the corpus itself: its own sentences are asked for by their keywords,
once as it is and once without the passage that they are from. Where what is left still looks like an answer, passages
are close to one another, and a question must be answered more clearly (docs/decisions/0017)."""

from __future__ import annotations

import asyncio
import hashlib
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import regex

from agents.knowledge.answering import extracts
from agents.knowledge.chunking import chunk
from agents.knowledge.grounding import candidate
from agents.knowledge.library import Library
from agents.knowledge.units import Candidate, units_of
from mesh.access import Grant, as_seen_by
from mesh.contracts.upkeep import Sounding, Threshold
from mesh.errors import Denied, NotFound, Unavailable
from mesh.ports.documents import Chunk, Document
from mesh.ports.passages import Calibration
from mesh.text import content_words

QUESTIONS = 60
"""At most, for each of those who see something of their own, and for what everybody sees."""
ENOUGH = 40
"""Fewer tell that a corpus is close, but not that it isn't: with fewer, the stricter of this and the default holds."""
FEWEST = 12
PAGE = 4
KEYWORDS = 6

# Chosen on SQuAD 2 and XQuAD en, es, hi (docs/benchmarks.md).
TYPICAL = -0.9
GAIN = 0.4
LAXEST, STRICTEST = -0.4, 1.0

EVERYBODY = ""
NOBODY = "whatsapp:nobody-in-particular"
"""Sees what everybody sees, and nothing else."""

_WRITTEN = regex.compile(r"[\p{L}\p{M}\p{N}]+(?:[.,:]\p{N}+)*(?:['’][\p{L}\p{M}]+)?")


@dataclass(frozen=True, slots=True)
class Probe:
    viewer: str
    document: Document
    index: int
    """Of the chunk."""


# ── questions ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def probes(library: Library, grant: Grant) -> list[Probe]:
    """The same ones each time, as long as the documents are the same. Raises `Denied` for all but the system owner."""
    if not grant.sees_all:
        raise Denied(grant.refusal, detail="a corpus is calibrated by the system owner alone")
    found: dict[str, list[Probe]] = defaultdict(list)
    for document in await library.stores.shelf.documents(grant):
        viewer = EVERYBODY if document.visibility == "global" else document.owner
        found[viewer] += [Probe(viewer, document, index) for index in range(document.chunks)]
    chosen = {viewer: sorted(of, key=_lot)[:QUESTIONS] for viewer, of in sorted(found.items())}
    return [probe for of in chosen.values() if len(of) >= FEWEST for probe in of]


def _lot(probe: Probe) -> bytes:
    return hashlib.sha256(f"{probe.document.sha256}#{probe.index}".encode()).digest()


async def sound_out(library: Library, grant: Grant, probes: Sequence[Probe]) -> list[Sounding]:
    """Each is asked as the person whose passages they are, who finds what that person finds. Raises `Unavailable` when
    a search went down a level: what is found there tells nothing of the corpus."""
    found = []
    for probe in probes:
        try:
            document = await library.text(grant, probe.document.document_id)
        except NotFound:  # deleted meanwhile
            continue
        chunks = await asyncio.to_thread(chunk, document.media_type, document.parts)
        asked = _asked(chunks[probe.index]) if probe.index < len(chunks) else None
        if asked:
            found.append(await _both(library, as_seen_by(grant, probe.viewer or NOBODY), probe, *asked))
    return found


def _asked(chunk: Chunk) -> tuple[str, str] | None:
    """Keywords of the sentence in the middle of those that say something, and the sentence."""
    units = [unit for unit in units_of(Candidate("", chunk.text)) if len(content_words(unit.text)) >= 4]
    if not units:
        return None
    said = units[len(units) // 2].text
    told = [word for word in dict.fromkeys(_WRITTEN.findall(said)) if content_words(word)]
    if not told:
        return None
    step = max(1.0, len(told) / KEYWORDS)
    return " ".join(told[int(place * step)] for place in range(min(KEYWORDS, len(told)))), said


async def _both(library: Library, viewer: Grant, probe: Probe, question: str, said: str) -> Sounding:
    found = await library.searching.evidence(viewer, question)
    if not found.vector or found.level != "hybrid":
        raise Unavailable(
            "The documents can't be searched by meaning and by words right now, so nothing was learnt and what was "
            "there before holds. Please try again when `adiyan doctor` finds nothing wrong.",
            detail=f"calibrating: a search by {found.level}",
        )
    candidates = [candidate(hit, viewer) for hit in found.hits]
    source = f"{probe.document.document_id}#{probe.index}"
    others = [each for each in candidates if each.id != source and said not in " ".join(each.text.split())]

    async def rated(among: Sequence[Candidate]) -> float:
        read = await extracts(question, found.vector, among, library.stores.embedder.documents)
        return _logit(read[0].confidence) if read else _logit(0.0)

    return Sounding(viewer=probe.viewer, present=await rated(candidates), removed=await rated(others))


def _logit(confidence: float) -> float:
    bounded = min(max(confidence, 1e-4), 1 - 1e-4)
    return math.log(bounded / (1 - bounded))


# ── what they came to ─────────────────────────────────────────────────────────────────────────────────────────────


def stricter(removed: Sequence[float]) -> float:
    """By how many logits: as far as the upper tenth of what was asked in vain is above the usual."""
    learnt = min(STRICTEST, max(LAXEST, GAIN * (_upper_tenth(removed) - TYPICAL)))
    return round(learnt if len(removed) >= ENOUGH else max(0.0, learnt), 2)


def _upper_tenth(values: Sequence[float]) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(0.9 * len(ordered)))]


async def keep(library: Library, grant: Grant, sounded: Sequence[Sounding]) -> list[Threshold]:
    """Raises `Denied` for all but the system owner."""
    by_viewer: dict[str, list[Sounding]] = defaultdict(list)
    for each in sounded:
        by_viewer[each.viewer].append(each)
    after = {viewer: stricter([each.removed for each in of]) for viewer, of in by_viewer.items() if len(of) >= FEWEST}
    before = await _keep(library, grant, after, {viewer: len(of) for viewer, of in by_viewer.items()})
    return [_learnt(viewer, by_viewer[viewer], before.get(viewer, 0.0), after[viewer]) for viewer in after]


async def _keep(
    library: Library, grant: Grant, after: Mapping[str, float], asked: Mapping[str, int]
) -> dict[str, float]:
    model, calibrations = library.stores.embedder.model, library.stores.calibrations
    if calibrations is None:
        return {}
    corpus = await fingerprint(library, grant)
    kept = {viewer: Calibration(model, corpus, asked[viewer], value) for viewer, value in after.items()}
    before = await calibrations.keep(grant, kept)
    return {viewer: each.stricter for viewer, each in before.items() if each.model == model}


async def fingerprint(library: Library, grant: Grant) -> str:
    """Of all documents, their bytes and who sees them."""
    listed = sorted(
        f"{each.document_id} {each.sha256} {each.visibility}" for each in await library.stores.shelf.documents(grant)
    )
    return hashlib.sha256("\n".join(listed).encode()).hexdigest()[:16]


def _learnt(viewer: str, sounded: Sequence[Sounding], before: float, after: float) -> Threshold:
    def shares(values: Sequence[float]) -> tuple[float, float]:
        return _share(values, before), _share(values, after)

    answered, invented = shares([each.present for each in sounded]), shares([each.removed for each in sounded])
    return Threshold(
        viewer=viewer, asked=len(sounded), before=before, after=after, answered=answered, invented=invented
    )


def _share(values: Sequence[float], least: float) -> float:
    return round(sum(value >= least for value in values) / len(values), 3)
