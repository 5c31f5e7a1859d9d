"""The promise, attacked: every accepted message ends in one outcome, per chat in the order accepted, whatever dies,
freezes, repeats or lies on the way. A state machine makes up the stories; the ledger runs on a real Redis."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections import deque
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from agents.orchestrator import turns as module
from agents.orchestrator import words
from agents.orchestrator.turns import Driver, Patience
from mesh.bus import Bus
from mesh.contracts import CLEAR_TO_SEND, Reply, Turn
from mesh.envelope import Failed, Ok, Request
from mesh.errors import Ambiguous, Refused, Throttled
from mesh.lease import Quiet, lease_key
from mesh.ledger import Ledger
from mesh.ports import Inbound

NUMBER = "+14155238886"
REFUSAL = "You may not."
CHATS = st.integers(0, 2)
STEPS = st.integers(1, 14)
_people, _sids = itertools.count(1), itertools.count(1)


class Died(BaseException):
    """The process is gone: nothing of it runs any more, not even what tidies up."""


class Provider:
    """What it took, in order; and what it does next: `throttle`, `lose` (fails, not taken), `lie` (taken, then fails),
    `refuse`."""

    limit = 1600

    def __init__(self) -> None:
        self.taken: list[tuple[str, str, str]] = []
        self.script: deque[str] = deque()

    async def send(self, *, sender: str, recipient: str, text: str) -> str:
        doing = self.script.popleft() if self.script else "take"
        if doing == "throttle":
            raise Throttled(retry_after=0)
        if doing == "refuse":
            raise Refused(provider_code="63024")
        sid = f"SM{next(_sids)}"
        if doing != "lose":
            self.taken.append((sid, recipient, text))
        if doing in ("lose", "lie"):
            raise Ambiguous
        return sid

    async def find(self, *, sender: str, recipient: str, text: str, since: datetime) -> list[str]:
        return [sid for sid, to, said in self.taken if (to, said) == (recipient, text)]

    async def typing(self, **_: str) -> None: ...
    async def received(self, **_: Any) -> list[Inbound]:
        return []

    async def close(self) -> None: ...


class Mortal:
    """A worker's hands: it dies, or is stopped, at the given step from now. `after`: the step itself is still done."""

    def __init__(self, driver: Driver, *, at: int = 0, after: bool = False, stops: bool = False) -> None:
        self.left, self.after, self.stops, self.dead = at, after, stops, False
        self.stopped, self.goes_on = asyncio.Event(), asyncio.Event()
        leases = driver._ledger._leases
        for name in ("_take", "renew", "claim", "gather", "advance"):
            setattr(leases, name, self.holding(getattr(leases, name)))
        channel: Any = driver._channel
        channel.send = self.holding(channel.send)

    def holding(self, step: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def held(*args: Any, **options: Any) -> Any:
            if self.dead:
                raise Died
            self.left -= 1
            if self.left != 0:
                return await step(*args, **options)
            if self.stops:
                self.stopped.set()
                await self.goes_on.wait()
                return await step(*args, **options)
            self.dead = True
            if self.after:
                await step(*args, **options)
            raise Died

        return held


class Promise(RuleBasedStateMachine):
    url = ""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.provider = Provider()
        self.people = [f"+1666{next(_people):07d}" for _ in range(3)]
        self.accepted: dict[str, list[str]] = {person: [] for person in self.people}
        self.revoked: set[str] = set()
        self.quiet = 0.0
        self.run(self.open())

    async def open(self) -> None:
        self.bus = await Bus(self.url).__aenter__()
        self.ledger = Ledger(self.bus.redis)

    def run(self, work: Awaitable[Any]) -> Any:
        async def awaited() -> Any:
            return await work

        return self.runner.run(awaited())

    def driver(self) -> Driver:
        """A new worker's."""
        provider = Provider()
        provider.taken, provider.script = self.provider.taken, self.provider.script
        return Driver(Ledger(self.bus.redis, quiet=Quiet(self.quiet, 0.02)), provider, Patience(turn=30))

    async def answer(self, request: Request) -> Ok | Failed:
        if request.client in self.revoked:
            return Failed(code="denied", user_text=REFUSAL)
        if request.skill == CLEAR_TO_SEND.name:
            return Ok(value={})
        return Ok(value=Reply(text=Turn.model_validate(request.payload).text).model_dump(mode="json"))

    def chat(self, number: int) -> tuple[str, str]:
        return self.people[number], f"{NUMBER}|{self.people[number]}"

    # ── what happens ──────────────────────────────────────────────────────────────────────────────────────────────

    @initialize(quiet=st.sampled_from([0.0, 0.005]))
    def begins(self, quiet: float) -> None:
        self.quiet = quiet

    @rule(number=CHATS)
    def somebody_writes(self, number: int) -> None:
        person, _ = self.chat(number)
        message_id = f"m{person}-{len(self.accepted[person])}"
        assert self.run(self.ledger.accept(Inbound(message_id, person, NUMBER, message_id, {})))
        self.accepted[person].append(message_id)

    @rule(number=CHATS)
    def a_webhook_comes_twice(self, number: int) -> None:
        person, _ = self.chat(number)
        for message_id in self.accepted[person][-1:]:
            assert not self.run(self.ledger.accept(Inbound(message_id, person, NUMBER, message_id, {})))

    @rule(doing=st.lists(st.sampled_from(["throttle", "lose", "lie", "take"]), max_size=3))
    def the_provider_misbehaves(self, doing: list[str]) -> None:
        self.provider.script.extend(doing)

    @rule()
    def the_provider_refuses_for_good(self) -> None:
        self.provider.script.append("refuse")

    @rule(number=CHATS, is_revoked=st.booleans())
    def a_right_is_given_or_taken(self, number: int, is_revoked: bool) -> None:
        person, _ = self.chat(number)
        (self.revoked.add if is_revoked else self.revoked.discard)(person)

    @rule(number=CHATS)
    def a_worker_works(self, number: int) -> None:
        self.run(self.driver().take(self.chat(number)[1], self.answer))

    @rule(number=CHATS, at=STEPS, after=st.booleans())
    def a_worker_dies(self, number: int, at: int, after: bool) -> None:
        driver = self.driver()
        Mortal(driver, at=at, after=after)

        async def work() -> None:
            with contextlib.suppress(Died):
                await driver.take(self.chat(number)[1], self.answer)

        self.run(work())

    @rule(number=CHATS)
    def a_lease_runs_out(self, number: int) -> None:
        self.run(self.bus.redis.delete(lease_key(self.chat(number)[1])))

    @rule(number=CHATS, at=STEPS)
    def a_worker_sleeps_through_its_lease(self, number: int, at: int) -> None:
        self.run(self.sleeps(self.chat(number)[1], at))

    async def sleeps(self, chat: str, at: int) -> None:
        driver = self.driver()
        mortal = Mortal(driver, at=at, stops=True)
        held: list[Any] = []
        next_of = driver._ledger.lease

        @contextlib.asynccontextmanager
        async def lease(chat: str) -> Any:
            async with next_of(chat) as found:
                held.append(found)
                yield found

        driver._ledger.lease = lease  # type: ignore[method-assign]  # to age it
        working = asyncio.create_task(driver.take(chat, self.answer))
        stopped = asyncio.create_task(mortal.stopped.wait())
        await asyncio.wait({working, stopped}, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if not working.done():
            await self.bus.redis.delete(lease_key(chat))
            for found in held:
                if found is not None:
                    found._held_at -= 60
            await self.driver().take(chat, self.answer)
            mortal.goes_on.set()
        await working

    # ── what must hold ────────────────────────────────────────────────────────────────────────────────────────────

    @invariant()
    def nothing_is_said_twice_and_nothing_out_of_order(self) -> None:
        for person in self.people:
            said = [text for _, to, text in self.provider.taken if to == person]
            told = [line for text in said for line in text.splitlines() if line.startswith("m+")]
            assert told == sorted(set(told), key=self.accepted[person].index)

    def teardown(self) -> None:
        try:
            self.run(self.heal())
        finally:
            self.run(self.ledger.close())
            self.run(self.bus.__aexit__(None, None, None))
            self.runner.close()

    async def heal(self) -> None:
        """The provider recovers, every lease runs out, and a worker takes every chat: then all is told."""
        self.provider.script.clear()
        ledger = self.driver()._ledger
        for person in self.people:
            chat = f"{NUMBER}|{person}"
            await self.bus.redis.delete(lease_key(chat))
            await self.driver().take(chat, self.answer)
            turns = [await ledger.turn(message_id) for message_id in self.accepted[person]]
            assert all(turn is not None and turn.state in ("sent", "dead") for turn in turns), "a message was lost"
            ended = list({turn.turn_id: turn for turn in turns if turn}.values())
            sent = [turn for turn in ended if turn.state == "sent"]
            said = [text for _, to, text in self.provider.taken if to == person]
            assert len(said) == len(sent), "each turn has one reply, and a refused one has none"
            for text, turn in zip(said, sent, strict=True):
                assert text in ("\n".join(turn.messages), words.CRASHING, REFUSAL)


@pytest.mark.timeout(180)
async def test_every_message_has_one_outcome_in_order_whatever_happens(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SETTLE_AFTER_S", 0.0)
    monkeypatch.setattr(module, "BACK_OFF_S", (0.0,))
    monkeypatch.setattr(Promise, "url", redis_url)
    chosen = settings(
        max_examples=250, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck), database=None
    )
    await asyncio.to_thread(run_state_machine_as_test, Promise, settings=chosen)
