from __future__ import annotations

import pytest

from mesh.access import Gate
from mesh.envelope import MESH
from mesh.errors import Denied, Unavailable
from mesh.ports.people import Client, Tier
from tests.people import ASHA, OWNER, STRANGER, Directory


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def gate(directory: Directory, clock: Clock | None = None) -> Gate:
    return Gate(directory, system_owner=OWNER, unknown_tier="stranger", clock=clock or Clock())


async def test_a_permission_that_the_tier_names_is_granted() -> None:
    directory = Directory()
    directory.allow(ASHA, "knowledge:search")
    grant = await gate(directory).admit(ASHA, "knowledge:search")
    assert grant.client == ASHA
    assert not grant.sees_all


async def test_a_permission_that_the_tier_does_not_name_is_denied() -> None:
    directory = Directory()
    directory.allow(ASHA, "knowledge:search")
    with pytest.raises(Denied):
        await gate(directory).admit(ASHA, "documents:publish")


async def test_a_stranger_is_refused_in_the_words_of_the_owners_tier() -> None:
    directory = Directory(known={"stranger": Tier("stranger", frozenset(), refusal="Members only.")})
    with pytest.raises(Denied, match="Members only"):
        await gate(directory).admit(STRANGER, "chat:converse")


async def test_a_client_on_a_tier_that_does_not_exist_gets_nothing() -> None:
    directory = Directory(people={ASHA: Client(ASHA, "Asha", "platinum")})
    with pytest.raises(Denied):
        await gate(directory).admit(ASHA, "chat:converse")


async def test_a_directory_that_cannot_be_read_lets_nobody_in() -> None:
    directory = Directory(down=True)
    for identity in (ASHA, STRANGER, OWNER):
        with pytest.raises(Unavailable):
            await gate(directory).admit(identity, "chat:converse")


async def test_a_revocation_is_felt_within_a_second_and_at_once_when_asked_afresh() -> None:
    directory, clock = Directory(), Clock()
    directory.allow(ASHA, "knowledge:search")
    door = gate(directory, clock)
    await door.admit(ASHA, "knowledge:search")
    directory.allow(ASHA)
    with pytest.raises(Denied):
        await door.admit(ASHA, "knowledge:search", fresh=True)
    directory.allow(ASHA, "knowledge:search")
    await door.admit(ASHA, "knowledge:search", fresh=True)
    directory.allow(ASHA)
    clock.now += 1.0
    with pytest.raises(Denied):
        await door.admit(ASHA, "knowledge:search")


async def test_the_directory_is_not_asked_twice_within_a_second() -> None:
    directory = Directory()
    directory.allow(ASHA, "knowledge:search")
    door = gate(directory)
    for _ in range(5):
        await door.admit(ASHA, "knowledge:search")
    assert directory.looked_up == 1


async def test_a_blocked_client_gets_nothing_even_as_the_system_owner() -> None:
    directory = Directory()
    directory.allow(OWNER, "chat:converse")
    directory.block(OWNER)
    with pytest.raises(Denied, match="blocked"):
        await gate(directory).admit(OWNER, "chat:converse")


async def test_the_system_owner_sees_all() -> None:
    grant = await gate(Directory()).admit(OWNER, "documents:publish")
    assert grant.sees_all


async def test_the_mesh_itself_may_drive_the_ledger_and_read_nothing() -> None:
    door = gate(Directory())
    await door.admit(MESH, "ledger:drive")
    for permission in ("chat:converse", "knowledge:search", "memory:recall"):
        with pytest.raises(Denied):
            await door.admit(MESH, permission)


async def test_nobody_else_may_drive_the_ledger() -> None:
    directory = Directory()
    directory.allow(ASHA, "chat:converse")
    with pytest.raises(Denied):
        await gate(directory).admit(ASHA, "ledger:drive")
