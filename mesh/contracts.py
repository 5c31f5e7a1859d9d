"""The skills of the mesh's own agents, and what they take and return. Agents meet here and never import one another."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal

from mesh.access import DRIVE_LEDGER, OWN_SYSTEM
from mesh.envelope import Wire
from mesh.ports import InboundKind
from mesh.skills import Card, Skill


class Nothing(Wire):
    pass


# ── evidence and answers ──────────────────────────────────────────────────────────────────────────────────────────


class Source(Wire):
    """What a claim stands on."""

    kind: Literal["document", "memory", "tool"]
    """`tool`: what an agent or a calculation returned, without a document behind it."""
    name: str
    """A file name without its owner, when the person said it, or which tool."""
    section: str = ""
    quote: str = ""
    reference: str = ""
    """`document_id#chunk` or a fact's id."""

    @property
    def label(self) -> str:
        return f"{self.name} › {self.section}" if self.section else self.name


class Memory(Wire):
    fact_id: str
    text: str
    told_at: datetime
    score: float


class Line(Wire):
    """One line of the conversation so far."""

    who: Literal["person", "mesh"]
    text: str


class Ask(Wire):
    """What every routable skill takes. The order is fixed: memory, history, message."""

    memories: tuple[Memory, ...] = ()
    history: tuple[Line, ...] = ()
    text: str
    message_id: str = ""


class Answer(Wire):
    """`grounded=False`: this skill has nothing that the message could stand on; another may."""

    text: str = ""
    sources: tuple[Source, ...] = ()
    grounded: bool = False
    confidence: float = 0.0
    unanswered: tuple[str, ...] = ()
    """Questions of the message that the answer says nothing of."""
    steps: tuple[str, ...] = ()
    """What was done for it, in order, where that was more than one thing."""


# ── orchestrator ──────────────────────────────────────────────────────────────────────────────────────────────────


class SentFile(Wire):
    """A file of a person's message, not fetched yet: `mesh.ports.Attachment` on the wire."""

    reference: str
    media_type: str = ""
    name: str = ""


class Turn(Wire):
    chat: str
    text: str
    media: int = 0
    message_id: str
    history: tuple[Line, ...] = ()
    kind: InboundKind = "text"
    files: tuple[SentFile, ...] = ()
    quoted: str = ""
    button: str = ""


ANSWER = "turn:"


class Piece(Wire):
    """One message of the provider's. `document_id` names a file to be shown; its link is made when it is sent."""

    text: str = ""
    document_id: str = ""
    """Or `ANSWER` and a turn's id: that reply, as a file."""
    name: str = ""
    """Of that file."""
    template: str = ""
    """The provider's id of a text that may be sent while its person's window is closed."""


class Reply(Wire):
    """`pieces` is how it is sent, in order; empty: as one text."""

    text: str
    pieces: tuple[Piece, ...] = ()
    silent: str = ""
    """Why nothing is sent at all: `opted out`, `handed over`, `a reaction`. Recorded, never lost."""
    regardless: bool = False
    """Is sent to who opted out, or was handed over, too: it confirms just that."""
    sources: tuple[Source, ...] = ()
    skill: str = ""
    """Which skill answered; empty for the orchestrator's own words."""
    steps: tuple[str, ...] = ()
    """`skill outcome milliseconds`, in order: why it said that."""


class Chat(Wire):
    chat: str


CONVERSE = Skill(
    name="orchestrator.converse",
    takes=Turn,
    returns=Reply,
    needs="chat:converse",
    within=timedelta(minutes=10),
    fresh=True,
)
TAKE_TURNS = Skill(
    name="orchestrator.take_turns",
    takes=Chat,
    returns=Nothing,
    needs=DRIVE_LEDGER,
    within=timedelta(minutes=10),
)
CLEAR_TO_SEND = Skill(
    name="orchestrator.clear_to_send",
    takes=Nothing,
    returns=Nothing,
    needs="chat:converse",
    within=timedelta(seconds=5),
    fresh=True,
)

# ── knowledge: the read paths, ingestion, and answers ─────────────────────────────────────────────────────────


class DocumentCard(Wire):
    document_id: str
    name: str
    owner: str
    visibility: Literal["private", "global"]
    size: int
    chunks: int
    ingested_at: datetime
    troubles: tuple[str, ...] = ()
    becoming: Literal["", "private", "global"] = ""
    """What its owner wished for, and not every store knows yet."""
    note: bool = False
    """One of the asker's own notes."""


class DocumentCards(Wire):
    documents: tuple[DocumentCard, ...]


class Found(Wire):
    document: DocumentCard
    passage: str
    heading_path: tuple[str, ...]
    part: str
    similarity: float
    """The cosine to what was asked; the order is by more than that. No word weight is told: it would tell how many of
    the documents that one may not see hold the word."""


class Findings(Wire):
    found: tuple[Found, ...]
    level: str = "hybrid"
    """Which level of the cascade answered."""


class Search(Wire):
    text: str
    limit: int = 4


class SearchWithin(Wire):
    document_id: str
    text: str
    limit: int = 5


class DocumentName(Wire):
    name: str
    """A file name, or words about what is in it."""


class DocumentRef(Wire):
    document_id: str


class DocumentText(Wire):
    document: DocumentCard
    text: str


class PartRead(Wire):
    """A page, slide or sheet: how much was read of it, how, and what was not."""

    label: str
    characters: int
    how: str = ""
    trouble: str = ""


class ChunkKept(Wire):
    heading_path: tuple[str, ...]
    part: str
    text: str


class DocumentParts(Wire):
    document: DocumentCard
    parts: tuple[PartRead, ...]
    chunks: tuple[ChunkKept, ...]


class DocumentFile(Wire):
    document: DocumentCard
    media_type: str
    raw: bytes


class Ingest(Wire):
    name: str
    raw: bytes
    owner: str = ""
    """Somebody else's document: only the system owner may say so."""
    visibility: Literal["private", "global"] = "private"


class Ingested(Wire):
    document: DocumentCard
    outcome: Literal["added", "replaced", "unchanged"]
    parts: int
    troubles: tuple[str, ...] = ()
    """Each part of which something could not be read, and why."""


class SaveNote(Wire):
    """`message_id` asked for it, `said_id` is the message whose text it is (empty: the same). It replied to
    `replies_to`, nearest first, and those messages are about the documents `about`."""

    text: str
    message_id: str
    said_id: str = ""
    replies_to: tuple[str, ...] = ()
    about: tuple[str, ...] = ()


class NoteSaved(Wire):
    """`unchanged`: another message has saved the same text already. Tags and links as they were written."""

    document: DocumentCard
    outcome: Literal["added", "unchanged"]
    tags: tuple[str, ...] = ()
    links: tuple[str, ...] = ()


class NotesWanted(Wire):
    """The asker's own notes: saved since then and before `until`, with all of the tags."""

    since: datetime | None = None
    until: datetime | None = None
    tags: tuple[str, ...] = ()
    about: str = ""
    """Only those that name it, best first; where none does, the nearest ones."""
    limit: int = 10


class NoteCard(Wire):
    document_id: str
    name: str
    saved_at: datetime
    begins: str


class NotesFound(Wire):
    notes: tuple[NoteCard, ...]
    more: int = 0
    nearest: bool = False
    """None names what was asked for: these are the nearest."""


_READ = "knowledge:search"

RETRIEVE_KNOWLEDGE_BASE = Skill(
    name="knowledge.retrieve_knowledge_base",
    takes=Search,
    returns=Findings,
    needs=_READ,
    within=timedelta(seconds=15),
)
SEARCH_WITHIN_DOCUMENT = Skill(
    name="knowledge.search_within_document",
    takes=SearchWithin,
    returns=Findings,
    needs=_READ,
    within=timedelta(seconds=15),
)
FIND_SOURCE_DOCUMENT = Skill(
    name="knowledge.find_source_document",
    takes=DocumentName,
    returns=DocumentCards,
    needs=_READ,
    within=timedelta(seconds=15),
)
GET_DOCUMENT_TEXT = Skill(
    name="knowledge.get_document_text",
    takes=DocumentRef,
    returns=DocumentText,
    needs=_READ,
    within=timedelta(seconds=15),
)
GET_DOCUMENT = Skill(
    name="knowledge.get_document",
    takes=DocumentRef,
    returns=DocumentFile,
    needs=_READ,
    within=timedelta(seconds=15),
)
LIST_DOCUMENTS = Skill(
    name="knowledge.list_documents",
    takes=Nothing,
    returns=DocumentCards,
    needs=_READ,
    within=timedelta(seconds=15),
)
SHOW_DOCUMENT = Skill(
    name="knowledge.show_document",
    takes=DocumentRef,
    returns=DocumentParts,
    needs=_READ,
    within=timedelta(seconds=15),
)
FIND_NOTES = Skill(
    name="knowledge.find_notes",
    takes=NotesWanted,
    returns=NotesFound,
    needs=_READ,
    within=timedelta(seconds=15),
)
READ_PATHS = (
    RETRIEVE_KNOWLEDGE_BASE,
    SEARCH_WITHIN_DOCUMENT,
    FIND_SOURCE_DOCUMENT,
    GET_DOCUMENT_TEXT,
    GET_DOCUMENT,
    LIST_DOCUMENTS,
    SHOW_DOCUMENT,
)
OWN_READ_PATHS = (FIND_NOTES,)
"""Show the asker's own alone, also to the system owner."""


class Visible(Wire):
    document_id: str
    visibility: Literal["private", "global"]


SET_VISIBILITY = Skill(
    name="knowledge.set_visibility",
    takes=Visible,
    returns=DocumentCard,
    needs="documents:add",
    within=timedelta(seconds=30),
    fresh=True,
)
"""Of one's own document. `global` takes `documents:publish` besides."""
DELETE_DOCUMENT = Skill(
    name="knowledge.delete_document",
    takes=DocumentRef,
    returns=DocumentCard,
    needs="documents:add",
    within=timedelta(seconds=30),
    fresh=True,
)
"""One's own, out of every store."""


class ReadFolders(Wire):
    """`turn`: how many times there was not enough time before."""

    turn: int = 0


class FolderRead(Wire):
    """What a look at a watched folder came to, in files. `trouble` is why it could not be looked at."""

    path: str
    files: int = 0
    added: int = 0
    withdrawn: int = 0
    refused: int = 0
    later: int = 0
    left: int = 0
    trouble: str = ""


class FoldersRead(Wire):
    folders: tuple[FolderRead, ...]


READ_FOLDERS = Skill(
    name="knowledge.read_folders",
    takes=ReadFolders,
    returns=FoldersRead,
    needs=OWN_SYSTEM,
    kept=True,
    within=timedelta(minutes=10),
)
"""Those of the settings. It is asked for every hour, and asks itself again where there was not enough time."""


class TagChunks(Wire):
    """`after` is what the page before said is `following`."""

    dry_run: bool = True
    after: int | str | None = None


class TaggedDocument(Wire):
    name: str
    owner: str
    shelved: bool
    """Whether its file is here, too."""
    chunks: int


class TaggedChunks(Wire):
    """One page. `left` is how many there were before it; `following` is None after the last one."""

    left: int
    documents: tuple[TaggedDocument, ...]
    following: int | str | None = None


TAG_CHUNKS = Skill(
    name="knowledge.tag_chunks",
    takes=TagChunks,
    returns=TaggedChunks,
    needs=OWN_SYSTEM,
    within=timedelta(seconds=60),
    fresh=True,
)
"""Of chunks that do not say who may see them, a page becomes private."""


class WhyWithheld(Wire):
    client: str
    text: str


class Held(Wire):
    reason: str
    count: int


class ReadPath(Wire):
    """One way to a document: the rule for this client, how many `counted` (documents or passages) matched without it,
    how many of them the client may see, and why not the others."""

    name: str
    rule: str
    counted: str
    matched: int
    seen: int
    held: tuple[Held, ...]


class Withheld(Wire):
    paths: tuple[ReadPath, ...]
    answered: bool
    """Whether what the client may see was enough for an answer; if not, all of it was below the floor."""


WHY_WITHHELD = Skill(
    name="knowledge.why_withheld",
    takes=WhyWithheld,
    returns=Withheld,
    needs=OWN_SYSTEM,
    within=timedelta(seconds=30),
    fresh=True,
)
"""Counts alone, for the system owner."""


class SoundOut(Wire):
    """`after` is what the page before said is `following`."""

    after: int = 0


class Sounding(Wire):
    """One question that was made from a document: how clearly it was answered with its passage, and without. Logits."""

    viewer: str
    """The client who sees it; empty for what everybody sees."""
    present: float
    removed: float


class Soundings(Wire):
    total: int
    found: tuple[Sounding, ...]
    following: int | None = None


SOUND_OUT = Skill(
    name="knowledge.sound_out",
    takes=SoundOut,
    returns=Soundings,
    needs=OWN_SYSTEM,
    within=timedelta(minutes=2),
    fresh=True,
)
"""A page of the questions by which a corpus is calibrated; nothing is kept."""


class Calibrate(Wire):
    found: tuple[Sounding, ...]


class Threshold(Wire):
    """Shares are before and after, in [0, 1]; logits are what an answer must have more than by default."""

    viewer: str
    asked: int
    before: float
    after: float
    answered: tuple[float, float]
    invented: tuple[float, float]


class Thresholds(Wire):
    learnt: tuple[Threshold, ...]


CALIBRATE = Skill(
    name="knowledge.calibrate",
    takes=Calibrate,
    returns=Thresholds,
    needs=OWN_SYSTEM,
    within=timedelta(seconds=30),
    fresh=True,
)
"""What all pages came to is kept, in the place of what was kept before."""


class Rebuild(Wire):
    document_id: str
    anew: bool = False
    """Its vectors, too: none is taken from what was embedded before."""


class Rebuilt(Wire):
    document: DocumentCard
    kept: str = ""
    """Why its text is still the one that was read earlier; empty where the file was read again."""


REBUILD = Skill(
    name="knowledge.rebuild",
    takes=Rebuild,
    returns=Rebuilt,
    needs=OWN_SYSTEM,
    within=timedelta(minutes=10),
    fresh=True,
)
"""A document's passages again, from its file as it is read today."""
INGEST = Skill(
    name="knowledge.ingest",
    takes=Ingest,
    returns=Ingested,
    needs="documents:add",
    kept=True,
    within=timedelta(minutes=10),
)
SAVE_NOTE = Skill(
    name="knowledge.save_note",
    takes=SaveNote,
    returns=NoteSaved,
    needs="documents:add",
    kept=True,
    within=timedelta(minutes=2),
)
"""As a private document of the asker's."""
ANSWER_FROM_DOCUMENTS = Skill(
    name="knowledge.answer",
    takes=Ask,
    returns=Answer,
    needs=_READ,
    kept=True,
    within=timedelta(seconds=20),
    card=Card(
        summary="Answers a question from the documents that the person may see.",
        examples=(
            "How much does a room cost?",
            "What is your refund policy?",
            "When are you open on Sunday?",
            "tell me about the cancellation rules",
            "price of the deluxe package",
            "I need the delivery times",
            "What does my contract say about notice?",
            "¿Cuánto cuesta la habitación?",
            "Do you offer parking?",
            "Who signed the agreement?",
        ),
        hears="question",
    ),
)

# ── memory ────────────────────────────────────────────────────────────────────────────────────────────────────────


class Recall(Wire):
    about: str
    limit: int = 5


class Recalled(Wire):
    memories: tuple[Memory, ...]


class Remember(Wire):
    text: str
    message_id: str
    said_at: datetime


class Remembered(Wire):
    """Texts of the facts that were new, said again, or replaced by a new one."""

    new: tuple[str, ...] = ()
    restated: tuple[str, ...] = ()
    superseded: tuple[str, ...] = ()


class Told(Wire):
    """Everything that is remembered of a person, oldest first; what was replaced is not among it."""

    memories: tuple[Memory, ...]


class Forget(Wire):
    """`about` names one thing; empty: everything."""

    about: str = ""


class Forgotten(Wire):
    texts: tuple[str, ...]
    """The facts that are gone, as they were."""


EXPORT_MEMORY = Skill(
    name="memory.export", takes=Nothing, returns=Told, needs="memory:recall", within=timedelta(seconds=10)
)
FORGET = Skill(
    name="memory.forget",
    takes=Forget,
    returns=Forgotten,
    needs="memory:write",
    within=timedelta(seconds=30),
    fresh=True,
)
"""Out of every store and log."""
RECALL = Skill(name="memory.recall", takes=Recall, returns=Recalled, needs="memory:recall", within=timedelta(seconds=4))
REMEMBER = Skill(
    name="memory.remember",
    takes=Remember,
    returns=Remembered,
    needs="memory:write",
    kept=True,
    within=timedelta(seconds=30),
)
ANSWER_FROM_MEMORY = Skill(
    name="memory.answer",
    takes=Ask,
    returns=Answer,
    needs="memory:recall",
    within=timedelta(seconds=10),
    card=Card(
        summary="Answers a question about what the person told earlier about themselves.",
        examples=(
            "What is my favourite colour?",
            "When is my birthday?",
            "What did I tell you about my allergies?",
            "What's my dog's name?",
            "Do you remember where I live?",
            "Who is my doctor?",
            "What do you know about me?",
            "¿Cuál es mi color favorito?",
        ),
        hears="question",
    ),
)
NOTE = Skill(
    name="memory.note",
    takes=Ask,
    returns=Answer,
    needs="memory:write",
    kept=True,
    within=timedelta(seconds=15),
    card=Card(
        summary="Takes in something that the person tells about themselves, or a correction of it.",
        examples=(
            "My favourite colour is blue.",
            "I am allergic to peanuts.",
            "Actually, my birthday is on 4 May.",
            "I moved to Lyon last month.",
            "Please remember that I prefer mornings.",
            "We have two children.",
            "My room number is 12.",
            "No, I meant Thursday.",
        ),
        hears="statement",
    ),
)

# ── analysis ──────────────────────────────────────────────────────────────────────────────────────────────────────

ANALYSE = Skill(
    name="analysis.ask",
    takes=Ask,
    returns=Answer,
    needs="analysis:ask",
    within=timedelta(seconds=90),
    card=Card(
        summary="Works out what takes more than one look-up: compares, adds up, picks the cheapest, follows a trail.",
        examples=(
            "How much do three nights in the double room cost for two people with breakfast?",
            "Which is cheaper, the small package or the large one?",
            "What is the difference between the standard and the premium plan?",
            "How much is left to pay after the deposit?",
            "What is your cheapest room?",
            "Compare the cancellation terms of the two rates.",
            "What do 4 adult tickets and 2 child tickets come to in total?",
            "¿Qué es más barato, la habitación doble o la suite?",
        ),
        hears="compound",
    ),
)
