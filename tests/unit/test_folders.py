"""A folder whose files are documents: what is taken in, what is withdrawn, and what is left alone."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mesh.contracts.documents import DocumentCard, Ingested
from mesh.errors import Malformed, MeshError, NotFound, Unavailable, Unreadable
from mesh.folders import File, Folder, Tally, read
from mesh.settings import Watched, load

OWNER = "+15550000000"


class Shop:
    """A folder, and what it has brought into the mesh so far."""

    def __init__(self, tmp_path: Path) -> None:
        self.path = tmp_path / "shop"
        self.path.mkdir()
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
        folder = Folder(Watched(self.path, OWNER, "global"), self.home)
        return await folder.follow(folder.look(), self._add, self._withdraw, self._tell, until=until)

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
    assert (seen.changed, seen.settling) == ((), 1)
    os.utime(path, (time.time() - 10,) * 2)
    assert [file.name for file in folder.look().changed] == ["prices.md"]


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
    assert [file.path for file in seen.changed] == [shop.path / "a" / "prices.md"]
    assert seen.clashes == ((shop.path / "a" / "prices.md", shop.path / "b" / "prices.md"),)


async def test_what_there_is_no_time_for_is_counted_and_comes_at_the_next_look(shop: Shop) -> None:
    shop.write("prices.md", "20 euros")
    assert (await shop.look(until=time.monotonic() - 1)).left == 1
    assert shop.documents == {}
    assert (await shop.look()).added == 1


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
