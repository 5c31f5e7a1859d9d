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
from mesh.errors import MeshError
from mesh.folders import File, Folder, Look, named, read, shared
from mesh.settings import Settings, Watched
from mesh.up import running_settings


async def watch(path: Path, owner: str, console: Console, *, everyone: bool, every_s: float, once: bool) -> int:
    """Until it is cancelled. Returns how many files were refused, left for later or could not be looked at; what went
    wrong is named, and the other files are taken in all the same."""
    settings, _ = running_settings()
    await needs(settings, "knowledge", owner)
    watched = Watched(path, owner or settings.system_owner, "global" if everyone else "private")
    folder = Folder(watched, settings.adiyan_home)
    follower = Follower(settings, folder, console, once=once)
    await asyncio.to_thread(folder.look)  # what is no folder is told at once
    async with Bus(settings.redis_url) as bus:
        while True:
            seen = await follower.look()
            await follower.follow(bus, seen)
            if once and not seen.settling:
                return len(follower.wrong) + len(seen.clashes) + len(seen.unseen)
            await asyncio.sleep(every_s)


class Follower:
    def __init__(self, settings: Settings, folder: Folder, console: Console, *, once: bool) -> None:
        self._settings = settings
        self._folder = folder
        self._console = console
        self._once = once
        self._troubles: tuple[str, ...] = ()
        self._first = True
        self.wrong: dict[str, str] = {}
        """By the file's name, why it was not taken in or not withdrawn."""

    async def look(self) -> Look:
        return await asyncio.to_thread(self._look)

    def _look(self) -> Look:
        """Where there is something to do, its owner's other folders are asked whether they have a file of that name."""
        own = self._folder
        seen = own.seen()
        if not (self._first or own.changed(seen) or own.gone(seen)):
            return seen
        watched = [each for each in self._settings.watched if each.owner == own.watched.owner]
        folders = [Folder(each, own.home) for each in dict.fromkeys([*watched, own.watched])]
        at = next(number for number, each in enumerate(folders) if each.watched == own.watched)
        looks = [(own, seen) if each.watched == own.watched else (each, each.seen()) for each in folders]
        return shared(looks)[at][1]

    async def follow(self, bus: Bus, seen: Look) -> None:
        watched = self._folder.watched

        async def add(file: File) -> Ingested:
            raw = await asyncio.to_thread(read, file)
            wanted = Ingest(name=file.name, raw=raw, owner=watched.owner, visibility=watched.visibility)
            return await ask_as_owner(bus, self._settings, INGEST, wanted)

        async def withdraw(document_id: str) -> None:
            await ask_as_owner(bus, self._settings, DELETE_DOCUMENT, DocumentRef(document_id=document_id))

        for trouble in seen.troubles:
            if trouble not in self._troubles:
                self._complain(trouble)
        self._troubles = seen.troubles
        todo = len(self._folder.changed(seen)) + len(self._folder.gone(seen))
        if not todo:
            self._folder.note(seen.troubles)
            self._settle(seen)
            return
        progress = bars(self._console)
        with progress:
            task = progress.add_task("files", total=todo)

            def tell(what: str, name: str, came: Ingested | MeshError | None) -> None:
                progress.advance(task)
                before = self.wrong.pop(name, "")
                if isinstance(came, Ingested):
                    if what == "added" or self._first:
                        progress.console.print(f"{_now()} {told(came)}")
                elif isinstance(came, MeshError):
                    self.wrong[name] = came.user_text
                    if came.user_text != before:
                        self._complain(named(name, came.user_text))
                else:
                    progress.console.print(f"{_now()} [green]✓[/] {escape(name)}: gone from the folder, withdrawn")

            async with documents_shown(bus.redis, progress):
                await self._folder.follow(seen, add, withdraw, tell)
        self._settle(seen)

    def _settle(self, seen: Look) -> None:
        if self._first:
            watched = self._folder.watched
            whose = "everyone" if watched.visibility == "global" else watched.owner
            doing, then = ("Looked at", "") if self._once else ("Watching", " Ctrl-C ends it; what was taken in stays.")
            path = escape(str(watched.path))
            self._console.print(f"{doing} {path}: {len(seen.found)} file(s), seen by {whose}.{then}", soft_wrap=True)
        self._first = False

    def _complain(self, text: str) -> None:
        self._console.print(f"{_now()} [red]✗[/] {escape(text)}", soft_wrap=True)


def _now() -> str:
    return f"[dim]{time.strftime('%H:%M:%S')}[/]"
