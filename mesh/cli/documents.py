"""One document, as it was read: its parts, what could not be read in them, and the passages that answers come from."""

from __future__ import annotations

from mesh.bus import Bus
from mesh.cli.admin import ask_as_owner, needs, seen_by
from mesh.cli.printing import Sheet
from mesh.contracts.answers import Nothing
from mesh.contracts.documents import LIST_DOCUMENTS, SHOW_DOCUMENT, DocumentCard, DocumentParts, DocumentRef
from mesh.errors import NotFound
from mesh.up import running_settings

BEGINNING = 70
"""Characters of a passage that the table shows."""


async def shown(name: str, client: str) -> tuple[Sheet, Sheet]:
    """As this client sees it; as the system owner does if nobody is named. Parts, then passages."""
    settings, _ = running_settings()
    await needs(settings, "knowledge")
    async with Bus(settings.redis_url) as bus:
        known = (await ask_as_owner(bus, settings, LIST_DOCUMENTS, Nothing(), client)).documents
        card = called(name, known)
        found = await ask_as_owner(bus, settings, SHOW_DOCUMENT, DocumentRef(document_id=card.document_id), client)
    return _parts(found), _passages(found)


def called(name: str, known: tuple[DocumentCard, ...]) -> DocumentCard:
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


def _parts(found: DocumentParts) -> Sheet:
    card = found.document
    troubles = sum(bool(each.trouble) for each in found.parts)
    facts = [
        ("document", card.name),
        ("owner", card.owner),
        ("seen by", seen_by(card)),
        ("added", f"{card.ingested_at:%Y-%m-%d %H:%M}"),
        ("size", f"{card.size / 1024:.1f} kB"),
        ("read", f"{len(found.parts)} part(s), {troubles} with something that could not be read"),
    ]
    rows = [
        (
            each.label or "the whole",
            str(each.characters),
            each.how or ("text" if each.characters else "–"),
            each.trouble,
        )
        for each in found.parts
    ]
    return Sheet(facts, ("part", "characters", "read as", "not read"), rows)


def _passages(found: DocumentParts) -> Sheet:
    rows = [
        (str(number), each.part, " › ".join(each.heading_path), str(len(each.text)), _beginning(each.text))
        for number, each in enumerate(found.chunks)
    ]
    return Sheet((), ("passage", "part", "headings", "characters", "begins"), rows)


def _beginning(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= BEGINNING else line[:BEGINNING].rstrip() + " …"
