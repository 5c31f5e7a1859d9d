"""The sets that the benches of search read, and the memory for their vectors."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from mesh.ports.models import Vector
from tests.bench.corpora import NoSuchSet, load
from tests.bench.retrieval import Scores
from tests.bench.vectors import Remembering


def write(folder: Path, name: str, *rows: dict[str, Any]) -> None:
    (folder / name).write_text("\n".join(json.dumps(row) for row in rows), "utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for code in ("en", "hi"):
        write(tmp_path, f"corpus.{code}.jsonl", {"id": "a", "title": "T", "text": code})
        answerable = {"id": "1", "text": f"? {code}", "gold": ["a"], "answerable": True}
        write(tmp_path, f"queries.{code}.jsonl", answerable, {"id": "2", "text": "??", "gold": [], "answerable": False})
    return tmp_path


def test_the_language_of_the_questions_is_the_documents_unless_it_is_said(folder: Path) -> None:
    assert load(folder).language == "en"
    assert load(folder, "hi").entries[0].text == "hi"
    across = load(folder, "hi", "en")
    assert (across.questions[0].text, across.entries[0].text) == ("? hi", "en")


def test_questions_without_an_answer_are_told_apart(folder: Path) -> None:
    assert [question.id for question in load(folder).answerable] == ["1"]


def test_a_set_that_names_no_language_is_read(tmp_path: Path) -> None:
    write(tmp_path, "corpus.jsonl", {"id": "a", "text": "x"})
    write(tmp_path, "queries.jsonl", {"id": "1", "text": "?", "gold": ["a"]})
    assert load(tmp_path, "en", "en").entries[0].markdown == "x"


def test_a_language_that_is_not_there_is_named_with_those_that_are(folder: Path) -> None:
    with pytest.raises(NoSuchSet, match=r"queries\.de\.jsonl .* en, hi"):
        load(folder, "de")
    with pytest.raises(NoSuchSet, match="corpus"):
        load(folder, "hi", "de")


def test_several_entries_may_be_gold() -> None:
    scores = Scores(took=[0.002])
    scores.add(["x", "a", "b"], frozenset("ab"))
    scores.add(["a", *"uvwxyz", "b"], frozenset("ab"))
    assert scores.figures == {
        "n": 2,
        "recall_at_1": 0.5,
        "recall_at_4": 1.0,
        "recall_at_5": 1.0,
        "recall_at_10": 1.0,
        "mrr": 0.75,
        "all_gold_at_5": 0.5,
        "p50_ms": 2.0,
    }


class Counting:
    model, dims = "m", 2

    def __init__(self) -> None:
        self.texts: list[str] = []

    async def documents(self, texts: Sequence[str]) -> list[Vector]:
        self.texts += texts
        return [[float(len(text)), 0.5] for text in texts]

    queries = alike = documents

    async def probe(self) -> None: ...
    async def close(self) -> None: ...


async def test_what_was_embedded_is_asked_for_once_whichever_run_it_was(tmp_path: Path) -> None:
    counting = Counting()
    for _ in range(2):
        remembering = Remembering(counting, tmp_path)
        found = await remembering.documents(["a", "bb", "a"])
        assert [list(vector) for vector in found] == [[1.0, 0.5], [2.0, 0.5], [1.0, 0.5]]
        await remembering.close()
    assert counting.texts == ["a", "bb"]


async def test_a_question_and_a_passage_of_the_same_words_are_two(tmp_path: Path) -> None:
    counting = Counting()
    remembering = Remembering(counting, tmp_path)
    await remembering.queries(["a"])
    await remembering.documents(["a"])
    await remembering.close()
    assert counting.texts == ["a", "a"]
