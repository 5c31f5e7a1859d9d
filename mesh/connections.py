"""Connections to Redis: patient ones from a pool, and lean ones for the paths that every job takes."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Sequence
from typing import Any, TypeVar, cast

import hiredis
from redis import exceptions as broken
from redis.asyncio import Redis
from redis.asyncio.connection import Connection, ConnectionPool
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialBackoff

T = TypeVar("T")
Command = tuple[Any, ...]

ANSWER_WITHIN_S = 15.0
"""Longer than the longest blocking pop, which is five seconds."""
TRIES = 12
"""With the back-off below, about ten seconds."""
PASSING = (broken.ConnectionError, broken.TimeoutError, broken.BusyLoadingError)


class _Connection(Connection):
    """Times the answer instead of the sending.

    redis-py puts each write into `asyncio.wait_for`, which starts a task per command and, before Python 3.12, loses a
    cancellation that meets a finished write: what was cancelled then goes on for ever. So its own time-out stays off.
    """

    async def read_response(self, *args: Any, **options: Any) -> Any:
        try:
            async with asyncio.timeout(ANSWER_WITHIN_S):
                return await super().read_response(*args, **options)
        except TimeoutError as error:
            raise broken.TimeoutError(f"no answer within {ANSWER_WITHIN_S:.0f} s") from error

    async def can_read_destructive(self) -> bool:
        """Asked before each command: has the other side hung up? Left-over answers can't be, since a read that did
        not end closes the connection."""
        return self._reader is None or self._reader.at_eof()


def connect(url: str) -> Redis:
    """A client that rides out a restart of Redis: about ten seconds of patience, then `ConnectionError`."""
    pool = ConnectionPool.from_url(
        url,
        connection_class=_Connection,
        max_connections=256,
        socket_connect_timeout=5,
        socket_keepalive=True,
        retry=_patience(),
        retry_on_error=list(PASSING),
    )
    return Redis.from_pool(pool)


def answer(given: Awaitable[T] | T) -> Awaitable[T]:
    """redis-py types every command as if one client were both the blocking and the async one."""
    return cast("Awaitable[T]", given)


class Line:
    """A connection of its own, one exchange at a time: no pool, no pipeline object, half of redis-py's cost.

    A broken exchange is tried again, so commands must be safe to repeat.
    """

    def __init__(self, redis: Redis) -> None:
        self._connection = cast("Connection", redis.connection_pool.make_connection())  # type: ignore[no-untyped-call]
        self._retry = _patience()

    async def call(self, *command: Any) -> Any:
        """Raises what Redis answered, or `ConnectionError` when patience ends."""
        (result,) = await self.exchange([command])
        if isinstance(result, Exception):
            raise result
        return result

    async def exchange(self, commands: Sequence[Command]) -> list[Any]:
        """One round trip. An error that Redis answers stands in the place of its command's result."""

        async def once() -> list[Any]:
            packed = [hiredis.pack_command(command) for command in commands]  # in C: a seventh of redis-py's time
            await self._connection.send_packed_command(packed, check_health=False)
            return [await self._read() for _ in commands]

        return await self._retry.call_with_retry(once, self._broke)

    async def close(self) -> None:
        await self._connection.disconnect()

    async def _read(self) -> Any:
        try:
            return await self._connection.read_response()
        except broken.BusyLoadingError:
            raise
        except broken.ResponseError as error:
            return error

    async def _broke(self, _: Exception) -> None:
        await self._connection.disconnect(nowait=True)


class Batched:
    """A script whose concurrent calls share one round trip: while one batch is under way, the next one gathers.

    A lone call goes out at once. The script must be safe to repeat.
    """

    MOST = 128

    def __init__(self, redis: Redis, script: str) -> None:
        self._line = Line(redis)
        self._script = script
        self._sha = hashlib.sha1(script.encode()).hexdigest()  # noqa: S324 - Redis's own name for a script
        self._calls: list[tuple[Command, asyncio.Future[Any]]] = []
        self._busy = False
        self._flusher: asyncio.Task[None] | None = None

    async def __call__(self, keys: Sequence[str], args: Sequence[Any]) -> Any:
        """Raises what Redis answered, or what broke."""
        call = ("EVALSHA", self._sha, len(keys), *keys, *args)
        if self._busy:
            future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            self._calls.append((call, future))
            return await future
        self._busy = True
        try:
            (result,) = await self._exchange([call])
        finally:
            self._busy = bool(self._calls)
            if self._busy:
                self._flusher = asyncio.create_task(self._flush(), name="flush")
        if isinstance(result, Exception):
            raise result
        return result

    async def close(self) -> None:
        if self._flusher and not self._flusher.done():
            self._flusher.cancel()
            await asyncio.gather(self._flusher, return_exceptions=True)
        await self._line.close()

    async def _flush(self) -> None:
        while self._calls:
            batch, self._calls = self._calls[: self.MOST], self._calls[self.MOST :]
            try:
                results: list[Any] = await self._exchange([call for call, _ in batch])
            except (broken.RedisError, OSError) as error:
                results = [error] * len(batch)
            except BaseException:  # nobody may be left waiting for a flusher that is gone
                for _, future in (*batch, *self._calls):
                    future.cancel()
                raise
            for (_, future), result in zip(batch, results, strict=True):
                if future.done():
                    continue
                if isinstance(result, Exception):
                    future.set_exception(result)
                else:
                    future.set_result(result)
        self._busy = False

    async def _exchange(self, calls: list[Command]) -> list[Any]:
        results = await self._line.exchange(calls)
        missing = [n for n, result in enumerate(results) if isinstance(result, broken.NoScriptError)]
        if missing:  # the first use, or Redis was restarted
            await self._line.call("SCRIPT", "LOAD", self._script)
            for n, result in zip(missing, await self._line.exchange([calls[n] for n in missing]), strict=True):
                results[n] = result
        return results


def _patience() -> Retry:
    return Retry(ExponentialBackoff(cap=1, base=0.05), TRIES, supported_errors=PASSING)
