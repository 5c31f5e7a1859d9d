"""The simulated Twilio as a process of its own, the channel to it, and servers with manners of their own."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest

from mesh.adapters.twilio import TwilioChannel
from mesh.testing.phone import Phone

SID, TOKEN, NUMBER = "AC" + "1" * 32, "s3cret", "+14155238886"
NOWHERE = "http://127.0.0.1:9/whatsapp/twilio"
_people = itertools.count(1)


@contextlib.contextmanager
def simulated(webhook: str = NOWHERE, *options: str) -> Iterator[str]:
    """The address of a simulated Twilio."""
    command = [sys.executable, "-m", "mesh.testing.twilio", "--port", "0", "--webhook", webhook]
    account = ["--account-sid", SID, "--auth-token", TOKEN, "--number", NUMBER]
    with subprocess.Popen([*command, *account, *options], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().split()[-1]
        process.terminate()


@pytest.fixture(scope="module")
def twilio() -> Iterator[str]:
    with simulated() as address:
        yield address


@pytest.fixture
async def phone(twilio: str) -> AsyncIterator[Phone]:
    async with Phone(twilio) as phone:
        yield phone
        await phone.script()
        await phone.listing()


@pytest.fixture
async def channel(twilio: str) -> AsyncIterator[TwilioChannel]:
    async with opened(twilio) as channel:
        yield channel


@pytest.fixture
def person() -> str:
    """Somebody whom no other test writes to."""
    return f"+1555{next(_people):07d}"


@contextlib.asynccontextmanager
async def opened(
    base: str, token: str = TOKEN, connect_timeout: float = 2.0, read_timeout: float = 10.0
) -> AsyncIterator[TwilioChannel]:
    channel = TwilioChannel(SID, token, api_base=base, connect_timeout=connect_timeout, read_timeout=read_timeout)
    try:
        yield channel
    finally:
        await channel.close()


@contextlib.asynccontextmanager
async def talking(
    talk: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> AsyncIterator[str]:
    """A server with manners of its own. Its connections are closed and its talks over when this ends."""
    talks: set[asyncio.Task[None] | None] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talks.add(asyncio.current_task())
        with contextlib.suppress(ConnectionError):
            await talk(reader, writer)
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        await asyncio.gather(*(task for task in talks if task))


def serving(answer: bytes) -> contextlib.AbstractAsyncContextManager[str]:
    """A server that reads a request whole, answers this, and hangs up."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: (\d+)", head)
        await reader.readexactly(int(length[1]) if length else 0)
        writer.write(answer)
        await writer.drain()

    return talking(talk)


def a_moment_ago() -> datetime:
    return datetime.now(UTC) - timedelta(seconds=1)


def json_answer(status: str, body: bytes, *headers: bytes) -> bytes:
    lines = [
        b"HTTP/1.1 " + status.encode(),
        b"Content-Length: %d" % len(body),
        b"Connection: close",
        *headers,
    ]
    return b"\r\n".join([*lines, b"", body])
