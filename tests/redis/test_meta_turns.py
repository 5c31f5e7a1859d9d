"""A turn that goes out through Meta: the same ledger, and sends that are settled by what the gateway is told."""

from __future__ import annotations

import asyncio
import itertools
import socket
from collections.abc import AsyncIterator, Iterator

import pytest

from agents.orchestrator import sending as module
from agents.orchestrator.turns import Driver, Patience
from mesh.adapters.meta import MetaChannel
from mesh.adapters.meta_echoes import Echoes
from mesh.bus import Bus
from mesh.catalogue import say
from mesh.contracts.orchestrator import Piece, Reply
from mesh.envelope import Ok
from mesh.gateway.app import create_app
from mesh.gateway.meta import MetaWebhooks
from mesh.ledger import Ledger
from mesh.testing.phone import Phone
from tests.contract.channel_stage import ID, SECRET, TOKEN, VERIFY, SimulatedMeta, simulated_meta
from tests.contract.gateway_stage import served
from tests.outbox import sender, waiting
from tests.processes import free_port
from tests.redis.turn_stage import NUMBER, Stage

_people = itertools.count(1)


@pytest.fixture(scope="module")
def meta() -> Iterator[SimulatedMeta]:
    with simulated_meta(free_port(), NUMBER) as simulated:
        yield simulated


@pytest.fixture
async def stage(redis_url: str, meta: SimulatedMeta, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    """With a gateway, since what became of a message is told there alone."""
    monkeypatch.setattr(module, "SETTLE_AFTER_S", 0.2)
    monkeypatch.setattr(module, "BACK_OFF_S", (0.05,))
    async with Bus(redis_url) as bus, Phone(meta.base) as phone:
        echoes, ledger = Echoes(bus.redis), Ledger(bus.redis)
        channel = MetaChannel(
            TOKEN, {NUMBER: ID}, echoes, api_base=f"{meta.base}/v25.0", read_timeout=0.4, wait_seconds=3.0
        )
        hooks = MetaWebhooks(ledger, echoes, app_secret=SECRET, verify_token=VERIFY, numbers={ID: NUMBER})
        listener = socket.create_server(("127.0.0.1", meta.webhook_port))
        async with served(create_app(ledger, meta=hooks), listener):
            sends = sender(ledger, channel, bus, number=NUMBER)
            yield Stage(ledger, sends, Driver(sends, Patience(turn=5)), phone, f"+1558{next(_people):07d}")
            await phone.script()
            await phone.rules()
            await phone.settle()
        await ledger.close()
        await channel.close()


async def told(stage: Stage, text: str) -> str:
    """As a person does it: through the webhook."""
    posted = await stage.phone.post(stage.person, text)
    assert posted.status == 200
    return posted.message_sid


async def states(stage: Stage, message_id: str, delivery: str) -> str:
    """The turn's state, once its delivery is that."""
    async with asyncio.timeout(10):
        while (turn := await stage.ledger.turn(message_id)) is None or turn.delivery != delivery:
            await asyncio.sleep(0.01)
    return turn.state


async def test_a_question_at_metas_webhook_is_answered_and_its_delivery_is_known(stage: Stage) -> None:
    message_id = await told(stage, "a question")
    await stage.take()
    assert await stage.received() == ["the answer"]
    assert await states(stage, message_id, "delivered") == "sent"


@pytest.mark.parametrize("doing", ["accept_then_fail", "accept_then_hang"])
async def test_a_send_without_an_end_that_was_taken_is_not_sent_again(stage: Stage, doing: str) -> None:
    await stage.phone.script({"do": doing, "seconds": 5})
    message_id = await told(stage, "a question")
    await stage.take()
    assert await stage.received() == ["the answer"]
    assert await states(stage, message_id, "delivered") == "sent"


@pytest.mark.parametrize("doing", ["fail", "hang", "throttle"])
async def test_a_send_that_was_not_taken_is_sent_again_once(stage: Stage, doing: str) -> None:
    await stage.phone.script({"do": doing, "retry_after": 0, "seconds": 5})
    await told(stage, "a question")
    await stage.take()
    assert await stage.received() == ["the answer"]


async def test_equal_pieces_are_told_apart_when_a_send_is_ambiguous(stage: Stage) -> None:
    pieces = (Piece(text="same"), Piece(text="same"), Piece(text="same"))
    stage.says = lambda request: Ok(value=Reply(text="all", pieces=pieces).model_dump(mode="json"))
    await stage.phone.script({"do": "accept"}, {"do": "accept_then_fail"}, {"do": "fail"})
    await told(stage, "a question")
    await stage.take()
    assert await stage.received() == ["same", "same", "same"]


async def test_without_any_status_it_is_sent_again_which_is_the_price_of_having_no_list(stage: Stage) -> None:
    await stage.phone.rules(callbacks="never")
    await stage.phone.script({"do": "accept_then_fail"})
    await told(stage, "a question")
    await stage.take()
    assert await stage.received() == ["the answer", "the answer"]


async def test_a_reply_that_meta_could_not_deliver_for_the_closed_window_waits(stage: Stage) -> None:
    await stage.phone.rules(window_s=0.0)
    message_id = await told(stage, "a question")
    await stage.take()
    assert await states(stage, message_id, "failed") == "sent"
    task = asyncio.create_task(stage.sender.keep_following_up())
    async with asyncio.timeout(10):
        while await waiting(stage.ledger, stage.chat) != [say("earlier_reply", "en", text="the answer")]:
            await asyncio.sleep(0.01)
    task.cancel()


async def test_a_webhook_that_is_posted_again_and_again_is_answered_once(stage: Stage) -> None:
    message_id = await told(stage, "a question")
    await asyncio.gather(*(stage.phone.post(stage.person, "", message_sid=message_id, copies=3) for _ in range(3)))
    await stage.take()
    assert await stage.received() == ["the answer"]
