"""The one door. `Gate.admit` is the only place where a `Grant` is made; every store method takes one."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from mesh.envelope import MESH
from mesh.errors import Denied
from mesh.ports.people import Directory, Tier
from mesh.settings import IDENTITY

DRIVE_LEDGER = "ledger:drive"
"""Held by the mesh itself and by nobody else."""
OWN_SYSTEM = "system:own"
"""Held by the system owner and by nobody else."""
RESERVED = frozenset({DRIVE_LEDGER, OWN_SYSTEM})
"""No tier gives these, whatever it says."""


@dataclass(frozen=True, slots=True)
class Grant:
    """What one client may do and see, at the moment of one call. Not serialisable on purpose: it never travels."""

    client: str
    permissions: frozenset[str]
    tier: str
    sees_all: bool = False
    """The system owner's privilege: the visibility filter is not applied, and the read is logged."""
    refusal: str = field(default="", repr=False)

    def covers(self, permission: str) -> bool:
        return self.sees_all or permission in self.permissions

    def require(self, permission: str) -> None:
        if not self.covers(permission):
            raise Denied(self.refusal, detail=f"tier {self.tier or 'unknown'} lacks {permission}")

    def limited_to(self) -> str | None:
        """Whose documents a query may return besides the global ones; None for everyone's.

        Raises `ValueError` for what is no person's identity: a filter by it must not be built.
        """
        if self.sees_all:
            return None
        if not IDENTITY.fullmatch(self.client):
            raise ValueError("a store was asked on behalf of nobody")
        return self.client


def upkeep() -> Grant:
    """For the knowledge agent's work on its own stores, which nobody asked for: it sees every document."""
    return Grant(MESH, frozenset(), tier=MESH, sees_all=True)


def as_seen_by(owner: Grant, client: str) -> Grant:
    """For telling the system owner what a client may see; it covers nothing. Raises `Denied` for anybody else."""
    if not owner.sees_all:
        raise Denied(owner.refusal, detail="what another may see is told to the system owner alone")
    return Grant(client, frozenset(), tier="")


class Gate:
    """Looks the client up, and lets in what its tier names. An unknown, blocked or unreadable one gets nothing.

    Looked-up principals are kept for `fresh_for` seconds (at most 2, so that a revocation is felt at once);
    `fresh=True` looks again, and is used before a reply is sent.
    """

    def __init__(
        self,
        directory: Directory,
        *,
        system_owner: str,
        unknown_tier: str,
        fresh_for: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._directory = directory
        self._system_owner = system_owner
        self._unknown_tier = unknown_tier
        self._fresh_for = min(fresh_for, 2.0)
        self._clock = clock
        self._kept: dict[str, tuple[float, Grant]] = {}

    async def admit(self, client: str, needs: str, *, fresh: bool = False) -> Grant:
        """Raises `Denied` with the tier's own words, or `Unavailable` when the directory can't be read."""
        grant = await self._grant(client, fresh)
        grant.require(needs)
        return grant

    async def _grant(self, client: str, fresh: bool) -> Grant:
        if client == MESH:
            return Grant(MESH, frozenset({DRIVE_LEDGER}), tier=MESH)
        now = self._clock()
        kept = self._kept.get(client)
        if kept and not fresh and now - kept[0] < self._fresh_for:
            return kept[1]
        grant = await self._look_up(client)
        if len(self._kept) > 10_000:
            self._kept.clear()
        self._kept[client] = (now, grant)
        return grant

    async def _look_up(self, client: str) -> Grant:
        known = await self._directory.client(client)
        if known and known.blocked:
            return Grant(client, frozenset(), tier="blocked", refusal="This number has been blocked by the owner.")
        if client == self._system_owner:
            return Grant(client, frozenset(), tier="system_owner", sees_all=True)
        name = known.tier if known else self._unknown_tier
        tier = await self._directory.tier(name) or Tier(name=name, permissions=frozenset())
        return Grant(client, tier.permissions - RESERVED, tier=tier.name, refusal=tier.refusal)
