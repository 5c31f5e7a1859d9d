"""Names, files and messages that were made, or happen, to mislead the channel."""

from __future__ import annotations

import io
from datetime import date
from pathlib import Path

import docx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesh.adapters.media_types import file_name, is_name_of
from mesh.commands import Command, command_of
from mesh.files import word_file
from mesh.links import Links
from tests.people import ASHA

NO_COMMANDS = [
    line.split("\t")
    for line in (Path(__file__).parent / "data" / "languages" / "no_commands.txt").read_text("utf-8").splitlines()
    if line and not line.startswith("#")
]


@pytest.mark.parametrize("language", ["en", "es", "fr", "de", "pt", "hi"])
def test_what_people_say_with_a_commands_word_in_it_is_no_command(language: str) -> None:
    said = [text for spoken, text in NO_COMMANDS if spoken == language]
    assert len(said) >= 40
    assert {text: found for text in said if (found := command_of(text))} == {}


@pytest.mark.parametrize("payload", ["cmd", "cmd:", "cmd:nonsense:a.pdf", "CMD:delete", "cmd :delete", "delete:a.pdf"])
def test_a_button_that_is_none_of_ours_does_nothing(payload: str) -> None:
    assert command_of("", payload) is None


def test_a_buttons_argument_is_a_name_and_never_more() -> None:
    assert command_of("", "cmd:send_file:../../{0.__class__}:x") == Command("send_file", "../../{0.__class__}:x")


# ── names ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "media_type"),
    [("a.zip", "application/zip"), ("setup.exe", "application/octet-stream"), ("data.json", "application/json")],
)
def test_a_file_that_is_refused_has_a_name_too(text: str, media_type: str) -> None:
    """Or its name is answered as if it were a question."""
    assert is_name_of(text, media_type)


@pytest.mark.parametrize(
    "text", ["see example.com", "Is it v2.0", "Please read it.Thanks", "noname", "a.zip\nand why?"]
)
def test_words_beside_a_file_that_is_refused_are_no_name(text: str) -> None:
    assert not is_name_of(text, "application/zip")


def test_two_long_names_that_differ_at_the_end_stay_two() -> None:
    long = "Minutes of the meeting of the harbour board " * 4
    names = {file_name(f"{long}{month}.pdf", "application/pdf", b"", date.min) for month in ("May", "June")}
    assert len(names) == 2
    assert all(name.endswith(".pdf") and len(name) <= 124 for name in names)


@given(st.text(max_size=300), st.text(max_size=300))
def test_a_link_fits_into_a_message(stem: str, extension: str) -> None:
    assert len(Links(b"k" * 32).make("d" * 32, ASHA, f"{stem}.{extension}")) < 1200


def test_a_links_name_keeps_its_extension() -> None:
    assert Links(b"k" * 32).make("d" * 32, ASHA, f"{'नाव' * 60}.docx").endswith(".docx")


# ── an answer as a file ───────────────────────────────────────────────────────────────────────────────────────────


def test_an_answer_as_a_word_file_reads_as_it_was_written() -> None:
    text = '*Prices* & <rates> "now"\n\nकिराया 😀\tzwei  Leerzeichen\n• one'
    read = docx.Document(io.BytesIO(word_file(text)))
    assert [paragraph.text for paragraph in read.paragraphs] == text.split("\n")


@given(st.text())
def test_every_answer_can_be_a_word_file(text: str) -> None:
    docx.Document(io.BytesIO(word_file(text)))
