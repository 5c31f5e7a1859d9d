from pathlib import Path

import pytest

from agents.knowledge.calibrating import ENOUGH, LAXEST, STRICTEST, TYPICAL, stricter
from agents.knowledge.judging import ANSWERS, MULTILINGUAL_E5_SMALL, Evidence
from mesh.access import Grant, upkeep
from mesh.adapters.calibrations import CalibrationFile
from mesh.ports.passages import Calibration

BEN = Grant("+15551230002", frozenset(), tier="")
LEARNT = Calibration("model", "corpus", ENOUGH, 0.2)


def test_where_what_is_left_still_looks_like_an_answer_more_is_asked_for() -> None:
    far, usual, near = ([TYPICAL + by] * ENOUGH for by in (-0.5, 0.0, 0.5))
    assert stricter(far) < stricter(usual) == 0 < stricter(near)
    assert (stricter([-40.0] * ENOUGH), stricter([40.0] * ENOUGH)) == (LAXEST, STRICTEST)


def test_a_tiny_corpus_makes_nothing_laxer() -> None:
    assert stricter([-3.0] * (ENOUGH - 1)) == 0 > stricter([-3.0] * ENOUGH)
    assert stricter([1.0] * (ENOUGH - 1)) > 0


def test_stricter_is_felt_at_the_border_and_keeps_the_order() -> None:
    strict = MULTILINGUAL_E5_SMALL.stricter_by(1.0)
    clear, border = Evidence(0.9, 1.0, 1.0, 1, lead=3.0), Evidence(0.86, 0.6, 0.6, 1)
    assert MULTILINGUAL_E5_SMALL.confidence(border) >= ANSWERS > strict.confidence(border)
    assert strict.confidence(clear) >= ANSWERS


def written_with(asked: str = "60", stricter: str = "0.2") -> str:
    learnt = f'{{"model": "m", "corpus": "c", "asked": {asked}, "stricter": {stricter}}}'
    return f'{{"schema": 1, "learnt": {{"everybody": {learnt}}}}}'


@pytest.mark.parametrize(
    "written",
    [
        *("", "{", "[]", "7", "\xff", '{"schema": 1}', pytest.param("[" * 100_000, id="deep")),
        *('{"schema": 9, "learnt": {}}', '{"schema": 1, "learnt": {"a": {}}}'),
        *(f'{{"schema": 1, "learnt": {learnt}}}' for learnt in ("null", "[]", '"x"', '{"everybody": null}')),
        *(written_with(asked=wrong) for wrong in ("Infinity", "null", "[]")),
        *(written_with(stricter=wrong) for wrong in ("NaN", "Infinity", "1e999", "{}")),
    ],
)
async def test_a_damaged_file_is_as_if_nothing_was_learnt(tmp_path: Path, written: str) -> None:
    path = tmp_path / "calibration.json"
    path.write_text(written, "latin-1")
    assert await CalibrationFile(path).of(BEN) is None


async def test_what_was_learnt_from_ones_own_is_used_for_the_system_owner_too(tmp_path: Path) -> None:
    calibrations = CalibrationFile(tmp_path / "calibration.json")
    owner = Grant("+15550000000", frozenset(), tier="", sees_all=True)
    own = Calibration("model", "corpus", ENOUGH, 0.7)
    await calibrations.keep(owner, {"": LEARNT, owner.client: own})
    assert await calibrations.of(owner) == own
    assert await calibrations.of(BEN) == LEARNT


async def test_a_grant_of_nobody_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nobody"):
        await CalibrationFile(tmp_path / "calibration.json").of(Grant("", frozenset(), tier=""))


async def test_what_another_process_learnt_is_read(tmp_path: Path) -> None:
    mine, other = (CalibrationFile(tmp_path / "calibration.json") for _ in range(2))
    assert await mine.of(BEN) is None
    await other.keep(upkeep(), {"": LEARNT})
    assert await mine.of(BEN) == LEARNT
    assert await mine.of(upkeep()) == LEARNT
    assert await other.keep(upkeep(), {"": LEARNT}) == {"": LEARNT}
