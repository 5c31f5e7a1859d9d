"""The short memory of what was accepted last, which the dashboard reads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from mesh import scripts
from mesh.bus import Bus
from mesh.contracts.orchestrator import Reply
from mesh.errors import Unavailable
from mesh.lease import said_and_answered
from mesh.ledger import Ledger
from mesh.ports.channel import Delivery, Inbound
from tests.people import ASHA, BEN
from tests.processes import free_port

NUMBER = "+14155238886"


def message(message_id: str, text: str = "hello", sender: str = ASHA) -> Inbound:
    return Inbound(message_id, sender, NUMBER, text, {"Body": text})


@pytest.fixture
async def ledger(redis_url: str) -> AsyncIterator[Ledger]:
    async with Bus(redis_url) as bus:
        made = Ledger(bus.redis)
        yield made
        await made.close()


async def recent(ledger: Ledger, limit: int = 50) -> list[str]:
    return [each.message.message_id for each in await ledger.recent(limit)]


async def test_nothing_was_accepted_yet(ledger: Ledger) -> None:
    assert await ledger.recent() == []


async def test_the_newest_comes_first_whoever_wrote_it(ledger: Ledger) -> None:
    for number, sender in enumerate((ASHA, BEN, ASHA)):
        await ledger.accept(message(f"m{number}", f"text {number}", sender))
    found = await ledger.recent()
    assert [(each.message.message_id, each.message.sender, each.message.text) for each in found] == [
        ("m2", ASHA, "text 2"),
        ("m1", BEN, "text 1"),
        ("m0", ASHA, "text 0"),
    ]
    assert await recent(ledger, 2) == ["m2", "m1"]


async def test_a_copy_is_not_listed_again(ledger: Ledger) -> None:
    await asyncio.gather(*(ledger.accept(message("m1")) for _ in range(20)))
    assert await recent(ledger) == ["m1"]


async def test_a_message_that_no_turn_took_up_has_none(ledger: Ledger) -> None:
    await ledger.accept(message("m1"))
    (found,) = await ledger.recent()
    assert found.turn is None
    assert found.accepted_at > 1_700_000_000


async def test_its_turn_is_told_as_it_stands(ledger: Ledger) -> None:
    await ledger.accept(message("m1"))
    reply = Reply(text="hi", skill="stage.greet", steps=("stage.greet grounded 3 ms",))
    async with ledger.lease(message("m1").chat) as lease:
        assert lease is not None
        turn = await lease.next()
        assert turn is not None
        await lease.planned(turn, reply)
        await lease.sending(turn)
        await lease.sent(turn, "SM out", said_and_answered("hello", reply))
    await ledger.delivered(Delivery("SM out", "undelivered", "63016"))
    (found,) = await ledger.recent()
    assert found.turn is not None
    assert (found.turn.state, found.turn.reply) == ("sent", reply)
    assert (found.turn.delivery, found.turn.delivery_error) == ("undelivered", "63016")
    assert found.accepted_at <= found.turn.planned_at <= found.turn.sent_at


async def test_a_dead_turn_says_when_and_why(ledger: Ledger) -> None:
    await ledger.accept(message("m1"))
    async with ledger.lease(message("m1").chat) as lease:
        assert lease is not None
        turn = await lease.next()
        assert turn is not None
        await lease.died(turn, "planned", "the provider refused it: 63024")
    (found,) = await ledger.recent()
    assert found.turn is not None
    assert (found.turn.state, found.turn.reason) == ("dead", "the provider refused it: 63024")
    assert found.turn.dead_at >= found.accepted_at


async def test_it_forgets_the_oldest_and_never_grows(ledger: Ledger) -> None:
    for start in range(0, scripts.RECENT_KEPT + 20, 52):
        await asyncio.gather(*(ledger.accept(message(f"m{number}")) for number in range(start, start + 52)))
    found = await recent(ledger, 10_000)
    assert len(found) == scripts.RECENT_KEPT
    assert "m0" not in found


async def test_a_message_that_is_no_longer_kept_is_left_out(ledger: Ledger) -> None:
    await ledger.accept(message("m1"))
    await ledger.accept(message("m2"))
    await ledger._redis.delete("mesh:in:m1")
    assert await recent(ledger) == ["m2"]


async def test_an_unreachable_redis_is_an_error_of_ours() -> None:
    async with Bus(f"redis://127.0.0.1:{free_port()}") as bus:
        ledger = Ledger(bus.redis)
        with pytest.raises(Unavailable):
            await ledger.recent()
        await ledger.close()
