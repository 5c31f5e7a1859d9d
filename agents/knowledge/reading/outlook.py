"""E-mails as Outlook keeps them (MSG): streams named by number in an OLE file."""

from __future__ import annotations

import codecs
import io
import struct
from datetime import UTC, datetime, timedelta
from typing import Any

import olefile  # type: ignore[import-untyped]  # it has no types

from . import Parts, Unreadable, plain
from .message import ENCRYPTED, Attached, Message, Nesting, told
from .rtf import text_of, unpacked
from .text import decoded

_TEXT, _ANSI, _BINARY, _OBJECT = "001F", "001E", "0102", "000D"
_SUBJECT, _BODY, _HTML, _RTF, _CLASS = "0037", "1000", "1013", "1009", "001A"
_SENDER, _ADDRESSES, _TO, _COPIES = "0C1A", ("5D01", "0C1F", "0065"), "0E04", "0E03"
_FILE_NAMES, _CONTENT, _CONTENT_ID, _MIME = ("3707", "3704", "3001"), "3701", "3712", "370E"
_SENT, _DELIVERED, _CODE_PAGES = 0x0039, 0x0E06, (0x3FDE, 0x3FFD)
_FIXED = "__properties_version1.0"
_LARGEST = 64 << 20
_BROKEN = (OSError, ValueError, IndexError, KeyError, TypeError, AttributeError, struct.error, RecursionError)
"""What olefile raises for files that are damaged."""

Path = tuple[str, ...]


def read(name: str, raw: bytes, nesting: Nesting) -> Parts:
    damaged = Unreadable(f"{name} is damaged: it can't be opened as an e-mail. Please send it again.")
    try:
        ole = olefile.OleFileIO(io.BytesIO(raw))
        message = _Store(ole, (), 32).message(0)
    except _BROKEN as error:
        raise damaged from error
    if not (
        message.plain or message.html or message.attached or message.troubles or any(said for _, said in message.head)
    ):
        raise damaged  # its streams are named, and empty
    return told(name, message, nesting)


class _Store:
    """One message, or one attachment."""

    def __init__(self, ole: Any, path: Path, header: int) -> None:
        self._ole = ole
        self._path = path
        self._fixed = self._properties(header)
        page = next((self._fixed[each] for each in _CODE_PAGES if each in self._fixed), b"")
        self._code_page = _codec(int.from_bytes(page[:4], "little"))

    def message(self, depth: int) -> Message:
        message = Message([
            ("From", self._sender()),
            ("To", self.text(_TO)),
            ("Cc", self.text(_COPIES)),
            ("Date", self._date()),
            ("Subject", self.text(_SUBJECT)),
        ])  # fmt: skip
        message.plain = plain(self.text(_BODY))
        message.html = self.stream(_HTML, _BINARY) or self.text(_HTML).encode()
        message.charset = self._code_page or "utf-8"
        if not message.plain.strip() and not message.html and (packed := self.stream(_RTF, _BINARY)):
            message.plain = text_of(unpacked(packed))
        if "SMIME" in self.text(_CLASS).upper() and "MULTIPARTSIGNED" not in self.text(_CLASS).upper().replace(".", ""):
            message.troubles.append(ENCRYPTED)
            return message
        for number, folder in enumerate(self._folders("__attach"), start=1):
            message.attached.append(self._attached(folder, number, message.html, depth))
        return message

    def text(self, tag: str) -> str:
        if (wide := self.stream(tag, _TEXT)) is not None:
            return wide.decode("utf-16-le", "replace").rstrip("\x00")
        narrow = (self.stream(tag, _ANSI) or b"").rstrip(b"\x00")
        if not narrow:
            return ""
        try:
            return decoded("text", narrow, self._code_page)[0]
        except Unreadable:
            return ""

    def stream(self, tag: str, kind: str) -> bytes | None:
        return self._opened((*self._path, f"__substg1.0_{tag}{kind}"))

    def _opened(self, path: Path) -> bytes | None:
        if self._ole.get_type(list(path)) != olefile.STGTY_STREAM or self._ole.get_size(list(path)) > _LARGEST:
            return None
        return bytes(self._ole.openstream(list(path)).read())

    def _properties(self, header: int) -> dict[int, bytes]:
        raw = self._opened((*self._path, _FIXED)) or b""
        pieces = (raw[at : at + 16] for at in range(header, len(raw) - 15, 16))
        return {int.from_bytes(piece[2:4], "little"): piece[8:16] for piece in pieces}

    def _folders(self, start: str) -> list[str]:
        depth = len(self._path)
        found = (tuple(each) for each in self._ole.listdir(streams=False, storages=True))
        inside = {each[depth] for each in found if len(each) > depth and each[:depth] == self._path}
        return sorted(each for each in inside if each.startswith(start))

    def _sender(self) -> str:
        name = self.text(_SENDER)
        address = next((found for tag in _ADDRESSES if "@" in (found := self.text(tag))), "")
        return f"{name} <{address}>" if name and address and name != address else name or address

    def _date(self) -> str:
        raw = self._fixed.get(_SENT) or self._fixed.get(_DELIVERED)
        if not raw or not 0 < (ticks := int.from_bytes(raw, "little")) < 1 << 60:
            return ""
        at = datetime(1601, 1, 1, tzinfo=UTC) + timedelta(microseconds=ticks // 10)
        return f"{at:%a, %d %b %Y %H:%M} UTC"

    def _attached(self, folder: str, number: int, html: bytes, depth: int) -> Attached:
        store = _Store(self._ole, (*self._path, folder), 8)
        store._code_page = self._code_page
        name = next((found for tag in _FILE_NAMES if (found := plain(store.text(tag)).strip())), f"attachment {number}")
        name = name.replace("\\", "/").rpartition("/")[2][:200]
        inner = (*self._path, folder, f"__substg1.0_{_CONTENT}{_OBJECT}")
        if self._ole.get_type(list(inner)) == olefile.STGTY_STORAGE:
            if not self._ole.exists([*inner, _FIXED]):
                return Attached(name, b"", trouble="it is an object of another program, which I can't read")
            return (
                Attached(name, b"", message=_Store(self._ole, inner, 24).message(depth + 1))
                if depth < 5
                else (Attached(name, b"", trouble="it lies too deep within other messages, so it was not read"))
            )
        raw = store.stream(_CONTENT, _BINARY)
        if not raw:
            return Attached(name, b"", trouble="it is empty, or kept elsewhere")
        content_id = store.text(_CONTENT_ID).strip("<>")
        inline = bool(content_id) and f"cid:{content_id}".encode() in html and store.text(_MIME).startswith("image/")
        return Attached(name, raw, inline=inline)


def _codec(page: int) -> str:
    name = {65001: "utf-8", 20127: "ascii", 28591: "latin-1", 28592: "iso8859-2", 20866: "koi8-r", 932: "cp932"}.get(
        page, f"cp{page}"
    )
    try:
        return codecs.lookup(name).name if page else ""
    except LookupError:
        return ""
