"""The promise, attacked: every accepted message ends in one outcome, per chat in the order accepted, whatever dies,
freezes, repeats or lies on the way. A state machine makes up the stories; the ledger runs on a real Redis."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import re
from collections import deque
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from agents.orchestrator import sending as module
from agents.orchestrator import words
from agents.orchestrator.sending import WINDOW_CLOSED
from agents.orchestrator.turns import Driver, Patience
from mesh.bus import Bus
from mesh.contracts.orchestrator import CLEAR_TO_SEND, Piece, Reply, Turn
from mesh.envelope import Failed, Ok, Request
from mesh.errors import Ambiguous, NotFound, Refused, Throttled
from mesh.lease import OUTCOMES, Lease, Quiet, lease_key
from mesh.ledger import Ledger
from mesh.ports.channel import Attachment, Inbound, Media
from tests.outbox import sender, waiting

NUMBER = "+14155238886"
REFUSAL = "You may not."
CHATS = st.integers(0, 2)
STEPS = st.integers(1, 18)
MORE = "more of "
TOKEN = re.compile(rf"(?:{MORE})?m\+[0-9]+-[0-9]+")
"""What a reply names: a message, or the second half of the answer to it."""
_people, _sids = itertools.count(1), itertools.count(1)


class Died(BaseException):
    """The process is gone: nothing of it runs any more, not even what tidies up."""


class Provider:
    """What it took, in order; and what it does next: `throttle`, `lose` (fails, not taken), `lie` (taken, then fails),
    `refuse`, `window` (refuses until the person has written again)."""

    limit = 1600
    files = frozenset({".pdf"})

    def __init__(self) -> None:
        self.taken: list[tuple[str, str, str]] = []
        self.script: deque[str] = deque()

    async def send(self, *, sender: str, recipient: str, text: str, link: str = "", template: str = "") -> str:
        doing = self.script.popleft() if self.script else "take"
        if doing == "throttle":
            raise Throttled(retry_after=0)
        if doing == "refuse":
            raise Refused(provider_code="63024")
        if doing == "window":
            raise Refused(provider_code=WINDOW_CLOSED)
        sid = f"SM{next(_sids)}"
        if doing != "lose":
            self.taken.append((sid, recipient, text))
        if doing in ("lose", "lie"):
            raise Ambiguous
        return sid

    async def find(self, *, sender: str, recipient: str, text: str, since: datetime) -> list[str]:
        return [sid for sid, to, said in self.taken if (to, said) == (recipient, text)]

    async def typing(self, **_: str) -> None: ...
    async def fetch(self, attachment: Attachment, *, most_bytes: int) -> Media:
        raise NotFound

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
        self.leases: list[Lease] = []
        channel: Any = driver._channel
        channel.send = self.holding(channel.send, checked=True)

    def holding(self, step: Callable[..., Awaitable[Any]], *, checked: bool = False) -> Callable[..., Awaitable[Any]]:
        """`checked`: nobody sleeps between the look at the lease and this. No provider can be fenced off, so that in
        truth a moment is left there; it is as short as it can be."""

        async def held(*args: Any, **options: Any) -> Any:
            if self.dead:
                raise Died
            self.left -= 1
            if self.left != 0:
                return await step(*args, **options)
            if self.stops:
                self.stopped.set()
                await self.goes_on.wait()
                for lease in self.leases if checked else ():
                    lease.check()
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
        self.ledgers = [self.ledger]

    def run(self, work: Awaitable[Any]) -> Any:
        async def awaited() -> Any:
            return await work

        return self.runner.run(awaited())

    def driver(self) -> Driver:
        """A new worker's."""
        provider = Provider()
        provider.taken, provider.script = self.provider.taken, self.provider.script
        ledger = Ledger(self.bus.redis, quiet=Quiet(self.quiet, 0.02))
        self.ledgers.append(ledger)
        return Driver(sender(ledger, provider, self.bus, number=NUMBER), Patience(turn=30))

    async def answer(self, request: Request) -> Ok | Failed:
        if request.client in self.revoked:
            return Failed(code="denied", user_text=REFUSAL)
        if request.skill == CLEAR_TO_SEND.name:
            return Ok(value={})
        said = Turn.model_validate(request.payload).text
        pieces = (
            (Piece(text=said), Piece(text="\n".join(f"{MORE}{each}" for each in said.splitlines())))
            if said.endswith(("1", "4"))
            else ()
        )
        return Ok(value=Reply(text=said, pieces=pieces).model_dump(mode="json"))

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

    @rule(doing=st.sampled_from(["refuse", "window"]))
    def the_provider_refuses(self, doing: str) -> None:
        self.provider.script.append(doing)

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
        next_of = driver._ledger.lease

        @contextlib.asynccontextmanager
        async def lease(chat: str) -> Any:
            async with next_of(chat) as found:
                mortal.leases += [found] if found else []
                yield found

        driver._ledger.lease = lease  # type: ignore[method-assign]  # to age it
        working = asyncio.create_task(driver.take(chat, self.answer))
        stopped = asyncio.create_task(mortal.stopped.wait())
        await asyncio.wait({working, stopped}, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if not working.done():
            await self.bus.redis.delete(lease_key(chat))
            for lease_of in mortal.leases:
                lease_of._held_at -= 60
            await self.driver().take(chat, self.answer)
            mortal.goes_on.set()
        await working

    # ── what must hold ────────────────────────────────────────────────────────────────────────────────────────────

    @invariant()
    def nothing_is_said_twice_and_nothing_out_of_order(self) -> None:
        for person in self.people:
            told = [token for text in self.said_to(person) for token in TOKEN.findall(text)]
            more = [token.removeprefix(MORE) for token in told if token.startswith(MORE)]
            first = [token for token in told if not token.startswith(MORE)]
            for half in (first, more):
                assert half == sorted(set(half), key=self.accepted[person].index)
            assert all(told.index(token) < told.index(MORE + token) for token in more)

    def said_to(self, person: str) -> list[str]:
        return [text for _, to, text in self.provider.taken if to == person]

    def teardown(self) -> None:
        try:
            self.run(self.heal())
        finally:
            for ledger in self.ledgers:
                self.run(ledger.close())
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
            assert all(turn is not None and turn.state in OUTCOMES for turn in turns), "a message was lost"
            waits = "\n".join(await waiting(ledger, chat))
            dead = "\n".join(turn.reply.text for turn in turns if turn and turn.state == "dead" and turn.reply)
            told = "\n".join([*self.said_to(person), waits])
            for turn in {turn.turn_id: turn for turn in turns if turn}.values():
                tokens = TOKEN.findall(told)
                answered = [token in tokens for token in turn.messages]
                if turn.state == "sent":
                    assert all(answered) or words.CRASHING in told or REFUSAL in told
                if turn.state == "waiting":  # unless it was in a later reply, and that one was refused for good
                    assert turn.reply is not None
                    assert all(answered) or turn.reply.text in f"{told}\n{dead}" or REFUSAL in f"{told}\n{dead}"
                if turn.state == "dead":
                    assert not any(answered) or turn.part, "it was said, and is told to be dead"


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
