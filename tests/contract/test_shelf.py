"""The promises of the port `Shelf`."""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mesh.access import Grant, upkeep
from mesh.adapters.shelf import DiskShelf
from mesh.envelope import digest
from mesh.errors import Denied, Misconfigured
from mesh.ports import Document, Part, Shelf, Visibility

ASHA = Grant("+15551230001", frozenset(), tier="default")
BELA = Grant("+15551230002", frozenset(), tier="default")
OWNER = Grant("+15550000000", frozenset(), tier="system_owner", sees_all=True)


@pytest.fixture
async def shelf(tmp_path: Path) -> Shelf:
    return await DiskShelf.open(tmp_path / "shelf")


def document(
    raw: bytes, owner: Grant = ASHA, name: str = "Contract.md", visibility: Visibility = "private"
) -> Document:
    return Document(
        document_id=digest(owner.client, name),
        owner=owner.client,
        name=name,
        visibility=visibility,
        sha256=hashlib.sha256(raw).hexdigest(),
        size=len(raw),
        media_type="text/markdown",
        ingested_at=datetime(2026, 1, 2, tzinfo=UTC),
        chunks=1,
        parts=(Part("page 1", raw.decode()), Part("page 2", "", "page 2: no text")),
    )


async def put(shelf: Shelf, raw: bytes, owner: Grant = ASHA, name: str = "Contract.md", **more: Visibility) -> Document:
    made = document(raw, owner, name, **more)
    await shelf.put(owner, made, raw, complete=True)
    return made


def files(folder: Path) -> int:
    return len(list((folder / "shelf" / "raw").iterdir()))


async def test_what_was_put_comes_back(shelf: Shelf) -> None:
    made = await put(shelf, b"one")
    assert await shelf.document(ASHA, made.document_id) == made
    assert await shelf.raw(ASHA, made.document_id) == b"one"


async def test_a_list_holds_no_text_but_says_what_could_not_be_read(shelf: Shelf) -> None:
    await put(shelf, b"one")
    (listed,) = await shelf.documents(ASHA)
    assert listed.parts == (Part("page 2", "", "page 2: no text"),)


async def test_a_page_that_was_read_in_part_keeps_its_text_and_what_is_told_of_it(shelf: Shelf) -> None:
    part = Part("page 1", "Prices 2026", "page 1: it holds a picture")
    made = replace(document(b"one"), parts=(part,))
    await shelf.put(ASHA, made, b"one", complete=True)
    assert await shelf.document(ASHA, made.document_id) == made
    (listed,) = await shelf.documents(ASHA)
    assert [part.trouble for part in listed.parts] == ["page 1: it holds a picture"]


async def test_it_is_all_there_after_a_restart(shelf: Shelf, tmp_path: Path) -> None:
    made = await put(shelf, b"one")
    await shelf.close()
    again = await DiskShelf.open(tmp_path / "shelf")
    assert await again.document(ASHA, made.document_id) == made


async def test_another_persons_private_document_does_not_exist(shelf: Shelf) -> None:
    made = await put(shelf, b"secret")
    assert await shelf.documents(BELA) == []
    assert await shelf.documents(BELA, only=[made.document_id]) == []
    assert await shelf.document(BELA, made.document_id) is None
    assert await shelf.named(BELA, made.name) == []
    assert await shelf.raw(BELA, made.document_id) is None
    await shelf.put(ASHA, document(b"secret, again"), b"secret, again", complete=False)
    assert await shelf.unfinished(BELA) == []
    assert await shelf.raw(BELA, made.document_id, unfinished=True) is None


async def test_a_global_document_exists_for_everyone(shelf: Shelf) -> None:
    made = await put(shelf, b"prices", visibility="global")
    assert [found.document_id for found in await shelf.documents(BELA)] == [made.document_id]
    assert await shelf.raw(BELA, made.document_id) == b"prices"


async def test_the_system_owner_sees_all(shelf: Shelf) -> None:
    await put(shelf, b"a")
    await put(shelf, b"b", owner=BELA)
    assert len(await shelf.documents(OWNER)) == 2


@pytest.mark.parametrize("client", ["", " ", "*", "%", "' OR 1=1 --", "mesh"])
async def test_nobody_is_not_everybody(shelf: Shelf, client: str) -> None:
    await put(shelf, b"prices", visibility="global")
    with pytest.raises(ValueError, match="nobody"):
        await shelf.documents(Grant(client, frozenset(), tier=""))


async def test_a_document_cannot_be_put_in_anothers_name(shelf: Shelf) -> None:
    with pytest.raises(Denied):
        await shelf.put(BELA, document(b"x", owner=ASHA), b"x", complete=True)
    await shelf.put(OWNER, document(b"x", owner=ASHA), b"x", complete=True)


async def test_names_are_found_whatever_their_case_ones_own_first(shelf: Shelf) -> None:
    theirs = await put(shelf, b"global", owner=BELA, name="CONTRACT.md", visibility="global")
    own = await put(shelf, b"own")
    assert [found.document_id for found in await shelf.named(ASHA, "contract.MD")] == [
        own.document_id,
        theirs.document_id,
    ]


async def test_the_old_version_stays_until_the_new_one_is_complete(shelf: Shelf, tmp_path: Path) -> None:
    old = await put(shelf, b"old")
    new = document(b"new")
    await shelf.put(ASHA, new, b"new", complete=False)
    assert await shelf.document(ASHA, old.document_id) == old
    assert await shelf.raw(ASHA, old.document_id) == b"old"
    assert await shelf.unfinished(ASHA) == [new]
    assert await shelf.raw(ASHA, old.document_id, unfinished=True) == b"new"

    await shelf.put(ASHA, new, b"new", complete=True)
    assert await shelf.document(ASHA, old.document_id) == new
    assert await shelf.unfinished(ASHA) == []
    assert files(tmp_path) == 1, "the bytes of the old version are gone"


async def test_bytes_that_another_document_has_too_are_kept(shelf: Shelf, tmp_path: Path) -> None:
    await put(shelf, b"same")
    other = await put(shelf, b"same", owner=BELA)
    assert files(tmp_path) == 1
    await put(shelf, b"changed")
    assert await shelf.raw(BELA, other.document_id) == b"same"


async def test_bytes_that_no_row_knows_are_removed_at_the_next_start(shelf: Shelf, tmp_path: Path) -> None:
    await put(shelf, b"known")
    (tmp_path / "shelf" / "raw" / ("0" * 64)).write_bytes(b"a crash came before the row")
    await DiskShelf.open(tmp_path / "shelf")
    assert files(tmp_path) == 1


async def test_bytes_must_be_those_of_the_document(shelf: Shelf) -> None:
    with pytest.raises(ValueError, match="bytes"):
        await shelf.put(ASHA, document(b"one"), b"two", complete=True)


async def test_many_may_write_at_once(shelf: Shelf, tmp_path: Path) -> None:
    other = await DiskShelf.open(tmp_path / "shelf")
    await asyncio.gather(*(put((shelf, other)[n % 2], b"%d" % n, name=f"{n}.md") for n in range(20)))
    assert len(await shelf.documents(ASHA)) == 20


async def test_a_held_document_is_held_against_other_processes_and_tasks(shelf: Shelf, tmp_path: Path) -> None:
    other = await DiskShelf.open(tmp_path / "shelf")
    order: list[str] = []
    entered = asyncio.Event()

    async def second() -> None:
        await entered.wait()
        async with other.hold("d"):
            order.append("second")

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(second())
        async with shelf.hold("d"):
            entered.set()
            async with other.hold("another"):
                order.append("first")
    assert order == ["first", "second"]


async def test_an_index_of_a_newer_version_is_refused(shelf: Shelf, tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / "shelf" / "index.sqlite")
    database.execute("PRAGMA user_version = 99")
    database.close()
    with pytest.raises(Misconfigured, match="version 99"):
        await DiskShelf.open(tmp_path / "shelf")


async def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(Misconfigured, match="file"):
        await DiskShelf.open(tmp_path / "file" / "shelf")


async def test_an_index_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "shelf").mkdir()
    (tmp_path / "shelf" / "index.sqlite").write_bytes(b"garbage " * 500)
    with pytest.raises(Misconfigured, match="can't be used"):
        await DiskShelf.open(tmp_path / "shelf")


async def test_a_document_may_become_private_again(shelf: Shelf) -> None:
    made = await put(shelf, b"x", visibility="global")
    await shelf.put(ASHA, replace(made, visibility="private"), b"x", complete=True)
    assert await shelf.documents(BELA) == []
    assert len(await shelf.documents(upkeep())) == 1
