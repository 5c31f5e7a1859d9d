"""Words in the pictures of a document, where there is a reader of pictures."""

from __future__ import annotations

from . import files
from .package import Package

MOST = 60
"""Pictures of one document: reading one takes about a second."""


class Pictures:
    """Each picture is read once, however often it is shown."""

    def __init__(self) -> None:
        self._read: dict[object, str | None] = {}
        self.found = 0
        """Those in which there were words."""

    def part(self, package: Package, part: str) -> str | None:
        """As `words`, of a picture in an office file, which is unpacked once."""
        which = package.same(part)
        return self.words(which, None if which in self._read else package.picture(part))

    def words(self, which: object, raw: bytes | None) -> str | None:
        """Empty when there are none; None when they could not be read."""
        if which not in self._read:
            able = raw is not None and len(self._read) < MOST
            self._read[which] = _words(raw) if able and raw is not None else None
            self.found += bool(self._read[which])
        return self._read[which]


def how(pictures: int, *, alone: bool = False) -> tuple[str, ...]:
    """The fourth of a part in which words of so many pictures are, `alone` or among others."""
    return (("ocr" if alone else "partly ocr"),) if pictures else ()


def _words(raw: bytes) -> str | None:
    if not files.has_reader("pictures") or not files.picture_kind(raw):
        return None
    read = getattr(files.reader("pictures"), "words", None)
    return None if read is None else read(raw)
