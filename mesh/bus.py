"""Ask and tell over Redis queues. arq executes; this is the caller's side of it.

A caller has one inbox list. Asking is one script: note the inbox among those who wait for the job, enqueue it unless it
is there already, and ring the queue's doorbell. Finishing a job (see `mesh.worker`) pushes its result to every waiting
inbox. So one blocking read serves any number of open asks, a replay attaches to work that is running or done, and
nothing polls.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from typing import Any

from arq.constants import in_progress_key_prefix, job_key_prefix, result_key_prefix, retry_key_prefix
from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json, to_json
from redis import exceptions as broken
from redis.asyncio import Redis

from mesh import clock
from mesh.connections import Batched, Line, connect
from mesh.envelope import Failed, Ok, Outcome, Request
from mesh.errors import Crashed, Unavailable
from mesh.skills import queue_of

log = logging.getLogger(__name__)

FUNCTION = "dispatch"
"""The only name that a worker registers with arq."""

BELL_TOKENS = 64
INBOX_KEPT_MS = 60_000
JOB_KEPT_MS = 24 * 3600 * 1000
RETRIES_KEPT_S = 24 * 3600
FAILURES_KEPT_S = 48 * 3600

HANDED = b"handed"
HANDED_MS = 5_000
"""How long a job that was rung out is kept for whoever heard the bell, before anybody may claim it."""

# KEYS: job, queue, bell, waiting, result, retry, in-progress.
# ARGV: job id, body, body's life ms, inbox or '', a hand-over's life ms, a retry count's life s.
# Enqueued unless it is queued or running already. When nobody has rung yet, a worker is probably waiting: the bell then
# carries the job itself, already claimed for whoever hears it, which saves a round trip. A kept result is not handed
# over here: the worker finds it when it claims the job, and asks the gate first.
ENQUEUE = """
local time = redis.call('TIME')
local inbox = ARGV[4]
if inbox ~= '' then
  redis.call('SADD', KEYS[4], inbox)
  redis.call('PEXPIRE', KEYS[4], ARGV[3])
end
if redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
  redis.call('ZADD', KEYS[2], time[1] * 1000 + math.floor(time[2] / 1000), ARGV[1])
  if redis.call('EXISTS', KEYS[3], KEYS[5], KEYS[6], KEYS[7]) == 0 then
    redis.call('SET', KEYS[7], '{handed}', 'PX', ARGV[5])
    redis.call('SET', KEYS[6], 1, 'EX', ARGV[6])
    redis.call('LPUSH', KEYS[3], ARGV[1] .. '\\n' .. ARGV[2])
  elseif redis.call('LLEN', KEYS[3]) < {tokens} then
    redis.call('LPUSH', KEYS[3], '1')
  end
end
return 1
""".replace("{tokens}", str(BELL_TOKENS)).replace("{handed}", HANDED.decode())

_outcome: TypeAdapter[Ok | Failed] = TypeAdapter(Outcome)


def serialize(job: dict[str, Any]) -> bytes:
    """arq's job and result records as JSON. A result keeps no arguments: they are somebody's words."""
    if "r" in job:
        job = {**job, "a": (), "k": {}}
        if isinstance(job["r"], BaseException):
            job["r"] = _crash(job["r"]).model_dump(mode="json")
    return to_json(job)


def deserialize(raw: bytes) -> dict[str, Any]:
    job = from_json(raw)
    if not isinstance(job, dict):
        raise ValueError("a job record is a JSON object")
    return job


def _crash(error: BaseException) -> Failed:
    log.warning("! arq gave up on a job: %s", type(error).__name__)
    return Failed(code=Crashed.code, user_text=Crashed.default)


def pack(request: Request) -> bytes:
    """The record that arq's worker reads."""
    return serialize(
        {
            "t": None,
            "f": FUNCTION,
            "a": (request,),
            "k": {},
            "et": int(time.time() * 1000),
        }
    )


def unpack_result(raw: bytes) -> Ok | Failed:
    try:
        return _outcome.validate_python(deserialize(raw)["r"])
    except (KeyError, ValueError, ValidationError):
        log.error("! a result could not be read bytes=%d", len(raw))
        return Failed(code=Crashed.code, user_text=Crashed.default)


def failures_of(queue: str) -> str:
    """Counts the jobs of a queue that failed today, by the calendar of UTC."""
    return f"{queue}:failed:{datetime.now(UTC):%Y-%m-%d}"


def bell_of(queue: str) -> str:
    return f"{queue}:bell"


def waiting_of(job_id: str) -> str:
    return f"mesh:waiting:{job_id}"


def enqueue_keys(queue: str, job_id: str) -> list[str]:
    return [
        job_key_prefix + job_id,
        queue,
        bell_of(queue),
        waiting_of(job_id),
        result_key_prefix + job_id,
        retry_key_prefix + job_id,
        in_progress_key_prefix + job_id,
    ]


class Bus:
    """One per process. `async with` it: asking needs the inbox reader."""

    def __init__(self, redis_url: str) -> None:
        self._redis = connect(redis_url)
        self._line = Line(self._redis)
        self._inbox = f"mesh:inbox:{secrets.token_hex(8)}"
        self._open: dict[str, list[asyncio.Future[bytes]]] = {}
        self._asked: dict[str, Request] = {}
        self._enqueue = Batched(self._redis, ENQUEUE)
        self._reader: asyncio.Task[None] | None = None

    @property
    def redis(self) -> Redis:
        return self._redis

    async def __aenter__(self) -> Bus:
        await clock.look(self._redis)
        self._reader = asyncio.create_task(self._read_inbox(), name="bus-inbox")
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._reader:
            self._reader.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._reader
        with contextlib.suppress(broken.RedisError):
            await self._redis.delete(self._inbox)
        await self._line.close()
        await self._enqueue.close()
        await self._redis.aclose()

    async def ask(self, request: Request) -> Ok | Failed | None:
        """The outcome, or None when the deadline came first. Raises `Unavailable` when Redis can't be reached."""
        if self._reader is None:
            raise RuntimeError("the bus is not open: use `async with Bus(...)`")
        job_id = request.job_id
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._open.setdefault(job_id, []).append(future)
        self._asked[job_id] = request
        try:
            async with asyncio.timeout(max(0.0, request.deadline - clock.now())):
                await self._submit(request, self._inbox)
                return unpack_result(await future)
        except TimeoutError:
            return None
        finally:
            waiting = self._open.get(job_id, [])
            if future in waiting:
                waiting.remove(future)
            if not waiting:
                self._open.pop(job_id, None)
                self._asked.pop(job_id, None)

    async def tell(self, request: Request) -> None:
        await self._submit(request, "")

    async def drop_results(self, skills: Iterable[str], holding: Collection[str]) -> int:
        """Kept results of these skills that hold one of the texts, whoever's they are: what is replayed after that is
        done again. Raises `Unavailable`."""
        wanted = [to_json(text)[1:-1] for text in holding if text]
        dropped = 0
        try:
            for skill in skills if wanted else ():
                async for key in self._redis.scan_iter(f"{result_key_prefix}{skill}:*", count=1000):
                    kept = await self._redis.get(key)
                    if kept is not None and any(text in kept for text in wanted):
                        dropped += int(await self._redis.delete(key))
        except broken.RedisError as error:
            raise Unavailable(detail=f"redis: {type(error).__name__}") from error
        return dropped

    async def _submit(self, request: Request, inbox: str) -> None:
        job_id = request.job_id
        life = max(60_000, int((request.deadline - clock.now()) * 1000) + 60_000)
        try:
            await self._enqueue(
                keys=enqueue_keys(queue_of(request.skill.partition(".")[0]), job_id),
                args=[job_id, pack(request), min(life, JOB_KEPT_MS), inbox, HANDED_MS, RETRIES_KEPT_S],
            )
        except broken.RedisError as error:
            raise Unavailable(detail=f"redis: {type(error).__name__}") from error

    async def _read_inbox(self) -> None:
        while True:
            try:
                got = await self._line.call("BLMPOP", 5, 1, self._inbox, "LEFT", "COUNT", 64)
            except (broken.ConnectionError, broken.TimeoutError, broken.ResponseError) as error:
                log.warning("! inbox unreadable, trying again: %s", type(error).__name__)
                await asyncio.sleep(0.2)
                await self._ask_again()
                continue
            for item in got[1] if got else ():
                self._deliver(item)

    async def _ask_again(self) -> None:
        """After a break: results may have been pushed to nobody. Asking again attaches, or enqueues what was lost."""
        for request in list(self._asked.values()):
            try:
                await self._submit(request, self._inbox)
            except Unavailable:
                return

    def _deliver(self, item: bytes) -> None:
        job_id, _, raw = item.partition(b"\n")
        self._settle(job_id.decode(), raw)

    def _settle(self, job_id: str, raw: bytes) -> None:
        for future in self._open.get(job_id, ()):
            if not future.done():
                future.set_result(raw)
