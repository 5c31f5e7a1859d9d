"""A turn on its way to the provider, which throttles, hangs, refuses and lies: one reply, or a recorded reason."""

from __future__ import annotations

import asyncio
import itertools
import time

import pytest

from agents.orchestrator import words
from agents.orchestrator.turns import MOST_CLAIMS, Patience
from mesh.catalogue import say
from mesh.contracts.orchestrator import CONVERSE, Reply, Turn
from mesh.envelope import Failed, Ok, Request
from mesh.ledger import Caps
from mesh.ports.channel import Inbound
from tests.redis.turn_stage import NUMBER, Stage


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
    for _ in range(MOST_CLAIMS):
        async with stage.ledger.lease(stage.chat) as lease:
            assert lease is not None
            assert await lease.next() is not None
    await stage.take()
    assert await stage.received() == [words.CRASHING]
    assert await stage.ledger.dead() == [message_id]


# ── several messages, one turn ────────────────────────────────────────────────────────────────────────────────────


def echo(request: Request) -> Ok | Failed:
    return Ok(value=Reply(text=Turn.model_validate(request.payload).text).model_dump(mode="json"))


async def test_messages_in_a_row_are_answered_once_and_each_knows_its_turn(stage: Stage) -> None:
    stage.be_quiet(0.3)
    stage.says = echo
    taking = asyncio.create_task(stage.take())
    for number, text in enumerate(("hello", "a room for two", "on Friday")):
        await stage.hear(f"SM{number}", text)
        await asyncio.sleep(0.05)
    await taking
    await stage.take()
    assert await stage.received() == ["hello\na room for two\non Friday"]
    turns = [await stage.ledger.turn(f"SM{number}") for number in range(3)]
    assert [turn and (turn.turn_id, turn.state) for turn in turns] == [("SM0", "sent")] * 3


async def test_without_a_quiet_window_each_message_is_answered_by_itself(stage: Stage) -> None:
    stage.says = echo
    for number in range(3):
        await stage.hear(f"SM{number}", f"m{number}")
    await stage.take()
    assert await stage.received() == ["m0", "m1", "m2"]


async def test_somebody_who_never_stops_writing_is_answered_all_the_same(stage: Stage) -> None:
    stage.be_quiet(0.3, longest=0.6)
    stage.says = echo
    ended = asyncio.Event()

    async def write() -> None:
        for number in range(1, 200):
            if ended.is_set():
                return
            await stage.hear(f"SM{number}", f"m{number}")
            await asyncio.sleep(0.05)

    async def answered() -> None:
        while not await stage.received():
            await asyncio.sleep(0.02)
        ended.set()

    await stage.hear("SM0", "m0")
    writing = asyncio.create_task(write())
    taking = asyncio.create_task(stage.take())
    async with asyncio.timeout(8):
        await answered()
    await writing
    await taking
    await stage.take()
    said = "\n".join(await stage.received()).splitlines()
    assert said == [f"m{number}" for number in range(len(said))], "in order, and each once"


async def test_messages_that_are_far_apart_are_answered_apart(stage: Stage) -> None:
    stage.be_quiet(0.1)
    stage.says = echo
    await stage.hear("SM0", "in the morning")
    await asyncio.sleep(0.15)
    await stage.hear("SM1", "in the evening")
    await stage.take()
    assert await stage.received() == ["in the morning", "in the evening"]


async def test_a_newer_message_makes_an_unsent_draft_stale(stage: Stage) -> None:
    stage.be_quiet(0.05)
    planned: list[str] = []

    def says(request: Request) -> Ok | Failed:
        planned.append(Turn.model_validate(request.payload).text)
        return echo(request)

    stage.says = says
    await stage.hear("SM0", "a room for Friday")
    async with stage.ledger.lease(stage.chat) as lease:
        assert lease is not None
        turn = await lease.next()
        assert turn is not None
        await lease.planned(turn, Reply(text="a draft"))
    await stage.hear("SM1", "no, for Saturday")
    await stage.take()
    assert await stage.received() == ["a room for Friday\nno, for Saturday"]
    assert planned == ["a room for Friday\nno, for Saturday"]


async def test_writing_on_is_not_taken_for_a_turn_that_kills_its_worker(stage: Stage) -> None:
    stage.be_quiet(0.05)
    written = itertools.count(1)

    async def writes_on(request: Request) -> Ok | Failed:
        if request.skill == CONVERSE.name and (number := next(written)) <= 3:
            await stage.hear(f"SM{number}", f"m{number}")
        return await stage.local(request)

    stage.says = echo
    await stage.hear("SM0", "m0")
    await stage.driver.take(stage.chat, writes_on)
    assert await stage.received() == ["m0\nm1\nm2\nm3"]


# ── /cancel ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_cancel_interrupts_at_once_and_both_messages_have_their_outcome(stage: Stage) -> None:
    working, stopped = asyncio.Event(), asyncio.Event()

    async def never_ends(request: Request) -> Ok | Failed:
        if request.skill != CONVERSE.name:
            return stage.cleared
        working.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return stage.cleared

    async def hear_cancels() -> None:
        async for chat in stage.ledger.cancels():
            stage.driver.interrupt(chat)

    hearing = asyncio.create_task(hear_cancels())
    await stage.hear("SM0", "a long question")
    taking = asyncio.create_task(stage.driver.take(stage.chat, never_ends))
    await working.wait()
    async with asyncio.timeout(5):
        await stage.hear("SM1", " /Cancel ")
        await stopped.wait()
        await taking
    hearing.cancel()
    assert await stage.received() == [words.CANCELLED]
    turns = [await stage.ledger.turn(f"SM{number}") for number in range(2)]
    assert [turn and turn.state for turn in turns] == ["sent", "sent"]


async def test_a_cancel_that_was_not_heard_still_stops_the_draft(stage: Stage) -> None:
    await stage.hear("SM0", "a question")
    async with stage.ledger.lease(stage.chat) as lease:
        assert lease is not None
        turn = await lease.next()
        assert turn is not None
        await lease.planned(turn, Reply(text="a draft"))
    await stage.hear("SM1", "/cancel")
    await stage.take()
    assert await stage.received() == [words.CANCELLED]


async def test_a_cancel_with_nothing_under_way_says_so_and_asks_no_agent(stage: Stage) -> None:
    await stage.hear("SM0", "/cancel")
    await stage.take()
    assert await stage.received() == [words.without_a_search("cancel", "en")]
    assert CONVERSE.name not in stage.asked


async def test_a_bare_stop_is_no_cancel_and_silences_what_was_drafted(stage: Stage) -> None:
    await stage.hear("SM0", "a question")
    async with stage.ledger.lease(stage.chat) as lease:
        assert lease is not None
        turn = await lease.next()
        assert turn is not None
        await lease.planned(turn, Reply(text="the draft"))
    await stage.hear("SM1", "STOP")
    await stage.take()
    assert await stage.received() == [say("opted_out", "en")]  # and what was drafted before is left unsaid


# ── company, deadlines, caps ──────────────────────────────────────────────────────────────────────────────────────


async def test_who_waits_sees_typing_and_is_told_once_that_it_takes_longer(stage: Stage) -> None:
    stage.driver._patience = Patience(typing=0.05, still_working=0.2, turn=5)
    typed: list[str] = []

    async def typing(*, sender: str, recipient: str, message_id: str) -> None:
        typed.append(message_id)

    stage.driver._channel.typing = typing  # type: ignore[method-assign]  # its own tests are the channel's

    async def slow(request: Request) -> Ok | Failed:
        if request.skill == CONVERSE.name:
            await asyncio.sleep(0.6)
        return await stage.local(request)

    await stage.hear("SM0")
    await stage.driver.take(stage.chat, slow)
    assert await stage.received() == [words.STILL_WORKING, "the answer"]
    assert set(typed) == {"SM0"}


async def test_a_quick_answer_needs_no_company(stage: Stage) -> None:
    stage.driver._patience = Patience(typing=0.5, still_working=0.5, turn=5)
    await stage.hear("SM0")
    await stage.take()
    assert await stage.received() == ["the answer"]


async def test_a_turn_has_a_deadline_that_a_crash_does_not_end_at_once(stage: Stage) -> None:
    left: list[float] = []

    def says(request: Request) -> Ok | Failed:
        left.append(request.deadline - time.time())
        return echo(request)

    stage.says = says
    stage.driver._patience = Patience(turn=0.9)
    await stage.hear("SM0")
    async with stage.ledger.lease(stage.chat) as lease:
        assert lease is not None
        await lease.next()
        await asyncio.sleep(1)
    await stage.take()
    assert 0 < left[0] <= 0.31


async def test_over_the_cap_the_person_is_told_once_and_what_was_before_is_answered(stage: Stage) -> None:
    stage.ledger._caps = Caps(chat=2)
    stage.says = echo
    for number in range(6):
        await stage.hear(f"SM{number}", f"m{number}")
    await stage.take()
    assert await stage.received() == ["m0", "m1", words.too_many(4)]
    await stage.hear("SM6", "m6")
    await stage.take()
    assert (await stage.received())[-1] == "m6"


async def test_a_clients_cap_counts_all_of_their_chats(stage: Stage) -> None:
    stage.ledger._caps = Caps(chat=10, client=3)
    other = "+15550009999"
    for number in range(3):
        await stage.ledger.accept(Inbound(f"other{number}", stage.person, other, "elsewhere", {}))
    await stage.hear("SM0")
    await stage.take()
    assert await stage.received() == [words.too_many(1)]
