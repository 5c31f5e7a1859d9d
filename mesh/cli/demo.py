"""The main job, shown: a mesh of its own, documents, people, a conversation as signed webhooks, and what came of it."""

from __future__ import annotations

import asyncio
import itertools
import json
import shutil
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from rich.console import Console
from rich.markup import escape

from mesh.bus import Bus
from mesh.cli.admin import add_document
from mesh.embedded.supervisor import Supervisor
from mesh.errors import Malformed, MeshError
from mesh.ledger import Ledger
from mesh.ports import Client
from mesh.settings import IDENTITY, Settings, load
from mesh.testing.phone import Phone
from mesh.up import Mesh, Started
from mesh.wiring import open_roster

REPLY_WITHIN_S = 60.0
ASHA, BEN, STRANGER, OWNER = "+15551230001", "+15551230002", "+15559990000", "+15550000000"


class Asked(BaseModel):
    """One line of the script."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True)

    who: str = Field(alias="as", pattern=IDENTITY.pattern)
    text: str = Field(min_length=1)
    expect: list[str] = []
    forbid: list[str] = []
    shows: str = ""


@dataclass
class Heard:
    """What came of one line."""

    asked: Asked
    reply: str = ""
    sources: list[str] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    ms: float = 0.0

    @property
    def answered(self) -> bool:
        return bool(self.reply)

    @property
    def missing(self) -> list[str]:
        return [text for text in self.asked.expect if text.casefold() not in self.reply.casefold()]

    @property
    def leaked(self) -> list[str]:
        return [text for text in self.asked.forbid if text.casefold() in self.reply.casefold()]

    @property
    def held(self) -> bool:
        return self.answered and not self.missing and not self.leaked


def _line(who: str, text: str, shows: str, expect: Sequence[str] = (), forbid: Sequence[str] = ()) -> Asked:
    return Asked.model_validate(
        {"as": who, "text": text, "shows": shows, "expect": list(expect), "forbid": list(forbid)}
    )


SECRETS = ("7,413", "2,224")
"""Two figures of Ben's contract: nobody else may ever read them."""

CONVERSATION = (
    _line(ASHA, "How much is the deluxe double room per night?", "a table row, with its source", ["112 euros"]),
    _line(ASHA, "Until when can I cancel my room free of charge?", "one section of a policy", ["7 days before"]),
    _line(BEN, "When does breakfast start at the weekend?", "another document", ["8:00"]),
    _line(BEN, "What deposit was paid under the contract?", "his own private contract", ["2,224"]),
    _line(
        ASHA,
        "What deposit was paid under the contract of Rivera and Okafor?",
        "somebody else's contract: as if it did not exist",
        ["couldn't find"],
        SECRETS,
    ),
    _line(ASHA, "My favourite colour is teal.", "a fact, told", ["teal"]),
    _line(ASHA, "Actually, my favourite colour is green.", "and corrected", ["green"]),
    _line(ASHA, "What is my favourite colour?", "recalled as corrected", ["green"], ["teal"]),
    _line(
        BEN,
        "What is my favourite colour?",
        "another person's memory is not his",
        ["couldn't find"],
        ["green", "teal"],
    ),
    _line(
        ASHA,
        "Do you have a helicopter landing pad?",
        "no document says: so it is not known",
        ["couldn't find"],
    ),
    _line(
        STRANGER,
        "How much is a double room?",
        "not registered: the configured refusal",
        ["register"],
        ["84 euros"],
    ),
    _line(OWNER, "What is the total fee of the contract?", "the system owner sees everything", ["7,413"]),
)
NAMES = {ASHA: "Asha (default)", BEN: "Ben (gold)", STRANGER: "a stranger", OWNER: "the owner"}


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
    lines = _read_lines(ask) if ask else list(CONVERSATION)
    folder = docs if docs is not None else settings.adiyan_config / "demo"
    if not folder.is_dir():
        raise Malformed(f"{folder} is not a folder.")
    settings = await _fresh(settings, _somebody_else(lines) if ask else OWNER)
    async with Mesh(settings, lambda text: console.print(f"[dim]{escape(text)}[/]")) as started:
        console.print(f"[dim]The mesh is up in {started.seconds:.1f} s.[/]")
        troubles = await _prepare(started, folder, [line.who for line in lines], console, own=ask is None)
        heard, first_reply = await _converse(started, lines, console, began)
        code = _report(heard, first_reply, troubles, console, json_out)
        if keep:
            console.print(f"\nStill running; its data is in {settings.adiyan_home}. Ctrl-C ends it. Write to it with")
            console.print(f"  ADIYAN_HOME={settings.adiyan_home} ./run chat --as {ASHA}")
            await asyncio.Event().wait()
    return code


async def _fresh(settings: Settings, owner: str) -> Settings:
    """The demo has data of its own, made anew each time; it never touches that of the owner's mesh."""
    home = settings.adiyan_home / "demo"
    async with Supervisor(home):
        await asyncio.to_thread(_empty, home)
    return load(
        adiyan_config=settings.adiyan_config,
        adiyan_home=home,
        gateway_port=0,
        mongodb_database="adiyan_demo",
        system_owner=owner,
    )


async def _prepare(started: Started, folder: Path, people: list[str], console: Console, *, own: bool) -> list[str]:
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
            _show(result, console)
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


def _show(heard: Heard, console: Console) -> None:
    mark = "[green]✓[/]" if heard.held else "[red]✗[/]"
    name = NAMES.get(heard.asked.who, heard.asked.who)
    title = f"  [dim]{escape(heard.asked.shows)}[/]" if heard.asked.shows else ""
    console.print(f"{mark} [bold]{escape(name)}[/]: {escape(heard.asked.text)}{title}", soft_wrap=True)
    body = heard.reply.partition("\n\n_Source: ")[0]
    for line in (body or "no reply").splitlines():
        console.print(f"    [cyan]{escape(line)}[/]", soft_wrap=True)
    notes = [f"{heard.ms:.0f} ms", *(f"source: {source}" for source in heard.sources)]
    console.print(f"    [dim]{escape(' · '.join(notes))}[/]", soft_wrap=True)
    for text in heard.missing:
        console.print(f"    [red]expected: {escape(text)}[/]")
    for text in heard.leaked:
        console.print(f"    [red]must not be there: {escape(text)}[/]")


def _report(
    heard: list[Heard], first_reply: float, troubles: list[str], console: Console, json_out: Path | None
) -> int:
    expecting = [each for each in heard if each.asked.expect]
    found = [each for each in expecting if each.answered and not each.missing]
    times = [each.ms for each in heard if each.answered]
    summary = {
        "asked": len(heard),
        "answered": sum(each.answered for each in heard),
        "expected_found": round(len(found) / len(expecting), 4) if expecting else 1.0,
        "leaks": sum(bool(each.leaked) for each in heard),
        "first_reply_s": round(first_reply, 2),
        "p50_ms": round(statistics.median(times), 1) if times else 0.0,
    }
    for trouble in troubles:
        console.print(f"[yellow]![/] {escape(trouble)}", soft_wrap=True)
    console.print(
        f"\n[bold]{summary['answered']} of {summary['asked']} answered[/], "
        f"{len(found)} of {len(expecting)} expectations found, {summary['leaks']} leaks; "
        f"first reply {summary['first_reply_s']} s after the start, p50 {summary['p50_ms']:.0f} ms a reply."
    )
    if json_out:
        lines = [
            {
                "as": each.asked.who,
                "text": each.asked.text,
                "reply": each.reply,
                "sources": each.sources,
                "steps": each.steps,
                "ms": round(each.ms, 1),
                "held": each.held,
                "missing": each.missing,
                "leaked": each.leaked,
            }
            for each in heard
        ]
        json_out.write_text(json.dumps({**summary, "troubles": troubles, "lines": lines}, ensure_ascii=False, indent=1))
        console.print(f"[dim]{json_out} holds each line with its reply and sources.[/]")
    return 0 if all(each.held for each in heard) else 1


def _read_lines(file: Path) -> list[Asked]:
    lines = []
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Malformed(f"{file} can't be read: {error}.") from error
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            lines.append(Asked.model_validate_json(line))
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"])) or "the line"
            raise Malformed(f"{file}, line {number}: {place}: {first['msg']}.") from error
    if not lines:
        raise Malformed(f"{file} holds no question.")
    return lines


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
