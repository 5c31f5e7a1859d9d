"""How the queues and their workers stand now, as Redis has them. Looking changes nothing."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from redis.asyncio import Redis

from mesh import cards
from mesh.bus import bell_of, enqueue_keys, failures_of
from mesh.connections import answer
from mesh.lease import reachable
from mesh.skills import queue_of

WORKER = "mesh:worker:"
LOOKED_AT = 1000
"""Jobs are claimed oldest first, so those that run are among the oldest: no need to look at a longer backlog."""

# KEYS: queue, bell, failures. ARGV: in-progress prefix, how many to look at. Jobs in the queue, how many of them are
# claimed, since when the oldest of the others waits, and how many failed today. A job that lies in the bell is claimed
# for nobody in particular: it waits.
LOOK = """
local rung = redis.call('LINDEX', KEYS[2], -1) or ''
rung = string.sub(rung, 1, (string.find(rung, '\\n', 1, true) or 1) - 1)
local jobs = redis.call('ZRANGE', KEYS[1], 0, ARGV[2] - 1, 'WITHSCORES')
local claimed, oldest = 0, ''
for i = 1, #jobs, 2 do
  if jobs[i] ~= rung and redis.call('EXISTS', ARGV[1] .. jobs[i]) == 1 then
    claimed = claimed + 1
  elseif oldest == '' then
    oldest = jobs[i + 1]
  end
end
return {redis.call('ZCARD', KEYS[1]), claimed, oldest, redis.call('GET', KEYS[3]) or '0'}
"""


@dataclass(frozen=True, slots=True)
class QueueState:
    agent: str
    waiting: int
    running: int
    failed: int
    """Jobs that failed today, by the calendar of UTC: given up on, crashed, out of time, or for want of a store. What a
    client is refused, or what is not found, is no failure."""
    oldest_s: float | None
    """How long the oldest waiting job has waited."""
    workers: int


@dataclass(frozen=True, slots=True)
class WorkerState:
    agent: str
    id: str
    pid: int
    since: float
    """Seconds since the epoch."""
    running: int
    done: int
    failed: int


async def queues(redis: Redis, agents: Sequence[str]) -> list[QueueState]:
    """Those of `agents`, in that order, then those of any other agent that has a worker, or has work and announced a
    skill once. Raises `Unavailable`."""
    alive = await workers(redis)
    with reachable():
        announced = [name.decode().partition(".")[0] for name in await answer(redis.hkeys(cards.KEY))]
    others = sorted({*announced, *(worker.agent for worker in alive)} - set(agents))
    states = [
        await _state(redis, agent, [worker for worker in alive if worker.agent == agent])
        for agent in dict.fromkeys((*agents, *others))
    ]
    return [each for each in states if each.agent in agents or each.workers or each.waiting or each.running]


async def workers(redis: Redis) -> list[WorkerState]:
    """Those that gave a sign of life within the last six seconds, by agent, the oldest first. Raises `Unavailable`."""
    with reachable():
        keys = [key async for key in redis.scan_iter(match=f"{WORKER}*", count=1000)]
        signs = await redis.mget(keys) if keys else []
    found = [_worker(key.decode(), sign) for key, sign in zip(keys, signs, strict=True) if sign is not None]
    return sorted(set(found), key=lambda worker: (worker.agent, worker.since, worker.id))


async def _state(redis: Redis, agent: str, alive: list[WorkerState]) -> QueueState:
    queue = queue_of(agent)
    in_progress = enqueue_keys(queue, "")[-1]
    with reachable():
        look = redis.register_script(LOOK)
        keys = [queue, bell_of(queue), failures_of(queue)]
        jobs, claimed, since, failed = await look(keys=keys, args=[in_progress, LOOKED_AT])
    oldest_s = max(0.0, time.time() - float(since) / 1000) if since else None
    return QueueState(agent, jobs - claimed, claimed, int(failed), oldest_s, len(alive))


def _worker(key: str, sign: bytes) -> WorkerState:
    told: dict[str, Any] = json.loads(sign)
    agent, _, worker_id = key.removeprefix(WORKER).partition(":")
    counts = {name: int(told[name]) for name in ("pid", "running", "done", "failed")}
    return WorkerState(agent, worker_id, since=float(told["since"]), **counts)
