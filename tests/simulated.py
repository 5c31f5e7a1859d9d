"""The simulated Twilio as a process of its own, the channel to it, and servers with manners of their own."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl

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
        await phone.media()
        await phone.rules()


@pytest.fixture
async def channel(twilio: str) -> AsyncIterator[TwilioChannel]:
    async with opened(twilio) as channel:
        yield channel


@pytest.fixture
def person() -> str:
    """Somebody whom no other test writes to."""
    return f"+1555{next(_people):07d}"


@dataclass
class Hook:
    """A webhook that takes everything once it has `refused` so often, and the phone whose words arrive there. At
    `/status` it takes what became of the mesh's messages."""

    base: str = ""
    address: str = ""
    phone: Phone = field(init=False)
    channel: TwilioChannel = field(init=False)
    refused: int = 0
    taken: list[dict[str, str]] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    """Of every post, whether it was taken or not."""
    states: list[dict[str, str]] = field(default_factory=list)
    came: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def texts(self, count: int) -> list[str]:
        """Once there are so many, in the order in which they came."""
        return [form["Body"] for form in await self._some(self.taken, count)]

    async def told(self, count: int) -> list[tuple[str, str]]:
        """Of callbacks: states and error codes, once there are so many."""
        return [(form["MessageStatus"], form.get("ErrorCode", "")) for form in await self._some(self.states, count)]

    async def _some(self, forms: list[dict[str, str]], count: int) -> list[dict[str, str]]:
        async with asyncio.timeout(10), self.came:
            await self.came.wait_for(lambda: len(forms) >= count)
        return forms

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = int(head.lower().split("content-length: ")[1].split("\r\n")[0])
        form = dict(parse_qsl((await reader.readexactly(length)).decode(), keep_blank_values=True))
        status = "200 OK"
        if head.startswith("POST /status"):
            self.states.append(form)
        else:
            self.tokens.append(head.lower().split("i-twilio-idempotency-token: ")[1].split("\r\n")[0])
            if self.refused:
                self.refused, status = self.refused - 1, "503 Service Unavailable"
            else:
                self.taken.append(form)
        writer.write(json_answer(status, b"", b"X: y"))
        await writer.drain()
        async with self.came:
            self.came.notify_all()


@pytest.fixture
async def hook() -> AsyncIterator[Hook]:
    made = Hook()
    async with talking(made.talk) as made.base:
        with simulated(f"{made.base}/hook", "--status-url", f"{made.base}/status") as made.address:
            async with Phone(made.address) as made.phone, opened(made.address) as made.channel:
                yield made
                await made.phone.settle()


async def logged(phone: Phone, kind: str, count: int) -> dict[str, list[dict[str, Any]]]:
    """The log, once it has so many entries of that kind."""
    async with asyncio.timeout(10):
        while len((log := await phone.log())[kind]) < count:
            await asyncio.sleep(0.01)
    return log


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
        try:
            await talk(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the other side has gone
        finally:
            writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        server.close()
        for _ in range(10):  # what was accepted at the last moment begins
            await asyncio.sleep(0)
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
