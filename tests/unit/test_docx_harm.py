"""Word files that are not what they seem, are damaged, or mean harm."""

from __future__ import annotations

import io
import re
import struct
import zipfile

import pytest
from docx import Document
from docx.oxml import parse_xml
from docx.shared import Inches

from tests.unit.word_files import (
    DECLARED,
    added,
    body,
    changed,
    p,
    png,
    r,
    raw_of,
    read,
    replaced,
    table,
    text,
    unreadable,
)

PLAIN = raw_of(body(p(r("Quiet from ten."))))


@pytest.mark.parametrize(
    "content_type",
    [
        "application/vnd.openxmlformats-officedocument.wordprocessingml.template.main+xml",
        "application/vnd.ms-word.document.macroEnabled.main+xml",
    ],
)
async def test_templates_and_files_with_macros_are_read(content_type: str) -> None:
    usual = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    raw = replaced(PLAIN, "[Content_Types].xml", usual, content_type)
    assert await text(added(raw, "word/vbaProject.bin", "Sub AutoOpen()")) == "Quiet from ten."


async def test_the_strict_form_is_read() -> None:
    def strict(name: str, content: bytes) -> bytes:
        if not name.startswith(("word/", "_rels")):
            return content
        usual = rb"http://schemas.openxmlformats.org/(\w+)/2006/(main|relationships)"
        return re.sub(usual, rb"http://purl.oclc.org/ooxml/\1/\2", content)

    made = body(p(r("Prices"), properties='<w:pStyle w:val="Heading1"/>'))
    raw = changed(raw_of(table(("Room", "Price"), ("Double", "84"), into=made)), strict)
    assert await text(raw) == "# Prices\n\n| Room | Price |\n|---|---|\n| Double | 84 |"


@pytest.mark.parametrize("name", ["guide.pdf", "guide.md", "guide", "GUIDE.DOCX"])
async def test_a_word_file_by_another_name_is_read(name: str) -> None:
    parsed = await read(PLAIN, name)
    assert parsed.media_type.endswith("wordprocessingml.document")
    assert parsed.parts[0].text == "Quiet from ten."


@pytest.mark.parametrize("kept", [0.2, 0.7, 0.99])
async def test_a_word_file_that_was_cut_off_is_said_to_be(kept: float) -> None:
    assert "cut off" in await unreadable(PLAIN[: int(len(PLAIN) * kept)])


async def test_a_word_file_without_its_text_is_damaged() -> None:
    raw = changed(PLAIN, lambda name, content: None if name == "word/document.xml" else content)
    assert "damaged" in await unreadable(raw)
    assert "damaged" in await unreadable(replaced(PLAIN, "word/document.xml", "</w:body>", ""))
    assert "damaged" in await unreadable(replaced(PLAIN, "word/document.xml", "w:document", "w:letter"))


async def test_an_archive_named_like_a_word_file_is_damaged() -> None:
    kept = io.BytesIO()
    with zipfile.ZipFile(kept, "w") as made:
        made.writestr("notes.txt", "x")
    assert "damaged" in await unreadable(kept.getvalue())
    assert "a compressed file" in await unreadable(kept.getvalue(), "notes.zip")


@pytest.mark.parametrize(
    ("inside", "said"),
    [
        ("EncryptedPackage", "protected by a password"),
        ("WordDocument", "an old Word file, which I can't read. Please save it as .docx or PDF"),
        ("Workbook", "an old Excel file, which I can't read. Please save it as .xlsx or PDF"),
        ("Something", "an old Office file"),
    ],
)
async def test_an_old_or_locked_office_file_is_told_from_a_damaged_one(inside: str, said: str) -> None:
    raw = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504) + inside.encode("utf-16-le") + bytes(400)
    assert said in await unreadable(raw)


async def test_an_archive_with_a_password_is_said_to_have_one() -> None:
    at = PLAIN.index(b"PK\x01\x02") + 8
    assert "password" in await unreadable(PLAIN[:at] + b"\x01" + PLAIN[at + 1 :])


async def test_text_that_is_no_archive_is_no_word_file() -> None:
    assert "isn't one" in await unreadable(b"Just some words.")


LAUGHS = '<!DOCTYPE w [<!ENTITY a "ha">' + "".join(
    "<!ENTITY " + name + ' "' + f"&{before};" * 50 + '">' for before, name in zip("abcdef", "bcdefg", strict=True)
)


@pytest.mark.parametrize("doctype", [LAUGHS + "]>", '<!DOCTYPE w [<!ENTITY g SYSTEM "file:///etc/passwd">]>'])
async def test_entities_are_neither_multiplied_nor_fetched(doctype: str) -> None:
    whole = zipfile.ZipFile(io.BytesIO(PLAIN)).read("word/document.xml").decode()
    start = whole.index("<w:document")
    raw = replaced(PLAIN, "word/document.xml", whole[start:], doctype + whole[start:].replace("Quiet", "&g;"))
    said = await unreadable(raw)
    assert "root:" not in said
    assert "Please save it again" in said


async def test_what_unpacks_to_far_too_much_is_not_unpacked() -> None:
    assert "unpacks to far more" in await unreadable(replaced(PLAIN, "word/document.xml", "Quiet", "a" * (80 << 20)))


async def test_a_size_that_is_not_true_unpacks_nothing_more() -> None:
    raw = replaced(PLAIN, "word/document.xml", "Quiet", "a" * (80 << 20))
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        size = archive.getinfo("word/document.xml").file_size
    assert "damaged" in await unreadable(raw.replace(struct.pack("<I", size), struct.pack("<I", 5000)))


async def test_elements_without_end_are_survived() -> None:
    def nested(depth: int) -> bytes:
        return replaced(PLAIN, "word/document.xml", "<w:body>", "<w:body>" + "<w:ins>" * depth + "</w:ins>" * depth)

    assert await text(nested(200)) == "Quiet from ten."
    assert "damaged" in await unreadable(nested(1_000))


async def test_styles_that_go_round_in_a_circle_are_survived() -> None:
    made = Document()
    style = '<w:style {} w:type="paragraph" w:styleId="{}"><w:name w:val="{}"/><w:basedOn w:val="{}"/></w:style>'
    for one, other in (("Hen", "Egg"), ("Egg", "Hen")):
        made.styles.element.append(parse_xml(style.format(DECLARED, one, one, other)))
    body(p(r("First."), properties='<w:pStyle w:val="Hen"/>'), into=made)
    assert await text(made) == "First."


async def test_a_link_to_nothing_is_survived() -> None:
    made = Document()
    made.add_paragraph("Quiet.")
    made.add_picture(png(), width=Inches(2))
    raw = raw_of(made)
    raw = changed(raw, lambda name, content: None if name.startswith("word/media") else content)
    assert len((await read(raw)).troubles) == 1
