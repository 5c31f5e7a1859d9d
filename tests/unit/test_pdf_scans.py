"""PDFs whose words are in pictures: read by OCR, page by page."""

from __future__ import annotations

import ctypes
import io

import pypdfium2  # type: ignore[import-untyped]  # it has no types
import pytest
from PIL import Image

from agents.knowledge.parsing import parse
from agents.knowledge.reading import ocr, pdf, scans
from agents.knowledge.reading.pages import DAMAGED, Page, told
from mesh.errors import Unreadable
from tests.unit.drawn import LETTER, WITHOUT_OCR, drawn, saved, scan
from tests.unit.test_parsing import pdf as written

pytest.importorskip("rapidocr", reason="pictures are read with the `ocr` extra")


@pytest.fixture(autouse=True)
def limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test is a document of its own, with its own limits."""
    kept = ocr.reader()
    assert kept is not None
    made = ocr.Reader(kept.engine)
    monkeypatch.setattr(ocr, "reader", lambda: made)


NOTICE = "Quiet from ten in the evening."


def with_picture(image: Image.Image, box: tuple[float, float, float, float], *texts: str) -> bytes:
    """A page for each text; the picture is on all of them."""
    document = pypdfium2.PdfDocument(written(*texts))
    for page in document:
        shown = pypdfium2.PdfImage.new(document)
        shown.set_bitmap(pypdfium2.PdfBitmap.from_pil(image))
        left, bottom, right, top = box
        shown.set_matrix(pypdfium2.PdfMatrix(right - left, 0, 0, top - bottom, left, bottom))
        page.insert_obj(shown)
        page.gen_content()
    return kept(document)


def written_over(image: Image.Image, text: str) -> bytes:
    document = pypdfium2.PdfDocument(scan(image))
    page = document[0]
    line = pypdfium2.raw.FPDFPageObj_NewTextObj(document, b"Helvetica", 20)
    letters = (text + "\0").encode("utf-16-le")
    pypdfium2.raw.FPDFText_SetText(line, (ctypes.c_ushort * len(text + "\0")).from_buffer_copy(letters))
    pypdfium2.raw.FPDFPageObj_Transform(line, 1, 0, 0, 1, 20, 10)
    pypdfium2.raw.FPDFPage_InsertObject(page, line)
    page.gen_content()
    return kept(document)


def kept(document: pypdfium2.PdfDocument) -> bytes:
    buffer = io.BytesIO()
    document.save(buffer)
    return buffer.getvalue()


def letters(text: str) -> str:
    return "".join(text.split())


async def test_a_scan_is_read_and_says_so() -> None:
    parsed = await parse("letter.pdf", scan(drawn(*LETTER), drawn(NOTICE)))
    assert [(part.label, letters(part.text), part.how) for part in parsed.parts] == [
        ("page 1", letters("".join(LETTER)), "ocr"),
        ("page 2", letters(NOTICE), "ocr"),
    ]
    assert parsed.troubles == ()


async def test_without_the_reader_a_scan_is_named_as_one() -> None:
    with pytest.raises(Unreadable, match="it may be a scan"):
        await parse("letter.pdf", scan(drawn(*LETTER)), child=WITHOUT_OCR)


async def test_a_page_that_is_shown_on_its_side_is_read() -> None:
    document = pypdfium2.PdfDocument(scan(drawn(*LETTER)))
    document[0].set_rotation(90)
    assert letters((await parse("letter.pdf", kept(document))).parts[0].text) == letters("".join(LETTER))


async def test_text_that_is_there_is_kept_and_a_picture_beside_it_is_read() -> None:
    raw = with_picture(drawn("Serial number SN-4711"), (72, 300, 400, 400), "The pump in the cellar")
    (part,) = (await parse("pump.pdf", raw)).parts
    assert part.text == "The pump in the cellar\n\nSerial number SN-4711"
    assert (part.trouble, part.how) == ("", "partly ocr")


async def test_a_picture_on_every_page_is_read_once() -> None:
    raw = with_picture(drawn("Casa Verde Lisbon"), (72, 400, 400, 500), "One", "Two", "Three")
    parsed = await parse("letter.pdf", raw)
    assert [part.text for part in parsed.parts] == ["One\n\nCasa Verde Lisbon", "Two", "Three"]


async def test_what_is_written_over_a_picture_is_not_told_twice() -> None:
    raw = written_over(drawn("Rooms with a view of the sea", "", ""), "KANARIENVOGEL")
    (part,) = (await parse("deck.pdf", raw)).parts
    assert part.text == "KANARIENVOGEL\n\nRooms with a view of the sea"


async def test_a_photo_without_words_is_no_trouble() -> None:
    raw = with_picture(Image.radial_gradient("L").convert("RGB"), (72, 200, 500, 600), "The garden in May")
    (part,) = (await parse("garden.pdf", raw)).parts
    assert (part.text, part.trouble, part.how) == ("The garden in May", "", "")


async def test_a_blank_page_among_others_is_named_as_blank() -> None:
    parsed = await parse("letter.pdf", scan(drawn(NOTICE), Image.new("RGB", (600, 800), "white")))
    assert parsed.troubles == ("page 2: it is blank",)


async def test_an_enormous_page_is_looked_at_where_something_is_on_it() -> None:
    page = Image.new("1", (14_000, 14_000), 1)
    page.paste(drawn(NOTICE, size=60).convert("1"), (2_000, 3_000))
    raw = saved(page, "PDF", resolution=72.0)
    assert NOTICE in (await parse("plan.pdf", raw)).parts[0].text


def test_pages_beyond_the_limit_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = ocr.reader()
    assert reader is not None
    monkeypatch.setattr(ocr, "reader", lambda: ocr.Reader(reader.engine, left=2))
    parts = pdf.read("letter.pdf", scan(*(drawn(f"Notice of floor {n}") for n in range(1, 5))))
    assert [part[1] for part in parts] == ["Notice of floor 1", "Notice of floor 2", "", ""]
    assert [part[2] for part in parts[2:]] == [
        "page 3: not read, too many scanned pages",
        "page 4: not read, too many scanned pages",
    ]


def test_pages_that_would_be_lost_come_before_pictures_beside_text(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = ocr.reader()
    assert reader is not None
    monkeypatch.setattr(ocr, "reader", lambda: ocr.Reader(reader.engine, left=1))
    document = pypdfium2.PdfDocument(with_picture(drawn("Serial number"), (72, 300, 400, 400), "The pump"))
    document.import_pages(pypdfium2.PdfDocument(scan(drawn(NOTICE))))
    parts = pdf.read("pump.pdf", kept(document))
    assert [part[1] for part in parts] == ["The pump", NOTICE]
    assert parts[0][2] == "page 1: it holds a picture whose text could not be read"


def test_many_pages_that_were_not_read_are_told_in_one_line() -> None:
    pages = [Page("read"), *(Page(trouble=ocr.TOO_MANY) for _ in range(30))]
    troubles = [part[2] for part in told(pages) if part[2]]
    assert len(troubles) == 11
    assert troubles[-1] == "page 12: not read, too many scanned pages; nor were pages 13–31"


def test_a_page_that_cannot_be_drawn_does_not_take_the_others_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = ocr.reader()
    assert reader is not None
    drawing = scans._drawn

    def broken(page: pypdfium2.PdfPage) -> object:
        if page.get_height() > 700:
            raise pypdfium2.PdfiumError("no")
        return drawing(page)

    monkeypatch.setattr(scans, "_drawn", broken)
    tall = Image.new("RGB", (600, 2000), "white")
    parts = pdf.read("letter.pdf", scan(drawn(NOTICE), tall))
    assert (parts[0][1], parts[1][2]) == (NOTICE, f"page 2: {DAMAGED}")
