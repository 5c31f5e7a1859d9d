"""What a person's file yields, and what they read when it yields nothing."""

from __future__ import annotations

import io
import json
import os
import re
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from agents.knowledge.parsing import Parsed, parse
from mesh.errors import Unreadable
from mesh.files import LARGEST
from mesh.settings import ROOT
from tests.unit.drawn import WITHOUT_OCR

HELVETICA = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
PICTURE = "/Type /XObject /Subtype /Image /Width 2 /Height 2 /ColorSpace /DeviceGray /BitsPerComponent 8"


def pdf(*pages: str, trailer: str = "", drawn: str = "", font: str = HELVETICA) -> bytes:
    """A page for each text; an empty one is a page without text, as a scan has. `drawn` is on every page: `/I Do` in it
    shows a picture of one unit, another on each page, `/L Do` always the same, `/F Do` a form with a picture of ten."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", "", font, stream(PICTURE, "logo")]
    kids = []
    for number, text in enumerate(pages):
        shown = f"BT /F1 12 Tf 72 700 Td {text if text.startswith('<') else f'({text})'} Tj ET" if text else ""
        objects.append(stream("", f"{shown} {drawn or '0 0 m 10 10 l S'}"))
        objects.append(stream(PICTURE, f"{number:04}"))
        inside = f"/Resources << /XObject << /I {len(objects)} 0 R >> >>"
        form = f"/Type /XObject /Subtype /Form /BBox [0 0 10 10] /Matrix [10 0 0 10 0 0] {inside}"
        objects.append(stream(form, "10 0 0 10 0 0 cm /I Do"))
        named = f"/I {len(objects) - 1} 0 R /L 4 0 R /F {len(objects)} 0 R"
        objects.append(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] "
            f"/Resources << /Font << /F1 3 0 R >> /XObject << {named} >> >> /Contents {len(objects) - 2} 0 R >>"
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


def stream(about: str, content: str) -> str:
    return f"<< {about} /Length {len(content)} >>\nstream\n{content}\nendstream"


ENCRYPTED = pdf(
    "Secret",
    trailer=(
        "/Encrypt << /Filter /Standard /V 1 /R 2 /Length 40 /P -4 "
        f"/O <{'ab' * 32}> /U <{'cd' * 32}> >> /ID [<{'01' * 16}> <{'01' * 16}>] "
    ),
)


def archive(*names: str) -> bytes:
    kept = io.BytesIO()
    with zipfile.ZipFile(kept, "w") as made:
        for name in names:
            made.writestr(name, "x")
    return kept.getvalue()


async def parse_unseen(name: str, raw: bytes) -> Parsed:
    """As where pictures cannot be read."""
    return await parse(name, raw, child=WITHOUT_OCR)


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
    parsed = await parse_unseen("rules.pdf", pdf("One.", "Two.", ""))
    assert parsed.troubles == ("page 3: no text could be read (it may be a scan)",)
    assert [part.text for part in parsed.parts] == ["One.", "Two.", ""]


# ── incident d: a page whose text is in a picture ─────────────────────────────────────────────────────────────────

OVER_THE_PAGE = "q 612 0 0 650 0 0 cm /I Do Q"
MOST = "it holds a picture over most of the page; its text could not be read"
SOME = "it holds a picture whose text could not be read"


async def test_a_page_that_is_one_picture_under_a_line_of_text_is_named() -> None:
    parsed = await parse_unseen("prices.pdf", pdf("Prices 2026 - page 1", drawn=OVER_THE_PAGE))
    assert parsed.troubles == (f"page 1: {MOST}",)
    assert parsed.parts[0].text == "Prices 2026 - page 1", "what could be read is kept"


@pytest.mark.parametrize(
    ("drawn", "trouble"),
    [
        ("q 300 0 0 200 100 100 cm /I Do Q", SOME),
        ("q 5 0 0 5 56 100 cm /F Do Q", MOST),
        ("q 3 0 0 2 56 100 cm /F Do Q", SOME),
        ("".join(f"q 612 0 0 1 0 {height} cm /I Do Q " for height in range(650)), MOST),
        ("q 0 600 -600 0 606 20 cm /I Do Q", MOST),
        ("q 60 0 0 60 100 100 cm /I Do Q", ""),
        ("", ""),
    ],
    ids=["a part of the page", "in a form", "in a small form", "in strips", "turned", "a logo", "none"],
)
async def test_a_picture_is_measured_as_it_is_shown(drawn: str, trouble: str) -> None:
    parsed = await parse_unseen("prices.pdf", pdf("Prices 2026", drawn=drawn))
    assert parsed.troubles == ((f"page 1: {trouble}",) if trouble else ())


async def test_a_scan_that_was_read_before_is_text() -> None:
    lines = " ".join(f"0 -18 Td (Line {number} says that a room with a view costs 84.) Tj" for number in range(20))
    hidden = f" BT 3 Tr /F1 12 Tf 72 640 Td {lines} ET"
    assert (await parse("scan.pdf", pdf("Prices", drawn=OVER_THE_PAGE + hidden))).troubles == ()


async def test_a_background_on_every_page_hides_nothing_and_a_scan_of_every_page_does() -> None:
    titles = ("One", "Two", "Three", "Four")
    background = OVER_THE_PAGE.replace("/I", "/L")
    assert (await parse_unseen("deck.pdf", pdf(*titles, drawn=background))).troubles == ()
    assert len((await parse_unseen("deck.pdf", pdf(*titles, drawn=OVER_THE_PAGE))).troubles) == 4


async def test_many_pages_with_pictures_are_told_in_one_line() -> None:
    parsed = await parse_unseen("deck.pdf", pdf(*(f"Slide {n}" for n in range(1, 31)), drawn=OVER_THE_PAGE))
    assert len(parsed.troubles) == 11
    assert parsed.troubles[-1] == "page 11: it holds a picture whose text could not be read; so do pages 12–30"


UNEXPLAINED = (
    "<< /Type /Font /Subtype /Type0 /BaseFont /ABCDEF+Own /Encoding /Identity-H /DescendantFonts [<< /Type /Font "
    "/Subtype /CIDFontType2 /BaseFont /ABCDEF+Own /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) "
    "/Supplement 0 >> /FontDescriptor << /Type /FontDescriptor /FontName /ABCDEF+Own /Flags 4 /FontBBox [0 0 9 9] "
    "/ItalicAngle 0 /Ascent 8 /Descent -2 /CapHeight 7 /StemV 8 >> >>] >>"
)


async def test_letters_that_the_file_does_not_explain_are_no_text() -> None:
    said = await unreadable("menu.pdf", pdf("<000300040005000600070008>", font=UNEXPLAINED))
    assert "the file does not say which they are" in said


async def test_letters_that_may_be_others_are_kept_and_named() -> None:
    parsed = await parse("menu.pdf", pdf("<002400250026002700280029>", font=UNEXPLAINED))
    assert parsed.parts[0].text
    assert parsed.troubles == (
        "page 1: some of its text may be wrong: the file does not say which letters it is made of",
    )


async def test_a_page_that_cannot_be_read_is_named_and_the_others_are_kept() -> None:
    whole = pdf("One.", "Two.", "Three.")
    page = [place.start() for place in re.finditer(b"/Type /Page /Parent", whole)][1]
    parsed = await parse("rules.pdf", whole[:page] + b"/Type /Pane /Parent" + whole[page + 19 :])
    assert [part.text for part in parsed.parts] == ["One.", "", "Three."]
    assert parsed.troubles == ("page 2: it is damaged and could not be read",)


async def test_a_pdf_without_any_text_is_unreadable() -> None:
    assert "I found no words on its pictures either" in await unreadable("scan.pdf", pdf("", ""))
    with pytest.raises(Unreadable, match=r"^scan\.pdf could not be read: .*it may be a scan"):
        await parse_unseen("scan.pdf", pdf("", ""))


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
        ("menu.pdf", archive("xl/workbook.bin"), "really a binary Excel file"),
        ("menu.docx", archive("ppt/presentation.xml"), "its slides can't be opened"),
        ("menu.pdf", archive("xl/workbook.xml"), "its sheets can't be opened"),
        ("menu.zip", archive("META-INF/container.xml"), "can't be opened as an e-book"),
        ("menu.pptx", archive("menu.txt"), "its slides can't be opened"),
        ("menu.odt", archive("content.xml"), "its text can't be opened"),
        ("menu.zip", archive("menu.txt"), "a compressed file"),
        ("menu.txt", b"\x1f\x8b" + bytes(50), "really a compressed file"),
        ("menu.xls", b'<?xml version="1.0"?><?mso-application progid="Excel.Sheet"?><x/>', "really an old Excel file"),
        ("menu.xlsx", b"Just some words", "named like an Excel file but isn't one"),
        ("menu.epub", b"Just some words", "named like an e-book but isn't one"),
        ("menu.msg", b"Just some words", "named like an e-mail of Outlook's but isn't one"),
        ("menu.eml", b"Just some words", "named like an e-mail but isn't one"),
        ("menu.pdf", b"Just some words", "isn't one"),
        ("song.ogg", b"OggS" + bytes(60), "a sound recording"),
    ],
)
async def test_what_a_file_is_counts_and_not_its_name(name: str, raw: bytes, kind: str) -> None:
    assert kind in await unreadable(name, raw)


@pytest.mark.parametrize("name", ["a.xlsb", "a.rtf", "a.gz"])
async def test_what_can_be_sent_instead_is_said(name: str) -> None:
    raw = {
        "a.xlsb": archive("xl/workbook.bin"),
        "a.rtf": b"{\\rtf1 x}",
        "a.gz": b"\x1f\x8b" + bytes(50),
    }[name]
    said = await unreadable(name, raw)
    assert said.endswith("which I can't read yet. Please send it as PDF, Word (.docx), Markdown or plain text.")


@pytest.mark.parametrize(
    ("name", "raw", "kind"),
    [
        ("menu.txt", b"\xef\xbb\xbf \n", "empty"),
        ("menu.pdf", ENCRYPTED, "password"),
        ("menu.txt", b"\x1f\x8b" + bytes(50), "unsupported"),
        ("menu.docx", b"PK\x03\x04" + bytes(50), "corrupt"),
        ("menu.html", b"<html><script>1</script></html>", "nothing"),
        ("menu.txt", b"x" * (LARGEST + 1), "limit"),
    ],
)
async def test_why_a_file_is_refused_is_told_in_a_word_too(name: str, raw: bytes, kind: str) -> None:
    with pytest.raises(Unreadable) as failed:
        await parse(name, raw)
    assert failed.value.kind == kind


@pytest.mark.parametrize(
    ("name", "raw", "media_type", "text"),
    [
        ("menu.xlsx", b"<html><body><p>Soup 4</p></body></html>", "text/html", "Soup 4"),
        ("menu", b"<!-- by hand --><!DOCTYPE html><p>Soup 4", "text/html", "Soup 4"),
        ("menu.txt", b"<p>is a tag", "text/plain", "<p>is a tag"),
        ("menu.html", b"Soup 4, no tag anywhere", "text/plain", "Soup 4, no tag anywhere"),
        ("menu.xls", b"Dish\tPrice\nSoup\t4\nTea\t2\n", "text/csv", "| Soup | 4 |"),
        ("menu.dat", b"Received: by x\nFrom: a@b.example\nSubject: Soup\n\nIt is 4.\n", "message/rfc822", "It is 4."),
    ],
)
async def test_a_file_is_read_as_what_it_is(name: str, raw: bytes, media_type: str, text: str) -> None:
    parsed = await parse(name, raw)
    assert parsed.media_type == media_type
    assert text in parsed.parts[0].text


async def test_a_pdf_by_another_name_is_read() -> None:
    assert (await parse("rules.md", pdf("Quiet."))).media_type == "application/pdf"


async def test_bytes_that_are_no_text_are_refused() -> None:
    assert "isn't text" in await unreadable("notes.txt", bytes(range(1, 32)) * 20)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252"])
async def test_text_is_decoded(encoding: str) -> None:
    text = "El desayuno cuesta 9 € por persona.\nLa señal es de 50 €.\n"
    assert (await parse("nota.txt", text.encode(encoding))).parts[0].text == text


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


# ── real files ────────────────────────────────────────────────────────────────────────────────────────────────────

DATA = Path(os.environ.get("ADIYAN_DATA", ROOT.parent / "shared" / "data")) / "docs"


def real_files() -> list[dict[str, Any]]:
    listed = json.loads((DATA / "manifest.json").read_text("utf-8")) if (DATA / "manifest.json").exists() else []
    return list(listed)


async def attempt(name: str, raw: bytes) -> Parsed | Unreadable:
    try:
        return await parse(name, raw)
    except Unreadable as error:
        return error


@pytest.mark.skipif(not real_files(), reason=f"no real files in {DATA}: ADIYAN_DATA says where they are")
@pytest.mark.parametrize("listed", real_files(), ids=lambda listed: listed["file"])
async def test_a_real_file_yields_what_it_must_or_says_that_it_does_not(listed: dict[str, Any]) -> None:
    """Pictures of text count as told, until they can be read."""
    name, outcome = listed["file"], listed["outcome"]
    parsed = await attempt(name, (DATA / name).read_bytes())
    if isinstance(parsed, Unreadable):
        assert listed["via"] == "ocr" or outcome.startswith(("error", "empty")), parsed.user_text
        assert parsed.user_text.startswith(name)
        assert not parsed.detail, "it was refused, and did not break the reader"
        return
    assert outcome.startswith("ok") or outcome.endswith("ok"), "it should not have been read"
    found = "".join("".join(part.text.split()) for part in parsed.parts)
    assert not [text for text in listed["must_not"] if "".join(text.split()) in found]
    missing = [text for text in listed["expect"] if "".join(text.split()) not in found]
    assert not missing or (listed["via"] == "ocr" and parsed.troubles), missing
