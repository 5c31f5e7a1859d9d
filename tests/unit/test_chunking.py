"""Where one chunk ends and the next begins, and that nothing of a document falls in between."""

from __future__ import annotations

from itertools import pairwise

import pytest

from agents.knowledge.chunking import chunk, embedding_text
from mesh.ports.documents import Chunk, Part

GUIDE = """\
Welcome to Casa Verde.

# Guest guide

## Breakfast
Breakfast is served from 8 to 10.

## Parking
The gate code for the car park is 4417.

## Wi-Fi
The network is called Verde.

## Pets
Small dogs are welcome.

## Checking out
Leave the key in the box by noon.
"""


def of(text: str, media_type: str = "text/markdown", label: str = "") -> list[Chunk]:
    return chunk(media_type, [Part(label, text)])


def paths(text: str) -> list[tuple[str, ...]]:
    return [found.heading_path for found in of(text)]


def test_a_fact_in_a_file_of_five_sections_has_a_chunk_to_itself() -> None:
    (about_parking,) = (found for found in of(GUIDE) if "4417" in found.text)
    assert about_parking.text == "The gate code for the car park is 4417."
    assert about_parking.heading_path == ("Guest guide", "Parking")


def test_sections_are_never_merged_however_short() -> None:
    assert [found.heading_path[-1:] for found in of(GUIDE)] == [
        (),
        ("Breakfast",),
        ("Parking",),
        ("Wi-Fi",),
        ("Pets",),
        ("Checking out",),
    ]


def test_what_stands_before_the_first_heading_is_kept() -> None:
    assert of(GUIDE)[0].text == "Welcome to Casa Verde."


def test_a_heading_with_nothing_under_it_gives_no_chunk_but_stays_in_the_paths_below_it() -> None:
    assert paths("# Rules\n\n## Empty\n\n## Quiet hours\nFrom ten.\n") == [("Rules", "Quiet hours")]


def test_underlined_headings_count() -> None:
    assert paths("Rules\n=====\nBe kind.\n\nQuiet hours\n-----------\nFrom ten.\n") == [
        ("Rules",),
        ("Rules", "Quiet hours"),
    ]


@pytest.mark.parametrize("fence", ["```", "~~~"])
def test_a_heading_in_a_code_fence_is_none(fence: str) -> None:
    (only,) = of(f"# Setup\n{fence}sh\n# install it\nrun\n{fence}\n")
    assert only.heading_path == ("Setup",)
    assert "# install it" in only.text


def test_a_heading_in_a_quotation_or_a_list_is_none() -> None:
    assert paths("# Letter\n> # Quoted\n> words\n\n- # listed\n") == [("Letter",)]


def test_front_matter_is_no_heading() -> None:
    text = "---\ntitle: Prices\nlang: en\n---\n\n# Rooms\nFrom 60 euros.\n"
    assert paths(text) == [(), ("Rooms",)]


def test_a_heading_is_read_without_its_markup() -> None:
    assert paths("# The **small** [room](http://x.y) `B2`\nWords.\n") == [("The small room B2",)]


def test_a_deeper_heading_that_is_closed_leaves_the_path() -> None:
    assert paths("# A\n### B\nb\n## C\nc\n") == [("A", "B"), ("A", "C")]


def test_a_long_section_is_cut_between_sentences_and_overlaps() -> None:
    sentences = [f"Rule number {n} says that guests of floor {n} are kind." for n in range(60)]
    found = of("# Rules\n" + " ".join(sentences))
    assert len(found) > 2
    assert all(each.heading_path == ("Rules",) for each in found)
    for earlier, later in pairwise(found):
        assert earlier.text.endswith(".")
        assert later.text.startswith("Rule number")
        assert later.start < earlier.start + len(earlier.text)


def test_a_table_that_fits_stays_whole() -> None:
    rows = "\n".join(f"| Room {n} | {n}0 euros |" for n in range(15))
    table = f"| Room | Price |\n|------|-------|\n{rows}"
    text = "# Prices\n" + "We like to be clear about prices. " * 15 + f"\n\n{table}\n\n" + "Ask us about groups. " * 20
    assert any(table in found.text for found in of(text))


def test_a_table_longer_than_a_chunk_repeats_its_header() -> None:
    rows = [f"| Room {n} with a view of the river | {n}0 euros a night |" for n in range(60)]
    found = of("# Prices\n| Room | Price |\n|------|-------|\n" + "\n".join(rows))
    assert len(found) > 2
    assert all(each.text.startswith("| Room | Price |\n|------|-------|\n") for each in found)
    assert [line for each in found for line in each.text.splitlines()[2:]] == rows


def test_a_line_before_a_long_table_goes_with_its_first_rows() -> None:
    rows = "\n".join(f"| Room {n} with a view of the river | {n}0 euros a night |" for n in range(60))
    first = of(f"# Prices\nAll prices in euros:\n\n| Room | Price |\n|------|-------|\n{rows}")[0]
    assert first.text.startswith("All prices in euros:\n\n| Room | Price |")


def test_pages_are_never_merged_and_name_themselves() -> None:
    found = chunk(
        "application/pdf", [Part("page 1", "One."), Part("page 2", "", "page 2: blank"), Part("page 3", "Three.")]
    )
    assert [(each.part, each.text) for each in found] == [("page 1", "One."), ("page 3", "Three.")]


def test_a_hash_in_a_text_file_is_no_heading() -> None:
    assert of("# not a heading\nwords", "text/plain")[0].heading_path == ()


def test_the_file_and_the_headings_are_embedded_with_the_text() -> None:
    found = of(GUIDE)[2]
    assert embedding_text("guest-guide.md", found) == (
        "guest-guide > Guest guide > Parking\nThe gate code for the car park is 4417."
    )


@pytest.mark.parametrize("name", ["xq-00-0.md", "c00012.md", "IMG_2044.md", "DOC-20260105-WA0007.md"])
def test_a_file_name_that_says_nothing_is_not_embedded(name: str) -> None:
    found = of(GUIDE)[2]
    assert embedding_text(name, found) == "Guest guide > Parking\nThe gate code for the car park is 4417."
    assert embedding_text(name, of("Just words.")[0]) == "Just words."


@pytest.mark.parametrize("name", ["नियम.md", "価格.md", "img_prices_2044.md"])
def test_a_file_name_that_says_something_is_embedded_in_any_script(name: str) -> None:
    assert embedding_text(name, of("Just words.")[0]).startswith(name.removesuffix(".md"))


@pytest.mark.timeout(30)
def test_a_large_text_of_long_lines_does_not_hold_up_everybody_else() -> None:
    """Time once grew with the square of a line: 4 MB took a quarter of an hour of everyone's waiting."""
    paragraphs = "\n\n".join("word " * 200 + str(number) for number in range(500))
    assert len(chunk("text/plain", [Part("", paragraphs)])) > 500
    assert len(chunk("text/plain", [Part("", "word " * 50_000)])) > 250
