"""Request/reply, drain and idling of the bus, against a bare Redis round trip that is interleaved in the same run
(redis-py's async client as it comes, with hiredis).

`ask` goes through the bus and a worker whose function returns at once; `gated` goes through the dispatcher and the
gate too, with the clients and tiers in the embedded MongoDB. Caller, worker and servers are processes of their own.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import uvloop
from redis.asyncio import Redis

from mesh.adapters.mongo import MongoRoster
from mesh.bus import Bus
from mesh.embedded import parts
from mesh.embedded.supervisor import Supervisor, free_port
from mesh.envelope import Request, new_trace
from mesh.ports.people import Client, Tier
from tests.bench.worker import PLAIN, STAGE
from tests.people import ASHA

SAMPLES = 2_000
WARM_UP = 300
JOBS = 6_000
AT_ONCE = 32
IDLE_S = 10.0


async def run() -> dict[str, object]:
    return await asyncio.to_thread(uvloop.run, _run())


async def _run() -> dict[str, object]:
    home = Path(tempfile.mkdtemp(prefix="adiyan-bench-"))
    async with Supervisor(home) as supervisor:
        redis_port, mongo_port = free_port(), free_port()
        redis_url = f"redis://127.0.0.1:{redis_port}/0"
        mongo_uri = f"mongodb://127.0.0.1:{mongo_port}/?w=majority&journal=true"
        await supervisor.start_together(
            parts.redis(redis_port, home / "redis"), parts.mongodb(mongo_port, home / "mongodb")
        )
        await _people(mongo_uri)
        async with Bus(redis_url) as bus, Redis.from_url(redis_url) as bare:
            asks = {}
            for name in (PLAIN, STAGE):
                async with _worker(bus, redis_url, mongo_uri, name):
                    asks[name] = await _interleaved(bus, bare, name)
                    if name == STAGE:
                        rpc32 = await _at_once(bus, name)
                        idle = await _idle(bus)
            drains = {name: await _drain(bus, redis_url, mongo_uri, name) for name in (PLAIN, STAGE)}
    (plain_raw, plain_ask), (gated_raw, gated_ask) = asks[PLAIN], asks[STAGE]
    return {
        "raw_p50_ms": round(plain_raw, 3),
        "ask_p50_ms": round(plain_ask, 3),
        "ask_ratio": round(plain_ask / plain_raw, 2),
        "gated_raw_p50_ms": round(gated_raw, 3),
        "gated_ask_p50_ms": round(gated_ask, 3),
        "gated_ask_ratio": round(gated_ask / gated_raw, 2),
        "drain_per_s": round(drains[PLAIN]),
        "gated_drain_per_s": round(drains[STAGE]),
        "rpc32_per_s": round(rpc32),
        "idle_cpu_pct": round(idle, 2),
    }


async def _interleaved(bus: Bus, bare: Redis, name: str) -> tuple[float, float]:
    """p50 in milliseconds of the bare round trip, and of the ask."""
    raw, ask = [], []
    for number in range(WARM_UP + SAMPLES):
        request = _request(name, f"{number}")
        began = time.perf_counter()
        await bare.get("bench")
        middle = time.perf_counter()
        await bus.ask(request)
        ended = time.perf_counter()
        if number >= WARM_UP:
            raw.append(middle - began)
            ask.append(ended - middle)
    return statistics.median(raw) * 1000, statistics.median(ask) * 1000


async def _at_once(bus: Bus, name: str) -> float:
    async def chain(number: int) -> None:
        for step in range(100):
            await bus.ask(_request(name, f"rpc {number} {step}"))

    began = time.perf_counter()
    await asyncio.gather(*(chain(number) for number in range(AT_ONCE)))
    return AT_ONCE * 100 / (time.perf_counter() - began)


async def _drain(bus: Bus, redis_url: str, mongo_uri: str, name: str) -> float:
    """Jobs a second of one worker that finds a full queue; measured from its first to its last finished job."""
    for start in range(0, JOBS, 500):
        await asyncio.gather(*(bus.tell(_request(name, f"drain {start + n}", 600)) for n in range(500)))
    queue = f"mesh:{name}"
    async with _worker(bus, redis_url, mongo_uri, name, wait=False):
        while (left := await bus.redis.zcard(queue)) == JOBS:
            await asyncio.sleep(0.001)
        began = time.perf_counter()
        while await bus.redis.zcard(queue):
            await asyncio.sleep(0.005)
        return float(left) / (time.perf_counter() - began)


async def _idle(bus: Bus) -> float:
    """Percent of one core that the worker uses while nothing happens."""
    found = [each for each in psutil.process_iter(["cmdline"]) if "tests.bench.worker" in (each.info["cmdline"] or [])]
    (worker,) = found
    before = worker.cpu_times()
    await asyncio.sleep(IDLE_S)
    after = worker.cpu_times()
    used = float(after.user + after.system - before.user - before.system)
    return used / IDLE_S * 100


@asynccontextmanager
async def _worker(bus: Bus, redis_url: str, mongo_uri: str, name: str, wait: bool = True) -> AsyncIterator[None]:
    process = subprocess.Popen([sys.executable, "-m", "tests.bench.worker", name, redis_url, mongo_uri])
    try:
        if wait:
            await bus.ask(_request(name, f"hello {new_trace()}"))
        yield
    finally:
        process.terminate()
        await asyncio.to_thread(process.wait)


async def _people(mongo_uri: str) -> None:
    roster = await MongoRoster.open(mongo_uri, "adiyan")
    await roster.seed([Tier("bench", frozenset({"bench:run"}))], [])
    await roster.register(Client(ASHA, "Asha", "bench"))
    await roster.close()


def _request(name: str, key: str, seconds: float = 60) -> Request:
    return Request(
        client=ASHA, skill=f"{name}.noop", payload={}, trace="bench", key=key, deadline=time.time() + seconds
    )
