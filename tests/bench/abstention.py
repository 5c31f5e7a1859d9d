"""Whether the product knows what it does not know: questions that its library answers, and questions that it does not.

- `labelled`: the set says which are which (`answerable`).
- `gold-removed`: every answerable question twice, with its gold documents and without them. Without: their passages are
  deleted from the index before it is asked, and put back afterwards, so that neither the candidates nor the frequencies
  of words know of them.
- `off-topic`: answerable questions, and those of a set about something else (`other`).

`auroc` is of the confidence that a person's answer comes with; the baselines are the best cosine, BM25 score and fused
score of the same search. `refused` is the share of the answerable that got no answer, `invented` that of the others
that got one. Times are those of at most 100 questions, whose texts the model server embeds."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path, PurePosixPath
from statistics import median
from typing import Literal, get_args

from rich.console import Console
from rich.progress import track
from rich.table import Table

from agents.knowledge.chunking import chunk, embedding_text
from agents.knowledge.grounding import answered
from agents.knowledge.library import Library
from agents.knowledge.ranking import fuse
from mesh.contracts.answers import Answer, Ask
from mesh.errors import Unavailable
from mesh.ports.passages import Passage
from mesh.settings import ROOT
from tests.bench.corpora import NoSuchSet, Question, QuestionSet, Served, ingested, load

SETS = Path(os.environ.get("ADIYAN_DATA", ROOT.parent / "shared" / "data"))
DATA = SETS / "abstention" / "squad2"
PER_LEG = 40
TIMED = 100
TRIES = 30
PAUSE_S = 2.0
WHOLE = "search: hybrid"
BASELINES = ("top_cosine", "top_bm25", "fused")

Regime = Literal["labelled", "gold-removed", "off-topic"]


@dataclass(frozen=True, slots=True)
class Asked:
    question: Question
    answerable: bool
    confidence: float
    answers: bool
    sources: tuple[str, ...]
    baselines: tuple[float, ...]

    @property
    def right(self) -> bool:
        return bool(self.question.gold.intersection(self.sources))


async def run(
    data: Path = DATA,
    regime: str = "gold-removed",
    other: Path | None = None,
    language: str = "",
    corpus_language: str = "",
) -> dict[str, object]:
    if regime not in get_args(Regime):
        return {"skipped": f"no regime {regime!r}; there is {', '.join(get_args(Regime))}"}
    try:
        chosen = load(data, language, corpus_language)
        others = _others(chosen, other) if regime == "off-topic" else None
    except NoSuchSet as error:
        return {"skipped": str(error)}
    strangers = others[1].questions if others else ()
    questions = chosen.questions if regime == "labelled" else (*chosen.answerable, *strangers)
    async with ingested(chosen.entries) as served:
        took = await _timed(served, questions)
        match regime:
            case "labelled":
                asked = await _each(served, [(question, question.answerable) for question in questions])
            case "gold-removed":
                asked = await _with_and_without(served, questions)
            case _:
                unknown = frozenset(map(id, strangers))
                asked = await _each(served, [(question, id(question) not in unknown) for question in questions])
    figures = _figures(asked)
    _print(figures)
    return {
        "data": data.name,
        "regime": regime,
        **({"other": others[0]} if others else {}),
        "language": chosen.language,
        "corpus_language": chosen.corpus_language,
        "entries": len(chosen.entries),
        "chunks": served.chunks,
        **figures,
        "p50_ms": round(median(took) * 1000, 1),
    }


# ── asking ────────────────────────────────────────────────────────────────────────────────────────────────────────


async def _each(served: Served, questions: Sequence[tuple[Question, bool]]) -> list[Asked]:
    shown = track(questions, "asking", console=Console(stderr=True))
    return [await _ask(served, question, answerable=answerable) for question, answerable in shown]


async def _with_and_without(served: Served, questions: Sequence[Question]) -> list[Asked]:
    """The questions of the same gold one after another: it is taken away once for all of them."""
    sharing = [list(group) for _, group in groupby(sorted(questions, key=_gold), key=_gold)]
    found: list[Asked] = []
    for group in track(sharing, "asking", console=Console(stderr=True)):
        found += [await _ask(served, question, answerable=True) for question in group]
        async with _without(served, group[0].gold):
            found += [await _ask(served, question, answerable=False) for question in group]
    return found


def _gold(question: Question) -> list[str]:
    return sorted(question.gold)


@asynccontextmanager
async def _without(served: Served, gold: frozenset[str]) -> AsyncIterator[None]:
    stores, grant = served.library.stores, served.grant
    taken = []
    for entry in sorted(gold):
        (listed,) = await stores.shelf.named(grant, f"{entry}.md")
        document = await served.library.text(grant, listed.document_id)
        chunks = chunk(document.media_type, document.parts)
        vectors = await stores.embedder.documents([embedding_text(document.name, each) for each in chunks])
        taken.append((document, chunks, vectors))
        await stores.passages.delete(grant, document.document_id)
    try:
        yield
    finally:
        for document, chunks, vectors in taken:
            await stores.passages.put(grant, document, chunks, vectors)


async def _ask(served: Served, question: Question, *, answerable: bool) -> Asked:
    stores = served.library.stores
    answer = await _answer(served, served.library, question)
    (vector,) = await stores.embedder.queries([question.text])
    passages = await stores.passages.search(served.grant, question.text, vector, limit=PER_LEG)
    sources = tuple(PurePosixPath(source.name).stem for source in answer.sources)
    return Asked(question, answerable, answer.confidence, answer.grounded, sources, _baselines(passages))


async def _answer(served: Served, library: Library, question: Question) -> Answer:
    """By the whole search: on a machine that is too busy for it a lower level answers, and that is another figure."""
    for _ in range(TRIES):
        with suppress(Unavailable):
            answer = await answered(library, served.grant, Ask(text=question.text))
            if set(answer.steps) <= {WHOLE}:
                return answer
        await asyncio.sleep(PAUSE_S)
    raise Unavailable(f"The search fell back to a lower level {TRIES} times. Run it when the machine has less to do.")


def _baselines(passages: Sequence[Passage]) -> tuple[float, ...]:
    dense = {place: passage.dense for place, passage in enumerate(passages) if passage.dense is not None}
    sparse = {place: passage.sparse for place, passage in enumerate(passages) if passage.sparse is not None}
    fused = fuse(dense, sparse)
    return (max(dense.values(), default=0.0), max(sparse.values(), default=0.0), fused[0][1] if fused else 0.0)


async def _timed(served: Served, questions: Sequence[Question]) -> list[float]:
    step = max(1, len(questions) // TIMED)
    took = []
    for question in track(questions[::step][:TIMED], "timing", console=Console(stderr=True)):
        began = time.perf_counter()
        await _answer(served, served.timed, question)
        took.append(time.perf_counter() - began)
    return took


# ── a set about something else ────────────────────────────────────────────────────────────────────────────────────


def _others(chosen: QuestionSet, folder: Path | None) -> tuple[str, QuestionSet]:
    """Without a folder: of the sets there are, the one whose corpus has the fewest titles and texts in common."""
    if folder:
        return folder.name, load(folder)
    known = {entry.title or entry.text for entry in chosen.entries} | {entry.text for entry in chosen.entries}
    found = []
    for each in sorted({path.parent for path in SETS.glob("*/*/queries*.jsonl")}):
        other = load(each)
        shared = sum(entry.title in known or entry.text in known for entry in other.entries)
        found.append((shared / max(1, len(other.entries)), each.name, other))
    if not found:
        raise NoSuchSet(f"no set under {SETS} to take other questions from: --other or ADIYAN_DATA says where")
    _, name, other = min(found, key=lambda each: each[:2])
    return name, other


# ── figures ───────────────────────────────────────────────────────────────────────────────────────────────────────


def auroc(higher: Sequence[float], lower: Sequence[float]) -> float:
    """How often one of the first is above one of the second; a tie is half."""
    ranked = sorted([(value, True) for value in higher] + [(value, False) for value in lower])
    total, place = 0.0, 0
    for _, group in groupby(ranked, key=lambda each: each[0]):
        mine = [of_first for _, of_first in group]
        total += sum(mine) * (place + (len(mine) + 1) / 2)
        place += len(mine)
    first, second = len(higher), len(lower)
    return (total - first * (first + 1) / 2) / (first * second) if first and second else 0.0


def _figures(asked: Sequence[Asked]) -> dict[str, object]:
    known = [each for each in asked if each.answerable]
    unknown = [each for each in asked if not each.answerable]
    return {
        "n": len(asked),
        "answerable": len(known),
        "auroc": round(auroc([each.confidence for each in known], [each.confidence for each in unknown]), 4),
        "baselines": {
            name: {"auroc": round(auroc(*([each.baselines[at] for each in some] for some in (known, unknown))), 4)}
            for at, name in enumerate(BASELINES)
        },
        "refused": _share([not each.answers for each in known]),
        "invented": _share([each.answers for each in unknown]),
        "quoted_gold": _share([each.right for each in known if each.answers]),
    }


def _share(which: Sequence[bool]) -> float:
    return round(sum(which) / len(which), 4) if which else 0.0


def _print(figures: dict[str, object]) -> None:
    baselines = figures["baselines"]
    assert isinstance(baselines, dict)
    table = Table("score", "auroc", title="answerable or not", title_justify="left")
    table.add_row("ours", str(figures["auroc"]))
    for name, each in baselines.items():
        table.add_row(name, str(each["auroc"]))
    Console().print(table)
