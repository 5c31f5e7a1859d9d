"""One step further: from the best hits along links, chains of replies and tags of few notes.

"How early can I go to the bakery that Tom recommended?" finds the note that names Tom and the bakery. The hours stand
in a note that replied to it, and that names neither."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from agents.knowledge.breaker import Breaker
from agents.knowledge.ranking import ranked
from agents.knowledge.stores import Stores
from mesh.access import Grant
from mesh.errors import Unavailable
from mesh.ports.notes import Link

if TYPE_CHECKING:
    from agents.knowledge.searching import Hit, Searched

SEEDS = 2
"""Documents that are gone on from."""
MOST_LED_TO = 12
PER_DOCUMENT = 3
PULL = 0.5
"""How far towards the score of the hit that leads there; never past it. Chosen on one half of the questions of
`tests.bench notes`, reported on the other (docs/benchmarks.md)."""


async def walked(
    stores: Stores, grant: Grant, text: str, found: Searched, meaning: Breaker, pull: float = PULL
) -> Searched:
    """`found` as it was, where nothing leads on or it can't be looked up now."""
    seeds: dict[str, float] = {}
    for hit in found.hits:
        seeds.setdefault(hit.document.document_id, hit.score)
        if len(seeds) == SEEDS:
            break
    with suppress(Unavailable):
        steps = await stores.shelf.notes.near(grant, list(seeds)) if seeds else []
        if steps:
            led_to = _led_to(steps, seeds)
            missing = await _missing(stores, grant, text, found, led_to, meaning)
            return replace(found, hits=tuple(_lifted([*found.hits, *missing], led_to, pull)))
    return found


def _led_to(steps: Iterable[Link], seeds: Mapping[str, float]) -> dict[str, float]:
    """With the score of the best hit that leads there."""
    best: dict[str, float] = {}
    for step in steps:
        best[step.other] = max(best.get(step.other, seeds[step.document_id]), seeds[step.document_id])
    chosen = sorted(best, key=lambda key: -best[key])[:MOST_LED_TO]
    return {key: best[key] for key in chosen}


async def _missing(
    stores: Stores, grant: Grant, text: str, found: Searched, led_to: Mapping[str, float], meaning: Breaker
) -> list[Hit]:
    """Passages of what was not found by itself, scored as what was."""
    known = {hit.document.document_id for hit in found.hits}
    wanted = [key for key in led_to if key not in known]
    if not wanted or not found.vector:
        return []
    limit = PER_DOCUMENT * len(wanted)
    passages = await meaning.call(lambda: stores.passages.search(grant, text, found.vector, limit=limit, within=wanted))
    documents = {each.document_id: each for each in await stores.shelf.documents(grant, only=wanted)}
    every = [*(hit.passage for hit in found.hits), *passages]
    scores = dict(await ranked(text, every, mode=stores.mode, per_leg=len(every)))
    one = found.hits[0]
    return [
        replace(one, passage=passage, document=documents[passage.document_id], score=scores[place])
        for place, passage in enumerate(passages, len(found.hits))
        if passage.document_id in documents and place in scores
    ]


def _lifted(hits: Iterable[Hit], led_to: Mapping[str, float], pull: float) -> list[Hit]:
    """The best hit of each document that is led to; best first."""
    done: set[str] = set()
    lifted: list[Hit] = []
    for hit in sorted(hits, key=lambda hit: -hit.score):
        key = hit.document.document_id
        more = 0.0 if key in done else pull * max(0.0, led_to.get(key, hit.score) - hit.score)
        done.add(key)
        lifted.append(replace(hit, score=hit.score + more))
    return sorted(lifted, key=lambda hit: -hit.score)
