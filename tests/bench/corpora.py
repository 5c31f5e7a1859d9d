"""Folders of `corpus*.jsonl` ({id, title, text}) and `queries*.jsonl` ({id, text, answers, gold, answerable}), and the
product's own library filled with one: each entry is a document `<id>.md`, so that a hit tells the entry that it is of.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console
from rich.progress import track

from agents.knowledge.library import Library
from agents.knowledge.searching import Hit
from agents.knowledge.stores import Stores
from mesh.access import Grant
from mesh.adapters.ollama import OllamaEmbedder
from mesh.adapters.qdrant import QdrantPassages
from mesh.adapters.shelf import DiskShelf
from mesh.settings import Settings
from tests.bench.vectors import Remembering
from tests.processes import models, qdrant

READER = Grant("+15551230001", frozenset({"documents:add", "knowledge:search"}), tier="bench")


AT_ONCE = 8


class NoSuchSet(Exception):
    """Its text says what there is."""


@dataclass(frozen=True, slots=True)
class Entry:
    id: str
    title: str
    text: str

    @property
    def markdown(self) -> str:
        return f"# {self.title}\n\n{self.text}" if self.title else self.text


@dataclass(frozen=True, slots=True)
class Question:
    id: str
    text: str
    gold: frozenset[str]
    answers: tuple[str, ...]
    answerable: bool
    raw: dict[str, Any] = field(repr=False)
    """The row as it is written, for what one set has and another has not."""


@dataclass(frozen=True, slots=True)
class QuestionSet:
    entries: tuple[Entry, ...]
    questions: tuple[Question, ...]
    language: str
    corpus_language: str

    @property
    def answerable(self) -> tuple[Question, ...]:
        return tuple(question for question in self.questions if question.answerable and question.gold)


def load(folder: Path, language: str = "", corpus_language: str = "") -> QuestionSet:
    """Raises `NoSuchSet`. Without a language: the file that names none, else the first."""
    language, asked = _chosen(folder, "queries", language)
    try:
        corpus_language, found = _chosen(folder, "corpus", corpus_language or language)
    except NoSuchSet:
        if corpus_language:
            raise
        corpus_language, found = _chosen(folder, "corpus", "")
    return QuestionSet(
        entries=tuple(Entry(row["id"], row.get("title") or "", row["text"]) for row in _rows(found)),
        questions=tuple(_question(row) for row in _rows(asked)),
        language=language,
        corpus_language=corpus_language,
    )


def _chosen(folder: Path, kind: str, language: str) -> tuple[str, Path]:
    files = {
        path.name.removeprefix(kind).removesuffix(".jsonl").strip("._-"): path for path in folder.glob(f"{kind}*.jsonl")
    }
    if not files:
        raise NoSuchSet(f"no {kind}*.jsonl in {folder}: --data or ADIYAN_DATA says where the sets are")
    if language and language not in files and set(files) != {""}:
        raise NoSuchSet(f"no {kind}.{language}.jsonl in {folder}; there is {', '.join(sorted(files))}")
    chosen = language if language in files else min(files)
    return chosen, files[chosen]


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


def _question(row: dict[str, Any]) -> Question:
    gold = frozenset(row.get("gold") or ())
    answerable = bool(row.get("answerable", bool(gold)))
    return Question(str(row["id"]), row["text"], gold, tuple(row.get("answers") or ()), answerable, row)


# ── the library ───────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Served:
    """`library` embeds through a memory; `timed` is the same library with the server's own embedder."""

    library: Library
    timed: Library
    qdrant_url: str
    chunks: int
    grant: Grant = READER


@asynccontextmanager
async def ingested(entries: Sequence[Entry]) -> AsyncIterator[Served]:
    """The embedded servers, with these entries in them."""
    chosen = Settings()
    with (
        TemporaryDirectory() as made,
        qdrant(Path(made) / "qdrant") as qdrant_url,
        models(Path(made) / "models") as host,
    ):
        embedder = OllamaEmbedder(
            host,
            model=chosen.embedding_model,
            dims=chosen.embedding_dims,
            query_prefix=chosen.embedding_query_prefix,
            document_prefix=chosen.embedding_document_prefix,
        )
        async with AsyncExitStack() as opened:
            remembering = Remembering(embedder)
            opened.push_async_callback(remembering.close)
            passages = await QdrantPassages.open(qdrant_url, model=embedder.model, dims=embedder.dims)
            opened.push_async_callback(passages.close)
            shelf = await DiskShelf.open(Path(made) / "knowledge")
            opened.push_async_callback(shelf.close)
            library = Library(Stores(shelf, passages, remembering))
            chunks = await _ingest(library, entries)
            yield Served(library, Library(Stores(shelf, passages, embedder)), qdrant_url, chunks)


async def _ingest(library: Library, entries: Sequence[Entry]) -> int:
    """How many chunks they make. Several at a time: each waits for a process that reads it."""
    chunks = 0
    for start in track(range(0, len(entries), AT_ONCE), "ingesting", console=Console(stderr=True)):
        done = await asyncio.gather(
            *(
                library.ingesting.ingest(READER, f"{entry.id}.md", entry.markdown.encode())
                for entry in entries[start : start + AT_ONCE]
            )
        )
        chunks += sum(document.chunks for document, _ in done)
    return chunks


def entries_of(hits: Iterable[Hit]) -> list[str]:
    """Each entry once, in the order of its best passage."""
    return list(dict.fromkeys(PurePosixPath(hit.document.name).stem for hit in hits))
