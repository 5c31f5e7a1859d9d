"""Is one process of the mesh well? For a container's health check: quick, one line, no patience."""

from __future__ import annotations

import http.client
import json
import socket

from mesh.errors import Unavailable
from mesh.settings import Settings, load

WITHIN_S = 3.0
SERVERS = {"gateway": "/readyz", "dashboard": "/healthz"}
"""The processes that are no agents, and what they are asked."""


def health(name: str) -> str:
    """The line that says that it is well. Raises `Unavailable` with the one that says why not."""
    settings = _settings()
    if name in SERVERS:
        return _server(name, getattr(settings, f"{name}_host"), getattr(settings, f"{name}_port"))
    return _agent(name, settings.redis_url)


def _settings() -> Settings:
    """Those of a mesh that runs in the same home. What finds it takes longer to import than all the rest."""
    settings = load()
    if settings.redis_url and not (settings.adiyan_home / "mesh.json").exists():
        return settings
    from mesh.up import running_settings

    return running_settings("redis_url")[0]


def _server(name: str, host: str, port: int) -> str:
    here = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - it is not bound here
    asked = http.client.HTTPConnection(here, port, timeout=WITHIN_S)
    try:
        asked.request("GET", SERVERS[name])
        answer = asked.getresponse()
        said = answer.read(200).decode("utf-8", "replace").strip()
    except (OSError, http.client.HTTPException) as error:
        raise Unavailable(f"The {name} does not answer on {here}:{port}: {type(error).__name__}.") from error
    finally:
        asked.close()
    if answer.status != 200:
        raise Unavailable(f"The {name} is not ready: {answer.status} {said}")
    return f"{name} is well on {here}:{port}"


def _agent(name: str, redis_url: str) -> str:
    """By the sign of life that its worker keeps in Redis. A copy on another host does not stand for it."""
    from redis import Redis, RedisError

    host = socket.gethostname()
    try:
        with Redis.from_url(redis_url, socket_connect_timeout=WITHIN_S, socket_timeout=WITHIN_S) as redis:
            alive = list(redis.scan_iter(f"mesh:worker:{name}:*", count=10_000))
            here = [key for key in alive if key.decode().split(":")[3] == host]
            states = [json.loads(state) for state in (redis.mget(here) if here else []) if state]
    except RedisError as error:
        raise Unavailable(f"Redis can't be asked about {name}: {type(error).__name__}.") from error
    if not states:
        elsewhere = f"; on other hosts: {len(alive)}" if alive else ""
        raise Unavailable(f"No worker of {name} is alive on {host}{elsewhere}.")
    running = sum(int(state["running"]) for state in states)
    return f"{name} is well: {len(states)} worker(s) on {host}, {running} job(s) running"
