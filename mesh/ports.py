"""What the mesh needs of the world, one protocol each. Adapters live in `mesh.adapters`; every store method takes a
`Grant` and scopes the query itself by it."""

from __future__ import annotations

from collections.abc import AsyncIterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Literal, Protocol, TypeVar

if TYPE_CHECKING:
    from pydantic import BaseModel

    from mesh.access import Grant

Shape = TypeVar("Shape", bound="BaseModel")

Vector = Sequence[float]
Visibility = Literal["private", "global"]


# ── who may what ──────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Client:
    identity: str
    name: str
    tier: str
    blocked: bool = False


@dataclass(frozen=True, slots=True)
class Tier:
    name: str
    permissions: frozenset[str]
    refusal: str = ""
    """What a person on this tier reads when something is not covered; empty for the usual words."""


class Directory(Protocol):
    """Clients and tiers. Raises `Unavailable` when it can't be read: the gate then lets nobody in."""

    async def client(self, identity: str) -> Client | None: ...
    async def tier(self, name: str) -> Tier | None: ...


class Roster(Directory, Protocol):
    """The directory as the owner edits it, from the command line."""

    async def register(self, client: Client) -> Client | None:
        """Returns what was there before. Raises `NotFound` for a tier that does not exist."""
        ...

    async def clients(self) -> list[Client]: ...
    async def tiers(self) -> list[Tier]: ...
    async def grant(self, tier: str, permissions: Sequence[str]) -> Tier:
        """Returns the tier as it was before. Raises `NotFound`."""
        ...

    async def revoke(self, tier: str, permissions: Sequence[str]) -> Tier:
        """Returns the tier as it was before. Raises `NotFound`."""
        ...

    async def seed(self, tiers: Sequence[Tier], agents: Sequence[dict[str, object]], *, again: bool = False) -> None:
        """Adds what was never there; never overwrites what the owner has changed since, nor brings back what the owner
        has deleted, except when there is nothing left, or `again`."""
        ...

    async def agents(self) -> list[dict[str, object]]: ...
    async def scale(self, agent: str, copies: int) -> dict[str, object]:
        """Returns the entry as it was before. Raises `NotFound`."""
        ...

    async def close(self) -> None: ...


# ── models ────────────────────────────────────────────────────────────────────────────────────────────────────────


class Embedder(Protocol):
    """Unit-length vectors of `dims` floats, in the order of the texts. Raises `Unavailable`."""

    dims: int
    model: str

    async def documents(self, texts: Sequence[str]) -> list[Vector]: ...
    async def queries(self, texts: Sequence[str]) -> list[Vector]: ...
    async def alike(self, texts: Sequence[str]) -> list[Vector]:
        """For comparing texts of one kind with one another: facts, sentences, example utterances."""
        ...

    async def probe(self) -> None:
        """Raises `Misconfigured` when the model is absent, or its vectors are not of `dims` numbers."""
        ...

    async def close(self) -> None: ...


class ChatModel(Protocol):
    """Answers in a given shape: the model is held to its JSON schema. One call, one answer, no conversation kept."""

    model: str
    window: int
    """In tokens: prompt and answer together. It is asked for with every call."""

    async def answer(self, system: str, prompt: str, shape: type[Shape]) -> Shape:
        """Raises `Unavailable` when the server can't be reached or fails, `TimedOut` when it takes too long, `Unfit`
        when what came is not of the shape (asked twice), and `TooLong`, before anything is sent, when the prompt
        leaves no room in the window: it is never cut silently."""
        ...

    async def probe(self) -> None:
        """Raises `Misconfigured` when the server has no such model, or one that can't chat."""
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Heard:
    """What was said in a voice note. `text` is empty when nothing was: silence, noise, or no words to be made out."""

    text: str = field(repr=False)
    language: str
    """Its code, such as `en`; empty when it is not known."""
    seconds: float
    """Of sound."""
    confidence: float
    """In [0, 1], 0 for no text. Clear speech has 0.7 and more, half-guessed words below 0.6."""


class Transcriber(Protocol):
    async def hear(self, raw: bytes, media_type: str) -> Heard:
        """Raises `TooLong` for what is longer than may be listened to, `Unreadable` for what is no sound that can be
        played, `Unavailable` when nobody can listen now; their texts are for the person."""
        ...

    async def probe(self) -> None:
        """Raises `Misconfigured` when the server has no such model, `Unavailable` when it can't be reached."""
        ...

    async def close(self) -> None: ...


# ── documents ─────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Part:
    """One page, slide or sheet, or the whole of a text file. `trouble` names what of it could not be read, and why; its
    text may be empty or not. `how` it was read: "ocr", "partly ocr", or empty for text that was there as text."""

    label: str
    text: str
    trouble: str = ""
    how: str = ""


@dataclass(frozen=True, slots=True)
class Chunk:
    index: int
    text: str
    heading_path: tuple[str, ...] = ()
    part: str = ""
    start: int = 0
    """Offset, in characters, into the text of its part."""


@dataclass(frozen=True, slots=True)
class Document:
    """`document_id` follows from owner and name; `sha256` from the bytes. The server stamps all of it."""

    document_id: str
    owner: str
    name: str
    visibility: Visibility
    sha256: str
    size: int
    media_type: str
    ingested_at: datetime
    chunks: int
    parts: tuple[Part, ...] = field(default=(), repr=False)
    becoming: Visibility | Literal[""] = ""
    """Was wished for, and not every store knows it yet: until then, the stricter of the two holds."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk that a search found. `dense` is a cosine, `sparse` a BM25 score; None where it is not known."""

    document_id: str
    source_filename: str
    """`<owner>/<name>`."""
    chunk: Chunk
    dense: float | None
    sparse: float | None
    ingested_at: datetime
    owner: str = ""
    """As the index has it: empty for a chunk without tags, which an earlier version wrote."""
    point: int | str = ""
    """Its id in the index; empty for what was not found there."""


@dataclass(frozen=True, slots=True)
class Untagged:
    """A chunk of which the index does not say who may see it."""

    point: int | str
    document_id: str
    source_filename: str
    owner: str
    """Where that is said after all; else empty."""


@dataclass(frozen=True, slots=True)
class NewNote:
    """`title` is its first words; `links` are as they were written. `replies_to` names messages, `about` documents."""

    title: str
    sha256: str
    saved_at: datetime
    """In the time zone whose day is in its name."""
    message_id: str
    """That asked for it: one message, one note."""
    said_id: str
    """Whose text it is."""
    tags: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    replies_to: tuple[str, ...] = ()
    about: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reserved:
    """A document's name. `known`: another message has saved the very same text already."""

    name: str
    known: bool = False


@dataclass(frozen=True, slots=True)
class Note:
    document_id: str
    name: str
    saved_at: datetime
    begins: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Link:
    """Two documents of which one, at least, is a note."""

    document_id: str
    other: str
    kind: Literal["link", "reply", "tag"]


class Notes(Protocol):
    """What the shelf knows of the documents that are notes."""

    async def reserve(self, grant: Grant, note: NewNote) -> Reserved:
        """A name that no document of theirs has, kept for the note from then on; the same for the same message."""
        ...

    async def noted(
        self,
        grant: Grant,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        tags: Sequence[str] = (),
    ) -> list[Note]:
        """The person's own, newest first; with all of the tags."""
        ...

    async def near(self, grant: Grant, document_ids: Sequence[str]) -> list[Link]:
        """From these documents one step along links (both ways), chains of replies and tags of few notes, over what
        the grant may see; what it may not see is as if it were not there, also in counting notes."""
        ...


class Shelf(Protocol):
    """Raw files and their index: the source of truth. Only what the grant may see exists for it."""

    @property
    def notes(self) -> Notes: ...

    async def put(self, grant: Grant, document: Document, raw: bytes, *, complete: bool) -> None:
        """Chunks follow from the parts, and are not kept. `complete=False` keeps the bytes; the version that was live
        stays live until it is put as complete."""
        ...

    async def documents(self, grant: Grant, *, only: Sequence[str] | None = None) -> list[Document]:
        """By name; of the parts, only those in trouble. `only` are document ids."""
        ...

    async def holding(
        self, grant: Grant, beginnings: Sequence[str], *, limit: int, within: Sequence[str] | None = None
    ) -> list[Document]:
        """With their text: those in which most, and the rarest, of these beginnings of words stand come first. Slow,
        and bounded: for when there is no index to ask."""
        ...

    async def document(self, grant: Grant, document_id: str) -> Document | None: ...
    async def named(self, grant: Grant, name: str) -> list[Document]:
        """By exact file name, case ignored; the grant's own before those of others."""
        ...

    async def raw(self, grant: Grant, document_id: str, *, unfinished: bool = False) -> bytes | None: ...
    async def unfinished(self, grant: Grant) -> list[Document]:
        """Versions whose ingestion was interrupted, with their parts."""
        ...

    async def own(self, grant: Grant, document_id: str, *, leaving: bool = False) -> Document | None:
        """What the grant may change or delete, whoever may see it: live, else unfinished, else (`leaving`) being
        deleted. Without its text."""
        ...

    async def wish(self, grant: Grant, document_id: str, visibility: Visibility) -> None:
        """What all its versions are becoming, until that is set. Private they are at once."""
        ...

    async def set_visibility(self, grant: Grant, document_id: str, visibility: Visibility) -> None:
        """Of all its versions."""
        ...

    async def delete(self, grant: Grant, document_id: str) -> None:
        """From then on it exists for nobody; all that is kept is that it is leaving, until it is `gone`."""
        ...

    async def leaving(self, grant: Grant) -> list[Document]: ...
    async def gone(self, grant: Grant, document_id: str) -> None:
        """The other stores have nothing of it any more, either."""
        ...

    def hold(self, document_id: str) -> AbstractAsyncContextManager[None]:
        """One ingestion of a document at a time, in all processes; the others wait."""
        ...

    async def close(self) -> None: ...


class Reranker(Protocol):
    """A second look at the first passages of a search, such as a cross-encoder takes."""

    most: int
    """So many passages are looked at again."""

    async def rerank(self, question: str, passages: Sequence[Passage]) -> Sequence[float]:
        """One number for each passage, the higher the better, in any scale. Raises `Unavailable`: the search then keeps
        its own order."""
        ...


class PassageIndex(Protocol):
    """Vectors: derived from the shelf, and made again from it."""

    async def prepare(self) -> None:
        """Makes an empty index where there is none. Raises `Misconfigured` when it was made for another model."""
        ...

    async def put(
        self,
        grant: Grant,
        document: Document,
        chunks: Sequence[Chunk],
        vectors: Sequence[Vector] | AsyncIterable[Vector],
    ) -> None:
        """Swaps: the old version answers until the new one is complete. Safe to repeat. Vectors that come one by one
        are written meanwhile, batch by batch."""
        ...

    async def search(
        self, grant: Grant, text: str, vector: Vector, *, limit: int, within: str | Sequence[str] | None = None
    ) -> list[Passage]:
        """The union of both legs, each `limit` long, unfused. `within` is a document's id, or several (or none)."""
        ...

    async def by_words(
        self, grant: Grant, text: str, *, limit: int, within: str | Sequence[str] | None = None
    ) -> list[Passage]:
        """One leg of a search, which needs no vector: nothing for a text without words."""
        ...

    async def by_meaning(
        self,
        grant: Grant,
        vector: Vector,
        *,
        limit: int,
        within: str | Sequence[str] | None = None,
        besides: Sequence[Passage] = (),
    ) -> list[Passage]:
        """The other leg, and the passages `besides` with their cosines; those that the grant may not see have none."""
        ...

    async def called(
        self, grant: Grant, names: Sequence[str], text: str, vector: Vector, *, limit: int
    ) -> list[Passage]:
        """A search among the passages that have one of the names (`mesh.names`)."""
        ...

    async def indexed(self, grant: Grant, *, visibility: Visibility | None = None) -> set[str]:
        """Ids of the documents that have passages (of that visibility)."""
        ...

    async def set_visibility(self, grant: Grant, document_id: str, visibility: Visibility) -> None: ...
    async def delete(self, grant: Grant, document_id: str) -> None: ...

    async def untagged(
        self, grant: Grant, *, after: int | str | None = None
    ) -> tuple[int, list[Untagged], int | str | None]:
        """How many there are, a page of them, and after which the next one begins. Raises `Denied` for anybody but the
        system owner."""
        ...

    async def tag(self, grant: Grant, chunks: Sequence[Untagged], *, document_id: str, owner: str, name: str) -> None:
        """Private from then on: these are of that document. Raises `Denied` as `untagged`."""
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Calibration:
    """How strict to be with what somebody sees, as its own sentences told."""

    model: str
    """Whose vectors told it: it holds for no other's."""
    corpus: str
    """Fingerprint of the documents that told it."""
    asked: int
    stricter: float
    """Logits that an answer must have more than by default; below 0, fewer."""


class Calibrations(Protocol):
    async def of(self, grant: Grant) -> Calibration | None:
        """Learnt from the grant's own documents, else from those that everybody sees; never from another's."""
        ...

    async def keep(self, grant: Grant, learnt: Mapping[str, Calibration]) -> dict[str, Calibration]:
        """By the identity of who sees it, "" for what everybody sees. All that was kept before goes, and what was of
        the same viewers is returned. Raises `Denied` for all but the system owner."""
        ...


class EmbeddingCache(Protocol):
    """Vectors that were made before. Each is of one document, and found for no other, whatever its words. Derived: it
    may lack anything at any time, and never fails but where it must forget."""

    async def known(self, grant: Grant, document: Document, texts: Sequence[str]) -> dict[str, Vector]:
        """By text; only those that it has."""
        ...

    async def keep(self, grant: Grant, document: Document, vectors: Mapping[str, Vector]) -> None:
        """By text."""
        ...

    async def forget(self, grant: Grant, document_id: str, *, unused_since: float | None = None) -> None:
        """All of a document, or what was neither asked for nor kept since then (seconds since the epoch). Raises
        `Unavailable`."""
        ...

    async def close(self) -> None: ...


# ── memory ────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Fact:
    fact_id: str
    text: str
    told_at: datetime
    message_id: str = ""
    similarity: float = 1.0
    """Cosine to what was asked, as the store measured it; before recency."""
    superseded_by: str = ""
    """Empty while it is live."""


class FactStore(Protocol):
    """What people told, each person's apart. There is no way to name another person: the grant is the person."""

    async def add(self, grant: Grant, text: str, *, told_at: datetime, message_id: str) -> Fact: ...
    async def nearest(self, grant: Grant, about: str, *, limit: int) -> list[Fact]:
        """Live facts only, most similar first."""
        ...

    async def all(self, grant: Grant, *, superseded: bool = False) -> list[Fact]:
        """Live facts (and those that were replaced), oldest first."""
        ...

    async def told_in(self, grant: Grant, message_id: str) -> list[Fact]:
        """What one message gave, live or not: so that a message told twice is stored once."""
        ...

    async def supersede(self, grant: Grant, fact_id: str, *, by: str, at: datetime) -> None:
        """Keeps the fact, out of the ranking. Raises `NotFound` for what is not this person's."""
        ...

    async def erase(self, grant: Grant, fact_ids: Sequence[str] | None = None) -> None:
        """Out of everything that the store keeps of them; None: all that is this person's. Safe to repeat."""
        ...

    async def close(self) -> None: ...


# ── the channel ───────────────────────────────────────────────────────────────────────────────────────────────────


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
