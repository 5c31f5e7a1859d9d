import pytest

from agents.knowledge.weekdays import days_in
from mesh.text import words


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("Tue-Fri 9-5", "tuesday wednesday thursday friday"),
        ("Mon, Wed: 8:30", "monday wednesday"),
        ("open from Friday to Monday", "friday saturday sunday monday"),
        ("de sábado a domingo", "sábado domingo"),
        ("weekends only", "saturday sunday"),
        ("the sun is out, he sat down, el mar", ""),
    ],
)
def test_a_span_of_days_has_every_day_in_it(text: str, days: str) -> None:
    assert days_in(text) == frozenset(words(days))
