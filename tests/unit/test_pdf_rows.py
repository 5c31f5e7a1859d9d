"""Text of a PDF that was set in pieces."""

from __future__ import annotations

import pypdfium2  # type: ignore[import-untyped]  # it has no types
import pytest

from agents.knowledge.parsing import parse
from agents.knowledge.reading.rows import rejoined
from tests.unit.test_parsing import pdf


def pieces(*placed: tuple[float, float, int, str]) -> bytes:
    return pdf("", drawn=" ".join(f"BT /F1 {size} Tf {x} {y} Td ({text}) Tj ET" for x, y, size, text in placed))


def told(*placed: tuple[float, float, int, str]) -> tuple[str, str]:
    """As PDFium gives it, and as it is then told."""
    textpage = pypdfium2.PdfDocument(pieces(*placed))[0].get_textpage()
    text = textpage.get_text_range()
    return text, rejoined(text, textpage)


def test_a_raised_sign_does_not_break_its_line() -> None:
    given, line = told((72, 600, 12, "as is often seen"), (155, 605, 7, "2"), (159, 600, 12, ", and elsewhere"))
    assert "\n" in given, "otherwise nothing is shown here"
    assert line == "as is often seen2, and elsewhere"


def test_cells_that_are_set_a_little_higher_or_lower_are_one_row() -> None:
    given, row = told((72, 600, 12, "SKU-4563"), (180, 605, 6, "22"), (240, 600, 12, "..."), (300, 600, 12, "CRITICAL"))
    assert "\n" in given
    assert row == "SKU-4563 22 ... CRITICAL"


@pytest.mark.parametrize("step", [10, 14, 40])
def test_lines_one_under_the_other_stay_apart(step: float) -> None:
    given, lines = told((72, 600, 12, "Quiet from ten."), (72, 600 - step, 12, "No smoking."))
    assert lines.replace("\r", "") == given.replace("\r", "") == "Quiet from ten.\nNo smoking."


def test_what_is_printed_over_something_else_stays_as_it_came() -> None:
    given, lines = told((72, 600, 12, "seen"), (80, 605, 7, "22"), (76, 600, 12, "."))
    assert "\n" in given
    assert lines.replace("\r", "") == given.replace("\r", "")


async def test_the_row_is_what_is_kept() -> None:
    parsed = await parse("stock.pdf", pieces((72, 600, 12, "SKU-4563"), (180, 605, 6, "22"), (240, 600, 12, "...")))
    assert parsed.parts[0].text == "SKU-4563 22 ..."
