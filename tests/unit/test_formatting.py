import re
from time import process_time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agents.orchestrator.formatting import for_whatsapp, size, split

SENTENCE = st.lists(
    st.sampled_from(["the", "room", "costs", "with", "breakfast", "Zimmer", "für", "कमरा", "12,50"]),
    min_size=1,
    max_size=12,
)
PROSE = st.lists(SENTENCE.map(lambda words: " ".join(words) + "."), min_size=1, max_size=8).map(" ".join)
ITEMS = st.lists(SENTENCE.map(lambda words: "- " + " ".join(words)), min_size=1, max_size=8).map("\n".join)
BOLD = SENTENCE.map(lambda words: f"*{' '.join(words)}*")
ITALIC = SENTENCE.map(lambda words: f"_{' '.join(words)}_")
BLOCKS = st.lists(st.one_of(PROSE, ITEMS, BOLD, ITALIC), min_size=1, max_size=8).map("\n\n".join)
MIXED = st.text(alphabet="ab. \n*_~`-#|[]()1é😀क़।。:/", max_size=300)


def words_of(texts: list[str]) -> list[str]:
    return " ".join(texts).split()


def runs(text: str, mark: str) -> list[str]:
    form = rf"(?<![\w{mark}])\{mark}(?=\S)[^{mark}\n]+(?<=\S)\{mark}(?![\w{mark}])"
    return re.findall(form, text)


# ── parts ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@given(st.one_of(st.text(max_size=300), MIXED), st.integers(1, 80))
@example("*a b c d e f g h i j k l m n o p*", 20)
@example("```" + "x y " * 30 + "```", 24)
def test_no_part_is_over_the_limit_or_empty_or_has_white_space_at_an_end(text: str, limit: int) -> None:
    for part in split(text, limit):
        assert part == part.strip() != ""
        assert size(part) <= max(limit, 2)  # a sign outside the basic plane takes two


@given(st.one_of(st.text(max_size=300), MIXED), st.integers(20, 80))
def test_nothing_but_white_space_is_lost(text: str, limit: int) -> None:
    kept = re.sub(r"[\s*_~`]", "", "".join(split(text, limit)))
    assert kept == re.sub(r"[\s*_~`]", "", text)


@given(BLOCKS, st.integers(30, 200))
def test_no_word_is_cut_or_moved(text: str, limit: int) -> None:
    plain = text.replace("*", "").replace("_", "")
    assert words_of(split(plain, limit)) == plain.split()


@given(BLOCKS, st.integers(120, 200))
def test_marks_that_fit_into_a_part_stay_together(text: str, limit: int) -> None:
    together = "\n".join(split(text, limit))
    for mark in "*_":
        assert runs(together, mark) == runs(text, mark)


@given(st.lists(SENTENCE, min_size=30, max_size=60), st.sampled_from(["*", "_", "~", "```"]))
@settings(max_examples=30)
def test_marks_around_more_than_a_part_are_closed_in_each(sentences: list[list[str]], mark: str) -> None:
    inside = " ".join(word for sentence in sentences for word in sentence)
    parts = split(f"{mark}{inside}{mark}", 100)
    assert words_of([part.strip(mark) for part in parts]) == inside.split()
    assert all(part.startswith(mark) and part.endswith(mark) for part in parts)


@given(BLOCKS, st.integers(30, 200))
def test_a_list_item_that_fits_is_not_cut(text: str, limit: int) -> None:
    parts = split(text, limit)
    for item in re.findall(r"^- .+$", text, re.MULTILINE):
        if len(item) <= limit:
            assert any(item in part for part in parts)


def test_it_is_cut_between_paragraphs_then_sentences_then_words() -> None:
    first, second = "One two three. Four five six.", "Seven eight nine. Ten eleven."
    assert split(f"{first}\n\n{second}", 40) == [first, second]
    assert split(f"{first} {second}", 20) == ["One two three.", "Four five six.", "Seven eight nine.", "Ten eleven."]
    assert split("one two three four five six", 14) == ["one two three", "four five six"]
    early = ["One two three.", "Four five six seven eight nine ten."]
    assert split(" ".join(early), 40) == early
    assert split("Yes. " + "word " * 20, 50)[0].startswith("Yes. word")


def test_what_introduces_stays_with_what_it_introduces() -> None:
    text = "All of that is true and good to know.\n\nOur rooms:\n- a small one\n- a large one"
    assert split(text, 60) == ["All of that is true and good to know.", "Our rooms:\n- a small one\n- a large one"]
    assert split(f"{'Words of all kinds. ' * 3}\n\n*Rooms*\n\nThey are all of one size.", 90)[1].startswith("*Rooms*")


def test_a_script_without_spaces_is_cut_at_its_full_stops() -> None:
    assert split("你好世界。我们走吧。", 6) == ["你好世界。", "我们走吧。"]


def test_a_word_longer_than_the_limit_is_cut_between_signs() -> None:
    family = "👨‍👩‍👧"
    assert split(family * 3, 10) == [family] * 3
    assert "".join(split("x" * 100, 30)) == "x" * 100


def test_an_address_is_not_cut() -> None:
    address = "https://example.org/a-very-long-path/with/many/parts?and=some&more=too"
    parts = split(f"Please look here, it is all there: {address} and tell me.", 75)
    assert any(address in part for part in parts)


def test_signs_outside_the_basic_plane_count_twice() -> None:
    assert [size(part) for part in split("😀" * 1000, 1600)] == [1600, 400]


def test_what_takes_too_many_parts_is_told_by_an_empty_list() -> None:
    text = "One two three. " * 10
    assert split(text, 30, 4) == []
    assert len(split(text, 30, 5)) == 5
    assert split(text, 30) == split(text, 30, 5)
    assert split("", 30, 4) == split(" \n", 30, 4) == []


@pytest.mark.parametrize(
    "text", ["*" * 20_000, "- " * 10_000, "a_" * 10_000, "```" * 7_000, "[(" * 10_000, "|" * 20_000]
)
def test_odd_texts_take_no_time(text: str) -> None:
    began = process_time()
    split(text, 1600, 20)
    for_whatsapp(text)
    assert process_time() - began < 2


# ── Markdown ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("markdown", "shown"),
    [
        ("It is **very** good", "It is *very* good"),
        ("**Price:** $12", "*Price:* $12"),
        ("__bold words__ and _italic_", "*bold words* and _italic_"),
        ("***both***", "*_both_*"),
        ("~~gone~~", "~gone~"),
        ("# Rates", "*Rates*"),
        ("## **Rates** ##\ntext", "*Rates*\ntext"),
        ("### Rooms and *prices*", "*Rooms and prices*"),
        ("* **One**: two", "* *One*: two"),
        ("[our site](https://example.org/a_b)", "our site (https://example.org/a_b)"),
        ("[wiki](https://example.org/a_(b))", "wiki (https://example.org/a_(b))"),
        ("**[our site](https://example.org)**", "*our site (https://example.org)*"),
        ("[https://example.org](https://example.org)", "https://example.org"),
        ("[example.org](https://example.org/)", "https://example.org/"),
        ("[a@example.org](mailto:a@example.org)", "a@example.org"),
        ("![map](https://example.org/map.png)", "map (https://example.org/map.png)"),
        ("<https://example.org/x>", "https://example.org/x"),
        ("run `adiyan up` now", "run ```adiyan up``` now"),
        ("```python\nx = **y**\n```", "```\nx = **y**\n```"),
        ("one<br>two", "one\ntwo"),
        (
            "| Room | Price |\n|---|---:|\n| Deluxe | **$120** |\n| Small | $80 |",
            "• Room: Deluxe, Price: *$120*\n• Room: Small, Price: $80",
        ),
        ("See:\n\n|  | Adult | Child |\n| --- | --- | --- |\n| Day | 10 | |\n\nEnd", "See:\n\n• Day, Adult: 10\n\nEnd"),
    ],
)  # fmt: skip
def test_markdown_becomes_whatsapp(markdown: str, shown: str) -> None:
    assert for_whatsapp(markdown) == shown
    assert for_whatsapp(shown) == shown


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Plain words, nothing else.",
        "It costs $12.50 * 3 = $37.50, or 5*3*2 and 2**3**4.",
        "price_list_2026.pdf and __init__.py and my__own__file.txt",
        "see __init__ for that",
        "https://example.org/a_b_c?x=**y&z=_w_ and www.example.org/__x__",
        "a_b@example.org",
        "*bold*, _italic_, ~gone~, ```code```",
        "*bold _and italic_*",
        "```\nx | y\n---|---\n**z** [a](https://example.org)\n```",
        "```first line\nsecond line\n```",
        "• *notes.pdf*, seen by you alone",
        "- one\n- two\n  more\n1. three",
        "> quoted",
        "#hashtag, room #5, C# and F#",
        "# of guests: four",
        "either | or",
        "[1] see note (below), array[0](x)",
        "_Source: price_list.pdf_",
        "a < b > c, <3, 5 > 4",
        "---",
        "* * *",
        "¿Cuánto? 12 € · ₹500 – ठीक है।",
    ],
)
def test_plain_and_whatsapp_text_is_left_as_it_is(text: str) -> None:
    assert for_whatsapp(text) == text


@given(BLOCKS)
def test_what_is_whatsapps_already_stays(text: str) -> None:
    assert for_whatsapp(text) == text


@given(st.one_of(st.text(max_size=200), MIXED))
def test_no_letter_or_digit_is_lost(text: str) -> None:
    shown = for_whatsapp(text)
    assert [c for c in shown if c.isalnum()] == [c for c in re.sub(r"(?i)<br\s*/?>", "", text) if c.isalnum()]


@given(st.one_of(st.text(max_size=200), MIXED))
@settings(max_examples=500)
def test_a_second_time_changes_nothing(text: str) -> None:
    once = for_whatsapp(text)
    assert for_whatsapp(once) == once
