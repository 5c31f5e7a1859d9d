import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from agents.orchestrator import words
from mesh.adapters import fetching
from mesh.catalogue import LANGUAGES, checked, placeholders, say, say_error
from mesh.commands import Command, command_of
from mesh.contracts.answers import Source
from mesh.errors import Denied, MeshError, Misconfigured, Unavailable, rebuild
from mesh.settings import ROOT
from mesh.text import language

FOLDER = ROOT / "mesh" / "catalogue"
CATALOGUE: dict[str, dict[str, str]] = {
    code: yaml.safe_load((FOLDER / f"{code}.yaml").read_text("utf-8")) for code in LANGUAGES
}
KEYS = sorted(CATALOGUE["en"])
OTHERS = [code for code in LANGUAGES if code != "en"]
SOURCES = [*(ROOT / "mesh").rglob("*.py"), *(ROOT / "agents").rglob("*.py")]
COMMANDS_SHOWN = (
    "help first_contact opted_out forget_ask document_replies document_replies_publisher document_which no_such_file "
    "may_not_add_documents note_undo note_ask save_nothing save_gone notes_none notes_more"
)


def filled(key: str, code: str) -> str:
    return say(key, code, **dict.fromkeys(placeholders(CATALOGUE[code][key]), "x"))


# ── the six files ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_file_has_the_same_keys_and_fills_in_the_same_things() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.yaml")) == sorted(LANGUAGES)
    assert checked(CATALOGUE) == CATALOGUE


@pytest.mark.parametrize("code", LANGUAGES)
def test_no_key_stands_twice_in_a_file(code: str) -> None:
    keys = re.findall(r"^(\w+):", (FOLDER / f"{code}.yaml").read_text("utf-8"), re.MULTILINE)
    assert sorted(keys) == KEYS


@pytest.mark.parametrize(
    ("other", "named"),
    [
        ({"a": "ein {x}"}, "b"),
        ({"a": "ein {x}", "b": "zwei", "c": "drei"}, "c"),
        ({"a": "ein {y}", "b": "zwei"}, "a"),
        ({"a": "ein {x}", "b": "zwei {}"}, "b"),
        ({"a": "ein {x}", "b": ""}, "de.yaml"),
        (["a", "b"], "de.yaml"),
        (None, "de.yaml"),
    ],
)
def test_a_file_that_differs_is_refused_by_its_first_fault(other: object, named: str) -> None:
    with pytest.raises(Misconfigured) as refused:
        checked({"en": {"a": "one {x}", "b": "two"}, "de": other})
    assert named in refused.value.detail


@pytest.mark.parametrize("code", LANGUAGES)
def test_no_text_holds_anything_that_could_be_taken_for_an_answer(code: str) -> None:
    for key, text in CATALOGUE[code].items():
        assert not re.search(r"\d|[$€₹£]|https?:|www\.", text), f"{code} {key}"


@pytest.mark.parametrize("code", LANGUAGES)
def test_texts_are_short_whole_and_in_whatsapps_form(code: str) -> None:
    for key, text in CATALOGUE[code].items():
        assert text == text.strip(), f"{code} {key}"
        assert len(text) <= (900 if key in ("help", "first_contact") else 250), f"{code} {key}"
        assert not re.search(r"\*\*|__|^#|\]\(|`", text, re.MULTILINE), f"{code} {key}"
        assert text.count("*") % 2 == 0, f"{code} {key}"


@pytest.mark.parametrize("code", OTHERS)
def test_nothing_is_left_in_english(code: str) -> None:
    may_be_alike = {"why_line", "source_label"}
    alike = {key for key in KEYS if CATALOGUE[code][key] == CATALOGUE["en"][key]} - may_be_alike
    assert not alike
    told = {key: language(re.sub(r"\{\w+\}", "", CATALOGUE[code][key])) for key in KEYS if key not in may_be_alike}
    assert {key: spoken for key, spoken in told.items() if spoken not in (code, None)} == {}


@pytest.mark.parametrize("code", LANGUAGES)
def test_every_command_that_a_text_offers_is_one(code: str) -> None:
    for key in COMMANDS_SHOWN.split():
        shown = re.findall(r"\*([^*{}]+)\*", CATALOGUE[code][key])
        assert shown
        assert [word for word in shown if command_of(word) is None] == [], f"{code} {key}"


@pytest.mark.parametrize("code", LANGUAGES)
def test_the_help_lists_every_command_and_forgetting_is_confirmed_in_full(code: str) -> None:
    listed = [command_of(word) for word in re.findall(r"\*([^*]+)\*", say("help", code))]
    assert {command.name for command in listed if command} >= {
        *("help", "why", "files", "mydata", "forget", "human", "cancel", "stop", "start", "note", "notes")
    }
    everything, one = (command_of(word) for word in re.findall(r"\*([^*]+)\*", say("forget_ask", code)))
    assert everything == Command("forget", "all")
    assert one
    assert one.argument not in ("", "all")
    assert re.findall(r"\*(STOP)\*", say("first_contact", code, days=7)) == ["STOP"]


# ── saying ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_it_is_said_in_the_language_that_was_asked_for() -> None:
    assert say("thanks", "es") == "¡De nada!"
    assert say("thanks", "pt-BR") == say("thanks", "pt") == "De nada!"
    assert say("too_many", "de", count=3).startswith("Das war mehr, als ich auf einmal aufnehmen kann: 3")


@pytest.mark.parametrize("code", [None, "", "ja", "xx", "zh-Hans"])
def test_it_is_said_in_english_where_the_language_is_unknown(code: str | None) -> None:
    assert say("thanks", code) == "You're welcome!"


def test_what_is_filled_in_is_not_read_again() -> None:
    assert "{name} {0} %s" in say("voice_heard", "fr", text="{name} {0} %s")


def test_a_key_or_a_value_that_is_missing_is_a_defect() -> None:
    with pytest.raises(KeyError):
        say("nonsense", "en")
    with pytest.raises(KeyError):
        say("too_many", "en")


@pytest.mark.parametrize("kind", MeshError.__subclasses__(), ids=lambda kind: kind.code)
@pytest.mark.parametrize("code", OTHERS)
def test_an_errors_usual_words_are_said_in_the_persons_language(kind: type[MeshError], code: str) -> None:
    said = say_error(kind.code, kind.default, code)
    assert said != kind.default
    assert say_error(kind.code, kind.default, "en") == say_error(kind.code, kind.default, None) == kind.default
    if rebuild(kind.code, "").code == kind.code:
        assert said == say(f"error_{kind.code}", code)


def test_an_errors_own_words_stay_as_they_are() -> None:
    assert say_error("denied", "Ask Asha, please.", "es") == "Ask Asha, please."
    assert say_error("denied", Unavailable.default, "es") == Unavailable.default
    assert say_error("nonsense", Denied.default, "es") == Denied.default


@pytest.mark.parametrize("text", [fetching.GONE, fetching.ELSEWHERE, fetching.UNKNOWN_TYPE, fetching.NOT_NOW])
@pytest.mark.parametrize("code", OTHERS)
def test_what_an_adapter_says_of_a_file_is_said_in_the_persons_language(text: str, code: str) -> None:
    assert say_error("unreadable", text, code) in CATALOGUE[code].values()


def test_what_an_adapter_fills_in_is_kept() -> None:
    text = "That file is too large: I can take up to 16.8 MB. Please send a smaller one, or a part of it."
    assert say_error("unreadable", text, "en") == text
    assert "16.8 Mo" in say_error("unreadable", text, "fr")


# ── who says it ───────────────────────────────────────────────────────────────────────────────────────────────────


def said_in(source: Path) -> Iterator[tuple[str, set[str]]]:
    """Keys that are written out, with the values that go with them."""
    for node in ast.walk(ast.parse(source.read_text("utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        key = node.args[0] if node.args else None
        if name != "say" or not isinstance(key, ast.Constant) or not isinstance(key.value, str):
            continue
        if key.value in KEYS:
            yield key.value, {word.arg or "" for word in node.keywords}
        elif isinstance(node.func, ast.Name):
            raise AssertionError(f"{source}:{node.lineno} says {key.value}, which is not in the catalogue")


def test_everything_that_is_said_is_in_the_catalogue_with_what_it_needs() -> None:
    for source in SOURCES:
        for key, values in said_in(source):
            assert values == placeholders(CATALOGUE["en"][key]), f"{source}: {key}"


@pytest.mark.parametrize("code", LANGUAGES)
def test_the_orchestrator_says_its_words_in_each_language(code: str) -> None:
    assert {say(key, code) for _, key in words.SMALL_TALK.values()} <= set(CATALOGUE[code].values())
    assert words.without_a_search("cancel", code) == say("nothing_to_cancel", code)
    assert words.without_a_search("cancelled", code, file=True) == say("cancelled_file", code)
    assert words.without_a_search("command", code) is None
    assert words.too_many(1, code) == say("too_many_one", code)
    assert words.too_many(4, code) == say("too_many", code, count=4)
    source = Source(kind="document", name="a.md")
    assert words.with_source("Yes.", (source,), code) == f"Yes.\n\n_{say('source_label', code)}: a.md_"


def test_every_text_can_be_filled_in() -> None:
    for code in LANGUAGES:
        for key in KEYS:
            assert "{" not in filled(key, code)
