"""A simulated Twilio as a process, and a small webhook behind it, for tests of the chat page."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

import httpx
import pytest
import uvicorn
from playwright.async_api import Page
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from mesh.adapters.twilio import TwilioChannel

SID, TOKEN, NUMBER = "AC" + "1" * 32, "s3cret", "+14155238886"


@dataclass
class World:
    """A simulated Twilio, and a mesh that says everything back once `go` is set. `down`: it takes nothing."""

    twilio: str = ""
    down: bool = False
    go: asyncio.Event = field(default_factory=asyncio.Event)
    taken: list[str] = field(default_factory=list)
    forms: list[dict[str, str]] = field(default_factory=list)
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    async def webhook(self, request: Request) -> Response:
        form = dict(parse_qsl((await request.body()).decode(), keep_blank_values=True))
        if self.down:
            return Response(status_code=503)
        self.taken.append(form["MessageSid"])
        self.forms.append(form)
        self.tasks.append(asyncio.create_task(self._answer(form["From"], form["Body"])))
        return Response(status_code=200)

    async def _answer(self, who: str, text: str) -> None:
        await self.go.wait()
        await self.say(who.removeprefix("whatsapp:"), f"You said: {text}")

    async def say(self, who: str, text: str) -> None:
        channel = TwilioChannel(SID, TOKEN, api_base=self.twilio)
        await channel.send(sender=NUMBER, recipient=who, text=text)
        await channel.close()

    async def send(self, who: str, **more: str) -> None:
        """By Twilio's REST form, with whatever it takes."""
        form = {"To": f"whatsapp:{who}", "From": f"whatsapp:{NUMBER}", **more}
        async with httpx.AsyncClient(base_url=self.twilio, auth=(SID, TOKEN), trust_env=False) as client:
            (await client.post(f"/2010-04-01/Accounts/{SID}/Messages.json", data=form)).raise_for_status()


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World()
    made.go.set()
    async with listening(made) as port, simulated(f"http://127.0.0.1:{port}/hook") as address:
        made.twilio = address
        yield made
        await asyncio.gather(*made.tasks)


@asynccontextmanager
async def listening(world: World) -> AsyncIterator[int]:
    app = Starlette(routes=[Route("/hook", world.webhook, methods=["POST"])])
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, ws="none", timeout_graceful_shutdown=1))
        task = asyncio.create_task(server.serve(sockets=[listener]))
        yield listener.getsockname()[1]
        server.should_exit = True
        await task


@asynccontextmanager
async def simulated(webhook: str) -> AsyncIterator[str]:
    command = [sys.executable, "-m", "mesh.testing.twilio", "--port", "0", "--webhook", webhook]
    options = ["--account-sid", SID, "--auth-token", TOKEN, "--number", NUMBER]
    process = await asyncio.create_subprocess_exec(*command, *options, stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        yield (await process.stdout.readline()).decode().split()[-1]
    finally:
        process.terminate()
        await process.communicate()


async def write(page: Page, text: str) -> None:
    await page.get_by_label("Message", exact=True).fill(text)
    await page.keyboard.press("Enter")
