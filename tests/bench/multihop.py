"""Questions that take more than one passage, put to the product's own search with its second hop, and to the simple
baselines over the same index, which take one: BM25 alone, dense alone, both fused. `all_gold_at_5` is the share of
questions all of whose passages are among the first five. `answered` is the share that the answering stage answers, and
`says_answer` the share in which what it quotes has an answer of the set in it; of questions whose answer is yes or no,
nothing can be said so.

`--data` is a folder of one set, or of several, each in a folder of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import track

from agents.knowledge.grounding import answered
from agents.knowledge.hopping import PLACES
from mesh.contracts.answers import Ask
from mesh.settings import ROOT
from mesh.text import words
from tests.bench.corpora import NoSuchSet, Question, QuestionSet, Served, ingested, load
from tests.bench.retrieval import OURS, Scores, ordered, show, timed

DATA = Path(os.environ.get("ADIYAN_DATA", ROOT.parent / "shared" / "data")) / "multihop"


async def run(data: Path = DATA, language: str = "", corpus_language: str = "") -> dict[str, object]:
    figures: dict[str, dict[str, object]] = {}
    for folder in _folders(data):
        try:
            chosen = load(folder, language, corpus_language)
        except NoSuchSet as error:
            return {"skipped": str(error)}
        Console().print(folder.name)
        figures[folder.name] = await _of(chosen)
    return {"data": data.name, **figures[data.name]} if list(figures) == [data.name] else {**figures}


def _folders(data: Path) -> list[Path]:
    """The folder itself where it has a set, or nothing."""
    inside = sorted({found.parent for found in data.glob("*/corpus*.jsonl")})
    return inside if inside and not list(data.glob("corpus*.jsonl")) else [data]


async def _of(chosen: QuestionSet) -> dict[str, object]:
    questions = chosen.answerable
    async with ingested(chosen.entries) as served:
        took = await timed(served, questions, hop=PLACES)
        scores = await ordered(served, questions, took, hop=PLACES)
        told = await _told(served, questions)
    figures = {way: each.figures for way, each in scores.items()}
    show(figures)
    return {
        "entries": len(chosen.entries),
        "chunks": served.chunks,
        **figures.pop(OURS),
        **told,
        "by_type": dict(_by_type(chosen, scores)),
        "baselines": figures,
    }


async def _told(served: Served, questions: Sequence[Question]) -> dict[str, float]:
    wanted = [each for each in questions if not {_level(answer) for answer in each.answers} & {"yes", "no"}]
    given, said = 0, 0
    for question in track(wanted, "answering", console=Console(stderr=True)):
        answer = await answered(served.library, served.grant, Ask(text=question.text))
        quoted = _level(" ".join(source.quote for source in answer.sources))
        given += answer.grounded
        said += answer.grounded and any(_level(each) in quoted for each in question.answers)
    return {"answered": round(given / len(wanted), 4), "says_answer": round(said / len(wanted), 4)} if wanted else {}


def _level(text: str) -> str:
    return " ".join(words(text))


def _by_type(chosen: QuestionSet, scores: dict[str, Scores]) -> Iterator[tuple[str, dict[str, dict[str, float]]]]:
    """Of the questions that have one; the times are those of all."""
    types = [str(question.raw.get("type") or "") for question in chosen.answerable]
    for kind in sorted(set(types) - {""}):
        yield (
            kind,
            {
                way: Scores(
                    [found for found, other in zip(each.found, types, strict=True) if other == kind], each.took
                ).figures
                for way, each in scores.items()
            },
        )
