"""A real server of MongoDB's protocol, as a child process."""

from __future__ import annotations

import gc
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pymongo import MongoClient
from pymongo.errors import PyMongoError

from mesh.embedded import parts
from tests.processes import free_port

# pymongo's monitor leaves a socket to the collector when its client is closed while it connects
QUIET = pytest.mark.filterwarnings("ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning")


@contextmanager
def mongodb(folder: Path) -> Iterator[str]:
    """Its address, until the block ends; leaving it early by killing the process is fine, too."""
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    with (folder / "mongodb.log").open("wb") as out:
        process = subprocess.Popen(parts.mongodb(port, folder / "data").command, stdout=out, stderr=out)
    address = f"mongodb://127.0.0.1:{port}/?directConnection=true"
    try:
        _wait(address, process)
        yield address
    finally:
        process.kill()
        process.wait()
        gc.collect()  # here, where the warning is expected


def _wait(address: str, process: subprocess.Popen[bytes], within_s: float = 30.0) -> None:
    until = time.monotonic() + within_s
    with MongoClient[dict[str, Any]](address, serverSelectionTimeoutMS=500) as client:
        while True:
            try:
                client.admin.command("ping")
                return
            except PyMongoError:
                if time.monotonic() > until or process.poll() is not None:
                    raise
