"""What a signed link names, on behalf of the person it was made for: a document, from the knowledge agent; or a reply
that was too long for a message, from the ledger."""

from __future__ import annotations

import asyncio
import secrets
from contextlib import AsyncExitStack
from datetime import UTC, datetime

from mesh import clock
from mesh.bus import Bus
from mesh.context import In, Out, unwrap
from mesh.contracts.documents import GET_DOCUMENT, DocumentCard, DocumentFile, DocumentRef
from mesh.contracts.orchestrator import ANSWER, CLEAR_TO_SEND, Reply, Standing
from mesh.envelope import Request, new_trace
from mesh.errors import NotFound
from mesh.files import GONE, WORD, Link, word_file
from mesh.lease import TurnRecord
from mesh.ledger import Ledger
from mesh.links import links
from mesh.skills import Skill


class Downloads:
    """Connects when the first link is used. `close` it."""

    def __init__(self, redis_url: str) -> None:
        self._redis_url = redis_url
        self._opening = asyncio.Lock()
        self._bus: Bus | None = None
        self._open = AsyncExitStack()

    async def close(self) -> None:
        await self._open.aclose()

    async def link(self, token: str) -> Link:
        """Raises `NotFound` for what is forged or expired, `Unavailable` when Redis can't be reached."""
        return (await links((await self._connected()).redis)).read(token)

    async def file(self, link: Link, *, within: float) -> DocumentFile:
        """Whether the person may have it is looked up now. Raises what the knowledge agent failed with."""
        if link.document_id.startswith(ANSWER):
            turn, reply = await self._answered(link)
            standing = Standing(sources=reply.sources)
            if await self._ask(CLEAR_TO_SEND, standing, link, within) != standing:  # the gate, as before any reply
                raise NotFound(GONE, detail="what it stands on has gone")
            return _as_file(link, turn, reply)
        file = await self._ask(GET_DOCUMENT, DocumentRef(document_id=link.document_id), link, within)
        if file.document.document_id != link.document_id:
            raise NotFound(GONE, detail="another document than was asked for")
        return file

    async def _ask(self, skill: Skill[In, Out], payload: In, link: Link, within: float) -> Out:
        asked = Request(
            client=link.client,
            skill=skill.name,
            payload=payload.model_dump(mode="json"),
            trace=new_trace(),
            key=secrets.token_hex(16),
            deadline=clock.now() + within,
        )
        return unwrap(skill, await (await self._connected()).ask(asked))

    async def _answered(self, link: Link) -> tuple[TurnRecord, Reply]:
        """A reply of the mesh's, for whom it was written."""
        ledger = Ledger((await self._connected()).redis)
        turn = await ledger.turn(link.document_id.removeprefix(ANSWER))
        if turn is None or turn.reply is None or turn.recipient != link.client:
            raise NotFound(GONE, detail="no such reply")
        return turn, turn.reply

    async def _connected(self) -> Bus:
        async with self._opening:
            if self._bus is None:
                self._bus = await self._open.enter_async_context(Bus(self._redis_url))
            return self._bus


def _as_file(link: Link, turn: TurnRecord, reply: Reply) -> DocumentFile:
    raw = word_file(reply.text)
    card = DocumentCard(
        document_id=link.document_id,
        name=f"answer-{turn.turn_id[-4:]}.docx",
        owner=link.client,
        visibility="private",
        size=len(raw),
        chunks=0,
        ingested_at=datetime.fromtimestamp(turn.planned_at, UTC),
    )
    return DocumentFile(document=card, media_type=WORD, raw=raw)
