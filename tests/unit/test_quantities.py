"""Amounts as documents write them, and numbers as people do."""

from __future__ import annotations

from decimal import Decimal

import pytest

from agents.analysis.arithmetic import calculate
from agents.analysis.quantities import amounts, count, in_units, number, plain
from mesh.errors import Malformed


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("112", "112"),
        ("1,200", "1200"),
        ("1.200", "1200"),
        ("1,200.50", "1200.50"),
        ("1.200,50", "1200.50"),
        ("1 200", "1200"),
        ("2,50,000", "250000"),
        ("0.45", "0.45"),
        ("0,455", "0.455"),
        ("2.20", "2.20"),
    ],
)
def test_a_number_is_read_as_its_writer_meant_it(written: str, value: str) -> None:
    assert number(written) == Decimal(value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Room: Double room, Sleeps: 2, Price per night: 84 euros, Notes: garden", ["84 euros per night"]),
        ("Parking in our courtyard costs 7 euros a night.", ["7 euros per night"]),
        ("9 euros per person and 5 euros for children", ["9 euros per person", "5 euros per child"]),
        ("2.20 euros per adult and night", ["2.20 euros per adult and night"]),
        ("$45/month", ["$45 per month"]),
        ("Monthly fee: $45", ["$45 per month"]),
        ("£1,250.00 a year", ["£1,250 per year"]),
        ("₹ 2,50,000 por mes", ["₹ 250,000 per month"]),
        ("whole €36, slice €4.20", ["€36", "€4.20"]),
        ("0.45 euros per kWh", ["0.45 euros per kwh"]),
        ("La habitación cuesta 70 euros por noche", ["70 euros per night"]),
    ],
)
def test_a_price_is_read_with_its_unit(text: str, told: list[str]) -> None:
    assert [amount.priced() for amount in amounts(text)] == told


@pytest.mark.parametrize(
    "text",
    [
        "In winter every room costs 15 euros less a night.",
        "Damage is covered up to 1,500 euros.",
        "Orders from €60 are delivered.",
        "reduced by 20 euros",
        "a 10% discount",
        "room 112, built in 1984",
    ],
)
def test_what_is_no_price_is_not_taken_for_one(text: str) -> None:
    assert amounts(text) == []


def test_numbers_are_written_for_people() -> None:
    written = [plain(Decimal(value)) for value in ("336", "1200", "2.2", "0.455", "13.20")]
    assert written == ["336", "1,200", "2.20", "0.455", "13.20"]


def test_counts_may_be_words() -> None:
    assert [count(word) for word in ("3", "three", "Tres", "a couple of", "a dozen")] == [3, 3, 3, 2, 12]


def test_weeks_become_nights_only_where_nights_are_priced() -> None:
    assert in_units({"week": 2}, ["night"]) == {"night": 14}
    assert in_units({"week": 2}, ["week"]) == {"week": 2}
    assert in_units({"month": 1}, ["night"]) == {"month": 1}, "a month is no fixed number of nights"


def test_arithmetic_is_exact() -> None:
    assert calculate("3 * 112 + 2 × 0.1") == "3 * 112 + 2 * 0.1 = 336.20"
    assert calculate("(7,413 - 2224) / 2") == "(7413 - 2224) / 2 = 2,594.50"


@pytest.mark.parametrize(
    "expression",
    ["__import__('os')", "2 ** 99999", "1 / 0", "a + 1", "", "9" * 201, "True + 1", "(1).real", "1e999 * 2", "[1]"],
)
def test_nothing_but_arithmetic_is_calculated(expression: str) -> None:
    with pytest.raises(Malformed):
        calculate(expression)
