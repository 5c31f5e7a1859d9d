"""The people of the tests, and a directory that holds them in memory."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from mesh.errors import Unavailable
from mesh.ports.people import Client, Tier

ASHA, BEN, OWNER, STRANGER = "+15551230001", "+15551230002", "+15550000000", "+15559990000"


@dataclass
class Directory:
    """`down` makes it unreadable."""

    people: dict[str, Client] = field(default_factory=dict)
    known: dict[str, Tier] = field(default_factory=dict)
    down: bool = False
    looked_up: int = 0

    async def client(self, identity: str) -> Client | None:
        self.looked_up += 1
        if self.down:
            raise Unavailable(detail="the directory is down")
        return self.people.get(identity)

    async def tier(self, name: str) -> Tier | None:
        return self.known.get(name)

    def allow(self, identity: str, *permissions: str) -> None:
        tier = f"tier of {identity}"
        self.known[tier] = Tier(tier, frozenset(permissions))
        self.people[identity] = Client(identity, identity, tier)

    def block(self, identity: str) -> None:
        self.people[identity] = replace(self.people[identity], blocked=True)
