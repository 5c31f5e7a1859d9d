"""What the owner sees of tiers and agents, and the small changes that need no shell of MongoDB."""

from __future__ import annotations

import difflib
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from redis.asyncio import Redis

from mesh.access import DRIVE_LEDGER, OWN_SYSTEM
from mesh.cli.printing import Row, Sheet
from mesh.configuration import PERMISSION, agents, entry_of, read_agents, tiers
from mesh.crew import change
from mesh.errors import Denied, Malformed, MeshError, Misconfigured, NotFound, Unavailable
from mesh.ports.people import Client, Roster, Tier
from mesh.process import load_agent
from mesh.queues import QueueState, WorkerState, queues, workers
from mesh.settings import Settings
from mesh.skills import Skill, queue_of
from mesh.up import STORES, running_settings
from mesh.wiring import open_roster

MEANS = {
    "chat:converse": "be answered at all",
    "knowledge:search": "be answered from documents, and read those it may see",
    "analysis:ask": "have sums, comparisons and the like worked out, from what it may read",
    "memory:recall": "be answered from what it told earlier",
    "memory:write": "be remembered",
    "documents:add": "add documents of its own",
    "documents:publish": "make a document visible to everyone",
}
HOLDERS = {DRIVE_LEDGER: "the mesh itself", OWN_SYSTEM: "the system owner"}
"""Of what no tier can give."""
NAMED = 10
"""Clients that are named on the page of a tier; the others are counted."""

Documents = list[dict[str, object]]


# ── tiers ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def all_tiers() -> Sheet:
    async with open_tables() as (roster, settings):
        found, clients = await roster.tiers(), await roster.clients()
    rows = [
        (
            tier.name,
            str(sum(client.tier == tier.name for client in clients))
            + (" and whoever is not registered" if tier.name == settings.unknown_tier else ""),
            " ".join(sorted(tier.permissions)) or "nothing",
            tier.refusal or "the usual words",
        )
        for tier in found
    ]
    return Sheet(heads=("name", "clients", "permissions", "refusal"), rows=rows)


async def one_tier(name: str) -> Sheet:
    async with open_tables() as (roster, settings):
        tier = _named(name, {each.name: each for each in await roster.tiers()}, "tier")
        clients = [client for client in await roster.clients() if client.tier == name]
        skills, troubles = _skills(await roster.agents())
    seeded = {each.name: each for each in tiers(settings.adiyan_config)}
    strangers = ["whoever is not registered"] if name == settings.unknown_tier else []
    return Sheet(
        facts=[
            ("tier", name),
            ("clients", ", ".join([*_people(clients), *strangers]) or "nobody"),
            ("refusal", tier.refusal or f"the usual words: {Denied.default}"),
            ("config/tiers.yaml", _against(tier, seeded.get(name))),
        ],
        heads=("permission", "lets a client", "opens"),
        rows=[(each, _means(each, skills), _opens(each, skills)) for each in sorted(tier.permissions)],
        notes=troubles,
    )


async def permit(name: str, permissions: Sequence[str], *, grant: bool) -> tuple[str, list[str]]:
    """What changed (`gold: +documents:publish`), and what is odd about it."""
    for permission in permissions:
        if not PERMISSION.fullmatch(permission):
            raise Malformed(f"{permission!r} is not a permission: it has the form area:verb, such as knowledge:search.")
        if grant and permission in HOLDERS:
            raise Malformed(f"{permission} is held by {HOLDERS[permission]} and can't be granted.")
    async with open_tables() as (roster, _):
        _named(name, {each.name: each for each in await roster.tiers()}, "tier")
        skills, _ = _skills(await roster.agents())
        before = await (roster.grant if grant else roster.revoke)(name, permissions)
        after = await roster.tier(name) or before
    known = {*MEANS, *(skill.needs for skill in skills)} if grant else before.permissions
    odd = "no skill needs {} yet" if grant else f"{name} does not have {{}}"
    notes = [f"{odd.format(each)}.{_close(each, known)}" for each in permissions if each not in known]
    return f"{name}: {_moved(before.permissions, after.permissions) or 'unchanged'}", notes


def _people(clients: Sequence[Client]) -> list[str]:
    shown = [
        f"{each.name} ({each.identity}{', blocked' if each.blocked else ''})"
        if each.name != each.identity
        else each.name
        for each in clients[:NAMED]
    ]
    return [*shown, f"{len(clients) - NAMED} more"] if len(clients) > NAMED else shown


def _against(tier: Tier, seeded: Tier | None) -> str:
    if seeded is None:
        return "it is not there: it exists in MongoDB alone"
    differs = [_moved(seeded.permissions, tier.permissions)] if seeded.permissions != tier.permissions else []
    if seeded.refusal != tier.refusal:
        differs.append("another refusal")
    return f"differs, and MongoDB counts: {', '.join(differs)}" if differs else "the same"


def _moved(before: frozenset[str], after: frozenset[str]) -> str:
    return " ".join([f"+{each}" for each in sorted(after - before)] + [f"-{each}" for each in sorted(before - after)])


def _means(permission: str, skills: Sequence[Skill[Any, Any]]) -> str:
    if permission in MEANS:
        return MEANS[permission]
    cards = [skill.card.summary for skill in skills if skill.needs == permission and skill.card]
    return (
        " ".join(cards) or (_opens(permission, skills) and "use the skills beside") or "do nothing: no skill needs it"
    )


def _opens(permission: str, skills: Sequence[Skill[Any, Any]]) -> str:
    return ", ".join(skill.name for skill in skills if skill.needs == permission)


# ── agents ────────────────────────────────────────────────────────────────────────────────────────────────────────


async def all_agents() -> Sheet:
    async with open_tables(*STORES) as (roster, settings), open_redis(settings) as redis:
        found = read_agents(await roster.agents())
        alive = await workers(redis)
    rows = [
        (each.name, each.module, str(each.copies or "off"), *_work(each.name, alive)) for each in found.good.values()
    ]
    rows += [(name, "?", "?", *_work(name, alive)) for name in found.bad]
    strays = sorted({each.agent for each in alive} - found.good.keys() - found.bad.keys())
    rows += [(name, "not in MongoDB", "", *_work(name, alive)) for name in strays]
    seeded = {str(each["name"]) for each in agents(settings.adiyan_config)}
    deleted = [
        f"{name} is in config/agents, but was deleted in MongoDB, which counts. "
        f"`adiyan agents scale {name} 1` brings it back."
        for name in sorted(seeded - found.good.keys() - found.bad.keys())
    ]
    heads = ("name", "module", "copies", "workers", "running", "done", "failed")
    return Sheet(heads=heads, rows=rows, notes=[*found.bad.values(), *deleted])


async def one_agent(name: str) -> Sheet:
    async with open_tables(*STORES) as (roster, settings), open_redis(settings) as redis:
        documents = await roster.agents()
        document = _named(name, {str(each["name"]): each for each in documents}, "agent")
        permitted = await roster.tiers()
        alive = [each for each in await workers(redis) if each.agent == name]
        state = next(each for each in await queues(redis, [name]) if each.agent == name)
    found = read_agents(documents)
    skills, troubles = _skills([document])
    copies = found.good[name].copies if name in found.good else document.get("copies")
    return Sheet(
        facts=[
            ("agent", name),
            ("module", str(document.get("module"))),
            ("copies", "0: it is off, and nothing is asked of it" if copies == 0 else str(copies)),
            ("workers", "; ".join(map(_worker, alive)) or "none"),
            ("queue", f"{queue_of(name)}: {_queue(state)}"),
        ],
        heads=("skill", "needs", "within", "kept", "tiers", "card"),
        rows=[_skill(skill, permitted) for skill in skills],
        notes=[*([found.bad[name]] if name in found.bad else []), *troubles],
    )


async def scale(name: str, copies: int) -> str:
    """What changed: `memory: 1 copy → off`. One that was deleted, and that `config/agents` still has, comes back."""
    async with open_tables() as (roster, settings):
        there = {str(each["name"]): each for each in await roster.agents()}
        seeded = {str(each["name"]): each for each in agents(settings.adiyan_config)}
        document = _named(name, {**seeded, **there}, "agent")
        after = entry_of({**document, "copies": copies})
        if name not in there:
            await roster.seed([], [document], again=True)
        before = await roster.scale(name, copies)
    if name not in there:
        return change(None, after)
    try:
        return change(entry_of({"name": name, **before}), after)
    except Misconfigured:
        return f"{name}: {after.copies or 'off'}, in place of {before.get('copies')!r}"


def _work(name: str, alive: Sequence[WorkerState]) -> Row:
    own = [each for each in alive if each.agent == name]
    return (
        str(len(own)),
        str(sum(each.running for each in own)),
        str(sum(each.done for each in own)),
        str(sum(each.failed for each in own)),
    )


def _worker(state: WorkerState) -> str:
    return (
        f"process {state.pid}, for {lasting(time.time() - state.since)}, "
        f"{state.running} running, {state.done} done, {state.failed} failed"
    )


def _queue(state: QueueState) -> str:
    oldest = "" if state.oldest_s is None else f"; the oldest has waited {lasting(state.oldest_s)}"
    return f"{state.waiting} waiting, {state.running} running, {state.failed} failed{oldest}"


def _skill(skill: Skill[Any, Any], permitted: Sequence[Tier]) -> Row:
    holders = [tier.name for tier in permitted if skill.needs in tier.permissions]
    return (
        skill.name,
        skill.needs,
        lasting(skill.within.total_seconds()),
        "yes" if skill.kept else "no",
        ", ".join(holders) or HOLDERS.get(skill.needs, "none"),
        skill.card.summary if skill.card else "",
    )


def _skills(documents: Documents) -> tuple[list[Skill[Any, Any]], list[str]]:
    """Of every agent whose module can be imported here, and what is wrong with the others."""
    found: list[Skill[Any, Any]] = []
    troubles = []
    for document in documents:
        try:
            found += load_agent(str(document["name"]), documents).skills
        except MeshError as error:
            troubles.append(error.user_text)
        except Exception as error:  # an agent's module is anybody's code, and may raise anything when it is imported
            troubles.append(
                f"Agent {document['name']}: module {document.get('module')}: {type(error).__name__}: {error}"
            )
    return found, troubles


# ── what they share ───────────────────────────────────────────────────────────────────────────────────────────────


def lasting(seconds: float) -> str:
    """`2.1 s`, `90 s`, `12 min`, `3.5 h`."""
    if seconds < 10:
        return f"{seconds:.2g} s"
    if seconds <= 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


@asynccontextmanager
async def open_tables(*needs: str) -> AsyncIterator[tuple[Roster, Settings]]:
    settings, _ = running_settings(*(needs or ("mongodb_uri",)))
    with told(settings):
        roster = await open_roster(settings)
        try:
            yield roster, settings
        finally:
            await roster.close()


@asynccontextmanager
async def open_redis(settings: Settings) -> AsyncIterator[Redis]:
    """Impatient, unlike the mesh's own: somebody waits at a prompt."""
    redis = Redis.from_url(settings.redis_url, socket_connect_timeout=3, socket_timeout=5)
    try:
        yield redis
    finally:
        await redis.aclose()


@contextmanager
def told(settings: Settings) -> Iterator[None]:
    """The owner reads which server is away, not what a person in a chat would."""
    try:
        yield
    except Unavailable as error:
        if error.user_text != Unavailable.default:
            raise
        store, url = ("MongoDB", settings.mongodb_uri) if "mongodb" in error.detail else ("Redis", settings.redis_url)
        place = url.partition("://")[2].rpartition("@")[2].partition("/")[0]
        raise Unavailable(
            f"{store} at {place} can't be reached ({error.detail.partition(': ')[2]}). Is it running?",
            detail=error.detail,
        ) from error


def _named(name: str, there: dict[str, Any], what: str) -> Any:
    if name in there:
        return there[name]
    raise NotFound(f"There is no {what} called {name!r}.{_close(name, there)} There are: {', '.join(sorted(there))}.")


def _close(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, sorted(known), n=2)
    return f" Did you mean {' or '.join(close)}?" if close else ""
