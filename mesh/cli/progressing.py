"""How far what is being read in is, as bars: files, and under them the passages of each document."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import TypeVar

from redis.asyncio import Redis
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from mesh.access import upkeep
from mesh.errors import Unavailable
from mesh.ingestions import Ingestion, Ingestions

LOOK_EVERY_S = 0.5
AT_ONCE = 2
WORDS = {"reading": "being read", "embedding": "passages embedded", "finishing": "being put in place"}

Item = TypeVar("Item")


class Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:.1f}/s" if task.speed and task.fields.get("rated") else "")


def bars(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        Rate(),
        TimeElapsedColumn(),
        console=console,
    )


async def side_by_side(items: Iterable[Item], work: Callable[[Item], Awaitable[None]]) -> None:
    """Two at a time: while one document is embedded, the next one is read."""
    left = iter(items)

    async def each() -> None:
        for item in left:
            await work(item)

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(each())


@asynccontextmanager
async def documents_shown(redis: Redis, progress: Progress) -> AsyncIterator[None]:
    """While the block runs: a bar for each document that any agent reads in."""
    looking = asyncio.create_task(_keep_showing(Ingestions(redis), progress))
    try:
        yield
    finally:
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)


async def _keep_showing(ingestions: Ingestions, progress: Progress) -> None:
    shown: dict[str, TaskID] = {}
    try:
        while True:
            try:
                running = {each.document_id: each for each in await ingestions.running(upkeep())}
            except Unavailable:
                running = {}
            for document_id in shown.keys() - running.keys():
                progress.remove_task(shown.pop(document_id))
            for document_id, each in running.items():
                if document_id not in shown:
                    shown[document_id] = progress.add_task("", total=None, rated=True)
                _show(each, progress, shown[document_id])
            await asyncio.sleep(LOOK_EVERY_S)
    finally:
        for task in shown.values():
            progress.remove_task(task)


def _show(each: Ingestion, progress: Progress, task: TaskID) -> None:
    at = each.progress
    description = f"  {escape(each.name)} · {WORDS[at.stage]}"
    progress.update(task, description=description, completed=at.done, total=at.total or None)
