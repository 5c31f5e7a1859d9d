"""Models: vectors, words, and what was said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from pydantic import BaseModel


Shape = TypeVar("Shape", bound="BaseModel")
Vector = Sequence[float]


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
