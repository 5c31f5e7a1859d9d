"""The ledger's promise, over a real Redis: once, in order, one outcome, and only by who holds the lease."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from mesh import connections
from mesh import lease as module
from mesh.bus import Bus
from mesh.contracts.answers import Source
from mesh.contracts.orchestrator import TAKE_TURNS, Reply
from mesh.errors import Unavailable
from mesh.lease import Lease, LeaseLost, TurnRecord, said_and_answered
from mesh.ledger import Ledger, turn_kick
from mesh.ports.channel import Delivery, Inbound
from tests.people import ASHA, BEN

NUMBER = "+14155238886"


def message(message_id: str, text: str = "hello", sender: str = ASHA) -> Inbound:
    return Inbound(message_id, sender, NUMBER, text, {"Body": text, "Unknown": "kept"})


CHAT = message("x").chat


@pytest.fixture
async def bus(redis_url: str) -> AsyncIterator[Bus]:
    async with Bus(redis_url) as opened:
        yield opened


@pytest.fixture
async def ledger(bus: Bus) -> AsyncIterator[Ledger]:
    made = Ledger(bus.redis)
    yield made
    await made.close()


async def take(lease: Lease) -> TurnRecord:
    turn = await lease.next()
    assert turn is not None
    return turn


async def answer(lease: Lease, turn: TurnRecord, text: str = "hi", provider_id: str = "") -> None:
    reply = Reply(text=text)
    await lease.planned(turn, reply)
    await lease.sending(turn)
    await lease.sent(turn, provider_id or f"SM {turn.turn_id}", said_and_answered("hello", reply))


async def test_a_message_is_accepted_once_however_often_it_comes(ledger: Ledger) -> None:
    assert await ledger.accept(message("m1"))
    assert not await ledger.accept(message("m1"))
    assert not await ledger.accept(message("m1", "another text"))
    async with ledger.lease(CHAT) as lease:
        assert lease is not None
        await answer(lease, await take(lease))
        assert await lease.next() is None


async def test_forty_copies_at_once_are_one_message(ledger: Ledger) -> None:
    accepted = await asyncio.gather(*(ledger.accept(message("m1")) for _ in range(40)))
    assert sum(accepted) == 1


async def test_accepting_enqueues_the_work_in_the_same_step(ledger: Ledger, bus: Bus) -> None:
    await ledger.accept(message("m1"))
    assert await bus.redis.zcard(TAKE_TURNS.queue) == 1
    assert await ledger.overdue(older_than_s=0) == [CHAT]


async def test_every_field_of_the_provider_is_kept(ledger: Ledger) -> None:
    await ledger.accept(message("m1", "नमस्ते \U0001f44b"))
    assert await ledger.message("m1") == message("m1", "नमस्ते \U0001f44b")


async def test_a_chat_is_answered_in_the_order_accepted(ledger: Ledger) -> None:
    for number in range(5):
        await ledger.accept(message(f"m{number}"))
    order = []
    async with ledger.lease(CHAT) as lease:
        assert lease is not None
        while turn := await lease.next():
            order.append(turn.turn_id)
            await answer(lease, turn)
    assert order == [f"m{number}" for number in range(5)]


async def test_two_chats_do_not_wait_for_one_another(ledger: Ledger) -> None:
    await ledger.accept(message("m1"))
    await ledger.accept(message("m2", sender=BEN))
    async with ledger.lease(CHAT) as one, ledger.lease(message("m2", sender=BEN).chat) as other:
        assert one is not None
        assert other is not None
        assert (await take(other)).turn_id == "m2"


async def test_a_chat_is_held_by_one_worker_at_a_time(ledger: Ledger) -> None:
    async with ledger.lease(CHAT) as first, ledger.lease(CHAT) as second:
        assert first is not None
        assert second is None


async def test_a_lease_that_is_given_back_is_free_at_once(ledger: Ledger) -> None:
    async with ledger.lease(CHAT):
        pass
    async with ledger.lease(CHAT) as again:
        assert again is not None


async def test_a_message_that_comes_as_the_last_one_is_sent_is_not_forgotten(ledger: Ledger) -> None:
    await ledger.accept(message("m1"))
    async with ledger.lease(CHAT) as lease:
        assert lease is not None
        await answer(lease, await take(lease))
        await ledger.accept(message("m2"))
        assert (await take(lease)).turn_id == "m2"


async def test_after_a_crash_the_turn_goes_on_from_its_last_finished_step(ledger: Ledger, bus: Bus) -> None:
    await ledger.accept(message("m1"))
    async with ledger.lease(CHAT) as lease:
        assert lease is not None
        await lease.planned(
            await take(lease), Reply(text="the stored text", sources=(Source(kind="memory", name="x"),))
        )
    async with ledger.lease(CHAT) as lease:
        assert lease is not None
        turn = await take(lease)
        assert turn.state == "ready"
        assert turn.reply is not None
        assert turn.reply.text == "the stored text"
        await lease.sending(turn)
    async with ledger.lease(CHAT) as lease:
        assert lease is not None
        turn = await take(lease)
        assert (turn.state, turn.attempts) == ("sending", 1)
        assert turn.first_intent_at > 0


async def test_a_worker_that_slept_through_its_lease_can_change_nothing(ledger: Ledger, bus: Bus) -> None:
    await ledger.accept(message("m1"))
    async with ledger.lease(CHAT) as late:
        assert late is not None
        stale = await take(late)
        await bus.redis.delete(f"mesh:chat:{CHAT}:lease")  # it ran out
        async with ledger.lease(CHAT) as current:
            assert current is not None
            turn = await take(current)
            with pytest.raises(LeaseLost):
                await late.planned(stale, Reply(text="too late"))
            with pytest.raises(LeaseLost):
                await late.next()
            await answer(current, turn, "in time")
    record = await ledger.turn("m1")
    assert record is not None
    assert record.reply is not None
    assert (record.state, record.reply.text) == ("sent", "in time")


async def test_leaving_late_does_not_take_anothers_lease_away(ledger: Ledger, bus: Bus) -> None:
    async with ledger.lease(CHAT) as late:
        assert late is not None
        await bus.redis.delete(f"mesh:chat:{CHAT}:lease")
        current = ledger.lease(CHAT)
        assert await current.__aenter__() is not None
    async with ledger.lease(CHAT) as third:
        assert third is None
    await current.__aexit__(None, None, None)


async def test_a_lease_is_renewed_while_it_is_held(ledger: Ledger, bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LEASE_MS", 200)
    monkeypatch.setattr(module, "RENEW_S", 0.05)
    async with ledger.lease(CHAT) as lease:
        assert lease is not None
        for _ in range(20):
            await asyncio.sleep(0.03)
            assert await bus.redis.exists(f"mesh:chat:{CHAT}:lease")


async def test_a_step_cannot_be_taken_twice(ledger: Ledger) -> None:
    await ledger.accept(message("m1"))
    async with ledger.lease(CHAT) as lease:
        assert lease is not None
        turn = await take(lease)
        await lease.planned(turn, Reply(text="one"))
        with pytest.raises(LeaseLost):
            await lease.planned(turn, Reply(text="two"))


async def test_a_dead_turn_is_kept_for_a_person_and_the_chat_goes_on(ledger: Ledger) -> None:
    await ledger.accept(message("m1"))
    await ledger.accept(message("m2"))
    async with ledger.lease(CHAT) as lease:
        assert lease is not None
        turn = await take(lease)
        await lease.planned(turn, Reply(text="hi"))
        await lease.died(turn, "ready", "the provider refused it: 63024")
        assert (await take(lease)).turn_id == "m2"
    assert await ledger.dead() == ["m1"]
    record = await ledger.turn("m1")
    assert record is not None
    assert (record.state, record.reason) == ("dead", "the provider refused it: 63024")


async def test_the_window_holds_both_sides_and_the_newest_lines(ledger: Ledger) -> None:
    for number in range(8):
        await ledger.accept(message(f"m{number}"))
    async with ledger.lease(CHAT) as lease:
        assert lease is not None
        while turn := await lease.next():
            await answer(lease, turn, f"answer {turn.turn_id}")
    lines = await ledger.window(CHAT)
    assert [line.text for line in lines[-2:]] == ["hello", "answer m7"]
    assert [line.who for line in lines[-2:]] == ["person", "mesh"]
    assert len(lines) == module.WINDOW_LINES


async def test_delivery_only_moves_forward(ledger: Ledger) -> None:
    await ledger.accept(message("m1"))
    async with ledger.lease(CHAT) as lease:
        assert lease is not None
        await answer(lease, await take(lease), provider_id="SM1")
    for state in ("sent", "read", "delivered", "queued", "a state that is new to us"):
        await ledger.delivered(Delivery("SM1", state))
    record = await ledger.turn("m1")
    assert record is not None
    assert record.delivery == "read"


async def test_a_callback_for_a_message_that_is_not_ours_changes_nothing(ledger: Ledger, bus: Bus) -> None:
    """It may be of one that is just being sent: so it is kept for a while, and found only under its own id."""
    await ledger.delivered(Delivery("SM of somebody", "failed", "63024"))
    (kept,) = await bus.redis.keys()
    assert kept.endswith(b"SM of somebody")
    assert 0 < await bus.redis.pttl(kept) <= 3_600_000
    assert await ledger.undelivered() is None


async def test_only_chats_that_nobody_holds_are_overdue(ledger: Ledger) -> None:
    await ledger.accept(message("m1"))
    assert await ledger.overdue(older_than_s=60) == []
    async with ledger.lease(CHAT):
        assert await ledger.overdue(older_than_s=0) == []
    assert await ledger.overdue(older_than_s=0) == [CHAT]


async def test_kicking_a_chat_many_times_a_second_is_one_job(bus: Bus) -> None:
    jobs = {turn_kick(CHAT).job_id for _ in range(50)}
    assert len(jobs) <= 2


async def test_an_unreachable_redis_is_said_so_that_the_gateway_can_answer_503(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "TRIES", 1)
    async with Bus("redis://127.0.0.1:1/0") as dead:
        with pytest.raises(Unavailable):
            await Ledger(dead.redis).accept(message("m1"))
