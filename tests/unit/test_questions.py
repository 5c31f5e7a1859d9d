import pytest

from mesh.questions import as_written, parts, questions_alone, tidied


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("hi do u fix punctures lol", "do you fix punctures"),
        ("can my nephew come, hes 10", "can my nephew come, he's 10"),
        ("hello", "hello"),
        ("Is the Hi-Fi room free?", "Is the Hi-Fi room free?"),
    ],
)
def test_the_small_words_of_chats_are_left_out(text: str, plain: str) -> None:
    assert tidied(text) == plain


def test_a_question_that_begins_with_whats_is_one() -> None:
    text = "When do you close on Saturday and whats your phone number?"
    assert parts(text) == ("When do you close on Saturday", "whats your phone number?")


def test_a_part_is_told_as_it_was_written() -> None:
    asked = parts("How much is the e-bike service and which brands are those?")
    assert [as_written(part) for part in asked] == ["How much is the e-bike service", "which brands are those?"]
    assert "e-bike service" in asked[1]
    assert "much" not in asked[1]


def test_the_questions_stand_alone_without_the_remarks() -> None:
    assert questions_alone("Do you take puppies? She is 12 weeks old.") == "Do you take puppies?"
    assert questions_alone("We booked the 9.30 tour. When does it end?") == "When does it end?"
    assert questions_alone("no question here") == "no question here"
