"""The provider that brings people's messages, and takes ours."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

InboundKind = Literal[
    "text", "document", "image", "audio", "video", "sticker", "location", "contacts", "reaction", "button", "other"
]


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file of a person's message, not fetched yet. `reference` is the provider's (an address, or an id): only its
    adapter understands it. `media_type` and `name` are what the sender claims; `name` is often empty."""

    reference: str
    media_type: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Media:
    """A file as it was fetched. `name` is a bare file name that fits `media_type`, never a path."""

    raw: bytes = field(repr=False)
    media_type: str
    name: str


@dataclass(frozen=True, slots=True)
class Inbound:
    """A message as the provider gave it. `sender` and `recipient` are identities without the `whatsapp:` of Twilio
    when they are numbers; `fields` keeps everything, including what we do not know yet."""

    message_id: str
    sender: str
    recipient: str
    text: str
    fields: dict[str, str]
    media: int = 0
    """How many files the provider says there are."""
    kind: InboundKind = "text"
    attachments: tuple[Attachment, ...] = ()
    quoted: str = ""
    """The provider's id of the message that this one replies to."""
    button: str = ""
    """The payload of the button that was pressed; `text` is what stood on it."""

    @property
    def chat(self) -> str:
        return f"{self.recipient}|{self.sender}"


@dataclass(frozen=True, slots=True)
class Delivery:
    """What became of a message of ours: `queued`, `sent`, `delivered`, `read`, `failed` or `undelivered`."""

    provider_id: str
    state: str
    error_code: str = ""


class Channel(Protocol):
    """Sends, and looks after what was sent. Raises `Throttled`, `Ambiguous` or `Refused`."""

    limit: int
    """The longest text, in characters."""
    files: frozenset[str]
    """Endings of the names of files that it can show, such as `.pdf`. Others come as a link in a text."""

    async def send(self, *, sender: str, recipient: str, text: str, link: str = "", template: str = "") -> str:
        """Returns the provider's id. `link` is the public address of a file to be shown, with a text that may be empty;
        `template` the id of one that was approved, for when the window of 24 hours is closed: `text` is then its
        first variable."""
        ...

    async def fetch(self, attachment: Attachment, *, most_bytes: int) -> Media:
        """A person's file. Raises `NotFound` when the provider has it no more, `Unreadable` when it is too large or is
        not to be taken from where it is, `Unavailable` otherwise; their texts are for the person."""
        ...

    async def find(self, *, sender: str, recipient: str, text: str, since: datetime) -> list[str]:
        """The provider's ids of messages like this that it holds since then, oldest first: for settling an ambiguous
        send. An error says nothing about the message."""
        ...

    async def received(self, *, recipient: str, since: datetime) -> list[Inbound]:
        """What people sent to `recipient`, a number of ours, since then, oldest first: for catching up on webhooks that
        never came. The newest 500 at most; the log says when there were more. Ids are those of the webhooks, so most of
        them are known already; `fields` are fewer, and have `CaughtUp`. A provider may list a message a moment late:
        look back a little further than to the last look."""
        ...

    async def typing(self, *, sender: str, recipient: str, message_id: str) -> None:
        """Shows the person for up to 25 s, or until the next message, that an answer to theirs is on its way; marks
        theirs as read. Best effort: three seconds at most, and raises nothing."""
        ...

    async def close(self) -> None: ...
