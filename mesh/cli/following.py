"""`adiyan kb watch`: a folder whose files become documents, for as long as it runs."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from mesh.bus import Bus
from mesh.cli.admin import ask_as_owner, needs, told
from mesh.cli.progressing import bars, documents_shown
from mesh.contracts.documents import DELETE_DOCUMENT, INGEST, DocumentRef, Ingest, Ingested
from mesh.errors import Malformed, MeshError
from mesh.folders import File, Folder, Look, Tally, clash, read
from mesh.settings import Settings, Watched
from mesh.up import running_settings


async def watch(path: Path, owner: str, console: Console, *, everyone: bool, every_s: float, once: bool) -> int:
    """Until it is cancelled. Returns how many files were refused or left for later; what went wrong is named, and the
    other files are taken in all the same."""
    settings, _ = running_settings()
    await needs(settings, "knowledge")
    watched = Watched(path, owner or settings.system_owner, "global" if everyone else "private")
    folder = Folder(watched, settings.adiyan_home)
    follower = Follower(settings, folder, console, once=once)
    seen = await asyncio.to_thread(folder.look)
    async with Bus(settings.redis_url) as bus:
        while True:
            tally = await follower.follow(bus, seen)
            if once and not seen.settling:
                return tally.refused + tally.later + len(seen.clashes)
            await asyncio.sleep(every_s)
            seen = await follower.look()


class Follower:
    def __init__(self, settings: Settings, folder: Folder, console: Console, *, once: bool) -> None:
        self._settings = settings
        self._folder = folder
        self._console = console
        self._once = once
        self._said: set[str] = set()
        self._first = True

    async def look(self) -> Look:
        try:
            return await asyncio.to_thread(self._folder.look)
        except Malformed as error:  # a disk that comes and goes
            self._say_once(error.user_text)
            return Look(0, (), (), (), 0)

    async def follow(self, bus: Bus, seen: Look) -> Tally:
        watched = self._folder.watched

        async def add(file: File) -> Ingested:
            raw = await asyncio.to_thread(read, file)
            wanted = Ingest(name=file.name, raw=raw, owner=watched.owner, visibility=watched.visibility)
            return await ask_as_owner(bus, self._settings, INGEST, wanted)

        async def withdraw(document_id: str) -> None:
            await ask_as_owner(bus, self._settings, DELETE_DOCUMENT, DocumentRef(document_id=document_id))

        for one, other in seen.clashes:
            self._say_once(clash(one, other))
        if not seen.changed and not seen.gone:
            self._settle(seen)
            return Tally()
        progress = bars(self._console)
        with progress:
            task = progress.add_task("files", total=len(seen.changed) + len(seen.gone))

            def tell(what: str, name: str, came: Ingested | MeshError | None) -> None:
                progress.advance(task)
                if isinstance(came, Ingested):
                    self._said -= {said for said in self._said if said.startswith(f"{name}: ")}
                    if what == "added" or self._first:
                        progress.console.print(f"{_now()} {told(came)}")
                elif isinstance(came, MeshError):
                    self._say_once(f"{name}: {came.user_text}")
                else:
                    progress.console.print(f"{_now()} [green]✓[/] {escape(name)}: gone from the folder, withdrawn")

            async with documents_shown(bus.redis, progress):
                tally = await self._folder.follow(seen, add, withdraw, tell)
        self._settle(seen)
        return tally

    def _settle(self, seen: Look) -> None:
        if self._first:
            watched = self._folder.watched
            whose = "everyone" if watched.visibility == "global" else watched.owner
            doing, then = ("Looked at", "") if self._once else ("Watching", " Ctrl-C ends it; what was taken in stays.")
            path = escape(str(watched.path))
            self._console.print(f"{doing} {path}: {seen.files} file(s), seen by {whose}.{then}", soft_wrap=True)
        self._first = False

    def _say_once(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self._console.print(f"{_now()} [red]✗[/] {escape(text)}", soft_wrap=True)


def _now() -> str:
    return f"[dim]{time.strftime('%H:%M:%S')}[/]"
