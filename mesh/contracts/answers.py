"""What every agent speaks of: a message to be answered, an answer, and what it stands on."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from mesh.envelope import Wire


class Nothing(Wire):
    pass


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
