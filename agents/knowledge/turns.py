"""Whose file is read when. A scan is read for minutes, a note in the blink of an eye."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import PurePosixPath
from weakref import WeakValueDictionary

SMALL = 200_000
"""Bytes: the longest note has no more."""
_PLAIN = frozenset({".md", ".markdown", ".txt"})


class Line:
    """So many at once, and one of each person: whoever sends many files keeps nobody from sending one."""

    def __init__(self, places: int) -> None:
        self._places = asyncio.Semaphore(places)
        self._persons: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def turn(self, person: str) -> AsyncIterator[None]:
        theirs = self._persons.setdefault(person, asyncio.Lock())
        async with theirs, self._places:
            yield


def is_small_text(name: str, raw: bytes) -> bool:
    """By its name and its bytes. What only pretends to be is read all the same, and holds up small texts alone."""
    if len(raw) > SMALL or PurePosixPath(name).suffix.lower() not in _PLAIN or b"\x00" in raw:
        return False
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True
