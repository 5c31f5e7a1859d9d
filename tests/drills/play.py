"""One playing of a drill: who said what, and what came of it."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mesh.testing.phone import Posted
from tests.drills import echo
from tests.drills.stage import Stage, until
from tests.drills.verdict import Said, Verdict, judge

Tell = Callable[[str], None]
Step = Mapping[str, Any]
"""What becomes of a send."""
ACCEPT: Step = {"do": "accept"}
FAIL: Step = {"do": "fail", "status": 503}
TAKEN: Step = {"do": "accept_then_fail", "status": 503}
TELL_EVERY_S = 0.5


@dataclass
class Play:
    """`messages` is how many a drill should say, as far as it can choose."""

    stage: Stage
    messages: int
    random: random.Random
    short: bool = False
    tell: Tell = lambda _: None
    said: list[Said] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    """What the drill itself expected, and did not find."""
    extra: dict[str, object] = field(default_factory=dict)
    """Figures of the drill's own."""
    owed: Collection[str] | None = None
    """Sids of the messages that must have an outcome, where that is not those that were acknowledged."""

    def expect(self, claim: bool, complaint: str) -> None:
        if not claim:
            self.complaints.append(complaint)

    # ── saying ────────────────────────────────────────────────────────────────────────────────────────────────────

    def message(self, person: str, *, apology: bool = False, only: bool = False) -> Said:
        """Not posted yet."""
        token = self.stage.token()
        said = Said(token, f"SM{self.random.getrandbits(64):016x}{int(token[1:]):016x}", person, apology, only)
        self.said.append(said)
        return said

    async def post(self, said: Said, told: str = "", *, text: str = echo.USUAL, **twilio: Any) -> Posted:
        """`twilio`: what `Phone.post` takes, beside."""
        body = f"{text.format(token=said.token)} {told}".strip()
        return await self.stage.phone.post(said.person, body, message_sid=said.sid, **twilio)

    async def say(
        self, person: str, told: str = "", *, text: str = echo.USUAL, apology: bool = False, only: bool = False
    ) -> Said:
        """Whatever the webhook answers."""
        said = self.message(person, apology=apology, only=only)
        await self.post(said, told, text=text)
        return said

    async def hold(self, person: str, **options: Any) -> Said:
        """Said, and in the agent's hands until it is let go."""
        said = await self.say(person, echo.HOLD, **options)
        await self.stage.held(said.token)
        return said

    async def stream(
        self,
        people: Sequence[str],
        count: int,
        per_second: float,
        *,
        text: str = echo.USUAL,
        twice: float = 0.0,
        apology: bool = False,
    ) -> None:
        """An open loop: each message has its time, and waits for nothing but for the same person's message before it.
        A share of the webhooks comes `twice`, up to three seconds later."""
        lines: dict[str, asyncio.Lock] = {person: asyncio.Lock() for person in people}
        began = time.monotonic()

        async def one(number: int) -> None:
            person = people[number % len(people)]
            again = self.random.uniform(0, 3) if self.random.random() < twice else None
            await asyncio.sleep(max(0.0, began + number / per_second - time.monotonic()))
            async with lines[person]:
                said = await self.say(person, text=text, apology=apology)
                self.tell(f"{len(self.said)} said, {self.stage.kills} kills")
            if again is not None:
                await asyncio.sleep(again)
                await self.post(said, text=text)

        await asyncio.gather(*(one(number) for number in range(count)))

    async def rows(self, people: Sequence[str], count: int, per_second: float, told: str = "") -> None:
        """Messages in rows of one to four, each within a second of the one before; a person's next row comes later."""
        began, said = time.monotonic(), 0
        rows: list[asyncio.Task[None]] = []
        lines: dict[str, asyncio.Lock] = {person: asyncio.Lock() for person in people}

        async def one(person: str, length: int) -> None:
            async with lines[person]:
                for _ in range(length):
                    await self.say(person, told)
                    self.tell(f"{len(self.said)} said, {self.stage.kills} kills")
                    await asyncio.sleep(self.random.uniform(0.05, 0.9))

        while said < count:
            length = min(self.random.randint(1, 4), count - said)
            rows.append(asyncio.create_task(one(people[len(rows) % len(people)], length)))
            said += length
            await asyncio.sleep(max(0.0, began + said / per_second - time.monotonic()))
        await asyncio.gather(*rows)

    # ── what came of it ───────────────────────────────────────────────────────────────────────────────────────────

    async def drain(self, within: float, grace: float) -> None:
        """Until everything that is owed has an outcome; then `grace` seconds more, in which there may be too much."""
        end = time.monotonic() + within
        while time.monotonic() < end:
            verdict = await self.verdict()
            if not verdict.silent:
                break
            self.tell(f"{verdict.silent} of {verdict.acknowledged} not answered yet")
            await asyncio.sleep(TELL_EVERY_S)
        await asyncio.sleep(grace)

    async def verdict(self) -> Verdict:
        return judge(self.said, await self.stage.log(), owed=self.owed)

    async def texts(self, person: str) -> list[str]:
        """What they received."""
        return [each.text for each in await self.stage.phone.replies(person)]

    async def answered(self, said: Said, within: float = 30.0) -> None:
        """Until it is, by whatever words: its own, which come after those to what its person said before."""
        owed = {each.sid for each in self.said[: self.said.index(said) + 1] if each.person == said.person}

        async def is_answered() -> bool:
            return said.token not in judge(self.said, await self.stage.log(), owed=owed).which["silent"]

        await until(is_answered, f"{said.token} is answered", within)
