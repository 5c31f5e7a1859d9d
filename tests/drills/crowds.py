"""Drills on what people and the owner do: many messages at once, and a tier that is taken away in the middle."""

from __future__ import annotations

import asyncio

from tests.drills import echo
from tests.drills.drill import Drill
from tests.drills.play import Play
from tests.drills.stage import QUIET, REFUSAL, REVOCABLE
from tests.drills.verdict import judge

OTHERS = 20
OTHERS_WITHIN_S = 3.0


async def burst(play: Play) -> None:
    """One person writes as fast as they can; the others, at their pace, must not notice."""
    one, *others = await play.stage.people(1 + OTHERS)
    streaming = asyncio.create_task(play.stream(others, play.messages, 6))
    for _ in range(play.messages):
        await play.say(one)
    await streaming
    await play.drain(120, 0)
    said = [each for each in play.said if each.person != one]
    p95 = judge(said, await play.stage.log()).p95_s
    play.extra["others_p95_s"] = p95
    play.expect(p95 is not None and p95 < OTHERS_WITHIN_S, f"the others' p95 is {p95} s, not under {OTHERS_WITHIN_S} s")


async def writes_on(play: Play) -> None:
    """Each person writes on twice while the answer is written; nothing is killed. One reply answers all three."""
    people = await play.stage.people(max(1, play.messages // 3))

    async def writes(person: str) -> None:
        first, second = await play.hold(person), await play.say(person, echo.HOLD)
        play.stage.let_go(first.token)
        await play.stage.held(second.token)
        third = await play.say(person)
        play.stage.let_go(third.token)
        play.stage.let_go(second.token)
        await play.answered(third)
        texts = await play.texts(person)
        play.expect(
            [echo.tokens_in(text) for text in texts] == [(first.token, second.token, third.token)],
            f"three messages in a row were answered by {texts}",
        )

    await asyncio.gather(*(writes(person) for person in people))


async def config_change(play: Play) -> None:
    """The tier loses its permission while the answer is written: the person reads the refusal, and not the answer."""
    stage = play.stage
    people = await stage.people(3, tier=REVOCABLE)
    for _ in range(max(1, play.messages // 9)):
        held = [await play.hold(person, apology=True, only=True) for person in people]
        await stage.roster.revoke(REVOCABLE, ["chat:converse"])
        try:
            for each in held:
                stage.let_go(each.token)
            for each in held:
                await play.answered(each)
            for person in people:
                said = await play.say(person, apology=True, only=True)
                await play.answered(said)
        finally:
            await stage.roster.grant(REVOCABLE, ["chat:converse"])
        await asyncio.sleep(1.2)  # what was looked up is kept for a second
        for person in people:
            await play.answered(await play.say(person))
            play.expect((await play.texts(person))[-2] == REFUSAL, "the refusal is not in the tier's own words")


DRILLS = (
    Drill("burst", f"one chat gets all its messages at once, beside {OTHERS} others", burst, messages=100, short=20),
    Drill("writes-on", "drafts become stale, twice in each chat", writes_on, messages=30, short=6, wanted=QUIET),
    Drill(
        "config-change", "a permission is taken away while the answer is written", config_change, messages=27, short=9
    ),
)
