"""Ask and tell between a caller and a worker, over a real Redis."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from arq.constants import job_key_prefix, result_key_prefix

from mesh.bus import Bus, deserialize, serialize
from mesh.envelope import Failed, Ok
from tests.people import ASHA, BEN, STRANGER
from tests.redis.stage import AWAY, BREAK, ECHO, READ, SHORT, SLOW, Stage, request, until, working


@pytest.fixture
async def bus(redis_url: str) -> AsyncIterator[Bus]:
    async with Bus(redis_url) as opened:
        yield opened


@pytest.fixture
async def stage(bus: Bus, redis_url: str) -> AsyncIterator[Stage]:
    made = Stage()
    async with working(made.worker(bus, redis_url)):
        yield made


async def test_an_ask_is_answered(bus: Bus, stage: Stage) -> None:
    assert await bus.ask(request(ECHO, "hello")) == Ok(value={"text": "hello"})


async def test_a_replay_attaches_to_the_kept_result_and_runs_nothing_again(bus: Bus, stage: Stage) -> None:
    first = await bus.ask(request(ECHO, "once"))
    assert await bus.ask(request(ECHO, "once")) == first
    assert stage.ran == [f"{ASHA}:once"]


async def test_a_replay_attaches_to_work_that_is_still_running(bus: Bus, stage: Stage) -> None:
    both = asyncio.gather(*(bus.ask(request(SLOW, "one")) for _ in range(2)))
    await until(lambda: stage.ran)
    third = asyncio.create_task(bus.ask(request(SLOW, "one")))
    stage.go.set()
    assert await both == [await third] * 2
    assert stage.ran == ["one"]


async def test_another_process_attaches_to_running_work_too(bus: Bus, stage: Stage, redis_url: str) -> None:
    async with Bus(redis_url) as other:
        asks = [asyncio.create_task(each.ask(request(SLOW, "shared"))) for each in (bus, other)]
        await until(lambda: stage.ran)
        stage.go.set()
        assert await asyncio.gather(*asks) == [Ok(value={"text": "shared"})] * 2
    assert stage.ran == ["shared"]


async def test_another_clients_replay_never_gets_this_clients_answer(bus: Bus, stage: Stage) -> None:
    await bus.ask(request(ECHO, "mine", client=ASHA, key="same key"))
    await bus.ask(request(ECHO, "his", client=BEN, key="same key"))
    assert stage.ran == [f"{ASHA}:mine", f"{BEN}:his"]


async def test_a_hundred_asks_at_once_each_get_their_own_answer(bus: Bus, stage: Stage) -> None:
    texts = [f"word {number}" for number in range(100)]
    outcomes = await asyncio.gather(*(bus.ask(request(ECHO, text)) for text in texts))
    assert outcomes == [Ok(value={"text": text}) for text in texts]


async def test_a_defect_in_a_handler_is_an_apology_without_its_details(bus: Bus, stage: Stage) -> None:
    outcome = await bus.ask(request(BREAK, "secret words"))
    assert isinstance(outcome, Failed)
    assert outcome.code == "crashed"
    assert "secret words" not in outcome.model_dump_json()


async def test_a_stranger_is_denied_before_the_handler_runs(bus: Bus, stage: Stage) -> None:
    outcome = await bus.ask(request(ECHO, "let me in", client=STRANGER))
    assert isinstance(outcome, Failed)
    assert outcome.code == "denied"
    assert stage.ran == []


async def test_a_payload_that_does_not_fit_is_refused(bus: Bus, stage: Stage) -> None:
    wrong = request(ECHO, "x").model_copy(update={"payload": {"text": 5}})
    outcome = await bus.ask(wrong)
    assert isinstance(outcome, Failed)
    assert outcome.code == "malformed"


async def test_what_a_newer_version_adds_to_a_payload_is_left_aside(bus: Bus, stage: Stage) -> None:
    newer = request(ECHO, "x").model_copy(update={"payload": {"text": "x", "tier": "gold"}})
    assert await bus.ask(newer) == await bus.ask(request(ECHO, "x"))


async def test_a_handler_that_takes_too_long_is_ended_at_its_skills_limit(bus: Bus, stage: Stage) -> None:
    outcome = await bus.ask(request(SHORT, "x"))
    assert isinstance(outcome, Failed)
    assert outcome.code == "timed_out"


async def test_a_passing_failure_is_not_the_answer_to_trying_again(bus: Bus, stage: Stage) -> None:
    for _ in range(2):
        outcome = await bus.ask(request(AWAY, "again"))
        assert isinstance(outcome, Failed)
        assert outcome.code == "unavailable"
    assert stage.ran == ["again", "again"]


async def test_without_a_worker_the_deadline_ends_the_wait(bus: Bus) -> None:
    assert await bus.ask(request(ECHO, "anyone?", seconds=0.3)) is None


async def test_work_that_is_past_its_deadline_is_not_begun(bus: Bus, redis_url: str) -> None:
    made = Stage()
    await bus.tell(request(ECHO, "too late", seconds=-1.0))
    async with working(made.worker(bus, redis_url)):
        await until(lambda: _empty(bus))
    assert made.ran == []


async def test_what_is_told_is_done_without_waiting(bus: Bus, stage: Stage) -> None:
    await bus.tell(request(ECHO, "noted"))
    await until(lambda: stage.ran == [f"{ASHA}:noted"])


async def test_a_client_who_was_blocked_since_does_not_get_a_kept_result(bus: Bus, stage: Stage) -> None:
    asked = request(ECHO, "mine")
    await bus.ask(asked)
    stage.directory.block(ASHA)
    outcome = await bus.ask(asked)
    assert isinstance(outcome, Failed)
    assert outcome.code == "denied"
    stage.directory.allow(ASHA, "stage:act")
    assert await bus.ask(asked) == Ok(value={"text": "mine"}), "and a refusal is not kept either"
    assert stage.ran == [f"{ASHA}:mine"]


async def test_what_is_only_read_is_not_kept(bus: Bus, stage: Stage) -> None:
    asked = request(READ, "a private file")
    await bus.ask(asked)
    assert not await bus.redis.exists(result_key_prefix + asked.job_id)
    await bus.ask(asked)
    assert len(stage.ran) == 2


async def test_a_kept_result_does_not_hold_what_was_asked(bus: Bus, stage: Stage) -> None:
    asked = request(ECHO, "hello").model_copy(update={"trace": "what was asked"})
    await bus.ask(asked)
    kept = await bus.redis.get(result_key_prefix + asked.job_id)
    assert kept is not None
    assert b"what was asked" not in kept
    assert await bus.redis.exists(job_key_prefix + asked.job_id) == 0


def test_records_are_json_and_a_foreign_one_is_an_error_not_code() -> None:
    job: dict[str, Any] = {"t": None, "f": "dispatch", "a": ({"x": 1},), "k": {}, "et": 1}
    assert deserialize(serialize(job)) == {**job, "a": [{"x": 1}]}
    with pytest.raises(ValueError, match="expected"):
        deserialize(b"\x80\x04\x95")


async def _empty(bus: Bus) -> bool:
    return bool(await bus.redis.zcard("mesh:stage") == 0)


async def test_a_kept_result_that_holds_a_text_can_be_dropped_and_no_other(bus: Bus, stage: Stage) -> None:
    for word in ('my doctor is "Dr. Käfer"', "my favourite colour is teal"):
        await bus.ask(request(ECHO, word))
    assert await bus.drop_results([SLOW.name], ['"Dr. Käfer"']) == 0
    assert await bus.drop_results([ECHO.name], ["", "Dr. Nobody"]) == 0
    assert await bus.drop_results([ECHO.name], ['"Dr. Käfer"']) == 1
    for word in ('my doctor is "Dr. Käfer"', "my favourite colour is teal"):
        await bus.ask(request(ECHO, word))
    assert len(stage.ran) == 3, "the one that was dropped ran again, the other was kept"
