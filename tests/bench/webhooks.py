"""`python -m tests.bench.webhooks load|abuse JSON`: who calls the gateway in its benchmark, a process of its own.

`load` sends signed webhooks at a fixed rate, whatever the answers do, and measures each from the moment at which it was
due: what waits because an earlier one was slow counts. `abuse` misbehaves on many connections at once, each as often as
it is answered. Both print JSON.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import math
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any
from urllib.parse import quote_plus, urlencode

import uvloop

from mesh.adapters.twilio_signature import SIGNATURE_HEADER, signature
from mesh.gateway.app import FORM, TWILIO_MESSAGES

PUBLIC, TOKEN, NUMBER = "https://mesh.example.com", "s3cret", "+14155238886"
WITHIN_S = 15.0
"""What Twilio waits for an answer."""
TEXTS = (
    "How much is the deluxe double room per night?",
    "¿A qué hora abre la piscina? 🏊",
    "शनिवार को नाश्ता कब शुरू होता है?",
    "ok 👍",
)


def webhook(message_id: str, sender: str, text: str) -> bytes:
    """A whole request, with the fields that Twilio sends for a text message."""
    pairs = list(
        {
            "SmsMessageSid": message_id,
            "NumMedia": "0",
            "ProfileName": "Asha",
            "MessageType": "text",
            "SmsSid": message_id,
            "WaId": sender.removeprefix("+"),
            "SmsStatus": "received",
            "Body": text,
            "To": f"whatsapp:{NUMBER}",
            "NumSegments": "1",
            "ReferralNumMedia": "0",
            "MessageSid": message_id,
            "AccountSid": "AC" + "1" * 32,
            "From": f"whatsapp:{sender}",
            "ApiVersion": "2010-04-01",
        }.items()
    )
    return request(urlencode(pairs).encode(), signature(PUBLIC + TWILIO_MESSAGES, pairs, TOKEN))


def request(body: bytes, signed: str, *headers: str) -> bytes:
    head = (
        f"POST {TWILIO_MESSAGES} HTTP/1.1",
        "Host: mesh.example.com",
        "User-Agent: TwilioProxy/1.1",
        f"Content-Type: {FORM}; charset=UTF-8",
        f"{SIGNATURE_HEADER}: {signed}",
        *(headers or (f"Content-Length: {len(body)}",)),
    )
    return "\r\n".join((*head, "", "")).encode() + body


# ── honest ────────────────────────────────────────────────────────────────────────────────────────────────────────


class Wires:
    """Every other webhook comes on a connection of its own, the others on one that is kept alive and free. One that was
    idle for long is not used: the gateway may be closing it."""

    IDLE_S = 3.0
    KEPT = 10

    def __init__(self, port: int) -> None:
        self._port = port
        self._free: list[tuple[float, asyncio.StreamReader, asyncio.StreamWriter]] = []
        self._calls = itertools.count()

    async def status(self, raw: bytes) -> int:
        reader, writer = await self._wire()
        try:
            writer.write(raw)
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            await reader.readexactly(int(head.partition(b"content-length:")[2].split(b"\r\n", 1)[0]))
        except BaseException:
            writer.close()
            raise
        if len(self._free) < self.KEPT:
            self._free.append((time.monotonic(), reader, writer))
        else:
            writer.close()
        return int(head[9:12])

    def close(self) -> None:
        for _, _, writer in self._free:
            writer.close()

    async def _wire(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if next(self._calls) % 2 and self._free:
            since, reader, writer = self._free.pop()
            if time.monotonic() - since < self.IDLE_S:
                return reader, writer
            writer.close()
        return await asyncio.open_connection("127.0.0.1", self._port)


async def load(port: int, rate: float, seconds: float, chats: int, tag: str) -> dict[str, Any]:
    raws = [
        webhook(f"SM{tag}{number:06d}", f"+1555{number % chats:07d}", TEXTS[number % len(TEXTS)])
        for number in range(int(rate * seconds))
    ]
    wires = Wires(port)
    took: list[float] = []
    errors: Counter[str] = Counter()

    async def send(raw: bytes, due: float) -> None:
        try:
            async with asyncio.timeout(WITHIN_S):
                status = await wires.status(raw)
        except (OSError, EOFError, TimeoutError) as error:
            errors[type(error).__name__] += 1
            return
        took.append(time.perf_counter() - due)
        if status != 200:
            errors[str(status)] += 1

    began = time.perf_counter() + 0.2
    async with asyncio.TaskGroup() as group:
        for number, raw in enumerate(raws):
            due = began + number / rate
            await asyncio.sleep(due - time.perf_counter())
            group.create_task(send(raw, due))
    wires.close()
    lasted = time.perf_counter() - began
    took.sort()
    return {
        "sent": len(raws),
        "rps": len(took) / max(lasted, seconds),
        "p50_ms": took[len(took) // 2] * 1000,
        "p99_ms": took[math.ceil(len(took) * 0.99) - 1] * 1000,
        "max_ms": took[-1] * 1000,
        "errors": dict(errors),
    }


# ── abusive ───────────────────────────────────────────────────────────────────────────────────────────────────────

FAKE = "A" * 27 + "="
Answer = Coroutine[Any, Any, str]


def says(raw: bytes) -> Callable[[int], Answer]:
    """Sends all of it and reads until the gateway hangs up."""

    async def once(port: int) -> str:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(raw)
            return _status(await reader.read())
        finally:
            writer.close()

    return once


def drips(head: bytes, drop: bytes, every: float = 0.5) -> Callable[[int], Answer]:
    """Sends the head, and then a drop now and then."""

    async def once(port: int) -> str:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        answer = asyncio.ensure_future(reader.read())
        try:
            writer.write(head)
            while not answer.done():
                await asyncio.wait([answer], timeout=every)
                writer.write(drop)
            return _status(await answer)
        finally:
            writer.close()
            answer.cancel()
            await asyncio.gather(answer, return_exceptions=True)

    return once


def _status(answer: bytes) -> str:
    return answer[9:12].decode() if answer.startswith(b"HTTP/1.1 ") else "closed"


def _get(method: str, path: str = TWILIO_MESSAGES) -> bytes:
    return f"{method} {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode()


ABUSES: dict[str, Callable[[int], Answer]] = {
    "slow head": drips(b"POST / HTTP/1.1\r\nHost: x\r\n", b"X-A: b\r\n"),
    "silent": drips(b"", b""),
    "slow body": drips(request(b"Body=", FAKE, "Content-Length: 60000"), b"a"),
    "wrong method": says(_get("DELETE")),
    "wrong path": says(_get("GET", "/../../etc/passwd")),
    "unsigned": says(request(urlencode({"Body": "hello", "From": "whatsapp:+1"}).encode(), "")),
    "forged": says(request(urlencode({"Body": "hello", "From": "whatsapp:+1"}).encode(), FAKE)),
    "forged, 60 kB in escapes": says(request(b"Body=" + b"%41" * 20_000, FAKE)),
    "forged, 200 fields": says(request(b"&".join(b"f%d=1" % n for n in range(200)), FAKE)),
    "10,000 fields": says(request(b"&".join(b"f=1" for _ in range(10_000)), FAKE)),
    "no UTF-8": says(request(b"Body=%ED%A0%80%00%FF" + quote_plus("\u202e\0").encode(), FAKE)),
    "1 MB": says(request(b"Body=" + b"a" * 1_000_000, FAKE)),
    "1 GB announced": says(request(b"Body=" + b"a" * 100_000, FAKE, "Content-Length: 1000000000")),
    "chunks of a byte": says(request(b"1\r\na\r\n" * 20_000, FAKE, "Transfer-Encoding: chunked")),
    "60 kB of headers": says(_get("POST").removesuffix(b"\r\n") + b"a:b\r\n" * 12_000 + b"\r\n"),
    "no HTTP": says(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256))),
}


async def abuse(port: int, connections: int, seconds: float) -> dict[str, Any]:
    """At a lower priority: in the world it would not be the gateway's own cores that this takes."""
    os.nice(10)
    seen: dict[str, Counter[str]] = {name: Counter() for name in ABUSES}
    until = time.monotonic() + seconds

    async def misbehave(name: str) -> None:
        while time.monotonic() < until:
            try:
                async with asyncio.timeout(WITHIN_S):
                    seen[name][await ABUSES[name](port)] += 1
            except (OSError, TimeoutError) as error:
                seen[name][type(error).__name__] += 1

    names = itertools.islice(itertools.cycle(ABUSES), connections)
    tasks = [asyncio.create_task(misbehave(name)) for name in names]
    await asyncio.wait(tasks, timeout=seconds)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return {name: dict(answers) for name, answers in seen.items()}


if __name__ == "__main__":
    calls: dict[str, Callable[..., Coroutine[Any, Any, dict[str, Any]]]] = {"load": load, "abuse": abuse}
    print(json.dumps(uvloop.run(calls[sys.argv[1]](**json.loads(sys.argv[2])))))
