"""A picture that a person sends: what is written on it, or why that was not read."""

from __future__ import annotations

import struct
import zlib

import pytest
from PIL import Image, ImageOps

from agents.knowledge import parsing
from agents.knowledge.reading import Parts, Unreadable, ocr, pictures
from mesh import errors
from tests.unit.drawn import LETTER, WITHOUT_OCR, drawn, saved

pytest.importorskip("rapidocr", reason="pictures are read with the `ocr` extra")


@pytest.fixture(autouse=True)
def reader(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test is a document of its own, with its own limits."""
    kept = ocr.reader()
    assert kept is not None
    made = ocr.Reader(kept.engine)
    monkeypatch.setattr(ocr, "reader", lambda: made)


def letters(parts: Parts) -> str:
    return "".join("".join(text.split()) for _, text, *_ in parts)


SAID = "".join("".join(LETTER).split())


def unreadable(name: str, raw: bytes) -> tuple[str, str]:
    with pytest.raises(Unreadable) as failed:
        pictures.read(name, raw)
    assert str(failed.value).startswith(name)
    return str(failed.value), failed.value.kind


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "TIFF", "WEBP", "BMP", "GIF"])
def test_a_picture_of_each_kind_is_read(kind: str) -> None:
    assert letters(pictures.read(f"letter.{kind.lower()}", saved(drawn(*LETTER), kind))) == SAID


async def test_a_picture_is_one_part_that_says_how_it_was_read() -> None:
    parsed = await parsing.parse("letter.png", saved(drawn(*LETTER)))
    (part,) = parsed.parts
    assert (part.label, "".join(part.text.split()), part.trouble, part.how) == ("", SAID, "", "ocr")
    assert parsed.media_type == "image/png"


def test_each_page_of_a_tiff_is_a_part() -> None:
    raw = saved(drawn(LETTER[0]), "TIFF", save_all=True, append_images=[drawn(LETTER[1]), Image.new("RGB", (300, 200))])
    assert pictures.read("fax.tif", raw) == [
        ("page 1", LETTER[0], "", "ocr"),
        ("page 2", LETTER[1], "", "ocr"),
        ("page 3", "", "page 3: no text could be read: it has no words that I can make out"),
    ]


def test_of_a_moving_picture_the_first_is_read() -> None:
    raw = saved(drawn(LETTER[0]), "GIF", save_all=True, append_images=[drawn(LETTER[1]), drawn(LETTER[2])])
    assert [text for _, text, *_ in pictures.read("loop.gif", raw)] == [LETTER[0]]


def test_a_photo_is_turned_as_its_camera_says() -> None:
    """Here it is mirrored: what is merely turned would be read all the same."""
    exif = Image.Exif()
    exif[0x0112] = 2
    raw = saved(ImageOps.mirror(drawn(*LETTER)), "JPEG", exif=exif)
    assert letters(pictures.read("photo.jpg", raw)) == SAID


@pytest.mark.parametrize("ink", ["white", "black"])
def test_letters_on_no_ground_are_seen_whatever_their_colour(ink: str) -> None:
    raw = saved(drawn(*LETTER, mode="RGBA", paper="#00000000", ink=ink))
    assert letters(pictures.read("logo.png", raw)) == SAID


@pytest.mark.parametrize("mode", ["1", "L", "P", "LA", "CMYK", "I;16"])
def test_whatever_a_picture_is_made_of_it_is_read(mode: str) -> None:
    image = drawn(*LETTER)
    image = image.convert("L").point(lambda v: v * 256, "I").convert("I;16") if mode == "I;16" else image.convert(mode)
    assert letters(pictures.read("letter.tif", saved(image, "PNG" if mode == "LA" else "TIFF"))) == SAID


def test_a_large_photo_is_read_as_a_small_one_is() -> None:
    raw = saved(drawn(*LETTER).resize((9000, 4800)), "JPEG")
    assert letters(pictures.read("photo.jpg", raw)) == SAID


def test_a_picture_without_words_is_said_to_have_none() -> None:
    said, kind = unreadable("sky.png", saved(Image.linear_gradient("L").resize((800, 600))))
    assert "I found no words on it" in said
    assert kind == "nothing"


@pytest.mark.parametrize("kept", [60, 0.5, 0.95])
def test_a_picture_that_is_cut_off_is_said_to_be_damaged(kept: float) -> None:
    raw = saved(drawn(*LETTER))
    said, kind = unreadable("cut.png", raw[: int(kept if kept > 1 else len(raw) * kept)])
    assert "is damaged" in said
    assert kind == "corrupt"


def declared(width: int, height: int) -> bytes:
    """A PNG that says to be so large."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(99))) + chunk(b"IEND", b"")
    )


def test_a_picture_of_too_many_pixels_is_refused_before_it_is_opened() -> None:
    said, kind = unreadable("bomb.png", declared(50_000, 50_000))
    assert "too large (50,000 × 50,000 pixels)" in said
    assert kind == "limit"


def test_the_format_of_some_phones_is_refused_with_a_way_out() -> None:
    said, kind = unreadable("IMG_1.HEIC", b"\x00\x00\x00\x18ftypheic" + bytes(100))
    assert "HEIC" in said
    assert "JPEG" in said
    assert kind == "unsupported"


async def test_without_the_reader_a_picture_is_refused() -> None:
    with pytest.raises(errors.Unreadable, match="the reader of pictures is not installed here"):
        await parsing.parse("letter.png", saved(drawn(*LETTER)), child=WITHOUT_OCR)


def test_the_words_of_a_picture_within_a_document() -> None:
    assert pictures.words(saved(drawn(LETTER[0]))) == LETTER[0]
    assert pictures.words(saved(Image.new("RGB", (300, 200), "white"))) == ""
    assert pictures.words(saved(drawn(LETTER[0]))[:80]) is None


async def test_a_picture_by_another_name_is_read() -> None:
    parsed = await parsing.parse("menu.pdf", saved(drawn(LETTER[0])))
    assert parsed.parts[0].text == LETTER[0]
