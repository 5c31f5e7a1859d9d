"""LibreOffice's files: their text, and not what a reader of them would not see."""

from __future__ import annotations

import io
import zipfile

import pytest

from agents.knowledge.chunking import chunk
from agents.knowledge.parsing import Parsed, parse
from mesh.errors import Unreadable
from tests.unit.drawn import WITHOUT_OCR, drawn, saved

_SPACES = " ".join(
    f'xmlns:{prefix}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
    for prefix, name in {
        "office": "office",
        "text": "text",
        "table": "table",
        "draw": "drawing",
        "style": "style",
        "presentation": "presentation",
        "svg": "svg-compatible",
    }.items()
)
DECLARED = f'{_SPACES} xmlns:xlink="http://www.w3.org/1999/xlink"'


def made(kind: str, body: str, styles: str = "", /, **members: bytes) -> bytes:
    content = (
        f"<office:document-content {DECLARED}><office:automatic-styles>{styles}</office:automatic-styles>"
        f"<office:body><office:{kind}>{body}</office:{kind}></office:body></office:document-content>"
    )
    kept = io.BytesIO()
    with zipfile.ZipFile(kept, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", f"application/vnd.oasis.opendocument.{kind}")
        archive.writestr("content.xml", content)
        for member, raw in members.items():
            archive.writestr(member.replace("__", "/").replace("_", "."), raw)
    return kept.getvalue()


async def read(raw: bytes, name: str) -> Parsed:
    return await parse(name, raw, child=WITHOUT_OCR)


async def test_a_text_is_read_in_its_order_with_headings_lists_tables_and_notes() -> None:
    body = """
    <text:tracked-changes><text:changed-region><text:deletion><text:p>Deleted price 70</text:p></text:deletion>
    </text:changed-region></text:tracked-changes>
    <text:h text:outline-level="1">Prices</text:h>
    <text:p>From<text:s text:c="3"/>84<text:tab/>euros<text:note><text:note-citation>1</text:note-citation>
    <text:note-body><text:p>In June.</text:p></text:note-body></text:note><office:annotation><text:p>Too much?</text:p>
    </office:annotation>, <text:span text:style-name="gone">secretly 60</text:span>with <text:a>tea</text:a>.</text:p>
    <text:h text:outline-level="2">What to bring</text:h>
    <text:list><text:list-item><text:p>A towel</text:p><text:list><text:list-item><text:p>a large one</text:p>
    </text:list-item></text:list></text:list-item><text:list-item><text:p>Soap</text:p></text:list-item></text:list>
    <table:table><table:table-header-rows><table:table-row><table:table-cell><text:p>Room</text:p></table:table-cell>
    <table:table-cell><text:p>View</text:p></table:table-cell><table:table-cell><text:p>Euros</text:p></table:table-cell>
    </table:table-row></table:table-header-rows><table:table-row><table:table-cell><text:p>Double</text:p>
    </table:table-cell><table:table-cell><text:p>river</text:p></table:table-cell><table:table-cell><text:p>84</text:p>
    </table:table-cell></table:table-row></table:table>
    <text:section text:display="none"><text:p>Hidden section</text:p></text:section>
    <text:p><draw:frame><draw:text-box><text:p>In a box</text:p></draw:text-box></draw:frame></text:p>"""
    styles = '<style:style style:name="gone"><style:text-properties text:display="none"/></style:style>'
    margins = f"""<office:document-styles {DECLARED}><office:master-styles><style:master-page><style:footer>
    <text:p>Call 4417</text:p></style:footer></style:master-page></office:master-styles></office:document-styles>"""
    parsed = await read(made("text", body, styles, styles_xml=margins.encode()), "guide.odt")
    assert parsed.media_type == "application/vnd.oasis.opendocument.text"
    text, footer = parsed.parts
    assert text.text == (
        "# Prices\n\nFrom 84\teuros[1], with tea.\n\n[1] In June.\n\n## What to bring\n\n"
        "- A towel\n  - a large one\n- Soap\n\n"
        "| Room | View | Euros |\n|---|---|---|\n| Double | river | 84 |\n\nIn a box"
    )
    assert footer.text == "Call 4417"
    found = chunk(parsed.media_type, parsed.parts)
    assert [each.heading_path for each in found] == [("Prices",), ("Prices", "What to bring"), ()]


async def test_sheets_are_read_and_what_is_hidden_is_named() -> None:
    def row(*cells: str, **said: str) -> str:
        marks = " ".join(f'table:{key.replace("_", "-")}="{value}"' for key, value in said.items())
        filled = (f"<table:table-cell><text:p>{cell}</text:p></table:table-cell>" for cell in cells)
        return f"<table:table-row {marks}>{''.join(filled)}</table:table-row>"

    empty = '<table:table-cell table:number-columns-repeated="16000"/>'
    body = (
        '<table:table table:name="Prices"><table:table-column table:number-columns-repeated="3"/>'
        '<table:table-column table:visibility="collapse"/>'
        + row("Room", "View", "Euros", "Cost")
        + row("Double", "river", "84", "31")
        + row("Single", "yard", "60", "22")
        + row("Suite", "sea", "200", "99", visibility="filter")
        + f'<table:table-row table:number-rows-repeated="1048570">{empty}</table:table-row></table:table>'
        '<table:table table:name="Costs" table:style-name="h">' + row("Rent", "9000") + "</table:table>"
    )
    styles = '<style:style style:name="h"><style:table-properties table:display="false"/></style:style>'
    parsed = await read(made("spreadsheet", body, styles), "prices.ods")
    assert [part.label for part in parsed.parts] == ["sheet Prices", "sheet Costs"]
    assert parsed.parts[0].text == (
        "# Prices\n\n| Room | View | Euros |\n|---|---|---|\n| Double | river | 84 |\n| Single | yard | 60 |"
    )
    assert parsed.troubles == (
        "sheet Prices: it holds a hidden row that could not be read",
        "sheet Costs: it is hidden, so it was left out",
    )


async def test_slides_are_read_with_their_notes_and_a_hidden_one_is_named() -> None:
    body = """
    <draw:page><draw:frame><draw:text-box><text:p>Soup 4</text:p></draw:text-box></draw:frame>
    <draw:frame presentation:class="title"><draw:text-box><text:p>Menu</text:p></draw:text-box></draw:frame>
    <draw:g><draw:custom-shape><text:p>Fish 12</text:p></draw:custom-shape></draw:g>
    <presentation:notes><draw:frame><draw:text-box><text:p>Ask Harriet</text:p></draw:text-box></draw:frame>
    </presentation:notes></draw:page>
    <draw:page draw:style-name="h"><draw:frame><draw:text-box><text:p>Margins</text:p></draw:text-box></draw:frame>
    </draw:page>"""
    styles = """<style:style style:name="h"><style:drawing-page-properties presentation:visibility="hidden"/>
    </style:style>"""
    parsed = await read(made("presentation", body, styles), "menu.odp")
    assert parsed.parts[0].text == "# Menu\n\nSoup 4\n\nFish 12\n\nSpeaker notes: Ask Harriet"
    assert parsed.troubles == ("slide 2: it is hidden, so it was left out",)


PICTURED = """<text:p>Welcome.</text:p><text:p><draw:frame svg:width="10cm" svg:height="4cm">
<draw:image xlink:href="Pictures/menu.png"/><svg:desc>The menu</svg:desc></draw:frame>
<draw:frame svg:width="5mm" svg:height="5mm"><draw:image xlink:href="Pictures/icon.png"/></draw:frame></text:p>"""


async def test_a_picture_that_could_not_be_read_is_named_and_its_description_is_text() -> None:
    parsed = await read(made("text", PICTURED, Pictures__menu_png=saved(drawn("Soup 4 euros"))), "menu.odt")
    assert parsed.parts[0].text == "Welcome.\n\nPicture: The menu"
    assert parsed.troubles == ("the text: it holds a picture that could not be read",)


async def test_the_words_of_a_picture_are_read() -> None:
    pytest.importorskip("rapidocr", reason="pictures are read with the `ocr` extra")
    raw = made("text", PICTURED, Pictures__menu_png=saved(drawn("Soup 4 euros")))
    (part,) = (await parse("menu.odt", raw)).parts
    assert part.text.endswith("Soup 4 euros")
    assert (part.how, part.trouble) == ("partly ocr", "")


async def test_a_chart_is_its_numbers() -> None:
    body = """<text:p>Sold.</text:p><text:p><draw:frame><draw:object xlink:href="./Object 1"/>
    <draw:image xlink:href="./ObjectReplacements/Object 1"/></draw:frame></text:p>"""
    cells = "".join(f"<table:table-cell><text:p>{cell}</text:p></table:table-cell>" for cell in ("June", "84", "91"))
    chart = f"<office:document-content {DECLARED}><table:table><table:table-row>{cells}</table:table-row></table:table>"
    raw = made("text", body, **{"Object 1__content_xml": f"{chart}</office:document-content>".encode()})
    assert (await read(raw, "sold.odt")).parts[0].text == "Sold.\n\n| June | 84 | 91 |"


async def test_a_file_with_a_password_or_without_text_is_refused() -> None:
    for raw, kind in (
        (made("text", "<text:p>x</text:p>", **{"META-INF__manifest_xml": b"<manifest:encryption-data/>"}), "password"),
        (made("text", "<text:p/>"), "nothing"),
    ):
        with pytest.raises(Unreadable) as refused:
            await read(raw, "guide.odt")
        assert refused.value.kind == kind
