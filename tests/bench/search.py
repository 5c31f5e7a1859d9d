"""The product's search against what it stands on: embedding the question, and one bare hybrid query of Qdrant's client
with the same filter and limits. Both are asked in turn, each time a question that was never asked before; the model
server and the embedded Qdrant are processes of their own, and several people's documents lie in one collection.

Words are drawn as often as they stand in real paragraphs (SQuAD's when ADIYAN_DATA has them, else this checkout's
docs); vectors lie around those of real paragraphs, because embedding 100,000 chunks takes hours here.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from qdrant_client import AsyncQdrantClient, models

from agents.knowledge.searching import Searching
from agents.knowledge.stores import Stores
from mesh.access import Grant, upkeep
from mesh.adapters.ollama import OllamaEmbedder
from mesh.adapters.qdrant import COLLECTION, QdrantPassages
from mesh.adapters.qdrant_queries import DENSE, SPARSE
from mesh.adapters.qdrant_scope import scope
from mesh.adapters.shelf import DiskShelf
from mesh.embedded import parts
from mesh.embedded.supervisor import Supervisor, free_port
from mesh.envelope import digest
from mesh.ports.documents import Chunk, Document, Part, Visibility
from mesh.ports.models import Vector
from mesh.settings import ROOT
from mesh.text import sparse_query

SIZES = tuple(int(size) for size in os.environ.get("ADIYAN_BENCH_SIZES", "1600,10000,100000").split(","))
BAR = 1.3
QUESTIONS = 100
WARM_UP = 40
"""A worker has stemmed most words before: each new one takes 76 µs."""
TOPICS = 128
PER_DOCUMENT = 100
WORDS = 110
NOISE = 0.45
LEG = 40
INDEXED_FROM, INDEXED_WITHIN_S = 10_000, 1200.0
PEOPLE = [f"+1555123{number:04d}" for number in range(8)]
ASKER = Grant(PEOPLE[0], frozenset(), tier="default")
_SQUAD = Path(os.environ.get("ADIYAN_DATA", ROOT.parent / "shared" / "data")) / "abstention" / "squad2"


@dataclass(frozen=True)
class Topics:
    """Real paragraphs with their vectors, and real questions."""

    paragraphs: list[list[str]]
    vectors: np.ndarray[Any, Any]
    words: list[str]
    questions: Iterator[str]


@dataclass(frozen=True)
class Timed:
    """In milliseconds."""

    ours: list[float]
    embedding: list[float]
    query: list[float]

    @property
    def bare(self) -> list[float]:
        return [a + b for a, b in zip(self.embedding, self.query, strict=True)]


async def run() -> dict[str, object]:
    with tempfile.TemporaryDirectory(prefix="adiyan-bench-") as home:
        port = free_port()
        async with Supervisor(Path(home) / "models") as supervisor:
            await supervisor.start(parts.models(port))
            embedder = OllamaEmbedder(
                f"http://127.0.0.1:{port}",
                model="multilingual-e5-small",
                dims=384,
                query_prefix="query: ",
                document_prefix="passage: ",
            )
            topics = await _topics(embedder)
            sizes = {str(size): await _at(size, topics, embedder, Path(home) / str(size)) for size in SIZES}
            await embedder.close()
    worst = max(float(str(figures["ratio"])) for figures in sizes.values())
    return {"ratio": worst, "bar": BAR, **sizes}


async def _topics(embedder: OllamaEmbedder) -> Topics:
    texts, questions = _texts()
    drawn = random.Random(7)
    chosen = drawn.sample(texts, min(TOPICS, len(texts)))
    vectors: list[Vector] = []
    for number, text in enumerate(chosen):
        _tell(f"embedding topics {number}/{len(chosen)}")
        vectors += await embedder.documents([text[:300]])
    drawn.shuffle(questions)
    words = [word for text in texts for word in text.split()]
    return Topics([text.split() for text in chosen], np.asarray(vectors, "float32"), words, iter(questions))


def _texts() -> tuple[list[str], list[str]]:
    if (_SQUAD / "corpus.jsonl").exists():
        texts, questions = (
            [str(json.loads(line)["text"]) for line in (_SQUAD / name).read_text("utf-8").splitlines()]
            for name in ("corpus.jsonl", "queries.jsonl")
        )
        return texts, list(dict.fromkeys(questions))
    written = "\n\n".join(file.read_text("utf-8") for file in sorted((ROOT / "docs").rglob("*.md")))
    texts = [text for text in written.split("\n\n") if len(text) > 200]
    words = " ".join(texts).split()
    return texts, [" ".join(words[start : start + 9]) for start in range(0, len(words) - 9, 9)]


async def _at(size: int, topics: Topics, embedder: OllamaEmbedder, folder: Path) -> dict[str, object]:
    async with Supervisor(folder) as supervisor:
        port = free_port()
        await supervisor.start(parts.qdrant(port, folder / "qdrant"))
        (running,) = supervisor.running
        url = f"http://127.0.0.1:{port}"
        passages = await QdrantPassages.open(url, model=embedder.model, dims=embedder.dims)
        shelf = await DiskShelf.open(folder / "shelf")
        client = AsyncQdrantClient(url=url, timeout=60, check_compatibility=False)
        began = time.perf_counter()
        await _load(size, topics, passages, shelf)
        loaded_s = time.perf_counter() - began
        searching = Searching(Stores(shelf, passages, embedder))
        fresh = await _measured(searching, embedder, client, topics, QUESTIONS // 4)
        indexed_s = await _until_indexed(client, size)
        timed = await _measured(searching, embedder, client, topics, QUESTIONS)
        assert running.process
        rss = psutil.Process(running.process.pid).memory_info().rss / 1e6
        await client.close()
        await passages.close()
    _tell("")
    p50, bare = statistics.median(timed.ours), statistics.median(timed.bare)
    return {
        "ratio": round(p50 / bare, 3),
        "p50_ms": round(p50, 1),
        "p95_ms": round(_p95(timed.ours), 1),
        "bare_ms": round(bare, 1),
        "least_ms": round(min(timed.ours), 1),
        "least_bare_ms": round(min(timed.bare), 1),
        "embed_ms": round(statistics.median(timed.embedding), 1),
        "bare_query_ms": round(statistics.median(timed.query), 1),
        "while_indexing_ratio": round(statistics.median(fresh.ours) / statistics.median(fresh.bare), 3),
        "while_indexing_p95_ms": round(_p95(fresh.ours), 1),
        "rss_mb": round(rss),
        "load_s": round(loaded_s, 1),
        "index_s": round(indexed_s, 1),
    }


async def _load(size: int, topics: Topics, passages: QdrantPassages, shelf: DiskShelf) -> None:
    numbers = np.random.default_rng(size)
    drawn = random.Random(size)
    began = time.perf_counter()
    for start in range(0, size, PER_DOCUMENT):
        count = min(PER_DOCUMENT, size - start)
        topic = drawn.randrange(len(topics.paragraphs))
        texts = [_text(topics, topic, drawn) for _ in range(count)]
        vectors = topics.vectors[topic] + NOISE * numbers.standard_normal((count, topics.vectors.shape[1])) / 384**0.5
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        raw = "\n\n".join(texts).encode()
        owner = PEOPLE[(start // PER_DOCUMENT) % len(PEOPLE)]
        visibility: Visibility = "global" if drawn.random() < 0.5 else "private"
        name = f"document {start}.md"
        document = Document(
            document_id=digest(owner, name),
            owner=owner,
            name=name,
            visibility=visibility,
            sha256=hashlib.sha256(raw).hexdigest(),
            size=len(raw),
            media_type="text/markdown",
            ingested_at=datetime.now(UTC),
            chunks=count,
            parts=(Part("", raw.decode()),),
        )
        chunks = [Chunk(index, text, ("Guide", f"Part {index}")) for index, text in enumerate(texts)]
        await passages.put(upkeep(), document, chunks, vectors.tolist())
        await shelf.put(upkeep(), document, raw, complete=True)
        done = start + count
        _tell(f"{size} chunks: loading {done}, {done / (time.perf_counter() - began):.0f}/s")


def _text(topics: Topics, topic: int, drawn: random.Random) -> str:
    half = WORDS // 2
    return " ".join(drawn.choices(topics.words, k=half) + drawn.choices(topics.paragraphs[topic], k=half))


async def _until_indexed(client: AsyncQdrantClient, size: int) -> float:
    """Seconds. A small collection is searched without an index; words are indexed from the first moment."""
    began = time.perf_counter()
    while size >= INDEXED_FROM and time.perf_counter() - began < INDEXED_WITHIN_S:
        count = (await client.get_collection(COLLECTION)).indexed_vectors_count or 0
        _tell(f"{size} chunks: indexing, {count} vectors, {time.perf_counter() - began:.0f} s")
        if count >= 1.95 * size:
            break
        await asyncio.sleep(0.5)
    return time.perf_counter() - began


async def _measured(
    searching: Searching, embedder: OllamaEmbedder, client: AsyncQdrantClient, topics: Topics, questions: int
) -> Timed:
    """In turn; a model server may know a question that it was asked before, so each has questions of its own."""
    timed = Timed([], [], [])
    for number in range(questions + WARM_UP):
        question, another = next(topics.questions), next(topics.questions)
        began = time.perf_counter()
        found = await searching.evidence(ASKER, question)
        ours = time.perf_counter()
        (vector,) = await embedder.queries([another])
        embedded = time.perf_counter()
        await _bare(client, another, vector)
        asked = time.perf_counter()
        if len(found.hits) < LEG:
            raise RuntimeError(f"only {len(found.hits)} passages were found")
        if number >= WARM_UP:
            timed.ours.append((ours - began) * 1000)
            timed.embedding.append((embedded - ours) * 1000)
            timed.query.append((asked - embedded) * 1000)
    return timed


async def _bare(client: AsyncQdrantClient, text: str, vector: Vector) -> None:
    allowed = scope(ASKER)
    indices, values = sparse_query(text)
    words = models.SparseVector(indices=indices, values=values)
    await client.query_points(
        COLLECTION,
        prefetch=[
            models.Prefetch(query=list(vector), using=DENSE, filter=allowed, limit=LEG),
            models.Prefetch(query=words, using=SPARSE, filter=allowed, limit=LEG),
        ],
        query=models.FusionQuery(fusion=models.Fusion.RRF),
        limit=LEG,
        with_payload=True,
    )


def _p95(values: Sequence[float]) -> float:
    return sorted(values)[int(0.95 * (len(values) - 1))]


def _tell(text: str) -> None:
    """On one line of a terminal; a log gets nothing of it."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{text}")
        sys.stderr.flush()
