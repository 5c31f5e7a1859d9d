"""Meta or Twilio: the settings take one of them, whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from mesh.adapters.meta import MetaChannel
from mesh.adapters.twilio import TwilioChannel
from mesh.bus import Bus
from mesh.errors import Misconfigured
from mesh.settings import META_SETTINGS, Settings, load
from mesh.up import _environment, _lower
from mesh.wiring import Parts

META = {
    "META_ACCESS_TOKEN": "EAAN6",
    "META_APP_SECRET": "s3cret",
    "META_VERIFY_TOKEN": "a word",
    "META_PHONE_NUMBER_ID": "106540352242922",
    "META_NUMBER": "+15550783881",
    "PUBLIC_URL": "https://mesh.example.com",
}
TWILIO = {"TWILIO_ACCOUNT_SID": "AC1", "TWILIO_AUTH_TOKEN": "x", "PUBLIC_URL": "https://mesh.example.com"}


@pytest.fixture(autouse=True)
def clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("ADIYAN_CONFIG", str(tmp_path))
    (tmp_path / "mesh.yaml").write_text("{}\n")


def given(monkeypatch: pytest.MonkeyPatch, values: dict[str, str]) -> None:
    for name, value in values.items():
        monkeypatch.setenv(name, value)


def sentence() -> str:
    with pytest.raises(Misconfigured) as caught:
        load()
    return caught.value.user_text


def test_with_meta_the_numbers_are_those_at_meta(monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, {**META, "META_NUMBERS": "+15550783882=222222 +15550783883=333333"})
    settings = load()
    assert settings.numbers == ("+15550783881", "+15550783882", "+15550783883")
    assert settings.number == "+15550783881"
    assert settings.meta_ids["+15550783882"] == "222222"


def test_without_it_they_are_those_at_twilio() -> None:
    assert load().number == "+14155238886"


def test_both_providers_at_once_stop_start_up(monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, {**META, **TWILIO})
    told = sentence()
    assert "META_ACCESS_TOKEN" in told
    assert "TWILIO_ACCOUNT_SID" in told


@pytest.mark.parametrize("missing", [*META_SETTINGS, "public_url"])
def test_half_of_meta_stops_start_up_and_names_what_is_missing(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    given(monkeypatch, {name: value for name, value in META.items() if name != missing.upper()})
    assert missing.upper() in sentence()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("META_NUMBER", "15550783881"),
        ("META_PHONE_NUMBER_ID", "+15550783881"),
        ("META_NUMBERS", "+15550783882"),
        ("META_NUMBERS", "+15550783882=x"),
        ("META_API_BASE", "graph.facebook.com"),
    ],
)
def test_a_wrong_one_is_named(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    given(monkeypatch, {**META, name: value})
    assert name in sentence()


def test_production_is_complete_with_meta_instead_of_twilio(monkeypatch: pytest.MonkeyPatch) -> None:
    stores = {
        "REDIS_URL": "redis://r/0",
        "MONGODB_URI": "mongodb://m/",
        "QDRANT_URL": "http://q",
        "OLLAMA_HOST": "http://o",
    }
    given(monkeypatch, {**stores, "PRODUCTION": "true", "PUBLIC_URL": "https://mesh.example.com"})
    assert "TWILIO_ACCOUNT_SID" in sentence()
    given(monkeypatch, META)
    assert load().production


@pytest.mark.parametrize(("values", "expected"), [(META, MetaChannel), (TWILIO, TwilioChannel)])
async def test_the_channel_is_that_of_the_provider(
    monkeypatch: pytest.MonkeyPatch, redis_url: str, values: dict[str, str], expected: type
) -> None:
    given(monkeypatch, values)
    async with Bus(redis_url) as bus, Parts(load(), bus) as parts:
        assert isinstance(parts.channel(), expected)


def test_the_demo_is_not_meta_s_whatever_is_set_around_it(monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, META)
    demo = load(**dict.fromkeys(META_SETTINGS, ""))
    passed = _environment(demo)
    assert {passed[name.upper()] for name in META_SETTINGS} == {""}
    given(monkeypatch, passed)
    assert not load(**_lower(passed)).meta_access_token
