"""arq's worker, woken by a doorbell instead of a clock, with leases on running jobs and results that are pushed.

What stays arq's: the queue, the job, retry, in-progress and result records, so that its client and its tools work,
and the worker's frame. What is replaced, each by one script (docs/decisions/0002): finding and claiming work (no read
limit that orphans can fill, no WATCH that kills the worker, no second round trip for the record), and finishing it
(only by the worker that still holds the claim; every waiting inbox gets the result). A claim lives `CLAIM_MS` and is
renewed, so the job of a killed worker is taken over within that time.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import logging
import os
import secrets
import signal
import socket
import time
from typing import TYPE_CHECKING, Any, cast

from arq.connections import ArqRedis
from arq.constants import (
    in_progress_key_prefix,
    job_key_prefix,
    result_key_prefix,
    retry_key_prefix,
)
from arq.jobs import SerializationError, deserialize_job_raw, serialize_result
from arq.utils import timestamp_ms
from arq.worker import Worker, func
from redis.exceptions import RedisError

from mesh import clock
from mesh.bus import (
    FAILURES_KEPT_S,
    FUNCTION,
    HANDED,
    HANDED_MS,
    INBOX_KEPT_MS,
    RETRIES_KEPT_S,
    bell_of,
    deserialize,
    failures_of,
    serialize,
    waiting_of,
)
from mesh.connections import Batched, Line, connect
from mesh.envelope import Failed
from mesh.errors import Crashed, TimedOut, Unavailable
from mesh.skills import queue_of

if TYPE_CHECKING:
    from arq.typing import WorkerCoroutine

    from mesh.dispatch import Dispatcher

log = logging.getLogger(__name__)

CLAIM_MS = 10_000
BEAT_S = 2.0
CLOCK_EVERY = 15
"""Beats between two looks at Redis's clock."""
OUR_FAULT = (Crashed.code, TimedOut.code, Unavailable.code)
"""Outcomes that an operator should see; the others are answers."""
MOST_TRIES = 5
"""Crashes that one job may cause before its asker gets an apology."""
POLL_S = 1
"""How long a worker sleeps when no bell rings: the bound on the delay of a deferred job or a lost bell."""

# KEYS: queue, bell. ARGV: room, claim ms, worker id, in-progress, job, retry and result prefixes, a retry
# count's life s. Takes back a job that was rung out while nobody listened, then scans past claimed jobs, page by page.
# Returns fours: job id, record ('' when it expired), which try this is, a kept result or ''.
CLAIM = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local out, offset, room = {}, 0, tonumber(ARGV[1])
local oldest = redis.call('LINDEX', KEYS[2], -1)
local cut = oldest and string.find(oldest, '\\n', 1, true)
if cut then
  redis.call('RPOP', KEYS[2])
  local key = ARGV[4] .. string.sub(oldest, 1, cut - 1)
  if redis.call('GET', key) == '{handed}' then
    redis.call('DEL', key, ARGV[6] .. string.sub(oldest, 1, cut - 1))
  end
end
while room > 0 do
  local page = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', offset, 100)
  for _, id in ipairs(page) do
    if room == 0 then break end
    if redis.call('SET', ARGV[4] .. id, ARGV[3], 'NX', 'PX', ARGV[2]) then
      room = room - 1
      out[#out + 1] = id
      out[#out + 1] = redis.call('GET', ARGV[5] .. id) or ''
      local first = redis.call('SET', ARGV[6] .. id, 1, 'NX', 'EX', ARGV[8])
      out[#out + 1] = first and 1 or redis.call('INCR', ARGV[6] .. id)
      out[#out + 1] = redis.call('GET', ARGV[7] .. id) or ''
    end
  end
  if #page < 100 then break end
  offset = offset + 100
end
return out
""".replace("{handed}", HANDED.decode())

# KEYS: in-progress keys. ARGV: claim ms, worker id. Returns how many are still ours.
RENEW = """
local ours = 0
for _, key in ipairs(KEYS) do
  local owner = redis.call('GET', key)
  if owner == ARGV[2] or owner == '{handed}' then
    redis.call('SET', key, ARGV[2], 'PX', ARGV[1])
    ours = ours + 1
  end
end
return ours
""".replace("{handed}", HANDED.decode())

# KEYS: in-progress, job, result, retry, queue, waiting. ARGV: worker id, job id, result, its life ms (0: don't keep),
# an inbox's life ms. Only the worker that holds the claim can finish, and only once.
FINISH = """
local owner = redis.call('GET', KEYS[1])
if owner and owner ~= ARGV[1] and owner ~= '{handed}' then return 0 end
local inboxes = redis.call('SMEMBERS', KEYS[6])
redis.call('DEL', KEYS[1], KEYS[2], KEYS[4], KEYS[6])
if redis.call('ZREM', KEYS[5], ARGV[2]) == 0 then return 0 end
if ARGV[4] ~= '0' then redis.call('SET', KEYS[3], ARGV[3], 'PX', ARGV[4]) end
for _, inbox in ipairs(inboxes) do
  redis.call('RPUSH', inbox, ARGV[2] .. '\\n' .. ARGV[3])
  redis.call('PEXPIRE', inbox, ARGV[5])
end
return 1
""".replace("{handed}", HANDED.decode())

# KEYS: in-progress, bell. ARGV: worker id.
RELEASE = """
local owner = redis.call('GET', KEYS[1])
if owner ~= ARGV[1] and owner ~= '{handed}' then return 0 end
redis.call('DEL', KEYS[1])
redis.call('LPUSH', KEYS[2], '1')
return 1
""".replace("{handed}", HANDED.decode())

_PREFIXES = (in_progress_key_prefix, job_key_prefix, retry_key_prefix, result_key_prefix)


class MeshWorker(Worker):
    """Serves one agent's queue with one dispatcher. `max_tries` bounds the crashes that one job may cause."""

    def __init__(
        self,
        agent: str,
        dispatcher: Dispatcher,
        redis_url: str,
        *,
        max_jobs: int = 32,
        keep_result_s: float = 300.0,
    ) -> None:
        self.id = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(3)}"
        self.agent = agent
        self._redis = connect(redis_url)
        self._bell = Line(self._redis)
        pool = ArqRedis(
            connection_pool=self._redis.connection_pool,
            job_serializer=serialize,
            job_deserializer=deserialize,
            default_queue_name=queue_of(agent),
        )
        self._dispatcher = dispatcher
        super().__init__(
            functions=[func(cast("WorkerCoroutine", dispatcher.dispatch), name=FUNCTION)],
            max_tries=MOST_TRIES,
            queue_name=queue_of(agent),
            redis_pool=pool,
            max_jobs=max_jobs,
            keep_result=keep_result_s,
            poll_delay=POLL_S,
            handle_signals=False,
            job_serializer=serialize,
            job_deserializer=deserialize,
        )
        self._claim = Batched(self._redis, CLAIM)
        self._release = Batched(self._redis, RELEASE)
        self._renew = self._redis.register_script(RENEW)
        self._finish = Batched(self._redis, FINISH)
        self._room = asyncio.Event()
        self._started_at = time.time()
        self.grace_s = 5.0
        """How long running jobs may go on after the signal to stop; what is left is put back."""

    # ── running ───────────────────────────────────────────────────────────────────────────────────────────────

    async def serve(self) -> None:
        """Until SIGTERM or SIGINT, or until it is cancelled. Work that is not done by then is put back."""
        loop = asyncio.get_running_loop()
        stopped = asyncio.Event()
        for name in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(name, stopped.set)
        loop_task = asyncio.create_task(self._take_jobs(), name="take-jobs")
        beat_task = asyncio.create_task(self._beat(), name="beat")
        stop_task = asyncio.create_task(stopped.wait(), name="stop")
        try:
            done, _ = await asyncio.wait({loop_task, beat_task, stop_task}, return_when=asyncio.FIRST_COMPLETED)
            for task in done - {stop_task}:
                task.result()
        finally:
            await self._wind_down(loop_task, beat_task, stop_task)

    async def _wind_down(self, *tasks: asyncio.Task[Any]) -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self.tasks:
            await asyncio.wait(self.tasks.values(), timeout=self.grace_s)
        for running in self.tasks.values():
            running.cancel()
        await asyncio.gather(*self.tasks.values(), return_exceptions=True)
        with contextlib.suppress(RedisError):
            await self._redis.delete(self._alive_key)
        for line in (self._bell, self._claim, self._release, self._finish):
            await line.close()
        await self._redis.aclose()

    # ── one job ───────────────────────────────────────────────────────────────────────────────────────────────

    async def _work(self, job_id: str, record: bytes, tries: int, kept: bytes) -> None:
        """arq's `run_job`, for one function that never raises, and with the record already at hand."""
        began = timestamp_ms()
        try:
            function_name, args, _, _, enqueued = deserialize_job_raw(record, deserializer=self.job_deserializer)
            function = self.functions[function_name]
            (body,) = args
            skill = str(body["skill"])
        except (SerializationError, KeyError, TypeError, ValueError) as error:
            log.error("! job=%s can't be run: %s bytes=%d", job_id, type(error).__name__, len(record))
            await self._give_up(job_id, tries, began)
            return
        if tries > self.max_tries:
            log.error("! job=%s tries=%d gives up", job_id, tries)
            await self._give_up(job_id, tries, began)
            return
        try:
            refused = await self._dispatcher.refusal(body) if kept else None
            if kept and refused is None:
                await self._finish_job(job_id, kept, keep=False)
                return
            outcome = refused or await function.coroutine({"job_id": job_id, "job_try": tries}, body)
        except asyncio.CancelledError:
            await self._put_back(job_id)
            raise
        self.jobs_complete += 1
        keep = outcome.get("outcome") == "ok" and self._dispatcher.keeps(skill)
        await self._finish_job(job_id, self._result(job_id, tries, enqueued, began, outcome), keep=keep)
        if outcome.get("code") in OUR_FAULT:
            await self._count_failure()

    async def _count_failure(self) -> None:
        self.jobs_failed += 1
        key = failures_of(self.queue_name)
        with contextlib.suppress(RedisError):
            async with self._redis.pipeline(transaction=True) as change:
                change.incr(key)
                change.expire(key, FAILURES_KEPT_S)
                await change.execute()

    async def _give_up(self, job_id: str, tries: int, began: int) -> None:
        outcome = Failed(code=Crashed.code, user_text=Crashed.default).model_dump(mode="json")
        await self._finish_job(job_id, self._result(job_id, tries, began, began, outcome), keep=False)
        await self._count_failure()

    def _result(self, job_id: str, tries: int, enqueued: int, began: int, outcome: dict[str, Any]) -> bytes:
        """arq's own form, so that its tools can read it."""
        ref = f"{job_id}:{FUNCTION}"
        result = serialize_result(
            *(FUNCTION, (), {}, tries, enqueued, True, outcome, began, timestamp_ms(), ref, self.queue_name, job_id),
            serializer=self.job_serializer,
        )
        return result or b""

    # ── finding work ──────────────────────────────────────────────────────────────────────────────────────────

    async def _take_jobs(self) -> None:
        bell = bell_of(self.queue_name)
        while True:
            room = self.max_jobs - self.job_counter
            if room == 0:
                self._room.clear()
                await self._room.wait()
            elif await self._claim_jobs(room) < room:  # the queue is empty; what comes now rings
                await self._listen(bell)
            self._reap()

    async def _listen(self, bell: str) -> None:
        """Begins the jobs that the bell carries, until it only rings, or it is time to look at the queue again.

        What the bell carries was rung after the look or the hearing before it; if that is too long ago (this process
        was stopped), the job may be somebody else's by now, and is left to whoever claims it.
        """
        looked = since = self.loop.time()
        while self.loop.time() - looked < POLL_S and self.job_counter < self.max_jobs:
            await asyncio.sleep(0)  # what was begun goes on before the waiting does
            asked = self.loop.time()
            rung = await self._bell.call("BLPOP", bell, POLL_S)
            raw_id, _, record = rung[1].partition(b"\n") if rung else (b"", b"", b"")
            if not record or self.loop.time() - since > HANDED_MS / 2000:
                return
            self._begin(raw_id.decode(), record, 1, b"")
            since = asked

    def _begin(self, job_id: str, record: bytes, tries: int, kept: bytes) -> None:
        if job_id in self.tasks and not self.tasks[job_id].done():
            return  # this process was held up for longer than its claim: it is at it already
        self.job_counter += 1
        task = self.loop.create_task(self._work(job_id, record, tries, kept), name=f"job {job_id}")
        task.add_done_callback(self._job_over)
        self.tasks[job_id] = task

    async def _claim_jobs(self, room: int) -> int:
        claimed: list[Any] = await self._claim(
            [self.queue_name, bell_of(self.queue_name)],
            [room, CLAIM_MS, self.id, *_PREFIXES, RETRIES_KEPT_S],
        )
        for raw_id, record, tries, kept in zip(*(claimed[n::4] for n in range(4)), strict=True):
            self._begin(raw_id.decode(), record, tries, kept)
        return len(claimed) // 4

    def _job_over(self, _: asyncio.Task[Any]) -> None:
        self.job_counter -= 1
        self._room.set()

    def _reap(self) -> None:
        for job_id, task in list(self.tasks.items()):
            if task.done():
                del self.tasks[job_id]
                task.result()

    # ── staying alive ─────────────────────────────────────────────────────────────────────────────────────────

    @property
    def _alive_key(self) -> str:
        return f"mesh:worker:{self.agent}:{self.id}"

    async def _beat(self) -> None:
        for number in itertools.count():
            if number % CLOCK_EVERY == 0:
                await clock.look(self._redis)
            keys = [in_progress_key_prefix + job_id for job_id, task in self.tasks.items() if not task.done()]
            if keys:
                ours = await self._renew(keys=keys, args=[CLAIM_MS, self.id])
                if ours < len(keys):
                    log.debug("claims=%d ours=%d", len(keys), ours)
            await self._redis.set(self._alive_key, json.dumps(self._state()), px=int(BEAT_S * 3000))
            await asyncio.sleep(BEAT_S)

    def _state(self) -> dict[str, Any]:
        return {
            "agent": self.agent,
            "pid": os.getpid(),
            "since": self._started_at,
            "running": self.job_counter,
            "done": self.jobs_complete,
            "failed": self.jobs_failed,
        }

    # ── finishing ─────────────────────────────────────────────────────────────────────────────────────────────

    async def _finish_job(self, job_id: str, result: bytes, *, keep: bool) -> None:
        """Only what went well is kept: a failure must not be the answer to trying again."""
        keep_ms = int((self.keep_result_s or 0) * 1000) if keep else 0
        ours = await self._finish(
            [
                in_progress_key_prefix + job_id,
                job_key_prefix + job_id,
                result_key_prefix + job_id,
                retry_key_prefix + job_id,
                self.queue_name,
                waiting_of(job_id),
            ],
            [self.id, job_id, result, keep_ms, INBOX_KEPT_MS],
        )
        if not ours:
            log.warning("! job=%s was taken over; this result is dropped", job_id)

    async def _put_back(self, job_id: str) -> None:
        """It stays in the queue; without the claim, another worker takes it at once."""
        await self._release([in_progress_key_prefix + job_id, bell_of(self.queue_name)], [self.id])
