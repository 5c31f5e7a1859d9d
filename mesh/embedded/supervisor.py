"""Starts processes in order, waits until each is ready, restarts what dies, and takes all of them along when it ends.

Children die with the supervisor even when it is killed: on Linux the kernel sends them SIGTERM (PR_SET_PDEATHSIG);
elsewhere they run under `mesh.embedded.leash`. The lock on the data directory is a file descriptor that every child
inherits, so it is held for as long as any of them lives: nothing is opened twice, even after a kill.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import fcntl
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from mesh.errors import MeshError, Misconfigured

log = logging.getLogger(__name__)

READY_FILE = "ADIYAN_READY_FILE"
READY_WITHIN_S = 90.0
"""A cold start on a busy machine takes half a minute; what died meanwhile is seen at once."""
LOCK_WITHIN_S = 10.0
BACK_OFF_S = (0.2, 0.5, 1, 2, 5, 10)
HEALTHY_AFTER_S = 5.0
"""A child that lived this long starts over at the shortest back-off: to start it again costs little of its time, and a
mesh under fire is not kept waiting."""
LOG_BYTES = 10_000_000

_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1

Ready = Callable[[], Awaitable[bool]]


class StartFailed(MeshError):
    """A part did not come up; the text says which, and what it said last."""

    code = "start_failed"


class AlreadyRunning(MeshError):
    code = "already_running"


@dataclass(frozen=True)
class Part:
    """One child. `ready` is asked until it says True."""

    name: str
    command: tuple[str, ...]
    ready: Ready | None = None
    """None: it touches the file that `ADIYAN_READY_FILE` names."""
    env: dict[str, str] = field(default_factory=dict)
    fds: tuple[int, ...] = ()
    """File descriptors that it inherits, beside the lock."""


class Running:
    """A part and its process, kept alive until `stop`."""

    def __init__(self, part: Part, logs: Path, lock_fd: int) -> None:
        self.part = part
        self.restarts = 0
        self.took_s = 0.0
        """From the first start to readiness."""
        self.process: asyncio.subprocess.Process | None = None
        self.log_file = logs / f"{part.name}.log"
        self._ready_file = logs / f"{part.name}.ready"
        self._lock_fd = lock_fd
        self._keeper: asyncio.Task[None] | None = None
        self._stopping = False

    async def start(self) -> None:
        began = time.monotonic()
        await self._spawn()
        await self._until_ready()
        self.took_s = time.monotonic() - began
        self._keep_alive()

    async def launch(self) -> None:
        """Like `start`, without waiting: what dies before it is ready is started again, too."""
        try:
            await self._spawn()
        except OSError as error:
            log.error("! part=%s can't be started: %s", self.part.name, error.strerror)
        self._keep_alive()

    def _keep_alive(self) -> None:
        self._keeper = asyncio.create_task(self._keep(), name=f"keep {self.part.name}")

    async def stop(self, grace: float = 8.0) -> None:
        self._stopping = True
        if self._keeper:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
        process = self.process
        if process is None or process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), grace)
        except TimeoutError:
            log.warning("! part=%s did not stop in %.0f s; killed", self.part.name, grace)
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _spawn(self) -> None:
        self._ready_file.unlink(missing_ok=True)
        with _log_for_append(self.log_file) as out:
            self.process = await asyncio.create_subprocess_exec(
                *_leashed(self.part.command),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env={**os.environ, **self.part.env, READY_FILE: str(self._ready_file)},
                start_new_session=True,  # Ctrl-C is for the supervisor: it ends the others in order
                pass_fds=(self._lock_fd, *self.part.fds),
                preexec_fn=_die_with(os.getpid()) if sys.platform == "linux" else None,
            )

    async def _until_ready(self) -> None:
        until = time.monotonic() + READY_WITHIN_S
        while time.monotonic() < until:
            if self.process is None or self.process.returncode is not None:
                raise StartFailed(f"{self.part.name} did not start: {self.last_words()} (log: {self.log_file})")
            if await self.is_ready():
                return
            await asyncio.sleep(0.03)
        raise StartFailed(f"{self.part.name} was not ready in {READY_WITHIN_S:.0f} s (log: {self.log_file})")

    async def is_ready(self) -> bool:
        return await self.part.ready() if self.part.ready else self._ready_file.exists()

    async def _keep(self) -> None:
        tries = 0
        while not self._stopping:
            process, began = self.process, time.monotonic()
            if process is not None:
                await process.wait()
            if time.monotonic() - began > HEALTHY_AFTER_S:
                tries = 0
            delay = BACK_OFF_S[min(tries, len(BACK_OFF_S) - 1)]
            tries += 1
            code = process.returncode if process else None
            log.warning("! part=%s ended code=%s; starting again in %.1f s", self.part.name, code, delay)
            await asyncio.sleep(delay)
            self.restarts += 1
            try:
                await self._spawn()
            except OSError as error:
                log.error("! part=%s can't be started: %s", self.part.name, error.strerror)

    def last_words(self) -> str:
        try:
            lines = self.log_file.read_text("utf-8", "replace").strip().splitlines()
        except OSError:
            lines = []
        return lines[-1].strip() if lines else "it said nothing"


class Supervisor:
    """`async with Supervisor(home) as supervisor: await supervisor.start(part)`; leaving stops all, last one first."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.running: list[Running] = []
        self.lock: IO[bytes] | None = None

    async def __aenter__(self) -> Supervisor:
        try:
            self.home.mkdir(parents=True, exist_ok=True, mode=0o700)
            (self.home / "logs").mkdir(exist_ok=True)
        except OSError as error:
            raise Misconfigured(f"Setting adiyan_home (ADIYAN_HOME): {self.home}: {error.strerror}.") from error
        self.lock = await _take_lock(self.home / "lock")
        return self

    async def __aexit__(self, *_: object) -> None:
        for running in reversed(list(self.running)):
            await running.stop()
        if self.lock:
            self.lock.close()

    async def start(self, part: Part) -> None:
        await self._add(part).start()

    async def start_together(self, *parts: Part) -> None:
        results = await asyncio.gather(*(self.start(part) for part in parts), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result

    async def launch(self, part: Part) -> Running:
        """Its process is there when this returns, not ready yet; it is kept alive all the same."""
        running = self._add(part)
        await running.launch()
        return running

    async def stop(self, running: Running) -> None:
        await running.stop()
        self.running.remove(running)

    def _add(self, part: Part) -> Running:
        if self.lock is None:
            raise RuntimeError("the supervisor is not open: use `async with Supervisor(...)`")
        running = Running(part, self.home / "logs", self.lock.fileno())
        self.running.append(running)
        return running


def listen(host: str, preferred: int = 0) -> socket.socket:
    """On the preferred port when it is free, on another one otherwise. Raises `StartFailed`."""
    trouble = ""
    for port in (preferred, 0):
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
            listener.listen(1024)
        except OSError as error:
            listener.close()
            trouble = error.strerror or type(error).__name__
            continue
        return listener
    raise StartFailed(f"Nothing can listen on {host}: {trouble}.")


def free_port() -> int:
    """One on loopback that is free now."""
    with listen("127.0.0.1") as probe:
        return int(probe.getsockname()[1])


async def _take_lock(file: Path) -> IO[bytes]:
    """Waits a little for a mesh that is just stopping. Raises `AlreadyRunning`."""
    handle = file.open("ab")
    until = time.monotonic() + LOCK_WITHIN_S
    waited = False
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            alive = _alive(file.parent / "mesh.json")
            if alive or time.monotonic() > until:
                handle.close()
                raise AlreadyRunning(_who_holds(file.parent, alive)) from None
            if not waited:
                log.info("waiting for an earlier mesh in %s to end", file.parent)
                waited = True
            await asyncio.sleep(0.1)
        else:
            os.set_inheritable(handle.fileno(), True)
            return handle


def _alive(record: Path) -> int | None:
    try:
        pid = int(json.loads(record.read_text())["pid"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return pid if runs(pid) else None


def runs(pid: int) -> bool:
    """A zombie does not: it holds nothing, and waits only to be noticed."""
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return True  # no /proc here, and it took the signal
    except OSError:
        return False
    return state != "Z"


def _who_holds(home: Path, pid: int | None) -> str:
    if pid:
        return f"A mesh already runs on {home} (process {pid}). Stop it first, or set ADIYAN_HOME to another folder."
    return f"Another process still holds {home}: an earlier mesh is ending. Try again in a few seconds."


def _log_for_append(file: Path) -> IO[bytes]:
    if file.exists() and file.stat().st_size > LOG_BYTES:
        file.replace(file.with_suffix(".log.1"))
    return file.open("ab")


def _leashed(command: tuple[str, ...]) -> tuple[str, ...]:
    if sys.platform == "linux":
        return command
    return (sys.executable, "-m", "mesh.embedded.leash", str(os.getpid()), *command)


def _die_with(parent: int) -> Callable[[], None]:
    def between_fork_and_exec() -> None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            os._exit(1)

    return between_fork_and_exec
