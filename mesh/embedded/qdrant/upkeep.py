"""What happens between requests: flushing, and building indexes.

The engine holds Python's interpreter lock in every call (measured with 0.9: 13 s of a frozen process while 12,000
vectors were indexed). So an index is built in a child process, on a copy of the shard; what is written meanwhile is
repeated on the copy, and the copy takes the shard's place.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from mesh.embedded.qdrant.collection import Collection
from mesh.embedded.qdrant.store import Store

log = logging.getLogger(__name__)

EVERY_S = 1.0
FLUSH_AFTER_S = 5.0
QUIET_S = 2.0
"""A collection is optimized when nothing was written to it for this long, or it grew much too far."""
PATIENCE = 5
ERASED_AFTER_S = 60.0
"""What was deleted is cleared out of the files in a quiet moment, or after this long without one."""
REST_S, REST = 10.0, 20
"""Between two clearings of one collection: seconds, or so many times as long as the last one took."""
NICE = 10
NOTHING_TO_DO = 3

_PR_SET_PDEATHSIG = 1

InThread = Callable[[Callable[[], None]], asyncio.Future[None]]


class Upkeep:
    def __init__(self, store: Store, in_thread: InThread, optimize_after: int) -> None:
        """`optimize_after`: points written to one collection until its index is built again."""
        self._store = store
        self._in_thread = in_thread
        self._optimize_after = optimize_after
        self._child: subprocess.Popen[bytes] | None = None
        self._optimizing: asyncio.Future[None] | None = None
        self._stopping = False
        self._rests_until: dict[str, float] = {}

    async def run(self) -> None:
        while not self._stopping:
            await asyncio.sleep(EVERY_S)
            for collection in self._store.all():
                await self._guarded(partial(collection.flush_if_older, FLUSH_AFTER_S))
            if self._optimizing is None or self._optimizing.done():
                self._optimize_one()

    async def stop(self) -> None:
        self._stopping = True
        if self._child:
            self._child.kill()
        if self._optimizing:
            await self._optimizing

    def _optimize_one(self) -> None:
        for collection in self._store.all():
            anew = self._is_to_be_cleared(collection)
            if anew or self._is_due(collection):
                work = partial(self._optimize, collection, anew=anew)
                self._optimizing = asyncio.ensure_future(self._guarded(work))
                return

    def _is_due(self, collection: Collection) -> bool:
        quiet = time.monotonic() - collection.written_at >= QUIET_S
        return collection.changes >= self._optimize_after * (1 if quiet else PATIENCE)

    def _is_to_be_cleared(self, collection: Collection) -> bool:
        now = time.monotonic()
        if collection.erased_since is None or now < self._rests_until.get(collection.name, 0):
            return False
        return now - collection.written_at >= QUIET_S or now - collection.erased_since >= ERASED_AFTER_S

    async def _guarded(self, work: Callable[[], None]) -> None:
        try:
            await self._in_thread(work)
        except Exception:  # the boundary: upkeep that fails once is tried again, and serving goes on meanwhile
            log.exception("! upkeep failed")

    def _optimize(self, collection: Collection, *, anew: bool) -> None:
        began = time.monotonic()
        copy = collection.copy_for_optimizing()
        if copy is None:
            return
        try:
            code = self._run_child(copy, *(["anew"] if anew else []))
        except OSError:
            collection.forget(copy)
            raise
        took = time.monotonic() - began
        if anew:
            self._rests_until[collection.name] = time.monotonic() + max(REST_S, REST * took)
        if code == 0:
            collection.adopt(copy, anew=anew)
            log.info("↻ collection=%s %s took_s=%.1f", collection.name, "cleared" if anew else "optimized", took)
            return
        collection.forget(copy)
        if code != NOTHING_TO_DO and not self._stopping:
            log.error("! collection=%s was not optimized code=%s", collection.name, code)

    def _run_child(self, copy: Path, *how: str) -> int:
        if self._stopping:
            return NOTHING_TO_DO
        command = [sys.executable, "-m", __name__, str(copy), str(os.getpid()), *how]
        self._child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        try:
            if self._stopping:
                self._child.kill()
            return self._child.wait()
        finally:
            self._child = None


def optimize(shard: str, parent: int, how: str = "") -> int:
    """The child's whole life. It ends with its parent, so that nobody works on a copy that was given up."""
    import qdrant_edge as edge

    from mesh.embedded.qdrant.anew import write_anew

    os.nice(NICE)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        return 1
    if how == "anew":
        write_anew(Path(shard))
    opened = edge.EdgeShard.load(shard)
    changed = opened.optimize()
    opened.flush()
    opened.close()
    return 0 if changed or how == "anew" else NOTHING_TO_DO


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        raise SystemExit(optimize(sys.argv[1], int(sys.argv[2]), *sys.argv[3:]))
