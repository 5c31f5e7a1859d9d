"""Sizes, ages and numbers against the bounds that a price list gives: "a dog of 20 lb" and "up to 25 lb"."""

from __future__ import annotations

from collections.abc import Sequence

import regex

from mesh.text import words

QUANTITY = regex.compile(r"(?<![\d.,])(?P<n>\d+(?:\.\d+)?)[\s-]?(?P<unit>\p{L}+)")
_NUMBER = r"\d+(?:\.\d+)?"
_RANGE = regex.compile(rf"(?P<low>{_NUMBER})\s?(?:[-–—]|to|a)\s?(?P<high>{_NUMBER})\s?(?P<unit>\p{{L}}+)")
_MOST = regex.compile(
    r"\b(?:(?P<less>under|below|less than|menos de)|up to|until|at most|max(?:imum)?\.?|hasta)\s?"
    rf"(?P<high>{_NUMBER})\s?(?P<unit>\p{{L}}+)",
    regex.IGNORECASE,
)
_LEAST = regex.compile(
    r"\b(?:(?P<more>over|above|more than|m[aá]s de)|from|at least|min(?:imum)?\.?|desde)\s?"
    rf"(?P<low>{_NUMBER})\s?(?P<unit>\p{{L}}+)",
    regex.IGNORECASE,
)


def fits(name: str, number: float, unit: Sequence[str]) -> bool | None:
    """Whether a number of a unit, as index terms, is within the bound that a name gives; None where it gives none."""
    if (found := _RANGE.search(name)) and words(found["unit"]) == unit:
        return float(found["low"]) <= number <= float(found["high"])
    if (found := _MOST.search(name)) and words(found["unit"]) == unit:
        high = float(found["high"])
        return number < high if found["less"] else number <= high
    if (found := _LEAST.search(name)) and words(found["unit"]) == unit:
        low = float(found["low"])
        return number > low if found["more"] else number >= low
    return None


def unbound(name: str) -> str:
    """ "Dog over 60 lb" as "Dog"."""
    for pattern in (_RANGE, _MOST, _LEAST):
        name = pattern.sub(" ", name)
    return " ".join(name.split())
