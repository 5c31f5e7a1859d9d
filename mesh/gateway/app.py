"""The gateway: webhooks in. It answers 200 when a message is safe in the inbox, and not before."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Protocol

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from mesh.adapters.twilio_signature import Pairs, Signatures, parse_delivery, parse_inbound
from mesh.envelope import pseudonym
from mesh.errors import Malformed, MeshError, Unavailable
from mesh.files import PATH
from mesh.gateway.door import DRAINED
from mesh.gateway.files import ROUTE, Files
from mesh.gateway.forms import FORGED, FORM, SignedForms
from mesh.gateway.meta import MetaWebhooks
from mesh.ports.channel import Delivery, Inbound

__all__ = ["FORGED", "FORM", "TWILIO_MESSAGES", "TWILIO_STATUS", "Inbox", "create_app"]

log = logging.getLogger(__name__)

TWILIO_MESSAGES = "/whatsapp/twilio"
TWILIO_STATUS = "/whatsapp/twilio/status"
SHOWN = 120
"""Characters of a path that the log shows: whoever calls chooses it."""


class Inbox(Protocol):
    """Where messages are kept. Raises `Unavailable` when the store can't be reached."""

    async def accept(self, message: Inbound) -> bool:
        """Durable when it returns. False: we had it already."""
        ...

    async def delivered(self, delivery: Delivery) -> None: ...
    async def ready(self) -> bool: ...


def create_app(
    inbox: Inbox,
    *,
    public_url: str = "",
    auth_token: str = "",
    shared_keys: Sequence[str] = (),
    account_sid: str = "",
    numbers: Collection[str] = (),
    files: Files | None = None,
    meta: MetaWebhooks | None = None,
    body_limit: int = 64 * 1024,
    read_seconds: float = 5.0,
    store_seconds: float = 8.0,
    refusal_seconds: float = 0.5,
) -> Starlette:
    """`body_limit` in bytes. Twilio waits 15 s in all, so reading and storing must fit in that. A refusal is held back
    for about `refusal_seconds`, which slows down who floods us and nobody else. Raises `Misconfigured`.

    What was written to a number of our account that is none of `numbers` is taken, and answered from there: its person
    is not to be punished with silence for a setting that is ours. The log says each time what to set, since of such a
    number no lost webhook is ever caught up. With `account_sid` or `numbers` empty, any are ours.

    With `meta`, Meta is the provider, and nothing of Twilio's is taken."""

    def twilio() -> list[Route]:
        signatures = Signatures(public_url, auth_token, shared_keys)
        forms = SignedForms(signatures, body_limit=body_limit, read_seconds=read_seconds, account_sid=account_sid)
        return _twilio(inbox, forms, numbers, store_seconds)

    async def alive(_: Request) -> Response:
        return PlainTextResponse("alive\n")

    async def ready(_: Request) -> Response:
        async with _within(store_seconds):
            if not await inbox.ready():
                raise Unavailable(detail="the inbox is not ready")
        return PlainTextResponse("ready\n")

    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)  # noqa: S101 - for the type checker: it is registered for no other
        return await refuse(request, error.status_code, error.detail, error.headers)

    async def malformed(request: Request, error: Exception) -> Response:
        assert isinstance(error, Malformed)  # noqa: S101 - for the type checker: it is registered for no other
        return await refuse(request, 400, f"This form can't be read: {error.detail}.", None)

    async def refuse(request: Request, status: int, text: str, headers: Mapping[str, str] | None) -> Response:
        log.warning("refused status=%d path=%r", status, _shown(request))
        seconds = refusal_seconds * random.uniform(0.5, 1.5)  # noqa: S311 - so that a flood does not pulse
        await _hold(request, seconds)
        return PlainTextResponse(text.rstrip() + "\n", status, {**(headers or {}), "Connection": "close"})

    app = Starlette(
        routes=[
            *(meta.routes() if meta else twilio()),
            *([Route(ROUTE, files, methods=["GET"])] if files else []),
            Route("/healthz", alive),
            Route("/readyz", ready),
        ],
        exception_handlers={HTTPException: refused, Malformed: malformed, MeshError: _failed},
    )
    app.router.redirect_slashes = False
    return app


def _twilio(inbox: Inbox, forms: SignedForms, numbers: Collection[str], store_seconds: float) -> list[Route]:
    def signed(handle: Callable[[Pairs], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        """A handler has no other way to a form."""

        async def checked(request: Request) -> Response:
            return await handle(await forms.read(request))

        return checked

    @signed
    async def receive(form: Pairs) -> Response:
        started = time.perf_counter()
        message = parse_inbound(form)
        async with _within(store_seconds):
            new = await inbox.accept(message)
        if numbers and message.recipient not in numbers:
            log.error("! message=%s was written to a number of ours that TWILIO_NUMBERS lacks", message.message_id)
        log.info(
            "→ accepted message=%s client=%s new=%s media=%d took_ms=%d",
            message.message_id,
            pseudonym(message.sender),
            str(new).lower(),
            message.media,
            (time.perf_counter() - started) * 1000,
        )
        return Response('<?xml version="1.0" encoding="UTF-8"?><Response/>', media_type="text/xml")

    @signed
    async def follow(form: Pairs) -> Response:
        delivery = parse_delivery(form)
        async with _within(store_seconds):
            await inbox.delivered(delivery)
        log.info(
            "· delivery message=%s state=%s code=%s",
            delivery.provider_id,
            delivery.state,
            delivery.error_code,
        )
        return Response(status_code=204)

    return [
        Route(TWILIO_MESSAGES, receive, methods=["POST"]),
        Route(TWILIO_STATUS, follow, methods=["POST"]),
    ]


def _shown(request: Request) -> str:
    """A path for the log, without the token of a link."""
    path: str = request.scope["path"]
    return PATH if path.startswith(f"{PATH}/") else path[:SHOWN]


async def _hold(request: Request, seconds: float) -> None:
    """Lets that much time pass. Meanwhile some of what is still coming is taken, and dropped: see `DRAINED`."""
    left = 0 if "expect" in request.headers else DRAINED  # who asks before sending is not to send
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while left > 0 and (part := await request.receive())["type"] == "http.request":
                left -= len(part["body"])
            await asyncio.sleep(seconds)


@asynccontextmanager
async def _within(seconds: float) -> AsyncIterator[None]:
    """A store that does not answer in time is one that can't be reached."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as cause:
        raise Unavailable(detail="the inbox did not answer in time") from cause


async def _failed(request: Request, error: Exception) -> Response:
    assert isinstance(error, MeshError)  # noqa: S101 - for the type checker: it is registered for no other
    log.error("unavailable path=%r code=%s detail=%r", _shown(request), error.code, error.detail)
    if _shown(request) == PATH:
        return PlainTextResponse(f"{error.user_text}\n", 503, {"Retry-After": "2"})
    return PlainTextResponse("The inbox can't be reached. Please try again.\n", 503, {"Retry-After": "2"})
