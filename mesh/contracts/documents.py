"""The knowledge agent: the read paths, ingestion, and answers."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal

from mesh.contracts.answers import Answer, Ask, Nothing
from mesh.envelope import Wire
from mesh.skills import Card, Skill


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
READ_PATHS = (
    RETRIEVE_KNOWLEDGE_BASE,
    SEARCH_WITHIN_DOCUMENT,
    FIND_SOURCE_DOCUMENT,
    GET_DOCUMENT_TEXT,
    GET_DOCUMENT,
    LIST_DOCUMENTS,
    SHOW_DOCUMENT,
)


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
INGEST = Skill(
    name="knowledge.ingest",
    takes=Ingest,
    returns=Ingested,
    needs="documents:add",
    kept=True,
    within=timedelta(minutes=10),
)
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
