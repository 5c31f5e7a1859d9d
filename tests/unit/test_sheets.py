"""What Excel files yield, sheet by sheet."""

from __future__ import annotations

import io
import itertools
import zipfile
from collections.abc import Sequence
from datetime import date, time, timedelta
from typing import Any

import pytest
from openpyxl import Workbook
from openpyxl.comments import Comment
from openpyxl.styles import Font
from openpyxl.utils.datetime import CALENDAR_MAC_1904
from openpyxl.worksheet.table import Table

from agents.knowledge.chunking import chunk
from agents.knowledge.parsing import Parsed, parse
from tests.unit.office_files import changed, refused, texts, zipped

PRICES = (("Service", "Minutes", "Price"), ("Cut", 30, 25), ("Colour", 90, 60))
SHEET = "xl/worksheets/sheet1.xml"
TABLE = "| Service | Minutes | Price |\n|---|---|---|\n| Cut | 30 | 25 |\n| Colour | 90 | 60 |"


def book(rows: Sequence[Sequence[Any]] = PRICES, title: str = "Prices") -> Workbook:
    made = Workbook()
    sheet = made.active
    sheet.title = title
    for row in rows:
        sheet.append(row)
    return made


def raw_of(made: Workbook) -> bytes:
    kept = io.BytesIO()
    made.save(kept)
    return kept.getvalue()


async def read(made: Workbook | bytes) -> Parsed:
    return await parse("prices.xlsx", made if isinstance(made, bytes) else raw_of(made))


async def shown(value: object, form: str = "General") -> str:
    """As it comes out of a cell of this format."""
    made = book([["x", "y"]])
    made.active.append(["z", value])
    made.active["B2"].number_format = form
    return (await read(made)).parts[0].text.rpartition("z: ")[2] or (await read(made)).parts[0].text


async def test_each_sheet_is_a_part_under_its_name() -> None:
    made = book()
    other = made.create_sheet("Staff")
    other.append(["Ada cuts on Mondays."])
    parsed = await read(made)
    assert texts(parsed) == {"sheet Prices": f"# Prices\n\n{TABLE}", "sheet Staff": "# Staff\n\nAda cuts on Mondays."}
    found = chunk(parsed.media_type, parsed.parts)
    assert (found[0].part, found[0].heading_path) == ("sheet Prices", ("Prices",))


async def test_the_only_sheet_needs_no_name_that_nobody_gave_it() -> None:
    assert texts(await read(book(title="Tabelle1"))) == {"sheet Tabelle1": TABLE}


async def test_the_header_stays_with_every_block_of_a_long_table() -> None:
    rows: list[Any] = [PRICES[0], *((f"Service number {number}", number, number * 2) for number in range(200))]
    parsed = await read(book(rows))
    chunks = chunk(parsed.media_type, parsed.parts)
    assert len(chunks) > 5
    assert all(each.text.startswith("| Service | Minutes | Price |\n|---|---|---|") for each in chunks)


async def test_a_header_too_wide_to_be_repeated_is_said_in_each_row() -> None:
    names = [f"A rather long name of the column number {number}" for number in range(12)]
    text = (await read(book([names, *[[f"v{n}" for n in range(12)]] * 3]))).parts[0].text
    assert "A rather long name of the column number 11: v11" in text


async def test_what_stands_above_a_table_is_no_header_and_a_table_goes_on_after_an_empty_row() -> None:
    rows: list[Any] = [["Prices from May on"], [], *PRICES, [], ["Perm", 120, 80]]
    text = (await read(book(rows, "Sheet1"))).parts[0].text
    more = "| Service | Minutes | Price |\n|---|---|---|\n| Perm | 120 | 80 |"
    assert text == f"Prices from May on\n\n{TABLE}\n\n{more}"


async def test_tables_side_by_side_are_told_apart() -> None:
    rows: list[Any] = [
        ["Day", "Opens", None, "Name", "Age"],
        ["Mon", 9, None, "Ada", 40],
        ["Tue", 8, None, "Bo", 30],
        ["Wed", 7],
    ]
    text = (await read(book(rows, "Sheet1"))).parts[0].text
    assert "| Day | Opens |\n|---|---|\n| Mon | 9 |\n| Tue | 8 |\n| Wed | 7 |" in text
    assert "| Name | Age |\n|---|---|\n| Ada | 40 |\n| Bo | 30 |" in text


async def test_bold_names_are_a_header_and_so_are_those_of_a_table() -> None:
    rows = [["Room 1", "Room 2"], ["blue", "red"], ["cold", "warm"]]
    bold = book(rows, "Sheet1")
    for cell in bold.active[1]:
        cell.font = Font(bold=True)
    table = book(rows, "Sheet1")
    table.active.add_table(Table(displayName="Rooms", ref="A1:B3"))
    for made in (bold, table):
        assert (await read(made)).parts[0].text.startswith("| Room 1 | Room 2 |\n|---|---|")


async def test_a_merged_cell_is_said_in_each_row_that_it_spans() -> None:
    made = book([["Area", "Room", "Price"], ["North", "1", 50], [None, "2", 60], ["South", "3", 70]])
    made.active.merge_cells("A2:A3")
    assert "| North | 1 | 50 |\n| North | 2 | 60 |\n| South | 3 | 70 |" in (await read(made)).parts[0].text


@pytest.mark.parametrize(
    ("value", "form", "said"),
    [
        (date(2026, 3, 1), "dd.mm.yyyy", "2026-03-01"),
        (46082.604166666664, "yyyy-mm-dd hh:mm", "2026-03-01 14:30"),
        (time(9, 5), "h:mm AM/PM", "09:05"),
        (timedelta(hours=30, minutes=5), "[h]:mm", "30:05"),
        (46082, "mmm yyyy", "2026-03-01"),
        (46082, "[$-409]d mmmm yyyy;@", "2026-03-01"),
        (0.125, "0.0%", "12.5%"),
        (1234.5, '"$"#,##0.00', "$1,234.50"),
        (1234.5, "#,##0.00 [$€-407]", "1,234.50 €"),
        (-5, '"$"#,##0.00;[Red]\\-"$"#,##0.00', "-$5.00"),
        (-5, '"$"#,##0.00;("$"#,##0.00)', "($5.00)"),
        (4, '0" kg"', "4 kg"),
        (501, "00000", "00501"),
        (0.1 + 0.2, "General", "0.3"),
        (1234567, "#,##0", "1234567"),
        (12, "@", "12"),
        (True, "General", "TRUE"),
        (1e-7, "General", "1e-07"),
    ],
)
async def test_numbers_are_told_as_they_are_shown(value: object, form: str, said: str) -> None:
    assert said in await shown(value, form)


async def test_days_since_1904_are_other_days() -> None:
    made = book([["x", "y"]])
    made.active.append(["z", 46082 - 1462])
    made.active["B2"].number_format = "yyyy-mm-dd"
    made.epoch = CALENDAR_MAC_1904
    assert "2026-03-01" in (await read(made)).parts[0].text


async def test_a_formula_counts_for_its_saved_value_and_is_named_without_one() -> None:
    made = book([*PRICES, ["Both", "=B2+B3", "=C2+C3"]])
    parsed = await read(made)
    assert parsed.troubles == (
        "sheet Prices: 2 formulas (first B4) have no value saved; please open it in Excel, save it and send it again",
    )
    raw = changed(raw_of(made), SHEET, lambda xml: xml.replace("<v />", "<v>85</v>", 2).replace(
        "<v></v>", "<v>85</v>"))  # fmt: skip
    parsed = await read(raw)
    assert "| Both | 85 | 85 |" in parsed.parts[0].text
    assert not parsed.troubles


async def test_what_is_hidden_is_left_out_and_named() -> None:
    made = book()
    made.active["D1"], made.active["D2"] = "Cost", 5
    made.active.column_dimensions["D"].hidden = True
    made.active.row_dimensions[3].hidden = True
    secret = made.create_sheet("Margins")
    secret.append(["60 percent"])
    secret.sheet_state = "veryHidden"
    parsed = await read(made)
    text = "\n".join(part.text for part in parsed.parts)
    assert "Cut" in text
    assert not [word for word in ("Cost", "Colour", "60 percent") if word in text]
    assert parsed.troubles == (
        "sheet Prices: 1 hidden row was left out; its hidden columns were left out",
        "sheet Margins: it is hidden, so it was left out",
    )


async def test_notes_on_cells_are_kept() -> None:
    made = book()
    made.active["C2"].comment = Comment("students pay half", "Ada")
    assert (await read(made)).parts[0].text.endswith("Note on C2: students pay half")


async def test_what_is_printed_above_and_below_is_kept_without_its_codes() -> None:
    made = book()
    made.active.oddHeader.center.text = "Salon Ada"
    made.active.oddFooter.right.text = "Page &P of &N"
    assert (await read(made)).parts[0].text.endswith("\n\nSalon Ada\n\nPage of")


async def test_a_sheet_of_a_million_declared_rows_is_read_at_once() -> None:
    rows = "".join(f'<row r="{number}" ht="15"/>' for number in range(4, 300_000))
    raw = changed(raw_of(book()), SHEET, lambda xml: xml.replace("</sheetData>", f"{rows}</sheetData>"))
    raw = changed(raw, SHEET, lambda xml: xml.replace("A1:C3", "A1:XFD1048576"))
    assert TABLE in (await read(raw)).parts[0].text


async def test_more_rows_than_can_be_taken_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from agents.knowledge.reading import sheets
    from agents.knowledge.reading.package import Package

    monkeypatch.setattr(sheets, "MOST_CELLS", 5)
    (part,) = sheets.read("prices.xlsx", Package("prices.xlsx", raw_of(book())))
    assert "Cut" in part[1]
    assert "Colour" not in part[1]
    assert part[2] == "sheet Prices: it holds more than I can take; the rows from row 3 on were left out"


async def test_only_the_time_that_the_file_takes_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    from agents.knowledge.reading import sheets
    from agents.knowledge.reading.package import Package

    spent_before = 10 * sheets.WITHIN_S
    monkeypatch.setattr("agents.knowledge.reading.sheets.time.process_time", lambda: spent_before)
    (part,) = sheets.read("prices.xlsx", Package("prices.xlsx", raw_of(book())))
    assert "Colour" in part[1]
    ticks = itertools.count(spent_before, sheets.WITHIN_S / 2)
    monkeypatch.setattr("agents.knowledge.reading.sheets.time.process_time", lambda: next(ticks))
    (part,) = sheets.read("prices.xlsx", Package("prices.xlsx", raw_of(book())))
    assert "Cut" in part[1]
    assert "Colour" not in part[1]
    assert part[2] == "sheet Prices: it holds more than I can take; the rows from row 3 on were left out"


def with_strings(raw: bytes, strings: str) -> bytes:
    """As Excel keeps them: apart from the cells."""
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/sharedStrings"
    link = f'<Relationship Id="rId99" Type="{kind}" Target="strings.xml"/></Relationships>'
    raw = changed(raw, "xl/_rels/workbook.xml.rels", lambda xml: xml.replace("</Relationships>", link))
    with zipfile.ZipFile(io.BytesIO(raw)) as old:
        members: dict[str, str | bytes] = {name: old.read(name) for name in old.namelist()}
    return zipped({**members, "xl/strings.xml": strings})


async def test_strings_kept_apart_are_found_by_their_number() -> None:
    cells = "".join(f'<c r="{place}" t="s"><v>{number}</v></c>' for place, number in (("A1", 1), ("B1", 0), ("C1", 9)))
    raw = raw_of(book([], "Sheet1"))
    raw = changed(raw, SHEET, lambda xml: xml.replace("<sheetData>", f'<sheetData><row r="1">{cells}</row>'))
    strings = "<sst><si><t>first</t></si><si><r><t>sec</t></r><r><t>ond</t></r></si></sst>"
    assert texts(await read(with_strings(raw, strings))) == {"sheet Sheet1": "second: first"}


async def test_strings_that_swell_are_refused() -> None:
    item = f"<si><t>{'a' * 9_000}</t></si>"
    raw = with_strings(raw_of(book()), f"<sst>{item * 5_000}</sst>")
    assert (await refused("prices.xlsx", raw)).kind == "limit"


async def test_inline_and_rich_text_is_read_and_readings_of_characters_are_not() -> None:
    sheet = (
        '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData><row>'
        '<c t="inlineStr"><is><t>in </t><r><t>line</t></r><rPh sb="0" eb="1"><t>yomi</t></rPh></is></c>'
        '<c t="str"><f>A1</f><v>a_x000D_b</v></c><c t="e"><v>#DIV/0!</v></c></row></sheetData></worksheet>'
    )
    raw = raw_of(book(title="Sheet1"))
    raw = changed(raw, SHEET, lambda _: sheet)
    assert texts(await read(raw)) == {"sheet Sheet1": "| in line | a b | #DIV/0! |"}


async def test_a_sheet_that_is_damaged_is_named_and_the_others_are_kept() -> None:
    made = book()
    made.create_sheet("Staff").append(["Ada", 1])
    raw = changed(raw_of(made), "xl/worksheets/sheet2.xml", lambda xml: xml[: len(xml) // 2])
    parsed = await read(raw)
    assert list(texts(parsed)) == ["sheet Prices"]
    assert parsed.troubles == ("sheet Staff: it is damaged and could not be read",)


async def test_an_empty_workbook_and_an_entity_bomb_are_refused() -> None:
    assert (await refused("prices.xlsx", raw_of(Workbook()))).kind == "nothing"
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]><workbook>&b;</workbook>'
    assert (await refused("prices.xlsx", zipped({"xl/workbook.xml": bomb}))).kind == "corrupt"
