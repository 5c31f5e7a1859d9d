"""What Twilio posts of a person's message."""

from __future__ import annotations

import re
from typing import Any

from mesh.testing.messages import VERSION, Account, Medium, Message

_VCARDS = ("text/vcard", "text/x-vcard", "text/directory")


def form_of(account: Account, sid: str, sender: str, to: str, text: str) -> dict[str, Any]:
    number = re.fullmatch(r"whatsapp:\+([0-9]+)", sender)
    identified = {"WaId": number[1]} if number else {"ExternalUserId": sender.removeprefix("whatsapp:")}
    return {
        "SmsMessageSid": sid,
        "NumMedia": "0",
        "ProfileName": "Somebody",
        "MessageType": "text",
        "SmsSid": sid,
        **identified,
        "SmsStatus": "received",
        "Body": text,
        "To": to,
        "NumSegments": "1",
        "ReferralNumMedia": "0",
        "MessageSid": sid,
        "AccountSid": account.sid,
        "From": sender,
        "ApiVersion": VERSION,
    }


def with_file(form: dict[str, Any], medium: Medium, url: str) -> dict[str, Any]:
    """There is no field for a name: of a document without a text, `Body` is the name."""
    kind = kind_of(medium.media_type)
    more = {"NumMedia": "1", "MediaUrl0": url, "MediaContentType0": medium.media_type, "MessageType": kind}
    named = {"Body": medium.name} if kind == "document" and not form["Body"] else {}
    return {**form, **more, **named}


def with_quote(form: dict[str, Any], sid: str, quoted: Message | None) -> dict[str, Any]:
    sender = {"OriginalRepliedMessageSender": quoted.sender} if quoted else {}
    return {**form, "OriginalRepliedMessageSid": sid, **sender}


def kind_of(media_type: str) -> str:
    bare = media_type.partition(";")[0].strip().lower()
    if bare in _VCARDS:
        return "contacts"
    if bare == "image/webp":
        return "sticker"
    kind = bare.partition("/")[0]
    return kind if kind in ("image", "audio", "video") else "document"
