import math
from collections.abc import Sequence

from agents.knowledge.replying import Replied, reply
from agents.knowledge.units import Candidate
from mesh.contracts.answers import Line
from mesh.text import sparse_document


async def by_words(texts: Sequence[str]) -> list[list[float]]:
    """A stand-in for a model: texts are near when they share words. Lifted to where the real one's cosines lie."""
    return [_bag(text) for text in texts]


def _bag(text: str) -> list[float]:
    vector = [0.0] * 256
    for index in sparse_document(text)[0]:
        vector[index % 256] += 1.0
    length = math.sqrt(sum(x * x for x in vector)) or 1.0
    return [math.sqrt(0.86), *(math.sqrt(0.14) * x / length for x in vector)]


async def ask(text: str, *passages: str, own: str = "", history: Sequence[Line] = ()) -> Replied:
    async def search(question: str) -> tuple[list[float], list[Candidate]]:
        vector = _bag(question)
        found = []
        for number, passage in enumerate([*passages, own] if own else passages):
            cosine = sum(a * b for a, b in zip(vector, _bag(passage), strict=True))
            found.append(Candidate(str(number), passage, cosine=cosine, score=cosine, own=passage == own))
        return vector, sorted(found, key=lambda candidate: -candidate.score)

    return await reply(text, history, search, by_words)


def quoted(replied: Replied) -> list[str]:
    return [extract.quotation for extract in replied.extracts]


PARKING = "Parking costs 7 euros a night."
BREAKFAST = "Breakfast is served from 7:30 to 10:30."
DEPOSIT = "The deposit for a test ride is 100 euros."


async def test_two_questions_are_answered_from_two_passages() -> None:
    replied = await ask("How much does parking cost and when is breakfast served?", PARKING, BREAKFAST)
    assert quoted(replied) == [PARKING, BREAKFAST]
    assert replied.unanswered == ()


async def test_a_question_without_an_answer_is_named_beside_the_one_that_has_one() -> None:
    replied = await ask("How much does parking cost? Do you rent kayaks?", PARKING)
    assert quoted(replied) == [PARKING]
    assert replied.unanswered == ("Do you rent kayaks?",)


async def test_a_question_whose_subject_is_quoted_is_not_named_as_open() -> None:
    replied = await ask("Do u fix a garage and how much does parking cost?", PARKING + " The garage is dry.")
    assert replied.extracts
    assert replied.unanswered == ()


async def test_what_is_left_open_is_named_in_the_words_of_the_person() -> None:
    replied = await ask("How much is parking and which kayaks are those?", PARKING, BREAKFAST)
    assert replied.unanswered == ("which kayaks are those?",)


async def test_a_remark_beside_a_question_does_not_hide_its_answer() -> None:
    remark = "my niece is coming over with her old red tractor and eleven friends"
    assert quoted(await ask(f"How much does parking cost? {remark}", PARKING)) == [PARKING]


async def test_neighbours_that_the_question_does_not_tell_apart_are_all_quoted() -> None:
    def package(name: str, hours: int) -> Candidate:
        text = f"{hours} hours with one photographer in the package."
        return Candidate(name, text, ("Weddings", name), cosine=0.9, score=0.9)

    async def search(question: str) -> tuple[list[float], list[Candidate]]:
        return _bag(question), [package("Petite", 4), package("Classic", 8)]

    async def answered(known: str) -> list[str]:
        return quoted(await reply("How many hours are in my package?", (), search, by_words, known))

    assert len(await answered("")) == 2
    assert await answered("We booked the Classic package.") == ["8 hours with one photographer in the package."]


async def test_both_things_of_one_question_are_answered() -> None:
    breakfast = "Breakfast costs 9 euros a person."
    assert set(quoted(await ask("How much are parking and breakfast?", PARKING, breakfast))) == {PARKING, breakfast}


async def test_the_same_quotation_is_given_once() -> None:
    whole = "Parking costs 7 euros a night and is open all day."
    assert quoted(await ask("What does parking cost? When is parking open?", whole)) == [whole]


async def test_a_follow_up_is_answered_in_the_light_of_the_question_before() -> None:
    history = (Line(who="person", text="When is the pool open?"),)
    pool, shop = "The pool is open from 10:00 on Sundays.", "The shop is closed on Sundays."
    assert quoted(await ask("and on Sundays?", shop, pool, history=history)) == [pool]


async def test_ones_own_document_answers_a_personal_question_first() -> None:
    own = "Order 77: a deposit of 250 euros was paid."
    assert quoted(await ask("How much deposit have I paid for my order?", DEPOSIT, own=own))[0] == own


async def test_a_slip_of_spelling_finds_its_answer() -> None:
    assert quoted(await ask("brekfast servd when?", PARKING, BREAKFAST)) == [BREAKFAST]


async def test_nothing_is_said_where_no_document_says_it() -> None:
    assert quoted(await ask("Do you rent kayaks?", PARKING, BREAKFAST)) == []


async def test_what_a_thing_is_does_not_hide_what_it_costs() -> None:
    table = "| Job | Price |\n|---|---|\n| Small service | €49 |\n| Wheel truing | €22 |\n"
    meaning = "A small service is how much small work a service has: small service, small price, small work."
    assert any("€49" in each for each in quoted(await ask("How much is a small service?", meaning, table)))
