"""The inside of an office file or an e-book: a zip archive of parts, most of them XML, that point to one another. Only
what is asked for is unpacked, and it is weighed before."""

from __future__ import annotations

import posixpath
import re
import zlib
from dataclasses import dataclass
from io import BytesIO
from typing import IO, Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from lxml import etree  # type: ignore[import-untyped]  # it has no types

from . import Unreadable

Element = Any
"""Of lxml."""

LARGEST_XML = 64 << 20
"""Bytes, of all the parts that are read, unpacked."""
LARGEST_PICTURES = 128 << 20
"""Bytes of all pictures, apart from that: the text is not to starve for them."""
SWOLLEN = 200
"""Times: what unpacks to more, and is large, was made to harm."""
MOST_MEMBERS = 20_000

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
RELATIONSHIPS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_STRICT = re.compile(rb"http://purl\.oclc\.org/ooxml/(\w+)/(\w+)")
"""The names of the strict form, which say the same."""


class Damaged(Exception):
    """A part is there, but can't be read."""


@dataclass(frozen=True, slots=True)
class Link:
    kind: str
    target: str
    """A part's name, or the address of what is outside of the file."""


class Package:
    def __init__(self, name: str, raw: bytes) -> None:
        self._name = name
        try:
            self._archive = ZipFile(BytesIO(raw))
        except (BadZipFile, ValueError, NotImplementedError, OSError) as error:
            raise Unreadable(f"{name} is damaged or cut off: it can't be opened. Please send it again.") from error
        members = self._archive.infolist()
        if len(members) > MOST_MEMBERS:
            raise self._bomb()
        if any(member.flag_bits & 1 for member in members):
            raise Unreadable(f"{name} is protected by a password. Please send a copy without one.", "password")
        self._members = {_key(member.filename): member for member in members}
        self._left = LARGEST_XML
        self._left_for_pictures = LARGEST_PICTURES
        self._links: dict[str, dict[str, Link]] = {}

    def holds(self, folder: str) -> bool:
        return any(name.startswith(folder) for name in self._members)

    def xml(self, part: str) -> Element | None:
        """None where there is no such part. Raises `Damaged`, and `Unreadable` for what could do harm."""
        content = self.content(part)
        if content is None:
            return None
        try:
            root = etree.fromstring(_STRICT.sub(rb"http://schemas.openxmlformats.org/\1/2006/\2", content), _parser())
        except (etree.XMLSyntaxError, ValueError) as error:
            raise Damaged(part) from error
        if root.getroottree().docinfo.internalDTD is not None:  # no office file has one: it is there to swell or to spy
            raise Unreadable(f"{self._name} is not made as an office file is. Please save it again, or as PDF.")
        return root

    def content(self, part: str) -> bytes | None:
        """None where there is no such part. Raises `Damaged`, and `Unreadable` for what could do harm."""
        member = self._members.get(_key(part))
        if member is None:
            return None
        try:
            found = self._unpack(member, self._left)
        except (BadZipFile, zlib.error, EOFError, ValueError) as error:
            raise Damaged(part) from error
        self._left -= member.file_size
        return found

    def picture(self, part: str) -> bytes | None:
        """None where there is none that can be unpacked: the rest can be read without it."""
        member = self._members.get(_key(part))
        try:
            found = self._unpack(member, self._left_for_pictures) if member else None
        except (BadZipFile, zlib.error, EOFError, ValueError, Unreadable):
            return None
        self._left_for_pictures -= member.file_size if member else 0
        return found

    def open(self, part: str) -> IO[bytes] | None:
        """To be read piece by piece, by who weighs what comes. None where there is no such part."""
        member = self._members.get(_key(part))
        try:
            return None if member is None else self._archive.open(member)
        except (BadZipFile, NotImplementedError, ValueError) as error:
            raise Damaged(part) from error

    def links(self, part: str) -> dict[str, Link]:
        """By their ids; of the file itself for an empty name."""
        if part not in self._links:
            folder, base = posixpath.split(part)
            root = self.xml(posixpath.join(folder, "_rels", f"{base}.rels"))
            self._links[part] = {each.get("Id", ""): _link(folder, each) for each in (root if root is not None else ())}
        return self._links[part]

    def same(self, part: str) -> object:
        """Equal for parts of equal content, without unpacking them."""
        member = self._members.get(_key(part))
        return (member.CRC, member.file_size) if member else part

    def _unpack(self, member: ZipInfo, left: int) -> bytes:
        if member.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
            raise BadZipFile("not as an office file is packed")
        if member.file_size > 1 << 20 and member.file_size > SWOLLEN * member.compress_size:
            raise self._bomb()
        if member.file_size > left:
            raise Unreadable(
                f"{self._name} holds too much to read at once. Please split it, or send it as PDF.", "limit"
            )
        with self._archive.open(member) as opened:
            return opened.read(member.file_size)  # the size is only what the file states; no more is unpacked

    def _bomb(self) -> Unreadable:
        return Unreadable(
            f"{self._name} unpacks to far more than a document holds. Please save it again, or as PDF.", "limit"
        )


def _parser() -> Any:
    return etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, remove_comments=True, remove_pis=True
    )


def _key(name: str) -> str:
    return name.replace("\\", "/").lstrip("/").casefold()


def _link(folder: str, relationship: Element) -> Link:
    kind = relationship.get("Type", "").rpartition("/")[2]
    target = relationship.get("Target", "")
    if relationship.get("TargetMode") == "External":
        return Link(kind, target)
    return Link(kind, posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/"))
