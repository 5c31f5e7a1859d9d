"""Drills on the provider: webhooks twice, late, out of order or not at all; sends that are throttled, fail, or are
taken without a word; a list that is behind."""

from __future__ import annotations

import asyncio

from tests.drills.drill import Drill
from tests.drills.play import ACCEPT, FAIL, TAKEN, Play, Step

SHARE = 0.05
LISTED_LATE_S = 1.5
FROZEN_S = 12.0


async def duplicates(play: Play) -> None:
    """A share comes twice within three seconds, a share three times at once, a share after what was said later."""
    people = await play.stage.people(10)
    share = 0.25 if play.short else SHARE
    streaming = asyncio.create_task(play.stream(people[:5], play.messages // 2, 10, twice=share))
    for number in range(play.messages - play.messages // 2):
        chance = play.random.random()
        twilio = {"copies": 3} if chance < share else {"delay": 1.0} if chance < 2 * share else {}
        await play.post(play.message(people[5 + number % 5]), **twilio)
        await asyncio.sleep(0.1)
    await streaming
    await asyncio.sleep(1.2)  # until the last one that is late has been posted


async def gateway_down(play: Play) -> None:
    """Webhooks that wait, time out, or are lost on the way: what Twilio has is answered, whoever told of it."""
    stage = play.stage
    people = await stage.people(6)
    await stage.looked()  # the first look at the list takes in nothing
    async with stage.down("gateway"):
        waiting = asyncio.create_task(play.stream(people[:3], play.messages // 2, 4))
        await asyncio.sleep(3 if play.short else 20)
    await waiting
    for number in range(play.messages - len(play.said)):
        await play.post(play.message(people[3 + number % 3]), deliver=False)
    play.owed = {said.sid for said in play.said}


async def throttled(play: Play) -> None:
    people = await play.stage.people(8)
    throttle: Step = {"do": "throttle", "retry_after": 1}
    steps = [throttle, throttle, ACCEPT]
    await play.stage.phone.script(*steps * (play.messages // 4))
    await play.stream(people, play.messages, 8)


async def provider_fails(play: Play) -> None:
    """Every send fails with a 503 for a while, and nothing of it was taken."""
    people = await play.stage.people(8)
    await play.stage.phone.script(*[FAIL] * 1000)
    streaming = asyncio.create_task(play.stream(people, play.messages, 8))
    await asyncio.sleep(3 if play.short else 20)
    await play.stage.phone.script()
    await streaming


async def accept_then_timeout(play: Play) -> None:
    """Sends are taken, and then there is no answer, or an error."""
    people = await play.stage.people(8)
    steps: list[Step] = [{"do": "accept_then_hang"}, ACCEPT, TAKEN]
    await play.stage.phone.script(*steps * (play.messages // 3))
    await play.stream(people, play.messages, 4)


async def provider_frozen(play: Play) -> None:
    """The provider's machine stops in the middle, longer than a send is waited for, and goes on with what had reached
    it."""
    people = await play.stage.people(min(8, play.messages))
    held = [await play.hold(person) for person in people]
    with play.stage.frozen("twilio-simulated"):
        for each in held:
            play.stage.let_go(each.token)
        await asyncio.sleep(FROZEN_S)
    await play.drain(60, 0)
    await play.stream(people, max(0, play.messages - len(people)), 8)


async def list_late(play: Play) -> None:
    """What was taken without an answer is listed a little later; and looking into the list fails at first."""
    people = await play.stage.people(6)
    await play.stage.phone.script(*[TAKEN, ACCEPT] * play.messages)
    trouble: list[Step] = [FAIL, {"do": "throttle", "retry_after": 1}, {"do": "answer"}]
    await play.stage.phone.listing(*trouble, *trouble, late=LISTED_LATE_S)
    try:
        await play.stream(people, play.messages, 4)
        await play.drain(60, 0)
    finally:
        await play.stage.phone.listing()


DRILLS = (
    Drill("duplicates", "webhooks twice, three times at once, and out of order", duplicates, messages=200, short=30),
    Drill("gateway-down", "killed and kept down; webhooks that are lost", gateway_down, messages=40, short=12),
    Drill("throttled", "two of three sends get a 429", throttled, messages=60, short=12, flaky=True),
    Drill("provider-fails", "every send gets a 503 for a while", provider_fails, messages=60, short=12, flaky=True),
    Drill(
        "accept-then-timeout",
        "sends are taken without an answer",
        accept_then_timeout,
        messages=60,
        short=9,
        flaky=True,
    ),
    Drill(
        "list-late",
        f"what was taken is listed {LISTED_LATE_S} s later",
        list_late,
        messages=40,
        short=8,
        flaky=True,
    ),
    Drill("provider-frozen", f"stopped for {FROZEN_S:.0f} s", provider_frozen, messages=40, short=6, slow=True),
)
