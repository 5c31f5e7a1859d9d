"""Webhooks that never arrived, and the provider's list that has the messages all the same."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from agents.orchestrator.catching_up import catch_up
from mesh.adapters.twilio import TwilioChannel
from mesh.bus import Bus
from mesh.errors import MeshError
from mesh.ledger import LOOKING, Ledger
from mesh.ports.channel import Inbound
from mesh.testing.phone import Phone
from tests.simulated import NUMBER, SID, TOKEN, twilio  # noqa: F401 - a fixture

SECOND = "+14155550000"
_people = itertools.count(1)


@dataclass
class Stage:
    ledger: Ledger
    channel: TwilioChannel
    phone: Phone
    person: str

    async def look(self, *others: str) -> int:
        """As an orchestrator does when the next period begins."""
        await self.ledger._redis.delete(LOOKING)
        return await catch_up(self.ledger, self.channel, NUMBER, 60, *others)

    async def accepted(self) -> list[str]:
        return [each.message.text for each in reversed(await self.ledger.recent())]


@pytest.fixture
async def stage(redis_url: str, twilio: str) -> AsyncIterator[Stage]:  # noqa: F811 - the fixture
    channel = TwilioChannel(SID, TOKEN, api_base=twilio)
    async with Bus(redis_url) as bus, Phone(twilio) as phone:
        ledger = Ledger(bus.redis)
        yield Stage(ledger, channel, phone, f"+1558{next(_people):07d}")
        await phone.listing()
        await ledger.close()
    await channel.close()


async def test_a_message_whose_webhook_was_lost_is_taken_in_once(stage: Stage) -> None:
    await stage.look()
    for text in ("first", "second"):
        await stage.phone.post(stage.person, text, deliver=False)
    assert await stage.look() == 0, "its webhook may still be under way"
    assert await stage.look() == 2
    assert await stage.look() == 0
    assert await stage.accepted() == ["first", "second"]


async def test_what_came_before_the_mesh_ever_looked_is_not_answered(stage: Stage) -> None:
    await stage.phone.post(stage.person, "long ago", deliver=False)
    for _ in range(3):
        assert await stage.look() == 0
    await stage.phone.post(stage.person, "now", deliver=False)
    await stage.look()
    await stage.look()
    assert await stage.accepted() == ["now"]


async def test_a_webhook_that_comes_after_the_first_look_is_taken(stage: Stage) -> None:
    posted = await stage.phone.post(stage.person, "slow webhook", deliver=False)
    await stage.look()
    assert await stage.ledger.accept(Inbound(posted.message_sid, stage.person, NUMBER, "slow webhook", {}))


async def test_a_message_that_was_delivered_is_not_taken_twice(stage: Stage) -> None:
    await stage.look()
    posted = await stage.phone.post(stage.person, "hello", deliver=False)
    received = await stage.channel.received(recipient=NUMBER, since=datetime.now(UTC) - timedelta(hours=1))
    (message,) = [each for each in received if each.message_id == posted.message_sid]
    assert await stage.ledger.accept(message)
    for _ in range(3):
        assert await stage.look() == 0
    assert await stage.accepted() == ["hello"]


async def test_one_orchestrator_looks_at_a_time(stage: Stage) -> None:
    await stage.look()
    await stage.phone.post(stage.person, "hello", deliver=False)
    await stage.look()
    assert await catch_up(stage.ledger, stage.channel, NUMBER, 60) == 0, "another has looked in this period"
    assert await stage.look() == 1


async def test_each_of_our_numbers_is_looked_at(stage: Stage) -> None:
    await stage.look(SECOND)
    for text, to in (("to the first", NUMBER), ("to the second", SECOND)):
        await stage.phone.post(stage.person, text, to=to, deliver=False)
    assert await stage.look(SECOND) == 0, "their webhooks may still be under way"
    assert await stage.look(SECOND) == 2
    assert await stage.look(SECOND) == 0
    assert sorted(await stage.accepted()) == ["to the first", "to the second"]


async def test_the_list_of_one_number_that_fails_loses_nothing_of_the_others(stage: Stage) -> None:
    await stage.look(SECOND)
    await stage.phone.post(stage.person, "to the first", deliver=False)
    await stage.look(SECOND)
    await stage.phone.listing({"do": "answer"}, {"do": "fail", "status": 503})
    with pytest.raises(MeshError):
        await stage.look(SECOND)
    assert await stage.look(SECOND) == 1


async def test_a_list_that_fails_loses_nothing(stage: Stage) -> None:
    await stage.look()
    await stage.phone.post(stage.person, "hello", deliver=False)
    await stage.look()
    await stage.phone.listing({"do": "fail", "status": 503})
    with pytest.raises(MeshError):
        await stage.look()
    assert await stage.look() == 1
