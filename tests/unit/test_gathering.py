"""What of a search goes to an answer."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from agents.knowledge.chunking import chunk
from agents.knowledge.gathering import gathered
from agents.knowledge.searching import Hit
from mesh.ports.documents import Chunk, Document, Part
from mesh.ports.passages import Passage
from mesh.tokens import most_tokens

NOW = datetime(2026, 1, 5, tzinfo=UTC)
STORY = " ".join(f"On day {n} the keeper of the lighthouse wrote down that wind number {n} blew." for n in range(60))
HEADER = "| Room | Night |\n|---|---|\n"
ROWS = "\n".join(f"| Room {n}, which looks out on street number {n} | {40 + n} |" for n in range(36))


def hit(found: Chunk, *, document: str = "guide", score: float = 1.0) -> Hit:
    kept = Document(document, "+15551230001", f"{document}.txt", "private", "0" * 64, 1, "text/plain", NOW, 1)
    return Hit(Passage(document, f"+15551230001/{document}.txt", found, 0.8, 1.0, NOW), kept, score)


def text_of(hits: list[Hit]) -> list[str]:
    return [each.passage.chunk.text for each in hits]


def different(n: int, size: int = 40) -> str:
    return " ".join(f"w{n}x{place}" for place in range(size))


def test_at_most_so_many_come_best_first() -> None:
    hits = [hit(Chunk(0, different(n)), document=f"d{n}", score=1 - n / 10) for n in range(8)]
    assert gathered(hits, limit=4) == hits[:4]


def test_what_is_said_twice_comes_once() -> None:
    said = different(1)
    again, other = hit(Chunk(0, said.upper()), document="copy"), hit(Chunk(0, different(2)), document="other")
    assert gathered([hit(Chunk(0, said)), again, other], limit=2) == [hit(Chunk(0, said)), other]


def test_rows_that_differ_in_one_figure_are_both_kept() -> None:
    hits = [hit(Chunk(n, f"A double room with breakfast costs {n}0 euros"), document=f"d{n}") for n in (8, 9)]
    assert gathered(hits, limit=4) == hits


def test_neighbours_come_in_one_piece_as_the_document_has_it() -> None:
    chunks = chunk("text/plain", [Part("", STORY)])
    assert len(chunks) > 3
    (together,) = text_of(gathered([hit(chunks[1]), hit(chunks[0])], limit=4))
    assert together in STORY
    assert together.startswith(chunks[0].text)
    assert together.endswith(chunks[1].text)


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (1, 2, 0), (2, 1, 0)])
@pytest.mark.parametrize("media_type", ["text/markdown", "text/plain"])
@pytest.mark.parametrize("header", [HEADER, "Room | Night\n-----|------\n", ""])
def test_a_table_in_one_piece_has_each_row_on_its_line_and_its_header_once(
    order: tuple[int, ...], media_type: str, header: str
) -> None:
    text = f"All prices are in euros:\n\n{header}{ROWS}"
    chunks = chunk(media_type, [Part("", text)])
    assert len(chunks) == 3
    assert text_of(gathered([hit(chunks[place]) for place in order], limit=4)) == [text]


def test_rows_further_down_keep_the_header_above_them_and_what_follows() -> None:
    text = f"{HEADER}{ROWS}\n\nBreakfast is included in each of these prices."
    chunks = chunk("text/plain", [Part("", text)])
    (together,) = text_of(gathered([hit(each) for each in chunks[1:]], limit=4))
    assert chunks[1].text.startswith(HEADER)
    assert together == HEADER + text[chunks[1].start :]


def test_another_table_with_the_same_columns_keeps_its_header() -> None:
    low, high = f"{HEADER}| Single | 60 |\n| Double | 80 |", f"{HEADER}| Single | 90 |\n| Suite | 140 |"
    found = gathered([hit(Chunk(0, low)), hit(Chunk(1, high, start=len(low) + 2))], limit=4)
    assert text_of(found) == [f"{low}\n\n{high}"]


def test_a_row_that_was_cut_in_two_is_one_line() -> None:
    text = f"{HEADER}| Suite | {STORY[:1500]} | 140 |\n| Single | 60 |"
    together, *_ = text_of(gathered([hit(each) for each in chunk("text/plain", [Part("", text)])], limit=4))
    assert together == text


def test_an_item_of_a_list_stays_on_its_line() -> None:
    one, two = "- Towels cost 3 euros.", "- Sheets cost 5 euros."
    assert text_of(gathered([hit(Chunk(0, one)), hit(Chunk(1, two, start=len(one) + 1))], limit=4)) == [f"{one}\n{two}"]


def test_a_neighbour_takes_no_place_from_another_passage() -> None:
    chunks = chunk("text/plain", [Part("", STORY)])
    other = hit(Chunk(0, different(3)), document="other")
    assert len(gathered([hit(chunks[0]), hit(chunks[1]), other], limit=2)) == 2


def test_what_lies_apart_in_a_document_stays_apart() -> None:
    chunks = chunk("text/plain", [Part("", STORY)])
    assert len(gathered([hit(chunks[0]), hit(chunks[3])], limit=4)) == 2


def test_neighbours_under_two_headings_stay_apart() -> None:
    one, two = Chunk(0, different(1), ("A",)), Chunk(1, different(2), ("B",), start=len(different(1)) + 1)
    assert len(gathered([hit(one), hit(two)], limit=4)) == 2


def test_no_more_comes_than_an_answer_takes_in() -> None:
    hits = [hit(Chunk(0, different(n, 100)), document=f"d{n}") for n in range(12)]
    found = gathered(hits, limit=12, budget=1_000)
    assert 0 < sum(most_tokens(text) for text in text_of(found)) <= 1_000
    assert len(found) < 12
    assert gathered(hits, limit=12, budget=1) == hits[:1]
