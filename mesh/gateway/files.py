"""Files out: what a signed link names, as a download and nothing else."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import AsyncExitStack, suppress
from typing import Protocol
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from mesh.contracts.documents import DocumentFile
from mesh.envelope import pseudonym
from mesh.errors import Crashed, MeshError, TimedOut, Unavailable
from mesh.files import GONE, PATH, Link, readable

log = logging.getLogger(__name__)

ROUTE = PATH + "/{token}/{name:path}"
AT_ONCE = 4
"""Files that are found and sent at a time, each with all of its bytes in memory; others wait for as long as finding may
take."""
LARGEST = 16 << 20
PIECE = 64 << 10
AS_TEXT = frozenset(
    {"text/html", "application/xhtml+xml", "image/svg+xml", "text/xml", "application/xml", "text/javascript"}
)
"""What a browser would render or run."""


class Source(Protocol):
    """Where files come from. Raises what is told to nobody: an absent file and a withdrawn one look the same."""

    async def link(self, token: str) -> Link: ...
    async def file(self, link: Link, *, within: float) -> DocumentFile:
        """As this person may have it now. `within` in seconds."""
        ...


class Files:
    """The app behind `ROUTE`. Times in seconds."""

    def __init__(self, source: Source, *, found_within: float = 15.0, sent_within: float = 60.0) -> None:
        self._source = source
        self._found_within = found_within
        self._sent_within = sent_within
        self._room = asyncio.Semaphore(AT_ONCE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.perf_counter()
        request = Request(scope, receive)
        async with AsyncExitStack() as held:
            link, file = await self._found(request.path_params["token"], held)
            limit = asyncio.timeout(self._sent_within)
            with suppress(TimeoutError):
                async with limit:
                    await _send(file, send)
        log.info(
            "← file client=%s bytes=%d whole=%s took_ms=%d",
            pseudonym(link.client),
            len(file.raw),
            str(not limit.expired()).lower(),
            (time.perf_counter() - began) * 1000,
        )

    async def _found(self, token: str, held: AsyncExitStack) -> tuple[Link, DocumentFile]:
        try:
            async with asyncio.timeout(self._found_within):
                link = await self._source.link(token)
                await held.enter_async_context(self._room)
                file = await self._source.file(link, within=self._found_within)
        except TimeoutError as error:
            raise Unavailable(detail="no file in time") from error
        except (Unavailable, TimedOut, Crashed) as error:
            raise Unavailable(detail=error.detail or error.code) from error
        except MeshError as error:  # absent, another's, withdrawn: the same words for all
            raise HTTPException(404, GONE) from error
        if len(file.raw) > LARGEST:
            raise HTTPException(404, GONE)
        return link, file


async def _send(file: DocumentFile, send: Send) -> None:
    """In pieces, so that a slow reader is waited for. To HEAD, the server sends the headers alone."""
    lines = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers(file).items()]
    await send({"type": "http.response.start", "status": 200, "headers": lines})
    for start in range(0, len(file.raw), PIECE):
        await send({"type": "http.response.body", "body": file.raw[start : start + PIECE], "more_body": True})
    await send({"type": "http.response.body", "body": b""})


def headers(file: DocumentFile) -> dict[str, str]:
    return {
        "Content-Type": _media_type(file),
        "Content-Disposition": _disposition(file.document.name),
        "Content-Length": str(len(file.raw)),
        "Cache-Control": "private, no-store",
        "X-Content-Type-Options": "nosniff",
    }


def _media_type(file: DocumentFile) -> str:
    kind = file.media_type.partition(";")[0].strip().lower()
    if kind in AS_TEXT:
        kind = "text/plain"
    if kind.startswith("text/"):
        with suppress(UnicodeDecodeError):
            file.raw.decode()
            return f"{kind}; charset=utf-8"
    return kind


def _disposition(name: str) -> str:
    """A plain name for those whom that is enough, and the true one as RFC 5987 has it."""
    shown = readable(name).replace("/", "_")
    plain = "".join(c if c.isascii() and c not in '"\\%' else "_" for c in shown)
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(shown, safe='')}"
