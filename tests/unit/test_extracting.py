"""What a person states about themselves, and what they only say."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.memory.extracting import LONGEST, MOST, facts_in
from agents.memory.questions import ask

KEPT = [
    ("My favourite colour is blue.", "My favourite colour is blue."),
    ("i am allergic to peanuts", "I am allergic to peanuts."),
    ("I moved to Lyon last month.", "I moved to Lyon last month."),
    ("Hi! We have two children.", "We have two children."),
    ("Please remember that I prefer mornings.", "I prefer mornings."),
    ("Can you remember that I hate olives?", "I hate olives."),
    ("Remember: the gate code is 4411", "The gate code is 4411."),
    ("please call me Bob", "Call me Bob."),
    ("I think my favourite color is red", "My favourite color is red."),
    ("Just so you know, I'm vegan", "I'm vegan."),
    ("Asha is my sister", "Asha is my sister."),
    ("I can't eat gluten", "I can't eat gluten."),
    ("I don't eat pork", "I don't eat pork."),
    ("I need a wheelchair ramp", "I need a wheelchair ramp."),
    ("I got married in June", "I got married in June."),
    ("We booked the Classic package", "We booked the Classic package."),
    ("we took the Signature package", "We took the Signature package."),
    ("My bike is a Bosch, just so you know", "My bike is a Bosch."),
    ("I'm arriving on Friday at 6pm", "I'm arriving on Friday at 6pm."),
    ("I’m a nurse", "I'm a nurse."),
    ("vivo en Sevilla", "Vivo en Sevilla."),
    ("Hola, me llamo Carlos", "Me llamo Carlos."),
    ("Recuerda que mi color favorito es verde", "Mi color favorito es verde."),
    ("मैं दिल्ली में रहता हूँ।", "मैं दिल्ली में रहता हूँ।"),
    ("याद रखना कि मुझे चाय पसंद है", "मुझे चाय पसंद है।"),
]

DROPPED = [
    "", " ", "👍", "Hello!", "Good morning, how are you?", "thanks, that's great", "no thanks", "Yes please",
    "What is my favourite colour?", "what is my favourite colour", "Is my room ready?", "Do I have a booking?",
    "I need the price list", "I want to know about rooms", "I would like to book a room", "I'd like a window seat",
    "can you send me the menu", "Could you call me back?", "Please call me back tomorrow", "call me at 5",
    "remember to call me at 5", "I am here", "I'm waiting", "I'm on my way", "We are in the lobby", "Sorry, I'm late",
    "I have a question", "I don't know", "I can't find the menu", "I paid yesterday", "I have just sent it",
    "I'm going to the shop", "I was thinking about it", "my order is late", "My room is dirty", "I have to go",
    "I'll be back", "The weather is nice.", "It's Max", "Thursday", "Me gustaría reservar una mesa",
    "We took the train", "Tengo una pregunta", "¿Dónde vivo?", "मुझे कमरा चाहिए", "मेरा नाम क्या है?", "मैं ठीक हूँ",
]  # fmt: skip

CORRECTED = [  # said, kept, what it takes back
    ("Actually, my birthday is on 4 May.", "My birthday is on 4 May.", ""),
    ("No. My birthday is 5 May.", "My birthday is 5 May.", ""),
    ("I was wrong, my doctor is Dr. Mehta", "My doctor is Dr. Mehta.", ""),
    ("My favourite colour is green, not blue.", "My favourite colour is green.", "blue"),
    ("My favourite colour isn't blue, it's green", "My favourite colour is green.", "blue"),
    ("Blue isn't my favourite colour anymore, it's red", "My favourite colour is red.", "Blue"),
    ("I moved from Lyon to Grenoble", "I moved to Grenoble.", "Lyon"),
    ("call me Robert, not Bob", "Call me Robert.", "Bob"),
    ("En realidad, vivo en Granada", "Vivo en Granada.", ""),
    ("असल में मेरा पसंदीदा रंग हरा है", "मेरा पसंदीदा रंग हरा है।", ""),
]

LOOSE = [
    ("No, I meant Thursday.", "Thursday", ""),
    ("Sorry, it's green not blue", "green", "blue"),
    ("It's not blue anymore, it's green.", "green", "blue"),
    ("I made a mistake. It's 14.", "14", ""),
    ("make it 8 pm", "8 pm", ""),
    ("It's actually Max", "Max", ""),
    ("It's been moved to Tuesday", "Tuesday", ""),
    ("they moved the wedding to 27 July", "the wedding is 27 July", ""),
]


@pytest.mark.parametrize(("said", "kept"), KEPT)
def test_what_lasts_is_kept_without_its_lead_in(said: str, kept: str) -> None:
    (stated,) = facts_in(said)
    assert (stated.text, stated.corrects, stated.loose) == (kept, False, False)


@pytest.mark.parametrize("said", DROPPED)
def test_questions_requests_greetings_and_passing_states_are_dropped(said: str) -> None:
    assert facts_in(said) == []


@pytest.mark.parametrize(("said", "kept", "old"), CORRECTED)
def test_a_correction_is_flagged_and_does_not_repeat_the_old_value(said: str, kept: str, old: str) -> None:
    (stated,) = facts_in(said)
    assert (stated.text, stated.corrects, stated.instead_of, stated.loose) == (kept, True, old, False)


@pytest.mark.parametrize(("said", "value", "old"), LOOSE)
def test_a_correction_that_means_nothing_alone_is_loose(said: str, value: str, old: str) -> None:
    (stated,) = facts_in(said)
    assert (stated.text, stated.corrects, stated.instead_of, stated.loose) == (value, True, old, True)


def test_several_facts_in_one_message_are_told_apart() -> None:
    said = "Hi! My name is Asha and I live in Lyon. I'm a nurse, and my husband is an engineer; we have 3 kids."
    assert [stated.text for stated in facts_in(said)] == [
        "My name is Asha.",
        "I live in Lyon.",
        "I'm a nurse.",
        "My husband is an engineer.",
        "We have 3 kids.",
    ]


def test_a_pronoun_is_resolved_within_its_sentence() -> None:
    assert [stated.text for stated in facts_in("my kid is called Leo and he's 5")] == [
        "My kid is called Leo.",
        "My kid Leo is 5.",
    ]


def test_a_statement_beside_a_question_is_kept_alone() -> None:
    assert [stated.text for stated in facts_in("I live in Lyon. What is the price of a room?")] == ["I live in Lyon."]


def test_the_same_thing_said_twice_is_one_fact() -> None:
    assert len(facts_in("I live in Lyon. I live in Lyon. i live in lyon!")) == 1


def test_a_document_is_not_taken_for_a_diary() -> None:
    assert facts_in("My contract says " + "very " * LONGEST + "much.") == []
    assert len(facts_in(" ".join(f"I like dish{letter * 3}." for letter in map(chr, range(97, 123))))) == MOST


@given(st.text(max_size=600))
def test_any_text_is_taken_without_an_error(text: str) -> None:
    assert all(stated.text for stated in facts_in(text))
    ask(text)


@pytest.mark.parametrize(
    "piece",
    ["my ", "no, ", "I'm ", "not a, ", "the a of my b ", "it's not a, ", "i have ", "remember that ", "a is my "],
)
def test_a_sentence_made_to_be_slow_is_not(piece: str) -> None:
    began = time.perf_counter()
    facts_in(piece * (LONGEST // len(piece)))
    ask(piece * 2_000)
    assert time.perf_counter() - began < 1
