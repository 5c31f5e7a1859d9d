"""What earlier releases left: stores of an older form, and chunks that do not say who may see them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from mesh.bus import Bus
from mesh.cli.admin import ask_as_owner, needs
from mesh.cli.printing import Row, Sheet
from mesh.contracts.upkeep import TAG_CHUNKS, TagChunks, TaggedDocument
from mesh.errors import MeshError, Misconfigured
from mesh.settings import Settings
from mesh.up import running_settings

# ── stores ────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Store:
    """`found` is None where nothing is there yet, 0 for what was written before it had a version."""

    name: str
    place: str
    known: int
    found: Callable[[Settings], Awaitable[object]]
    take_over: Callable[[Settings], Awaitable[None]]


async def stores(*, dry_run: bool) -> tuple[Sheet, bool]:
    """Every store, the version of what is in it, and what was done or would be. False when something is newer, or
    can't be looked at."""
    settings, _ = running_settings("adiyan_home")
    rows: list[Row] = []
    notes: list[str] = []
    away = [setting for setting in ("redis_url", "mongodb_uri", "qdrant_url") if not getattr(settings, setting)]
    for store in _stores(settings):
        try:
            found = await store.found(settings)
            done = "" if dry_run else await _taken_over(store, found, settings)
            rows.append((store.name, store.place, _told(found), str(store.known), done or _what(store, found)))
            if found is not None and not _older(store, found):
                notes.append(f"{store.name}: install the newer Adiyan that wrote it, or restore a backup.")
        except MeshError as error:
            rows.append((store.name, store.place, "?", str(store.known), "can't be looked at"))
            notes.append(f"{store.name}: {error.user_text}")
    well = not notes
    if away:
        names = ", ".join(name.upper() for name in away)
        notes.append(f"No mesh is running, so what is embedded was not looked at: start it, or set {names}.")
    heads = ("store", "where", "version", "this Adiyan", "what happens")
    return Sheet(heads=heads, rows=rows, notes=notes), well


def _told(found: object) -> str:
    return "nothing yet" if found is None else "before the first" if found == 0 else str(found)


def _what(store: Store, found: object) -> str:
    if found is None:
        return "it is made at the first start"
    if found == store.known:
        return "nothing: it is up to date"
    return f"it becomes {store.known}" if _older(store, found) else "it is left alone: a newer Adiyan wrote it"


async def _taken_over(store: Store, found: object, settings: Settings) -> str:
    if found == store.known or not _older(store, found):
        return ""
    await store.take_over(settings)
    return f"it has become {store.known}"


def _older(store: Store, found: object) -> bool:
    """Or as old."""
    return isinstance(found, int) and found <= store.known


def _stores(settings: Settings) -> list[Store]:
    from mesh.adapters import mem0, mongo, qdrant, qdrant_points, shelf_tables
    from mesh.versions import REDIS

    home = settings.adiyan_home
    found = [
        Store("documents", str(home / "knowledge"), shelf_tables.SCHEMA, _shelf_version, _shelf),
        Store("history of memories", str(home / "memory"), mem0.SCHEMA, _history_version, _history),
    ]
    if settings.mongodb_uri:
        found.append(Store("clients", "MongoDB", mongo.SCHEMA, _mongo_version, _roster))
    if settings.redis_url:
        found.append(Store("messages", "Redis", REDIS, _redis_version, _redis))
    if settings.qdrant_url:
        of = partial(_collection_version, collection=qdrant.COLLECTION)
        found.append(Store("passages", "Qdrant", qdrant_points.SCHEMA, of, _passages))
        of = partial(_collection_version, collection=mem0.COLLECTION)
        found.append(Store("memories", "Qdrant", mem0.SCHEMA, of, _memories))
    return found


async def _shelf_version(settings: Settings) -> object:
    return _sqlite_version(settings.adiyan_home / "knowledge" / "index.sqlite")


async def _history_version(settings: Settings) -> object:
    from mesh.adapters.mem0 import HISTORY

    return _sqlite_version(settings.adiyan_home / "memory" / HISTORY)


def _sqlite_version(file: Path) -> int | None:
    import sqlite3
    from contextlib import closing

    if not file.exists():
        return None
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=5)) as database:
            (version,) = database.execute("PRAGMA user_version").fetchone()
            return int(version)
    except sqlite3.DatabaseError as error:
        raise Misconfigured(f"{file} can't be read: {error}.") from error


async def _shelf(settings: Settings) -> None:
    from mesh.adapters.shelf import DiskShelf

    await (await DiskShelf.open(settings.adiyan_home / "knowledge")).close()


async def _history(settings: Settings) -> None:
    from mesh.adapters.mem0 import HISTORY, take_over_history

    take_over_history(settings.adiyan_home / "memory" / HISTORY)


async def _mongo_version(settings: Settings) -> object:
    from mesh.adapters.mongo import version_of

    return await version_of(settings.mongodb_uri, settings.mongodb_database)


async def _roster(settings: Settings) -> None:
    from mesh.wiring import open_roster

    await (await open_roster(settings)).close()


async def _redis_version(settings: Settings) -> object:
    from mesh.cli.listing import open_redis
    from mesh.versions import redis_version

    async with open_redis(settings) as redis:
        return await redis_version(redis) or 0


async def _redis(settings: Settings) -> None:
    from mesh.cli.listing import open_redis
    from mesh.versions import claim_redis

    async with open_redis(settings) as redis:
        await claim_redis(redis)


async def _collection_version(settings: Settings, collection: str) -> object:
    from mesh.adapters.qdrant import version_of

    return await version_of(settings.qdrant_url, collection)


async def _passages(settings: Settings) -> None:
    from mesh.adapters.qdrant import QdrantPassages

    opened = await QdrantPassages.open(
        settings.qdrant_url, model=settings.embedding_model, dims=settings.embedding_dims
    )
    await opened.close()


async def _memories(settings: Settings) -> None:
    from mesh.adapters.mem0 import take_over_collection

    take_over_collection(settings.qdrant_url, settings.embedding_model, settings.embedding_dims)


# ── chunks without tags ───────────────────────────────────────────────────────────────────────────────────────────


async def tag_chunks(console: Console, *, dry_run: bool) -> tuple[int, Sheet]:
    """How many chunks there were, and whose they became or would become."""
    settings, _ = running_settings()
    await needs(settings, "knowledge")
    found: Counter[tuple[str, str, bool]] = Counter()
    total: int | None = None
    after: int | str | None = None
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    async with Bus(settings.redis_url) as bus:
        with Progress(*columns, console=console, transient=True) as progress:
            task = progress.add_task("looking" if dry_run else "tagging", total=None)
            while True:
                page = await ask_as_owner(bus, settings, TAG_CHUNKS, TagChunks(dry_run=dry_run, after=after))
                total = page.left if total is None else total
                for each in page.documents:
                    found[each.name, each.owner, each.shelved] += each.chunks
                progress.update(task, total=total, advance=sum(each.chunks for each in page.documents))
                if (after := page.following) is None:
                    break
    documents = [TaggedDocument(name=n, owner=o, shelved=s, chunks=chunks) for (n, o, s), chunks in found.items()]
    return sum(found.values()), _tagged(documents, dry_run)


def _tagged(documents: list[TaggedDocument], dry_run: bool) -> Sheet:
    rows = [
        (each.name, str(each.chunks), f"private: {each.owner}", "yes" if each.shelved else "no")
        for each in sorted(documents, key=lambda each: (each.name, each.owner))
    ]
    notes = []
    if not all(each.shelved for each in documents):
        notes.append(
            "Of what has no file here there are passages alone: the system owner finds them, and `kb list` does not "
            "show them. Add the file again with `adiyan kb add`."
        )
    heads = ("name", "chunks", "would become" if dry_run else "became", "its file is here")
    return Sheet(heads=heads, rows=rows, notes=notes)
