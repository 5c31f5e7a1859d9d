"""What a person sends besides text: documents are taken in, voice notes are heard, and everything else has a word."""

from __future__ import annotations

import logging
import time
from pathlib import PurePosixPath
from typing import Any

from agents.orchestrator.commanding import source_of, who_sees
from mesh.catalogue import say, say_error
from mesh.context import Context
from mesh.contracts.documents import INGEST, DocumentCard, Ingest, Ingested
from mesh.contracts.orchestrator import Piece, Reply, SentFile, Turn
from mesh.errors import Crashed, MeshError, NotFound, TimedOut, Unavailable, Unreadable
from mesh.people import People
from mesh.ports.channel import Attachment, Channel, Media
from mesh.ports.models import Transcriber

log = logging.getLogger(__name__)

LARGEST_BYTES = 16 << 20
"""What WhatsApp carries at Twilio."""
PATIENCE_S = 900.0
UNREAD_SHOWN = 5
"""Parts of a document that could not be read and are told one by one."""
_WORDS = {
    "image": "image_not_read",
    "video": "video_not_read",
    "sticker": "sticker",
    "contacts": "contact_noted",
}


async def taken_in(
    turn: Turn, language: str, ctx: Context[Any], channel: Channel, people: People, buttons: str = ""
) -> Reply:
    """Documents and pictures with text, into the sender's own knowledge. `buttons` is the provider's id of a text with
    quick replies."""
    if not ctx.grant.covers(INGEST.needs):
        return Reply(text=say("may_not_add_documents", language))
    taken = [await _taken_in(file, turn, language, ctx, channel, people) for file in turn.files]
    about = tuple(source_of(ingested.document) for _, ingested in taken if ingested)
    pieces = tuple(Piece(text=text, template=buttons) for text, _ in taken) if buttons else ()
    return Reply(text="\n\n".join(text for text, _ in taken), pieces=pieces, sources=about, steps=(INGEST.name,))


async def _taken_in(
    file: SentFile, turn: Turn, language: str, ctx: Context[Any], channel: Channel, people: People
) -> tuple[str, Ingested | None]:
    name = file.name or file.media_type or "…"
    try:
        media = await fetched(file, turn, channel)
        name = media.name
        ingested = await ctx.ask(INGEST, Ingest(name=name, raw=media.raw))
    except MeshError as error:
        if turn.kind == "image" and isinstance(error, Unreadable):
            return say("image_not_read", language), None
        later = isinstance(error, (Unavailable, TimedOut, Crashed))
        reason = say("media_not_now", language) if later else say_error(error.code, error.user_text, language)
        return say("document_unreadable", language, name=name, reason=reason), None
    if ingested.outcome == "unchanged" and await _is_news(ingested.document, ctx.grant.client, people):
        ingested = ingested.model_copy(update={"outcome": "added"})
    await people.note(ctx.grant.client, document_id=ingested.document.document_id, document_at=time.time())
    return _confirmed(ingested, language, may_publish=ctx.grant.covers("documents:publish")), ingested


async def _is_news(card: DocumentCard, client: str, people: People) -> bool:
    """It was read before, and that was not told: what a crash broke off, the knowledge agent finishes by itself."""
    recent = time.time() - card.ingested_at.timestamp() < PATIENCE_S
    return recent and (await people.of(client)).document_id != card.document_id


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
