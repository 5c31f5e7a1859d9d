"""Meta's webhooks as they come in: bounded in size and time, signed, and answered with 200 once all of it is safe."""

from __future__ import annotations

import asyncio
import hmac
import logging
import re
import time
from collections.abc import Mapping
from typing import Protocol

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from mesh.adapters.meta_webhooks import SIGNATURE_HEADER, Signatures, Status, Webhook, parse_webhook
from mesh.envelope import pseudonym
from mesh.errors import Misconfigured, Unavailable
from mesh.ports.channel import Delivery, Inbound

log = logging.getLogger(__name__)

META = "/whatsapp/meta"
FORGED = (
    "This request does not carry Meta's signature: check that META_APP_SECRET is the secret of the app whose webhook "
    "leads here, and that no proxy changes the body.\n"
)
WRONG_TOKEN = "This is not the token in META_VERIFY_TOKEN.\n"  # noqa: S105 - what is said, not a token
BODY_LIMIT = 3 * 1024 * 1024
"""Meta's own: it may put up to a thousand messages into one body."""
LARGE, LARGE_AT_ONCE = 64 * 1024, 8
"""Bytes that a body of a few messages is below, and how many larger ones are taken at once."""
_CHALLENGE = re.compile(r"[A-Za-z0-9_.-]{1,256}")


class Inbox(Protocol):
    """As `mesh.gateway.app` has it."""

    async def accept(self, message: Inbound) -> bool: ...
    async def delivered(self, delivery: Delivery) -> None: ...


class Noted(Protocol):
    """As `mesh.adapters.meta_echoes` has it."""

    async def note(self, echo: str, provider_id: str, at: float) -> None: ...


class MetaWebhooks:
    def __init__(
        self,
        inbox: Inbox,
        echoes: Noted,
        *,
        app_secret: str,
        verify_token: str,
        numbers: Mapping[str, str],
        body_limit: int = BODY_LIMIT,
        read_seconds: float = 5.0,
        store_seconds: float = 8.0,
    ) -> None:
        """`numbers` of ours, by Meta's ids of them. Raises `Misconfigured`."""
        if not verify_token:
            raise Misconfigured("META_VERIFY_TOKEN is empty: anybody could point an app of theirs at this gateway.")
        self._signatures = Signatures(app_secret)
        self._inbox = inbox
        self._echoes = echoes
        self._verify_token = verify_token.encode()
        self._numbers = dict(numbers)
        self._limit = body_limit
        self._read_seconds = read_seconds
        self._store_seconds = store_seconds
        self._large = 0

    def routes(self) -> list[Route]:
        return [Route(META, self.challenge, methods=["GET"]), Route(META, self.receive, methods=["POST"])]

    async def challenge(self, request: Request) -> Response:
        """Meta asks so when the address is configured, and signs nothing then."""
        query = request.query_params
        given = query.get("hub.verify_token", "").encode("utf-8", "replace")
        if not hmac.compare_digest(given, self._verify_token) or query.get("hub.mode") != "subscribe":
            raise HTTPException(403, WRONG_TOKEN)
        if not _CHALLENGE.fullmatch(asked := query.get("hub.challenge", "")):
            raise HTTPException(400, "hub.challenge is missing.\n")
        return PlainTextResponse(asked, headers={"X-Content-Type-Options": "nosniff"})

    async def receive(self, request: Request) -> Response:
        started = time.perf_counter()
        webhook = parse_webhook(await self._signed(request), self._numbers)
        for why in webhook.aside:
            log.error("! a part of a webhook was left out: %s", why)
        try:
            async with asyncio.timeout(self._store_seconds):
                await self._keep(webhook, started)
        except TimeoutError as cause:
            raise Unavailable(detail="the inbox did not answer in time") from cause
        return Response(status_code=200)

    async def _keep(self, webhook: Webhook, started: float) -> None:
        """One after another, as they were said. After a failure Meta sends all of it again, and what is safe is known
        by its id."""
        for message in webhook.messages:
            new = await self._inbox.accept(message)
            log.info(
                "→ accepted message=%s client=%s new=%s media=%d took_ms=%d",
                message.message_id,
                pseudonym(message.sender),
                str(new).lower(),
                message.media,
                (time.perf_counter() - started) * 1000,
            )
        for status in webhook.statuses:
            await self._follow(status)

    async def _follow(self, status: Status) -> None:
        delivery = status.delivery
        if status.echo:
            await self._echoes.note(status.echo, delivery.provider_id, status.at)
        await self._inbox.delivered(delivery)
        log.info(
            "· delivery message=%s state=%s code=%s meta=%s",
            delivery.provider_id,
            delivery.state,
            delivery.error_code,
            status.code,
        )

    async def _signed(self, request: Request) -> bytes:
        """The body as it was signed. What can't carry a signature is not read at all."""
        check = self._signatures.check(request.headers.get(SIGNATURE_HEADER, ""))
        if check is None:
            raise HTTPException(403, FORGED)
        too_long = HTTPException(413, f"The body is longer than {self._limit} bytes.\n")
        if int(request.headers.get("content-length", 0)) > self._limit:
            raise too_long
        body, large = bytearray(), False
        try:
            async with asyncio.timeout(self._read_seconds):
                async for part in request.stream():
                    body += part
                    check.take(part)
                    if len(body) > self._limit:
                        raise too_long
                    if len(body) > LARGE and not large:
                        large = self._enter()
        except TimeoutError as cause:
            raise HTTPException(408, f"The body did not arrive within {self._read_seconds:g} s.\n") from cause
        except ClientDisconnect as cause:
            raise HTTPException(400, "The body ended early.\n") from cause
        finally:
            self._large -= large
        if not check.fits():
            raise HTTPException(403, FORGED)
        return bytes(body)

    def _enter(self) -> bool:
        """However many forged ones come, they don't fill the memory."""
        if self._large >= LARGE_AT_ONCE:
            raise HTTPException(503, "Too many large bodies at once. Please try again.\n", headers={"Retry-After": "2"})
        self._large += 1
        return True
