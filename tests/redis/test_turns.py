"""A turn on its way to the provider, which throttles, hangs, refuses and lies: one reply, or a recorded reason."""

from __future__ import annotations

import itertools
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field

import pytest

from agents.orchestrator import turns as module
from agents.orchestrator import words
from agents.orchestrator.turns import Driver
from mesh.adapters.twilio import TwilioChannel
from mesh.bus import Bus
from mesh.contracts import CLEAR_TO_SEND, Reply
from mesh.envelope import Failed, Ok, Request
from mesh.ledger import Ledger
from mesh.ports import Inbound
from mesh.testing.phone import Phone

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

    async def hear(self, message_id: str = "") -> str:
        message_id = message_id or f"SM{self.person}"
        await self.ledger.accept(Inbound(message_id, self.person, NUMBER, "a question", {}))
        return message_id

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
        yield Stage(ledger, Driver(ledger, channel, turn_seconds=5), phone, f"+1557{next(_people):07d}")
        await phone.script()
        await ledger.close()
    await channel.close()


async def test_a_turn_ends_in_one_reply(stage: Stage) -> None:
    message_id = await stage.hear()
    await stage.take()
    assert await stage.received() == ["the answer"]
    turn = await stage.ledger.turn(message_id)
    assert turn is not None
    assert turn.state == "sent"
    assert turn.accepted_at <= turn.planned_at <= turn.ready_at <= turn.sending_at <= turn.sent_at <= time.time() + 1


async def test_what_an_agent_fails_with_is_what_the_person_reads(stage: Stage) -> None:
    stage.says = lambda request: Failed(code="unavailable", user_text="Not now. Try again in a minute.")
    await stage.hear()
    await stage.take()
    assert await stage.received() == ["Not now. Try again in a minute."]


async def test_a_throttled_send_is_sent_once_later(stage: Stage) -> None:
    await stage.phone.script({"do": "throttle", "retry_after": 0}, {"do": "throttle", "retry_after": 0})
    await stage.hear()
    await stage.take()
    assert await stage.received() == ["the answer"]


@pytest.mark.parametrize("doing", [{"do": "accept_then_hang", "seconds": 2}, {"do": "accept_then_fail", "status": 503}])
async def test_a_send_that_was_taken_before_the_line_broke_is_not_repeated(
    stage: Stage, doing: dict[str, object]
) -> None:
    await stage.phone.script(doing)
    message_id = await stage.hear()
    await stage.take()
    assert await stage.received() == ["the answer"]
    turn = await stage.ledger.turn(message_id)
    assert turn is not None
    assert (turn.state, turn.attempts) == ("sent", 1)


@pytest.mark.parametrize("doing", [{"do": "hang"}, {"do": "fail", "status": 503}])
async def test_a_send_that_was_not_taken_is_repeated(stage: Stage, doing: dict[str, object]) -> None:
    await stage.phone.script(doing)
    await stage.hear()
    await stage.take()
    assert await stage.received() == ["the answer"]


async def test_an_equal_earlier_reply_is_not_taken_for_the_one_that_broke(stage: Stage) -> None:
    await stage.hear("SM1")
    await stage.take()
    await stage.phone.script({"do": "fail", "status": 503})
    await stage.hear("SM2")
    await stage.take()
    assert await stage.received() == ["the answer", "the answer"]


async def test_a_worker_that_died_after_sending_does_not_send_again(stage: Stage) -> None:
    message_id = await stage.hear()
    async with stage.ledger.lease(stage.chat) as lease:
        assert lease is not None
        turn = await lease.next()
        assert turn is not None
        await lease.planned(turn, Reply(text="the answer"))
        await lease.sending(turn)
        await stage.driver._channel.send(sender=NUMBER, recipient=stage.person, text="the answer")
    await stage.take()
    assert await stage.received() == ["the answer"]
    record = await stage.ledger.turn(message_id)
    assert record is not None
    assert record.state == "sent"


async def test_a_refused_send_is_a_dead_letter_with_its_reason_and_the_chat_goes_on(stage: Stage) -> None:
    await stage.phone.script({"do": "refuse", "code": 63024})
    first, second = await stage.hear("SM1"), await stage.hear("SM2")
    await stage.take()
    assert await stage.received() == ["the answer"]
    assert await stage.ledger.dead() == [first]
    dead, sent = await stage.ledger.turn(first), await stage.ledger.turn(second)
    assert dead is not None
    assert sent is not None
    assert "63024" in dead.reason
    assert sent.state == "sent"


async def test_who_was_revoked_while_the_answer_was_written_reads_the_refusal_instead(stage: Stage) -> None:
    stage.cleared = Failed(code="denied", user_text="This number has been blocked by the owner.")
    await stage.hear()
    await stage.take()
    assert await stage.received() == ["This number has been blocked by the owner."]


async def test_a_turn_that_keeps_killing_its_worker_ends_in_an_apology(stage: Stage) -> None:
    message_id = await stage.hear()
    for _ in range(module.MOST_CLAIMS):
        async with stage.ledger.lease(stage.chat) as lease:
            assert lease is not None
            assert await lease.next() is not None
    await stage.take()
    assert await stage.received() == [words.CRASHING]
    assert await stage.ledger.dead() == [message_id]


async def test_a_reply_longer_than_the_provider_takes_is_cut_and_not_lost(stage: Stage) -> None:
    stage.says = lambda request: Ok(value=Reply(text="A sentence. " * 400).model_dump(mode="json"))
    await stage.hear()
    await stage.take()
    (text,) = await stage.received()
    assert 1000 < len(text) <= 1600
    assert text.endswith("…")
