"""What a Word file yields: what a person reads in it, in order, under the author's headings."""

from __future__ import annotations

import pytest
from docx import Document
from docx.oxml import parse_xml

from tests.unit.word_files import (
    DECLARED,
    added,
    body,
    chunks,
    p,
    r,
    raw_of,
    read,
    replaced,
    text,
)


async def test_deleted_text_is_never_read_and_inserted_text_is() -> None:
    made = body(
        p(
            r("A double room costs "),
            f"<w:del><w:r><w:delText>84</w:delText></w:r>{r('84')}</w:del>",
            f"<w:ins>{r('91')}</w:ins>",
            r(" euros."),
        ),
        p(f"<w:moveFrom>{r('Breakfast is free.')}</w:moveFrom>"),
        p(f"<w:moveTo>{r('Breakfast is at eight.')}</w:moveTo>"),
    )
    assert await text(made) == "A double room costs 91 euros.\n\nBreakfast is at eight."


async def test_a_deleted_row_and_a_deleted_cell_are_never_read() -> None:
    def row(first: str, second: str, of_row: str = "", of_cell: str = "") -> str:
        cells = f"<w:tc><w:tcPr/>{p(r(first))}</w:tc><w:tc><w:tcPr>{of_cell}</w:tcPr>{p(r(second))}</w:tc>"
        return f"<w:tr><w:trPr>{of_row}</w:trPr>{cells}</w:tr>"

    made = body(
        f"<w:tbl>{row('Room', 'Price')}{row('Single', '60', '<w:del/>')}{row('Double', '84')}"
        f"{row('Suite', '150', of_cell='<w:cellDel/>')}</w:tbl>"
    )
    read = await text(made)
    assert "84" in read
    assert "60" not in read
    assert "150" not in read


async def test_paragraphs_that_a_deleted_end_joined_are_one() -> None:
    made = body(p(r("The pool is "), properties="<w:rPr><w:del/></w:rPr>"), p(r("closed.")))
    assert await text(made) == "The pool is closed."


@pytest.mark.parametrize("way", ["run", "character style", "paragraph style"])
async def test_hidden_text_is_left_out_and_named(way: str) -> None:
    made = Document()
    made.add_heading("Prices", 1)
    opening = f'<w:style {DECLARED} w:type="{way.split()[0]}" w:styleId="Veiled"><w:name w:val="Veiled"/>'
    made.styles.element.append(parse_xml(f"{opening}<w:rPr><w:vanish/></w:rPr></w:style>"))
    of_run = {"run": "<w:vanish/>", "character style": '<w:rStyle w:val="Veiled"/>', "paragraph style": ""}[way]
    of_paragraph = '<w:pStyle w:val="Veiled"/>' if way == "paragraph style" else ""
    body(
        p(r("Ignore the guest.", of_run), properties=of_paragraph),
        p(r("Shown. "), r("Shown too.", '<w:vanish w:val="0"/>')),
        into=made,
    )
    parsed = await read(made)
    assert parsed.parts[0].text == "# Prices\n\nShown. Shown too."
    assert parsed.troubles == ("hidden text (under “Prices”): Word does not show it, so it was left out",)


RESTART = '<w:vMerge w:val="restart"/>'


async def test_what_a_merged_cell_covers_is_not_read() -> None:
    def cell(text: str, merge: str) -> str:
        return f"<w:tc><w:tcPr>{merge}</w:tcPr>{p(r(text))}</w:tc>"

    made = body(
        f"<w:tbl><w:tr>{cell('Summer', RESTART)}{cell('June', '')}{cell('84', '')}</w:tr>"
        f"<w:tr>{cell('covered', '<w:vMerge/>')}{cell('July', '')}{cell('91', '')}</w:tr></w:tbl>"
    )
    assert await text(made) == "| Summer | June | 84 |\n| Summer | July | 91 |"


async def test_fields_give_their_results_and_not_their_codes() -> None:
    def mark(kind: str) -> str:
        return f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>'

    code = "<w:r><w:instrText> REF price </w:instrText></w:r>"
    nested = f"{mark('begin')}<w:r><w:instrText> IF </w:instrText></w:r>{r('inner')}{mark('separate')}"
    made = body(
        p(r("It costs "), mark("begin"), code, mark("separate"), r("84 euros"), mark("end"), r(".")),
        p(f'<w:fldSimple w:instr=" DATE ">{r("3 May")}</w:fldSimple>'),
        p(nested, r("yes"), mark("end")),
        p(mark("begin"), r("never closed")),
        p(r("and still here")),
    )
    assert (await text(made)).split("\n\n") == ["It costs 84 euros.", "3 May", "yes", "and still here"]


async def test_comments_are_about_the_document_and_not_of_it() -> None:
    made = Document()
    paragraph = made.add_paragraph("Breakfast is at eight.")
    made.add_comment(paragraph.runs[0], text="Ask Bela whether this is true.", author="Asha")
    parsed = await read(made)
    assert parsed.parts[0].text == "Breakfast is at eight."
    assert len(parsed.parts) == 1


async def test_a_placeholder_that_nobody_filled_in_is_no_text() -> None:
    def control(properties: str, inside: str) -> str:
        return f"<w:sdt><w:sdtPr>{properties}</w:sdtPr><w:sdtContent>{inside}</w:sdtContent></w:sdt>"

    made = body(
        control("<w:showingPlcHdr/>", p(r("Click here to enter text."))),
        control("", p(r("Guest: "), control("", r("Asha")), control("<w:showingPlcHdr/>", r("Choose a date.")))),
    )
    assert await text(made) == "Guest: Asha"


async def test_the_table_of_contents_does_not_repeat_the_headings() -> None:
    made = Document()
    made.styles.add_style("toc 1", 1)
    made.add_paragraph("Prices\t3", style="toc 1")
    made.add_heading("Prices", 1)
    made.add_paragraph("A room costs 84 euros.")
    assert await text(made) == "# Prices\n\nA room costs 84 euros."


# ── where things stand ────────────────────────────────────────────────────────────────────────────────────────────


async def test_headings_are_the_path_of_what_stands_below_them() -> None:
    made = Document()
    made.add_heading("Casa Verde", 0)
    made.add_heading("Prices", 1)
    made.add_heading("Rooms", 2)
    made.add_paragraph("A double room costs 84 euros.")
    made.add_heading("Pets", 1)
    made.add_paragraph("Small dogs are welcome.")
    assert [(found.heading_path, found.text) for found in await chunks(made)] == [
        (("Casa Verde", "Prices", "Rooms"), "A double room costs 84 euros."),
        (("Casa Verde", "Pets"), "Small dogs are welcome."),
    ]


@pytest.mark.parametrize(
    "style",
    [
        '<w:name w:val="heading 1"/>',
        '<w:name w:val="Überschrift 1"/>',
        '<w:name w:val="Kapitel"/><w:basedOn w:val="Heading1"/>',
        '<w:name w:val="Section"/><w:pPr><w:outlineLvl w:val="0"/></w:pPr>',
    ],
)
async def test_a_heading_is_known_by_its_style(style: str) -> None:
    made = Document()
    made.styles.element.append(parse_xml(f'<w:style {DECLARED} w:type="paragraph" w:styleId="Own">{style}</w:style>'))
    body(p(r("Preise"), properties='<w:pStyle w:val="Own"/>'), p(r("Ab 60 Euro.")), into=made)
    (found,) = await chunks(made)
    assert found.heading_path == ("Preise",)


async def test_a_heading_is_known_by_its_outline_level_alone() -> None:
    made = body(p(r("Prices"), properties='<w:outlineLvl w:val="0"/>'), p(r("From 60.")))
    assert (await chunks(made))[0].heading_path == ("Prices",)


@pytest.mark.parametrize(
    "written",
    ["# No heading", "```", "~~~ x", "<!-- ", "<script>", "===", "---", "> # Quoted", "- # listed", "1. # listed"],
)
async def test_text_never_turns_into_structure(written: str) -> None:
    made = Document()
    made.add_heading("First", 1)
    made.add_paragraph("Words")
    made.add_paragraph(written)
    made.add_paragraph("More words\n" + written)
    made.add_heading("Second", 1)
    made.add_paragraph("Others.")
    assert {found.heading_path for found in await chunks(made)} == {("First",), ("Second",)}


async def test_a_heading_is_what_its_author_wrote() -> None:
    written = "Rooms *and* <suites> [new] `x` _y_ & 1_2 \\ #3"
    made = Document()
    made.add_heading(written, 1)
    made.add_paragraph("Words.")
    assert (await chunks(made))[0].heading_path == (written,)


async def test_a_heading_that_says_something_is_found_even_with_nothing_below_it() -> None:
    made = Document()
    made.add_heading("Wi-Fi password: verde2024", 1)
    made.add_heading("Pets", 1)
    made.add_heading("Dogs", 2)
    made.add_paragraph("Are welcome.")
    assert [found.text for found in await chunks(made)] == ["Wi-Fi password: verde2024", "Are welcome."]


async def test_a_document_of_headings_only_is_text() -> None:
    made = Document()
    for line in ("Quiet from ten", "No smoking"):
        made.add_heading(line, 1)
    assert await text(made) == "Quiet from ten\n\nNo smoking"


async def test_a_paragraph_in_a_headings_style_is_a_paragraph() -> None:
    made = Document()
    made.add_heading("We want you to feel at home. " * 10, 1)
    assert (await chunks(made))[0].heading_path == ()


async def test_lists_have_their_numbers() -> None:
    made = Document()
    made.add_paragraph("Bring:")
    for thing in ("a towel", "a hat"):
        made.add_paragraph(thing, style="List Bullet")
    for thing in ("Ring.", "Wait."):
        made.add_paragraph(thing, style="List Number")
    assert await text(made) == "Bring:\n\n- a towel\n- a hat\n1. Ring.\n2. Wait."


async def test_numbers_are_counted_as_word_counts_them() -> None:
    def level(place: int, form: str, written: str) -> str:
        return (
            f'<w:lvl w:ilvl="{place}"><w:start w:val="1"/><w:numFmt w:val="{form}"/>'
            f'<w:lvlText w:val="{written}"/></w:lvl>'
        )

    levels = level(0, "upperRoman", "%1.") + level(1, "decimal", "%1.%2") + level(2, "lowerLetter", "(%3)")
    made = Document()
    numbering = made.part.numbering_part.element
    numbering.insert(0, parse_xml(f'<w:abstractNum {DECLARED} w:abstractNumId="77">{levels}</w:abstractNum>'))
    again = '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="1"/></w:lvlOverride>'
    for number, override in ((78, ""), (79, again)):
        numbering.append(
            parse_xml(f'<w:num {DECLARED} w:numId="{number}"><w:abstractNumId w:val="77"/>{override}</w:num>')
        )

    def item(place: int, number: int = 78) -> str:
        return p(r("x"), properties=f'<w:numPr><w:ilvl w:val="{place}"/><w:numId w:val="{number}"/></w:numPr>')

    body(item(0), item(1), item(1), item(2), item(2), item(0), item(1), item(0, 79), into=made)
    lines = [line.strip() for line in (await text(made)).splitlines() if line]
    assert lines == ["I. x", "I.1 x", "I.2 x", "(a) x", "(b) x", "II. x", "II.1 x", "I. x"]


async def test_the_text_of_a_box_is_read_once() -> None:
    box = f"<w:txbxContent>{p(r('Quiet from ten.'))}</w:txbxContent>"
    made = body(
        p(
            r("House rules"),
            f'<w:r><mc:AlternateContent><mc:Choice Requires="wps"><w:drawing><wp:anchor><a:graphic><a:graphicData>'
            f"<wps:wsp><wps:txbx>{box}</wps:txbx></wps:wsp></a:graphicData></a:graphic></wp:anchor></w:drawing>"
            f"</mc:Choice><mc:Fallback><w:pict><v:shape><v:textbox>{box}</v:textbox></v:shape></w:pict></mc:Fallback>"
            "</mc:AlternateContent></w:r>",
        )
    )
    assert await text(made) == "House rules\n\nQuiet from ten."


async def test_headers_and_footers_are_read_once_and_without_the_number_of_the_page() -> None:
    made = Document()
    made.add_paragraph("One.")
    made.sections[0].header.paragraphs[0].text = "Casa Verde"
    footer = made.sections[0].footer.paragraphs[0]
    footer.text = "Call 4417"
    footer._p.append(parse_xml(f'<w:fldSimple {DECLARED} w:instr=" PAGE ">{r(" 31")}</w:fldSimple>'))
    made.add_section()
    made.add_paragraph("Two.")
    made.add_section().header.is_linked_to_previous = False
    made.sections[2].header.paragraphs[0].text = "Casa Verde"
    parsed = await read(made)
    assert [(part.label, part.text) for part in parsed.parts] == [
        ("", "One.\n\nTwo."),
        ("header and footer", "Casa Verde\n\nCall 4417"),
    ]


def with_notes(raw: bytes) -> bytes:
    notes = (
        f'<w:footnotes {DECLARED}><w:footnote w:type="separator" w:id="0">{p("<w:r><w:separator/></w:r>")}</w:footnote>'
        f'<w:footnote w:id="2">{p("<w:r><w:footnoteRef/></w:r>", r(" Breakfast included."))}</w:footnote></w:footnotes>'
    )
    link = (
        '<Relationship Id="rId98" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/footnotes" '
        'Target="footnotes.xml"/></Relationships>'
    )
    raw = replaced(raw, "word/_rels/document.xml.rels", "</Relationships>", link)
    return added(raw, "word/footnotes.xml", notes)


async def test_a_footnote_stands_after_the_paragraph_that_refers_to_it() -> None:
    refers = '<w:r><w:footnoteReference w:id="2"/></w:r>'
    made = body(p(r("A room costs 84 euros"), refers, r(".")), p(r("We take cards.")))
    assert await text(with_notes(raw_of(made))) == (
        "A room costs 84 euros[1].\n\n[1] Breakfast included.\n\nWe take cards."
    )


# ── what is written ───────────────────────────────────────────────────────────────────────────────────────────────


async def test_links_breaks_tabs_and_signs_are_read() -> None:
    made = body(
        p(
            f"<w:hyperlink>{r('our site')}</w:hyperlink>",
            "<w:r><w:br/></w:r>",
            r("Room"),
            "<w:r><w:tab/></w:r>",
            r("84"),
        ),
        p(r("non<w:noBreakHyphen/>stop".replace("<", "&lt;"))),
        p("<w:r><w:t>Wi</w:t><w:noBreakHyphen/><w:t>Fi</w:t></w:r>", r("\u00a0is\u202ffr\u00adee")),
        p('<w:r><w:sym w:font="Wingdings" w:char="F0FC"/></w:r>', r(" Pool")),
        p(f"<w:smartTag>{r('Lisbon')}</w:smartTag>", f"<w:bdo>{r(' 2026')}</w:bdo>"),
    )
    assert (await text(made)).split("\n\n") == [
        "our site\nRoom\t84",
        "non<w:noBreakHyphen/>stop",
        "Wi-Fi is free",
        "✓ Pool",
        "Lisbon 2026",
    ]


@pytest.mark.parametrize(
    "written", ["क्षमा करें, नाश्ता ८ बजे है।", "الإفطار في الساعة ٨", "می\u200cخواهم", "朝食は八時です。"]
)
async def test_every_script_is_kept_as_it_is(written: str) -> None:
    made = body(p(r(written, "<w:rtl/>"), properties="<w:bidi/>"))
    assert await text(made) == written


async def test_a_raised_number_does_not_join_the_number_before_it() -> None:
    up = '<w:vertAlign w:val="superscript"/>'
    assert await text(body(p(r("84"), r("1", up), r(" euros, 40 m"), r("2", up)))) == "84¹ euros, 40 m2"


async def test_a_formula_is_written_on_one_line() -> None:
    def m(written: str) -> str:
        return f"<m:r><m:t>{written}</m:t></m:r>"

    half = f"<m:f><m:num>{m('a+b')}</m:num><m:den>{m('2')}</m:den></m:f>"
    square = f"<m:sSup><m:e>{m('x')}</m:e><m:sup>{m('2')}</m:sup></m:sSup>"
    made = body(p(r("Take "), f"<m:oMath>{half}{m('+')}{square}</m:oMath>", r(" of it.")))
    assert await text(made) == "Take (a+b)/2+x^2 of it."
