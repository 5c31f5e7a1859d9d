"""The promises of the port `Shelf`."""

from __future__ import annotations

import asyncio
import hashlib
import random
import re
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import pytest

from mesh.access import Grant, upkeep
from mesh.adapters import shelf_tables
from mesh.adapters.shelf import DiskShelf
from mesh.envelope import digest, pseudonym
from mesh.errors import Denied, Misconfigured, Unavailable
from mesh.ports.documents import Document, Part, Shelf, Visibility
from mesh.ports.notes import NewNote
from tests.boundary import old_shelves

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
    part = Part("page 1", "Prices 2026", "page 1: it holds a picture", "partly ocr")
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


async def test_bytes_that_another_has_already_are_written_all_the_same(shelf: Shelf, tmp_path: Path) -> None:
    """How long it takes would tell. One's own are left as they are."""
    made = await put(shelf, b"same")
    kept = tmp_path / "shelf" / "raw" / made.sha256
    first = kept.stat().st_ino
    await put(shelf, b"same")
    assert kept.stat().st_ino == first
    with kept.open():  # its number is not given away meanwhile
        await put(shelf, b"same", owner=BELA)
        assert kept.stat().st_ino != first


async def test_bytes_that_were_lost_are_there_again_when_they_are_sent_again(shelf: Shelf, tmp_path: Path) -> None:
    made = await put(shelf, b"same")
    (tmp_path / "shelf" / "raw" / made.sha256).unlink()
    with pytest.raises(Unavailable):
        await shelf.raw(ASHA, made.document_id)
    await put(shelf, b"same")
    assert await shelf.raw(ASHA, made.document_id) == b"same"


async def test_bytes_that_no_row_knows_are_removed_at_the_next_start(shelf: Shelf, tmp_path: Path) -> None:
    await put(shelf, b"known")
    (tmp_path / "shelf" / "raw" / ("0" * 64)).write_bytes(b"a crash came before the row")
    await DiskShelf.open(tmp_path / "shelf")
    assert files(tmp_path) == 1


async def test_bytes_must_be_those_of_the_document(shelf: Shelf) -> None:
    with pytest.raises(ValueError, match="bytes"):
        await shelf.put(ASHA, document(b"one"), b"two", complete=True)


async def test_a_disk_that_takes_nothing_is_unavailable_whatever_is_written(shelf: Shelf, tmp_path: Path) -> None:
    made = await put(shelf, b"one")
    for name in ("lock", "holds"):
        (tmp_path / "shelf" / name).unlink(missing_ok=True)
    (tmp_path / "shelf" / "lock").mkdir()
    (tmp_path / "shelf" / "holds").write_text("no folder")
    note = NewNote(title="A", sha256=made.sha256, saved_at=made.ingested_at, message_id="m", said_id="m")
    calls: list[Callable[[], Awaitable[object]]] = [
        lambda: shelf.put(ASHA, made, b"one", complete=True),
        lambda: shelf.wish(ASHA, made.document_id, "global"),
        lambda: shelf.set_visibility(ASHA, made.document_id, "global"),
        lambda: shelf.delete(ASHA, made.document_id),
        lambda: shelf.gone(ASHA, made.document_id),
        lambda: shelf.notes.reserve(ASHA, note),
        lambda: shelf.hold(made.document_id).__aenter__(),
    ]
    for call in calls:
        with pytest.raises(Unavailable):
            await call()


async def test_who_holds_one_document_holds_up_no_other(shelf: Shelf) -> None:
    """Of a name that was chosen to share the beginning of its lock's name."""

    def slot(document_id: str) -> str:
        return hashlib.sha256(document_id.encode()).hexdigest()[:3]

    hers = digest(ASHA.client, "Contract.md")
    chosen = next(each for n in count() if slot(each := digest(BELA.client, f"{n}.md")) == slot(hers))
    async with asyncio.timeout(5), shelf.hold(chosen), shelf.hold(hers):
        pass


async def test_an_error_of_who_holds_a_document_is_not_one_of_the_shelf(shelf: Shelf) -> None:
    with pytest.raises(TimeoutError):
        async with shelf.hold("d"):
            raise TimeoutError


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


# ── one's own: who sees it, and deleting it ───────────────────────────────────────────────────────────────────────


async def test_only_the_owner_and_the_system_owner_can_change_a_document_whoever_sees_it(shelf: Shelf) -> None:
    made = await put(shelf, b"prices", visibility="global")
    assert await shelf.own(BELA, made.document_id) is None
    await shelf.set_visibility(BELA, made.document_id, "private")
    await shelf.delete(BELA, made.document_id)
    await shelf.gone(BELA, made.document_id)
    assert [found.visibility for found in await shelf.documents(BELA)] == ["global"]
    for grant in (ASHA, OWNER):
        own = await shelf.own(grant, made.document_id)
        assert own is not None
        assert own.name == made.name


async def test_that_the_system_owner_changes_a_document_is_logged(
    shelf: Shelf, caplog: pytest.LogCaptureFixture
) -> None:
    made = await put(shelf, b"prices")
    caplog.set_level("INFO")
    await shelf.set_visibility(OWNER, made.document_id, "global")
    assert f"write=documents sees_all=true client={pseudonym(OWNER.client)} document={made.document_id}" in caplog.text
    assert OWNER.client not in caplog.text


async def test_visibility_is_that_of_every_version(shelf: Shelf) -> None:
    made = await put(shelf, b"old", visibility="global")
    await shelf.put(ASHA, document(b"new", visibility="global"), b"new", complete=False)
    await shelf.set_visibility(ASHA, made.document_id, "private")
    assert await shelf.documents(BELA) == []
    assert [version.visibility for version in await shelf.unfinished(ASHA)] == ["private"]


async def test_a_deleted_document_exists_for_nobody_and_is_known_to_be_leaving(shelf: Shelf, tmp_path: Path) -> None:
    made = await put(shelf, b"live", visibility="global")
    await shelf.put(ASHA, document(b"a later version"), b"a later version", complete=False)
    await shelf.delete(ASHA, made.document_id)
    for grant in (ASHA, BELA, OWNER):
        assert await shelf.documents(grant) == []
        assert await shelf.document(grant, made.document_id) is None
        assert await shelf.named(grant, made.name) == []
        assert await shelf.raw(grant, made.document_id) is None
        assert await shelf.raw(grant, made.document_id, unfinished=True) is None
        assert await shelf.unfinished(grant) == []
    assert files(tmp_path) == 0
    assert await shelf.own(ASHA, made.document_id) is None
    assert await shelf.own(BELA, made.document_id, leaving=True) is None
    (leaving,) = await shelf.leaving(upkeep())
    assert leaving == await shelf.own(ASHA, made.document_id, leaving=True)
    await shelf.gone(ASHA, made.document_id)
    assert await shelf.leaving(upkeep()) == []


async def test_a_document_that_was_never_complete_can_be_deleted(shelf: Shelf, tmp_path: Path) -> None:
    made = document(b"half")
    await shelf.put(ASHA, made, b"half", complete=False)
    await shelf.delete(ASHA, made.document_id)
    assert await shelf.unfinished(ASHA) == []
    assert len(await shelf.leaving(upkeep())) == 1
    assert files(tmp_path) == 0


async def test_what_was_sent_again_while_it_was_leaving_stays(shelf: Shelf) -> None:
    made = await put(shelf, b"one")
    await shelf.delete(ASHA, made.document_id)
    again = await put(shelf, b"two")
    assert await shelf.leaving(upkeep()) == []
    assert await shelf.document(ASHA, made.document_id) == again
    await shelf.delete(ASHA, made.document_id)
    await shelf.put(ASHA, document(b"three"), b"three", complete=False)
    await shelf.delete(ASHA, made.document_id)
    assert len(await shelf.leaving(upkeep())) == 1


@pytest.mark.parametrize("how", ["deleted", "replaced"])
async def test_no_byte_of_what_is_gone_stays_in_the_folder(shelf: Shelf, tmp_path: Path, how: str) -> None:
    canary = b"KANARIENVOGEL " * 900  # over many pages of SQLite
    made = await put(shelf, canary)
    await put(shelf, b"another", name="other.md")
    if how == "deleted":
        await shelf.delete(ASHA, made.document_id)
        await shelf.gone(ASHA, made.document_id)
    else:
        await put(shelf, b"new")
    holding = [file for file in (tmp_path / "shelf").rglob("*") if file.is_file() and b"KANARIEN" in file.read_bytes()]
    assert holding == []


async def test_no_piece_of_a_deleted_document_stays_between_those_of_others(shelf: Shelf, tmp_path: Path) -> None:
    """SQLite leaves pieces behind where it splits a page: it takes some documents to see one."""
    numbers = random.Random(2)  # with this one, a page keeps some without VACUUM
    made = []
    for number in range(60):
        parts = [Part(f"page {n}", f"KANARI{number}- " * numbers.randint(1, 60)) for n in range(numbers.randint(1, 12))]
        raw = b"raw %d" % number
        one = replace(document(raw, name=f"NAME{number}-.md"), parts=tuple(parts))
        for complete in (False, True):
            await shelf.put(ASHA, one, raw, complete=complete)
        made.append(one)
    numbers.shuffle(made)
    for one in made[:30]:
        await shelf.delete(ASHA, one.document_id)
        await shelf.gone(ASHA, one.document_id)
    index = (tmp_path / "shelf" / "index.sqlite").read_bytes()
    numbers_left = {int(found) for found in re.findall(rb"(?:KANARI|NAME)(\d+)-", index)}
    assert numbers_left == {int(one.name[4:-4]) for one in made[30:]}


@pytest.mark.parametrize("version", old_shelves.VERSIONS)
async def test_a_folder_of_an_earlier_version_is_taken_over(tmp_path: Path, version: int) -> None:
    folder = tmp_path / "shelf"
    old_shelves.write(folder, version)
    for _ in range(2):
        taken_over = await DiskShelf.open(folder)
    (found,) = await taken_over.documents(ASHA)
    assert (found.document_id, found.name, found.becoming) == (old_shelves.DOCUMENT_ID, old_shelves.NAME, "")
    assert await taken_over.raw(ASHA, found.document_id) == old_shelves.RAW
    whole = await taken_over.document(ASHA, found.document_id)
    assert whole is not None
    assert whole.parts == (Part("", old_shelves.RAW.decode()),)
    assert await taken_over.documents(BELA) == []
    await taken_over.wish(ASHA, found.document_id, "global")
    await taken_over.delete(ASHA, found.document_id)
    with closing(sqlite3.connect(folder / "index.sqlite")) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (shelf_tables.SCHEMA,)
        assert database.execute("SELECT count(*) FROM parts").fetchone() == (0,)
        assert database.execute("PRAGMA foreign_key_check").fetchall() == []
