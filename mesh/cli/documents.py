"""One document, as it was read: its parts, what could not be read in them, and the passages that answers come from."""

from __future__ import annotations

from mesh.bus import Bus
from mesh.cli.admin import ask_as_owner, called, needs, seen_by
from mesh.cli.printing import Sheet
from mesh.contracts.answers import Nothing
from mesh.contracts.documents import LIST_DOCUMENTS, SHOW_DOCUMENT, DocumentParts, DocumentRef
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
