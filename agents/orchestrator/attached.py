"""What a person sends besides text: documents are taken in, voice notes are heard, and everything else has a word."""

from __future__ import annotations

import logging
from pathlib import PurePosixPath
from typing import Any

from agents.orchestrator.commanding import who_sees
from mesh.catalogue import say, say_error
from mesh.context import Context
from mesh.contracts import INGEST, Ingest, Ingested, Reply, SentFile, Turn
from mesh.errors import MeshError, NotFound, Unreadable
from mesh.people import People
from mesh.ports import Attachment, Channel, Media, Transcriber

log = logging.getLogger(__name__)

LARGEST_BYTES = 16 << 20
"""What WhatsApp carries at Twilio."""
UNREAD_SHOWN = 5
"""Parts of a document that could not be read and are told one by one."""
_WORDS = {
    "image": "image_not_read",
    "video": "video_not_read",
    "sticker": "sticker",
    "contacts": "contact_noted",
}


async def taken_in(turn: Turn, language: str, ctx: Context[Any], channel: Channel, people: People) -> Reply:
    """Documents, into the sender's own knowledge."""
    if not ctx.grant.covers(INGEST.needs):
        return Reply(text=say("may_not_add_documents", language))
    texts = [await _taken_in(file, turn, language, ctx, channel, people) for file in turn.files]
    return Reply(text="\n\n".join(texts), steps=(INGEST.name,))


async def _taken_in(
    file: SentFile, turn: Turn, language: str, ctx: Context[Any], channel: Channel, people: People
) -> str:
    name = file.name or file.media_type or "…"
    try:
        media = await fetched(file, turn, channel)
        name = media.name
        ingested = await ctx.ask(INGEST, Ingest(name=name, raw=media.raw))
    except Unreadable as error:
        return say("document_unreadable", language, name=name, reason=say_error(error.code, error.user_text, language))
    await people.note(ctx.grant.client, document_id=ingested.document.document_id)
    return _confirmed(ingested, language, may_publish=ctx.grant.covers("documents:publish"))


def _confirmed(ingested: Ingested, language: str, *, may_publish: bool) -> str:
    """What was read and what was not, who sees it, and what may be replied."""
    card = ingested.document
    read = ingested.parts - len(ingested.troubles)
    if not card.chunks:
        return say("document_nothing_read", language, name=card.name)
    outcome = {"added": "saved", "replaced": "replaced", "unchanged": "unchanged"}[ingested.outcome]
    lines = [say(f"document_{outcome}", language, name=card.name, pages=read)]
    if ingested.troubles:
        shown = [*ingested.troubles[:UNREAD_SHOWN], *(["…"] if len(ingested.troubles) > UNREAD_SHOWN else [])]
        parts = shown[0] if len(shown) == 1 else "".join(f"\n• {each}" for each in shown)
        lines.append(say("document_unread_parts", language, parts=parts))
    lines.append(say("document_visible_to", language, who_sees=who_sees(card, language)))
    lines.append(say("document_replies_publisher" if may_publish else "document_replies", language))
    return "\n".join(lines)


async def heard(turn: Turn, language: str, channel: Channel, transcriber: Transcriber | None) -> str | Reply:
    """What was said in a voice note, or a reply that says why it was not heard."""
    if transcriber is None:
        return Reply(text=say("voice_not_available", language))
    try:
        media = await fetched(turn.files[0], turn, channel)
        found = await transcriber.hear(media.raw, media.media_type)
    except MeshError as error:
        return Reply(text=say_error(error.code, error.user_text, language), steps=(f"voice {error.code}",))
    return found.text.strip() or Reply(text=say("voice_nothing_heard", language))


async def fetched(file: SentFile, turn: Turn, channel: Channel) -> Media:
    if not file.reference:
        raise NotFound(detail="the provider gave no address")
    attachment = Attachment(file.reference, file.media_type, file.name)
    return await channel.fetch(attachment, most_bytes=LARGEST_BYTES)


def noted(turn: Turn, language: str) -> Reply | None:
    """A word for what is neither read nor heard; None when there is a text to answer."""
    if turn.kind == "location":
        return Reply(text=say("location_noted", language, place=turn.text or "📍"))
    if turn.text.strip() and turn.kind not in ("image", "video", "sticker", "contacts"):
        return None
    if key := _WORDS.get(turn.kind):
        return Reply(text=say(key, language))
    if turn.media or turn.kind == "other":
        kind = PurePosixPath(turn.files[0].media_type).name if turn.files else turn.kind
        return Reply(text=say("unsupported", language, kind=kind))
    return Reply(text=say("empty", language))
