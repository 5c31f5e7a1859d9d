"""Why a client was not shown something, for the system owner: by read path, the rule that applied and how much it held
back, for which reasons. Counts alone: neither names nor content."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field

from agents.knowledge.library import Library
from agents.knowledge.searching import PER_LEG
from mesh.access import Grant
from mesh.contracts.documents import (
    FIND_SOURCE_DOCUMENT,
    GET_DOCUMENT,
    GET_DOCUMENT_TEXT,
    LIST_DOCUMENTS,
    RETRIEVE_KNOWLEDGE_BASE,
    SEARCH_WITHIN_DOCUMENT,
    SHOW_DOCUMENT,
)
from mesh.ports.documents import Document
from mesh.ports.models import Vector
from mesh.ports.passages import Passage

BY_SHELF = "visible to everyone, or the client's own"
BY_INDEX = f"{BY_SHELF}: in the index, and on the shelf; and tagged"
PRIVATE, UNTAGGED, MOVING, UNSHELVED = "private of another", "without tags", "in transition", "not on the shelf"
LOWER = "ranked lower"
"""Nothing hides it: more of what the client may see fits better."""
REASONS = (PRIVATE, UNTAGGED, MOVING, UNSHELVED, LOWER)


@dataclass(frozen=True, slots=True)
class Path:
    """`reasons` count what is `matched` and not `seen`."""

    name: str
    rule: str
    counts: str
    """What is counted: documents or passages."""
    matched: int
    seen: int
    reasons: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class _Shelf:
    """What stands on it, as the system owner sees it, and what of that the client does."""

    all: dict[str, Document]
    moving: frozenset[str]
    """Ids of what is becoming something, coming or leaving."""
    seen: frozenset[str]

    def reason(self, document_id: str) -> str:
        if document_id in self.moving:
            return MOVING
        if document_id in self.seen:
            return LOWER
        return PRIVATE if document_id in self.all else UNSHELVED


async def withheld(library: Library, grant: Grant, client: Grant, text: str) -> list[Path]:
    shelf = await _shelf(library, grant, client)
    ids = (SEARCH_WITHIN_DOCUMENT, GET_DOCUMENT, GET_DOCUMENT_TEXT, SHOW_DOCUMENT)
    named = await library.find(grant, text)
    found = {each.document_id for each in await library.find(client, text)}
    return [
        await _searched(library, grant, client, text, shelf),
        _documents(FIND_SOURCE_DOCUMENT.name, {each.document_id for each in named} | found, found, shelf),
        _documents(LIST_DOCUMENTS.name, shelf.all.keys() | shelf.moving, shelf.seen, shelf),
        *(_documents(each.name, shelf.all.keys() | shelf.moving, shelf.seen, shelf) for each in ids),
    ]


async def _shelf(library: Library, grant: Grant, client: Grant) -> _Shelf:
    shelf = library.stores.shelf
    live = {each.document_id: each for each in await shelf.documents(grant)}
    moving = [each.document_id for each in live.values() if each.becoming]
    moving += [each.document_id for each in await shelf.leaving(grant)]
    moving += [each.document_id for each in await shelf.unfinished(grant) if each.document_id not in live]
    seen = [each.document_id for each in await shelf.documents(client)]
    return _Shelf(live, frozenset(moving), frozenset(seen))


def _documents(name: str, matched: Iterable[str], seen: Iterable[str], shelf: _Shelf) -> Path:
    matched, seen = set(matched), set(seen)
    reasons = Counter(shelf.reason(each) for each in matched - seen)
    return Path(name, BY_SHELF, "documents", len(matched), len(matched & seen), reasons)


async def _searched(library: Library, grant: Grant, client: Grant, text: str, shelf: _Shelf) -> Path:
    """Of the passages that fit best when nobody's rule is applied."""
    found = await library.searching.evidence(client, text)
    seen = {(hit.document.document_id, hit.passage.chunk.index) for hit in found.hits}
    passages = []
    if found.vector:
        passages = await library.stores.passages.search(grant, text, found.vector, limit=PER_LEG)
    matched = {(each.document_id, each.chunk.index): each for each in passages}
    unseen = [each for key, each in matched.items() if key not in seen]
    shown = await _shown(library, client, found.vector, unseen)
    reasons = Counter(_reason(each, shelf, shown) for each in unseen)
    kept = len(matched.keys() & seen)
    return Path(RETRIEVE_KNOWLEDGE_BASE.name, BY_INDEX, "passages", len(matched), kept, reasons)


async def _shown(library: Library, client: Grant, vector: Vector, passages: Sequence[Passage]) -> set[int | str]:
    """Those that the index lets the client see, by their points."""
    if not passages:
        return set()
    asked = await library.stores.passages.by_meaning(client, vector, limit=1, besides=passages)
    return {each.point for each in asked if each.dense is not None}


def _reason(passage: Passage, shelf: _Shelf, shown: Container[int | str]) -> str:
    if not passage.owner:
        return UNTAGGED
    reason = shelf.reason(passage.document_id)
    return MOVING if reason == LOWER and passage.point not in shown else reason  # the index has yet to be told
