"""A conversation in the terminal, through the simulated Twilio: signed webhooks in, REST replies out."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator

import httpx
from rich.console import Console
from rich.markup import escape

from mesh.errors import Unavailable
from mesh.testing.phone import NotTaken, Phone, Shown

REPLY_WITHIN_S = 60.0


async def converse(address: str, who: str, console: Console) -> None:
    """Until end of input, and until what was said is answered. Replies are printed whenever they come."""
    async with Phone(address) as phone:
        try:
            old = await phone.replies(who)
        except httpx.HTTPError as error:
            raise Unavailable("The simulated Twilio does not answer: is the mesh still running?") from error
        if sys.stdin.isatty():
            console.print(f"You are {who}. Write a message; Ctrl-D ends.")
        answered = asyncio.Event()
        listener = asyncio.create_task(_listen(phone, who, old[-1].seq if old else 0, answered, console))
        try:
            await _speak(phone, who, answered, console)
        finally:
            listener.cancel()
            await asyncio.gather(listener, return_exceptions=True)


async def _speak(phone: Phone, who: str, answered: asyncio.Event, console: Console) -> None:
    """A person writes when they like; a script waits for each reply before its next line."""
    owed = False
    async for line in _lines():
        if not line.strip():
            continue
        answered.clear()
        if not sys.stdin.isatty():
            console.print(f"[bold]{who}[/] {escape(line)}", soft_wrap=True)
        try:
            await phone.say(who, line)
        except (NotTaken, httpx.HTTPError) as error:
            console.print(f"[red]not delivered:[/] {error}")
            continue
        owed = True
        if not sys.stdin.isatty():
            await _answered(answered, console)
            owed = False
    if owed:
        await _answered(answered, console)


async def _answered(answered: asyncio.Event, console: Console) -> None:
    try:
        async with asyncio.timeout(REPLY_WITHIN_S):
            await answered.wait()
    except TimeoutError:
        console.print(f"[red]no answer within {REPLY_WITHIN_S:.0f} s[/]")


async def _listen(phone: Phone, who: str, after: int, answered: asyncio.Event, console: Console) -> None:
    while True:
        try:
            for reply in await phone.replies(who, after, 25.0):
                after = reply.seq
                for line in filter(None, [reply.text, *(_file(each, phone.address) for each in reply.media)]):
                    console.print(f"[bold green]adiyan[/] {escape(line)}", soft_wrap=True)
                answered.set()
        except httpx.HTTPError:
            await asyncio.sleep(1)


def _file(shown: Shown, address: str) -> str:
    return f"📎 {shown.name} ({shown.size} bytes) {address}{shown.url}"


async def _lines() -> AsyncIterator[str]:
    """Read in a daemon thread: a terminal, a pipe and a file alike, and Ctrl-C need not wait for a key."""
    loop, lines = asyncio.get_running_loop(), asyncio.Queue[str | None]()

    def read() -> None:
        for line in sys.stdin:
            loop.call_soon_threadsafe(lines.put_nowait, line.rstrip("\r\n"))
        loop.call_soon_threadsafe(lines.put_nowait, None)

    threading.Thread(target=read, daemon=True, name="stdin").start()
    while (line := await lines.get()) is not None:
        yield line
