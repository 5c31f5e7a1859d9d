"""What a person's file yields, and what they read when it yields nothing."""

from __future__ import annotations

import sys

import pytest

from agents.knowledge.parsing import LARGEST, parse
from mesh.errors import Unreadable


def pdf(*pages: str, trailer: str = "") -> bytes:
    """A page for each text; an empty one is a page without text, as a scan has."""
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        "",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    kids = []
    for text in pages:
        stream = f"BT /F1 12 Tf 72 700 Td ({text}) Tj ET" if text else "0 0 m 10 10 l S"
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
        objects.append(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] "
            f"/Resources << /Font << /F1 3 0 R >> >> /Contents {len(objects)} 0 R >>"
        )
        kids.append(f"{len(objects)} 0 R")
    objects[1] = f"<< /Type /Pages /Count {len(kids)} /Kids [{' '.join(kids)}] >>"
    made = b"%PDF-1.4\n"
    offsets = []
    for number, body in enumerate(objects, start=1):
        offsets.append(len(made))
        made += f"{number} 0 obj\n{body}\nendobj\n".encode()
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    end = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}"
    end += f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R {trailer}>>\nstartxref\n{len(made)}\n%%EOF\n"
    return made + end.encode()


ENCRYPTED = pdf(
    "Secret",
    trailer=(
        "/Encrypt << /Filter /Standard /V 1 /R 2 /Length 40 /P -4 "
        f"/O <{'ab' * 32}> /U <{'cd' * 32}> >> /ID [<{'01' * 16}> <{'01' * 16}>] "
    ),
)


async def unreadable(name: str, raw: bytes) -> str:
    with pytest.raises(Unreadable) as failed:
        await parse(name, raw)
    assert failed.value.user_text.startswith(name), "the person must know which file is meant"
    return failed.value.user_text


async def test_each_page_of_a_pdf_is_a_part() -> None:
    parsed = await parse("rules.pdf", pdf("Quiet from ten.", "No smoking."))
    assert parsed.media_type == "application/pdf"
    assert [(part.label, part.text) for part in parsed.parts] == [
        ("page 1", "Quiet from ten."),
        ("page 2", "No smoking."),
    ]


async def test_a_page_without_text_is_named() -> None:
    parsed = await parse("rules.pdf", pdf("One.", "Two.", ""))
    assert parsed.troubles == ("page 3: no text could be read (it may be a scan)",)
    assert [part.text for part in parsed.parts] == ["One.", "Two.", ""]


async def test_a_pdf_without_any_text_is_unreadable() -> None:
    assert "it may be a scan" in await unreadable("scan.pdf", pdf("", ""))


async def test_a_pdf_that_needs_a_password_is_said_to() -> None:
    assert "protected by a password" in await unreadable("contract.pdf", ENCRYPTED)


@pytest.mark.parametrize("kept", [0.3, 0.6, 0.95])
async def test_a_pdf_that_was_cut_off_is_not_taken_for_a_shorter_one(kept: float) -> None:
    whole = pdf(*(f"Page {number}." for number in range(20)))
    assert "cut off" in await unreadable("long.pdf", whole[: int(len(whole) * kept)])


@pytest.mark.parametrize("raw", [b"", b"  \n\t\n", b"\xef\xbb\xbf\n", b"\x00" * 100])
async def test_an_empty_file_is_said_to_be_empty(raw: bytes) -> None:
    assert "is empty" in await unreadable("notes.txt", raw)


@pytest.mark.parametrize(
    ("name", "raw", "kind"),
    [
        ("menu.pdf", b"\x89PNG\r\n\x1a\n" + b"\x00" * 50, "really a PNG picture"),
        ("menu.pdf", b"PK\x03\x04" + b"\x00" * 30 + b"word/document.xml", "really a Word document"),
        ("menu.txt", b"\xff\xd8\xff\xe0" + bytes(50), "really a JPEG picture"),
        ("menu.docx", b"PK\x03\x04" + b"\x00" * 30 + b"word/document.xml", "a Word document"),
        ("menu.html", b"<!DOCTYPE html><html><body>x</body></html>", "a web page"),
        ("menu.pdf", b"Just some words", "isn't one"),
        ("song.ogg", b"OggS" + bytes(60), "a sound recording"),
    ],
)
async def test_what_a_file_is_counts_and_not_its_name(name: str, raw: bytes, kind: str) -> None:
    assert kind in await unreadable(name, raw)


async def test_a_pdf_by_another_name_is_read() -> None:
    assert (await parse("rules.md", pdf("Quiet."))).media_type == "application/pdf"


async def test_bytes_that_are_no_text_are_refused() -> None:
    assert "isn't text" in await unreadable("notes.txt", bytes(range(1, 32)) * 20)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252"])
async def test_text_is_decoded(encoding: str) -> None:
    text = "El desayuno cuesta 9 € por persona.\nLa señal es de 50 €.\n"
    assert (await parse("nota.txt", text.encode(encoding))).parts[0].text == text


async def test_an_unknown_encoding_is_not_guessed() -> None:
    assert "encoding" in await unreadable("名簿.csv", "名前,佐藤太郎\n".encode("shift_jis"))


async def test_text_about_bitmaps_is_text() -> None:
    assert (await parse("a.txt", b"BMW and MZ are makes of cars.")).parts[0].text.startswith("BMW")


async def test_line_ends_are_levelled() -> None:
    assert (await parse("a.md", b"# A\r\nb\rc\n")).parts[0].text == "# A\nb\nc\n"


async def test_a_file_that_is_too_large_is_not_even_started() -> None:
    assert "too large" in await unreadable("big.txt", b"x" * (LARGEST + 1))


async def test_a_parser_that_hangs_is_ended() -> None:
    with pytest.raises(Unreadable, match="took too long"):
        await parse("x.pdf", b"x", within=0.2, child=(sys.executable, "-c", "import time; time.sleep(60)"))


@pytest.mark.parametrize("code", ["import os; os.abort()", "bytearray(1 << 45)", "raise SystemExit(3)"])
async def test_a_parser_that_dies_takes_nothing_with_it(code: str) -> None:
    with pytest.raises(Unreadable, match=r"x\.pdf could not be read") as failed:
        await parse("x.pdf", b"x", child=(sys.executable, "-c", code))
    assert "the parser ended with" in failed.value.detail
