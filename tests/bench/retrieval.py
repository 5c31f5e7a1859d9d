"""Questions put to the product's own search, all of them, and to the simple baselines over the same index: BM25 alone,
dense alone, both fused in each of the modes. Several entries may be gold; unanswerable questions are left out.
Times are those of at most 100 questions for each way, embedded by the model server; the orders are those of all."""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from qdrant_client import AsyncQdrantClient, models
from rich.console import Console
from rich.progress import track
from rich.table import Table

from agents.knowledge.ranking import five_signal, fuse
from mesh.adapters.qdrant import COLLECTION
from mesh.adapters.qdrant_queries import DENSE, SPARSE
from mesh.adapters.qdrant_scope import scope
from mesh.ports.passages import Passage
from mesh.settings import ROOT
from mesh.text import sparse_query
from tests.bench.corpora import NoSuchSet, Question, Served, entries_of, ingested, load

DATA = Path(os.environ.get("ADIYAN_DATA", ROOT.parent / "shared" / "data")) / "retrieval" / "xquad"
PER_LEG = 40
TIMED = 100
OURS = "ours"


@dataclass
class Scores:
    """Of one way to search."""

    found: list[tuple[float, ...]] = field(default_factory=list)
    took: list[float] = field(default_factory=list)

    def add(self, order: Sequence[str], gold: frozenset[str]) -> None:
        places = [place for place, entry in enumerate(order, 1) if entry in gold]
        first = min(places, default=0)
        within = [bool(first) and first <= most for most in (1, 4, 5, 10)]
        self.found.append((*within, 1 / first if first else 0.0, gold <= set(order[:5])))

    @property
    def figures(self) -> dict[str, float]:
        names = ("recall_at_1", "recall_at_4", "recall_at_5", "recall_at_10", "mrr", "all_gold_at_5")
        columns = zip(*self.found, strict=True)
        shares = {name: round(sum(column) / len(self.found), 4) for name, column in zip(names, columns, strict=True)}
        return {"n": len(self.found), **shares, "p50_ms": round(median(self.took) * 1000, 1)}


async def run(data: Path = DATA, language: str = "", corpus_language: str = "") -> dict[str, object]:
    try:
        chosen = load(data, language, corpus_language)
    except NoSuchSet as error:
        return {"skipped": str(error)}
    questions = chosen.answerable
    async with ingested(chosen.entries) as served:
        took = await timed(served, questions)
        scores = await ordered(served, questions, took)
    figures = {way: each.figures for way, each in scores.items()}
    show(figures)
    return {
        "data": data.name,
        "language": chosen.language,
        "corpus_language": chosen.corpus_language,
        "entries": len(chosen.entries),
        "chunks": served.chunks,
        **figures.pop(OURS),
        "baselines": figures,
    }


async def ordered(
    served: Served, questions: Sequence[Question], took: Mapping[str, list[float]], *, hop: int = 0
) -> dict[str, Scores]:
    """`took` is what `timed` returned: that comes first."""
    scores = {way: Scores(took=took[way]) for way in (OURS, *_BASELINES)}
    stores = served.library.stores
    for question in track(questions, "asking", console=Console(stderr=True)):
        searched = await served.library.searching.search(served.grant, question.text, limit=20, hop=hop)
        scores[OURS].add(entries_of(searched.hits), question.gold)
        (vector,) = await stores.embedder.queries([question.text])
        passages = await stores.passages.search(served.grant, question.text, vector, limit=PER_LEG)
        for way, order in _BASELINES.items():
            scores[way].add(_entries(passages, order(passages)), question.gold)
    return scores


def _entries(passages: Sequence[Passage], order: Sequence[int]) -> list[str]:
    return list(dict.fromkeys(Path(passages[place].source_filename).stem for place in order))


def _leg(values: dict[int, float]) -> list[int]:
    return sorted(values, key=lambda place: -values[place])


def _dense(passages: Sequence[Passage]) -> dict[int, float]:
    return {place: passage.dense for place, passage in enumerate(passages) if passage.dense is not None}


def _sparse(passages: Sequence[Passage]) -> dict[int, float]:
    return {place: passage.sparse for place, passage in enumerate(passages) if passage.sparse is not None}


_BASELINES: dict[str, Callable[[Sequence[Passage]], list[int]]] = {
    "bm25": lambda passages: _leg(_sparse(passages)),
    "dense": lambda passages: _leg(_dense(passages)),
    "rrf": lambda passages: [place for place, _ in fuse(_dense(passages), _sparse(passages), mode="rrf")],
    "five_signal": lambda passages: [
        place for place, _ in five_signal(passages, _dense(passages), _sparse(passages), per_leg=PER_LEG)
    ],
    "fused": lambda passages: [place for place, _ in fuse(_dense(passages), _sparse(passages))],
}


# ── time ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def timed(served: Served, questions: Sequence[Question], *, hop: int = 0) -> dict[str, list[float]]:
    """Seconds by way. One after another, each way in turn, so that what else the machine does meets all of them; with
    questions of its own, which nobody asked before: a model server may remember some."""
    client = AsyncQdrantClient(url=served.qdrant_url, check_compatibility=False)
    stores, allowed = served.timed.stores, scope(served.grant)

    async def ours(text: str) -> None:
        await served.timed.searching.search(served.grant, text, limit=10, hop=hop)

    async def dense(text: str) -> None:
        (vector,) = await stores.embedder.queries([text])
        await client.query_points(COLLECTION, list(vector), using=DENSE, query_filter=allowed, limit=PER_LEG)

    async def bm25(text: str) -> None:
        indices, values = sparse_query(text)
        if indices:
            terms = models.SparseVector(indices=indices, values=values)
            await client.query_points(COLLECTION, terms, using=SPARSE, query_filter=allowed, limit=PER_LEG)

    def fused(order: Callable[[Sequence[Passage]], list[int]]) -> Callable[[str], Awaitable[None]]:
        async def search(text: str) -> None:
            (vector,) = await stores.embedder.queries([text])
            order(await stores.passages.search(served.grant, text, vector, limit=PER_LEG))

        return search

    ways = {
        OURS: ours,
        "bm25": bm25,
        "dense": dense,
        **{way: fused(_BASELINES[way]) for way in ("rrf", "five_signal", "fused")},
    }
    each_has = max(1, min(TIMED, len(questions) // len(ways)))
    step = max(1, len(questions) // (each_has * len(ways)))
    texts = iter([question.text for question in questions[::step]][: each_has * len(ways)])
    took: dict[str, list[float]] = {way: [] for way in ways}
    try:
        for search in ways.values():
            await search("Is anybody there?")
        for _ in track(range(each_has), "timing", console=Console(stderr=True)):
            for way, search in ways.items():
                text = next(texts, questions[0].text)
                began = time.perf_counter()
                await search(text)
                took[way].append(time.perf_counter() - began)
    finally:
        await client.close()
    return took


def show(figures: dict[str, dict[str, float]]) -> None:
    names = list(figures[OURS])
    short = (name.replace("recall_at_", "@").replace("all_gold_at_5", "all @5") for name in names)
    table = Table("way", *short, title="search, and its baselines", title_justify="left")
    for way, each in figures.items():
        table.add_row(
            way, *(f"{value:g}" if name in ("n", "p50_ms") else f"{value:.1%}" for name, value in each.items())
        )
    Console().print(table)
