"""What things are called, and where a text names them."""

from __future__ import annotations

import pytest

from mesh.names import forms, named_in, names_of
from mesh.ports.documents import Chunk


def called(file: str, *headings: str, text: str = "") -> tuple[str, ...]:
    return names_of(file, Chunk(0, text, headings))


@pytest.mark.parametrize(
    ("title", "written"),
    [
        ("Willow (film)", "She was in Willow, too."),
        ("Alix of Brittany, Dame de Pontarcy", "Her mother was Alix of Brittany."),
        ("Lau Kar-wing", "It was directed by Lau Kar-Wing."),
        ("José Ferreyra", "Directed by Jose Ferreyra."),
        ("The Last Starfighter", "Nick Castle made The Last Starfighter in 1984."),
        ("ताज महल", "यमुना के किनारे ताज महल है।"),
    ],
)
def test_a_text_names_what_is_called_so(title: str, written: str) -> None:
    assert set(called("c00012.md", title)) & named_in(written).keys()


def test_a_passage_is_called_what_its_file_and_its_outermost_and_innermost_headings_say() -> None:
    titled = called("anna/Guest guide.pdf", "Lakeside", "Stay", "Parking", text="Rooms are quiet.")
    assert titled == tuple(name for title in ("Guest guide", "Lakeside", "Parking") for name in forms(title))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Ted Wilde (1889-1929) was a director of comedies.", "Ted Wilde"),
        ("The Count of Monte Cristo is a novel.", "The Count of Monte Cristo"),
        ('"Caliente" is a song.', "Caliente"),
        ("Grand Hotel, Vienna, has 60 rooms.", "Grand Hotel"),
    ],
)
def test_where_nothing_else_does_the_beginning_of_a_text_says_what_it_is_called(text: str, name: str) -> None:
    assert called("c00012.md", text=text) == forms(name)
    assert names_of("c00012.md", Chunk(1, text)) == (), "only the first passage begins with it"


def test_a_text_that_begins_with_no_name_has_none() -> None:
    assert called("IMG_2044.pdf", text="see below for all that. Ted Wilde") == ()
    assert called("IMG_2044.pdf") == ()


def test_function_words_are_no_name() -> None:
    assert called("c1.md", "The Who") == ()


@pytest.mark.parametrize("text", ["Directed by nobody.", "It is of the same year.", ""])
def test_a_word_in_small_letters_or_at_the_start_alone_is_no_name(text: str) -> None:
    assert not named_in(text)


def test_in_a_chat_a_name_of_several_words_may_be_in_small_letters() -> None:
    (wanted,) = forms("Loose Ankles")
    assert wanted in named_in("who directed loose ankles?", small=True)
    assert wanted not in named_in("who directed loose ankles?")


def test_a_name_comes_with_the_sentence_that_it_stands_in() -> None:
    named = named_in("Loose Ankles is a film. It was directed by Ted Wilde.")
    assert named[forms("Ted Wilde")[0]] == "It was directed by Ted Wilde."
