"""Words that the making of a page took apart."""

from __future__ import annotations

import pytest

from agents.knowledge.reading.mending import BROKEN, hyphens_marked, in_logical_order, mended


@pytest.mark.parametrize(
    ("broken", "whole"),
    [
        (f"retrie{BROKEN}val works", "retrieval works"),
        (f"a dual{BROKEN}encoder, as the dual-encoder is", "a dual-encoder, as the dual-encoder is"),
        (f"Lucene{BROKEN}BM25", "Lucene-BM25"),
        (f"from 2019{BROKEN}2021", "from 2019-2021"),
        ("ﬁnd the oﬃce ﬂoor", "find the office floor"),
        ("½ cup and 5 m²", "½ cup and 5 m²"),
        (f"the end of a page{BROKEN}", "the end of a page-\n"),
    ],
)
def test_a_word_is_made_whole(broken: str, whole: str) -> None:
    assert mended([broken]) == [whole]


def test_how_a_word_is_written_on_another_page_decides() -> None:
    assert mended([f"a co{BROKEN}worker", "my co-worker"])[0] == "a co-worker"
    assert mended([f"a co{BROKEN}worker", "my coworker"])[0] == "a coworker"


@pytest.mark.parametrize(
    ("read", "whole"),
    [
        ("kokend wa-\nter laten", "kokend water laten"),
        ("a - \nb", "a - \nb"),
        ("10-\n12", "10-\n12"),
        ("- a\n- b", "- a\n- b"),
    ],
)
def test_a_hyphen_at_the_end_of_a_line_that_was_seen_is_mended(read: str, whole: str) -> None:
    assert mended([hyphens_marked(read)]) == [whole]


def test_a_lam_and_an_alef_that_are_drawn_as_one_are_in_their_order() -> None:
    drawn = [("ا", (9.0, 0.0)), ("إ", (8.0, 0.0)), ("ل", (8.0, 0.0)), ("ن", (7.0, 0.0))]
    assert in_logical_order(drawn) == "الإن"


def test_an_alef_before_a_lam_of_its_own_stays_there() -> None:
    drawn = [("إ", (9.0, 0.0)), ("ل", (8.0, 0.0)), ("ى", (7.0, 0.0))]
    assert in_logical_order(drawn) == "إلى"


def test_a_mark_belongs_to_its_letter_and_a_foreign_word_ends_with_a_space() -> None:
    assert in_logical_order((c, (float(-n), 0.0)) for n, c in enumerate("أي ًضا")) == "أيضًا"
    assert in_logical_order((c, (float(-n), 0.0)) for n, c in enumerate("Rمن")) == "R من"
