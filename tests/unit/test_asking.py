import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.knowledge.asking import follow_up, left_out, respelled
from mesh.contracts.answers import Line
from mesh.questions import MOST_PARTS, is_personal, parts
from mesh.text import words

POOL = (Line(who="person", text="When is the pool open?"), Line(who="mesh", text="From 9:00 to 20:00."))


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("How much is the suite and is breakfast included?", ("How much is the suite", "is breakfast included?")),
        ("Where is the shop? When does it open?", ("Where is the shop?", "When does it open? (shop)")),
        ("What does the tour cost and how long is it?", ("What does the tour cost", "how long is it? (tour cost)")),
        ("I need the menu and what does delivery cost", ("I need the menu", "what does delivery cost")),
        ("¿Cuánto cuesta el curso y cuándo empieza?", ("¿Cuánto cuesta el curso", "cuándo empieza? (cuesta curso)")),
    ],
)
def test_a_message_is_taken_apart_into_questions_that_stand_alone(text: str, asked: tuple[str, ...]) -> None:
    assert parts(text) == asked


@pytest.mark.parametrize(
    "text",
    [
        "When and where was he born?",
        "Who founded the firm and is known for it?",
        "What are your terms and conditions?",
        "Hi! When is check-in? Thanks.",
        "bed and breakfast",
    ],
)
def test_one_question_is_left_as_it_is(text: str) -> None:
    assert parts(text) == (text,)


@given(st.text(max_size=80))
def test_whatever_is_written_has_a_few_questions(text: str) -> None:
    assert 1 <= len(parts(text)) <= MOST_PARTS


def test_what_is_only_different_is_asked_together_with_the_question_before() -> None:
    assert follow_up("and on Sundays?", POOL) == ("When is the pool open? on Sundays?", frozenset(words("sundays")))
    assert follow_up("what about children?", POOL) is not None


@pytest.mark.parametrize("text", ["and do you have parking?", "Sundays?", "And is it heated in the cold months?"])
def test_a_question_of_its_own_follows_on_nothing(text: str) -> None:
    assert follow_up(text, POOL) is None


def test_without_a_question_before_nothing_follows() -> None:
    assert follow_up("and on Sundays?", ()) is None


def test_the_half_that_an_answer_leaves_out_is_asked_again() -> None:
    text = "How much are parking and breakfast?"
    assert left_out(text, frozenset(words("Parking costs 7 euros."))) == "How much are  breakfast?"
    assert left_out(text, frozenset(words("Breakfast costs 9 euros."))) == "How much are parking"


def test_nothing_is_asked_again_when_both_halves_or_none_are_answered() -> None:
    text = "How much are parking and breakfast?"
    assert left_out(text, frozenset(words("Parking costs 7 euros, breakfast costs 9."))) is None
    assert left_out(text, frozenset(words("The pool is open."))) is None


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("prise of the delxue room", "price of the deluxe room"),
        ("wheel truign", "wheel truing"),
        ("tandems", "tandems"),
    ],
)
def test_a_slip_of_spelling_becomes_the_word_of_the_documents(written: str, meant: str) -> None:
    assert respelled(written, ["Deluxe room", "Wheel truing", "random rentals"]) == meant


def test_a_word_that_the_documents_know_is_never_changed() -> None:
    assert respelled("What do houses cost?", ["houses and hours", "houses"]) == "What do houses cost?"


def test_my_and_our_are_personal() -> None:
    assert is_personal("When is my order ready?")
    assert is_personal("¿Cuál es nuestra tarifa?")
    assert not is_personal("When is the order ready?")
