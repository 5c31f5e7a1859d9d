"""The gateway's start: what it imports decides how long it takes, and that is what is asserted here; the seconds are in
docs/benchmarks.md."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from mesh.settings import ROOT
from tests.contract.gateway_stage import PUBLIC, TOKEN
from tests.processes import free_port

HEAVY = {
    *("typer", "rich", "fastapi", "opentelemetry", "httpx", "aiohttp", "requests", "jinja2"),
    *("pymongo", "qdrant_client", "mem0", "ollama", "llama_index", "numpy", "twilio.rest"),
    *("agents", "mesh.up", "mesh.wiring", "mesh.worker", "mesh.dispatch", "mesh.cli.app"),
}

META = {
    "TWILIO_ACCOUNT_SID": "",
    "TWILIO_AUTH_TOKEN": "",
    "META_ACCESS_TOKEN": "EAAN6",
    "META_APP_SECRET": TOKEN,
    "META_VERIFY_TOKEN": "a word",
    "META_PHONE_NUMBER_ID": "106540352242922",
    "META_NUMBER": "+15550783881",
}


def environment(redis_url: str, home: Path, port: int) -> dict[str, str]:
    return {
        **os.environ,
        "ADIYAN_HOME": str(home),
        "REDIS_URL": redis_url,
        "TWILIO_ACCOUNT_SID": "AC" + "1" * 32,
        "TWILIO_AUTH_TOKEN": TOKEN,
        "PUBLIC_URL": PUBLIC,
        "GATEWAY_PORT": str(port),
    }


ENTRANCES = (("-m", "mesh.cli"), ("-c", "from mesh.cli import main; main()"))


@pytest.mark.parametrize(
    ("entrance", "provider"), [(ENTRANCES[0], "twilio"), (ENTRANCES[1], "twilio"), (ENTRANCES[0], "meta")]
)
def test_the_gateway_imports_nothing_that_it_does_not_need(
    redis_url: str, tmp_path: Path, entrance: tuple[str, str], provider: str
) -> None:
    port, log = free_port(), tmp_path / "imported"
    command = [sys.executable, "-X", "importtime", *entrance, "run", "gateway"]
    chosen = environment(redis_url, tmp_path, port) | (META if provider == "meta" else {})
    with log.open("wb") as out:
        process = subprocess.Popen(command, cwd=ROOT, env=chosen, stderr=out)
    try:
        until_ready(port, process, log)
        text = log.read_text()
    finally:
        process.kill()
        process.wait()
    imported = {line.rpartition("|")[2].strip() for line in text.splitlines() if line.startswith("import time:")}
    assert {"mesh.gateway.app", "mesh.ledger", "redis", "uvicorn"} <= imported
    assert imported & HEAVY == set()


def until_ready(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + 30
    while time.monotonic() < until:
        assert process.poll() is None, log.read_text()[-500:]
        try:
            if httpx.get(f"http://127.0.0.1:{port}/readyz", trust_env=False).is_success:
                return
        except httpx.TransportError:
            time.sleep(0.02)
    raise AssertionError(log.read_text()[-500:])


def test_without_redis_it_says_what_to_set(tmp_path: Path) -> None:
    without = {name: value for name, value in environment("", tmp_path, 0).items() if name != "REDIS_URL"}
    command = [sys.executable, "-m", "mesh.cli", "run", "gateway"]
    done = subprocess.run(command, cwd=ROOT, env=without, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr.startswith("✗ No mesh is running")
    assert "REDIS_URL" in done.stderr
    assert "Traceback" not in done.stderr
