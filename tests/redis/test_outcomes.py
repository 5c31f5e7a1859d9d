"""What else may become of a turn: several pieces, silence for a reason, a reply that waits, and what comes to light
only after it was sent."""

from __future__ import annotations

import asyncio
import dataclasses

import pytest

from agents.orchestrator.turns import Driver, Patience
from mesh.catalogue import say
from mesh.contracts.answers import Source
from mesh.contracts.orchestrator import CLEAR_TO_SEND, Piece, Reply, Standing
from mesh.envelope import Failed, Ok, Request
from mesh.errors import Unavailable
from mesh.lease import TurnRecord, waiting_key
from mesh.ports.channel import Delivery
from tests.outbox import OWNER, waiting
from tests.redis.turn_stage import NUMBER, Stage


def saying(reply: Reply) -> Ok:
    return Ok(value=reply.model_dump(mode="json"))


TEMPLATE = "HX" + "1" * 32


async def turn_of(stage: Stage, message_id: str) -> TurnRecord:
    turn = await stage.ledger.turn(message_id)
    assert turn is not None
    return turn


async def told_the_owner(stage: Stage) -> list[str]:
    await stage.driver.take(f"{NUMBER}|{OWNER}", stage.local)
    return [each.text for each in await stage.phone.replies(OWNER)]


# ── pieces ────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_long_reply_comes_in_pieces_under_the_limit_and_in_order(stage: Stage) -> None:
    sentences = [f"This is sentence number {number} of a long answer." for number in range(90)]
    stage.says = lambda request: saying(Reply(text=" ".join(sentences)))
    message_id = await stage.hear()
    await stage.take()
    received = await stage.received()
    assert len(received) == 3
    assert all(len(text) <= 1600 and text.endswith(".") for text in received)
    assert " ".join(received) == " ".join(sentences)
    assert (await turn_of(stage, message_id)).state == "sent"


@pytest.mark.parametrize("doing", ["fail", "accept_then_fail", "throttle"])
async def test_trouble_in_the_middle_repeats_no_piece_and_leaves_none_out(stage: Stage, doing: str) -> None:
    stage.says = lambda request: saying(Reply(text="all", pieces=tuple(Piece(text=each) for each in "abc")))
    await stage.phone.script({"do": "accept"}, {"do": doing, "retry_after": 0, "status": 503})
    await stage.hear()
    await stage.take()
    assert await stage.received() == ["a", "b", "c"]


async def test_equal_pieces_are_told_apart_when_a_send_is_ambiguous(stage: Stage) -> None:
    stage.says = lambda request: saying(Reply(text="all", pieces=(Piece(text="same"), Piece(text="same"))))
    await stage.phone.script({"do": "accept"}, {"do": "fail", "status": 503})
    await stage.hear()
    await stage.take()
    assert await stage.received() == ["same", "same"]


async def test_what_is_written_between_two_pieces_is_answered_after_them(stage: Stage) -> None:
    stage.be_quiet(0.01)
    await stage.hear("SMone")

    def says(request: Request) -> Ok:
        if "one" in str(request.payload):
            return saying(Reply(text="ab", pieces=(Piece(text="a"), Piece(text="b"))))
        return saying(Reply(text="second"))

    stage.says = says
    cleared = 0

    async def local(request: Request) -> object:
        nonlocal cleared
        if request.skill == CLEAR_TO_SEND.name:
            cleared += 1
            if cleared == 2:
                await stage.hear("SMtwo", "two")
        return await stage.local(request)

    await stage.driver.take(stage.chat, local)  # type: ignore[arg-type]  # the same, and it listens
    assert await stage.received() == ["a", "b", "second"]


async def test_a_reply_that_is_far_too_long_is_announced_and_comes_as_a_file(stage: Stage) -> None:
    stage.says = lambda request: saying(Reply(text="A sentence of an endless answer. " * 400))
    message_id = await stage.hear()
    await stage.take()
    turn = await turn_of(stage, message_id)
    assert turn.reply is not None
    note, file = turn.reply.pieces
    assert note.text == say("too_long_as_file", "en")
    assert (file.document_id, file.name) == (f"turn:{turn.turn_id}", "answer.docx")


async def test_a_file_that_whatsapp_shows_comes_as_a_file_and_another_as_a_link(stage: Stage) -> None:
    pieces = tuple(Piece(document_id="d1", name=name) for name in ("notes.md", "plan.pdf"))
    stage.says = lambda request: saying(Reply(text="both", pieces=pieces))
    await stage.phone.script({"do": "accept"}, {"do": "refuse", "code": 63024})
    await stage.hear()
    await stage.take()
    assert await stage.received() == ["notes.md\nhttp://127.0.0.1:9/files/d1/notes.md"]
    (refused,) = (await stage.phone.log())["refused"][-1:]
    assert refused["to"] == stage.person, "the other one was sent as a file, whose link nobody serves here"


async def test_an_apology_is_in_the_persons_language(stage: Stage) -> None:
    await stage.sender.people.note(stage.person, language="es")
    stage.says = lambda request: Failed(code=Unavailable.code, user_text=Unavailable.default)
    await stage.hear()
    await stage.take()
    assert await stage.received() == [say("error_unavailable", "es")]
    assert "minuto" in say("error_unavailable", "es")


# ── silence, and its reasons ──────────────────────────────────────────────────────────────────────────────────────


async def test_stop_is_confirmed_once_and_then_nothing_is_said_until_start(stage: Stage) -> None:
    await stage.hear("SM1", "STOP")
    await stage.hear("SM2", "a question")
    await stage.hear("SM3", "stop")
    await stage.hear("SM4", "START")
    await stage.hear("SM5", "a question")
    await stage.take()
    assert await stage.received() == [say("opted_out", "en"), say("opted_in", "en"), "the answer"]
    for message_id in ("SM2", "SM3"):
        turn = await turn_of(stage, message_id)
        assert (turn.state, turn.reason) == ("silent", "opted out")


async def test_stop_is_obeyed_for_somebody_who_may_do_nothing(stage: Stage) -> None:
    stage.says = lambda request: pytest.fail("the gate was asked")
    await stage.hear(text="stop.")
    await stage.take()
    assert await stage.received() == [say("opted_out", "en")]


async def test_who_opts_out_while_an_answer_is_written_does_not_get_it(stage: Stage) -> None:
    def says(request: Request) -> Ok:
        asyncio.get_running_loop().create_task(stage.sender.people.note(stage.person, opted_out_at=1))
        return saying(Reply(text="too late"))

    stage.says = says
    message_id = await stage.hear()
    await stage.take()
    assert await stage.received() == []
    assert (await turn_of(stage, message_id)).reason == "opted out"


async def test_a_reaction_is_no_message_and_is_recorded_as_that(stage: Stage) -> None:
    message_id = await stage.hear(text="👍", kind="reaction")
    await stage.take()
    assert await stage.received() == []
    assert (await turn_of(stage, message_id)).reason == "a reaction"
    assert await stage.ledger.window(stage.chat) == ()


async def test_between_two_pieces_a_human_may_take_over(stage: Stage) -> None:
    stage.says = lambda request: saying(Reply(text="ab", pieces=(Piece(text="a"), Piece(text="b"))))
    await stage.hear()

    async def local(request: Request) -> object:
        if request.skill == CLEAR_TO_SEND.name and await stage.received():
            await stage.sender.people.note(stage.person, handed_over_at=1)
        return await stage.local(request)

    await stage.driver.take(stage.chat, local)  # type: ignore[arg-type]  # the same, and it looks
    assert await stage.received() == ["a"]
    assert await stage.sender.people.handed_over() == [stage.person]


# ── the window is closed ──────────────────────────────────────────────────────────────────────────────────────────


async def test_a_reply_outside_the_window_waits_and_comes_with_the_next_one(stage: Stage) -> None:
    await stage.phone.script({"do": "refuse", "code": 63016})
    first = await stage.hear("SM1")
    await stage.take()
    assert await stage.received() == []
    assert (await turn_of(stage, first)).state == "waiting"
    stage.says = lambda request: saying(Reply(text="the second answer"))
    await stage.hear("SM2")
    await stage.take()
    (received,) = await stage.received()
    assert received == f"{say('earlier_reply', 'en', text='the answer')}\n\nthe second answer"
    assert await waiting(stage.ledger, stage.chat) == []


FEE = Source(kind="document", name="contract.md", reference="0123#4")


@pytest.mark.parametrize("there", [True, False])
async def test_what_waited_is_said_only_while_what_it_stands_on_is_there(stage: Stage, there: bool) -> None:
    await stage.phone.script({"do": "refuse", "code": 63016})
    stage.says = lambda request: saying(Reply(text="7,413 zlotys", sources=(FEE,)))
    await stage.hear("SM1")
    await stage.take()
    stage.says = lambda request: saying(Reply(text="Hello!"))
    stage.cleared = Ok(value=Standing(sources=(FEE,) if there else ()).model_dump(mode="json"))
    second = await stage.hear("SM2", "hi")
    await stage.take()
    (received,) = await stage.received()
    before = say("earlier_reply", "en", text="7,413 zlotys") if there else say("earlier_gone", "en")
    assert received == f"{before}\n\nHello!"
    reply = (await turn_of(stage, second)).reply
    assert reply is not None
    assert reply.sources == ((FEE,) if there else ())
    assert await waiting(stage.ledger, stage.chat) == []


async def test_what_an_earlier_version_left_waiting_is_said(stage: Stage) -> None:
    await stage.ledger._redis.rpush(waiting_key(stage.chat), "You asked me earlier. It is 84 euros.")  # type: ignore[misc]  # redis-py's own type is both
    await stage.hear("SM1")
    await stage.take()
    assert await stage.received() == ["You asked me earlier. It is 84 euros.\n\nthe answer"]


async def test_what_waits_is_not_lost_when_the_draft_that_holds_it_becomes_stale_or_is_refused(stage: Stage) -> None:
    stage.be_quiet(0.01)
    await stage.phone.script({"do": "refuse", "code": 63016})
    await stage.hear("SM1")
    await stage.take()
    await stage.hear("SM2", "one")
    async with stage.ledger.lease(stage.chat) as lease:
        assert lease is not None
        turn = await lease.next()
        assert turn is not None
        await lease.planned(turn, Reply(text="a draft with what waits"), took=1)
        await stage.hear("SM3", "two")
        assert await lease.gather(turn)
    assert await waiting(stage.ledger, stage.chat) == [say("earlier_reply", "en", text="the answer")]
    stage.cleared = Failed(code="denied", user_text="You may not.")
    await stage.take()
    assert await waiting(stage.ledger, stage.chat) == [say("earlier_reply", "en", text="the answer")]
    stage.cleared = Ok(value={})
    await stage.hear("SM4", "three")
    await stage.take()
    assert await stage.received() == [
        "You may not.",
        f"{say('earlier_reply', 'en', text='the answer')}\n\nthe answer",
    ]


async def test_what_waited_comes_once_before_a_reply_of_several_pieces(stage: Stage) -> None:
    await stage.phone.script({"do": "refuse", "code": 63016})
    await stage.hear("SM1")
    await stage.take()
    stage.says = lambda request: saying(Reply(text="a file", pieces=(Piece(text="a"), Piece(text="b"))))
    await stage.hear("SM2")
    await stage.take()
    assert await stage.received() == [say("earlier_reply", "en", text="the answer"), "a", "b"]


async def test_with_a_template_the_person_is_told_once_a_day_that_an_answer_waits(stage: Stage) -> None:
    await stage.phone.templates({TEMPLATE: "A word from us: {{1}}"})
    stage.driver = Driver(dataclasses.replace(stage.sender, template=TEMPLATE), Patience(turn=5))
    await stage.phone.rules(window_s=0.0, window_refuses=True)
    for message_id in ("SM1", "SM2"):
        await stage.hear(message_id)
        await stage.take()
    assert [(await turn_of(stage, each)).state for each in ("SM1", "SM2")] == ["waiting", "waiting"]
    assert await stage.received() == [f"A word from us: {say('window_closed', 'en')}"]
    await stage.phone.rules()
    await stage.hear("SM3")
    await stage.take()
    assert (await stage.received())[-1].count("the answer") == 3


async def test_buttons_come_with_a_text_and_without_them_when_the_provider_has_no_such_template(stage: Stage) -> None:
    buttons = [{"title": "Delete it", "id": "cmd:delete"}]
    await stage.phone.templates({TEMPLATE: {"text": "{{1}}", "buttons": buttons}})
    for template, shown in ((TEMPLATE, (("Delete it", "cmd:delete"),)), ("HX" + "2" * 32, ())):
        piece = Piece(text="I've read it.", template=template)
        stage.says = lambda request, piece=piece: saying(Reply(text=piece.text, pieces=(piece,)))  # type: ignore[misc]
        await stage.hear(f"SM{template}")
        await stage.take()
        last = (await stage.phone.replies(stage.person))[-1]
        assert (last.text, last.buttons) == ("I've read it.", shown)


# ── afterwards ────────────────────────────────────────────────────────────────────────────────────────────────────


async def followed_up(stage: Stage) -> None:
    task = asyncio.create_task(stage.sender.keep_following_up())
    async with asyncio.timeout(10):
        while await stage.ledger._redis.zcount("mesh:undelivered", 0, 2e12):
            await asyncio.sleep(0.01)
    task.cancel()


async def test_what_the_provider_could_not_deliver_waits_too(stage: Stage) -> None:
    message_id = await stage.hear("SM1")
    await stage.take()
    turn = await turn_of(stage, message_id)
    await stage.ledger.delivered(Delivery(turn.provider_id, "undelivered", "63016"))
    await stage.ledger.delivered(Delivery(turn.provider_id, "undelivered", "63016"))
    await followed_up(stage)
    assert await waiting(stage.ledger, stage.chat) == [say("earlier_reply", "en", text="the answer")]


async def test_a_callback_that_is_faster_than_our_own_note_is_not_lost(stage: Stage) -> None:
    message_id = await stage.hear("SM1")
    sent_by = stage.sender.channel.send

    async def send(**options: str) -> str:
        provider_id = await sent_by(**options)
        await stage.ledger.delivered(Delivery(provider_id, "failed", "63024"))
        return provider_id

    stage.sender.channel.send = send  # type: ignore[method-assign]
    await stage.take()
    await followed_up(stage)
    turn = await turn_of(stage, message_id)
    assert (turn.delivery, turn.delivery_error) == ("failed", "63024")
    assert message_id in await stage.ledger.dead()


async def test_who_opted_out_at_the_provider_is_left_alone(stage: Stage) -> None:
    await stage.phone.script({"do": "refuse", "code": 21610})
    message_id = await stage.hear("SM1")
    await stage.hear("SM2")
    await stage.take()
    assert await stage.received() == []
    assert (await turn_of(stage, message_id)).reason == "opted out at the provider"
    assert (await turn_of(stage, "SM2")).reason == "opted out"


async def test_the_owner_is_told_of_a_dead_letter_and_once_an_hour_of_each(stage: Stage) -> None:
    before = len(await told_the_owner(stage))
    await stage.phone.script({"do": "refuse", "code": 63024}, {"do": "refuse", "code": 63024})
    await stage.hear("SM1")
    await stage.hear("SM2")
    await stage.take()
    told = (await told_the_owner(stage))[before:]
    assert told == [say("owner_refused", "en", code="63024", what=stage.person)]


async def test_what_does_not_come_to_the_owner_is_not_told_to_the_owner(stage: Stage) -> None:
    stage.person = OWNER
    before = len(await stage.received())
    await stage.phone.script({"do": "refuse", "code": 63024})
    await stage.hear("SMowner")
    await stage.take()
    assert await stage.received() == (await stage.received())[:before]


# ── forgotten ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_what_was_said_is_forgotten_in_one_chat_and_no_message_is_answered_again(stage: Stage) -> None:
    canary, kept = "the canary is called Blaubart", "the parrot is called Rotbart"
    await stage.hear("SMcanary", canary)
    await stage.take()
    mine, stage.person = stage.person, "+15579999999"
    await stage.hear("SMparrot", kept)
    await stage.take()
    assert await stage.ledger.forget(f"{NUMBER}|{mine}") == 1
    redis = stage.ledger._redis
    held = [await redis.dump(key) or b"" for key in await redis.keys("mesh:*")]
    assert not any(canary.encode() in each for each in held)
    assert any(kept.encode() in each for each in held)
    stage.person = mine
    before = len(await stage.received())
    await stage.hear("SMcanary", canary)
    await stage.take()
    assert len(await stage.received()) == before
