"""What holds of each chunk of any document: where it lies, how long it is, what is whole, and that nothing is lost."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from llama_index.core.node_parser.text.sentence import SentenceSplitter

from agents.knowledge.chunking import chunk
from agents.knowledge.cutting import OVERLAP, SIZE
from agents.knowledge.outline import Section, sections
from mesh.ports.documents import Chunk, Part
from mesh.text import sentences

HEADER = "| Room | Price |\n|------|-------|\n"
_HEADER = re.compile(r"[^\n]*\|[^\n]*\r?\n[ \t|:-]*-[ \t|:-]*\r?\n\s*")


def of(text: str, media_type: str = "text/markdown") -> list[Chunk]:
    return chunk(media_type, [Part("", text)])


def own(text: str, found: Chunk) -> str:
    """The chunk, without the header that is repeated above its rows."""
    if text.startswith(found.text, found.start):
        return found.text
    header = _HEADER.match(found.text)
    assert header, "what is not in the document at that place begins with the header of a table"
    assert header.group() in text[: found.start], "which stands above"
    rows = found.text[header.end() :]
    assert text.startswith(rows, found.start)
    return rows


_UGLY = st.sampled_from(
    [
        "# One",
        "## Two ##",
        "### Three: open till 10.",
        "Title",
        "=====",
        "---",
        "```",
        "````sh",
        "~~~",
        "   ```",
        "    indented = code",
        "> # quoted",
        "- item",
        "  - nested item",
        "12. numbered " + "item that goes on " * 20,
        "- item " + "of many words. " * 70,
        "",
        "  ",
        "<!-- a comment",
        "-->",
        "<table><tr><td>cell</td></tr></table>",
        "title: Prices",
        "| a | b |",
        "|---|---|",
        "| 1 | " + "long cell " * 30 + "|",
        "| 2 | " + "endless cell " * 80 + "|",
        "a | b",
        "A sentence here. Another one! " * 12,
        "यह एक वाक्य है। " * 20,
        "مرحبا بالعالم. شكرا؟ " * 30,
        "\u202eright to left\u202c",
        "👩‍👩‍👧‍👦 🏳️‍🌈 " * 30,
        "\U000f0001 icon \U000f0002",
        "x" * 900,
        "y" * 6000,
        "An endless line goes on. " * 450,
        "again and again " * 120,
        "\r",
        "tab\tseparated\tline",
        "\tindented by a tab",
        "\x0b\u2028odd\x85\x1c",
    ]
)
_DOCUMENTS = st.lists(_UGLY, max_size=25).map("\n".join) | st.text(max_size=3000)
_NEWLINES = st.sampled_from(["\n", "\r\n"])


@settings(deadline=None, max_examples=60)
@given(_DOCUMENTS, _NEWLINES, st.sampled_from(["text/markdown", "text/plain"]))
def test_every_chunk_lies_where_it_says_and_nothing_between_headings_is_lost(
    text: str, newline: str, media_type: str
) -> None:
    text = text.replace("\n", newline)
    cut = sections(text) if media_type == "text/markdown" else [Section(0, len(text))]
    covered: set[int] = set()
    for found in of(text, media_type):
        rows = own(text, found)
        assert rows.strip() == rows != ""
        assert len(rows) <= SIZE + OVERLAP + SIZE // 2
        assert len(found.text) <= SIZE + OVERLAP + SIZE // 2
        if rows == found.text and "|" not in rows:
            assert len(rows) <= SIZE + OVERLAP, "more only for the header of a table"
        covered.update(range(found.start, found.start + len(rows)))
    inside = {at for each in cut for at in range(each.start, each.end)}
    assert {at for at in inside if not text[at].isspace() and text[at] not in "-=_*~"} <= covered, "but for rules"


@settings(deadline=None, max_examples=40)
@given(_DOCUMENTS, _NEWLINES)
def test_what_is_in_no_section_is_a_heading_and_stays_in_the_paths_below_it(text: str, newline: str) -> None:
    text = text.replace("\n", newline)
    cut = sections(text)
    reached = 0
    for section in cut:
        between = text[reached : section.start]
        assert reached <= section.start <= section.end <= len(text)
        assert len(between.strip()) < 300, "a heading, or some that stand upon one another"
        reached = section.end
    titles = {title for section in cut for title in section.path}
    assert {title for found in of(text) for title in found.heading_path} <= titles


@settings(deadline=None, max_examples=30)
@given(_DOCUMENTS)
def test_a_scrap_stands_alone_only_where_it_finds_no_room(text: str) -> None:
    found = of(text, "text/plain")
    for earlier, later in pairwise(found):
        if min(len(own(text, earlier)), len(own(text, later))) < OVERLAP:
            assert later.start + len(own(text, later)) - earlier.start + len(earlier.text) > SIZE + OVERLAP


_SENTENCES = st.lists(
    st.text(st.sampled_from("abcdefg eéß漢、,;"), min_size=1, max_size=200).map(lambda words: f"A{words}b."),
    min_size=1,
    max_size=30,
)


@settings(deadline=None, max_examples=60)
@given(st.lists(_SENTENCES.map(" ".join), min_size=1, max_size=4).map("\n\n".join))
def test_prose_is_cut_as_llamaindex_cuts_it_but_for_scraps(text: str) -> None:
    def units(stretch: str) -> list[str]:
        cuts = [0, *(span.start for span in sentences(stretch)), len(stretch)]
        return [stretch[start:end] for start, end in pairwise(cuts) if start < end]

    cut = SentenceSplitter(
        chunk_size=SIZE,
        chunk_overlap=OVERLAP,
        tokenizer=list,
        paragraph_separator="\n\n",
        chunking_tokenizer_fn=units,
    ).split_text(text)
    if all(len(each) >= OVERLAP for each in cut):
        assert [found.text for found in of(text)] == cut


# ── headings that are none ────────────────────────────────────────────────────────────────────────────────────────


_INSIDE = ("# Inside", "Inside\n======", "Inside\n---", "words\n\n## Inside\n\nmore words")


@pytest.mark.parametrize("inside", _INSIDE)
@pytest.mark.parametrize(
    ("before", "each", "after"),
    [
        ("```sh\n", "", "\n```"),
        ("~~~\n", "", "\n~~~"),
        ("`````\n```\n", "", "\n```\n`````"),
        ("~~~\n```\n", "", "\n~~~"),
        ("```\n", "", "\n~~~\n``"),  # never closed
        ("   ```\n", "   ", "\n   ```"),
        ("", "    ", ""),
        ("", "\t", ""),
        ("", "> ", ""),
        ("> ```\n", "> ", "\n> ```"),
        ("- first\n\n", "  ", ""),
        ("1. first\n   - second\n\n", "     ", ""),
        ("- ```\n", "  ", "\n  ```"),
        ("<!--\n", "", "\n-->"),
        ("<pre>\n", "", "\n</pre>"),
        ("<script>\n", "", "\n</script>"),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_heading_inside_of_something_starts_no_section(
    before: str, each: str, after: str, inside: str, newline: str
) -> None:
    block = before + "\n".join(each + line for line in inside.splitlines()) + after
    text = f"# Real\n\nWords.\n\n{block}\n".replace("\n", newline)
    assert {found.heading_path for found in of(text)} == {("Real",)}
    assert "Inside" in "".join(found.text for found in of(text))


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_front_matter_is_no_heading_and_a_rule_at_the_top_is_no_front_matter(newline: str) -> None:
    matter = "---\ntitle: Prices\n# a comment\ntags:\n- one\n  two\n\nlang: en\n---\n# Rooms\nFrom 60 euros.\n"
    assert [found.heading_path for found in of(matter.replace("\n", newline))] == [(), ("Rooms",)]
    ruled = "---\n# Rooms\nFrom 60 euros.\n\n---\n# Meals\nAt noon.\n"
    assert [found.heading_path for found in of(ruled.replace("\n", newline))] == [("Rooms",), ("Meals",)]
    noted = "---\nNote: we are closed.\n\n# Rooms\nThey look to the river.\n\n---\n# Meals\nAt noon.\n"
    assert [found.heading_path for found in of(noted.replace("\n", newline))] == [(), ("Rooms",), ("Meals",)]


def test_a_paragraph_marked_as_a_heading_is_text() -> None:
    text = "# Rooms\nFrom 60 euros.\n\n# " + "Breakfast is served until ten. " * 30 + "\nAnd tea.\n"
    assert {found.heading_path for found in of(text)} == {("Rooms",)}
    assert sum("And tea." in found.text for found in of(text)) == 1


def test_a_heading_that_says_it_all_is_found_though_nothing_stands_below_it() -> None:
    found = of("# Prices\n\n## Double room: **84** euros ##\n\n## Is breakfast included? Yes.\n\n## Contact\n")
    assert [(each.heading_path, each.text) for each in found] == [
        (("Prices",), "Double room: **84** euros"),
        (("Prices",), "Is breakfast included? Yes."),
    ]
    (underlined,) = of("Closed on Mondays.\n------------------\n\nContact\n-------\n")
    assert (underlined.heading_path, underlined.text) == ((), "Closed on Mondays.")


def test_a_document_of_nothing_but_headings_is_text() -> None:
    (only,) = of("# Rooms\n## Double\n## Single\n")
    assert only.text == "# Rooms\n## Double\n## Single"


# ── what is whole ─────────────────────────────────────────────────────────────────────────────────────────────────


_CODE_LINE = st.text(st.sampled_from("ab =.;,!?|-*#\t\u2009é"), min_size=1, max_size=60).map(lambda line: f"x{line}y")
_CODE = st.lists(_CODE_LINE | st.just(""), min_size=1, max_size=25).map("\n".join)
_PROSE = st.integers(1, 40).map(lambda count: " ".join(f"Sentence number {n} is here." for n in range(count)))


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(_PROSE, _CODE, st.sampled_from(["```", "~~~", "````"]), st.sampled_from(["\n", "\n\n"]))))
@example([("Words: " * 100, "y = 1. " * 100, "```", "\n")])
def test_code_that_fits_is_never_cut(blocks: list[tuple[str, str, str, str]]) -> None:
    fenced = [(prose, f"{fence}py\n{code}\n{fence}", gap) for prose, code, fence, gap in blocks]
    found = of("# Code\n\n" + "\n\n".join(f"{prose}{gap}{code}" for prose, code, gap in fenced))
    for _, code, _ in fenced:
        if len(code) <= SIZE:
            assert any(code in each.text for each in found)
        else:
            assert all(any(line.strip() in each.text for each in found) for line in code.splitlines())


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(st.integers(1, 30), st.integers(0, 5), st.integers(0, 2)), min_size=1, max_size=12), _PROSE)
def test_an_item_that_fits_is_never_cut_and_keeps_what_hangs_on_it(
    shapes: list[tuple[int, int, int]], prose: str
) -> None:
    items = [
        f"- Item {number} "
        + "says this. And that. " * length
        + "".join(f"\n  {gap * chr(10)}  - nested point {number}.{n}, which belongs to it." for n in range(nested))
        for number, (length, nested, gap) in enumerate(shapes)
    ]
    found = of(f"# List\n\n{prose}\n\n" + "\n".join(items))
    for item in items:
        if len(item) <= SIZE:
            assert any(item.strip() in each.text for each in found)


def test_code_is_no_table() -> None:
    lines = "\n".join(f"| cat {n} | sort | uniq -c |" for n in range(60))
    found = of(f"# Shell\n```\n| a | b |\n|---|---|\n{lines}\n```\n")
    assert len(found) > 1
    assert sum(each.text.count("|---|---|") for each in found) == 1


def test_a_short_table_is_whole_wherever_it_stands() -> None:
    rows = "\n".join(f"| Room {n}. It is nice, quiet; dry | {n} |" for n in range(17))
    table = f"{HEADER}{rows}"
    assert SIZE - 100 < len(table) <= SIZE
    for before in range(600, 900, 7):
        found = of("word " * (before // 5) + f"\n{table}\nAnd so on. " + "It goes on. " * 30)
        assert any(table in each.text for each in found)


@pytest.mark.parametrize("length", [300, 700, 790, 2000])
def test_every_row_of_a_long_table_is_below_its_header(length: int) -> None:
    rows = [f"| Room {n} | {'view, quiet. ' * (length // 13)}|" for n in range(4)]
    found = of(f"Prices:\n\n{HEADER}" + "\n".join(rows) + "\nThat is all.")
    assert all(HEADER in each.text for each in found)
    assert max(len(each.text) for each in found) <= SIZE + OVERLAP + len(HEADER)
    assert found[0].text.startswith("Prices:")
    assert found[-1].text.endswith("That is all.")


def test_the_end_of_text_that_repeats_itself_is_where_it_says() -> None:
    text = "again and again " * 500 + "END"
    found = of(text)
    assert found[-1].start + len(found[-1].text) == len(text)
    assert all(text.startswith(each.text, each.start) for each in found)
    assert all(later.start <= earlier.start + len(earlier.text) + 1 for earlier, later in pairwise(found))


@pytest.mark.timeout(40)
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("".join(f"## Heading {n}\ntext\n" for n in range(20_000)), id="headings"),
        pytest.param(HEADER + "".join(f"| {n} | {'cell ' * 9}|\n" for n in range(20_000)), id="rows"),
        pytest.param("漢字" * 50_000, id="one line"),
        pytest.param(">" * 50_000 + "\n" + "- " * 30_000 + "\n" + "[" * 30_000, id="nesting"),
        pytest.param("```\n" + "code | x\n" * 20_000, id="code"),
        pytest.param("---\na" + " " * 1_000_000 + "b\n---\n" + "a" + "\t" * 500_000, id="space"),
    ],
)
def test_a_document_made_to_take_forever_takes_seconds(text: str) -> None:
    assert of(text)
