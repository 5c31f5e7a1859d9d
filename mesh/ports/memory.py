"""Facts that people told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from mesh.access import Grant


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
