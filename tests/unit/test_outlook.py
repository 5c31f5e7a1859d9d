"""What Outlook's messages yield: OLE files, made here byte by byte, since no library writes them."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from agents.knowledge.parsing import Parsed, parse
from agents.knowledge.reading.rtf import text_of, unpacked
from tests.unit.office_files import refused, texts

Tree = dict[str, Any]
"""A storage: bytes for a stream, another tree for a storage."""
FREE, END, FAT = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD
SENT = "__properties_version1.0"


def ole(tree: Tree) -> bytes:
    """Sector 0 the table of sectors, 1 that of the small ones, then the directory, then all streams as small ones."""
    entries: list[list[Any]] = [["Root Entry", 5, FREE, FREE, b""]]

    def add(children: Tree, parent: int) -> None:
        last = 0
        for name, content in children.items():
            place = len(entries)
            is_storage = isinstance(content, dict)
            entries.append([name, 1 if is_storage else 2, FREE, FREE, b"" if is_storage else content])
            entries[last or parent][2 if last else 3] = place
            last = place
            if is_storage:
                add(content, place)

    add(tree, 0)
    small, small_chain, starts = b"", list[int](), []
    for *_, raw in entries:
        count = -(-len(raw) // 64)
        starts.append(len(small_chain) if count else END)
        small_chain += [len(small_chain) + step + 1 for step in range(count - 1)] + [END] * bool(count)
        small += raw.ljust(count * 64, b"\0")
    of_directory, of_content = -(-len(entries) // 4), -(-len(small) // 512)
    starts[0], entries[0][4] = 2 + of_directory, small
    chain = [FAT, END, *range(3, 2 + of_directory), END, *range(starts[0] + 1, starts[0] + of_content), END]
    directory = b""
    for (name, kind, right, child, raw), start in zip(entries, starts, strict=True):
        wide = name.encode("utf-16-le")
        directory += wide.ljust(64, b"\0") + struct.pack("<HBBIII", len(wide) + 2, kind, 1, FREE, right, child)
        directory += bytes(36) + struct.pack("<IQ", start, len(raw))
    header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16) + struct.pack("<HHHHH6x", 0x3E, 3, 0xFFFE, 9, 6)
    header += struct.pack("<9I", 0, 1, 2, 0, 4096, 1, 1, END, 0) + struct.pack("<109I", 0, *[FREE] * 108)
    tables = b"".join(struct.pack("<128I", *each, *[FREE] * (128 - len(each))) for each in (chain, small_chain))
    return header + tables + directory.ljust(of_directory * 512, b"\0") + small.ljust(of_content * 512, b"\0")


def wide(tag: str, text: str) -> Tree:
    return {f"__substg1.0_{tag}001F": text.encode("utf-16-le")}


def fixed(header: int, **values: int) -> Tree:
    """Properties of a size that is known, by their numbers."""
    kept = b"".join(struct.pack("<HHIQ", 0x40, int(tag[1:], 16), 6, value) for tag, value in values.items())
    return {SENT: bytes(header) + kept}


def message(text: str = "The cut costs 25 €.", more: Tree | None = None, header: int = 32) -> Tree:
    head = wide("0037", "Prices") | wide("0C1A", "Ada") | wide("5D01", "ada@example.org") | wide("0E04", "Bo")
    sent = {"x0039": 133_162_924_800_000_000}
    return fixed(header, **sent) | head | (wide("1000", text) if text else {}) | (more or {})


HEAD = "From: Ada <ada@example.org>\nTo: Bo\nDate: Fri, 23 Dec 2022 18:08 UTC\nSubject: Prices"


async def read(tree: Tree) -> Parsed:
    return await parse("mail.msg", ole(tree))


async def test_a_message_is_its_head_and_its_words() -> None:
    parsed = await read(message())
    assert parsed.media_type == "application/vnd.ms-outlook"
    assert texts(parsed) == {"message": f"{HEAD}\n\nThe cut costs 25 €."}


async def test_attachments_are_read_and_so_are_messages_within() -> None:
    notes = fixed(8) | wide("3707", "notes.txt") | {"__substg1.0_37010102": b"plain notes"}
    inner = fixed(8) | wide("3001", "Fwd") | {"__substg1.0_3701000D": message("Inner words.", header=24)}
    parsed = await read(message(more={"__attach_version1.0_#00000000": notes, "__attach_version1.0_#00000001": inner}))
    assert texts(parsed) == {
        "message": f"{HEAD}\n\nThe cut costs 25 €.",
        "attachment notes.txt": "plain notes",
        "attachment Fwd › message": f"{HEAD}\n\nInner words.",
    }


async def test_an_object_of_another_program_is_named() -> None:
    thing = fixed(8) | wide("3001", "Drawing") | {"__substg1.0_3701000D": {"CONTENTS": b"x"}}
    parsed = await read(message(more={"__attach_version1.0_#00000000": thing}))
    assert parsed.troubles == ("attachment Drawing: it is an object of another program, which I can't read",)


async def test_words_that_are_kept_as_a_page_or_as_rich_text_are_read() -> None:
    page = await read(message("", {"__substg1.0_10130102": b"<h1>Rooms</h1><p>Blue"}))
    assert "# Rooms\n\nBlue" in texts(page)["message"]
    rich = rb"{\rtf1\ansi\ansicpg1252{\fonttbl{\f0 Arial;}}\pard Cut: 25 \'80\par \u1062?ena}"
    packed = struct.pack("<II4sI", len(rich) + 12, len(rich), b"MELA", 0) + rich
    assert "Cut: 25 €\nЦena" in texts(await read(message("", {"__substg1.0_10090102": packed})))["message"]


async def test_old_messages_are_decoded_by_their_code_page() -> None:
    tree = message("") | {"__substg1.0_1000001E": "Стрижка".encode("cp1251")}
    tree |= {SENT: bytes(32) + struct.pack("<HHIQ", 3, 0x3FFD, 6, 1251)}
    assert "Стрижка" in texts(await read(tree))["message"]


async def test_an_encrypted_message_is_refused_and_a_damaged_one_too() -> None:
    assert (await refused("mail.msg", ole(message("") | wide("001A", "IPM.Note.SMIME")))).kind == "password"
    for length in (1500, len(ole(message())) - 600):
        assert (await refused("mail.msg", ole(message())[:length])).kind == "corrupt"


# ── rich text ─────────────────────────────────────────────────────────────────────────────────────────────────────

PACKED = bytes.fromhex(
    "2d0000002b0000004c5a4675f1c5c7a703000a007263706731323542320af32068656c090020627705b06c647d0a800fa0"
)
"""The example of MS-OXRTFCP, 4.1."""


def test_rich_text_is_unpacked_as_its_specification_says() -> None:
    assert unpacked(PACKED) == b"{\\rtf1\\ansi\\ansicpg1252\\pard hello world}\r\n"


@pytest.mark.parametrize("length", range(0, len(PACKED), 3))
def test_rich_text_that_is_cut_off_is_unpacked_as_far_as_it_goes(length: int) -> None:
    assert b"{\\rtf1\\ansi\\ansicpg1252\\pard hello world}\r\n".startswith(unpacked(PACKED[:length]))


def test_the_tags_of_a_page_within_rich_text_are_no_words() -> None:
    raw = rb"{\rtf1\fromhtml1{\*\htmltag64 <p>}\htmlrtf {\htmlrtf0 Cut: 25\htmlrtf }\htmlrtf0 {\*\htmltag72 </p>}}"
    assert text_of(raw).strip() == "Cut: 25"
