"""What is read in a picture, and what is said when it is not."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from time import monotonic
from typing import Any

import numpy
import pytest
from PIL import Image

from agents.knowledge.reading import ocr
from tests.unit.drawn import LETTER, drawn, placed

pytest.importorskip("rapidocr", reason="pictures are read with the `ocr` extra")


@pytest.fixture
def reader() -> ocr.Reader:
    made = ocr.reader()
    assert made is not None
    return ocr.Reader(made.engine)


@pytest.fixture
def anew() -> Iterator[None]:
    ocr.reader.cache_clear()
    yield
    ocr.reader.cache_clear()


def pixels(image: Image.Image) -> Any:
    return numpy.ascontiguousarray(numpy.asarray(image.convert("RGB"))[:, :, ::-1])


def letters(text: str) -> str:
    return "".join(text.split())


def test_the_words_of_a_picture_are_read_line_by_line(reader: ocr.Reader) -> None:
    found = reader.read(pixels(drawn(*LETTER)))
    assert found.text.split("\n") == list(LETTER)
    assert not found.trouble


@pytest.mark.parametrize("degrees", [90, 180, 270])
def test_a_picture_that_lies_on_its_side_or_head_is_turned(reader: ocr.Reader, degrees: int) -> None:
    found = reader.read(pixels(drawn(*LETTER).rotate(degrees, expand=True)))
    assert letters(found.text) == letters("".join(LETTER))


@pytest.mark.parametrize("degrees", [-4, 3])
def test_a_picture_that_lies_askew_is_read(reader: ocr.Reader, degrees: int) -> None:
    found = reader.read(pixels(drawn(*LETTER).rotate(degrees, expand=True, fillcolor="white")))
    assert letters(found.text) == letters("".join(LETTER))


@pytest.mark.parametrize("size", [11, 90])
def test_small_and_large_letters_are_read(reader: ocr.Reader, size: int) -> None:
    assert letters(LETTER[2]) in letters(reader.read(pixels(drawn(*LETTER, size=size))).text)


def test_light_letters_on_a_dark_ground_are_read(reader: ocr.Reader) -> None:
    assert letters(LETTER[0]) in letters(reader.read(pixels(drawn(*LETTER, paper="navy", ink="white"))).text)


def test_a_row_of_a_table_stays_together(reader: ocr.Reader) -> None:
    rows = [("Room", "Low season", "High season"), ("Double", "84 EUR", "121 EUR"), ("Suite", "150 EUR", "210 EUR")]
    cells = [(60 + 350 * n, 60 + 70 * r, cell) for r, row in enumerate(rows) for n, cell in enumerate(row)]
    assert reader.read(pixels(placed((1150, 330), *cells))).text.split("\n") == ["  ".join(row) for row in rows]


def test_a_line_lies_where_it_does_in_the_picture(reader: ocr.Reader) -> None:
    (line,) = reader.read(pixels(placed((3000, 2000), (1500, 900, "Quiet from ten"), letters=60))).lines
    assert abs(line.left - 1500) < 40
    assert abs(line.middle - 935) < 40


def test_a_picture_without_words_yields_none_and_no_trouble(reader: ocr.Reader) -> None:
    assert reader.read(pixels(Image.linear_gradient("L").resize((600, 400)))) == ocr.Found()


@pytest.mark.parametrize("size", [(1, 1), (3, 4000), (4000, 3), (40, 12)])
def test_a_picture_of_hardly_any_size_harms_nothing(reader: ocr.Reader, size: tuple[int, int]) -> None:
    assert not reader.read(pixels(Image.new("RGB", size, "white"))).lines


def test_after_so_many_pictures_no_more_are_read(reader: ocr.Reader) -> None:
    reader.left = 1
    picture = pixels(drawn("Quiet from ten."))
    assert reader.read(picture).text == "Quiet from ten."
    assert reader.read(picture) == ocr.Found(trouble=ocr.TOO_MANY)


def test_after_so_long_a_time_no_more_are_read(reader: ocr.Reader) -> None:
    reader.until = monotonic()
    assert reader.read(pixels(drawn("Quiet from ten."))) == ocr.Found(trouble=ocr.TOO_MANY)


def test_a_picture_that_takes_too_long_is_said_to_be_read_in_part(
    reader: ocr.Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ocr, "PICTURE_SECONDS", 0.0)
    assert reader.read(pixels(drawn(*LETTER))).trouble == ocr.CUT_SHORT


BOX = numpy.array([[0, 0], [90, 0], [90, 20], [0, 20]])


@pytest.mark.parametrize(
    ("sure", "text", "trouble"),
    [
        ([0.99] * 10, "Quiet room", ""),
        ([0.99] * 5 + [0.9] + [0.2] * 4, "Quiet", ocr.HARD_TO_READ),
        ([0.7] * 10, "Quiet room", ocr.HARD_TO_READ),
        ([0.1] * 10, "", ""),
    ],
    ids=["sure", "a word unsure", "all rather unsure", "no words after all"],
)
def test_words_that_are_unsure_are_left_out_and_told(sure: list[float], text: str, trouble: str) -> None:
    found = ocr._told([(BOX, "Quiet room", sure)], cut_short=False)
    assert (found.text, found.trouble) == (text, trouble)


def test_a_page_of_which_nothing_is_sure_is_told() -> None:
    found = ocr._told([(BOX, "Quiet from ten in the evening", [0.3] * 29)], cut_short=False)
    assert found == ocr.Found(trouble=ocr.HARD_TO_READ)


def test_a_few_words_left_out_of_a_clear_page_are_told_as_gaps() -> None:
    clear = [(numpy.add(BOX, (0, 30 * n)), "A clear line of words", [0.99] * 21) for n in range(4)]
    lost = (numpy.add(BOX, (0, 200)), "but lost it is", [0.99] * 4 + [0.3] * 10)
    found = ocr._told([*clear, lost], cut_short=False)
    assert found.text.endswith("but")
    assert found.trouble == ocr.GAPS


@pytest.mark.usefixtures("anew")
def test_without_the_package_there_is_no_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rapidocr", None)
    assert ocr.reader() is None


@pytest.mark.usefixtures("anew")
def test_a_model_that_is_not_the_known_one_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ocr.MODELS, "Rec", (ocr.MODELS["Rec"][0], "0" * 64))
    assert ocr.reader() is None
