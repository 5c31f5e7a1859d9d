"""An embedder that remembers, for benches: the vectors are the server's, and are asked for once. Figures of time never
come from it."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from array import array
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

from mesh.ports.models import Embedder, Vector

FOLDER = "ADIYAN_BENCH_CACHE"
"""Names a folder that is kept between runs; without it each run embeds everything."""


class Remembering:
    """Keyed by model, by use and by the text as it is given."""

    def __init__(self, embedder: Embedder, folder: Path | None = None) -> None:
        self._embedder = embedder
        self.model, self.dims = embedder.model, embedder.dims
        kept = folder or (Path(os.environ[FOLDER]) if os.environ.get(FOLDER) else None)
        if kept:
            kept.mkdir(parents=True, exist_ok=True)
        self._kept = sqlite3.connect(kept / "vectors.sqlite" if kept else ":memory:", timeout=60)
        self._kept.execute("PRAGMA journal_mode = WAL")
        self._kept.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID")

    async def documents(self, texts: Sequence[str]) -> list[Vector]:
        return await self._remembered("documents", texts, self._embedder.documents)

    async def queries(self, texts: Sequence[str]) -> list[Vector]:
        return await self._remembered("queries", texts, self._embedder.queries)

    async def alike(self, texts: Sequence[str]) -> list[Vector]:
        return await self._remembered("alike", texts, self._embedder.alike)

    async def probe(self) -> None:
        await self._embedder.probe()

    async def close(self) -> None:
        self._kept.close()
        await self._embedder.close()

    async def _remembered(
        self,
        use: str,
        texts: Sequence[str],
        embed: Callable[[Sequence[str]], Coroutine[Any, Any, list[Vector]]],
    ) -> list[Vector]:
        keys = [hashlib.sha256(f"{self.model}\0{use}\0{text}".encode()).digest() for text in texts]
        found = {key: vector for key in keys if (vector := self._known(key))}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
        if missing:
            vectors = [array("f", vector) for vector in await embed(list(missing.values()))]
            found.update(zip(missing, vectors, strict=True))
            with self._kept:
                self._kept.executemany(
                    "INSERT OR REPLACE INTO vectors VALUES (?, ?)",
                    [(key, found[key].tobytes()) for key in missing],
                )
        return [found[key] for key in keys]

    def _known(self, key: bytes) -> array[float] | None:
        row = self._kept.execute("SELECT vector FROM vectors WHERE key = ?", (key,)).fetchone()
        return array("f", row[0]) if row else None
