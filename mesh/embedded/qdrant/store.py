"""All collections under one folder, and the lock that makes this process their only owner."""

from __future__ import annotations

import fcntl
import logging
import shutil
import threading
from pathlib import Path
from typing import TextIO
from urllib.parse import quote, unquote

from mesh.embedded.qdrant.collection import RECORD, Collection, sync_folder
from mesh.embedded.qdrant.fields import Refused, wrong
from mesh.embedded.qdrant.schema import Schema

log = logging.getLogger(__name__)

NAME_BYTES = 255
_SHOWN = '< > : " / \\ | ? *'
FORBIDDEN = {*_SHOWN.split(), "\0"}


class InUse(Exception):
    """Another process has the folder."""


def own(root: Path) -> TextIO:
    """Locks the folder for as long as the returned file is open. Raises `InUse`."""
    root.mkdir(parents=True, exist_ok=True)
    lock = (root / "lock").open("a")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        lock.close()
        raise InUse(f"{root} is in use by another embedded Qdrant; stop that one, or choose another folder") from error
    return lock


class Store:
    def __init__(self, root: Path) -> None:
        self._root = root / "collections"
        self._root.mkdir(parents=True, exist_ok=True)
        self._naming = threading.Lock()
        self._open: dict[str, Collection] = {}
        self._broken: dict[str, str] = {}
        for folder in sorted(self._root.iterdir()):
            self._take_in(folder)

    def _take_in(self, folder: Path) -> None:
        name = unquote(folder.name)
        if not (folder / RECORD).exists():
            log.warning("! collection=%s was half made or half dropped; removed", name)
            shutil.rmtree(folder, ignore_errors=True)
            return
        try:
            self._open[name] = Collection.load(folder)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt | SystemExit):
                raise
            # An engine that panics raises a BaseException; one bad collection must not take the others with it.
            log.error("! collection=%s can't be opened: %s", name, error)
            self._broken[name] = str(error)

    def names(self) -> list[str]:
        return sorted({*self._open, *self._broken})

    def all(self) -> list[Collection]:
        return list(self._open.values())

    def get(self, name: str) -> Collection:
        if found := self._open.get(name):
            return found
        if name in self._broken:
            why = self._broken[name]
            text = f"collection `{name}` can't be opened, delete it and build it again: {why}"
            raise Refused(500, f"Service internal error: {text}")
        raise Refused(404, f"Not found: Collection `{name}` doesn't exist!")

    def create(self, name: str, schema: Schema) -> None:
        with self._naming:
            if name in self._open or name in self._broken:
                raise Refused(409, f"Wrong input: Collection `{name}` already exists!")
            self._open[name] = Collection.create(self._folder(name), name, schema)
            sync_folder(self._root)

    def drop(self, name: str) -> bool:
        with self._naming:
            if self._broken.pop(name, None) is not None:
                (self._folder(name) / RECORD).unlink(missing_ok=True)
                shutil.rmtree(self._folder(name), ignore_errors=True)
                return True
            found = self._open.pop(name, None)
            if found:
                found.drop()
            return found is not None

    def close(self) -> None:
        for collection in self.all():
            collection.close()

    def _folder(self, name: str) -> Path:
        folder = quote(name, safe="")
        if not name.strip(".") or FORBIDDEN & set(name) or len(folder) > NAME_BYTES:
            raise wrong(f"collection name {name!r} is empty, too long, or holds one of {_SHOWN}")
        return self._root / folder
