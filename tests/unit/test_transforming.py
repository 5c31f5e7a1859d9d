"""What is done to a question before it is searched for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.knowledge.acronyms import definitions, expanded
from agents.knowledge.hypothesis import Hypothesis
from agents.knowledge.standalone import Standalone
from agents.knowledge.transforming import Transforming
from mesh.contracts.answers import Line
from mesh.errors import Unavailable
from mesh.ports.models import Vector

NORMANS = (Line(who="person", text="Where did the leader Rollo come from?"), Line(who="mesh", text="From Norway."))


class Chat:
    """Answers what it is told to; None: it is down."""

    model, window = "scripted", 4_000

    def __init__(self, answer: Any) -> None:
        self._answer = answer
        self.asked: list[str] = []

    async def answer(self, system: str, prompt: str, shape: type[Any]) -> Any:
        self.asked.append(prompt)
        if self._answer is None:
            raise Unavailable
        return self._answer

    async def probe(self) -> None: ...
    async def close(self) -> None: ...


class Embedder:
    dims, model = 2, "m"

    async def documents(self, texts: Sequence[str]) -> list[Vector]:
        return [[0.0, 1.0] for _ in texts]

    queries = alike = documents

    async def probe(self) -> None: ...
    async def close(self) -> None: ...


# ── follow-ups ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("text", ["When did he die?", "What was his wife called?", "Who fought against them?"])
async def test_what_points_back_is_asked_with_the_names_of_the_question_before(text: str) -> None:
    assert await Transforming().alone(text, NORMANS) == f"{text} (Rollo)"


async def test_without_names_the_words_of_the_question_before_are_taken() -> None:
    history = (Line(who="person", text="how much is the deluxe room?"),)
    assert await Transforming().alone("does it have a balcony?", history) == "does it have a balcony? (deluxe room)"


async def test_it_looks_past_a_question_that_points_back_itself() -> None:
    history = (*NORMANS, Line(who="person", text="was he a christian?"), Line(who="mesh", text="He was baptised."))
    assert (await Transforming().alone("Where was he baptised?", history)).endswith("(Rollo)")


@pytest.mark.parametrize(("text", "named"), [("¿Cuándo murió ella?", "Rollo"), ("वह कब मरा?", "Rollo")])
async def test_it_does_so_in_spanish_and_hindi(text: str, named: str) -> None:
    assert named in await Transforming().alone(text, NORMANS)


@pytest.mark.parametrize("text", ["When does the pool open?", "Is it possible to pay by card?", "Who is Rollo?"])
async def test_a_question_that_stands_alone_is_left_as_it_is(text: str) -> None:
    assert await Transforming().alone(text, NORMANS) == text


async def test_a_first_question_has_nothing_to_point_to() -> None:
    assert await Transforming().alone("When did he die?", ()) == "When did he die?"


async def test_a_chat_model_may_say_what_is_meant() -> None:
    chat = Chat(Standalone(question="When did Rollo of Normandy die?"))
    assert await Transforming(chat=chat).alone("When did he die?", NORMANS) == "When did he die? (Rollo Normandy)"


async def test_without_an_answer_of_the_chat_model_the_rules_say_it() -> None:
    assert await Transforming(chat=Chat(None)).alone("When did he die?", NORMANS) == "When did he die? (Rollo)"


async def test_a_chat_model_is_not_asked_for_what_stands_alone() -> None:
    chat = Chat(Standalone(question="?"))
    await Transforming(chat=chat).alone("When does the pool open?", NORMANS)
    assert chat.asked == []


# ── acronyms ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("See the service level agreement (SLA) below.", {"SLA": "service level agreement"}),
        ("The SLA (Service Level Agreement) holds.", {"SLA": "Service Level Agreement"}),
        ("the Bank of the South (BS)", {"BS": "Bank of the South"}),
        ("impuesto sobre el valor (ISV)", {"ISV": "impuesto sobre el valor"}),
        ("several service level agreements (SLAs)", {"SLA": "service level agreements"}),
        ("it rained in the end (SLA)", {}),
        ("no brackets at all, SLA", {}),
    ],
)
def test_the_documents_say_what_an_acronym_stands_for(text: str, known: dict[str, str]) -> None:
    assert definitions([text]) == known


def test_an_acronym_is_written_out_once() -> None:
    known = {"SLA": "service level agreement"}
    assert expanded("What is in the SLA?", known) == "What is in the SLA? (service level agreement)"
    assert expanded("Is the service level agreement an SLA?", known) == "Is the service level agreement an SLA?"
    assert expanded("What is in the slat?", known) == "What is in the slat?"


@given(st.lists(st.text(alphabet="ABab (),.", max_size=40), max_size=4), st.text(alphabet="ABab ?", max_size=20))
def test_what_is_written_out_is_not_written_out_again(found: list[str], question: str) -> None:
    once = Transforming().expanded(question, found)
    assert once.startswith(question)
    assert Transforming().expanded(once, found) == once


# ── a made-up answer ──────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_made_up_answer_draws_the_question_towards_it() -> None:
    chat = Chat(Hypothesis(passage="The pool opens at nine."))
    asking = Transforming(frozenset({"hyde"}), chat)
    drawn = await asking.towards_an_answer("?", [1.0, 0.0], Embedder())
    assert math.hypot(*drawn) == pytest.approx(1)
    assert 0 < drawn[1] < drawn[0], "towards it, and still the question"


async def test_nothing_is_made_up_unless_it_is_wanted() -> None:
    chat = Chat(Hypothesis(passage="The pool opens at nine."))
    assert await Transforming(chat=chat).towards_an_answer("?", [1.0, 0.0], Embedder()) == [1.0, 0.0]
    assert chat.asked == []


async def test_a_chat_model_that_is_down_leaves_the_question_as_it_is() -> None:
    asking = Transforming(frozenset({"hyde"}), Chat(None))
    assert await asking.towards_an_answer("?", [1.0, 0.0], Embedder()) == [1.0, 0.0]


# ── switched off ──────────────────────────────────────────────────────────────────────────────────────────────────


async def test_each_can_be_switched_off() -> None:
    off = Transforming(frozenset())
    two = "How much is the suite and is breakfast included?"
    assert len(Transforming().parts(two)) == 2
    assert off.parts(two) == (two,)
    assert await off.alone("When did he die?", NORMANS) == "When did he die?"
    assert off.expanded("the SLA?", ["service level agreement (SLA)"]) == "the SLA?"
