"""The main job, shown: a mesh of its own, documents, people, a conversation as signed webhooks, and what came of it."""

from __future__ import annotations

import asyncio
import itertools
import shutil
import time
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from mesh.bus import Bus
from mesh.cli.admin import add_document
from mesh.cli.conversation import ASHA, BEN, CONVERSATION, NAMES, OWNER, STRANGER, Asked, read_lines
from mesh.cli.report import Heard, figures, show, summarise, write
from mesh.embedded.supervisor import Supervisor
from mesh.errors import Malformed, MeshError
from mesh.ledger import Ledger
from mesh.ports.people import Client
from mesh.settings import IDENTITY, META_SETTINGS, Settings, load
from mesh.testing.phone import Phone
from mesh.up import Mesh, Started
from mesh.wiring import open_roster

REPLY_WITHIN_S = 60.0


async def play(
    settings: Settings,
    console: Console,
    *,
    docs: Path | None,
    ask: Path | None,
    json_out: Path | None,
    keep: bool,
) -> int:
    """Returns the exit code."""
    began = time.monotonic()
    lines = read_lines(ask) if ask else list(CONVERSATION)
    folder = docs if docs is not None else settings.adiyan_config / "demo"
    if not folder.is_dir():
        raise Malformed(f"{folder} is not a folder.")
    settings = await fresh(settings, _somebody_else(lines) if ask else OWNER)
    async with Mesh(settings, lambda text: console.print(f"[dim]{escape(text)}[/]")) as started:
        console.print(
            f"[dim]The mesh is up in {started.seconds:.1f} s. While it runs, watch it on {started.dashboard}[/]"
        )
        troubles = await prepare(started, folder, [line.who for line in lines], console, own=ask is None)
        heard, first_reply = await _converse(started, lines, console, began)
        summary = figures(heard, first_reply)
        summarise(heard, summary, troubles, console)
        if json_out:
            write(json_out, heard, summary, troubles)
            console.print(f"[dim]{json_out} holds each line with its reply, its sources and its steps.[/]")
        if not keep:
            told = "[dim]./run demo --keep leaves it running, with its dashboard and a phone in the browser.[/]"
            console.print(told, soft_wrap=True)
        else:
            console.print(f"\nStill running; its data is in {settings.adiyan_home}. Ctrl-C ends it.")
            console.print(f"  dashboard  {started.dashboard}")
            console.print(
                f"  phone      {started.phone}   or ADIYAN_HOME={settings.adiyan_home} ./run chat --as {ASHA}"
            )
            await asyncio.Event().wait()
    return 0 if all(each.held for each in heard) else 1


async def fresh(settings: Settings, owner: str) -> Settings:
    """The demo has data of its own, made anew each time; it never touches that of the owner's mesh."""
    home = settings.adiyan_home / "demo"
    async with Supervisor(home):
        await asyncio.to_thread(_empty, home)
    return load(
        adiyan_config=settings.adiyan_config,
        adiyan_home=home,
        gateway_port=0,
        dashboard_port=0,
        twilio_account_sid="",
        **dict.fromkeys(META_SETTINGS, ""),
        quiet_seconds=0,
        mongodb_database="adiyan_demo",
        system_owner=owner,
    )


async def prepare(started: Started, folder: Path, people: list[str], console: Console, *, own: bool) -> list[str]:
    """Registers everyone who is met, and adds every document. Returns what could not be added."""
    owners = await asyncio.to_thread(_owners, folder)
    roster = await open_roster(started.settings)
    try:
        for who in dict.fromkeys([*owners, *people]):
            if own and who in (STRANGER, OWNER):
                continue
            name = NAMES.get(who, who).split(" (")[0] if own else who
            await roster.register(Client(who, name, "gold" if own and who == BEN else "default"))
    finally:
        await roster.close()
    files = [(path, "") for path in _files(folder / "global")]
    files += [(path, owner) for owner in owners for path in _files(folder / owner)]
    troubles = []
    async with Bus(started.settings.redis_url) as bus:
        with console.status("") as status:
            for number, (path, owner) in enumerate(files, 1):
                status.update(f"Reading {escape(path.name)} ({number} of {len(files)}) …")
                try:
                    result = await add_document(bus, started.settings, path, owner, everyone=not owner)
                    troubles += [f"{path.name}: {trouble}" for trouble in result.troubles]
                except MeshError as error:
                    troubles.append(f"{path.name}: {error.user_text}")
    console.print(f"[dim]{len(files)} documents read, {len(troubles)} with something that could not be.[/]\n")
    return troubles


async def _converse(started: Started, lines: list[Asked], console: Console, began: float) -> tuple[list[Heard], float]:
    heard: list[Heard] = []
    first_reply = 0.0
    async with Phone(started.phone) as phone, Bus(started.settings.redis_url) as bus:
        ledger = Ledger(bus.redis)
        for line in lines:
            result = await _say(phone, ledger, line)
            heard.append(result)
            if result.answered and not first_reply:
                first_reply = time.monotonic() - began
            show(result, console)
        await ledger.close()
    return heard, first_reply


async def _say(phone: Phone, ledger: Ledger, line: Asked) -> Heard:
    """One signed webhook, and the reply that the simulated Twilio received for it."""
    before = await phone.replies(line.who)
    began = time.perf_counter()
    posted = await phone.post(line.who, line.text)
    got = await phone.replies(line.who, before[-1].seq if before else 0, REPLY_WITHIN_S)
    result = Heard(line, ms=(time.perf_counter() - began) * 1000)
    if got:
        result.reply = got[0].text
    turn = await ledger.turn(posted.message_sid)
    if turn and turn.reply:
        result.sources = [source.label for source in turn.reply.sources]
        result.steps = list(turn.reply.steps)
    return result


def _somebody_else(lines: list[Asked]) -> str:
    """Nobody who is met may happen to be the system owner, who sees everything."""
    people = {line.who for line in lines}
    return next(each for number in itertools.count(1) if (each := f"+1999{number:07d}") not in people)


def _owners(folder: Path) -> list[str]:
    return [each.name for each in sorted(folder.iterdir()) if IDENTITY.fullmatch(each.name)]


def _empty(home: Path) -> None:
    for each in home.iterdir():
        if each.is_dir():
            shutil.rmtree(each)
        elif each.name != "lock":
            each.unlink()


def _files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(each for each in folder.rglob("*") if each.is_file() and not each.name.startswith("."))
