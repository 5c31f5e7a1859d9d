"""Amounts of money as documents write them, and numbers as people do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

import regex

EACH = "piece"
_UNITS: dict[str, tuple[str, ...]] = {
    "night": ("night", "nights", "nightly", "noche", "noches"),
    "day": ("day", "days", "daily", "día", "días", "dia", "dias"),
    "week": ("week", "weeks", "weekly", "semana", "semanas"),
    "month": ("month", "months", "monthly", "mes", "meses"),
    "year": ("year", "years", "yearly", "annually", "annual", "año", "años"),
    "hour": ("hour", "hours", "hourly", "hora", "horas"),
    "session": (
        "session",
        "sessions",
        "lesson",
        "lessons",
        "class",
        "classes",
        "sesión",
        "sesiones",
        "clase",
        "clases",
    ),
    "person": ("person", "persons", "people", "guest", "guests", "head", "pp", "persona", "personas", "participant"),
    "adult": ("adult", "adults", "adulto", "adultos"),
    "child": ("child", "children", "kid", "kids", "niño", "niños", "niña", "niñas"),
    "minute": ("minute", "minutes", "min", "mins", "minuto", "minutos"),
    "kg": ("kg", "kgs", "kilo", "kilos", "kilogram", "kilograms"),
    "km": ("km", "kilometre", "kilometres", "kilometer", "kilometers"),
    "mile": ("mile", "miles"),
    "page": ("page", "pages", "página", "páginas"),
    "word": ("word", "words", "palabra", "palabras"),
    EACH: ("piece", "pieces", "item", "items", "unit", "units", "each", "pieza", "piezas", "unidad", "unidades"),
}
UNIT_OF = {word: unit for unit, words in _UNITS.items() for word in words}
TIMES = frozenset({"night", "day", "week", "month", "year", "hour", "minute", "session"})
"""How long something is had, or how often."""
PEOPLE = frozenset({"person", "adult", "child"})
IN_SMALLER = {"week": (7, ("night", "day"))}
"""Two weeks are fourteen nights. A month is no fixed number of days."""

_SYMBOLS = "€$£₹¥"
_CURRENCIES = {
    "€": "eur", "euro": "eur", "euros": "eur", "eur": "eur",
    "$": "usd", "dollar": "usd", "dollars": "usd", "usd": "usd", "us$": "usd",
    "£": "gbp", "pound": "gbp", "pounds": "gbp", "gbp": "gbp",
    "₹": "inr", "rupee": "inr", "rupees": "inr", "inr": "inr", "rs": "inr", "rs.": "inr", "रुपये": "inr",
    "¥": "jpy", "yen": "jpy", "jpy": "jpy",
    "chf": "chf", "franc": "chf", "francs": "chf",
    "zloty": "pln", "zlotys": "pln", "zł": "pln", "pln": "pln",
    "peso": "peso", "pesos": "peso", "mxn": "mxn", "cad": "cad", "aud": "aud", "kr": "kr", "sek": "sek",
}  # fmt: skip
_NUMBER = (
    r"\d{1,3}(?:,\d{2})*,\d{3}(?:\.\d{1,2})?|\d{1,3}(?:[.,\u00a0\u202f ]\d{3})+(?:[.,]\d{1,2})?|\d+(?:[.,]\d{1,2})?"
)
_WORDS = "|".join(regex.escape(word) for word in sorted(_CURRENCIES, key=len, reverse=True) if word not in _SYMBOLS)
_MONEY = regex.compile(
    rf"(?P<before>US\$|[{_SYMBOLS}]|\b(?:Rs\.?|USD|EUR|GBP|INR|CHF)(?=\s*\d))\s?(?P<n1>{_NUMBER})(?![\d%])"
    rf"|(?<![\d.,])(?P<n2>{_NUMBER})\s?(?P<after>[{_SYMBOLS}]|(?:{_WORDS})(?!\p{{L}}))",
    regex.IGNORECASE,
)
_UNIT_WORDS = "|".join(regex.escape(word) for word in sorted(UNIT_OF, key=len, reverse=True))
_ANYTHING = r"[\p{L}\p{M}]+"
_PER_AFTER = regex.compile(
    rf"^\s*(?:per|a|an|/|for each|for every|por|al|a la|cada|for)?\s*(?<![\p{{L}}])(?P<one>{_UNIT_WORDS})(?!\p{{L}})"
    rf"(?:\s*(?:,|and|y|per|/|a|por)\s*(?:per |a |por )?(?P<two>{_UNIT_WORDS})(?!\p{{L}}))?",
    regex.IGNORECASE,
)
_PER_UNKNOWN = regex.compile(rf"^\s*(?:per|/)\s*(?P<what>{_ANYTHING})", regex.IGNORECASE)
_PER_BEFORE = regex.compile(
    rf"(?:\b(?:per|por|cada|each)[\s-]+|/\s*)(?P<unit>{_ANYTHING})|\b(?P<ly>nightly|daily|weekly|monthly|yearly|hourly)\b"
    rf"|\b(?:prices?|costs?|fees?|rates?|precio|cuota)\s+(?:a|an|al|each)\s+(?P<a>{_UNIT_WORDS})\b",
    regex.IGNORECASE,
)
_NO_PRICE_AFTER = regex.compile(
    r"^\s*(?:less|off|cheaper|discount|reduction|more expensive|more|extra|menos|más|de descuento)\b", regex.IGNORECASE
)
_NO_PRICE_BEFORE = regex.compile(
    r"\b(?:reduced by|minus|save|saves|discount of|reduction of|deducts?|up to|at least|at most|from|over|above|below|"
    r"under|more than|less than|hasta|desde|máximo|mínimo)\s*$",
    regex.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Amount:
    value: Decimal
    currency: str
    per: frozenset[str]
    """Units of `UNIT_OF`, or the word that is written."""
    label: str
    """What stands before it in its row or sentence."""
    form: str
    """How it is written, with `{}` for the number."""

    def written(self, value: Decimal | None = None) -> str:
        return self.form.format(plain(self.value if value is None else value))

    def priced(self) -> str:
        per = sorted(self.per - {EACH})
        return f"{self.written()} per {' and '.join(per)}" if per else self.written()


def plain(value: Decimal) -> str:
    """1,200 and 2.20 and 0.455."""
    rounded = value.quantize(Decimal("0.01")) if value == value.quantize(Decimal("0.01")) else value.normalize()
    return f"{rounded.to_integral_value():,}" if rounded == rounded.to_integral_value() else f"{rounded:,}"


def number(written: str) -> Decimal:
    """1,200.50 and 1.200,50 and 2,50,000 and 0.45. Raises `ValueError`."""
    bare = regex.sub(r"[\u00a0\u202f ]", "", written)
    last = max(bare.rfind("."), bare.rfind(","))
    if last >= 0:
        head, tail = bare[:last], bare[last + 1 :]
        grouped = len(tail) == 3 and head not in ("", "0")
        digits = regex.sub(r"[.,]", "", head)
        bare = digits + tail if grouped else f"{digits}.{tail}"
    try:
        return Decimal(bare)
    except InvalidOperation as error:
        raise ValueError(f"{written!r} is no number") from error


def amounts(text: str) -> list[Amount]:
    """Prices, in reading order; not what is taken off or added to one, and no limits ("up to 500 euros")."""
    found: list[Amount] = []
    since = 0
    for match in _MONEY.finditer(text):
        before, after = text[since : match.start()].rpartition("\n")[2], text[match.end() :]
        since = match.end()
        per, length = _per_after(after)
        since += length
        if _NO_PRICE_AFTER.match(after[length:]) or _NO_PRICE_BEFORE.search(before):
            continue
        unit = (match["before"] or match["after"]).lower()
        spaced = text[match.start() : match.end()].replace(match["n1"] or match["n2"], "{}", 1)
        found.append(
            Amount(
                number(match["n1"] or match["n2"]),
                _CURRENCIES.get(unit, unit),
                per or _per_before(before),
                before.strip(" ,;:.|(-").rpartition(", ")[2],
                spaced,
            )
        )
    return found


def _per_after(text: str) -> tuple[frozenset[str], int]:
    if match := _PER_AFTER.match(text):
        units = {UNIT_OF[word.lower()] for word in (match["one"], match["two"]) if word}
        return frozenset(units), match.end()
    if match := _PER_UNKNOWN.match(text):
        return frozenset({match["what"].lower()}), match.end()
    return frozenset(), 0


def _per_before(text: str) -> frozenset[str]:
    written = (match["unit"] or match["ly"] or match["a"] for match in _PER_BEFORE.finditer(text))
    return frozenset(UNIT_OF.get(word.lower(), word.lower()) for word in written)


# ── numbers in questions ──────────────────────────────────────────────────────────────────────────────────────────

_NUMBER_WORDS = {
    word: value
    for value, words in enumerate(
        (
            "one un una", "two dos", "three tres", "four cuatro", "five cinco", "six seis", "seven siete",
            "eight ocho", "nine nueve", "ten diez", "eleven once", "twelve doce", "thirteen trece",
            "fourteen catorce", "fifteen quince", "sixteen dieciséis", "seventeen diecisiete", "eighteen dieciocho",
            "nineteen diecinueve", "twenty veinte",
        ),
        1,
    )
    for word in words.split()
}  # fmt: skip
COUNT = rf"(?:\d{{1,4}}|a couple of|a dozen|{'|'.join(sorted(_NUMBER_WORDS, key=len, reverse=True))})"


def count(written: str) -> int:
    """Of `COUNT`."""
    lower = written.lower()
    if lower == "a couple of":
        return 2
    if lower == "a dozen":
        return 12
    return _NUMBER_WORDS.get(lower) or int(lower)


def in_units(asked: dict[str, int], units: Iterable[str]) -> dict[str, int]:
    """What was asked in weeks is told in nights or days, when those are what is priced."""
    told = dict(asked)
    for larger, (times, smaller) in IN_SMALLER.items():
        for unit in smaller:
            if larger in told and unit in units and larger not in units and unit not in told:
                told[unit] = told.pop(larger) * times
    return told
