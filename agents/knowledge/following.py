"""The folders of the settings, looked at every hour: what is new is taken in, what has gone is withdrawn."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from agents.knowledge.cards import card_of
from mesh.access import Grant
from mesh.contracts.documents import Ingested
from mesh.contracts.upkeep import FolderRead
from mesh.errors import MeshError
from mesh.folders import File, Folder, Look, read, shared
from mesh.settings import Watched

if TYPE_CHECKING:
    from agents.knowledge.library import Library

BEGUN_WITHIN_S = 240.0

log = logging.getLogger(__name__)


@dataclass
class Following:
    library: Library
    watched: Sequence[Watched] = ()
    home: Path = Path()
    _one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)

    async def look(self, grant: Grant) -> tuple[FolderRead, ...]:
        """What is not begun within `BEGUN_WITHIN_S` is left, and counted."""
        async with self._one_at_a_time:
            until = time.monotonic() + BEGUN_WITHIN_S
            seen = await asyncio.to_thread(self._seen)
            return tuple([await self._follow(grant, folder, look, until) for folder, look in seen])

    def _seen(self) -> list[tuple[Folder, Look]]:
        folders = [Folder(each, self.home) for each in dict.fromkeys(self.watched)]
        return shared([(folder, folder.seen()) for folder in folders])

    async def _follow(self, grant: Grant, folder: Folder, seen: Look, until: float) -> FolderRead:
        if seen.unseen:
            log.warning("! folder=%s unseen=%d", folder.record_file.stem, len(seen.unseen))

        async def add(file: File) -> Ingested:
            raw = await asyncio.to_thread(read, file)
            watched = folder.watched
            document, outcome = await self.library.ingesting.ingest(
                grant, file.name, raw, owner=watched.owner, visibility=watched.visibility
            )
            return Ingested(document=card_of(document), outcome=outcome, parts=len(document.parts))

        async def withdraw(document_id: str) -> None:
            await self.library.delete(grant, document_id)

        def tell(what: str, name: str, came: Ingested | MeshError | None) -> None:
            if isinstance(came, MeshError):
                log.warning("! folder=%s %s code=%s", folder.record_file.stem, what, came.code)

        done = await folder.follow(seen, add, withdraw, tell, until=until)
        log.info(
            "→ folder=%s files=%d added=%d withdrawn=%d refused=%d later=%d left=%d",
            *(folder.record_file.stem, len(seen.found)),
            *(done.added, done.withdrawn, done.refused, done.later, done.left),
        )
        return FolderRead(
            path=str(folder.watched.path),
            files=len(seen.found),
            added=done.added,
            withdrawn=done.withdrawn,
            refused=done.refused,
            later=done.later,
            left=done.left,
            trouble=" ".join(seen.troubles),
        )
