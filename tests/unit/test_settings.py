from __future__ import annotations

from pathlib import Path

import pytest

from mesh import settings as module
from mesh.configuration import agents, tiers
from mesh.errors import Misconfigured
from mesh.settings import Settings, load

CLEAN = tuple(name.upper() for name in Settings.model_fields)


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in CLEAN:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ADIYAN_CONFIG", str(tmp_path))
    (tmp_path / "mesh.yaml").write_text("gateway_port: 8080\n")
    return tmp_path


def sentence() -> str:
    with pytest.raises(Misconfigured) as caught:
        load()
    assert "\n" not in caught.value.user_text
    return caught.value.user_text


def test_the_environment_wins_over_the_file(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert load().gateway_port == 8080
    monkeypatch.setenv("GATEWAY_PORT", "9000")
    assert load().gateway_port == 9000


def test_a_wrong_value_in_the_environment_is_named_with_its_variable(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDIS_URL", "localhost:6379")
    assert "REDIS_URL" in sentence()
    assert "redis://" in sentence()


def test_a_wrong_value_in_the_file_is_named_with_its_file(config: Path) -> None:
    (config / "mesh.yaml").write_text("gateway_port: many\n")
    assert "gateway_port" in sentence()
    assert str(config / "mesh.yaml") in sentence()


def test_a_mistyped_setting_is_named_and_the_right_one_suggested(config: Path) -> None:
    (config / "mesh.yaml").write_text("sytem_owner: '+15550000000'\n")
    assert "sytem_owner" in sentence()
    assert "Did you mean system_owner?" in sentence()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("REDIS_URL", "redis://host:abc/0"),
        ("MONGODB_URI", "mongodb://"),
        ("SYSTEM_OWNER", "+1５５５0000000"),
        ("TWILIO_NUMBER", "abc"),
        ("QDRANT_URL", "localhost:6333"),
        ("LOG_LEVEL", "LOUD"),
        ("GATEWAY_PORT", "70000"),
        ("TURN_SECONDS", "soon"),
    ],
)
def test_a_wrong_variable_is_named_before_anything_starts(
    config: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    assert name in sentence()


@pytest.mark.parametrize("content", [b"- a\n- list\n", b"name: \xff\xfe"])
def test_a_file_that_holds_no_settings_is_named(config: Path, content: bytes) -> None:
    (config / "mesh.yaml").write_bytes(content)
    assert str(config / "mesh.yaml") in sentence()


def test_a_configuration_without_an_orchestrator_is_refused(config: Path) -> None:
    (config / "agents").mkdir()
    with pytest.raises(Misconfigured, match="orchestrator"):
        agents(config)


def test_broken_yaml_is_named_with_its_file(config: Path) -> None:
    (config / "mesh.yaml").write_text("a: [b\n")
    assert str(config / "mesh.yaml") in sentence()


def test_a_missing_configuration_says_what_to_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADIYAN_CONFIG", str(tmp_path / "nowhere"))
    assert "ADIYAN_CONFIG" in sentence()


def test_production_refuses_what_would_be_embedded(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRODUCTION", "true")
    assert "REDIS_URL" in sentence()


def test_a_twilio_account_without_a_token_or_a_public_url_is_refused(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TWILIO_ACCOUNT_SID", "AC1")
    assert "TWILIO_AUTH_TOKEN" in sentence()
    monkeypatch.setenv("TWILIO_AUTH_TOKEN", "secret")
    assert "PUBLIC_URL" in sentence()
    assert "secret" not in sentence()


def test_an_unknown_permission_form_in_a_tier_is_named(config: Path) -> None:
    (config / "tiers.yaml").write_text("- {name: x, permissions: [everything]}\n")
    with pytest.raises(Misconfigured, match=r"tier x: permission 'everything'"):
        tiers(config)


def test_no_shipped_tier_may_publish_but_the_one_that_is_for_it() -> None:
    shipped = {tier.name: tier.permissions for tier in tiers(module.ROOT / "config")}
    assert [name for name, permissions in shipped.items() if "documents:publish" in permissions] == ["publisher"]


def test_the_default_tier_may_search_and_reach_the_general_fallback() -> None:
    """Incident d: a gap between these two once silenced every client."""
    shipped = {tier.name: tier.permissions for tier in tiers(module.ROOT / "config")}
    assert {"chat:converse", "knowledge:search", "analysis:ask"} <= shipped["default"]
    assert [entry["name"] for entry in agents(module.ROOT / "config")] == [
        "analysis",
        "knowledge",
        "memory",
        "orchestrator",
    ]


def test_several_numbers_are_ours_and_the_first_one_stays_first(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert load().numbers == ("+14155238886",)
    monkeypatch.setenv("TWILIO_NUMBERS", " +14155550000  +14155550001 +14155238886 +14155550000 ")
    assert load().numbers == ("+14155238886", "+14155550000", "+14155550001")


@pytest.mark.parametrize("numbers", ["4155550000", "+14155550000,+14155550001", "+1"])
def test_a_further_number_that_is_none_stops_start_up(
    config: Path, monkeypatch: pytest.MonkeyPatch, numbers: str
) -> None:
    monkeypatch.setenv("TWILIO_NUMBERS", numbers)
    text = sentence()
    assert "TWILIO_NUMBERS" in text
    assert "spaces" in text
