"""A folder whose files are documents: what is taken in, what is withdrawn, and what is left alone."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from mesh.contracts.documents import DocumentCard, Ingested
from mesh.errors import Malformed, MeshError, NotFound, Unavailable, Unreadable
from mesh.files import LARGEST, too_large
from mesh.folders import MOST_TOLD, File, Folder, Look, Tally, read, shared
from mesh.settings import Watched, load

OWNER = "+15550000000"


class Shop:
    """A folder, and what it has brought into the mesh so far."""

    def __init__(self, tmp_path: Path, name: str = "shop", owner: str = OWNER) -> None:
        self.path = tmp_path / name
        self.path.mkdir()
        self.watched = Watched(self.path, owner, "global")
        self.home = tmp_path / "home"
        self.documents: dict[str, bytes] = {}
        self.read: list[str] = []
        self.fails: dict[str, MeshError] = {}
        self.said: list[tuple[str, str]] = []

    def write(self, name: str, text: str, *, age_s: float = 60.0) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        then = time.time() - age_s
        os.utime(path, (then, then))
        return path

    async def look(self, *, until: float = float("inf")) -> Tally:
        """As after a restart: what was taken in is known from the record alone."""
        folder = self.folder
        return await self.follow(folder, folder.look(), until=until)

    @property
    def folder(self) -> Folder:
        return Folder(self.watched, self.home)

    async def follow(self, folder: Folder, seen: Look, *, until: float = float("inf")) -> Tally:
        return await folder.follow(seen, self._add, self._withdraw, self._tell, until=until)

    async def _add(self, file: File) -> Ingested:
        self.read.append(file.name)
        if error := self.fails.get(file.name):
            raise error
        raw = read(file)
        outcome = "unchanged" if self.documents.get(file.name) == raw else "added"
        self.documents[file.name] = raw
        card = DocumentCard(
            document_id=f"id of {file.name}",
            name=file.name,
            owner=OWNER,
            visibility="global",
            size=len(raw),
            chunks=1,
            ingested_at=datetime.now(UTC),
        )
        return Ingested(document=card, outcome=outcome, parts=1)

    async def _withdraw(self, document_id: str) -> None:
        name = document_id.removeprefix("id of ")
        if error := self.fails.get(f"withdraw {name}"):
            raise error
        del self.documents[name]

    def _tell(self, what: str, name: str, _: object) -> None:
        self.said.append((what, name))


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


@pytest.fixture
def shops(tmp_path: Path) -> tuple[Shop, Shop]:
    """Two folders of one owner, whose documents are the same ones."""
    current, archive = Shop(tmp_path, "current"), Shop(tmp_path, "archive")
    archive.documents = current.documents
    for each in (current, archive):
        each.write(f"of the {each.path.name}.md", "always there")
    return current, archive


async def look_at(*shops: Shop) -> list[Look]:
    seen = shared([(folder, folder.seen()) for folder in (each.folder for each in shops)])
    for each, (folder, look) in zip(shops, seen, strict=True):
        await each.follow(folder, look)
    return [look for _, look in seen]


@contextmanager
def closed(path: Path) -> Iterator[None]:
    """To everybody, root included, whom modes do not hold back."""
    scandir, stat = os.scandir, Path.stat

    def allowed(at: Any) -> Any:
        if Path(at) == path:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(at))
        return at

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "scandir", lambda at=".": scandir(allowed(at)))
        patch.setattr(Path, "stat", lambda at, **how: stat(allowed(at), **how))
        yield


async def test_what_is_new_is_taken_in_and_only_once(shop: Shop) -> None:
    shop.write("prices.md", "A cut costs 20 euros.")
    shop.write("2026/hours.txt", "Open on Mondays.")
    assert (await shop.look()).added == 2
    assert shop.documents.keys() == {"prices.md", "hours.txt"}
    assert (await shop.look()) == Tally()
    assert sorted(shop.read) == ["hours.txt", "prices.md"]


async def test_a_changed_file_replaces_its_document_and_a_touched_one_is_unchanged(shop: Shop) -> None:
    shop.write("prices.md", "A cut costs 20 euros.")
    await shop.look()
    shop.write("prices.md", "A cut costs 22 euros.", age_s=50)
    assert (await shop.look()).added == 1
    assert shop.documents["prices.md"] == b"A cut costs 22 euros."
    shop.write("prices.md", "A cut costs 22 euros.", age_s=40)
    assert (await shop.look()).unchanged == 1


async def test_a_file_that_is_gone_is_withdrawn_and_nobody_elses(shop: Shop) -> None:
    shop.documents["uploaded.md"] = b"somebody else added this one"
    old = shop.write("old prices.md", "A cut costs 10 euros.")
    shop.write("prices.md", "A cut costs 20 euros.")
    await shop.look()
    old.unlink()
    assert (await shop.look()).withdrawn == 1
    assert shop.documents.keys() == {"uploaded.md", "prices.md"}
    assert (await shop.look()) == Tally()


async def test_a_folder_that_went_away_or_is_suddenly_empty_withdraws_nothing(shop: Shop) -> None:
    only = shop.write("prices.md", "A cut costs 20 euros.")
    await shop.look()
    only.unlink()
    with pytest.raises(Malformed, match="is empty, and was not before"):
        await shop.look()
    shop.path.rmdir()
    with pytest.raises(Malformed, match="is no folder"):
        await shop.look()
    assert shop.documents.keys() == {"prices.md"}


async def test_a_refused_file_is_named_once_and_tried_again_when_it_changes(shop: Shop) -> None:
    shop.write("scan.pdf", "%PDF")
    shop.fails["scan.pdf"] = Unreadable("scan.pdf could not be read.")
    assert (await shop.look()).refused == 1
    assert (await shop.look()) == Tally()
    shop.fails.clear()
    shop.write("scan.pdf", "%PDF 2", age_s=50)
    assert (await shop.look()).added == 1


async def test_the_earlier_version_of_a_file_that_is_refused_now_is_still_withdrawn_with_it(shop: Shop) -> None:
    file = shop.write("prices.pdf", "%PDF")
    shop.write("hours.txt", "Open on Mondays.")
    await shop.look()
    shop.fails["prices.pdf"] = Unreadable("damaged")
    shop.write("prices.pdf", "broken", age_s=50)
    await shop.look()
    assert shop.documents["prices.pdf"] == b"%PDF"
    file.unlink()
    assert (await shop.look()).withdrawn == 1
    assert shop.documents.keys() == {"hours.txt"}


async def test_what_could_not_be_done_now_is_tried_at_the_next_look(shop: Shop) -> None:
    old = shop.write("old.md", "old")
    shop.write("prices.md", "A cut costs 20 euros.")
    shop.fails["prices.md"] = Unavailable()
    tally = await shop.look()
    assert (tally.added, tally.later) == (1, 1)
    shop.fails = {"withdraw old.md": Unavailable()}
    old.unlink()
    tally = await shop.look()
    assert (tally.added, tally.later, tally.withdrawn) == (1, 1, 0)
    shop.fails.clear()
    assert (await shop.look()).withdrawn == 1
    assert shop.documents.keys() == {"prices.md"}


async def test_a_document_that_somebody_deleted_meanwhile_is_no_trouble(shop: Shop) -> None:
    old = shop.write("old.md", "old")
    shop.write("prices.md", "A cut costs 20 euros.")
    await shop.look()
    shop.fails["withdraw old.md"] = NotFound()
    old.unlink()
    await shop.look()
    assert (await shop.look()) == Tally()


async def test_a_file_that_is_still_being_written_is_left_for_the_next_look(shop: Shop) -> None:
    path = shop.write("prices.md", "A cut co", age_s=0)
    folder = Folder(Watched(shop.path, OWNER, "global"), shop.home)
    seen = folder.look()
    assert (folder.changed(seen), seen.settling) == ([], 1)
    os.utime(path, (time.time() - 10,) * 2)
    assert [file.name for file in folder.changed(folder.look())] == ["prices.md"]


async def test_what_is_hidden_unfinished_or_a_link_out_of_the_folder_is_no_document(shop: Shop, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("not in the folder")
    for name in (".env", "~$prices.docx", "film.crdownload", ".git/config"):
        shop.write(name, "no")
    (shop.path / "link.txt").symlink_to(secret)
    (shop.path / "away").symlink_to(tmp_path)
    (shop.path / "nowhere.txt").symlink_to(tmp_path / "absent")
    os.mkfifo(shop.path / "pipe")
    shop.write("prices.md", "yes")
    assert (await shop.look()).added == 1
    assert shop.documents.keys() == {"prices.md"}


async def test_of_two_files_with_one_name_always_the_same_is_read_and_the_other_is_named(shop: Shop) -> None:
    shop.write("b/prices.md", "20 euros")
    shop.write("a/prices.md", "10 euros")
    folder = Folder(Watched(shop.path, OWNER, "global"), shop.home)
    seen = folder.look()
    assert [file.path for file in folder.changed(seen)] == [shop.path / "a" / "prices.md"]
    assert seen.clashes == ((shop.path / "a" / "prices.md", shop.path / "b" / "prices.md"),)


async def test_what_there_is_no_time_for_is_counted_and_comes_at_the_next_look(shop: Shop) -> None:
    shop.write("prices.md", "20 euros")
    assert (await shop.look(until=time.monotonic() - 1)).left == 1
    assert shop.documents == {}
    assert (await shop.look()).added == 1


async def test_withdrawals_that_there_is_no_time_for_come_at_the_next_look_too(shop: Shop) -> None:
    old = shop.write("old.md", "old")
    shop.write("prices.md", "20 euros")
    await shop.look()
    old.unlink()
    assert await shop.look(until=time.monotonic() - 1) == Tally(left=1)
    assert shop.documents.keys() == {"old.md", "prices.md"}
    assert await shop.look() == Tally(withdrawn=1)


@pytest.mark.parametrize("what", ["2026", "2026/hours.md"])
async def test_what_cant_be_looked_at_for_a_moment_withdraws_nothing_and_is_told(shop: Shop, what: str) -> None:
    old = shop.write("old.md", "old")
    shop.write("2026/hours.md", "Open on Mondays.")
    shop.write("prices.md", "20 euros")
    await shop.look()
    old.unlink()
    with closed(shop.path / what):
        assert await shop.look() == Tally()
    assert shop.documents.keys() == {"old.md", "hours.md", "prices.md"}
    assert shop.folder.record.troubles == [
        f"{shop.path / what} can't be looked at (Permission denied): until it can, nothing is withdrawn."
    ]
    assert await shop.look() == Tally(withdrawn=1)
    assert shop.folder.record.troubles == []


async def test_a_folder_that_cant_be_read_is_told_at_its_first_look_too(shop: Shop) -> None:
    shop.write("prices.md", "20 euros")
    with closed(shop.path):
        with pytest.raises(Malformed, match=r"shop is no folder that can be read: Permission denied\."):
            shop.folder.look()
        assert shop.folder.seen().troubles == (f"{shop.path} is no folder that can be read: Permission denied.",)


async def test_what_a_disk_has_of_itself_is_not_looked_at(shop: Shop) -> None:
    old = shop.write("old.md", "old")
    shop.write("prices.md", "20 euros")
    shop.write("lost+found/inode.md", "no")
    await shop.look()
    old.unlink()
    with closed(shop.path / "lost+found"):
        assert await shop.look() == Tally(withdrawn=1)
    assert shop.documents.keys() == {"prices.md"}


async def test_a_file_that_cant_be_read_for_a_moment_is_taken_in_as_soon_as_it_can(shop: Shop) -> None:
    file = shop.write("prices.md", "20 euros")
    then = file.stat().st_mtime_ns
    folder = shop.folder
    seen = folder.look()
    file.unlink()
    file.mkdir()  # a real trouble, and for root, too
    assert await shop.follow(folder, seen) == Tally(later=1)
    assert shop.folder.record.troubles == ["prices.md can't be read: Is a directory."]
    file.rmdir()
    file.write_text("20 euros")
    os.utime(file, ns=(then, then))
    assert await shop.look() == Tally(added=1)


async def test_a_file_that_is_too_large_is_refused_in_the_words_of_every_other_way_in(shop: Shop) -> None:
    os.truncate(shop.write("film.md", ""), LARGEST + 1)
    os.utime(shop.path / "film.md", (0, 0))
    assert (await shop.look()).refused == 1
    assert shop.folder.record.files["film.md"].refused == too_large("film.md", LARGEST + 1)
    assert "(21 MB); I can take up to 20 MB" in too_large("film.md", LARGEST + 1)


async def test_of_many_troubles_a_few_are_told_and_the_others_counted(shop: Shop) -> None:
    for number in range(MOST_TOLD + 3):
        shop.write(f"a/{number}.md", "first")
        shop.write(f"b/{number}.md", "second")
    await shop.look()
    told = shop.folder.record.troubles
    assert (len(told), told[-1]) == (MOST_TOLD + 1, "And 3 more.")


# ── several folders of one owner ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("turned", [False, True], ids=["to an earlier one", "to a later one"])
async def test_a_file_that_moves_to_another_folder_stays_until_it_leaves_that_one(
    shops: tuple[Shop, Shop], turned: bool
) -> None:
    to, since = reversed(shops) if turned else shops
    file = since.write("hours.md", "Open at nine.")
    await look_at(*shops)
    moved = file.rename(to.path / "hours.md")
    for _ in range(2):
        await look_at(*shops)
        assert shops[0].documents["hours.md"] == b"Open at nine."
    assert ("withdrawn", "hours.md") not in [*to.said, *since.said]
    moved.unlink()
    await look_at(*shops)
    assert "hours.md" not in shops[0].documents


async def test_of_two_folders_with_one_name_the_first_is_read_and_the_other_named(shops: tuple[Shop, Shop]) -> None:
    current, archive = shops
    new, old = current.write("hours.md", "Open at nine."), archive.write("hours.md", "Open at ten.")
    for _ in range(2):
        _, seen = await look_at(*shops)
        assert seen.clashes == ((new, old),)
        assert current.documents["hours.md"] == b"Open at nine."
    assert "hours.md" not in archive.read
    assert archive.folder.record.troubles == [
        f"{new} and {old} have one name: only the first is read. Please rename the other."
    ]
    new.unlink()
    await look_at(*shops)
    assert current.documents["hours.md"] == b"Open at ten."
    old.unlink()
    await look_at(*shops)
    assert "hours.md" not in current.documents


async def test_where_both_were_taken_in_before_the_first_is_taken_in_again(shops: tuple[Shop, Shop]) -> None:
    current, archive = shops
    current.write("hours.md", "Open at nine.")
    archive.write("hours.md", "Open at ten.")
    await current.look()
    await archive.look()
    assert current.documents["hours.md"] == b"Open at ten."
    await look_at(*shops)
    assert current.documents["hours.md"] == b"Open at nine."


async def test_what_a_folder_that_is_away_may_still_have_is_not_withdrawn(shops: tuple[Shop, Shop]) -> None:
    current, archive = shops
    only = current.write("hours.md", "Open at nine.")
    archive.write("hours.md", "Open at nine.")
    await current.look()
    await archive.look()
    only.unlink()
    with closed(archive.path):
        await look_at(*shops)
    assert "hours.md" in current.documents
    (archive.path / "hours.md").unlink()
    await look_at(*shops)
    assert "hours.md" not in current.documents


async def test_a_file_that_is_refused_in_its_new_folder_is_still_withdrawn_with_it(shops: tuple[Shop, Shop]) -> None:
    current, archive = shops
    file = archive.write("hours.md", "Open at nine.")
    await look_at(*shops)
    current.fails["hours.md"] = Unreadable("damaged")
    moved = file.rename(current.path / "hours.md")
    await look_at(*shops)
    assert "hours.md" in current.documents, "an older version of it still answers"
    moved.unlink()
    await look_at(*shops)
    assert "hours.md" not in current.documents


async def test_folders_of_two_owners_know_nothing_of_one_another(tmp_path: Path) -> None:
    asha, ben = Shop(tmp_path, "asha", "+15551230001"), Shop(tmp_path, "ben", "+15551230002")
    file = asha.write("hours.md", "Open at nine.")
    for each in (asha, ben):
        each.write("prices.md", f"The prices of {each.path.name}.")
    await look_at(asha, ben)
    file.rename(ben.path / "hours.md")
    assert [look.clashes for look in await look_at(asha, ben)] == [(), ()]
    assert asha.documents == {"prices.md": b"The prices of asha."}
    assert ben.documents == {"prices.md": b"The prices of ben.", "hours.md": b"Open at nine."}


async def test_a_file_below_two_of_the_folders_is_read_once(shop: Shop) -> None:
    file = shop.write("2026/hours.md", "Open at nine.")
    year = Folder(Watched(shop.path / "2026", OWNER, "private"), shop.home)
    (_, all_of_it), (_, of_the_year) = shared([(shop.folder, shop.folder.seen()), (year, year.seen())])
    assert (list(all_of_it.found), list(of_the_year.found)) == (["hours.md"], [])
    assert of_the_year.troubles == (f"{file} lies in two of the folders: it is read as a file of the first.",)


async def test_a_damaged_record_only_costs_another_look_at_each_file(shop: Shop) -> None:
    shop.write("prices.md", "20 euros")
    await shop.look()
    folder = Folder(Watched(shop.path, OWNER, "global"), shop.home)
    folder.record_file.write_text("{")
    assert (await shop.look()).unchanged == 1


def test_folders_of_the_settings_say_whose_they_are() -> None:
    settings = load(folders="everyone /srv/prices and more\n+15551230001 /srv/asha\n")
    assert settings.watched == (
        Watched(Path("/srv/prices and more"), settings.system_owner, "global"),
        Watched(Path("/srv/asha"), "+15551230001", "private"),
    )


@pytest.mark.parametrize("line", ["/srv/prices", "asha /srv/asha", "everyone prices", "everyone"])
def test_a_folder_without_an_owner_or_a_whole_path_is_refused(line: str) -> None:
    with pytest.raises(MeshError, match="folders"):
        load(folders=line)
