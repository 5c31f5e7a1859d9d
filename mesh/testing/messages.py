"""What the simulated Twilio keeps: messages of both sides, and their files."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any

from mesh.adapters.twilio_signature import identity
from mesh.errors import Malformed

VERSION = "2010-04-01"


@dataclass(frozen=True)
class Account:
    sid: str
    token: str
    number: str
    webhook: str
    status_url: str = ""


@dataclass(frozen=True, slots=True)
class Medium:
    """A file of a message, without its bytes. `parent` is the message's sid."""

    sid: str
    parent: str
    media_type: str
    name: str
    size: int
    created: datetime = field(default_factory=lambda: datetime.now(UTC))

    def path(self, account: str) -> str:
        return f"/{VERSION}/Accounts/{account}/Messages/{self.parent}/Media/{self.sid}"

    def resource(self, account: str) -> dict[str, Any]:
        """As Twilio's REST form has it: without the name."""
        created = format_datetime(self.created)
        return {
            "account_sid": account,
            "content_type": self.media_type,
            "date_created": created,
            "date_updated": created,
            "parent_sid": self.parent,
            "sid": self.sid,
            "uri": f"{self.path(account)}.json",
        }

    def shown(self) -> dict[str, Any]:
        """As the phone has it, which needs no credentials."""
        url = f"/simulate/media/{self.sid}"
        return {"url": url, "media_type": self.media_type, "name": self.name, "size": self.size}


@dataclass(slots=True)
class Message:
    seq: int
    sid: str
    to: str
    sender: str
    body: str
    direction: str
    status: str
    created: datetime = field(default_factory=lambda: datetime.now(UTC))
    mono: float = field(default_factory=time.monotonic)
    sent: datetime | None = None
    """Of a person's message: when its webhook was first posted."""
    files: str = "0"
    media: tuple[Medium, ...] = ()
    kind: str = "text"
    """Twilio's `MessageType`."""
    quoted: str = ""
    buttons: tuple[dict[str, str], ...] = ()
    """Each with its `title` and its `id`."""
    form: dict[str, str] | None = None
    """Of a person's message that is more than text: what was posted, so that it can be posted again."""
    error_code: int = 0
    seen: bool = True
    """Whether it is on the person's phone."""
    taken: bool | None = None
    """Whether the webhook took a person's message; None until it has answered."""
    changed: int = 0
    """Grows with each change to any message."""

    def resource(self, account: str) -> dict[str, Any]:
        """As Twilio's REST form has it."""
        uri = f"/{VERSION}/Accounts/{account}/Messages/{self.sid}"
        created = format_datetime(self.created)
        return {
            "account_sid": account,
            "api_version": VERSION,
            "body": self.body,
            "date_created": created,
            "date_sent": format_datetime(self.sent) if self.sent else None,
            "date_updated": created,
            "direction": self.direction,
            "error_code": self.error_code or None,
            "error_message": ERRORS.get(self.error_code),
            "from": self.sender,
            "messaging_service_sid": None,
            "num_media": self.files,
            "num_segments": "1",
            "price": None,
            "price_unit": None,
            "sid": self.sid,
            "status": self.status,
            "subresource_uris": {"media": f"{uri}/Media.json"},
            "tags": None,
            "to": self.to,
            "uri": f"{uri}.json",
        }

    def reply(self) -> dict[str, Any]:
        """As the control side has it: people by their identity."""
        people = {"to": person(self.to), "from": person(self.sender)}
        when = {"at": self.created.isoformat(), "mono": self.mono}
        more = {"media": [each.shown() for each in self.media], "buttons": [*self.buttons]}
        return {"seq": self.seq, "sid": self.sid, **people, "body": self.body, **when, **more}


ERRORS = {
    20003: "Authenticate",
    20429: "Too Many Requests",
    21602: "Message body is required.",
    21603: "A 'From' phone number is required.",
    21604: "A 'To' phone number is required.",
    21610: "Attempt to send to unsubscribed recipient",
    21617: "The concatenated message body exceeds the 1600 character limit.",
    21620: "Invalid media URL(s)",
    21655: "The ContentSid is Invalid",
    21656: "The ContentVariables Parameter is invalid",
    21910: "Invalid 'From' and 'To' pair. 'From' and 'To' should be of the same channel",
    63007: "Twilio could not find a Channel with the specified From address",
    63013: "Channel policy violation",
    63015: "Channel Sandbox can only send messages to phone numbers that have joined the Sandbox",
    63016: "Failed to send freeform message because you are outside the allowed window",
    63018: "Rate limit exceeded for Channel",
    63019: "Media failed to download",
    63021: "Channel invalid content error",
    63024: "Invalid message recipient",
    63027: "Template does not exist for a language and locale",
    63028: "Number of parameters provided does not match the expected number of parameters",
    63049: "Meta chose not to deliver this WhatsApp marketing message",
}
"""What Twilio says to its codes."""


def person(address: str) -> str:
    try:
        return identity(address)
    except Malformed:
        return address
