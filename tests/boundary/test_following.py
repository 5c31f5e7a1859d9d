"""The folders of the settings, as the knowledge agent follows them: whose a document is, and when it is withdrawn."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agents.knowledge.following import Following
from mesh.contracts.answers import Nothing
from mesh.contracts.documents import LIST_DOCUMENTS, RETRIEVE_KNOWLEDGE_BASE, Search
from mesh.settings import Watched
from tests.boundary.stage import CANARY, Stage, leaked, shown
from tests.people import ASHA, BEN, OWNER


class Folders:
    def __init__(self, stage: Stage, home: Path, *watched: Watched) -> None:
        self._stage = stage
        self.following = Following(stage.library, watched, home)

    async def look(self) -> list[str]:
        """What it came to be told of, a text for each folder."""
        grant = await self._stage.gate.admit(OWNER, "system:own")
        return [each.trouble for each in await self.following.look(grant)]

    async def seen_by(self, client: str) -> list[str]:
        return [each.name for each in (await self._stage.ask(client, LIST_DOCUMENTS, Nothing())).documents]


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (1e9, 1e9))
    return path


async def test_a_file_that_moves_between_two_folders_of_an_owner_is_there_all_the_while(
    stage: Stage, tmp_path: Path
) -> None:
    current, archive = tmp_path / "current", tmp_path / "archive"
    written(archive / "other.md", "# Other\n\nParking costs seven euros.")
    hours = written(archive / "hours.md", "# Hours\n\nWe open at nine every day.")
    current.mkdir()
    folders = Folders(stage, tmp_path, Watched(current, OWNER, "global"), Watched(archive, OWNER, "global"))
    await folders.look()
    hours.rename(current / "hours.md")
    for _ in range(2):
        assert await folders.look() == ["", ""]
        assert await folders.seen_by(ASHA) == ["hours.md", "other.md"]
    (found, *_) = (await stage.ask(ASHA, RETRIEVE_KNOWLEDGE_BASE, Search(text="When do we open?"))).found
    assert found.document.name == "hours.md"


async def test_a_folder_that_cant_be_looked_at_stops_no_other(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed, away, shop = tmp_path / "closed", tmp_path / "away", tmp_path / "shop"
    written(shop / "prices.md", "# Prices\n\nA room costs 84 euros.")
    stat = Path.stat

    def forbidding(path: Path, **how: bool) -> os.stat_result:
        if path == closed:
            raise PermissionError(13, "Permission denied", str(path))
        return stat(path, **how)

    monkeypatch.setattr(Path, "stat", forbidding)  # as where the folder above is closed to the agent
    folders = Folders(stage, tmp_path, *(Watched(each, OWNER, "global") for each in (closed, away, shop)))
    told = await folders.look()
    assert [f"{each} is no folder" in text for each, text in zip((closed, away), told, strict=False)] == [True, True]
    assert await folders.seen_by(ASHA) == ["prices.md"]


async def test_one_clients_folder_neither_shows_nor_withdraws_what_is_in_anothers(stage: Stage, tmp_path: Path) -> None:
    asha, ben = tmp_path / "asha", tmp_path / "ben"
    for folder, text in (
        (asha, f"# Contract\n\nThe fee is 7 zlotys ({CANARY})."),
        (ben, "# Contract\n\nThe fee is 9."),
    ):
        written(folder / "contract.md", text)
        written(folder / "other.md", "# Other\n\nIt stays.")
    folders = Folders(stage, tmp_path, Watched(asha, ASHA, "private"), Watched(ben, BEN, "private"))
    assert await folders.look() == ["", ""]
    answer = await stage.call(BEN, RETRIEVE_KNOWLEDGE_BASE, {"text": "What is the fee?", "limit": 20})
    assert "The fee is 9" in shown(answer)
    assert not leaked(answer)
    (ben / "contract.md").unlink()
    await folders.look()
    assert await folders.seen_by(BEN) == ["other.md"]
    assert await folders.seen_by(ASHA) == ["contract.md", "other.md"]
