"""The second hop: which names are looked up, and where what is called so comes to stand."""

from __future__ import annotations

from datetime import UTC, datetime

from agents.knowledge.hopping import PLACES, bonds, hopped, merged
from mesh.names import forms
from mesh.ports.documents import Chunk
from mesh.ports.passages import Passage

(TED_WILDE,), (NEW_YORK,), (LOOSE_ANKLES,) = forms("Ted Wilde"), forms("New York"), forms("Loose Ankles")
QUESTION = "Where is the director of the film Loose Ankles buried?"


def passage(title: str, text: str, number: int = 0) -> Passage:
    chunk = Chunk(0, text, (title,))
    return Passage(f"d-{title}", f"asha/c{number:05}.md", chunk, 0.8, 0.0, datetime(2026, 1, 1, tzinfo=UTC))


FILM = passage("Loose Ankles", "Loose Ankles is a comedy film directed by Ted Wilde. It was shown in New York.")
WILDE = passage("Ted Wilde", "Ted Wilde lies at Forest Lawn.")
OTHERS = [passage(f"Film {number}", "Some film.", number) for number in range(2, 8)]


def order(found: list[Passage], looked_up: list[Passage], strength: dict[str, float]) -> list[str]:
    every = [*found, *looked_up]
    scores = [0.9 - 0.01 * place for place in range(len(found))] + [0.7] * len(looked_up)
    places = hopped(every, scores, found=len(found), strength=strength, unit=0.02)
    assert sorted(places) == list(range(len(every)))
    return [every[place].chunk.heading_path[0] for place in places]


def test_a_name_in_the_sentence_that_says_what_is_asked_is_worth_more() -> None:
    strength = bonds(QUESTION, [FILM])
    assert strength[TED_WILDE] > strength[NEW_YORK] > 0


def test_a_passage_that_leaves_nothing_open_leads_nowhere() -> None:
    whole = passage("Loose Ankles", "The director of the film is buried where Ted Wilde is.")
    assert TED_WILDE not in bonds(QUESTION, [whole])


def test_a_passage_whose_subject_is_named_in_the_question_leads_further() -> None:
    other = passage("Tight Ankles", FILM.chunk.text)
    assert bonds(QUESTION, [FILM])[TED_WILDE] > bonds(QUESTION, [other])[TED_WILDE]


def test_a_passage_does_not_lead_to_itself() -> None:
    assert LOOSE_ANKLES not in bonds("Where is the director of that film buried?", [FILM])


def test_what_a_found_passage_names_comes_among_the_first_and_the_first_stays() -> None:
    told = order([FILM, *OTHERS], [WILDE], bonds(QUESTION, [FILM, *OTHERS]))
    assert told[0] == "Loose Ankles"
    assert "Ted Wilde" in told[:PLACES]


def test_what_the_search_had_found_stands_before_what_was_looked_up() -> None:
    told = order([FILM, *OTHERS], [WILDE], {TED_WILDE: 100.0})
    assert told[:PLACES] == ["Loose Ankles", "Film 2", "Film 3", "Film 4", "Ted Wilde"]


def test_without_a_name_to_look_up_the_order_is_as_it_was() -> None:
    assert order([FILM, *OTHERS], [], {}) == ["Loose Ankles", *(f"Film {number}" for number in range(2, 8))]


def test_of_many_passages_of_one_name_the_best_alone_is_lifted() -> None:
    guide = [passage("Ted Wilde", "Something else.", number) for number in range(20, 24)]
    every = [FILM, *OTHERS, *guide]
    scores = [0.9 - 0.01 * place for place in range(len(every))]
    places = hopped(every, scores, found=len(OTHERS) + 1, strength={TED_WILDE: 100.0}, unit=0.02)
    assert sum(every[place].chunk.heading_path == ("Ted Wilde",) for place in places[:PLACES]) == 1


def test_a_name_counts_for_less_a_step_further_but_never_for_less_than_before() -> None:
    once = merged({}, {TED_WILDE: 10.0}, 0)
    twice = merged(once, {TED_WILDE: 10.0, NEW_YORK: 10.0}, 1)
    assert once == {TED_WILDE: 10.0}
    assert twice[TED_WILDE] == 10.0
    assert 0 < twice[NEW_YORK] < 10.0
