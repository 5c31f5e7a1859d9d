"""Drills on the processes that are ours: killed, stopped, mistaken about the time, or given something poisonous."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from pathlib import Path

from mesh.settings import ROOT
from tests.drills import echo
from tests.drills.drill import Drill, killing
from tests.drills.play import ACCEPT, FAIL, TAKEN, Play
from tests.drills.stage import REVOCABLE, until

CLOCK = Path(__file__).parent / "clock"
AHEAD_S = 60.0


async def kill_worker_each_step(play: Play) -> None:
    """In each round there is a message at every step of the ledger when the workers are killed."""
    rounds = [("orchestrator", "echo"), ("orchestrator",), ("echo",)]
    count = 1 if play.short else max(1, play.messages // 6)
    for number in range(count):
        play.tell(f"round {number + 1} of {count}")
        await _kill_at_every_step(play, rounds[number % len(rounds)])
        await play.drain(90, 0)


async def _kill_at_every_step(play: Play, victims: tuple[str, ...]) -> None:
    stage = play.stage
    people = await stage.people(6, tier=REVOCABLE)  # who may talk, and no more: nothing is looked up on the way
    planned, ready = await play.hold(people[0]), await play.hold(people[1])
    await play.answered(await play.say(people[2]))  # sent
    for person, step in ((people[3], "hang"), (people[4], "accept_then_hang")):
        await stage.phone.script({"do": step})
        await stage.reaches((await play.say(person)).sid, "sending")
    with stage.frozen("mongodb"):  # who looks whether the reply may be sent, waits
        stage.let_go(ready.token)
        await stage.reaches(ready.sid, "ready")
        with stage.frozen("orchestrator"):
            await play.say(people[5])  # accepted
            stage.kill(*victims)
    stage.let_go(planned.token)


async def kill_gateway(play: Play) -> None:
    """First between persisting and answering: what was sent to Redis waits there while the gateway dies. Some of it
    comes again. Then at random."""
    stage = play.stage
    people = await stage.people(8)
    with stage.frozen("redis"):
        said = [play.message(person) for person in people]
        posts = [asyncio.create_task(play.post(each)) for each in said]
        await asyncio.sleep(0.5)
        stage.kill("gateway")
    unanswered = [each for each, post in zip(said, await asyncio.gather(*posts), strict=True) if post.status == 0]
    play.expect(bool(unanswered), "every webhook was answered: the kill came too late")
    for each in unanswered[::2]:
        await play.post(each)
    async with killing(play, 1.5, "gateway"):
        await play.stream(people, play.messages - len(said), 8)


async def frozen_worker(play: Play) -> None:
    """An orchestrator sleeps through its leases while another goes on with its turns. It wakes in the middle of a send
    of the other's, and would try again what it was itself told to send later."""
    stage = play.stage
    *people, told_later, newcomer = await stage.people(5)
    planned = await play.hold(people[0])
    await play.say(people[0])  # behind it
    for person, step in ((people[1], "hang"), (people[2], "accept_then_hang")):
        await stage.phone.script({"do": step})
        await stage.reaches((await play.say(person)).sid, "sending")
    await stage.phone.script({"do": "throttle", "retry_after": 5}, *[{"do": "accept_then_hang", "seconds": 3}] * 8)
    await stage.reaches((await play.say(told_later)).sid, "sending")
    with ExitStack() as sleep:
        sleep.enter_context(stage.frozen("orchestrator", longest=60))
        stage.let_go(planned.token)
        await play.say(newcomer)
        async with stage.another("orchestrator"):
            await until(lambda: _has_reply(play, told_later), "another orchestrator goes on with it")
            sleep.close()
            await stage.phone.script()
            await play.stream([*people, newcomer], max(0, play.messages - len(play.said)), 5)
            await play.drain(60, 0)


async def _has_reply(play: Play, person: str) -> bool:
    return bool(await play.stage.phone.replies(person))


async def clock_skew(play: Play) -> None:
    """Two of each worker, one of them a minute ahead; each goes on with what the other began."""
    stage = play.stage
    people = await stage.people(8)
    ahead = {"PYTHONPATH": f"{CLOCK}:{ROOT}", "DRILLS_CLOCK_S": str(AHEAD_S)}
    async with stage.another("orchestrator", **ahead), stage.another("echo", **ahead):
        await stage.phone.script(*[ACCEPT, TAKEN, ACCEPT, FAIL] * (play.messages // 4))
        await play.stream(people, play.messages // 2, 5)
        stage.kill("orchestrator")
        await play.stream(people, play.messages // 4, 5)
        await play.drain(60, 0)
    await play.stream(people, play.messages - len(play.said), 5)
    p95 = (await play.verdict()).p95_s
    play.expect(p95 is not None and p95 < AHEAD_S / 2, f"p95 {p95} s: somebody waited for a clock")


async def power_cut(play: Play) -> None:
    """Everything that is ours dies at once, stores and all, while messages are at every step."""
    stage = play.stage
    held, hanging, *people = await stage.people(8)
    streaming = asyncio.create_task(play.stream(people, play.messages - 2, 4))
    await asyncio.sleep(play.messages / 8)
    planned = await play.hold(held)
    await stage.phone.script(*[{"do": "accept_then_hang"}] * len(people))  # the stream takes some of them
    await stage.reaches((await play.say(hanging)).sid, "sending")
    stage.kill("gateway", "orchestrator", "echo", "redis", "mongodb")
    await stage.phone.script()
    stage.let_go(planned.token)
    await streaming


async def poison(play: Play) -> None:
    """A message that kills its worker each time: its person reads an apology, and everybody else is answered. Who was
    in the same worker's hands has an answer or an apology, as it happens: their work dies with it each time."""
    stage = play.stage
    poisoned, beside, *others = await stage.people(6)
    held = await play.hold(beside, apology=True)
    said = await play.say(poisoned, echo.POISON, apology=True, only=True)
    stage.let_go(held.token)
    after = await play.say(poisoned)
    streaming = asyncio.create_task(play.stream(others, play.messages - 3, 1))
    await play.answered(said, within=120)
    await streaming
    await play.answered(after, within=60)


DRILLS = (
    Drill(
        "kill-worker-each-step",
        "orchestrator and agent killed while a message is at each step of the ledger",
        kill_worker_each_step,
        messages=36,
        short=6,
    ),
    Drill(
        "kill-gateway",
        "killed between persisting and answering, then every 1.5 s",
        kill_gateway,
        messages=100,
        short=24,
    ),
    Drill(
        "frozen-worker",
        "an orchestrator stopped for longer than its leases, another going on with its turns",
        frozen_worker,
        messages=25,
        short=9,
    ),
    Drill(
        "clock-skew",
        f"one of two orchestrators and agents {AHEAD_S:.0f} s ahead, sends without a clear answer, a kill",
        clock_skew,
        messages=80,
        short=24,
        slow=True,
        flaky=True,
    ),
    Drill(
        "power-cut",
        "all processes killed at once, stores and all",
        power_cut,
        messages=80,
        short=16,
    ),
    Drill(
        "poison",
        "a message that kills its worker each time",
        poison,
        messages=40,
        short=14,
    ),
)
