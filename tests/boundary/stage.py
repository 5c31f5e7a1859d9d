"""The knowledge agent behind its own door, with a real index and instant vectors; and the people who come to it."""

from __future__ import annotations

import base64
import json
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

from agents.knowledge import agent
from agents.knowledge.library import Library
from agents.knowledge.stores import Stores
from mesh.access import Gate
from mesh.adapters.ollama import OllamaEmbedder
from mesh.adapters.qdrant import QdrantPassages
from mesh.adapters.shelf import DiskShelf
from mesh.contracts.documents import INGEST, DocumentCard, Ingest
from mesh.contracts.notes import SAVE_NOTE, SaveNote
from mesh.dispatch import Dispatcher
from mesh.envelope import Wire
from mesh.ports.people import Tier
from mesh.skills import Skill
from tests.asking import Asking
from tests.people import ASHA, BEN, OWNER, Directory

In = TypeVar("In", bound=Wire)

BARE, BLOCKED, PUBLISHER = "+15551230003", "+15551230004", "+15551230005"
"""Registered without the permission to search; blocked; and one who may share with everyone."""
DIMS = 384

NAME = "zugspitze-contract.md"
CANARY = "KANARIENVOGEL"
SECRET = b"""# Gala TREPPENWITZ

## Fee SCHNAPSIDEE

The fee of the gala is 7,413 zlotys (KANARIENVOGEL).

## Notice

The notice is thirty days.
"""
NOTE = "The gala's caterer is KANARIENVOGEL Ltd. #fingerspitzen"
CANARIES = ("KANARIENVOGEL", "TREPPENWITZ", "SCHNAPSIDEE", "7,413", "zugspitze", "fingerspitzen")
"""In content, headings, the name and a tag."""
SEEN = b"# Prices\n\nA double room costs 84 euros. The fee of parking is 7 euros. The gala begins at eight.\n"
OWN = b"# Ben's gala\n\nBen's gala has a fee of 90 zlotys, and a notice of ten days.\n"


class Stage(Asking):
    def __init__(self, library: Library, people: Directory, passages: QdrantPassages) -> None:
        self.library, self.people, self.passages = library, people, passages
        self.gate = Gate(people, system_owner=OWNER, unknown_tier="stranger", fresh_for=0)
        super().__init__(Dispatcher(agent, library, self.gate, cast(Any, None)))

    async def call(self, client: str, skill: Skill[Any, Any], payload: Any) -> dict[str, Any]:
        """As it comes from the bus, well-formed or not."""
        body = {
            "client": client,
            "skill": skill.name,
            "payload": payload,
            "trace": "t",
            "key": uuid.uuid4().hex,
            "deadline": time.time() + 60,
        }
        return await self.dispatcher.dispatch({}, body)

    async def ingest(self, client: str, name: str, raw: bytes, **more: Any) -> DocumentCard:
        return (await self.ask(client, INGEST, Ingest(name=name, raw=raw, **more))).document

    async def note(self, client: str, text: str) -> DocumentCard:
        return (await self.ask(client, SAVE_NOTE, SaveNote(text=text, message_id=uuid.uuid4().hex))).document

    async def furnish(self) -> None:
        """What everybody sees, and what is Ben's."""
        await self.ingest(OWNER, "prices.md", SEEN, visibility="global")
        await self.ingest(BEN, "ben-gala.md", OWN)


@asynccontextmanager
async def staged(index_url: str, model_url: str, folder: Path) -> AsyncIterator[Stage]:
    people = Directory()
    for person in (ASHA, BEN, BLOCKED):
        people.allow(person, "knowledge:search", "documents:add")
    people.allow(BARE, "chat:converse", "documents:add")
    people.block(BLOCKED)
    people.allow(PUBLISHER, "knowledge:search", "documents:add", "documents:publish")
    people.known["stranger"] = Tier("stranger", frozenset({"knowledge:search"}))  # the owner may let strangers search
    embedder = OllamaEmbedder(
        model_url, model="multilingual-e5-small", dims=DIMS, query_prefix="query: ", document_prefix="passage: "
    )
    collection = f"boundary-{uuid.uuid4().hex[:12]}"
    passages = await QdrantPassages.open(index_url, model=embedder.model, dims=DIMS, collection=collection)
    try:
        yield Stage(Library(Stores(await DiskShelf.open(folder / "shelf"), passages, embedder)), people, passages)
    finally:
        await passages._client.delete_collection(collection)
        await passages.close()
        await embedder.close()


def shown(answer: object) -> str:
    """All that the asker gets, the bytes of files included."""
    text = json.dumps(answer, ensure_ascii=False)
    value = answer.get("value") if isinstance(answer, dict) else None
    raw = value.get("raw", "") if isinstance(value, dict) else ""
    return text + base64.b64decode(raw + "==").decode(errors="replace")


def leaked(answer: object, *ids: str) -> list[str]:
    return [canary for canary in (*CANARIES, *ids) if canary.casefold() in shown(answer).casefold()]


def unsaid(answer: dict[str, Any], payload: dict[str, Any]) -> str:
    """The answer, less what the asker said."""
    text = shown(answer)
    for said in (value for value in payload.values() if isinstance(value, str) and value.strip()):
        text = text.replace(said, "")
    return text
