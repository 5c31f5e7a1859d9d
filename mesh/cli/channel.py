"""The channel, shown: files, voice, commands, silence and a provider that misbehaves, played against the simulated
Twilio. Every line says what it shows, and what was expected of it."""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx
from rich.console import Console
from rich.markup import escape

from mesh.bus import Bus
from mesh.cli.conversation import ASHA, BEN, OWNER
from mesh.cli.demo import fresh, prepare
from mesh.cli.handing import handed_back
from mesh.cli.scenes import CARLA, SCENES, Scene
from mesh.errors import MeshError
from mesh.lease import OUTCOMES
from mesh.ledger import Ledger
from mesh.people import People
from mesh.ports.people import Client
from mesh.settings import Settings
from mesh.testing.phone import Phone, Posted, Received
from mesh.up import Mesh, Started
from mesh.wiring import open_roster

NAMES = {ASHA: "Asha", BEN: "Ben (may publish)", CARLA: "Carla (Spanish)", OWNER: "the owner"}
WITHIN_S = 120.0
FILE_WITHIN_S = 10.0
TEMPLATE = "HX" + "0" * 32


@dataclass
class Said:
    """One thing that a person did, what came back, and which expectations did not hold."""

    who: str
    what: str
    shows: str
    replies: list[Received]
    ms: float
    outcome: str
    missing: list[str] = field(default_factory=list)


class Show:
    """What the scenes are played with."""

    def __init__(self, phone: Phone, bus: Bus, ledger: Ledger, started: Started, console: Console) -> None:
        self.phone = phone
        self.people = People(bus.redis)
        self.hears_voice = bool(started.settings.speech_url)
        self.said: list[Said] = []
        self._ledger = ledger
        self._number = started.settings.twilio_number
        self._console = console

    async def text(self, who: str, text: str, shows: str = "", **options: object) -> Said:
        return await self.does(who, text, shows, self.phone.post(who, text, **options))  # type: ignore[arg-type]

    async def file(self, who: str, name: str, media_type: str, raw: bytes, shows: str) -> Said:
        return await self.does(who, f"[{name}]", shows, self.phone.post(who, "", files=[(name, media_type, raw)]))

    async def does(self, who: str, what: str, shows: str, posting: Awaitable[Posted]) -> Said:
        """Until the turn has its outcome."""
        last = await self._last(who)
        began = time.perf_counter()
        posted = await posting
        outcome = await self._outcome(posted.message_sid)
        took = (time.perf_counter() - began) * 1000
        said = Said(who, what, shows, await self._replies(posted.message_sid, who, last), took, outcome)
        self.said.append(said)
        self._show(said)
        return said

    async def hears(self, who: str, what: str, shows: str, doing: Awaitable[object]) -> Said:
        """For what somebody else does: until `who` has a message."""
        last = await self._last(who)
        began = time.perf_counter()
        await doing
        replies = await self.phone.replies(who, last, WITHIN_S)
        said = Said(who, what, shows, replies, (time.perf_counter() - began) * 1000, "heard" if replies else "nothing")
        self.said.append(said)
        self._show(said)
        return said

    async def download(self, link: str) -> bytes:
        async with httpx.AsyncClient(timeout=20, trust_env=False) as http:
            return (await http.get(link)).content

    async def received(self, who: str, since: int = 0) -> list[Received]:
        return await self.phone.replies(who, since)

    async def hand_back(self, who: str) -> None:
        await handed_back(self.people, self._ledger, self._number, who)

    def expect(self, said: Said, claim: bool, what: str) -> None:
        if not claim:
            said.missing.append(what)
            self._console.print(f"    [red]expected: {escape(what)}[/]", soft_wrap=True)

    def says(self, said: Said, *texts: str) -> None:
        """All of these, somewhere in the replies."""
        heard = "\n".join(each.text for each in said.replies).casefold()
        for text in texts:
            self.expect(said, text.casefold() in heard, text)

    def never(self, said: Said, *texts: str) -> None:
        heard = "\n".join(each.text for each in said.replies).casefold()
        for text in texts:
            self.expect(said, text.casefold() not in heard, f"not {text}")

    def silent(self, said: Said, why: str) -> None:
        self.expect(said, not said.replies and said.outcome == f"silent: {why}", f"nothing, since {why}")

    async def _last(self, who: str) -> int:
        replies = await self.phone.replies(who)
        return replies[-1].seq if replies else 0

    async def _replies(self, message_id: str, who: str, after: int) -> list[Received]:
        """All pieces: a file appears once the provider has fetched it."""
        turn = await self._ledger.turn(message_id)
        pieces = len(turn.reply.pieces) if turn and turn.state == "sent" and turn.reply else 0
        until = time.monotonic() + FILE_WITHIN_S
        while len(found := await self.phone.replies(who, after)) < pieces and time.monotonic() < until:
            await asyncio.sleep(0.02)
        return found

    async def _outcome(self, message_id: str) -> str:
        until = time.monotonic() + WITHIN_S
        while time.monotonic() < until:
            turn = await self._ledger.turn(message_id)
            if turn and turn.state in OUTCOMES:
                return f"{turn.state}: {turn.reason}" if turn.reason else turn.state
            await asyncio.sleep(0.02)
        return "nothing"

    def _show(self, said: Said) -> None:
        title = f"  [dim]{escape(said.shows)}[/]" if said.shows else ""
        self._console.print(f"[bold]{escape(_name(said))}[/]: {escape(said.what)}{title}", soft_wrap=True)
        for reply in said.replies:
            for line in reply.text.splitlines():
                self._console.print(f"    [cyan]{escape(line)}[/]", soft_wrap=True)
            for shown in reply.media:
                self._console.print(f"    [cyan]\\[{escape(shown.name)}, {shown.size} bytes][/]", soft_wrap=True)
        if not said.replies:
            self._console.print(f"    [dim]({escape(said.outcome)})[/]", soft_wrap=True)
        self._console.print(f"    [dim]{said.ms:.0f} ms[/]")


async def play(settings: Settings, console: Console, *, json_out: Path | None) -> int:
    """Returns the exit code."""
    settings = (await fresh(settings, OWNER)).model_copy(update={"window_template": TEMPLATE})
    async with Mesh(settings, lambda text: console.print(f"[dim]{escape(text)}[/]")) as started:
        console.print(f"[dim]The mesh is up in {started.seconds:.1f} s.[/]")
        await prepare(started, settings.adiyan_config / "demo", [], console, own=True)
        await _register(started)
        async with Phone(started.phone) as phone, Bus(started.settings.redis_url) as bus:
            ledger = Ledger(bus.redis)
            await phone.templates({TEMPLATE: "{{1}}"})
            show = Show(phone, bus, ledger, started, console)
            try:
                troubles = await _play_all(show, SCENES, console)
            finally:
                await ledger.close()
    return _summarise(show, troubles, console, json_out)


async def _play_all(show: Show, scenes: Sequence[Scene], console: Console) -> list[str]:
    """Scenes that broke off, and why."""
    troubles = []
    for title, scene in scenes:
        console.print(f"\n[bold underline]{escape(title)}[/]")
        try:
            await scene(show)
        except (MeshError, ValueError, TimeoutError, OSError) as error:
            troubles.append(f"{title}: {type(error).__name__}: {error}")
            console.print(f"    [red]{escape(troubles[-1])}[/]", soft_wrap=True)
        await show.phone.script()
        await show.phone.rules()
    return troubles


async def _register(started: Started) -> None:
    roster = await open_roster(started.settings)
    try:
        for who, tier in ((ASHA, "default"), (BEN, "publisher"), (CARLA, "default")):
            await roster.register(Client(who, NAMES[who].split(" (")[0], tier))
    finally:
        await roster.close()


def _summarise(show: Show, troubles: list[str], console: Console, json_out: Path | None) -> int:
    wrong = [said for said in show.said if said.missing or said.outcome == "nothing"]
    times = [said.ms for said in show.said if said.replies]
    p50 = statistics.median(times) if times else 0.0
    good = len(show.said) - len(wrong)
    console.print(f"\n{len(show.said)} things done, {good} as expected; {p50:.0f} ms (median).")
    for said in wrong:
        console.print(
            f"[red]✗[/] {escape(_name(said))}: {escape(said.what)}: {escape(', '.join(said.missing))}", soft_wrap=True
        )
    if json_out:
        lines = [
            {
                "as": said.who,
                "does": said.what,
                "shows": said.shows,
                "replies": [reply.text for reply in said.replies],
                "files": [shown.name for reply in said.replies for shown in reply.media],
                "outcome": said.outcome,
                "ms": round(said.ms, 1),
                "missing": said.missing,
            }
            for said in show.said
        ]
        figures = {"done": len(show.said), "as_expected": good, "p50_ms": round(p50, 1)}
        json_out.write_text(json.dumps({**figures, "troubles": troubles, "lines": lines}, ensure_ascii=False, indent=1))
    return 1 if wrong or troubles else 0


def _name(said: Said) -> str:
    return NAMES.get(said.who, said.who)
