"""One process of the mesh: an agent's worker, the gateway, or the dashboard."""

from __future__ import annotations

import asyncio
import gc
import importlib
import logging
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import uvloop
from redis.exceptions import RedisError

from mesh import logs
from mesh.errors import MeshError, Misconfigured
from mesh.settings import SIMULATED_SID, Settings, load

if TYPE_CHECKING:
    import uvicorn
    from redis.asyncio import Redis

    from mesh.gateway.meta import MetaWebhooks
    from mesh.ledger import Ledger

log = logging.getLogger(__name__)

T = TypeVar("T")
META_PIECES = 512
"""In which a body of Meta's may come, which is up to 3 MB."""

GATEWAY, DASHBOARD = "gateway", "dashboard"
LISTENER = "ADIYAN_LISTENER_FD"
"""Names the listening socket that a supervisor holds for the gateway or the dashboard, across restarts of it."""


def start(name: str) -> int:
    """`adiyan run NAME`: joins a running mesh, or the configured addresses."""
    return run(name, _gateway_settings() if name == GATEWAY else _joined(name))


def _gateway_settings() -> Settings:
    """As `_joined` has them, without what looks for a running mesh when they are complete: it imports a client for each
    store, which would double the gateway's start."""
    settings = load()
    supervised = LISTENER in os.environ  # and then its environment is that of the mesh
    complete = settings.redis_url and (settings.twilio_auth_token or settings.meta_app_secret) and settings.public_url
    if complete and (supervised or not (settings.adiyan_home / "mesh.json").exists()):
        return settings
    return _joined(GATEWAY)


def _joined(name: str) -> Settings:
    from mesh.up import AGENT_NEEDS, NEEDS, running_settings

    return running_settings(*NEEDS.get(name, AGENT_NEEDS))[0]


def run(name: str, settings: Settings) -> int:
    """Until a signal ends it. Returns the exit code; a `MeshError` is one line in the log."""
    logs.set_up(name, settings.log_level, sparing=name == GATEWAY)
    try:
        uvloop.run(_served(name, settings))
    except MeshError as error:
        log.error("! %s", error.user_text)
        return 1
    except RedisError as error:
        log.error("! Redis can't be reached: %s", type(error).__name__)
        return 1
    except KeyboardInterrupt:
        return 0
    return 0


def _served(name: str, settings: Settings) -> Coroutine[Any, Any, None]:
    if name == GATEWAY:
        return _gateway(settings)
    return _dashboard(settings) if name == DASHBOARD else _agent(name, settings)


async def _agent(name: str, settings: Settings) -> None:
    from mesh.access import Gate
    from mesh.bus import Bus
    from mesh.cards import announce
    from mesh.crons import hourly
    from mesh.dispatch import Dispatcher
    from mesh.versions import claim_redis
    from mesh.wiring import Parts
    from mesh.worker import MeshWorker

    async with Bus(settings.redis_url) as bus, Parts(settings, bus) as parts:
        await claim_redis(bus.redis)
        roster = await parts.roster()
        agent = load_agent(name, await roster.agents())
        gate = Gate(roster, system_owner=settings.system_owner, unknown_tier=settings.unknown_tier)
        async with agent.opens(parts) as own:
            await announce(bus.redis, agent.skills)
            worker = MeshWorker(name, Dispatcher(agent, own, gate, bus), settings.redis_url, max_jobs=agent.at_once)
            log.info("ready agent=%s skills=%d", name, len(agent.skills))
            say_ready()
            async with hourly(agent, bus, client=settings.system_owner):
                await worker.serve()
            log.info("stopped agent=%s", name)


def load_agent(name: str, entries: list[dict[str, object]]) -> Any:
    """By dotted path from the configuration: the mesh imports no agent itself."""
    entry = next((entry for entry in entries if entry.get("name") == name), None)
    if entry is None:
        known = ", ".join(sorted(str(entry.get("name")) for entry in entries))
        raise Misconfigured(f"There is no agent called {name}. Known: {known}, {GATEWAY}, {DASHBOARD}.")
    module = str(entry.get("module"))
    try:
        agent = importlib.import_module(module).agent
    except ModuleNotFoundError as error:
        raise Misconfigured(f"Agent {name}: module {module} can't be imported: {error}.") from error
    except AttributeError as error:
        raise Misconfigured(f"Agent {name}: module {module} has no `agent`.") from error
    if agent.name != name:
        raise Misconfigured(f"Agent {name}: module {module} holds an agent called {agent.name}.")
    return agent


async def _gateway(settings: Settings) -> None:
    from mesh.connections import connect
    from mesh.downloads import Downloads
    from mesh.gateway.app import create_app
    from mesh.gateway.door import Bounds, configured, listening
    from mesh.gateway.files import Files
    from mesh.ledger import Caps, Ledger

    redis = connect(settings.redis_url)
    ledger = Ledger(redis, caps=Caps(chat=settings.most_waiting))
    downloads = Downloads(settings.redis_url)
    files = Files(downloads)
    app = create_app(
        ledger,
        public_url=settings.public_url,
        auth_token=settings.twilio_auth_token,
        shared_keys=settings.twilio_shared_key.split(),
        account_sid=settings.twilio_account_sid,
        numbers=settings.numbers,
        files=files,
        meta=_meta_webhooks(settings, ledger, redis) if settings.meta_access_token else None,
    )
    gc.freeze()  # nothing of what was imported is ever garbage: no collection has to look through it
    try:
        bounds = Bounds(pieces=META_PIECES) if settings.meta_access_token else Bounds()
        config = configured(app, host=settings.gateway_host, port=settings.gateway_port, bounds=bounds)
        await _serve(config, listening(config, _inherited()))
    finally:
        await downloads.close()
        await ledger.close()
        await redis.aclose()


def _meta_webhooks(settings: Settings, ledger: Ledger, redis: Redis) -> MetaWebhooks:
    from mesh.adapters.meta_echoes import Echoes
    from mesh.gateway.meta import MetaWebhooks

    return MetaWebhooks(
        ledger,
        Echoes(redis),
        app_secret=settings.meta_app_secret,
        verify_token=settings.meta_verify_token,
        numbers={its: number for number, its in settings.meta_ids.items()},
    )


async def _dashboard(settings: Settings) -> None:
    import uvicorn

    from mesh.access import upkeep
    from mesh.configuration import agents
    from mesh.connections import connect
    from mesh.dashboard.app import create_app
    from mesh.dashboard.configured import Configured
    from mesh.dashboard.reading import Reader
    from mesh.ingestions import Ingestions
    from mesh.ledger import Ledger
    from mesh.queues import queues, workers

    redis = connect(settings.redis_url)
    ledger = Ledger(redis)
    configured = Configured(agents(settings.adiyan_config), _agents_of(settings) if settings.mongodb_uri else None)
    ingestions = Ingestions(redis)
    reader = Reader(
        lambda: queues(redis, configured.names()),
        lambda: workers(redis),
        lambda: ingestions.running(upkeep()),
        ledger,
    )
    simulated = settings.twilio_account_sid == SIMULATED_SID
    app = create_app(
        reader,
        names=[settings.dashboard_host, *settings.dashboard_names.split()],
        chat_page=settings.twilio_api_base if simulated else "",
    )
    config = uvicorn.Config(
        app,
        host=settings.dashboard_host,
        port=settings.dashboard_port,
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=5,
    )
    try:
        inherited = _inherited()
        await _serve(config, [inherited] if inherited else None)
    finally:
        await configured.close()
        await ledger.close()
        await redis.aclose()


def _agents_of(settings: Settings) -> Callable[[], Awaitable[list[dict[str, Any]]]]:
    """Through a connection for each look: the dashboard starts, and goes on, without MongoDB."""

    async def read() -> list[dict[str, Any]]:
        from mesh.adapters.mongo import MongoRoster

        roster = await MongoRoster.open(settings.mongodb_uri, settings.mongodb_database)
        try:
            return await roster.agents()
        finally:
            await roster.close()

    return read


def _inherited() -> socket.socket | None:
    """The supervisor's listener, when there is one."""
    inherited = os.environ.get(LISTENER)
    return socket.socket(fileno=int(inherited)) if inherited else None


async def _serve(config: uvicorn.Config, listeners: list[socket.socket] | None) -> None:
    """Until a signal."""
    from uvicorn import Server

    await Server(config).serve(listeners)


def say_ready() -> None:
    from mesh.embedded.supervisor import READY_FILE

    file = os.environ.get(READY_FILE)
    if file:
        Path(file).touch()


async def until_signalled(work: Coroutine[Any, Any, T]) -> T | None:
    """Runs it; SIGINT or SIGTERM cancels it, whatever it is at, and then the answer is None."""
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(name, task.cancel)
    try:
        return await task
    except asyncio.CancelledError:
        return None
