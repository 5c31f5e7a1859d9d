"""Which weekdays a text speaks of: "Tue-Fri" has a Wednesday, and "daily" has all seven."""

from __future__ import annotations

from functools import lru_cache

import regex

from mesh.text import words

_DAYS = {
    "en": ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"),
    "es": ("lunes", "martes", "miércoles", "jueves", "viernes", "sábado", "domingo"),
    "hi": ("सोमवार", "मंगलवार", "बुधवार", "गुरुवार", "शुक्रवार", "शनिवार", "रविवार"),
}
_SHORT = {
    "en": ("mon", "tue", "wed", "thu", "fri", "sat", "sun"),
    "es": ("lun", "mar", "mié", "jue", "vie", "sáb", "dom"),
}
_LONGER = {"tues": "tue", "weds": "wed", "thur": "thu", "thurs": "thu", "mie": "mié", "sab": "sáb", "miercoles": "mié"}
_BRIEF = frozenset(_LONGER).union(*_SHORT.values())
_TO = r"\s*(?:to|till|until|through|thru|a|al|hasta|से|[-–—])\s*(?:el\s+)?"
_WORK, _FREE, _ALL = range(5), range(5, 7), range(7)
_GROUPS = (
    ("en", _WORK, r"\b(?:weekdays?|working days?|workdays?)\b"),
    ("en", _FREE, r"\bweekends?\b"),
    ("en", _ALL, r"\b(?:daily|every day|seven days a week|7 days a week)\b"),
    ("es", _FREE, r"\bfin(?:es)? de semana\b"),
    ("es", _ALL, r"\b(?:todos los días|cada día|a diario)\b"),
)


def _place(code: str) -> dict[str, int]:
    named = {day: place for place, day in enumerate(_DAYS[code])}
    named |= {f"{day}s": place for day, place in named.items() if code != "hi"}
    named |= {day: place for place, day in enumerate(_SHORT.get(code, ()))}
    return named | {longer: named[short] for longer, short in _LONGER.items() if short in named}


_PLACES = {code: _place(code) for code in _DAYS}
_RANGES = {
    code: regex.compile(
        rf"\b(?P<first>{'|'.join(sorted(places, key=len, reverse=True))})\b\.?"
        rf"(?:{_TO}(?P<last>{'|'.join(sorted(places, key=len, reverse=True))})\b)?",
        regex.IGNORECASE,
    )
    for code, places in _PLACES.items()
}


@lru_cache(maxsize=4096)
def days_in(text: str) -> frozenset[str]:
    """Index terms of the days, in the language that the text names them in."""
    found: set[str] = set()
    for code, pattern in _RANGES.items():
        for each in pattern.finditer(text):
            alone = each["last"] is None and each["first"].casefold() in _BRIEF
            if alone and not each["first"][0].isupper():  # the sun, el mar
                continue
            first = _PLACES[code][each["first"].casefold()]
            last = _PLACES[code][(each["last"] or each["first"]).casefold()]
            found.update(_DAYS[code][place % 7] for place in range(first, last + 1 + 7 * (last < first)))
    for code, places, written in _GROUPS:
        if regex.search(written, text, regex.IGNORECASE):
            found.update(_DAYS[code][place] for place in places)
    return frozenset(term for day in found for term in words(day))


LONGEST_HOURS = 120
"""Characters of a line of days and times."""
_HOURS = regex.compile(
    r"(?>\p{Nd}{1,2}(?:[:.h]\p{Nd}\p{Nd})?+(?!\p{Nd})|[\s,;:–—/&+.-]++|\([^()]*+\)"
    r"|\b(?:[ap]\.?m|hrs?|h|uhr|noon|midnight|closed|cerrado|geschlossen|ferm[eé]|fechado|and|y|und|et|e|to|till|until"
    r"|as|das|às|a|bis|à|de|from|von)\b|(?<=\p{Nd})(?:[ap]\.?m|h)\b)*+",
    regex.IGNORECASE,
)


def is_hours(text: str) -> bool:
    """Whether a line has nothing but days and times: "Tue-Fri 8.30 - 17.30", "Sun closed"."""
    if len(text) > LONGEST_HOURS or not days_in(text):
        return False
    rest = text
    for pattern in _RANGES.values():
        rest = pattern.sub(" ", rest)
    for _, _, written in _GROUPS:
        rest = regex.sub(written, " ", rest, flags=regex.IGNORECASE)
    return _HOURS.fullmatch(rest) is not None and rest.strip() != ""
