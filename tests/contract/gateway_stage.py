"""What the tests of the gateway share: an inbox that keeps what it is given, Twilio's forms, and a real socket."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from urllib.parse import urlencode

import httpx
import uvicorn
from starlette.applications import Starlette

from mesh.adapters.twilio_signature import SIGNATURE_HEADER, Pairs, signature
from mesh.gateway.app import FORM, TWILIO_MESSAGES
from mesh.gateway.door import Bounds, configured, listening
from mesh.ports.channel import Delivery, Inbound

PUBLIC, TOKEN = "https://mesh.example.com", "s3cret"
PERSON, NUMBER = "+15551230001", "+14155238886"
QUICK = Bounds(head_seconds=0.3, refusal_seconds=0.05)


class Recorder:
    """An inbox that keeps what it is given."""

    def __init__(self) -> None:
        self.messages: list[Inbound] = []
        self.deliveries: list[Delivery] = []
        self.trouble: Exception | None = None
        self.stuck = False
        self.open = 0
        self.is_ready = True
        self.news = asyncio.Event()

    async def accept(self, message: Inbound) -> bool:
        await self._open()
        new = message.message_id not in {kept.message_id for kept in self.messages}
        if new:
            self.messages.append(message)
        return new

    async def delivered(self, delivery: Delivery) -> None:
        await self._open()
        self.deliveries.append(delivery)
        self.news.set()

    async def ready(self) -> bool:
        await self._open()
        return self.is_ready

    async def _open(self) -> None:
        self.open += 1
        if self.stuck:
            await asyncio.Event().wait()
        if self.trouble:
            raise self.trouble

    @property
    def untouched(self) -> bool:
        return not self.messages and not self.deliveries


def message(**changed: str | None) -> Pairs:
    fields: dict[str, str | None] = {
        "MessageSid": "SM1",
        "From": f"whatsapp:{PERSON}",
        "To": f"whatsapp:{NUMBER}",
        "Body": " a secret question ",
        "ProfileName": "Asha",
        **changed,
    }
    return [(name, value) for name, value in fields.items() if value is not None]


def status(**changed: str) -> Pairs:
    fields = {"MessageSid": "SM9", "MessageStatus": "delivered", "To": f"whatsapp:{PERSON}", **changed}
    return list(fields.items())


def headers_for(pairs: Pairs, path: str = TWILIO_MESSAGES) -> dict[str, str]:
    return {
        SIGNATURE_HEADER: signature(PUBLIC + path, pairs, TOKEN),
        "Content-Type": f"{FORM}; charset=UTF-8",
    }


async def post(http: httpx.AsyncClient, pairs: Pairs, path: str = TWILIO_MESSAGES) -> httpx.Response:
    return await http.post(path, content=urlencode(pairs), headers=headers_for(pairs, path))


@contextlib.asynccontextmanager
async def served(app: Starlette, listener: socket.socket | None = None, bounds: Bounds = QUICK) -> AsyncIterator[int]:
    """Over a real socket, as the process serves it. Yields the port."""
    listener = listener or socket.create_server(("127.0.0.1", 0))
    with listener:
        config = configured(app, bounds=bounds)
        config.timeout_graceful_shutdown = 1
        server = uvicorn.Server(config)
        task = asyncio.create_task(server.serve(sockets=listening(config, listener)))
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            await task


@contextlib.asynccontextmanager
async def connected(port: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


async def says(port: int, raw: bytes) -> bytes:
    """Sends this, no more, and reads until the gateway hangs up."""
    async with connected(port) as (reader, writer), asyncio.timeout(30):
        writer.write(raw)
        return await rest(reader)


async def rest(reader: asyncio.StreamReader) -> bytes:
    """Up to the end, or up to a reset: the gateway reads no more than it must."""
    answer = b""
    with contextlib.suppress(ConnectionResetError):
        while part := await reader.read(65536):
            answer += part
    return answer


async def raw_post(port: int, body: bytes, *headers: str) -> bytes:
    return await says(port, request(body, *headers))


def request(body: bytes, *headers: str, version: str = "1.1") -> bytes:
    """A post to the address for messages; with a `Content-Length` unless headers are given."""
    head = (f"POST {TWILIO_MESSAGES} HTTP/{version}", "Host: x", f"Content-Type: {FORM}")
    length = (f"Content-Length: {len(body)}",) if not headers else ()
    return "\r\n".join((*head, *length, *headers, "", "")).encode() + body


def signed(pairs: Pairs, *headers: str, version: str = "1.1") -> bytes:
    body = urlencode(pairs).encode()
    header = f"{SIGNATURE_HEADER}: {headers_for(pairs)[SIGNATURE_HEADER]}"
    return request(body, header, *(headers or (f"Content-Length: {len(body)}",)), version=version)
