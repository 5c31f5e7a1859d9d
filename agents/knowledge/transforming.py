"""What is done to a question before it is searched for; each of it can be switched off (`question_transforms`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from agents.knowledge import acronyms, hypothesis
from agents.knowledge.standalone import standalone
from mesh.contracts.answers import Line
from mesh.ports.models import ChatModel, Embedder, Vector
from mesh.questions import parts
from mesh.settings import QUESTION_TRANSFORMS


@dataclass(frozen=True, slots=True)
class Transforming:
    """`chat` says what a follow-up points to, and makes up answers; without one, rules do the first."""

    wanted: frozenset[str] = frozenset(QUESTION_TRANSFORMS)
    chat: ChatModel | None = field(default=None, repr=False)

    async def alone(self, text: str, history: Sequence[Line]) -> str:
        """Of several questions the first may name what the others point to: such a message is left as it is."""
        if "follow_ups" not in self.wanted or len(parts(text)) > 1:
            return text
        return await standalone(text, history, self.chat)

    def parts(self, text: str) -> tuple[str, ...]:
        return parts(text) if "parts" in self.wanted else (text,)

    def expanded(self, question: str, found: Iterable[str]) -> str:
        """With what its acronyms stand for, where the texts that were found for it say so."""
        if "acronyms" not in self.wanted or not acronyms.acronyms_in(question):
            return question
        return acronyms.expanded(question, acronyms.definitions(found))

    async def towards_an_answer(self, question: str, vector: Vector, embedder: Embedder) -> Vector:
        if "hyde" not in self.wanted or self.chat is None:
            return vector
        return await hypothesis.towards_an_answer(question, vector, self.chat, embedder)
