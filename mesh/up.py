"""The whole mesh on one machine: what is not configured is embedded, every agent is a process, one supervisor."""

from __future__ import annotations

import json
import os
import secrets
import socket
import sys
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mesh.bus import Bus
from mesh.configuration import AgentEntry
from mesh.crew import Crew
from mesh.embedded import parts
from mesh.embedded.supervisor import Part, Supervisor, free_port, listen, runs
from mesh.errors import MeshError
from mesh.process import DASHBOARD, GATEWAY, LISTENER
from mesh.settings import META_SETTINGS, SIMULATED_SID, Settings, load
from mesh.versions import claim_redis
from mesh.wiring import open_roster

RECORD = "mesh.json"

STORES = ("redis_url", "mongodb_uri")
"""What the owner's commands need."""
AGENT_NEEDS = (*STORES, "qdrant_url", "ollama_host", "twilio_account_sid")
NEEDS = {GATEWAY: ("redis_url", "twilio_auth_token", "public_url"), DASHBOARD: ("redis_url",)}
"""Of the processes that are no agent."""
SECRETS = ("TWILIO_AUTH_TOKEN", "META_ACCESS_TOKEN", "META_APP_SECRET", "META_VERIFY_TOKEN")

Tell = Callable[[str], None]


class NotRunning(MeshError):
    code = "not_running"


@dataclass(frozen=True, slots=True)
class Started:
    """`environment` is what the processes were given: any other process can join with it."""

    settings: Settings
    environment: dict[str, str]
    gateway: str
    dashboard: str
    phone: str
    """The simulated Twilio's address, where its chat page is; empty when a real account is configured."""
    seconds: float


class Mesh:
    """`async with Mesh(settings) as started`: all of it is up; leaving stops all of it."""

    def __init__(self, settings: Settings, tell: Tell = lambda _: None) -> None:
        self._settings = settings
        self._tell = tell
        self._stack = AsyncExitStack()
        self.supervisor = Supervisor(settings.adiyan_home)

    async def __aenter__(self) -> Started:
        began = time.monotonic()
        await self._stack.enter_async_context(self.supervisor)
        try:
            started = await self._start(began)
        except BaseException:
            await self._stack.aclose()
            raise
        record = self._settings.adiyan_home / RECORD
        _write_private(record, started)
        self._stack.callback(record.unlink, missing_ok=True)
        return started

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def _start(self, began: float) -> Started:
        environment = await self._start_stores()
        chosen = self._settings
        # held here: while the gateway is started again, webhooks wait instead of being refused
        listener, port = self._listen(GATEWAY, chosen.gateway_host, chosen.gateway_port)
        watching, dashboard_port = self._listen(DASHBOARD, chosen.dashboard_host, chosen.dashboard_port)
        gateway, dashboard = f"http://127.0.0.1:{port}", _address(chosen.dashboard_host, dashboard_port)
        environment |= {"GATEWAY_PORT": str(port), "DASHBOARD_PORT": str(dashboard_port)}
        phone = await self._start_channel(environment, gateway)
        settings = load(**_lower(environment))
        async with Bus(settings.redis_url) as bus:
            await claim_redis(bus.redis)
        roster = await open_roster(settings)  # seeded from `config/` here, before many do it at once
        self._stack.push_async_callback(roster.close)
        crew = Crew(self.supervisor, roster, lambda entry, number: _process(entry, number, environment), self._tell)
        await self.supervisor.start_together(
            _server(GATEWAY, f"{gateway}/readyz", environment, listener),
            _server(DASHBOARD, f"{dashboard}/healthz", environment, watching),
            *await crew.first(settings.adiyan_config),
        )
        await self._stack.enter_async_context(crew.watching())
        return Started(settings, environment, gateway, dashboard, phone, time.monotonic() - began)

    def _listen(self, process: str, host: str, preferred: int) -> tuple[socket.socket, int]:
        listener = self._stack.enter_context(listen(host, preferred))
        port = int(listener.getsockname()[1])
        if preferred not in (0, port):
            self._tell(f"Port {preferred} is busy: the {process} is on {port}.")
        return listener, port

    async def _start_stores(self) -> dict[str, str]:
        chosen, home = self._settings, self._settings.adiyan_home
        environment = _environment(chosen)
        wanted: list[Part] = []
        if not chosen.redis_url:
            port = free_port()
            environment["REDIS_URL"] = f"redis://127.0.0.1:{port}/0"
            wanted.append(parts.redis(port, home / "redis"))
        if not chosen.mongodb_uri:
            port = free_port()
            environment["MONGODB_URI"] = f"mongodb://127.0.0.1:{port}/?w=majority&journal=true"
            wanted.append(parts.mongodb(port, home / "mongodb"))
        if not chosen.qdrant_url:
            port = free_port()
            environment["QDRANT_URL"] = f"http://127.0.0.1:{port}"
            wanted.append(parts.qdrant(port, home / "qdrant"))
        if not chosen.ollama_host:
            port = free_port()
            environment["OLLAMA_HOST"] = f"http://127.0.0.1:{port}"
            wanted.append(parts.models(port))
        if not (chosen.speech_url or chosen.production) and parts.speech_installed():
            port = free_port()
            environment["SPEECH_URL"] = f"http://127.0.0.1:{port}"
            wanted.append(parts.speech(port, home / "speech", chosen.speech_seconds))
        if wanted:
            self._tell(f"Starting {', '.join(part.name for part in wanted)} …")
            await self.supervisor.start_together(*wanted)
        return environment

    async def _start_channel(self, environment: dict[str, str], gateway: str) -> str:
        """The simulated Twilio stands in while no account is configured."""
        environment["PUBLIC_URL"] = self._settings.public_url or gateway
        if self._settings.twilio_account_sid or self._settings.meta_access_token:
            return ""
        port = free_port()
        address = f"http://127.0.0.1:{port}"
        environment |= {
            "TWILIO_ACCOUNT_SID": SIMULATED_SID,
            "TWILIO_AUTH_TOKEN": secrets.token_hex(16),
            "TWILIO_API_BASE": address,
            "PUBLIC_URL": gateway,
        }
        command = (
            *(sys.executable, "-m", "mesh.testing.twilio", "--port", str(port)),
            *("--webhook", f"{gateway}/whatsapp/twilio", "--account-sid", SIMULATED_SID),
            *("--auth-token", environment["TWILIO_AUTH_TOKEN"], "--number", self._settings.twilio_number),
        )
        await self.supervisor.start(Part("twilio-simulated", command, parts.http_says_ok(f"{address}/healthz")))
        return address


def running_settings(*needs: str) -> tuple[Settings, str]:
    """Settings for a command that joins: configured addresses, and the running mesh's for those that are not; and the
    simulated Twilio's address. `needs` are settings that must not be empty. Raises `NotRunning`."""
    settings = load()
    record = settings.adiyan_home / RECORD
    joined = _read(record)
    has_meta = bool(settings.meta_access_token)
    asked = [name for name in needs or STORES if not (has_meta and name.startswith("twilio_"))]
    missing = [name for name in asked if not getattr(settings, name)]
    if joined is None:
        if missing:
            raise NotRunning(
                f"No mesh is running on {settings.adiyan_home}. Start it with `./run up` in another terminal, "
                f"or set {' and '.join(name.upper() for name in missing)}."
            )
        return settings, ""
    return load(**_lower(joined["environment"])), str(joined["phone"])


def _server(name: str, ready: str, environment: dict[str, str], listener: socket.socket) -> Part:
    inherits = {**environment, LISTENER: str(listener.fileno())}
    return Part(name, _run(name), parts.http_says_ok(ready), inherits, (listener.fileno(),))


def _address(host: str, port: int) -> str:
    """Where this machine reaches what listens there."""
    here = "127.0.0.1" if host == "0.0.0.0" else host  # noqa: S104 - compared with, not bound to
    return f"http://{here}:{port}"


def _process(entry: AgentEntry, number: int, environment: dict[str, str]) -> Part:
    return Part(entry.name if number == 1 else f"{entry.name}-{number}", _run(entry.name), None, environment)


def _run(name: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "mesh.cli", "run", name)


def _environment(settings: Settings) -> dict[str, str]:
    """Every setting, so that the processes have exactly those of the mesh that starts them: Meta's also when they are
    empty, since they may be set around it, as around `adiyan demo`."""
    values = {name: str(value) for name, value in settings.model_dump(mode="json").items()}
    return {name.upper(): value for name, value in values.items() if value or name in META_SETTINGS}


def _lower(environment: dict[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in environment.items()}


def _read(record: Path) -> dict[str, Any] | None:
    try:
        joined: dict[str, Any] = json.loads(record.read_text())
        return joined if runs(int(joined["pid"])) else None
    except (OSError, ValueError, KeyError):
        return None


def _write_private(record: Path, started: Started) -> None:
    temporary = record.with_suffix(".tmp")
    temporary.touch(mode=0o600)
    environment = dict(started.environment)
    if not started.phone:  # a real account's secrets are not copied: who joins has them configured, too
        for name in SECRETS:
            environment.pop(name, None)
    content = {
        "pid": os.getpid(),
        "environment": environment,
        "gateway": started.gateway,
        "dashboard": started.dashboard,
        "phone": started.phone,
    }
    temporary.write_text(json.dumps(content))
    temporary.replace(record)
