"""Whose file is read when."""

from __future__ import annotations

import asyncio

import pytest

from agents.knowledge.noting import LONGEST
from agents.knowledge.turns import Line, is_small_text


@pytest.mark.parametrize("name", ["note.md", "NOTE.TXT", "a.b.markdown"])
def test_a_text_is_small_as_long_as_a_note_may_be(name: str) -> None:
    longest = ("😀" * LONGEST).encode()
    assert is_small_text(name, longest)
    assert not is_small_text(name, longest + b"!")


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("scan.pdf", b"%PDF-1.7"),
        ("mail.eml", b"Subject: a scan"),
        ("page.html", b"<p>a picture</p>"),
        ("renamed.txt", b"%PDF-1.7\n%\xe2\xe3\xcf\xd3"),
        ("renamed.md", b"PK\x03\x04\x00\x00"),
        ("note", b"milk"),
    ],
)
def test_what_may_take_long_is_none(name: str, raw: bytes) -> None:
    assert not is_small_text(name, raw)


async def test_nobody_has_two_places_and_who_left_is_forgotten() -> None:
    line, inside, most = Line(3), list[str](), 0

    async def takes(person: str) -> None:
        nonlocal most
        async with line.turn(person):
            assert person not in inside
            inside.append(person)
            most = max(most, len(inside))
            await asyncio.sleep(0)
            inside.remove(person)

    await asyncio.gather(*(takes(person) for person in "aaaabbbbcccddddeee"))
    assert most == 3
    assert not line._persons


async def test_who_gives_up_waiting_keeps_no_place() -> None:
    line = Line(1)
    async with line.turn("a"):
        waiting = [asyncio.create_task(line.turn(person).__aenter__()) for person in "ab"]
        await asyncio.sleep(0)
        for each in waiting:
            each.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
    async with asyncio.timeout(1), line.turn("b"):
        pass
