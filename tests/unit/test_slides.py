"""What PowerPoint files yield, slide by slide."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from typing import Any, TypeAlias

import pytest
from pptx import Presentation
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Inches

from agents.knowledge.chunking import chunk
from agents.knowledge.parsing import Parsed, parse
from tests.unit.office_files import PNG, changed, refused, texts, zipped

Slide: TypeAlias = Any
"""Of python-pptx, whose types are not those of what it makes."""
BLANK, TITLE_AND_BODY, TITLE_ONLY = 6, 1, 5
SIZE = Inches(1), Inches(1), Inches(6), Inches(4)


def deck(*fills: Callable[[Slide], object], layout: int = TITLE_ONLY) -> bytes:
    made: Any = Presentation()
    for fill in fills:
        fill(made.slides.add_slide(made.slide_layouts[layout]))
    return raw_of(made)


def raw_of(made: Any) -> bytes:
    kept = io.BytesIO()
    made.save(kept)
    return kept.getvalue()


def titled(title: str) -> Callable[[Slide], object]:
    return lambda slide: setattr(slide.shapes.title, "text", title)


async def read(raw: bytes) -> Parsed:
    return await parse("deck.pptx", raw)


async def test_each_slide_is_a_part_and_its_title_heads_what_is_on_it() -> None:
    def fill(slide: Slide) -> None:
        box = slide.shapes.add_textbox(*SIZE)
        box.text_frame.text = "We open at nine."
        slide.shapes.title.text = "Opening\vhours"

    raw = deck(titled("Welcome"), fill)
    parsed = await read(raw)
    assert texts(parsed) == {"slide 1": "Welcome", "slide 2": "# Opening hours\n\nWe open at nine."}
    found = chunk(parsed.media_type, parsed.parts)[1]
    assert (found.part, found.heading_path, found.text) == ("slide 2", ("Opening hours",), "We open at nine.")


async def test_points_keep_their_depth() -> None:
    def fill(slide: Slide) -> None:
        slide.shapes.title.text = "Cuts"
        frame = slide.placeholders[1].text_frame
        frame.text = "Long hair"
        for level, text in ((1, "with a wash"), (0, "Short hair")):
            point = frame.add_paragraph()
            point.text, point.level = text, level

    (text,) = texts(await read(deck(fill, layout=TITLE_AND_BODY))).values()
    assert text == "# Cuts\n\n- Long hair\n  - with a wash\n- Short hair"


async def test_text_in_groups_within_groups_is_read_in_order() -> None:
    def fill(slide: Slide) -> None:
        outer = slide.shapes.add_group_shape()
        outer.shapes.add_textbox(*SIZE).text_frame.text = "A"
        inner = outer.shapes.add_group_shape().shapes.add_group_shape()
        inner.shapes.add_textbox(*SIZE).text_frame.text = "B"
        slide.shapes.add_textbox(*SIZE).text_frame.text = "C"

    assert (await read(deck(fill, layout=BLANK))).parts[0].text == "A\n\nB\n\nC"


async def test_a_table_keeps_its_names_and_merged_cells() -> None:
    def fill(slide: Slide) -> None:
        table = slide.shapes.add_table(3, 3, *SIZE).table
        for row, cells in enumerate((("Cut", "Length", "Price"), ("Wash", "short", "5 €"), ("", "long", "8 €"))):
            for column, cell in enumerate(cells):
                table.cell(row, column).text = cell
        table.cell(1, 0).merge(table.cell(2, 0))

    text = (await read(deck(fill, layout=BLANK))).parts[0].text
    assert text == "| Cut | Length | Price |\n|---|---|---|\n| Wash | short | 5 € |\n| Wash | long | 8 € |"


@pytest.mark.parametrize("kind", ["COLUMN_CLUSTERED", "PIE", "LINE"])
async def test_a_chart_is_a_table_of_its_numbers(kind: str) -> None:
    text = (await read(charted(kind))).parts[0].text
    assert text == VISITS


async def test_a_chart_in_three_dimensions_is_read_as_any_other() -> None:
    raw = charted("COLUMN_CLUSTERED")
    (part,) = (name for name in zipfile.ZipFile(io.BytesIO(raw)).namelist() if name.startswith("ppt/charts/chart"))
    raw = changed(raw, part, lambda xml: xml.replace("c:barChart>", "c:bar3DChart>"))
    assert (await read(raw)).parts[0].text == VISITS


VISITS = "Visits by month\n\n|  | Visits |\n|---|---|\n| May | 120 |\n| June | 135 |"


def charted(kind: str) -> bytes:
    def fill(slide: Slide) -> None:
        data: Any = CategoryChartData()  # type: ignore[no-untyped-call]  # it has half its types
        data.categories = ["May", "June"]
        data.add_series("Visits", (120, 135))
        chart = slide.shapes.add_chart(getattr(XL_CHART_TYPE, kind), *SIZE, data).chart
        chart.has_title = True
        chart.chart_title.text_frame.text = "Visits by month"

    return deck(fill, layout=BLANK)


SMART = (
    '<p:graphicFrame xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships">'
    '<p:nvGraphicFramePr><p:cNvPr id="9" name="D"/><p:cNvGraphicFramePr/><p:nvPr/></p:nvGraphicFramePr><p:xfrm/>'
    '<a:graphic><a:graphicData uri="http://schemas.openxmlformats.org/drawingml/2006/diagram"><dgm:relIds '
    'xmlns:dgm="http://schemas.openxmlformats.org/drawingml/2006/diagram" r:dm="rId77"/></a:graphicData></a:graphic>'
    "</p:graphicFrame></p:spTree>"
)
DIAGRAM = (
    '<dgm:dataModel xmlns:dgm="http://schemas.openxmlformats.org/drawingml/2006/diagram" '
    'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"><dgm:ptLst>'
    '<dgm:pt><dgm:t><a:p><a:r><a:t>Book</a:t></a:r></a:p></dgm:t></dgm:pt>'
    '<dgm:pt><dgm:t><a:p><a:r><a:t>Pay</a:t></a:r></a:p></dgm:t></dgm:pt></dgm:ptLst></dgm:dataModel>'
)  # fmt: skip


def with_diagram(raw: bytes, data: str) -> bytes:
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/diagramData"
    link = f'<Relationship Id="rId77" Type="{kind}" Target="../diagrams/data1.xml"/></Relationships>'
    raw = changed(raw, "ppt/slides/slide1.xml", lambda xml: xml.replace("</p:spTree>", SMART))
    raw = changed(raw, "ppt/slides/_rels/slide1.xml.rels", lambda xml: xml.replace("</Relationships>", link))
    with zipfile.ZipFile(io.BytesIO(raw)) as old:
        members: dict[str, str | bytes] = {name: old.read(name) for name in old.namelist()}
    return zipped({**members, "ppt/diagrams/data1.xml": data})


async def test_a_diagram_is_a_list_of_what_it_says() -> None:
    raw = with_diagram(deck(titled("Steps")), DIAGRAM)
    assert (await read(raw)).parts[0].text == "# Steps\n\n- Book\n- Pay"


async def test_a_diagram_that_is_damaged_is_named_and_the_rest_is_kept() -> None:
    parsed = await read(with_diagram(deck(titled("Steps")), "<dgm"))
    assert parsed.parts[0].text == "Steps"
    assert parsed.troubles == ("slide 1: it holds a diagram whose text could not be read",)


async def test_notes_belong_to_their_slide() -> None:
    def fill(slide: Slide) -> None:
        slide.shapes.title.text = "Prices"
        slide.notes_slide.notes_text_frame.text = "Say that VAT is included."

    text = (await read(deck(fill))).parts[0].text
    assert text == "# Prices\n\nSpeaker notes: Say that VAT is included."


async def test_a_hidden_slide_is_left_out_and_named() -> None:
    raw = changed(deck(titled("Shown"), titled("Our margin is 60%")), "ppt/slides/slide2.xml", hide)
    parsed = await read(raw)
    assert texts(parsed) == {"slide 1": "Shown"}
    assert parsed.troubles == ("slide 2: it is hidden, so it was left out",)
    only = changed(deck(titled("Our margin is 60%")), "ppt/slides/slide1.xml", hide)
    assert "all of its slides are hidden" in (await refused("deck.pptx", only)).user_text


def hide(xml: str) -> str:
    return xml.replace("<p:sld ", '<p:sld show="0" ', 1)


async def test_a_hidden_box_is_left_out_and_named() -> None:
    raw = deck(lambda slide: setattr(slide.shapes.add_textbox(*SIZE).text_frame, "text", "secret"), titled("Shown"))
    raw = changed(raw, "ppt/slides/slide1.xml", lambda xml: xml.replace('name="TextBox', 'hidden="1" name="TextBox'))
    parsed = await read(raw)
    assert texts(parsed) == {"slide 2": "Shown"}
    assert parsed.troubles == ("slide 1: it holds hidden text, which was left out",)


def picture(slide: Slide) -> None:
    shown = slide.shapes.add_picture(io.BytesIO(PNG), *SIZE)
    shown._element._nvXxPr.cNvPr.set("descr", "Our shop from the street")


async def test_what_an_author_says_of_a_picture_is_text_and_what_a_machine_says_is_not() -> None:
    said = (await read(deck(picture, layout=BLANK))).parts[0].text
    assert said == "Picture: Our shop from the street"
    part = "ppt/slides/slide1.xml"
    for name in ("image7.png", "A shop. Description automatically generated", "Picture 3"):
        raw = changed(deck(picture, titled("x")), part, lambda xml, n=name: xml.replace("Our shop from the street", n))  # type: ignore[misc]  # the name of each round
        assert (await read(raw)).parts[0].text == "", name


async def test_an_empty_slide_is_named_and_its_number_is_no_text() -> None:
    parsed = await read(deck(titled("Shown"), lambda _: None))
    assert parsed.troubles == ("slide 2: no text could be read on it",)


async def test_footers_are_a_part_of_their_own_each_once() -> None:
    footer = (
        '<p:sp><p:nvSpPr><p:cNvPr id="8" name="F"/><p:cNvSpPr/><p:nvPr><p:ph type="{}" idx="11"/></p:nvPr></p:nvSpPr>'
        "<p:spPr/><p:txBody><a:bodyPr/><a:p><a:r><a:t>{}</a:t></a:r></a:p></p:txBody></p:sp>"
    )
    added = footer.format("ftr", "All prices with VAT") + footer.format("sldNum", "‹7›") + "</p:spTree>"
    raw = deck(titled("One"), titled("Two"))
    for number in (1, 2):
        raw = changed(raw, f"ppt/slides/slide{number}.xml", lambda xml: xml.replace("</p:spTree>", added))
    assert texts(await read(raw)) == {"slide 1": "One", "slide 2": "Two", "on every slide": "All prices with VAT"}


async def test_what_the_master_says_on_each_slide_is_told_once() -> None:
    made = Presentation()
    for title in ("One", "Two"):
        made.slides.add_slide(made.slide_layouts[TITLE_ONLY]).shapes.title.text = title
    box = (
        '<p:sp><p:nvSpPr><p:cNvPr id="99" name="S"/><p:cNvSpPr txBox="1"/><p:nvPr/></p:nvSpPr><p:spPr/><p:txBody>'
        "<a:bodyPr/><a:p><a:r><a:t>Since 1987</a:t></a:r></a:p></p:txBody></p:sp></p:spTree>"
    )
    master = "ppt/slideMasters/slideMaster1.xml"
    raw = changed(raw_of(made), master, lambda xml: xml.replace("</p:spTree>", box))
    assert texts(await read(raw)) == {"slide 1": "One", "slide 2": "Two", "on every slide": "Since 1987"}


async def test_a_slide_that_is_damaged_is_named_and_the_others_are_kept() -> None:
    raw = changed(deck(titled("One"), titled("Two")), "ppt/slides/slide1.xml", lambda xml: xml[:300])
    parsed = await read(raw)
    assert texts(parsed) == {"slide 2": "Two"}
    assert parsed.troubles == ("slide 1: it is damaged and could not be read",)


async def test_a_deck_without_text_or_slides_is_refused() -> None:
    assert (await refused("deck.pptx", deck(lambda _: None))).kind == "nothing"
    assert "there is no slide in it" in (await refused("deck.pptx", deck())).user_text


async def test_a_deck_that_was_cut_off_is_refused() -> None:
    raw = deck(titled("One"))
    assert (await refused("deck.pptx", raw[: len(raw) // 2])).kind == "corrupt"
