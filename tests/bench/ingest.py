"""Ingestion against the bare embedding call: the same texts, in turns, so that noise meets both alike.

The product is the whole of it: the child process that reads, cutting, the cache, the shelf's SQLite, Qdrant. The
product, the bare call and LlamaIndex have a model server each; while one works, the others rest.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import ollama
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from agents.knowledge.chunking import chunk, embedding_text
from agents.knowledge.library import Library
from agents.knowledge.parsing import parse
from agents.knowledge.stores import Stores
from mesh.access import Grant
from mesh.adapters.ollama import OllamaEmbedder
from mesh.adapters.qdrant import QdrantPassages
from mesh.adapters.shelf import DiskShelf
from mesh.adapters.vectors import SqliteVectors
from mesh.envelope import digest
from mesh.errors import Unreadable
from mesh.ports.models import Vector
from mesh.settings import ROOT, Settings
from tests.processes import models, qdrant

DATA = Path(os.environ.get("ADIYAN_DATA", ROOT.parent / "shared" / "data")) / "abstention" / "squad2"
CLIENT = Grant("+15551230001", frozenset(), tier="bench")
MOST = 240
"""Chunks: the embedder makes four to six a second."""
SLICE = 60
ENTRIES = 20
"""Of a corpus, in one document."""
DOCUMENTS_AT_ONCE = 2
SIZES = (1, 8, 32)
ONE_BY_ONE = 12
"""Chunks of each slice that LlamaIndex inserts."""


@dataclass(frozen=True)
class Text:
    """A document, and what of it is embedded."""

    name: str
    raw: bytes
    texts: tuple[str, ...]


class Counting(OllamaEmbedder):
    texts = 0

    async def documents(self, texts: Sequence[str]) -> list[Vector]:
        self.texts += len(texts)
        return await super().documents(texts)


@dataclass
class Clock:
    chunks: int = 0
    seconds: float = 0.0

    async def run(self, work: Coroutine[Any, Any, int]) -> None:
        began = time.perf_counter()
        self.chunks += await work
        self.seconds += time.perf_counter() - began

    def __add__(self, other: Clock) -> Clock:
        return Clock(self.chunks + other.chunks, self.seconds + other.seconds)

    @property
    def per_s(self) -> float:
        return self.chunks / self.seconds if self.seconds else 0.0


@dataclass
class Bench:
    library: Library
    embedder: Counting
    bare_url: str
    one_by_one: Callable[[str], None]
    progress: Progress
    task: TaskID
    settings: Settings = field(default_factory=Settings)

    async def ingest(self, documents: Sequence[Text], *, again: bool = False) -> int:
        """As a folder is taken in: while one document is embedded, the next one is read. `again`: all of it, from the
        bytes on, of documents that are there already."""
        ingesting, left = self.library.ingesting, iter(documents)

        async def each() -> None:
            for document in left:
                if again:
                    await ingesting.rebuild(CLIENT, digest(CLIENT.client, document.name))
                else:
                    await ingesting.ingest(CLIENT, document.name, document.raw)
                self.progress.advance(self.task, len(document.texts))

        await asyncio.gather(*(each() for _ in range(DOCUMENTS_AT_ONCE)))
        return sum(len(document.texts) for document in documents)

    async def bare(self, documents: Sequence[Text], size: int, url: str = "") -> int:
        texts = [self.settings.embedding_document_prefix + text for each in documents for text in each.texts]
        client = ollama.AsyncClient(host=url or self.bare_url)
        for start in range(0, len(texts), size):
            some = texts[start : start + size]
            await client.embed(model=self.settings.embedding_model, input=some)
            self.progress.advance(self.task, len(some))
        await client.close()  # type: ignore[no-untyped-call]  # ollama's annotation is missing
        return len(texts)

    async def inserted(self, texts: Sequence[str]) -> int:
        for text in texts:
            await asyncio.to_thread(self.one_by_one, text)
            self.progress.advance(self.task)
        return len(texts)


async def run(data: Path | None = None, chunks: int = MOST) -> dict[str, object]:
    """Without `data`: SQuAD's paragraphs if they are there, else texts that are made up."""
    if data and not data.is_dir():
        return {"skipped": f"{data} is no folder"}
    found = data or (DATA if DATA.is_dir() else None)
    documents, left_out = await _documents(_files(found) if found else _bundles(_made()), chunks)
    if not documents:
        return {"skipped": f"no file of {found} can be read without OCR and has at most {chunks} chunks"}
    slices = list(_slices(documents))
    total = sum(len(document.texts) for document in documents)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with TemporaryDirectory() as made, Progress(*columns, console=Console(stderr=True)) as progress:
        folder = Path(made)
        task = progress.add_task("chunks", total=3 * total + len(slices) * ONE_BY_ONE + len(SIZES) * SIZES[-1])
        async with _opened(folder, progress, task) as bench:
            by_size = await _by_size(bench, folder, documents)
            size = max(by_size, key=lambda each: by_size[each])
            product, bare, again, one_by_one = Clock(), Clock(), Clock(), Clock()
            ratios: list[float] = []
            for number, some in enumerate(slices):
                ours, theirs = Clock(), Clock()
                turns = [(ours, bench.ingest(some)), (theirs, bench.bare(some, size))]
                for clock, work in turns if number % 2 else reversed(turns):
                    await clock.run(work)
                product, bare = product + ours, bare + theirs
                ratios.append(round(ours.per_s / theirs.per_s, 2))
                await one_by_one.run(bench.inserted([text for each in some for text in each.texts][:ONE_BY_ONE]))
            embedded = bench.embedder.texts
            await again.run(bench.ingest(documents, again=True))
            embedded_again = bench.embedder.texts - embedded
    return {
        "texts": found.name if found else "made up",
        "documents": len(documents),
        "chunks": total,
        "left_out": left_out,
        "chunks_per_s": round(product.per_s, 2),
        "bare_chunks_per_s": round(bare.per_s, 2),
        "ratio": round(product.per_s / bare.per_s, 3),
        "ratio_by_slice": ratios,
        "bare_batch": size,
        "bare_by_batch": {str(each): round(rate, 2) for each, rate in by_size.items()},
        "reingest_chunks_per_s": round(again.per_s, 2),
        "reingest_embedded": embedded_again,
        "llamaindex_one_by_one_chunks_per_s": round(one_by_one.per_s, 2),
        "characters_per_chunk": round(sum(len(text) for each in documents for text in each.texts) / total),
    }


async def _by_size(bench: Bench, folder: Path, documents: Sequence[Text]) -> dict[int, float]:
    """Chunks a second of the bare call, by the texts in one call; each size has a server that knows none of them."""
    some = [Text("", b"", tuple(text for each in documents for text in each.texts)[: SIZES[-1]])]
    found = {}
    for size in SIZES:
        clock = Clock()
        with models(folder / f"batch-{size}") as url:
            await clock.run(bench.bare(some, size, url))
        found[size] = clock.per_s
    return found


@asynccontextmanager
async def _opened(folder: Path, progress: Progress, task: TaskID) -> AsyncIterator[Bench]:
    chosen = Settings()
    with (
        qdrant(folder / "qdrant") as index,
        models(folder / "product") as host,
        models(folder / "bare") as bare_host,
        models(folder / "llamaindex") as other_host,
    ):
        embedder = Counting(
            host,
            model=chosen.embedding_model,
            dims=chosen.embedding_dims,
            query_prefix=chosen.embedding_query_prefix,
            document_prefix=chosen.embedding_document_prefix,
        )
        async with AsyncExitStack() as opened:
            opened.push_async_callback(embedder.close)
            passages = await QdrantPassages.open(index, model=embedder.model, dims=embedder.dims)
            opened.push_async_callback(passages.close)
            shelf = await DiskShelf.open(folder / "knowledge")
            cache = SqliteVectors(folder / "knowledge" / "vectors.sqlite", model=embedder.model, dims=embedder.dims)
            library = Library(Stores(shelf, passages, embedder, cache))
            yield Bench(library, embedder, bare_host, _llamaindex(index, other_host, chosen), progress, task)


def _llamaindex(index: str, host: str, chosen: Settings) -> Callable[[str], None]:
    from llama_index.core import Document, VectorStoreIndex
    from llama_index.embeddings.ollama import OllamaEmbedding
    from llama_index.vector_stores.qdrant import QdrantVectorStore
    from qdrant_client import QdrantClient

    embedding = OllamaEmbedding(chosen.embedding_model, host, text_instruction=chosen.embedding_document_prefix.strip())
    store = QdrantVectorStore("llamaindex", client=QdrantClient(url=index, check_compatibility=False))
    opened = VectorStoreIndex.from_vector_store(store, embedding, transformations=[])
    return lambda text: opened.insert(Document(text=text))


# ── documents ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def _documents(files: Iterable[tuple[str, bytes]], most: int) -> tuple[list[Text], int]:
    """Up to `most` chunks; and how many files were left out: refused, read by OCR, or longer than the rest of that."""
    found: list[Text] = []
    left_out = 0
    for name, raw in files:
        room = most - sum(len(each.texts) for each in found)
        if room <= most // 10:
            break
        try:
            parsed = await parse(name, raw)
        except Unreadable:
            left_out += 1
            continue
        texts = tuple(
            embedding_text(name, each) for each in await asyncio.to_thread(chunk, parsed.media_type, parsed.parts)
        )
        if not texts or len(texts) > room or any(part.how for part in parsed.parts):
            left_out += 1
        else:
            found.append(Text(name, raw, texts))
    return found, left_out


def _files(data: Path) -> Iterator[tuple[str, bytes]]:
    corpora = sorted(data.glob("corpus*.jsonl"))
    if corpora:
        rows = (json.loads(line) for line in corpora[0].read_text("utf-8").splitlines() if line.strip())
        yield from _bundles(f"# {row.get('title') or row['id']}\n\n{row['text']}\n" for row in rows)
    elif (data / "manifest.json").exists():
        for listed in json.loads((data / "manifest.json").read_text("utf-8")):
            if listed["outcome"] == "ok" and listed.get("via") != "ocr":
                yield listed["file"], (data / listed["file"]).read_bytes()
    else:
        for path in sorted(each for each in data.rglob("*") if each.is_file()):
            yield path.name, path.read_bytes()


def _bundles(entries: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    held: list[str] = []
    number = 0
    for entry in entries:
        held.append(entry)
        if len(held) == ENTRIES:
            number += 1
            yield f"bundle {number}.md", "\n".join(held).encode()
            held = []
    if held:
        yield f"bundle {number + 1}.md", "\n".join(held).encode()


def _made() -> Iterator[str]:
    """Without data: each paragraph says something else."""
    things = ("room", "boat", "garden", "invoice", "kitchen", "bicycle", "concert", "lease")
    for number in range(2 * MOST):
        thing, other = things[number % 8], things[(number // 8) % 8]
        said = (
            f"In week {number + line} the {thing} of house {number} costs {17 * number + line} euros, "
            f"and the {other} is open from {6 + line} to {14 + line}."
            for line in range(7)
        )
        yield f"# The {thing} {number}\n\n{' '.join(said)}\n"


def _slices(documents: Sequence[Text]) -> Iterator[list[Text]]:
    held: list[Text] = []
    for document in documents:
        held.append(document)
        if sum(len(each.texts) for each in held) >= SLICE:
            yield held
            held = []
    if held:
        yield held
