"""Each row of a table in a Word file can be understood alone."""

from __future__ import annotations

from docx import Document

from tests.unit.word_files import chunks, table, text


async def test_a_table_keeps_its_header_and_its_columns() -> None:
    made = table(("Room", "Low season", "High | peak"), ("Double", "84", "120"), ("Suite", "", "210"))
    assert await text(made) == (
        "| Room | Low season | High \\| peak |\n|---|---|---|\n| Double | 84 | 120 |\n| Suite |  | 210 |"
    )


async def test_a_long_table_repeats_its_header_in_every_piece() -> None:
    rows = [(f"Room {n} with a view of the river", f"{n}0 euros") for n in range(60)]
    found = await chunks(table(("Room", "Price"), *rows))
    assert len(found) > 2
    assert all(each.text.startswith("| Room | Price |\n|---|---|\n") for each in found)


async def test_pairs_of_name_and_value_are_no_header_and_rows() -> None:
    made = table(("Check-in", "from 14:00"), ("Name:", "Casa Verde"), ("Pets", "small dogs"))
    assert await text(made) == "Check-in: from 14:00\nName: Casa Verde\nPets: small dogs"


async def test_merged_names_of_columns_are_said_in_full() -> None:
    made = table(
        ("Room", "Price", ""),
        ("", "June", "July"),
        ("Double", "84", "91"),
    )
    grid = made.tables[0]
    grid.cell(0, 1).merge(grid.cell(0, 2))
    grid.cell(0, 0).merge(grid.cell(1, 0))
    assert await text(made) == "| Room | Price June | Price July |\n|---|---|---|\n| Double | 84 | 91 |"


async def test_the_title_in_a_table_stands_above_it() -> None:
    made = table(("Prices 2026", ""), ("Room", "Price"), ("Double", "84"))
    made.tables[0].cell(0, 0).merge(made.tables[0].cell(0, 1))
    assert await text(made) == "Prices 2026\n\n| Room | Price |\n|---|---|\n| Double | 84 |"


async def test_a_table_in_a_cell_stays_in_its_row() -> None:
    made = table(("Room", "Price"), ("Double", "84"), ("Suite", ""))
    inner = made.tables[0].cell(2, 1).add_table(1, 2)
    inner.cell(0, 0).text, inner.cell(0, 1).text = "weekend", "210"
    assert (await text(made)).endswith("| Suite | weekend, 210 |")


async def test_a_table_that_only_arranges_the_page_is_text() -> None:
    made = Document()
    for cell, title in zip(made.add_table(1, 2).rows[0].cells, ("Pool", "Sauna"), strict=True):
        cell.paragraphs[0].text = title
        cell.paragraphs[0].style = "Heading 1"
        cell.add_paragraph(f"The {title.lower()} opens at nine.")
    assert [found.heading_path for found in await chunks(made)] == [("Pool",), ("Sauna",)]
