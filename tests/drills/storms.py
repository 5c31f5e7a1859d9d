"""Everything at once: kills every two seconds while the provider misbehaves. The bar of the promise."""

from __future__ import annotations

from typing import Any

from tests.drills import echo
from tests.drills.drill import Drill, killing
from tests.drills.play import ACCEPT, FAIL, TAKEN, Play, Step
from tests.drills.stage import QUIET, TWICE

CHATS = 50
PER_SECOND = 10.0
KILL_EVERY_S = 2.0
TWICE_SHARE = 0.05
KILLED = ("orchestrator", "echo", "gateway", "redis")

Shares = tuple[tuple[Step, float], ...]
FLAKY: Shares = (
    ({"do": "accept_then_hang"}, 0.02),
    (FAIL, 0.01),
    ({"do": "throttle", "retry_after": 1}, 0.01),
)
AMBIGUOUS: Shares = (
    ({"do": "accept_then_hang"}, 0.05),
    (TAKEN, 0.05),
    (FAIL, 0.05),
)


async def flaky(play: Play, sends: int, shares: Shares) -> None:
    """The next sends go wrong in these shares, each way at least once among the first few; all after them are taken."""
    steps = [step for step, _ in shares]
    weights = [share for _, share in shares]
    first = [*steps, *[ACCEPT] * len(steps)]
    play.random.shuffle(first)
    chosen = play.random.choices([*steps, ACCEPT], [*weights, 1 - sum(weights)], k=sends - len(first))
    await play.stage.phone.script(*first, *chosen)


def _storm(shares: Shares, p50_within_s: float) -> Any:
    async def storm(play: Play) -> None:
        people = await play.stage.people(min(CHATS, max(2, play.messages // 4)))
        await flaky(play, 3 * play.messages, shares)
        async with killing(play, KILL_EVERY_S, *KILLED):
            await play.stream(people, play.messages, PER_SECOND, twice=TWICE_SHARE)
        await play.drain(180, 0)
        p50 = (await play.verdict()).p50_s
        play.expect(play.short or (p50 is not None and p50 < p50_within_s), f"p50 {p50} s, not under {p50_within_s} s")

    return storm


async def storm_quiet(play: Play) -> None:
    """People write one to four short messages in a row, which are answered once; the agent takes half a second, so that
    drafts become stale, and each kill meets several turns."""
    people = await play.stage.people(min(CHATS, max(4, play.messages // 8)))
    await flaky(play, 3 * play.messages, FLAKY)
    async with killing(play, KILL_EVERY_S, *KILLED):
        await play.rows(people, play.messages, PER_SECOND, echo.SLOW)
    await play.drain(180, 0)
    texts = [text for person in people for text in await play.texts(person)]
    merged = sum(len(echo.tokens_in(text)) > 1 for text in texts)
    play.extra["replies_to_several"] = merged
    play.expect(merged > 0, "nothing that was written in a row was answered together")


DRILLS = (
    Drill(
        "storm",
        "a kill every 2 s, 5% webhooks twice, 2% sends taken and timed out, 1% 503, 1% 429",
        _storm(FLAKY, 1.0),
        messages=1000,
        short=60,
        wanted=TWICE,
        alone=True,
        flaky=True,
    ),
    Drill(
        "storm-ambiguous",
        "a kill every 2 s, 5% webhooks twice, 15% sends without a clear answer",
        _storm(AMBIGUOUS, 2.0),
        messages=1000,
        short=60,
        slow=True,
        wanted=TWICE,
        alone=True,
        flaky=True,
    ),
    Drill(
        "storm-quiet",
        "a kill every 2 s, the usual quiet window, and several messages in a row",
        storm_quiet,
        messages=500,
        short=60,
        slow=True,
        wanted=QUIET,
        alone=True,
        flaky=True,
    ),
)
