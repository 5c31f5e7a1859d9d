"""Docling, where it is asked for: the same parts as from our own readers, and nothing lost by it."""

from __future__ import annotations

import io
import json
import sys
from importlib.util import find_spec

import pytest
from docx import Document
from openpyxl import Workbook
from pptx import Presentation

from agents.knowledge import parsing
from agents.knowledge.parsing import parse
from agents.knowledge.reading import Parts, docling
from agents.knowledge.reading.files import PPTX, XLSX
from mesh.errors import Misconfigured, Unreadable
from tests.unit.drawn import LETTER, drawn, scan

SHEETS: Parts = [
    ("sheet Prices", "# Prices\n\n| Room | Euros |\n|---|---|\n| Double | 84 |", ""),
    ("sheet Costs", "", "sheet Costs: it is hidden, so it was left out"),
]


def child(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    monkeypatch.setattr(docling, "_CHILD", (sys.executable, "-c", f"import sys; sys.stdin.buffer.read(); {code}"))


def says(monkeypatch: pytest.MonkeyPatch, **written: str) -> None:
    child(monkeypatch, f"print({json.dumps({label.replace('_', ' '): text for label, text in written.items()})!r})")


def test_a_part_that_docling_read_as_completely_is_docling_s_and_a_hidden_one_stays_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    says(monkeypatch, sheet_Prices="|Room|Euros|\n|-|-|\n|Double|84|", sheet_Costs="secret margins")
    assert docling.instead(b"", XLSX, SHEETS) == [
        ("sheet Prices", "# Prices\n\n|Room|Euros|\n|-|-|\n|Double|84|", "", "docling"),
        SHEETS[1],
    ]


def test_a_part_of_which_docling_loses_words_keeps_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    says(monkeypatch, slide_1="Menu", slide_2="Soup 4")
    ours: Parts = [("slide 1", "Menu\n\nSpeaker notes: ask Harriet", ""), ("slide 2", "Soup 4", "", "partly ocr")]
    assert docling.instead(b"", PPTX, ours) == [
        (*ours[0], "not by docling: it had fewer words"),
        ("slide 2", "Soup 4", "", "docling"),
    ]


@pytest.mark.parametrize("code", ["import os; os.abort()", "raise ValueError", "import signal; signal.raise_signal(9)"])
def test_when_docling_fails_our_text_remains_and_the_part_says_so(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    child(monkeypatch, code)
    ours: Parts = [("page 1", "Soup 4", "", "partly ocr"), ("page 2", "", "page 2: it is blank")]
    assert docling.instead(b"", "application/pdf", ours) == [
        ("page 1", "Soup 4", "", "partly ocr; not by docling: it failed"),
        ours[1],
    ]


def test_what_the_extra_does_not_read_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    child(monkeypatch, "raise ValueError")
    assert docling.instead(b"", "message/rfc822", SHEETS) == SHEETS


@pytest.mark.skipif(find_spec("docling") is not None, reason="Docling is installed here")
async def test_where_docling_is_not_installed_our_text_is_there_and_the_part_says_why() -> None:
    parsed = await parse("soup.md", b"# Soup\n\n4 euros", reader="docling")
    assert [(part.text, part.how) for part in parsed.parts] == [
        ("# Soup\n\n4 euros", "not by docling: it is not installed")
    ]
    with pytest.raises(Misconfigured, match=r"requirements\.docling\.lock"):
        parsing.installed("docling")
    assert parsing.installed("light") == "light"


# ── with Docling itself ───────────────────────────────────────────────────────────────────────────────────────────


def word() -> bytes:
    made = Document()
    made.add_heading("Prices", 1)
    made.add_paragraph("All prices are for two people.")
    table = made.add_table(2, 3)
    for cell, text in zip(table._cells, ("Room", "Euros", "View", "Double", "84", "river"), strict=True):
        cell.text = text
    return kept(made)


def slides() -> bytes:
    made = Presentation()
    for title in ("Prices", "Meals"):
        slide = made.slides.add_slide(made.slide_layouts[1])
        slide.shapes.title.text = title
        slide.placeholders[1].text = f"About {title}"
    return kept(made)


def sheets() -> bytes:
    made = Workbook()
    for title, state in (("Prices", "visible"), ("Costs", "hidden"), ("Meals", "visible")):
        sheet = made.create_sheet(title)
        sheet.sheet_state = state
        sheet.append(["What", "Euros"])
        sheet.append([f"Of {title}", 84])
    del made["Sheet"]
    return kept(made)


def kept(made: object) -> bytes:
    file = io.BytesIO()
    made.save(file)  # type: ignore[attr-defined]  # each of them has it
    return file.getvalue()


installed = pytest.mark.skipif(
    find_spec("docling") is None, reason="Docling is not installed: ADIYAN_LOCK=requirements.docling.lock installs it"
)


@pytest.mark.docling
@installed
@pytest.mark.parametrize(
    ("name", "raw", "labels", "said"),
    [
        ("prices.docx", word(), [""], "| Double | 84 | river |"),
        ("prices.pptx", slides(), ["slide 1", "slide 2"], "# Prices"),
        ("prices.xlsx", sheets(), ["sheet Prices", "sheet Meals"], "| Of Prices | 84 |"),
        ("prices.html", b"<html><h1>Prices</h1><p>From 84 euros.</p></html>", [""], "From 84 euros."),
        ("prices.md", b"# Prices\n\nFrom 84 euros.", [""], "From 84 euros."),
    ],
)
async def test_docling_s_text_comes_as_the_same_parts(name: str, raw: bytes, labels: list[str], said: str) -> None:
    light, parsed = await parse(name, raw), await parse(name, raw, reader="docling")
    assert [part.label for part in parsed.parts] == [part.label for part in light.parts]
    assert parsed.troubles == light.troubles
    assert [part.label for part in parsed.parts if part.how == "docling"] == labels
    assert said in parsed.parts[0].text
    assert "Of Costs" not in "".join(part.text for part in parsed.parts)


@pytest.mark.docling
@installed
async def test_what_docling_cannot_see_or_bear_is_ours() -> None:
    pytest.importorskip("rapidocr", reason="pictures are read with the `ocr` extra")
    (page,) = (await parse("letter.pdf", scan(drawn(*LETTER)), reader="docling")).parts
    assert "Harriet Blackwood" in page.text
    assert page.how == "ocr; not by docling: it had fewer words"
    with pytest.raises(Unreadable):
        await parse("prices.docx", word()[:2000], reader="docling")
