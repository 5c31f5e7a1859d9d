"""The gateway: webhooks in. It answers 200 when a message is safe in the inbox, and not before."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Annotated, Protocol

from fastapi import Depends, FastAPI, HTTPException, Request, Response
from fastapi.responses import PlainTextResponse
from starlette.exceptions import HTTPException as AnyHTTPException
from starlette.requests import ClientDisconnect

from mesh.adapters.twilio_signature import (
    SIGNATURE_HEADER,
    Pairs,
    Signatures,
    parse_delivery,
    parse_inbound,
    parse_pairs,
)
from mesh.envelope import pseudonym
from mesh.errors import Malformed, MeshError, Unavailable
from mesh.ports import Delivery, Inbound

log = logging.getLogger(__name__)

TWILIO_MESSAGES = "/whatsapp/twilio"
TWILIO_STATUS = "/whatsapp/twilio/status"
FORM = "application/x-www-form-urlencoded"
FORGED = (
    "This request does not carry Twilio's signature: check that PUBLIC_URL is exactly the address that is configured "
    "at Twilio (https, host, port and path), and that the auth token is the account's primary one.\n"
)


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
    public_url: str,
    auth_token: str,
    body_limit: int = 64 * 1024,
    read_seconds: float = 5.0,
    store_seconds: float = 8.0,
    lifespan: Callable[[FastAPI], AbstractAsyncContextManager[None]] | None = None,
) -> FastAPI:
    """`body_limit` in bytes. Twilio waits 15 s in all, so reading and storing must fit in that. Raises
    `Misconfigured`."""
    signatures = Signatures(public_url, auth_token)
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False, lifespan=lifespan)
    app.add_exception_handler(AnyHTTPException, _refused)
    app.add_exception_handler(MeshError, _failed)

    async def signed(request: Request) -> Pairs:
        pairs = parse_pairs(await _read(request, body_limit, read_seconds))
        path = request.scope.get("raw_path") or request.url.path.encode()
        query = request.scope["query_string"]
        given = request.headers.get(SIGNATURE_HEADER, "")
        if not signatures.fit(path.decode("latin-1"), query.decode("latin-1"), pairs, given):
            raise HTTPException(403, FORGED)
        return pairs

    SignedForm = Annotated[Pairs, Depends(signed)]  # noqa: N806 - it is a type

    @app.post(TWILIO_MESSAGES)
    async def receive(form: SignedForm) -> Response:
        started = time.perf_counter()
        message = parse_inbound(form)
        async with _within(store_seconds):
            new = await inbox.accept(message)
        log.info(
            "→ accepted message=%s client=%s new=%s media=%d took_ms=%d",
            message.message_id,
            pseudonym(message.sender),
            str(new).lower(),
            message.media,
            (time.perf_counter() - started) * 1000,
        )
        return Response('<?xml version="1.0" encoding="UTF-8"?><Response/>', media_type="text/xml")

    @app.post(TWILIO_STATUS)
    async def follow(form: SignedForm) -> Response:
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

    @app.get("/healthz")
    async def alive() -> Response:
        return PlainTextResponse("alive\n")

    @app.get("/readyz")
    async def ready() -> Response:
        async with _within(store_seconds):
            if not await inbox.ready():
                raise Unavailable(detail="the inbox is not ready")
        return PlainTextResponse("ready\n")

    return app


async def _read(request: Request, limit: int, seconds: float) -> bytes:
    """The whole body, or an answer as soon as it is known to be too long, too slow or of the wrong type."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != FORM:
        raise HTTPException(415, f"Send the form as {FORM}.\n")
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for chunk in request.stream():
                body += chunk
                if len(body) > limit:
                    raise _hang_up(413, f"The body is longer than {limit} bytes.\n")
    except TimeoutError as cause:
        raise _hang_up(408, f"The body did not arrive within {seconds:g} s.\n") from cause
    except ClientDisconnect as cause:
        raise _hang_up(400, "The body ended early.\n") from cause
    return bytes(body)


def _hang_up(status: int, text: str) -> HTTPException:
    """What is left of the body is not waited for."""
    return HTTPException(status, text, headers={"Connection": "close"})


@asynccontextmanager
async def _within(seconds: float) -> AsyncIterator[None]:
    """A store that does not answer in time is one that can't be reached."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as cause:
        raise Unavailable(detail="the inbox did not answer in time") from cause


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, AnyHTTPException)  # noqa: S101 - for the type checker: it is registered for no other
    log.warning("refused status=%d path=%r", error.status_code, request.url.path)
    return PlainTextResponse(str(error.detail), error.status_code, headers=error.headers)


async def _failed(request: Request, error: Exception) -> Response:
    assert isinstance(error, MeshError)  # noqa: S101 - for the type checker: it is registered for no other
    if isinstance(error, Malformed):
        log.warning("refused status=400 path=%r detail=%r", request.url.path, error.detail)
        return PlainTextResponse(f"This form can't be read: {error.detail}.\n", 400)
    log.error("unavailable path=%r code=%s detail=%r", request.url.path, error.code, error.detail)
    return PlainTextResponse("The inbox can't be reached. Please try again.\n", 503, headers={"Retry-After": "2"})
