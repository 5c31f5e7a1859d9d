"""What is learned from the documents: by the system owner alone, from each person's own for that person alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agents.knowledge.calibrating import ENOUGH, FEWEST, PAGE, probes, sound_out
from mesh.access import OWN_SYSTEM, Grant
from mesh.adapters.calibrations import CalibrationFile
from mesh.contracts.answers import Answer, Ask
from mesh.contracts.documents import ANSWER_FROM_DOCUMENTS, DELETE_DOCUMENT, DocumentRef
from mesh.contracts.upkeep import CALIBRATE, SOUND_OUT, Calibrate, Sounding, SoundOut, Threshold
from mesh.errors import Denied, Unavailable
from mesh.ports.passages import Calibration
from tests.boundary.stage import CANARIES, PUBLISHER, Stage
from tests.boundary.test_becoming import without_index
from tests.boundary.test_degraded import without_model
from tests.people import ASHA, BEN, OWNER

QUESTION = "What is the fee of parking?"


def rooms(canary: str, many: int) -> bytes:
    return "\n".join(
        f"## Room {canary} {n}\n\nThe {canary} room number {n} costs {40 + n} euros a night.\n" for n in range(many)
    ).encode()


@pytest.fixture
def kept(stage: Stage, tmp_path: Path) -> CalibrationFile:
    stage.library.stores.calibrations = CalibrationFile(tmp_path / "calibration.json")
    return stage.library.stores.calibrations


async def sounded(stage: Stage) -> list[Sounding]:
    found: list[Sounding] = []
    after: int | None = 0
    while after is not None:
        page = await stage.ask(OWNER, SOUND_OUT, SoundOut(after=after))
        assert len(page.found) <= PAGE
        found += page.found
        after = page.following
    return found


async def calibrated(stage: Stage, found: list[Sounding]) -> dict[str, Threshold]:
    learnt = await stage.ask(OWNER, CALIBRATE, Calibrate(found=tuple(found)))
    return {each.viewer: each for each in learnt.learnt}


@pytest.mark.parametrize("client", [ASHA, PUBLISHER])
async def test_nobody_else_calibrates_whatever_a_tier_says(stage: Stage, kept: CalibrationFile, client: str) -> None:
    stage.people.allow(client, "knowledge:search", OWN_SYSTEM)
    with pytest.raises(Denied):
        await stage.ask(client, SOUND_OUT, SoundOut())
    with pytest.raises(Denied):
        await stage.ask(client, CALIBRATE, Calibrate(found=(Sounding(viewer="", present=1, removed=1),) * FEWEST))
    with pytest.raises(Denied):
        await kept.keep(Grant(client, frozenset({OWN_SYSTEM}), tier=""), {})


async def test_what_is_ones_own_changes_nothing_for_anybody_else(stage: Stage, kept: CalibrationFile) -> None:
    await stage.ingest(OWNER, "rooms.md", rooms("blue", FEWEST + 2), visibility="global")
    before = [each for each in await sounded(stage) if each.viewer == ""]
    await stage.ingest(ASHA, "mine.md", rooms("KANARIENVOGEL", FEWEST + 1))
    found = await sounded(stage)
    assert [each for each in found if each.viewer == ""] == before
    assert {each.viewer for each in found} == {"", ASHA}

    learnt = await calibrated(stage, found)
    assert set(learnt) == {"", ASHA}
    grants = [await stage.gate.admit(client, "knowledge:search") for client in (ASHA, BEN)]
    hers, his = [await kept.of(grant) for grant in grants]
    assert hers
    assert his
    assert (hers.asked, his.asked) == (learnt[ASHA].asked, learnt[""].asked)


async def test_what_is_kept_names_nobody_and_says_nothing(stage: Stage, kept: CalibrationFile, tmp_path: Path) -> None:
    await stage.ingest(ASHA, "mine.md", rooms("KANARIENVOGEL", FEWEST + 1))
    found = await sounded(stage)
    await calibrated(stage, found)
    written = (tmp_path / "calibration.json").read_text()
    assert not [canary for canary in (*CANARIES, ASHA, ASHA[1:], "mine.md") if canary in written]


async def test_calibrating_twice_changes_nothing_more(stage: Stage, kept: CalibrationFile) -> None:
    await stage.ingest(OWNER, "rooms.md", rooms("blue", FEWEST + 2), visibility="global")
    first = (await calibrated(stage, await sounded(stage)))[""]
    again = (await calibrated(stage, await sounded(stage)))[""]
    assert (first.before, first.after) == (0.0, again.after)
    assert again.before == again.after


@pytest.mark.parametrize("gone", [without_index, without_model], ids=["index", "model"])
async def test_nothing_is_learnt_while_a_part_is_gone(
    stage: Stage, kept: CalibrationFile, tmp_path: Path, gone: Any
) -> None:
    await stage.ingest(OWNER, "rooms.md", rooms("blue", FEWEST + 2), visibility="global")
    async with gone(stage, tmp_path / "dying"):
        with pytest.raises(Unavailable, match="nothing was learnt"):
            await sounded(stage)


async def test_a_document_that_is_deleted_meanwhile_is_left_out(stage: Stage, kept: CalibrationFile) -> None:
    gone = await stage.ingest(OWNER, "gone.md", rooms("red", FEWEST), visibility="global")
    await stage.ingest(OWNER, "rooms.md", rooms("blue", FEWEST), visibility="global")
    owner = await stage.gate.admit(OWNER, OWN_SYSTEM)
    asked = await probes(stage.library, owner)
    await stage.ask(OWNER, DELETE_DOCUMENT, DocumentRef(document_id=gone.document_id))
    left = [each for each in asked if each.document.document_id != gone.document_id]
    assert len(left) < len(asked)
    assert len(await sound_out(stage.library, owner, asked)) == len(left)


async def test_too_little_to_learn_from_leaves_the_defaults(stage: Stage, kept: CalibrationFile) -> None:
    await stage.furnish()
    assert await sounded(stage) == []


async def test_what_was_learnt_is_felt_and_another_models_is_not(stage: Stage, kept: CalibrationFile) -> None:
    await stage.furnish()
    owner = await stage.gate.admit(OWNER, "knowledge:search")

    async def answer(*, model: str, stricter: float) -> Answer:
        await kept.keep(owner, {"": Calibration(model, "corpus", ENOUGH, stricter)})
        return await stage.ask(BEN, ANSWER_FROM_DOCUMENTS, Ask(text=QUESTION))

    model = stage.library.stores.embedder.model
    usual = await answer(model=model, stricter=0.0)
    assert usual.grounded
    assert not (await answer(model=model, stricter=9.0)).grounded
    assert (await answer(model="another", stricter=9.0)).confidence == usual.confidence
