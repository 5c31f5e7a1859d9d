"""One collection: a folder with its record, `collection.json`, and the shard that the record names.

A folder without a record is a collection that was half made or half dropped; a shard that the record does not name is
a copy that was half optimized. Both are removed when the server starts.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
import threading
import time
from pathlib import Path

import qdrant_edge as edge

from mesh.embedded.qdrant.schema import Schema, describe, engine_config, schema_of

log = logging.getLogger(__name__)

RECORD = "collection.json"
VERSION = 1
"""Of the record, and of what lies beside it."""
ERASED = "erased"
"""Lies in the folder while the shard's files still hold what was deleted."""


class Collection:
    """Writes are serialised by `_writing`; reads take no lock, the engine being safe for threads."""

    def __init__(self, folder: Path, record: dict[str, object], shard: edge.EdgeShard) -> None:
        self.folder = folder
        self.name = str(record["name"])
        self.schema = schema_of(record["schema"])
        self.shard = shard
        self.changes = shard.info().points_count
        """Points written since the index was last looked at; after a start, all of them."""
        self.written_at = time.monotonic()
        self._shard_name = str(record["shard"])
        self._indexes = dict(record["indexes"]) if isinstance(record["indexes"], dict) else {}
        self._writing = threading.RLock()
        self._unflushed_since: float | None = None
        self._operations = 0
        self._journal: list[edge.UpdateOperation] | None = None
        self._dropped = False
        self._erasures = int((folder / ERASED).exists())
        self._erasures_copied = 0
        self.erased_since: float | None = time.monotonic() if self._erasures else None
        """None when the files hold nothing that was deleted."""

    @classmethod
    def create(cls, folder: Path, name: str, schema: Schema) -> Collection:
        """The record is written last: until then nothing was created."""
        if folder.exists():
            shutil.rmtree(folder)
        shard_name = "shard-1"
        (folder / shard_name).mkdir(parents=True)
        shard = edge.EdgeShard.create(str(folder / shard_name), engine_config(schema))
        shard.flush()
        record = _record(name, schema, shard_name, {})
        write_record(folder, record)
        return cls(folder, record, shard)

    @classmethod
    def load(cls, folder: Path) -> Collection:
        record = json.loads((folder / RECORD).read_text("utf-8"))
        if (version := record.get("version", VERSION)) != VERSION:
            raise ValueError(f"it is of version {version}, and this Adiyan knows {VERSION}: install the newer one")
        for other in folder.glob("shard-*"):
            if other.name != record["shard"]:
                log.warning("! collection=%s left-over=%s removed", record["name"], other.name)
                shutil.rmtree(other, ignore_errors=True)
        return cls(folder, record, edge.EdgeShard.load(str(folder / record["shard"])))

    def update(self, operation: edge.UpdateOperation, points: int) -> int:
        """In the write-ahead log when this returns, so that a killed process loses nothing. Returns its number."""
        with self._writing:
            if self._journal is not None:
                self._journal.append(operation)
            now = time.monotonic()
            self._unflushed_since = self._unflushed_since or now
            self.written_at = now
            self.changes += points
            self._operations += 1
            self.shard.update(operation)
            return self._operations

    def erase(self, operation: edge.UpdateOperation, points: int) -> int:
        """As `update`, for what takes something away: the shard is to be written anew, also after a crash."""
        with self._writing:
            (self.folder / ERASED).touch()
            before = self.shard.info().points_count
            done = self.update(operation, points)
            if self.shard.info().points_count != before:
                self._erasures += 1
                self.erased_since = self.erased_since or time.monotonic()
            elif not self._erasures:
                (self.folder / ERASED).unlink()
            return done

    def create_index(self, name: str, asked: object, schema: object) -> int:
        with self._writing:
            done = self.update(edge.UpdateOperation.create_field_index(name, schema), 0)  # type: ignore[arg-type]  # one of many parameter classes
            self._indexes[name] = asked
            self.save()
            return done

    def delete_index(self, name: str) -> int:
        with self._writing:
            done = self.update(edge.UpdateOperation.delete_field_index(name), 0)
            self._indexes.pop(name, None)
            self.save()
            return done

    def amend(self, metadata: dict[str, object]) -> None:
        with self._writing:
            self.schema.metadata.update(metadata)
            self.save()

    def describe(self) -> dict[str, object]:
        return describe(self.schema, self.shard, self._indexes)

    def save(self) -> None:
        write_record(self.folder, _record(self.name, self.schema, self._shard_name, self._indexes))

    def flush_if_older(self, seconds: float) -> None:
        """What is written survives a killed process anyway; this makes it survive a power cut."""
        with self._writing:
            since = self._unflushed_since
            if since is not None and not self._dropped and time.monotonic() - since >= seconds:
                self._unflushed_since = None
                self.shard.flush()

    def close(self) -> None:
        self.flush_if_older(0)
        with self._writing:
            self._dropped = True
            self.shard.close()

    def drop(self) -> None:
        with self._writing:
            self._dropped = True
            (self.folder / RECORD).unlink(missing_ok=True)
            sync_folder(self.folder)
            self.shard.close()
            shutil.rmtree(self.folder, ignore_errors=True)

    # A shard is optimized as a copy, in another process, because the engine holds the interpreter while it works.

    def copy_for_optimizing(self) -> Path | None:
        """Writes wait while it copies; from then on they are kept, to be repeated on the copy."""
        with self._writing:
            if self._dropped or self._journal is not None:
                return None
            self.shard.flush()
            copy = self.folder / f"shard-{int(self._shard_name.removeprefix('shard-')) + 1}"
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(self.folder / self._shard_name, copy)
            self._journal = []
            self._erasures_copied = self._erasures
            self.changes = 0
            return copy

    def forget(self, copy: Path) -> None:
        with self._writing:
            self._journal = None
            shutil.rmtree(copy, ignore_errors=True)

    def adopt(self, copy: Path, *, anew: bool = False) -> None:
        """`anew`: it holds nothing that was deleted before it was copied.

        The record decides which shard counts, and is replaced in one step. A reader may still hold the old one:
        its files stay readable after they are unlinked."""
        with self._writing:
            journal, self._journal = self._journal or [], None
            if self._dropped:
                shutil.rmtree(copy, ignore_errors=True)
                return
            shard = edge.EdgeShard.load(str(copy))
            for operation in journal:
                with contextlib.suppress(Exception):  # what failed on the original fails on the copy
                    shard.update(operation)
            shard.flush()
            old, self._shard_name = self._shard_name, copy.name
            self.save()
            self.shard = shard
            shutil.rmtree(self.folder / old, ignore_errors=True)
            if anew and self._erasures == self._erasures_copied:
                self._erasures, self.erased_since = 0, None
                (self.folder / ERASED).unlink(missing_ok=True)


def _record(name: str, schema: Schema, shard: str, indexes: dict[str, object]) -> dict[str, object]:
    stored = {**schema.params, "metadata": schema.metadata}
    return {"version": VERSION, "name": name, "schema": stored, "shard": shard, "indexes": indexes}


def write_record(folder: Path, record: dict[str, object]) -> None:
    """Whole or not at all, even when the power goes."""
    temporary = folder / f"{RECORD}.new"
    with temporary.open("w", encoding="utf-8") as file:
        json.dump(record, file, ensure_ascii=True)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, folder / RECORD)
    sync_folder(folder)


def sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
