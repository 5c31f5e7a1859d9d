"""The time that words name: "this week", "ayer", "since Monday". By rules, in six languages. Days are those of the
mesh's own time zone; weeks begin on Monday."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

import regex


@dataclass(frozen=True, slots=True)
class Period:
    """Days: from `first` on, and up to `last`; None where it is open."""

    first: date
    last: date | None = None

    @property
    def since(self) -> datetime:
        return _midnight(self.first)

    @property
    def until(self) -> datetime | None:
        """The first moment that is not in it."""
        return _midnight(self.last + timedelta(days=1)) if self.last else None


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time()).astimezone()


def today() -> date:
    return datetime.now().astimezone().date()


def period(text: str, now: date) -> tuple[Period | None, str]:
    """The first that is named, and the text without it."""
    for pattern, meant in _PERIODS:
        if (found := pattern.search(text)) and (days := meant(found, now)):
            if found["since"]:
                days = Period(days.first)
            return days, f"{text[: found.start()]} {text[found.end() :]}".strip()
    return None, text


_WEEKDAYS = (
    "monday|lunes|lundi|montag|segunda(?:-feira)?|सोमवार",
    "tuesday|martes|mardi|dienstag|ter[cç]a(?:-feira)?|मंगलवार",
    "wednesday|mi[eé]rcoles|mercredi|mittwoch|quarta(?:-feira)?|बुधवार",
    "thursday|jueves|jeudi|donnerstag|quinta(?:-feira)?|गुरुवार|बृहस्पतिवार",
    "friday|viernes|vendredi|freitag|sexta(?:-feira)?|शुक्रवार",
    "saturday|s[aá]bado|samedi|samstag|शनिवार",
    "sunday|domingo|dimanche|sonntag|रविवार|इतवार",
)
_MONTHS = (
    "january|enero|janvier|januar|janeiro|जनवरी",
    "february|febrero|f[eé]vrier|februar|fevereiro|फरवरी|फ़रवरी",
    "march|marzo|mars|märz|março|मार्च",
    "april|abril|avril|अप्रैल",
    "may|mayo|mai|maio|मई",
    "june|junio|juin|juni|junho|जून",
    "july|julio|juillet|juli|julho|जुलाई",
    "august|agosto|août|aout|अगस्त",
    "september|septiembre|septembre|setembro|सितंबर",
    "october|octubre|octobre|oktober|outubro|अक्टूबर",
    "november|noviembre|novembre|novembro|नवंबर",
    "december|diciembre|d[eé]cembre|dezember|dezembro|दिसंबर",
)
_WEEK = r"(?:हफ़्ते|हफ्ते|सप्ताह)"
_LAST_HI = r"(?:पिछले|गत)"


def _week(now: date, back: int) -> Period:
    monday = now - timedelta(days=now.weekday() + 7 * back)
    return Period(monday, monday + timedelta(days=6))


def _month(year: int, month: int) -> Period:
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    following = date(year + month // 12, month % 12 + 1, 1)
    return Period(date(year, month, 1), following - timedelta(days=1))


def _weekday(found: regex.Match[str], now: date) -> Period:
    """The last one; today, if it is that day."""
    wanted = next(n for n, names in enumerate(_WEEKDAYS) if regex.fullmatch(names, found["day"], regex.IGNORECASE))
    day = now - timedelta(days=(now.weekday() - wanted) % 7)
    return Period(day, day)


def _named_month(found: regex.Match[str], now: date) -> Period:
    """The last one that has begun."""
    wanted = 1 + next(n for n, names in enumerate(_MONTHS) if regex.fullmatch(names, found["month"], regex.IGNORECASE))
    return _month(int(found["year"]) if found["year"] else now.year - (wanted > now.month), wanted)


def _days_back(found: regex.Match[str], now: date) -> Period | None:
    count = int(found["count"])
    return Period(now - timedelta(days=count - 1), now) if 0 < count < 10_000 else None


def _dated(found: regex.Match[str], _: date) -> Period | None:
    try:
        day = date.fromisoformat(found["date"])
    except ValueError:
        return None
    return Period(day, day)


_BEFORE = (
    r"(?<![\p{L}\p{M}\p{N}#])(?:(?P<since>since|desde|depuis|seit)\s+)?"
    r"(?:(?:from|of|on|in|for|during|de|del|d['’]|durante|vom|von|am|aus|im|da|do|dos|em|no|na|nos|en|le|la|les|el|los|the|l['’])\s*\b)*"
)
_AFTER = r"(?:\s+(?P<since>से))?(?:\s+(?:के|की|का|में|को))?(?![\p{L}\p{M}\p{N}])"


def _form(words: str) -> regex.Pattern[str]:
    return regex.compile(f"{_BEFORE}(?:{words}){_AFTER}", regex.IGNORECASE)


Meant = Callable[[regex.Match[str], date], Period | None]
_PERIODS: tuple[tuple[regex.Pattern[str], Meant], ...] = (
    (_form(r"(?P<date>\d{4}-\d\d-\d\d)"), _dated),
    (
        _form(
            r"(?:last|past|últimos|ultimos|derniers|letzten|पिछले)\s+(?P<count>\d{1,4})\s+(?:days|d[ií]as|jours|tage[n]?|dias|दिनों?|दिन)"
            r"|les\s+(?P<count>\d{1,4})\s+derniers\s+jours"
        ),
        _days_back,
    ),
    (
        _form(r"today|hoy|aujourd['’]hui|heute|hoje|आज"),
        lambda _, now: Period(now, now),
    ),
    (
        _form(r"yesterday|ayer|hier|gestern|ontem|कल"),
        lambda _, now: Period(now - timedelta(days=1), now - timedelta(days=1)),
    ),
    (
        _form(rf"this week|esta semana|cette semaine|diese[rn]? woche|nesta semana|इस {_WEEK}"),
        lambda _, now: _week(now, 0),
    ),
    (
        _form(
            r"(?:the )?(?:last|past|previous) week|semana pasada|pasada semana|semaine (?:derni[eè]re|pass[eé]e)"
            rf"|(?:letzte[rn]?|vergangene[rn]?|vorige[rn]?) woche|semana passada|{_LAST_HI} {_WEEK}"
        ),
        lambda _, now: _week(now, 1),
    ),
    (
        _form(r"this month|este mes|ce mois(?:-ci)?|diese[nsm]? monat|este mês|neste mês|इस महीने"),
        lambda _, now: _month(now.year, now.month),
    ),
    (
        _form(
            r"(?:the )?(?:last|past|previous) month|mes pasado|mois (?:dernier|pass[eé])"
            rf"|(?:letzte[nsm]?|vergangene[nsm]?) monat|mês passado|{_LAST_HI} महीने"
        ),
        lambda _, now: _month(now.year, now.month - 1),
    ),
    (
        _form(r"this year|este año|cette ann[eé]e|dieses jahr|este ano|इस साल"),
        lambda _, now: Period(date(now.year, 1, 1), date(now.year, 12, 31)),
    ),
    (
        _form(r"last year|año pasado|ann[eé]e (?:derni[eè]re|pass[eé]e)|letztes jahr|ano passado|पिछले साल"),
        lambda _, now: Period(date(now.year - 1, 1, 1), date(now.year - 1, 12, 31)),
    ),
    (_form(rf"(?:last |this )?(?P<day>{'|'.join(_WEEKDAYS)})(?: pasado| dernier| passad[oa])?"), _weekday),
    (
        regex.compile(
            rf"(?<![\p{{L}}\p{{M}}\p{{N}}#])(?:(?:(?P<since>since|desde|depuis|seit)|in|from|during|en|de|im|vom|em)\s+)"
            rf"(?P<month>{'|'.join(_MONTHS)})(?:\s+(?:de |del )?(?P<year>\d{{4}}))?(?![\p{{L}}\p{{M}}\p{{N}}])"
            rf"|(?P<month>{'|'.join(_MONTHS)})(?P<year>)\s+(?:में|(?P<since>से))",
            regex.IGNORECASE,
        ),
        _named_month,
    ),
)
