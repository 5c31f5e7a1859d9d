"""Files for tests of the readers, and what is read in them."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Mapping

import pytest

from agents.knowledge.parsing import Parsed, parse
from mesh.errors import Unreadable

PNG = bytes.fromhex(  # one grey dot
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63686868000003040181"
    "4b6a5f720000000049454e44ae426082"
)


def zipped(members: Mapping[str, str | bytes]) -> bytes:
    kept = io.BytesIO()
    with zipfile.ZipFile(kept, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in members.items():
            made.writestr(name, content)
    return kept.getvalue()


def changed(raw: bytes, part: str, change: Callable[[str], str]) -> bytes:
    """The archive with one of its members changed."""
    with zipfile.ZipFile(io.BytesIO(raw)) as old:
        members = {name: old.read(name) for name in old.namelist()}
    before = members[part].decode()
    after = change(before)
    assert after != before, f"{part} is as it was"
    return zipped({**members, part: after.encode()})


def texts(parsed: Parsed) -> dict[str, str]:
    return {part.label: part.text for part in parsed.parts if part.text}


async def refused(name: str, raw: bytes) -> Unreadable:
    with pytest.raises(Unreadable) as failed:
        await parse(name, raw)
    assert failed.value.user_text.startswith(name), "the person must know which file is meant"
    assert not failed.value.detail, "it was refused, and did not break the reader"
    return failed.value
