"""Why a client was not told something, in counts."""

from __future__ import annotations

from mesh.access import Gate
from mesh.bus import Bus
from mesh.cli.admin import ask_as_owner, needs
from mesh.cli.printing import Sheet
from mesh.contracts.documents import RETRIEVE_KNOWLEDGE_BASE
from mesh.contracts.upkeep import WHY_WITHHELD, WhyWithheld, Withheld
from mesh.errors import Denied, Malformed
from mesh.settings import Settings
from mesh.up import running_settings
from mesh.wiring import open_roster


async def why(client: str, question: str) -> Sheet:
    settings, _ = running_settings()
    if client == settings.system_owner:
        raise Malformed("From the system owner nothing is withheld. Name a client.")
    await needs(settings, "knowledge")
    permitted = await _permitted(settings, client)
    async with Bus(settings.redis_url) as bus:
        found = await ask_as_owner(bus, settings, WHY_WITHHELD, WhyWithheld(client=client, text=question))
    return _sheet(client, permitted, found)


async def _permitted(settings: Settings, client: str) -> str:
    """By the gate itself."""
    roster = await open_roster(settings)
    try:
        gate = Gate(roster, system_owner=settings.system_owner, unknown_tier=settings.unknown_tier)
        grant = await gate.admit(client, RETRIEVE_KNOWLEDGE_BASE.needs)
    except Denied as error:
        return f"no, so nothing at all is found: {error.detail}"
    finally:
        await roster.close()
    return f"yes, by tier {grant.tier}"


def _sheet(client: str, permitted: str, found: Withheld) -> Sheet:
    reasons = tuple(each.reason for each in found.paths[0].held)
    rows = [
        (each.name, f"{each.matched} {each.counted}", str(each.seen), *(str(held.count) for held in each.held))
        for each in found.paths
    ]
    (searched, *_) = found.paths
    answered = (
        "yes: something that it may see answers this"
        if found.answered
        else f"no: all of the {searched.seen} passages that it may see were below the floor"
        if searched.seen
        else "no: there is nothing that it may see"
    )
    facts = [
        ("client", client),
        (RETRIEVE_KNOWLEDGE_BASE.needs, permitted),
        ("answered", answered),
        *((f"rule, {what}", rule) for what, rule in {each.counted: each.rule for each in found.paths}.items()),
    ]
    return Sheet(facts, ("read path", "matched", "may see", *reasons), rows)
