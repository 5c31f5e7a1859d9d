"""The built-in second look, and what it is made of."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.knowledge import reranking
from agents.knowledge.ranking import five_signal, fuse, loaded, ranked
from agents.knowledge.rarity import rarities
from agents.knowledge.reranking import Light, signs_of
from agents.knowledge.sounding import skeleton, sounds
from mesh.errors import Misconfigured, Unavailable
from mesh.ports.documents import Chunk
from mesh.ports.passages import Passage
from mesh.text import term_weight, words

NOW = datetime(2026, 1, 5, tzinfo=UTC)


def passage(text: str, *, dense: float | None = 0.8, sparse: float | None = None, name: str = "guide.md") -> Passage:
    return Passage(name, f"+15551230001/{name}", Chunk(0, text), dense, sparse, NOW)


@dataclass
class Scripted:
    """Says what it is told to."""

    relevance: list[float]
    most: int = 10
    asked: list[str] = field(default_factory=list)

    async def rerank(self, question: str, passages: object) -> list[float]:
        self.asked.append(question)
        return self.relevance


class Down:
    most = 10

    async def rerank(self, question: str, passages: object) -> list[float]:
        raise Unavailable


FOUND = [passage("a", dense=0.9), passage("b", dense=0.8), passage("c", dense=0.7)]


async def test_the_reranker_says_the_order_and_the_search_its_scale() -> None:
    found = await ranked("?", FOUND, reranker=Scripted([1.0, 3.0, 2.0]))
    assert [place for place, _ in found] == [1, 2, 0]
    assert [score for _, score in found] == [0.9, 0.8, 0.7]


def test_what_was_read_of_one_document_makes_another_with_the_same_text_no_quicker() -> None:
    """It would tell that somebody has that text, too."""
    reranking._read.cache_clear()
    for name, read in (("hers.md", 1), ("hers.md", 1), ("his.md", 2)):
        signs_of("What is the fee?", [passage("The fee is 7,413 zlotys.", name=name)])
        assert reranking._read.cache_info().misses == read


async def test_only_the_first_passages_are_looked_at_again() -> None:
    found = await ranked("?", FOUND, reranker=Scripted([1.0, 3.0], most=2))
    assert [place for place, _ in found] == [1, 0, 2]


async def test_a_reranker_that_is_down_leaves_the_order_as_it_was() -> None:
    assert await ranked("?", FOUND, reranker=Down()) == await ranked("?", FOUND)


def test_the_owners_own_reranker_is_found_by_its_name() -> None:
    assert isinstance(loaded("agents.knowledge.reranking:Light"), Light)
    assert loaded("") is None
    with pytest.raises(Misconfigured, match="SEARCH_RERANKER"):
        loaded("agents.knowledge.reranking:Heavy")


async def test_a_sentence_that_holds_all_the_words_beats_words_that_are_scattered() -> None:
    scattered = "The pool is warm. On Sunday we rest. Closing the door is polite."
    together = "The door is heavy. On Sunday the closing of the pool is early. We rest."
    found = await ranked("pool Sunday closing", [passage(scattered), passage(together)], reranker=Light())
    assert found[0][0] == 1


async def test_neighbours_of_the_question_are_neighbours_in_the_answer() -> None:
    other = "The city of York has a new wall, and a town hall of its own."
    right = "A town near York: the new city hall has a wall of its own."
    found = await ranked("Who built the new city hall?", [passage(other), passage(right)], reranker=Light())
    assert found[0][0] == 1


async def test_a_name_is_recognised_in_another_script() -> None:
    texts = ["The treaty was signed in Vienna by nobody.", "The treaty was signed in Washington by nobody."]
    found = await ranked("वॉशिंगटन में क्या हुआ?", [passage(text) for text in texts], reranker=Light())
    assert found[0][0] == 1


@pytest.mark.parametrize(
    ("name", "elsewhere"),
    [
        ("manhattan", "मैनहट्टन"),
        ("panthers", "पैंथर्स"),
        ("churchill", "चर्चिल"),
        ("fresno", "फ्रेज़नो"),
        ("huxley", "हक्सले"),
        ("moskva", "москва"),
        ("platon", "πλατων"),
    ],
)
def test_a_name_sounds_alike_in_two_scripts(name: str, elsewhere: str) -> None:
    assert skeleton(name) == skeleton(elsewhere)


def test_one_script_alone_shares_no_sounds() -> None:
    assert not sounds("The Panthers of Carolina").shared(sounds("Carolina's Panthers"))


@given(st.lists(st.text(alphabet="abc क।.\n", max_size=30), min_size=1, max_size=6), st.text(max_size=30))
async def test_any_text_can_be_looked_at(texts: list[str], question: str) -> None:
    passages = [passage(text, dense=None if n % 2 else 0.5, sparse=float(n)) for n, text in enumerate(texts)]
    assert len(signs_of(question, passages)) == len(await Light().rerank(question, passages)) == len(texts)


def test_the_rarity_of_words_is_told_from_the_sums_of_a_few_passages() -> None:
    rare = {"pool": 1.5, "spa": 6.0, "bar": 3.0}
    texts = ["pool pool spa", "pool bar", "spa bar gym", "pool gym gym gym", "bar spa pool"]
    weights = [[term_weight(words(text).count(term), len(words(text))) for term in rare] for text in texts]
    sums = [sum(w * r for w, r in zip(row, rare.values(), strict=True)) for row in weights]
    assert rarities(weights, sums) == pytest.approx(list(rare.values()), abs=0.3)


def test_what_no_passage_has_is_middling() -> None:
    assert rarities([[0.0, 1.0]], [2.0]) == pytest.approx([4.0, 2.0], abs=0.3)
    assert rarities([], []) == []


# ── five signals ──────────────────────────────────────────────────────────────────────────────────────────────────


def order(passages: list[Passage], per_leg: int = 40) -> list[int]:
    dense = {place: each.dense for place, each in enumerate(passages) if each.dense is not None}
    sparse = {place: each.sparse for place, each in enumerate(passages) if each.sparse is not None}
    return [place for place, _ in five_signal(passages, dense, sparse, per_leg=per_leg, now=NOW)]


def test_words_alone_rescue_nothing() -> None:
    found = [passage("near", dense=0.8), passage("words", dense=0.7, sparse=20.0)]
    assert order(found) == [1, 0]
    assert order(found, per_leg=1) == [0, 1]


def test_of_two_alike_the_newer_one_comes_first() -> None:
    old = replace(passage("old"), ingested_at=NOW - timedelta(days=365))
    assert order([old, passage("new")]) == [1, 0]


@pytest.mark.parametrize("name", ["prices_OLD.md", "archive-2019.md", "borrador precios.md", "draft prices.md"])
def test_what_is_in_force_comes_before_what_is_not(name: str) -> None:
    assert order([passage("a", name=name), passage("b", name="prices.md")]) == [1, 0]


async def test_each_mode_gives_every_passage_once() -> None:
    found = [passage("a", sparse=1.0), passage("b", dense=None, sparse=2.0), passage("c")]
    for mode in ("calibrated", "rrf", "five_signal"):
        assert sorted(place for place, _ in await ranked("?", found, mode=mode)) == [0, 1, 2]
    assert dict(fuse({0: 0.8}, {}, mode="rrf")) == pytest.approx({0: 1 / 61})
