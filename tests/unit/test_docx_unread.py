"""Incident d, in Word files: a picture of a price table gave no text, nobody was told, and the mesh did not know."""

from __future__ import annotations

import pytest
from docx import Document
from docx.shared import Emu

from tests.unit.word_files import (
    DECLARED,
    added,
    body,
    p,
    png,
    r,
    raw_of,
    read,
    replaced,
    text,
    unreadable,
)


async def test_a_picture_is_named_with_the_section_that_it_is_in() -> None:
    made = Document()
    made.add_heading("Rooms", 1)
    made.add_paragraph("All rooms look to the river.")
    made.add_heading("Prices", 1)
    made.add_picture(png())
    parsed = await read(made, ocr=False)
    assert parsed.troubles == ("picture 1 (under “Prices”): its text could not be read; alt text: none",)
    assert parsed.parts[1].label == "picture 1"


async def test_a_picture_outside_of_any_section_is_named_by_the_text_before_it() -> None:
    made = Document()
    made.add_picture(png())
    made.add_paragraph("These are the prices of the season, as they were agreed upon in spring by everybody.")
    made.add_picture(png(shade=9))
    first, second = (await read(made, ocr=False)).troubles
    assert first.startswith("picture 1 (at the start):")
    assert second.startswith("picture 2 (after “These are the prices of the season, as they were agreed…”):")


async def test_the_words_that_describe_a_picture_are_text() -> None:
    made = Document()
    made.add_picture(png())
    made.inline_shapes[0]._inline.docPr.set("descr", "Double room 84 euros")
    parsed = await read(made, ocr=False)
    assert parsed.parts[0].text == "Picture: Double room 84 euros"
    assert parsed.troubles[0].endswith("alt text: “Double room 84 euros”"), "what else it shows is not known"


async def test_a_picture_is_named_once_and_decoration_is_not() -> None:
    made = Document()
    made.add_paragraph("Welcome.")
    made.add_picture(png())
    made.add_picture(png())
    made.add_picture(png(30, 200), width=Emu(30 * 9525))
    made.sections[0].header.paragraphs[0].add_run().add_picture(png())
    assert len((await read(made, ocr=False)).troubles) == 1


async def test_a_picture_in_the_header_is_named_as_such() -> None:
    made = Document()
    made.add_paragraph("Welcome.")
    made.sections[0].header.paragraphs[0].add_run().add_picture(png())
    assert (await read(made, ocr=False)).troubles[0].startswith("picture 1 (in the header):")


async def test_many_pictures_are_counted() -> None:
    made = Document()
    made.add_paragraph("Welcome.")
    for shade in range(24):
        made.add_picture(png(shade=shade))
    troubles = (await read(made, ocr=False)).troubles
    assert len(troubles) == 11
    assert troubles[-1] == "and 14 more pictures that could not be read"


async def test_what_is_embedded_or_inserted_is_named() -> None:
    made = body(
        p(r("Prices")),
        '<w:p><w:r><w:object><v:shape><v:imagedata r:id="rId1"/></v:shape>'
        '<o:OLEObject Type="Embed" ProgID="Excel.Sheet.12" r:id="rId2"/></w:object></w:r></w:p>',
        '<w:altChunk r:id="rId3"/>',
    )
    assert (await read(made)).troubles == (
        "embedded Excel sheet 1 (after “Prices”): its text could not be read",
        "inserted file 1 (after “Prices”): its text could not be read",
    )


async def test_an_older_picture_is_named() -> None:
    made = Document()
    made.add_paragraph("Prices")
    link, _ = made.part.get_or_add_image(png())
    shape = f'<v:shape style="width:3in;height:90pt" alt="The menu"><v:imagedata r:id="{link}"/></v:shape>'
    parsed = await read(body(f"<w:p><w:r><w:pict>{shape}</w:pict></w:r></w:p>", into=made), ocr=False)
    assert parsed.troubles[0].endswith("alt text: “The menu”")


CHART = f"""<c:chartSpace {DECLARED}><c:chart><c:title><c:tx><c:rich><a:p><a:r><a:t>Price of a room</a:t></a:r></a:p>
</c:rich></c:tx></c:title><c:plotArea><c:barChart>{{}}</c:barChart></c:plotArea></c:chart></c:chartSpace>"""
SERIES = """<c:ser><c:tx><c:strRef><c:strCache><c:pt idx="0"><c:v>Double</c:v></c:pt></c:strCache></c:strRef></c:tx>
<c:cat><c:strRef><c:strCache><c:pt idx="0"><c:v>June</c:v></c:pt><c:pt idx="1"><c:v>July</c:v></c:pt></c:strCache>
</c:strRef></c:cat><c:val><c:numRef><c:numCache><c:formatCode>General</c:formatCode><c:pt idx="0"><c:v>84</c:v></c:pt>
<c:pt idx="1"><c:v>91.100000000000001</c:v></c:pt></c:numCache></c:numRef></c:val></c:ser>"""
DIAGRAM = f"""<dgm:dataModel {DECLARED}><dgm:ptLst>
<dgm:pt modelId="1"><dgm:t><a:p><a:r><a:t>Ring the bell</a:t></a:r></a:p></dgm:t></dgm:pt>
<dgm:pt modelId="2" type="pres"><dgm:t><a:p><a:r><a:t>shape</a:t></a:r></a:p></dgm:t></dgm:pt>
<dgm:pt modelId="3"><dgm:t><a:p><a:r><a:t>Show your passport</a:t></a:r></a:p></dgm:t></dgm:pt>
</dgm:ptLst></dgm:dataModel>"""


def graphic(inside: str, kind: str, part: str) -> bytes:
    """A document with a chart or a diagram, whose numbers and words are in a part of their own."""
    drawn = f'<wp:inline><a:graphic><a:graphicData uri="x">{inside}</a:graphicData></a:graphic></wp:inline>'
    raw = raw_of(body(p(r("As drawn:")), f"<w:p><w:r><w:drawing>{drawn}</w:drawing></w:r></w:p>"))
    link = (
        f'<Relationship Id="rId99" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/{kind}" '
        'Target="extra.xml"/></Relationships>'
    )
    raw = replaced(raw, "word/_rels/document.xml.rels", "</Relationships>", link)
    return added(raw, "word/extra.xml", part)


CHART_LINK = '<c:chart r:id="rId99"/>'
DIAGRAM_LINK = '<dgm:relIds xmlns:dgm="http://schemas.openxmlformats.org/drawingml/2006/diagram" r:dm="rId99"/>'


async def test_the_numbers_of_a_chart_are_a_table() -> None:
    parsed = await read(graphic(CHART_LINK, "chart", CHART.format(SERIES)))
    assert parsed.parts[0].text.endswith("Price of a room\n\n|  | Double |\n|---|---|\n| June | 84 |\n| July | 91.1 |")
    assert parsed.troubles == ()


async def test_a_chart_without_its_numbers_is_named() -> None:
    parsed = await read(graphic(CHART_LINK, "chart", CHART.format("")))
    assert parsed.troubles == ("chart 1 (after “As drawn:”): its numbers could not be read",)


async def test_a_damaged_piece_is_named_and_the_rest_is_read() -> None:
    parsed = await read(graphic(CHART_LINK, "chart", CHART[:-20]))
    assert parsed.parts[0].text == "As drawn:"
    assert "extra.xml: damaged, and could not be read" in parsed.troubles


async def test_the_words_of_a_diagram_are_read() -> None:
    assert (await text(graphic(DIAGRAM_LINK, "diagramData", DIAGRAM))).endswith("- Ring the bell\n- Show your passport")


@pytest.mark.parametrize("heading", [True, False])
async def test_a_document_of_pictures_only_is_unreadable(heading: bool) -> None:
    made = Document()
    if heading:
        made.add_heading("Prices", 1)
    made.add_picture(png())
    said = await unreadable(raw_of(made), ocr=False)
    assert ("headings and a picture" if heading else "a picture") in said
    assert "Please send its text" in said


async def test_a_document_without_anything_is_unreadable() -> None:
    assert "there is no text in it" in await unreadable(raw_of(Document()))
