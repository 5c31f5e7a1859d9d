"""Time decides among memories that compete, and nowhere else; and which told facts answer a question."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from agents.memory.bearing import answers
from agents.memory.questions import ask
from agents.memory.recency import HIGHEST, LOWEST, calibrated, over_fetch, rerank
from mesh.ports.memory import Fact

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)


def fact(text: str, *, days: float = 0, cosine: float = 0.9) -> Fact:
    return Fact(text, text, NOW - timedelta(days=days), similarity=cosine)


def test_an_old_allergy_is_not_buried_by_what_was_said_today() -> None:
    ranked = rerank(
        [fact("I am allergic to peanuts.", days=700, cosine=0.91), fact("I like jazz.", cosine=0.83)], now=NOW
    )
    assert ranked[0].text == "I am allergic to peanuts."
    assert ranked[0].score == round(calibrated(0.91), 4)


def test_the_blanket_formula_buries_it() -> None:
    """Why it is only a mode."""
    facts = [fact("I am allergic to peanuts.", days=700, cosine=0.91), fact("I like jazz.", cosine=0.83)]
    assert rerank(facts, now=NOW, mode="blanket")[0].text == "I like jazz."


def test_the_newer_of_two_that_compete_wins_although_the_older_is_more_similar() -> None:
    for age in (1 / 1440, 1, 28, 700):
        old = fact("My favourite colour is blue.", days=age + 5, cosine=0.93)
        new = fact("My favourite colour is teal.", days=5, cosine=0.88)
        first, second = rerank([old, new], now=NOW)
        assert first.text == "My favourite colour is teal."
        assert second.score < first.score or age < 1 / 24


def test_an_older_rival_fades_by_half_in_fourteen_days() -> None:
    old, new = fact("My room number is 12.", days=14), fact("My room number is 14.")
    first, second = rerank([old, new], now=NOW)
    assert first.text == "My room number is 14."
    assert abs(second.score - first.score / 2) < 1e-3


def test_two_allergies_do_not_compete() -> None:
    ranked = rerank([fact("I'm allergic to nuts.", days=100), fact("I'm allergic to eggs.")], now=NOW)
    assert ranked[0].score == ranked[1].score


def test_the_latest_is_the_latest() -> None:
    facts = [fact("I bought a lamp.", days=3, cosine=0.92), fact("I bought a chair.", days=1, cosine=0.88)]
    assert rerank(facts, now=NOW)[0].text == "I bought a lamp."
    assert rerank(facts, now=NOW, latest=True)[0].text == "I bought a chair."


def test_what_is_plainly_foreign_is_not_returned() -> None:
    assert rerank([fact("I like jazz.", cosine=0.79)], now=NOW) == []


def test_more_is_fetched_than_is_returned() -> None:
    assert [over_fetch(limit) for limit in (1, 3, 5, 20)] == [10, 10, 15, 60]


@given(st.floats(-1, 1), st.floats(-1, 1))
def test_calibration_keeps_the_order_and_stays_in_bounds(a: float, b: float) -> None:
    assert 0 <= calibrated(a) <= 1
    assert (a <= b) <= (calibrated(a) <= calibrated(b))
    assert calibrated(LOWEST) == 0
    assert calibrated(HIGHEST) == 1


@given(st.lists(st.tuples(st.floats(0, 1000), st.floats(0, 1)), max_size=12))
def test_scores_come_best_first_within_bounds_and_no_fact_twice(drawn: list[tuple[float, float]]) -> None:
    facts = [fact(f"My thing {n} is {n}.", days=days, cosine=cosine) for n, (days, cosine) in enumerate(drawn)]
    for mode in ("competing", "blanket"):
        ranked = rerank(facts, now=NOW, mode=mode)
        scores = [memory.score for memory in ranked]
        assert scores == sorted(scores, reverse=True)
        assert all(0 <= score <= 1 for score in scores)
        assert len({memory.fact_id for memory in ranked}) == len(ranked)


def test_questions_are_answered_from_the_fact_that_answers_them_and_from_no_other() -> None:
    """Bars for missed and for false answers. All were looked at while the rules were made; of those with `"set": 2`,
    7 of 38 were missed and 3 of 35 answered falsely before."""
    file = Path(__file__).parent / "data" / "memory" / "recall.jsonl"
    lines = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    told = {line["person"]: line["facts"] for line in lines if "person" in line}
    questions = [line for line in lines if "for" in line]
    missed, false = [], []
    for line in questions:
        pairs = sorted(zip(line["cosines"], told[line["for"]], strict=True), reverse=True)
        found = [text for cosine, text in pairs if answers(ask(line["question"]), text, cosine)]
        if line["fact"] and (not found or found[0] != line["fact"]):
            missed.append(line["question"])
        if not line["fact"] and found and found[0] != line.get("may"):
            false.append((line["question"], found[0]))
    answerable = sum(1 for line in questions if line["fact"])
    assert answerable > 80
    assert len(questions) - answerable > 70
    assert len(missed) <= 0.03 * answerable, missed
    assert not false, false
