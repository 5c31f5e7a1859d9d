"""What the owner's commands do: the roster directly, documents through the knowledge agent."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

from rich.console import Console
from rich.markup import escape

from mesh import clock
from mesh.bus import Bus
from mesh.cli.progressing import bars, documents_shown, side_by_side
from mesh.configuration import read_agents
from mesh.context import unwrap
from mesh.contracts.answers import Nothing
from mesh.contracts.documents import (
    DELETE_DOCUMENT,
    INGEST,
    LIST_DOCUMENTS,
    DocumentCard,
    DocumentRef,
    Ingest,
    Ingested,
)
from mesh.envelope import Request, Wire, new_trace
from mesh.errors import Malformed, MeshError, NotFound, Unavailable
from mesh.files import LARGEST, too_large
from mesh.ports.people import Client
from mesh.settings import Settings
from mesh.skills import Skill
from mesh.up import running_settings
from mesh.wiring import open_roster

In = TypeVar("In", bound=Wire)
Out = TypeVar("Out", bound=Wire)


async def register_client(identity: str, name: str, tier: str, *, blocked: bool | None) -> str:
    """Returns the sentence that says what changed. An empty name or tier, and None, leave what is there."""
    settings, _ = running_settings()
    roster = await open_roster(settings)
    try:
        before = await roster.client(identity)
        now = before or Client(identity, identity, "default")
        wanted = Client(identity, name or now.name, tier or now.tier, now.blocked if blocked is None else blocked)
        await roster.register(wanted)
        known = {each.name: each.permissions for each in await roster.tiers()}
    finally:
        await roster.close()
    return change(before, wanted, known)


def change(before: Client | None, after: Client, tiers: dict[str, frozenset[str]]) -> str:
    """`Asha: silver → gold (+analysis:ask)`."""
    if before == after:
        return f"{after.name}: {after.tier}, unchanged"
    parts = []
    if before is None:
        parts.append(f"registered on {after.tier}")
    elif before.tier != after.tier:
        had, has = tiers.get(before.tier, frozenset()), tiers.get(after.tier, frozenset())
        moved = [f"+{each}" for each in sorted(has - had)] + [f"-{each}" for each in sorted(had - has)]
        parts.append(f"{before.tier} → {after.tier}" + (f" ({' '.join(moved)})" if moved else ""))
    if before is not None and before.name != after.name:
        parts.append(f"was called {before.name}")
    if after.blocked != (before.blocked if before else False):
        parts.append("blocked" if after.blocked else "no longer blocked")
    return f"{after.name}: {', '.join(parts)}"


async def all_clients() -> list[tuple[str, ...]]:
    settings, _ = running_settings()
    roster = await open_roster(settings)
    try:
        tiers = {tier.name: tier for tier in await roster.tiers()}
        found = await roster.clients()
    finally:
        await roster.close()
    return [
        (
            each.identity,
            each.name,
            each.tier + (" (blocked)" if each.blocked else ""),
            "nothing"
            if each.blocked
            else " ".join(sorted(tiers[each.tier].permissions))
            if each.tier in tiers
            else "?",
        )
        for each in found
    ]


async def add_documents(files: Iterable[Path], owner: str, *, everyone: bool, console: Console) -> int:
    """Returns how many could not be added; each of them is named, and the others are added all the same."""
    paths = [path for given in files for path in _expand(given)]
    settings, _ = running_settings()
    await needs(settings, "knowledge", owner)
    troubled = 0
    async with Bus(settings.redis_url) as bus:
        with bars(console) as progress:
            task = progress.add_task("files", total=len(paths))

            async def add(path: Path) -> None:
                nonlocal troubled
                try:
                    result = await add_document(bus, settings, path, owner, everyone=everyone)
                    progress.console.print(told(result))
                except MeshError as error:
                    troubled += 1
                    progress.console.print(
                        f"[red]✗[/] {escape(shown(path))}: {escape(error.user_text)}", soft_wrap=True
                    )
                progress.advance(task)

            async with documents_shown(bus.redis, progress):
                await side_by_side(paths, add)
    return troubled


async def add_document(bus: Bus, settings: Settings, path: Path, owner: str, *, everyone: bool) -> Ingested:
    """As the system owner, through the knowledge agent: it alone writes documents."""
    raw = await asyncio.to_thread(_read, path)
    wanted = Ingest(name=shown(path), raw=raw, owner=owner, visibility="global" if everyone else "private")
    return await ask_as_owner(bus, settings, INGEST, wanted)


async def needs(settings: Settings, agent: str, owner: str = "") -> None:
    """Raises `Unavailable` at once where nobody would ever answer, and `Malformed` for an owner whom nobody registered:
    a slip of the finger would hand a file over."""
    roster = await open_roster(settings)
    try:
        if not read_agents(await roster.agents()).serves(agent):
            raise Unavailable(f"The agent {agent} is switched off. Switch it on: adiyan agents scale {agent} 1")
        if owner not in ("", settings.system_owner) and await roster.client(owner) is None:
            raise Malformed(
                f"{owner} is not registered, and whoever has that number could read it. "
                f"Correct the number, or register it first: adiyan clients register {owner} --name NAME"
            )
    finally:
        await roster.close()


async def remove_documents(names: Iterable[str]) -> list[str]:
    """As the system owner. All of them are known before the first one goes. Returns a line for each."""
    settings, _ = running_settings()
    await needs(settings, "knowledge")
    async with Bus(settings.redis_url) as bus:
        known = (await ask_as_owner(bus, settings, LIST_DOCUMENTS, Nothing())).documents
        cards = {card.document_id: card for card in (called(name, known) for name in names)}
        for document_id in cards:
            await ask_as_owner(bus, settings, DELETE_DOCUMENT, DocumentRef(document_id=document_id))
    return [f"{card.name} of {card.owner}: removed, and quoted no more" for card in cards.values()]


def called(name: str, known: Iterable[DocumentCard]) -> DocumentCard:
    """By its name, or as owner/name. Raises `NotFound` unless there is exactly one."""
    found = [
        each for each in known if name.casefold() in (each.name.casefold(), f"{each.owner}/{each.name}".casefold())
    ]
    if not found:
        raise NotFound(f"There is no document called {name!r}. See them all: adiyan kb list")
    if len(found) > 1:
        whose = ", ".join(f"{each.owner}/{each.name}" for each in found)
        raise NotFound(f"Several are called {name!r}. Name one of them: {whose}")
    return found[0]


async def ask_as_owner(bus: Bus, settings: Settings, skill: Skill[In, Out], payload: In, client: str = "") -> Out:
    request = Request(
        client=client or settings.system_owner,
        skill=skill.name,
        payload=payload.model_dump(mode="json"),
        trace=new_trace(),
        key=secrets.token_hex(16),
        deadline=clock.now() + skill.within.total_seconds(),
    )
    return unwrap(skill, await bus.ask(request))


async def all_documents(client: str) -> list[tuple[str, ...]]:
    settings, _ = running_settings()
    await needs(settings, "knowledge")
    async with Bus(settings.redis_url) as bus:
        found = await ask_as_owner(bus, settings, LIST_DOCUMENTS, Nothing(), client)
    return [
        (
            each.name,
            each.owner,
            seen_by(each),
            str(each.chunks),
            f"{each.size / 1024:.1f} kB",
            f"{each.ingested_at:%Y-%m-%d %H:%M}",
            "; ".join(each.troubles),
        )
        for each in found.documents
    ]


def seen_by(card: DocumentCard) -> str:
    seen = "everyone" if card.visibility == "global" else card.owner
    return f"{seen} (being made {card.becoming})" if card.becoming else seen


def told(result: Ingested) -> str:
    """One line a document, and one for each part that yielded nothing."""
    document = result.document
    seen = "everyone" if document.visibility == "global" else document.owner
    counts = f"{result.parts} part(s), {document.chunks} passages"
    line = f"[green]✓[/] {escape(document.name)}: {result.outcome}, {counts}, seen by {seen}"
    return "\n".join([line, *(f"  [yellow]![/] {escape(trouble)}" for trouble in result.troubles)])


def shown(path: Path) -> str:
    """The file's name as text: bytes that are no UTF-8 become question marks."""
    return path.name.encode("utf-8", "replace").decode("utf-8")


def _read(path: Path) -> bytes:
    try:
        if (size := path.stat().st_size) > LARGEST:
            raise Malformed(too_large(shown(path), size))
        return path.read_bytes()
    except OSError as error:
        raise Malformed(f"it can't be read: {error.strerror}.") from error


def _expand(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(each for each in path.rglob("*") if each.is_file() and not each.name.startswith("."))
    if not path.exists():
        raise Malformed(f"{str(path).encode('utf-8', 'replace').decode()} does not exist.")
    return [path]
