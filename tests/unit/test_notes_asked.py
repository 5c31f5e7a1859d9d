"""What counts as a question about one's notes, and which days words name."""

from __future__ import annotations

from datetime import date, datetime

import pytest

from agents.orchestrator.notes_asked import Asked, asked, named
from agents.orchestrator.periods import Period, period

WEDNESDAY = date(2026, 12, 2)
TODAY, YESTERDAY = Period(WEDNESDAY, WEDNESDAY), Period(date(2026, 12, 1), date(2026, 12, 1))
THIS_WEEK = Period(date(2026, 11, 30), date(2026, 12, 6))
LAST_WEEK = Period(date(2026, 11, 23), date(2026, 11, 29))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("what did I save this week about parking?", Asked(THIS_WEEK, (), "parking")),
        ("What did I save about parking this week?", Asked(THIS_WEEK, (), "parking")),
        ("what have I saved about the harbour?", Asked(about="the harbour")),
        ("what did I note down yesterday", Asked(YESTERDAY)),
        ("What did I save?", Asked()),
        ("my notes from yesterday", Asked(YESTERDAY)),
        ("show me my notes about sails since Monday", Asked(Period(date(2026, 11, 30)), (), "sails")),
        ("notes tagged #x", Asked(tags=("x",))),
        ("notes tagged boat", Asked(tags=("boat",))),
        ("my notes with #boat and #नाव from last week", Asked(LAST_WEEK, ("boat", "नाव"))),
        ("¿Qué guardé esta semana sobre el aparcamiento?", Asked(THIS_WEEK, (), "el aparcamiento")),
        ("que he guardado sobre parking", Asked(about="parking")),
        ("mis notas de ayer", Asked(YESTERDAY)),
        ("notas con #barco y #vela", Asked(tags=("barco", "vela"))),
        ("Qu'est-ce que j'ai noté cette semaine sur le port ?", Asked(THIS_WEEK, (), "le port")),
        ("mes notes d'hier", Asked(YESTERDAY)),
        ("Was habe ich diese Woche über Parken notiert?", Asked(THIS_WEEK, (), "Parken")),
        ("meine Notizen von gestern", Asked(YESTERDAY)),
        ("o que salvei esta semana sobre estacionamento?", Asked(THIS_WEEK, (), "estacionamento")),
        ("minhas notas de ontem", Asked(YESTERDAY)),
        ("मैंने इस हफ्ते पार्किंग के बारे में क्या नोट किया?", Asked(THIS_WEEK, (), "पार्किंग")),
        ("कल के मेरे नोट्स", Asked(YESTERDAY)),
    ],
)
def test_a_question_about_notes_is_understood(text: str, wanted: Asked) -> None:
    assert asked(text, WEDNESDAY) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "",
        "my notes are a mess",
        "notes on the pool",
        "what did I pay last week?",
        "what did I say about parking?",
        "what did I save on electricity this month?",
        "did I save this week?",
        "¿qué pagué esta semana?",
        "mes notes sont en désordre",
        "meine Notizen sind weg",
        "When is the harbour open this week?",
        f"what did I save about {'x' * 300}?",
    ],
)
def test_anything_else_is_no_question_about_notes(text: str) -> None:
    assert asked(text, WEDNESDAY) is None


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", Asked()),
        ("parking", Asked(about="parking")),
        ("this week #boat", Asked(THIS_WEEK, ("boat",))),
        ("sobre parking", Asked(about="parking")),
    ],
)
def test_after_the_command_any_words_are_what_they_are_about(text: str, wanted: Asked) -> None:
    assert named(text, WEDNESDAY) == wanted


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("today", TODAY),
        ("hoy", TODAY),
        ("the last 7 days", Period(date(2026, 11, 26), WEDNESDAY)),
        ("on Friday", Period(date(2026, 11, 27), date(2026, 11, 27))),
        ("el miércoles", TODAY),
        ("last month", Period(date(2026, 11, 1), date(2026, 11, 30))),
        ("el año pasado", Period(date(2025, 1, 1), date(2025, 12, 31))),
        ("in May", Period(date(2026, 5, 1), date(2026, 5, 31))),
        ("since December 2025", Period(date(2025, 12, 1))),
        ("on 2026-02-28", Period(date(2026, 2, 28), date(2026, 2, 28))),
        ("पिछले हफ्ते", LAST_WEEK),
    ],
)
def test_words_name_days_and_weeks_begin_on_monday(text: str, days: Period) -> None:
    assert period(text, WEDNESDAY) == (days, "")


@pytest.mark.parametrize("text", ["2026-02-30", "the last 99999 days", "about May Smith", "#today", "todayish"])
def test_what_names_no_day_is_left(text: str) -> None:
    assert period(text, WEDNESDAY) == (None, text)


def test_the_last_month_of_january_is_december() -> None:
    assert period("last month", date(2026, 1, 15))[0] == Period(date(2025, 12, 1), date(2025, 12, 31))


def test_a_day_begins_and_ends_at_midnight_where_the_mesh_is() -> None:
    assert YESTERDAY.since == datetime(2026, 12, 1).astimezone()
    assert YESTERDAY.until == datetime(2026, 12, 2).astimezone()
    assert Period(WEDNESDAY).until is None
