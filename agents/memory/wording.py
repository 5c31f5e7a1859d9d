"""What memory says, in the language that it was spoken to in: English, Spanish or Hindi."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_SPANISH = re.compile(
    r"[¿¡ñ]|\b(?:mi|mis|soy|vivo|llamo|llama|tengo|me gusta|me encanta|trabajo|cuál|qué|dónde|cuándo|cómo"
    r"|quién|recuerda"
    r"|sabes|favorit[oa]|cumpleaños|alérgic[oa]|prefiero|ahora|anota|en realidad)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Speech:
    noted: str
    kept_already: str
    replaced: str
    told: str
    """The day, then the words."""
    known: str
    nothing: str


_ENGLISH = Speech(
    noted="Noted: “{}”",
    kept_already="I have that already: “{}”",
    replaced="Noted: “{}” — that replaces “{}”.",
    told="You told me on {}: “{}”",
    known="This is what you told me:",
    nothing="You haven't told me anything about yourself yet. Tell me something, and I'll remember it.",
)
_IN_SPANISH = Speech(
    noted="Anotado: “{}”",
    kept_already="Ya lo tengo anotado: “{}”",
    replaced="Anotado: “{}” — sustituye a “{}”.",
    told="Me lo dijiste el {}: “{}”",
    known="Esto es lo que me has contado:",
    nothing="Todavía no me has contado nada de ti. Cuéntame algo y lo recordaré.",
)
_HINDI = Speech(
    noted="नोट कर लिया: “{}”",
    kept_already="यह मुझे पहले से पता है: “{}”",
    replaced="नोट कर लिया: “{}” — यह “{}” की जगह है।",
    told="आपने {} को बताया था: “{}”",
    known="आपने मुझे यह बताया है:",
    nothing="आपने अभी तक अपने बारे में कुछ नहीं बताया। कुछ बताइए, मैं याद रखूँगा।",
)


def speech(text: str) -> Speech:
    if re.search(r"[\u0900-\u097f]", text):
        return _HINDI
    return _IN_SPANISH if _SPANISH.search(text) else _ENGLISH


def day(moment: datetime) -> str:
    """29 Nov 2026, whatever the locale."""
    return f"{moment.day} {_MONTHS[moment.month - 1]} {moment.year}"
