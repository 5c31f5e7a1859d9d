"""docs/new-agent.md, as it is written: its two blocks are put in place, and the agent is talked to over WhatsApp."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import regex

from mesh.ports.people import Client
from mesh.settings import ROOT, load
from mesh.testing.phone import Phone
from mesh.up import Mesh, Started
from mesh.wiring import open_roster
from tests.people import ASHA, STRANGER

NOW: dict[str, object] = {}


class Station(BaseHTTPRequestHandler):
    """The edge of the world: says what `NOW` holds; empty, it fails."""

    def do_GET(self) -> None:
        body = json.dumps(NOW).encode()
        self.send_response(200 if NOW else 503)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def station() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Station) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def block(language: str) -> str:
    found = regex.search(rf"```{language}\n(.*?)```", (ROOT / "docs" / "new-agent.md").read_text(), regex.DOTALL)
    assert found
    return str(found[1])


@pytest.fixture
async def mesh(tmp_path: Path, station: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Started]:
    config, code = tmp_path / "config", tmp_path / "code"
    shutil.copytree(ROOT / "config", config)
    code.mkdir()
    (code / "weather.py").write_text(block("python"))
    (config / "agents" / "weather.yaml").write_text(block("yaml"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(code)]))
    monkeypatch.setenv("WEATHER_URL", station)
    settings = load(adiyan_home=tmp_path / "home", adiyan_config=config, gateway_port=0, dashboard_port=0)
    async with Mesh(settings) as started:
        roster = await open_roster(started.settings)
        await roster.register(Client(ASHA, "Asha", "default"))
        await roster.close()
        yield started


async def said(phone: Phone, who: str, text: str) -> str:
    before = await phone.replies(who)
    await phone.say(who, text)
    (reply,) = await phone.replies(who, before[-1].seq if before else 0, 30.0)
    return reply.text


@pytest.mark.timeout(180)
async def test_the_agent_of_the_guide_answers_over_whatsapp(mesh: Started) -> None:
    async with Phone(mesh.phone) as phone:
        NOW.update(degrees=21, sky="light clouds")
        assert "21 degrees with light clouds" in await said(phone, ASHA, "Do I need an umbrella?")
        assert "21 degrees" not in await said(phone, ASHA, "Do you have a helicopter landing pad?")
        assert "21 degrees" not in await said(phone, STRANGER, "What is the weather like?")
        NOW.clear()
        assert "can't reach the weather station" in await said(phone, ASHA, "What is the weather like?")
