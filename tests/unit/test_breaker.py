"""A part that is gone costs one caller its patience, and nobody else."""

from __future__ import annotations

import asyncio

import pytest

from agents.knowledge.breaker import FIRST_PAUSE_S, LONGEST_PAUSE_S, REST, Breaker, Hangs
from mesh.errors import Malformed, Unavailable


class Part:
    def __init__(self) -> None:
        self.gone = True
        self.calls = 0
        self.now = 100.0
        self.breaker = Breaker("part", within=1.0, clock=lambda: self.now)

    async def asked(self) -> str:
        return await self.breaker.call(self._answer)

    async def _answer(self) -> str:
        self.calls += 1
        if self.gone:
            raise Unavailable
        return "here"

    async def fails(self) -> None:
        with pytest.raises(Unavailable):
            await self.asked()


async def test_what_failed_is_left_alone_for_a_while_and_then_tried_again() -> None:
    part = Part()
    await part.fails()
    await part.fails()
    assert part.calls == 1
    part.now += FIRST_PAUSE_S
    part.gone = False
    assert await part.asked() == await part.asked() == "here"
    assert part.calls == 3


async def test_the_pause_grows_up_to_a_limit_and_is_short_again_after_a_success() -> None:
    part = Part()
    pauses = []
    for _ in range(6):
        pauses.append(await _pause(part))
        part.now += LONGEST_PAUSE_S
    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1]) == (FIRST_PAUSE_S, LONGEST_PAUSE_S)
    part.now += LONGEST_PAUSE_S
    part.gone = False
    await part.asked()
    part.gone = True
    assert await _pause(part) == FIRST_PAUSE_S


async def _pause(part: Part) -> float:
    """From a failure until it is asked again, which fails."""
    await part.fails()
    began, calls = part.now, part.calls
    while part.calls == calls:
        part.now += 0.25
        await part.fails()
    return part.now - began


async def test_one_caller_tries_and_the_others_go_on_without() -> None:
    part = Part()
    await part.fails()
    part.now += FIRST_PAUSE_S
    held = asyncio.Event()

    async def slow() -> str:
        await held.wait()
        return "here"

    trying = asyncio.create_task(part.breaker.call(slow))
    await asyncio.sleep(0)
    await part.fails()
    held.set()
    assert await trying == "here"
    part.gone = False
    assert await part.asked() == "here"


async def test_calls_that_fail_together_count_as_one_failure() -> None:
    part = Part()

    async def fails_later() -> str:
        await asyncio.sleep(0)
        part.now += 0.01
        raise Unavailable

    calls = (part.breaker.call(fails_later) for _ in range(8))
    assert {type(each) for each in await asyncio.gather(*calls, return_exceptions=True)} == {Unavailable}
    part.now += FIRST_PAUSE_S
    part.gone = False
    assert await part.asked() == "here"


async def test_a_call_from_before_a_failure_does_not_close_what_is_open_again() -> None:
    part = Part()
    held = asyncio.Event()

    async def fails_late() -> str:
        await held.wait()
        raise Unavailable

    late = asyncio.create_task(part.breaker.call(fails_late))
    await asyncio.sleep(0)
    await part.fails()
    part.now += FIRST_PAUSE_S
    part.gone = False
    assert await part.asked() == "here"
    held.set()
    with pytest.raises(Unavailable):
        await late
    assert await part.asked() == "here"


async def test_what_hangs_is_given_up_and_left_alone_for_longer_than_it_cost() -> None:
    now = [0.0]
    breaker = Breaker("part", within=0.05, clock=lambda: now[0])

    async def hangs() -> None:
        now[0] += 2.0
        await asyncio.Event().wait()

    with pytest.raises(Hangs):
        await breaker.call(hangs)
    now[0] += 2.0 * REST - 0.1
    with pytest.raises(Unavailable) as caught:
        await breaker.call(hangs)
    assert not isinstance(caught.value, Hangs)


async def test_a_refusal_is_no_failure_of_the_part() -> None:
    part = Part()

    async def refuses() -> str:
        raise Malformed

    with pytest.raises(Malformed):
        await part.breaker.call(refuses)
    part.gone = False
    assert await part.asked() == "here"
