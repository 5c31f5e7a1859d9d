"""In which order the lines of a page are read."""

from __future__ import annotations

from itertools import pairwise
from math import cos, radians, sin

from agents.knowledge.reading.layout import Line, arranged, levelled

LEFT = [f"the left column goes on with its line {n}" for n in range(8)]
RIGHT = [f"the right column has another line {n} here" for n in range(8)]


def at(text: str, left: float, top: float, width: float = 0, height: float = 20) -> Line:
    return Line(text, left, top, left + (width or 9 * len(text)), top + height)


def columns(top: float = 100) -> list[Line]:
    return [
        each
        for n, (left, right) in enumerate(zip(LEFT, RIGHT, strict=True))
        for each in (at(left, 50, top + 30 * n, 400), at(right, 500, top + 30 * n, 400))
    ]


def follows(text: str, *parts: str) -> bool:
    return all(text.index(before) < text.index(after) for before, after in pairwise(parts))


def test_two_columns_are_read_one_after_the_other() -> None:
    assert follows(arranged(columns()), *LEFT, *RIGHT)


def test_a_line_across_both_columns_is_read_before_those_below_it() -> None:
    title = at("A title that runs across the whole of the page, from left to right", 50, 40, 850)
    between = at("A second title that runs across the whole of the page in the middle of it", 50, 400, 850)
    below = [line._replace(text="below " + line.text) for line in columns(top=450)]
    told = arranged([*below, between, *columns(), title])
    assert follows(told, title.text, *LEFT, *RIGHT, between.text, *("below " + each for each in (*LEFT, *RIGHT)))


def test_the_rows_of_a_table_stay_together() -> None:
    rows = [
        ("Room", "Low season", "High season"),
        ("Double", "84", "121"),
        ("Suite", "150", "210"),
        ("Attic", "60", "75"),
    ]
    lines = [at(cell, 50 + 250 * n, 100 + 40 * r) for r, row in enumerate(rows) for n, cell in enumerate(row)]
    assert arranged(lines).split("\n") == ["  ".join(row) for row in rows]


def test_a_table_of_labels_and_long_values_is_no_pair_of_columns() -> None:
    rows = [(f"Label {n}:", f"a long explanation of what number {n} is about") for n in range(8)]
    lines = [at(cell, 50 + 300 * n, 100 + 30 * r) for r, row in enumerate(rows) for n, cell in enumerate(row)]
    assert arranged(lines).split("\n") == ["  ".join(row) for row in rows]


def test_a_table_below_two_columns_is_read_in_rows() -> None:
    heading = at("What everything costs, in euros and without the taxes", 50, 400, 850)
    rows = [(f"Item {n}", f"{n}5 euros for each of the rooms") for n in range(5)]
    table = [at(cell, 50 + 460 * n, 450 + 40 * r) for r, row in enumerate(rows) for n, cell in enumerate(row)]
    told = arranged([*columns(), heading, *table])
    assert told.endswith("\n".join("  ".join(row) for row in rows))
    assert follows(told, *LEFT, *RIGHT, heading.text)


def test_more_space_than_usual_between_lines_is_a_paragraph() -> None:
    lines = [at(f"line {n}", 50, 100 + 30 * n + (40 if n > 2 else 0)) for n in range(6)]
    assert arranged(lines) == "line 0\nline 1\nline 2\n\nline 3\nline 4\nline 5"


def test_a_page_that_lies_askew_is_read_in_rows() -> None:
    """Over its width, by four degrees, a row sinks by more than two lines."""

    def turned(x: float, y: float) -> tuple[float, float]:
        return x * cos(radians(4)) - y * sin(radians(4)), x * sin(radians(4)) + y * cos(radians(4))

    def box(left: float, top: float, width: float) -> list[tuple[float, float]]:
        return [turned(x, y) for x, y in ((left, top), (left + width, top), (left + width, top + 20), (left, top + 20))]

    found = [(box(50 + 400 * n, 100 + 26 * row, 200), f"r{row}c{n}") for row in range(5) for n in range(3)]
    assert arranged(levelled(found)).split("\n") == [f"r{row}c0  r{row}c1  r{row}c2" for row in range(5)]


def test_nothing_is_nothing() -> None:
    assert arranged(levelled([])) == ""
