"""What a question becomes when a passage names who or what it describes."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agents.knowledge.chaining import steps
from agents.knowledge.units import Candidate

COURSES = """| Course | Teacher | Day |
|---|---|---|
| Spanish A2 | Ana Ruiz | Monday |
| French B1 | Luc Martin | Tuesday |
"""
BOATS = "Our largest boat is the Albatros. The Seagull is our oldest boat; it was built in 1961."
SEAGULL = Candidate("s", "The Seagull takes 12 people. Its skipper is Ida Holm.", heading_path=("The boats", "Seagull"))


def again(question: str, *passages: str | Candidate) -> list[str]:
    found = [each if isinstance(each, Candidate) else Candidate(str(n), each) for n, each in enumerate(passages)]
    return [step.question for step in steps(question, found)]


@pytest.mark.parametrize(
    ("question", "passage", "expected"),
    [
        ("How much does the largest boat cost?", BOATS, "How much does Albatros cost?"),
        ("How many people does the oldest boat take?", BOATS, "How many people does Seagull take?"),
        ("What is the phone number of the skipper of the Seagull?", SEAGULL, "What is the phone number of Ida Holm?"),
        ("How old is the Seagull's skipper?", SEAGULL, "How old is Ida Holm?"),
        ("What does the Monday course cost?", COURSES, "What does Spanish A2 cost?"),
        ("How much is the course that Ana Ruiz teaches?", COURSES, "How much is Spanish A2?"),
        ("How much is a lesson with the teacher of French B1?", COURSES, "How much is a lesson with Luc Martin?"),
        (
            "Where is the director of the film Loose Ankles buried?",
            "Loose Ankles is a 1930 film directed by Ted Wilde.",
            "Where is Ted Wilde buried?",
        ),
        (
            "What is the extension of the person who does the refunds?",
            "Dr. Anna Keller does the refunds.",
            "What is the extension of Anna Keller?",
        ),
        (
            "What is the extension of the person who does the refunds?",
            "Anna Keller came in 2015. She does the refunds.",
            "What is the extension of Anna Keller?",
        ),
        (
            "What languages does our hygienist speak?",
            "The hygienist Maria Lopez is here on Mondays.",
            "What languages does Maria Lopez speak?",
        ),
        (
            "On which days does the leader of the remembrance walk work?",
            "The remembrance walk in November is led by Alan and starts at the weir.",
            "On which days does Alan work?",
        ),
        (
            "In which room is the person with whom instalments can be agreed?",
            "Instalments can be agreed with Miriam, over at most twelve months.",
            "In which room is Miriam?",
        ),
        (
            "What is the phone number of the person who leads the hanging baskets workshop?",
            "| Workshop | With | Price |\n|---|---|---|\n| Hanging baskets | Rob | 20 |\n| Orchids | Yuki | 15 |\n",
            "What is the phone number of Rob?",
        ),
        (
            "Which telephone number has the leader of the bereavement group?",
            Candidate("1", "It meets on the first Thursday. Led by Sunita.", heading_path=("Bereavement group",)),
            "Which telephone number has Sunita?",
        ),
        ("¿Cuánto cuesta el barco más grande?", "El barco más grande es el Albatros.", "¿Cuánto cuesta Albatros?"),
        ("Was kostet das größte Boot?", "Das größte Boot ist die Albatros.", "Was kostet Albatros?"),
    ],
)
def test_the_name_takes_the_place_of_the_description(question: str, passage: str | Candidate, expected: str) -> None:
    assert again(question, passage)[:1] == [expected]


@pytest.mark.parametrize(
    ("question", "passage"),
    [
        ("How much does the smallest boat cost?", BOATS),  # of which nothing is said
        ("What does a lesson with the teacher of Italian A1 cost?", COURSES),
        ("Who is the skipper of the Seagull?", SEAGULL),  # all of it is said there
        ("What is the name of the skipper of the Seagull?", SEAGULL),
        ("How much does the double room cost?", "Double rooms look at the Zugspitze."),  # which is no double room
        ("Which languages does Ida Holm speak?", "Ida Holm speaks Danish."),  # which is nobody
        ("When does the course begin?", "The course is on Monday."),
        ("What does the teacher earn?", COURSES),  # one of two
        ("What is the number of the hotel?", "The hotel: hotel@example.com"),
        (
            "What organization was led by Hasan?",
            "The Brotherhood, led by Hasan, stayed calm.",
        ),  # whose name is asked for
        (
            "When was Paul of Thurn's father born?",
            "Paul of Thurn was a son of Karl Anselm.",
        ),  # a name, and no description
        ("When was the film Evidence first shown?", "Evidence is a 1915 American film."),
        ("Which rule is there for the kennel?", "However, the kennel is closed."),
        ("Name a model that became popular.", "The Cadillac DeVille became popular."),  # any one
        ("", BOATS),
        ("?", ""),
    ],
)
def test_nothing_is_put_in_the_place_of_what_is_not_named(question: str, passage: str | Candidate) -> None:
    assert again(question, passage) == []


def test_passages_beyond_the_first_few_are_not_read() -> None:
    assert again("How much does the largest boat cost?", *["The harbour is closed."] * 4, BOATS) == []


def test_a_message_that_is_long_is_not_taken_apart() -> None:
    assert again("Hello! " * 60 + "How much does the largest boat cost?", BOATS) == []


WORDS = st.sampled_from(
    ["the", "of", "who", "boat", "Boat", "Ida Holm", "is", "'s", "(", ")", ",", ".", "?", "|", "\n", "she"]
)
WRITTEN = st.one_of(st.text(max_size=80), st.lists(WORDS, max_size=20).map(" ".join))


@given(WRITTEN, WRITTEN)
@example("Who is the boat's (who", "She is the boat. She")
def test_whatever_is_written_is_taken_apart_or_left_alone(question: str, passage: str) -> None:
    for asked in again(question, passage):
        assert asked != question
        assert len(asked) < len(question) + len(passage) + 1
