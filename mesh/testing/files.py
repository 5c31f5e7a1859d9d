"""The files that the simulated Twilio keeps, and how it fetches those that the mesh links to."""

from __future__ import annotations

import asyncio
import mimetypes
import secrets
from email.message import Message as Headers
from urllib.parse import unquote, urlsplit

import httpx

from mesh.testing.messages import Medium

KEPT_BYTES = 256_000_000
MOST_BYTES = 16 * 1024 * 1024
MOST_IMAGE_BYTES = 5 * 1024 * 1024
FETCH_S = 15.0
_OFFICE = "application/vnd.openxmlformats-officedocument"
SUPPORTED = {
    *("image/jpeg", "image/jpg", "image/png", "image/webp"),
    *("audio/ogg", "audio/opus", "audio/amr", "audio/3gpp", "audio/aac", "audio/mpeg", "audio/mp4"),
    *("video/mp4", "video/3gpp"),
    *("application/pdf", "application/msword", "text/vcard", "text/x-vcard"),
    *(
        f"{_OFFICE}.{kind}"
        for kind in ("wordprocessingml.document", "presentationml.presentation", "spreadsheetml.sheet")
    ),
}
"""What WhatsApp takes from Twilio. Text, CSV, Markdown and HTML are not among it."""


class Unfetched(Exception):
    """A file that a message links to, and that can't be sent. Its text says why."""

    def __init__(self, code: int, why: str) -> None:
        super().__init__(why)
        self.code = code


class Files:
    """By sid. The oldest go when there are too many bytes."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[Medium, bytes]] = {}
        self._bytes = 0

    def put(self, parent: str, name: str, media_type: str, raw: bytes) -> Medium:
        medium = Medium("ME" + secrets.token_hex(16), parent, media_type, name, len(raw))
        self._kept[medium.sid] = medium, raw
        self._bytes += medium.size
        while self._bytes > KEPT_BYTES and len(self._kept) > 1:
            self.delete(next(iter(self._kept)))
        return medium

    def get(self, sid: str) -> tuple[Medium, bytes] | None:
        return self._kept.get(sid)

    def delete(self, sid: str) -> bool:
        """Whether it was there."""
        medium, _ = self._kept.pop(sid, (None, b""))
        self._bytes -= medium.size if medium else 0
        return medium is not None


async def download(http: httpx.AsyncClient, link: str) -> tuple[str, str, bytes]:
    """Name, type and bytes. Raises `Unfetched`."""
    try:
        async with asyncio.timeout(FETCH_S), http.stream("GET", link, follow_redirects=True) as answer:
            if answer.status_code != 200:
                raise Unfetched(63019, f"status {answer.status_code}")
            media_type = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
            if media_type not in SUPPORTED:
                raise Unfetched(63021, f"{media_type or 'no type'} is not supported")
            most = MOST_IMAGE_BYTES if media_type.startswith("image/") else MOST_BYTES
            raw = bytearray()
            async for part in answer.aiter_bytes():
                raw += part
                if len(raw) > most:
                    raise Unfetched(63019, f"more than {most} bytes")
    except (httpx.HTTPError, httpx.InvalidURL, TimeoutError) as trouble:
        raise Unfetched(63019, type(trouble).__name__) from trouble
    return _name(answer, media_type), media_type, bytes(raw)


def _name(answer: httpx.Response, media_type: str) -> str:
    """As the person sees it: from the header, else from the end of the address."""
    header = Headers()
    header["Content-Disposition"] = answer.headers.get("content-disposition", "")
    name = header.get_filename() or unquote(urlsplit(str(answer.url)).path.rpartition("/")[2])
    name = name.rpartition("/")[2].rpartition("\\")[2]
    return name if "." in name else (name or "file") + (mimetypes.guess_extension(media_type) or "")
