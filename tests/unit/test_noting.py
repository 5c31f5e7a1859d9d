"""What the text of a note says of itself."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agents.knowledge.ingesting import clean_name
from agents.knowledge.noting import LONGEST, MOST_EDGES, Written, cleaned
from mesh.errors import Malformed, TooLong


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("Call Marta #boat #Boat, #sail-loft.", ("boat", "sail-loft")),
        ("नाव #नाव और #किराया", ("नाव", "किराया")),
        ("#プロジェクト #a/b #_x_", ("プロジェクト", "a/b", "x")),
        ("#1 #2026 a#b http://x.org/#top www.x.org/a#b &#39; [[plan#part]]", ()),
        ("`#no` and\n```\n#no\n```\n#yes", ("yes",)),
        ("# Heading\n## Another", ()),
    ],
)
def test_tags_are_words_after_a_number_sign(text: str, tags: tuple[str, ...]) -> None:
    assert Written.of(text).tags == tags


@pytest.mark.parametrize(
    ("text", "links"),
    [
        ("See [[Berth plan]] and [[ berth  PLAN ]]", ("Berth plan",)),
        ("[[contract.pdf|the contract]] [[plan#rooms]]", ("contract.pdf", "plan")),
        ("[one] [[]] [[a\nb]] [[open", ()),
        ("`[[no]]`", ()),
    ],
)
def test_links_are_names_in_double_brackets(text: str, links: tuple[str, ...]) -> None:
    assert Written.of(text).links == links


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("the berth costs 7 euros\nand more", "The berth costs 7 euros"),
        ("#boat Marta's yard", "Marta's yard"),
        ("#boat", "Boat"),
        ("- [ ] milk\n- eggs", "Milk"),
        ("[[plan.pdf|The plan]] is late", "The plan is late"),
        ("../../etc/passwd", "Etc passwd"),
        ("👍", "Note"),
        ("今日は天気がいい", "今日は天気がいい"),
        ("one two three four five six seven eight nine", "One two three four five six seven"),
    ],
)
def test_its_title_is_its_first_words(text: str, title: str) -> None:
    assert Written.of(text).title == title


@given(st.text(max_size=300))
@example("\uf900")
def test_any_title_is_a_file_name_as_it_is(text: str) -> None:
    name = f"{Written.of(text).title} 2026-12-02.md"
    assert clean_name(name) == name
    assert len(name) < 80


def test_no_more_is_followed_than_is_good() -> None:
    written = Written.of(" ".join(f"#tag{number} [[link {number}]]" for number in range(1000)))
    assert (len(written.tags), len(written.links)) == (MOST_EDGES, MOST_EDGES)


@pytest.mark.parametrize("text", ["[[" * LONGEST, "#" * LONGEST, "`" * LONGEST, "```" * (LONGEST // 3), "[[a|" * 9_000])
def test_a_hostile_text_takes_no_time(text: str) -> None:
    Written.of(text[:LONGEST])


def test_what_turns_the_writing_is_taken_out_and_lines_stay() -> None:
    assert cleaned("a\u202eb\x00\r\n\n- c\u2028d \n") == "ab\n\n- c\nd"


@pytest.mark.parametrize("text", ["", " \n", "\u200f\u202e", "\x00"])
def test_nothing_is_no_note(text: str) -> None:
    with pytest.raises(Malformed):
        cleaned(text)


def test_what_is_too_long_is_refused_before_it_is_looked_at() -> None:
    with pytest.raises(TooLong):
        cleaned("x" * (LONGEST + 1))
