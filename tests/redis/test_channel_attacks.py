"""What a person, a stranger and bad luck may do to a chat, and what must hold all the same."""

from __future__ import annotations

from mesh.catalogue import say
from mesh.contracts.orchestrator import Piece, Reply
from mesh.envelope import Ok, Request
from mesh.ledger import Caps
from mesh.ports.channel import Delivery
from tests.outbox import OWNER, waiting
from tests.redis.test_outcomes import followed_up, saying, told_the_owner, turn_of
from tests.redis.turn_stage import Stage


async def test_a_cancel_takes_back_no_stop_that_was_written_before_it(stage: Stage) -> None:
    """STOP, /cancel: they are opted out, and told so."""
    said: list[str] = []

    async def local(request: Request) -> Ok:
        if not said:  # both come while the first question is planned
            said.append("planned")
            await stage.hear("SMstop", "STOP")
            await stage.hear("SMcancel", "/cancel")
        return Ok(value={}) if request.skill.endswith("clear_to_send") else saying_answer()

    await stage.hear("SMquestion")
    await stage.driver.take(stage.chat, local)
    assert (await stage.sender.people.of(stage.person)).opted_out_at
    assert (await stage.received())[-1] == say("opted_out", "en")
    assert (await turn_of(stage, "SMstop")).messages == ("SMstop",)


async def test_nothing_that_was_asked_before_stop_is_answered_after_it(stage: Stage) -> None:
    for number in range(3):
        await stage.hear(f"SMquestion{number}")
    await stage.hear("SMstop", "Stop")
    await stage.take()
    assert await stage.received() == [say("opted_out", "en")]
    for number in range(3):
        turn = await turn_of(stage, f"SMquestion{number}")
        assert (turn.state, turn.reason) == ("silent", "opted out")


async def test_stop_is_obeyed_when_too_many_messages_wait(stage: Stage) -> None:
    stage.ledger._caps = Caps(chat=2)
    for number in range(3):
        await stage.hear(f"SMquestion{number}")
    await stage.hear("SMstop", "STOP")
    assert (await stage.sender.people.of(stage.person)).opted_out_at
    await stage.take()
    assert await stage.received() == []


async def test_stop_twice_is_confirmed_once_and_start_after_it_is_heard(stage: Stage) -> None:
    await stage.hear("SMone", "STOP")
    await stage.hear("SMtwo", "STOP")
    await stage.hear("SMthree", "START")
    await stage.hear("SMfour", "hello")
    await stage.take()
    assert await stage.received() == [say("opted_out", "en"), say("opted_in", "en"), "the answer"]


async def test_a_word_like_stop_in_a_caption_or_a_reaction_opts_nobody_out(stage: Stage) -> None:
    await stage.hear("SMone", "STOP", kind="reaction")
    await stage.hear("SMtwo", "STOP", media=1, kind="image")
    assert not (await stage.sender.people.of(stage.person)).opted_out_at


async def test_who_cancels_a_document_is_told_where_it_may_be(stage: Stage) -> None:
    """What the knowledge agent has begun goes on there."""
    async with stage.ledger.lease(stage.chat) as lease:
        await stage.hear("SMfile", "", media=1, kind="document")
        assert lease is not None
        turn = await lease.next()
        await stage.hear("SMcancel", "/cancel")
        assert turn is not None
        assert await lease.gather(turn)
    await stage.take()
    assert await stage.received() == [say("cancelled_file", "en")]


# ── too fast, too late ────────────────────────────────────────────────────────────────────────────────────────────


async def too_fast(stage: Stage, provider_id: str) -> None:
    await stage.ledger.delivered(Delivery(provider_id, "failed", "63018"))
    await stage.ledger._redis.zadd("mesh:undelivered", dict.fromkeys(await every_undelivered(stage), 0))
    await followed_up(stage)


async def every_undelivered(stage: Stage) -> list[bytes]:
    return [bytes(entry) for entry in await stage.ledger._redis.zrange("mesh:undelivered", 0, -1)]


async def test_a_file_that_was_too_fast_comes_again_as_a_file(stage: Stage) -> None:
    pieces = (Piece(text="Here it is."), Piece(document_id="d0c", name="boat.pdf"))
    stage.says = lambda request: saying(Reply(text="Here it is.", pieces=pieces))
    message_id = await stage.hear()
    await stage.take()
    turn = await turn_of(stage, message_id)
    sent = []
    plain = stage.driver._channel.send

    async def send(**what: str) -> str:
        sent.append(what["link"])
        return await plain(**{**what, "text": "a file", "link": ""})

    stage.sender.channel.send = send  # type: ignore[method-assign]  # the simulated Twilio can't fetch such a link
    await too_fast(stage, turn.provider_id)
    await stage.take()
    assert [link.rpartition("/")[2] for link in sent] == ["boat.pdf"]


async def test_what_is_too_fast_again_and_again_comes_in_the_end(stage: Stage) -> None:
    message_id = await stage.hear()
    await stage.take()
    provider_id = (await turn_of(stage, message_id)).provider_id
    for _ in range(3):
        await too_fast(stage, provider_id)
        await stage.take()
        (provider_id,) = [each.sid for each in (await stage.phone.replies(stage.person))[-1:]]
    assert await stage.received() == ["the answer"] * 4
    assert await stage.ledger.dead() == []


async def test_what_the_owner_is_to_be_told_waits_for_the_owners_next_word(stage: Stage) -> None:
    """Hardly ever have they written in the last 24 hours."""
    before = await told_the_owner(stage)
    await stage.phone.rules(window_s=0.0, window_refuses=True)
    await stage.sender.alerts.wants_human(stage.person, "SM1")
    assert await told_the_owner(stage) == before
    await stage.phone.rules()
    chat = stage.chat.replace(stage.person, OWNER)
    (waits,) = await waiting(stage.ledger, chat)
    assert waits == say("owner_human", "en", chat=stage.person)


async def test_who_asks_for_a_person_is_told_of_also_in_an_hour_with_many_alerts(stage: Stage) -> None:
    for number in range(12):
        await stage.sender.alerts.refused(f"chat {number}", f"{number}")
    await stage.sender.alerts.wants_human(stage.person, "SM1")
    assert say("owner_human", "en", chat=stage.person) in await told_the_owner(stage)


async def test_a_long_answer_that_waits_waits_whole(stage: Stage) -> None:
    long = " ".join(f"This is sentence number {number} of an answer." for number in range(400))
    stage.says = lambda request: saying(Reply(text=long))
    await stage.phone.rules(window_s=0.0, window_refuses=True)
    await stage.hear()
    await stage.take()
    await stage.phone.rules()
    assert await waiting(stage.ledger, stage.chat) == [say("earlier_reply", "en", text=long)]


def saying_answer() -> Ok:
    return saying(Reply(text="the answer"))


async def test_what_was_over_the_cap_is_forgotten_too(stage: Stage) -> None:
    stage.ledger._caps = Caps(chat=1)
    for number in range(4):
        await stage.hear(f"SMover{number}", "the secret word")
    await stage.take()
    await stage.ledger.forget(stage.chat)
    kept = [await stage.ledger.message(f"SMover{number}") for number in range(4)]
    assert [message.text for message in kept if message] == [""] * 4
