"""Files at the simulated Twilio: behind credentials first, and then, by a redirect, on a host that must not see them;
and how fetching them goes wrong."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import zlib
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from mesh.testing.exchange import Exchange
from mesh.testing.journal import now
from mesh.testing.manners import error, exchange_of, misbehave, not_found, stranger
from mesh.testing.messages import VERSION, Medium

FETCHES = ("answer", "missing", "fail", "throttle", "hang", "redirect", "loop", "drip", "endless", "wrong_type", "bomb")
NOT_FOR_US = "http://169.254.169.254/latest/meta-data/"
KEPT_LINKS = 10_000
BOMB_BYTES = 1 << 30
BLOCK = 1 << 16
INLINE = ("image/jpeg", "image/png", "image/webp", "image/gif", "audio/", "video/")
"""What a browser may show as it is: nothing that could hold a script."""


@dataclass(slots=True)
class Store:
    """Where files are fetched from, and what becomes of the next fetches."""

    api_base: str
    cdn_base: str
    """On another host than the API."""
    steps: deque[dict[str, Any]] = field(default_factory=deque)
    links: dict[str, tuple[str, dict[str, Any]]] = field(default_factory=dict)
    """By key: the medium's sid, and how it is given."""

    def link(self, sid: str, step: dict[str, Any]) -> str:
        key = secrets.token_urlsafe(24)
        self.links[key] = sid, step
        while len(self.links) > KEPT_LINKS:
            del self.links[next(iter(self.links))]
        return f"{self.cdn_base}/cdn/{key}"


def store_of(request: Request) -> Store:
    store = request.app.state.store
    assert isinstance(store, Store)
    return store


def routes() -> list[BaseRoute]:
    messages = f"/{VERSION}/Accounts/{{account}}/Messages/{{sid}}"
    return [
        Route(f"{messages}/Media.json", list_media),
        Route(f"{messages}/Media/{{medium}}", medium, methods=["GET", "DELETE"]),
        Route("/cdn/{key}", cdn),
        Route("/simulate/media/{medium}", shown),
    ]


async def list_media(request: Request) -> Response:
    if trouble := stranger(request):
        return trouble
    exchange = exchange_of(request)
    message = exchange.message(request.path_params["sid"])
    if message is None:
        return not_found(request)
    kept = [each.resource(exchange.account.sid) for each in message.media if exchange.files.get(each.sid)]
    uri = request.url.path
    pages = {"first_page_uri": uri, "next_page_uri": None, "previous_page_uri": None, "uri": uri}
    return JSONResponse(
        {"media_list": kept, "page": 0, "page_size": 50, "start": 0, "end": max(len(kept) - 1, 0), **pages}
    )


async def medium(request: Request) -> Response:
    """With `.json` what it is; without, where its bytes are."""
    exchange = exchange_of(request)
    sid, dot, _ = request.path_params["medium"].partition(".json")
    found = _held(exchange, sid, request.path_params["sid"])
    if trouble := stranger(request):
        return seen(request, "api", sid, trouble)
    if found is None:
        return seen(request, "api", sid, not_found(request))
    if request.method == "DELETE":
        exchange.files.delete(sid)
        return Response(status_code=204)
    if dot:
        return JSONResponse(found[0].resource(exchange.account.sid))
    store = store_of(request)
    step = store.steps.popleft() if store.steps else {"do": "answer"}
    return seen(request, "api", sid, await _lead(request, store, sid, step), step["do"])


async def _lead(request: Request, store: Store, sid: str, step: dict[str, Any]) -> Response:
    match step["do"]:
        case "missing":
            return not_found(request)
        case "fail":
            return error(int(step.get("status", 500)), 20500, "Service unavailable")
        case "throttle" | "hang":
            return await misbehave(request, step)
        case "redirect":
            return RedirectResponse(step.get("to", NOT_FOR_US), 307)
    return RedirectResponse(store.link(sid, step), 307)


async def cdn(request: Request) -> Response:
    """As the one behind Twilio's: its link is the right to it, and it takes no credentials beside."""
    store, exchange = store_of(request), exchange_of(request)
    sid, step = store.links.get(request.path_params["key"], ("", {"do": "answer"}))
    found = exchange.files.get(sid)
    if "authorization" in request.headers:
        answer: Response = PlainTextResponse("Only one auth mechanism allowed\n", 400)
    elif found is None:
        answer = PlainTextResponse("Not found\n", 404)
    else:
        answer = given(request, *found, step)
    return seen(request, "cdn", sid, answer, step["do"])


def given(request: Request, medium: Medium, raw: bytes, step: Mapping[str, Any]) -> Response:
    kind = medium.media_type
    match step["do"]:
        case "loop":
            return RedirectResponse(str(request.url.replace(netloc=request.headers["host"])), 307)
        case "drip":
            size, every = int(step.get("bytes", 16)), float(step.get("every", 1.0))
            length = {"Content-Length": str(len(raw))}
            return StreamingResponse(_drip(request, raw, size, every), media_type=kind, headers=length)
        case "endless":
            return StreamingResponse(_endless(request, raw), media_type=kind)
        case "bomb":
            packed = {"Content-Encoding": "gzip"}
            return StreamingResponse(_bomb(int(step.get("bytes", BOMB_BYTES))), media_type=kind, headers=packed)
        case "wrong_type":
            return Response(raw, media_type=step.get("type", "text/html"))
    return Response(raw, media_type=kind)


async def _drip(request: Request, raw: bytes, size: int, every: float) -> AsyncIterator[bytes]:
    for start in range(0, len(raw), size):
        yield raw[start : start + size]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(every):
                await exchange_of(request).closing.wait()


async def _endless(request: Request, raw: bytes) -> AsyncIterator[bytes]:
    closing = exchange_of(request).closing
    yield raw
    while not closing.is_set():
        yield bytes(BLOCK)
        await asyncio.sleep(0)


def _bomb(size: int) -> Iterator[bytes]:
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    for _ in range(max(size // BLOCK, 1)):
        if part := packer.compress(bytes(BLOCK)):
            yield part
    yield packer.flush()


def seen(request: Request, host: str, sid: str, answer: Response, do: str = "answer") -> Response:
    exchange = exchange_of(request)
    held = exchange.files.get(sid)
    exchange.journal.write(
        "fetched",
        {
            "medium_sid": sid,
            "message_sid": held[0].parent if held else "",
            **now(),
            "host": host,
            "do": do,
            "status": answer.status_code,
            "credentials": "authorization" in request.headers,
        },
    )
    return answer


async def shown(request: Request) -> Response:
    """As the person's phone has it, without credentials."""
    found = exchange_of(request).files.get(request.path_params["medium"])
    if found is None:
        return not_found(request)
    held, raw = found
    inline = held.media_type.startswith(INLINE)
    kind = "inline" if inline and "download" not in request.query_params else "attachment"
    name = f"{kind}; filename*=UTF-8''{quote(held.name, safe='')}"
    return Response(raw, media_type=held.media_type, headers={"Content-Disposition": name})


def _held(exchange: Exchange, sid: str, parent: str) -> tuple[Medium, bytes] | None:
    found = exchange.files.get(sid)
    return found if found and found[0].parent == parent else None
