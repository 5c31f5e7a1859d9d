"""Real servers for tests: child processes on free ports, gone when the test is."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

READY_WITHIN = 60.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def serving(module: str, *options: str, ready: str = "/", log: Path) -> Iterator[str]:
    """Runs `python -m module … --port N` and yields its address once `ready` answers."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", module, *options, "--port", str(port)],
            stdout=out,
            stderr=subprocess.STDOUT,
        )
        try:
            _wait(process, url + ready, log)
            yield url
        finally:
            process.kill()
            process.wait()


class Restartable:
    """`python -m module … --port N`, which comes back at the same address after it was killed."""

    def __init__(self, module: str, *options: str, ready: str, log: Path) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self._command = [sys.executable, "-m", module, *options, "--port", str(port)]
        self._ready = self.url + ready
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process
        return self._process.pid

    def start(self) -> None:
        """Safe to repeat."""
        if self._process is None:
            with self._log.open("ab") as out:
                self._process = subprocess.Popen(self._command, stdout=out, stderr=subprocess.STDOUT)
            _wait(self._process, self._ready, self._log)

    def kill(self) -> None:
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process = None


def _wait(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    until = time.monotonic() + READY_WITHIN
    while time.monotonic() < until:
        if process.poll() is not None:
            break
        try:
            if httpx.get(url, timeout=1).is_success:
                return
        except httpx.TransportError:
            time.sleep(0.05)
    raise RuntimeError(f"{process.args!r} is not ready: {log.read_text(errors='replace')[-500:]}")


@contextmanager
def qdrant(folder: Path) -> Iterator[str]:
    folder.mkdir(parents=True, exist_ok=True)
    data = str(folder / "data")
    with serving("mesh.embedded.qdrant", "--data", data, ready="/readyz", log=folder / "qdrant.log") as url:
        yield url


@contextmanager
def models(folder: Path) -> Iterator[str]:
    folder.mkdir(parents=True, exist_ok=True)
    with serving("mesh.embedded.models", ready="/api/version", log=folder / "models.log") as url:
        yield url
