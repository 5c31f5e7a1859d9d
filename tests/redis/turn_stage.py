"""A chat with one person on the simulated Twilio, and an agent whose words a test chooses."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from agents.orchestrator import sending as module
from agents.orchestrator.sending import Sender
from agents.orchestrator.turns import Driver, Patience
from mesh.adapters.twilio import TwilioChannel
from mesh.bus import Bus
from mesh.contracts.orchestrator import CLEAR_TO_SEND, Reply
from mesh.envelope import Failed, Ok, Request
from mesh.lease import Quiet
from mesh.ledger import Ledger
from mesh.ports.channel import Inbound
from mesh.testing.phone import Phone
from tests.outbox import sender

SID, TOKEN, NUMBER = "AC" + "2" * 32, "s3cret", "+14155238886"
_people = itertools.count(1)


@pytest.fixture(scope="module")
def twilio() -> Iterator[str]:
    command = [sys.executable, "-m", "mesh.testing.twilio", "--port", "0", "--webhook", "http://127.0.0.1:9/x"]
    options = ["--account-sid", SID, "--auth-token", TOKEN, "--number", NUMBER]
    with subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().split()[-1]
        process.terminate()


@dataclass
class Stage:
    """A chat with one person, whose agent says what `says` returns."""

    ledger: Ledger
    sender: Sender
    driver: Driver
    phone: Phone
    person: str
    says: Callable[[Request], Ok | Failed] = lambda request: Ok(value=Reply(text="the answer").model_dump(mode="json"))
    asked: list[str] = field(default_factory=list)
    cleared: Ok | Failed = field(default_factory=lambda: Ok(value={}))

    async def local(self, request: Request) -> Ok | Failed:
        self.asked.append(request.skill)
        return self.cleared if request.skill == CLEAR_TO_SEND.name else self.says(request)

    @property
    def chat(self) -> str:
        return f"{NUMBER}|{self.person}"

    async def hear(self, message_id: str = "", text: str = "a question", **more: Any) -> str:
        """`more` is what `Inbound` has beside."""
        message_id = message_id or f"SM{self.person}"
        await self.ledger.accept(Inbound(message_id, self.person, NUMBER, text, {}, **more))
        return message_id

    def be_quiet(self, seconds: float, longest: float = 5.0) -> None:
        self.ledger._leases.quiet = Quiet(seconds, longest)

    async def take(self) -> None:
        await self.driver.take(self.chat, self.local)

    async def received(self) -> list[str]:
        return [each.text for each in await self.phone.replies(self.person)]


@pytest.fixture
async def stage(redis_url: str, twilio: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    monkeypatch.setattr(module, "SETTLE_AFTER_S", 0.2)
    monkeypatch.setattr(module, "BACK_OFF_S", (0.05,))
    channel = TwilioChannel(SID, TOKEN, api_base=twilio, connect_timeout=1.0, read_timeout=0.4)
    async with Bus(redis_url) as bus, Phone(twilio) as phone:
        ledger = Ledger(bus.redis)
        sends = sender(ledger, channel, bus, number=NUMBER)
        yield Stage(ledger, sends, Driver(sends, Patience(turn=5)), phone, f"+1557{next(_people):07d}")
        await phone.script()
        await ledger.close()
    await channel.close()
