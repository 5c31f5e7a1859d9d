"""Real servers, one of each for the whole run; a test gets its own database, so that order does not matter."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator

import pytest
import redis

from mesh.connections import connect
from mesh.embedded import parts
from tests.processes import free_port, models, qdrant


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """`REDIS_URL` when it is set, the embedded server otherwise; without a database number."""
    configured = os.environ.get("REDIS_URL")
    if configured:
        yield configured.rsplit("/", 1)[0] if configured.count("/") > 2 else configured
        return
    port, folder = free_port(), tmp_path_factory.mktemp("redis")
    process = subprocess.Popen(parts.redis(port, folder / "data").command, stdout=subprocess.DEVNULL)
    try:
        wait_for_redis(port)
        yield f"redis://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def wait_for_redis(port: int, within_s: float = 20.0) -> None:
    until = time.monotonic() + within_s
    while True:
        try:
            with redis.Redis(port=port, socket_timeout=1) as client:
                client.ping()
                return
        except redis.RedisError:
            if time.monotonic() > until:
                raise
            time.sleep(0.02)


@pytest.fixture
async def redis_url(redis_server: str) -> str:
    """An empty database."""
    url = f"{redis_server}/15"
    client = connect(url)
    await client.flushdb()
    await client.aclose()
    return url


@pytest.fixture(scope="module")
def qdrant_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """`QDRANT_URL` when it is set, an embedded server for the module otherwise."""
    if real := os.environ.get("QDRANT_URL"):
        yield real
    else:
        with qdrant(tmp_path_factory.mktemp("qdrant")) as url:
            yield url


@pytest.fixture(scope="module")
def models_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with models(tmp_path_factory.mktemp("models")) as url:
        yield url
