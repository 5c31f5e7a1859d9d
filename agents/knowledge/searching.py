"""What a search finds: passages of documents that the grant may see, best first."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Literal, get_args

from agents.knowledge.breaker import Breaker, Hangs
from agents.knowledge.fallback import in_names, in_texts
from agents.knowledge.hopping import HOPS, MOST_NAMES, PLACES, bonds, hopped, merged
from agents.knowledge.ranking import ranked, spread
from agents.knowledge.reranking import Light
from agents.knowledge.stores import Stores
from agents.knowledge.tagging import unshelved
from agents.knowledge.walking import walked
from mesh.access import Grant
from mesh.errors import Unavailable
from mesh.ports.documents import Document
from mesh.ports.models import Vector
from mesh.ports.passages import Passage
from mesh.text import words

log = logging.getLogger(__name__)

PER_LEG = 40
MOST = 20
LONGEST_QUERY = 2_000
EMBEDDED_WITHIN_S = 8.0
"""A model server may have to load its model first."""
FOUND_WITHIN_S = 3.0

Level = Literal["hybrid", "dense", "sparse", "text", "names"]
"""By meaning and by words, by meaning alone (so is a text without words), by words alone; in the shelf's own text; by
file names."""
LEVELS: tuple[Level, ...] = get_args(Level)
Within = str | Sequence[str] | None
"""A document's id, or several."""


@dataclass(frozen=True, slots=True)
class Hit:
    passage: Passage
    document: Document
    score: float

    @property
    def reference(self) -> str:
        return f"{self.document.document_id}#{self.passage.chunk.index}"

    @property
    def section(self) -> str:
        chunk = self.passage.chunk
        return " › ".join(chunk.heading_path) or chunk.part


@dataclass(frozen=True, slots=True)
class Searched:
    """The question's vector, where it could be embedded, and all that was found, best first."""

    vector: Vector = ()
    hits: tuple[Hit, ...] = ()
    level: Level = "hybrid"

    def first(self, limit: int) -> Searched:
        return replace(self, hits=self.hits[: max(1, min(limit, MOST))])


@dataclass(frozen=True, slots=True)
class Searching:
    """Goes down a level for each part that is gone, and up again when it is back. Every level asks its store with the
    grant, and the shelf has the last word on what it shows."""

    _stores: Stores
    _embedding: Breaker = field(default_factory=lambda: Breaker("embedding", within=EMBEDDED_WITHIN_S), repr=False)
    _words: Breaker = field(default_factory=lambda: Breaker("search by words", within=FOUND_WITHIN_S), repr=False)
    _meaning: Breaker = field(default_factory=lambda: Breaker("search by meaning", within=FOUND_WITHIN_S), repr=False)

    async def search(self, grant: Grant, text: str, *, limit: int, within: Within = None, hop: int = 0) -> Searched:
        """Each question of a message is searched for, and they take turns in what is found."""
        asked = self._stores.transforming.parts(text)
        every = [await self.evidence(grant, each, within=within, hop=hop) for each in asked]
        return _in_turn(every).first(limit)

    async def evidence(
        self, grant: Grant, text: str, *, within: Within = None, hop: int = 0, written_out: bool = False
    ) -> Searched:
        """What the shelf does not show to the grant is left out, whatever the index says. Raises `Unavailable` when
        nothing can be searched at all.

        `hop`: among so many of the first (five at most) come also passages that the question's own words would not
        find, because only what was found names them. Not for a search `within` documents. `written_out`: the question's
        acronyms are, already."""
        text = text.strip()[:LONGEST_QUERY]
        if not text:
            return Searched()
        # The words are searched for while the question is embedded: that takes no longer than embedding it alone.
        vector, worded = await asyncio.gather(self._embedded(text), self._by_words(grant, text, within))
        passages, level = await self._by_both(grant, vector, worded, within)
        if passages is None:
            return await self._fallen(grant, text, within)
        documents, order = await asyncio.gather(self._shelved(grant, passages), self._ranked(text, passages))
        seen: set[tuple[str, int]] = set()
        hits: list[Hit] = []
        for place, score in order:
            passage = passages[place]
            document = documents.get(passage.document_id)
            if document and _key(passage) not in seen:  # twice while a new version takes the old one's place
                seen.add(_key(passage))
                hits.append(Hit(passage, document, score))
        if not written_out:  # once: what a fuller question finds may define its words anew, without an end
            fuller = self._stores.transforming.expanded(text, [hit.passage.chunk.text for hit in hits])
            if text != fuller[:LONGEST_QUERY]:
                return await self.evidence(grant, fuller, within=within, hop=hop, written_out=True)
        found = Searched(vector, tuple(hits), level)
        if within is None:
            found = await walked(self._stores, grant, text, found, self._meaning)
        if hop > 0 and level == "hybrid" and within is None:
            found = await self._led_on(grant, text, found, min(hop, PLACES))
        return found

    async def _led_on(self, grant: Grant, text: str, found: Searched, places: int) -> Searched:
        """What can't be looked up now was not needed to find the rest."""
        led, strength, called = found, dict[str, float](), list[Passage]()
        sources = [hit.passage for hit in found.hits]
        first = {_key(passage) for passage in sources[:places]}
        with suppress(Unavailable):
            for hop in range(HOPS):
                stronger = merged(strength, bonds(text, sources), hop)
                names = sorted(stronger.keys() - strength.keys(), key=lambda name: (-stronger[name], name))[:MOST_NAMES]
                called += await self._called(grant, names, text, found.vector)
                strength = stronger
                if called:
                    led = await self._with(grant, text, found, called, strength, places)
                sources = [hit.passage for hit in led.hits[:places] if _key(hit.passage) not in first]
                if not sources:
                    break
        return led

    async def _called(self, grant: Grant, names: Sequence[str], text: str, vector: Vector) -> list[Passage]:
        return await self._meaning.call(lambda: self._stores.passages.called(grant, names, text, vector, limit=PER_LEG))

    async def _with(
        self,
        grant: Grant,
        text: str,
        found: Searched,
        called: Sequence[Passage],
        strength: Mapping[str, float],
        places: int,
    ) -> Searched:
        known = {_key(hit.passage) for hit in found.hits}
        fresh = list({_key(each): each for each in called if _key(each) not in known}.values())
        documents = await self._shelved(grant, fresh) if fresh else {}
        fresh = [each for each in fresh if each.document_id in documents]
        passages = [*(hit.passage for hit in found.hits), *fresh]
        scores = dict(await ranked(text, passages, mode=self._stores.mode, per_leg=PER_LEG)) if fresh else {}
        more = (
            Hit(each, documents[each.document_id], scores[place]) for place, each in enumerate(fresh, len(found.hits))
        )
        hits = [*found.hits, *more]
        order = hopped(
            passages,
            [hit.score for hit in hits],
            found=len(found.hits),
            strength=strength,
            unit=spread({place: each.dense for place, each in enumerate(passages) if each.dense is not None}),
            places=places,
        )
        return replace(found, hits=tuple(hits[place] for place in order))

    async def _ranked(self, text: str, passages: Sequence[Passage]) -> list[tuple[int, float]]:
        stores = self._stores
        return await ranked(text, passages, mode=stores.mode, reranker=stores.reranker, per_leg=PER_LEG)

    async def _embedded(self, text: str) -> Vector:
        """Empty when nothing can be embedded now."""
        with suppress(Unavailable):
            (vector,) = await self._embedding.call(lambda: self._stores.embedder.queries([text]))
            return await self._stores.transforming.towards_an_answer(text, vector, self._stores.embedder)
        return ()

    async def _by_words(self, grant: Grant, text: str, within: Within) -> list[Passage] | None:
        if not words(text):
            return None
        try:
            found = await self._words.call(
                lambda: self._stores.passages.by_words(grant, text, limit=PER_LEG, within=within)
            )
        except Hangs:
            self._meaning.leave_alone(FOUND_WITHIN_S)  # it would hang there, too
        except Unavailable:
            pass
        else:
            if isinstance(self._stores.reranker, Light):
                self._stores.reranker.read_ahead(found)
            return found
        return None

    async def _by_both(
        self, grant: Grant, vector: Vector, worded: list[Passage] | None, within: Within
    ) -> tuple[list[Passage] | None, Level]:
        """None when the index can't be asked, or when its words alone find nothing."""
        if vector:
            with suppress(Unavailable):
                found = await self._meaning.call(
                    lambda: self._stores.passages.by_meaning(
                        grant, vector, limit=PER_LEG, within=within, besides=worded or ()
                    )
                )
                return found, "dense" if worded is None else "hybrid"
        return worded or None, "sparse"

    async def _fallen(self, grant: Grant, text: str, within: Within) -> Searched:
        """Without the index."""
        among = [within] if isinstance(within, str) else within
        level: Level = "text"
        try:
            found = await in_texts(self._stores.shelf, grant, text, limit=PER_LEG, within=among)
        except Unavailable:
            found = []
        if not found:
            level, found = "names", await in_names(self._stores.shelf, grant, text, within=among)
        log.warning("! level=%s found=%d", level, len(found))
        return Searched((), tuple(Hit(passage, document, passage.sparse or 0.0) for passage, document in found), level)

    async def _shelved(self, grant: Grant, passages: Sequence[Passage]) -> dict[str, Document]:
        ids = sorted({passage.document_id for passage in passages})
        found = {each.document_id: each for each in await self._stores.shelf.documents(grant, only=ids)}
        if grant.sees_all and len(found) < len(ids):
            leaving = {each.document_id for each in await self._stores.shelf.leaving(grant)}
            found |= unshelved(grant, passages, found.keys() | leaving)
        return found


def _key(passage: Passage) -> tuple[str, int]:
    return passage.document_id, passage.chunk.index


def _in_turn(every: Sequence[Searched]) -> Searched:
    """The best of each, then the second of each; each passage once. At the lowest level that one of them came down
    to."""
    if len(every) == 1:
        return every[0]
    hits: dict[str, Hit] = {}
    for row in zip_longest(*(each.hits for each in every)):
        for hit in filter(None, row):
            hits.setdefault(hit.reference, hit)
    return replace(every[0], hits=tuple(hits.values()), level=max((each.level for each in every), key=LEVELS.index))
