"""Whether following links, replies and tags one step helps. Notes are saved as in chat, and each question is searched
for without and with the step: those whose answer lies in the note that the found one leads to, and those whose answer
the found one holds itself. The pull is chosen on every other question, and reported on the rest.

Each row of `notes.jsonl` is two notes, how the one leads to the other, and a question of each kind; or a note alone,
with a question or without. Those alone are of the same kinds of facts, and have tags that lead to one another.

`--data DIR`, a folder of `corpus*.jsonl` and `queries*.jsonl`: its texts saved as notes that chance has linked and
tagged, and its questions, each answered by the note itself. There the step can only do harm, and this says how much."""

from __future__ import annotations

import json
import random
import time
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Literal
from unittest.mock import patch

from rich.console import Console
from rich.progress import track

from agents.knowledge.breaker import Breaker
from agents.knowledge.library import Library
from agents.knowledge.noting import Written
from agents.knowledge.searching import FOUND_WITHIN_S, Searched
from agents.knowledge.stores import Stores
from agents.knowledge.walking import PULL, walked
from mesh.access import Grant
from mesh.adapters.notes import RARE
from mesh.adapters.ollama import OllamaEmbedder
from mesh.adapters.qdrant import QdrantPassages
from mesh.adapters.shelf import DiskShelf
from mesh.contracts.notes import SaveNote
from mesh.ports.notes import Link
from tests.bench.corpora import NoSuchSet, load
from tests.processes import models, qdrant

SET = Path(__file__).with_name("notes.jsonl")
WRITER = Grant("+15551230001", frozenset(), tier="bench")
ASKED = ("one_step", "one_step_otherwise", "direct")
"""What the found note leads to: with words of its own, or without; or the found note itself."""
Asked = Literal["one_step", "one_step_otherwise", "direct"]
MEANING = Breaker("search by meaning", within=FOUND_WITHIN_S)
LINKS = 2
MOST_ASKED = 600
PULLS = (0.0, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.98)


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    gold: str
    """The id of the note that answers it."""
    kind: str
    asked: Asked


async def run(data: Path | None = None, language: str = "en") -> dict[str, object]:
    if data:
        return await _harm(data, language)
    async with _library() as library:
        questions, notes = await _saved(library)
        found = {
            question: await _unled(library, question.text)
            for question in track(questions, "searching", console=Console(stderr=True))
        }
        places: dict[float, dict[Question, int]] = {}
        took: dict[float, float] = {}
        for pull in PULLS:
            times = []
            places[pull] = {}
            for question, searched in found.items():
                began = time.perf_counter()
                stepped = (
                    await walked(library.stores, WRITER, question.text, searched, MEANING, pull) if pull else searched
                )
                times.append(time.perf_counter() - began)
                places[pull][question] = _place(stepped, question.gold)
            took[pull] = round(1000 * median(times), 2)
    chosen_on, reported_on = questions[::2], questions[1::2]
    best = max(PULLS, key=lambda pull: (_recall(places[pull], chosen_on), -pull))
    return {
        "notes": notes,
        "questions": len(questions),
        "pull_chosen_on_one_half": best,
        "pull_shipped": PULL,
        "without": _figures(places[0.0], reported_on),
        "with": _figures(places[best], reported_on),
        "all_without": _figures(places[0.0], questions),
        "all_with_shipped": _figures(places[PULL], questions),
        "recall_at_4_by_pull": {
            str(pull): [_figures(places[pull], questions)[f"{name}_at_4"] for name in ASKED] for pull in PULLS
        },
        "by_kind": {
            kind: {
                "without": _share([places[0.0][q] for q in questions if q.asked != "direct" and q.kind == kind]),
                "with": _share([places[PULL][q] for q in questions if q.asked != "direct" and q.kind == kind]),
            }
            for kind in ("link", "tag", "reply")
        },
        "step_p50_ms": took[PULL],
    }


async def _harm(data: Path, language: str) -> dict[str, object]:
    chance = random.Random(20261130)
    try:
        chosen = load(data, language)
    except NoSuchSet as error:
        return {"skipped": str(error)}
    titles = [Written.of(entry.text).title for entry in chosen.entries]
    ids: dict[str, str] = {}
    places: dict[str, list[int]] = {"without": [], "with": []}
    moved = 0
    async with _library() as library:
        for entry in track(chosen.entries, "saving", console=Console(stderr=True)):
            links = " ".join(f"[[{title}]]" for title in chance.sample(titles, LINKS))
            text = f"{entry.text}\n\n{links} #{chance.randrange(len(titles) // RARE)}x"
            saved = await library.noting.save(WRITER, SaveNote(text=text, message_id=entry.id))
            ids[entry.id] = saved.document.document_id
        for question in track(chosen.answerable[:MOST_ASKED], "searching", console=Console(stderr=True)):
            found = await _unled(library, question.text)
            stepped = await walked(library.stores, WRITER, question.text, found, MEANING)
            moved += [hit.reference for hit in stepped.hits[:4]] != [hit.reference for hit in found.hits[:4]]
            for way, searched in (("without", found), ("with", stepped)):
                at = [_place(searched, ids[gold]) for gold in question.gold]
                places[way].append(min((place for place in at if place), default=0))
    return {
        "notes": len(ids),
        "questions": len(places["with"]),
        "first_four_changed": moved,
        **{way: {f"recall_at_{most}": _share(of, most) for most in (1, 4, 10)} for way, of in places.items()},
    }


async def _unled(library: Library, text: str) -> Searched:
    """The search as it is without the step: nothing leads anywhere."""

    async def nowhere(*_: object) -> list[Link]:
        return []

    notes = library.stores.shelf.notes
    with patch.object(notes, "near", nowhere):
        return await library.searching.evidence(WRITER, text)


def _place(found: Searched, gold: str) -> int:
    """Among the documents; 0: not there."""
    order = list(dict.fromkeys(hit.document.document_id for hit in found.hits))
    return order.index(gold) + 1 if gold in order else 0


def _recall(places: dict[Question, int], questions: Sequence[Question]) -> float:
    return sum(0 < places[question] <= 4 for question in questions) / len(questions)


def _figures(places: dict[Question, int], questions: Sequence[Question]) -> dict[str, float]:
    figures: dict[str, float] = {}
    for name in ASKED:
        of = [places[question] for question in questions if question.asked == name]
        figures[f"{name}_at_1"] = _share(of, 1)
        figures[f"{name}_at_4"] = _share(of)
        figures[f"{name}_mrr"] = round(sum(1 / place for place in of if place) / len(of), 3)
    return figures


def _share(places: Sequence[int], most: int = 4) -> float:
    return round(sum(0 < place <= most for place in places) / len(places), 3)


async def _saved(library: Library) -> tuple[list[Question], int]:
    rows = [json.loads(line) for line in SET.read_text("utf-8").splitlines()]
    questions: list[Question] = []
    ways: tuple[Asked, ...] = ("one_step", "one_step_otherwise")
    notes = 0
    for row in track(rows, "saving", console=Console(stderr=True)):
        first_id = uuid.uuid4().hex
        first = await library.noting.save(WRITER, SaveNote(text=row["first"], message_id=first_id))
        notes += 1
        if "direct" in row:
            questions.append(Question(row["direct"], first.document.document_id, row["kind"], "direct"))
        if not row["kind"]:
            continue
        chain = (first_id,) if row["kind"] == "reply" else ()
        second = await library.noting.save(
            WRITER, SaveNote(text=row["second"], message_id=uuid.uuid4().hex, replies_to=chain)
        )
        notes += 1
        gold = second.document.document_id
        questions += [Question(row[asked], gold, row["kind"], asked) for asked in ways]
    questions.sort(key=lambda question: question.asked)  # so that each half has as many of each
    return questions, notes


@asynccontextmanager
async def _library() -> AsyncIterator[Library]:
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        embedder = OllamaEmbedder(
            stack.enter_context(models(folder / "models")),
            model="multilingual-e5-small",
            dims=384,
            query_prefix="query: ",
            document_prefix="passage: ",
        )
        stack.push_async_callback(embedder.close)
        passages = await QdrantPassages.open(
            stack.enter_context(qdrant(folder / "qdrant")), model=embedder.model, dims=384
        )
        stack.push_async_callback(passages.close)
        yield Library(Stores(await DiskShelf.open(folder / "shelf"), passages, embedder))
