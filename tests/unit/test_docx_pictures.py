"""The words in a Word file's pictures: read by OCR, where the picture stands."""

from __future__ import annotations

import io

import pytest
from docx import Document
from docx.shared import Emu, Inches
from PIL import Image

from agents.knowledge.reading import Unreadable, package
from tests.unit.drawn import drawn, saved
from tests.unit.word_files import changed, png, raw_of, read, unreadable

pytest.importorskip("rapidocr", reason="pictures are read with the `ocr` extra")


def shown(*lines: str) -> io.BytesIO:
    return io.BytesIO(saved(drawn(*lines)))


async def test_the_words_of_pictures_are_read_where_they_stand_and_each_picture_once() -> None:
    made = Document()
    made.add_heading("Prices", 1)
    made.add_paragraph("All prices are for two people.")
    made.add_picture(shown("Double room 84 euros", "Breakfast 12 euros"), width=Inches(4))
    made.add_paragraph("Children pay half.")
    made.add_picture(shown("Casa Verde Hotel"), width=Inches(3))
    made.add_table(1, 1).cell(0, 0).paragraphs[0].add_run().add_picture(shown("Parking is free"), width=Inches(3))
    made.add_picture(shown("Casa Verde Hotel"), width=Inches(3))
    made.add_picture(shown("Tiny icon"), width=Emu(30 * 9525))
    made.add_picture(png())
    made.add_picture(png(shade=1))
    raw = changed(raw_of(made), lambda name, content: b"not a picture" if name.endswith("image6.png") else content)
    parsed = await read(raw)
    (body, *_) = parsed.parts
    assert body.text.splitlines() == [
        "# Prices",
        "",
        "All prices are for two people.",
        "",
        "Double room 84 euros",
        "Breakfast 12 euros",
        "",
        "Children pay half.",
        "",
        "Casa Verde Hotel",
        "",
        "Parking is free",
    ]
    assert body.how == "partly ocr"
    assert parsed.troubles == ("picture 1 (under “Prices”): its text could not be read; alt text: none",)


async def test_a_document_that_is_one_picture_says_that_it_was_read_by_ocr() -> None:
    made = Document()
    made.add_picture(shown("Double room 84 euros"), width=Inches(4))
    made.sections[0].header.paragraphs[0].text = "Casa Verde"
    made.sections[0].footer.paragraphs[0].add_run().add_picture(shown("Call 4417"), width=Inches(2))
    parsed = await read(made)
    assert [(part.label, part.text, part.how) for part in parsed.parts] == [
        ("", "Double room 84 euros", "ocr"),
        ("header and footer", "Casa Verde\n\nCall 4417", "partly ocr"),
    ]
    assert not parsed.troubles


async def test_a_document_of_one_picture_without_words_is_refused() -> None:
    made = Document()
    made.add_picture(png())
    assert "nothing but a picture" in await unreadable(raw_of(made))


def test_large_pictures_leave_room_for_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Document()
    made.add_paragraph("Quiet hours begin at ten.")
    noise = Image.effect_noise((300, 300), 90)
    made.add_picture(io.BytesIO(saved(noise)), width=Inches(2))
    size = len(saved(noise))
    monkeypatch.setattr(package, "LARGEST_PICTURES", 2 * size)
    monkeypatch.setattr(package, "LARGEST_XML", size // 2)
    found = package.Package("guide.docx", raw_of(made))
    (picture,) = (link.target for link in found.links("word/document.xml").values() if link.kind == "image")
    assert [found.picture(picture) is not None for _ in range(3)] == [True, True, False]
    assert found.xml("word/document.xml") is not None
    with pytest.raises(Unreadable):
        found.content(picture)
