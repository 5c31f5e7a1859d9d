"""Who may what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


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
