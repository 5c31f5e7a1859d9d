"""Twilio's forms as they come in: bounded in size and time, signed, of our account, and then no more than text."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

from mesh.adapters.twilio_signature import (
    MAX_FIELDS,
    SETTINGS_HEADER,
    SIGNATURE_HEADER,
    Pairs,
    Signatures,
    body_fits,
    parse_object,
    parse_pairs,
)

log = logging.getLogger(__name__)

FORM = "application/x-www-form-urlencoded"
JSON = "application/json"
FORGED = (
    "This request does not carry Twilio's signature: check that PUBLIC_URL is exactly the address that is configured "
    "at Twilio (https, host, port and path), and that the auth token is the account's primary one.\n"
)
FORGED_SHARED = (
    "This request does not carry the signature of a shared key that is known here: check that TWILIO_SHARED_KEY is the "
    "secret of the key that Twilio's webhook rule names, and that PUBLIC_URL is exactly the address at Twilio.\n"
)
NOT_OURS = "This form is not of the account in TWILIO_ACCOUNT_SID.\n"
LARGE_BYTES, LARGE_FIELDS = 4096, 64
"""A message of everyday length is below both."""
_SIGNATURE = re.compile(r"[A-Za-z0-9+/]{27}=|[A-Za-z0-9+/]{43}=")
"""In base64: 20 bytes of SHA-1, or 32 of SHA-256."""


class SignedForms:
    """`body_limit` in bytes. What is no form of Twilio's ends in an `HTTPException`, or in `Malformed`; so does one of
    another account than `account_sid`, unless that is empty."""

    def __init__(self, signatures: Signatures, *, body_limit: int, read_seconds: float, account_sid: str = "") -> None:
        self._signatures = signatures
        self._account_sid = account_sid
        self._limit = body_limit
        self._seconds = read_seconds
        self._lane = _Lane()

    async def read(self, request: Request) -> Pairs:
        content = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        raw = await self._body(request, content)
        given = request.headers.get(SIGNATURE_HEADER, "")
        if not _SIGNATURE.fullmatch(given):
            raise HTTPException(403, FORGED)
        fields = raw.count(b"&") + 1 if content == FORM else 0
        if fields > MAX_FIELDS:
            raise HTTPException(400, f"The form has more than {MAX_FIELDS} fields.\n")
        if len(raw) > LARGE_BYTES or fields > LARGE_FIELDS:
            async with self._lane.turn():
                return self._verified(request, raw, given, content)
        return self._verified(request, raw, given, content)

    async def _body(self, request: Request, content: str) -> bytes:
        """All of it, or an answer as soon as it is known to be too long, too slow or of the wrong type."""
        if content not in (FORM, JSON):
            raise HTTPException(415, f"Send the form as {FORM}, or as {JSON}.\n")
        too_long = HTTPException(413, f"The body is longer than {self._limit} bytes.\n")
        if int(request.headers.get("content-length", 0)) > self._limit:
            raise too_long
        body = bytearray()
        try:
            async with asyncio.timeout(self._seconds):
                async for chunk in request.stream():
                    body += chunk
                    if len(body) > self._limit:
                        raise too_long
        except TimeoutError as cause:
            raise HTTPException(408, f"The body did not arrive within {self._seconds:g} s.\n") from cause
        except ClientDisconnect as cause:
            raise HTTPException(400, "The body ended early.\n") from cause
        return bytes(body)

    def _verified(self, request: Request, raw: bytes, given: str, content: str) -> Pairs:
        pairs = parse_pairs(raw) if content == FORM else []
        path, query = request.scope["raw_path"].decode("latin-1"), request.scope["query_string"].decode("latin-1")
        settings = request.headers.get(SETTINGS_HEADER, "")
        if not self._signatures.fit(path, query, pairs, given, settings):
            raise HTTPException(403, FORGED_SHARED if settings else FORGED)
        if content == JSON:
            if not body_fits(query, raw):
                raise HTTPException(403, FORGED)
            pairs = parse_object(raw)
        if self._account_sid and {value for name, value in pairs if name == "AccountSid"} != {self._account_sid}:
            log.error("! a signed form is of another account than TWILIO_ACCOUNT_SID")
            raise HTTPException(403, NOT_OURS)
        return pairs


class _Lane:
    """For large forms, which take milliseconds to check: one at a time, each followed by a rest 19 times as long:
    however many forged ones come, they get a twentieth of the time."""

    MOST = 50

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._standing = 0
        self._rests_until = 0.0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        if self._standing >= self.MOST:
            raise HTTPException(503, "Too many large forms at once. Please try again.\n", headers={"Retry-After": "2"})
        self._standing += 1
        try:
            async with self._lock:
                await asyncio.sleep(self._rests_until - time.perf_counter())
                began = time.perf_counter()
                try:
                    yield
                finally:
                    ended = time.perf_counter()
                    self._rests_until = ended + 19 * (ended - began)
        finally:
            self._standing -= 1
