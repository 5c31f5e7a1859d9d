"""The drills in their short form. `python -m tests.drills` runs the long one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import ClassVar

import pytest
import pytest_asyncio

from tests.drills import DRILLS
from tests.drills.drill import Drill, Result, run
from tests.drills.stage import QUIET, SMALL, WHOLE, Skipped, Stage, Wanted, staged

pytestmark = pytest.mark.timeout(240)


def named(*drills: Drill) -> pytest.MarkDecorator:
    slow = {True: [pytest.mark.slow], False: []}
    return pytest.mark.parametrize("drill", [pytest.param(d, id=d.name, marks=slow[d.slow]) for d in drills])


def sharing(wanted: Wanted) -> pytest.MarkDecorator:
    return named(*(drill for drill in DRILLS.values() if drill.wanted == wanted and not drill.alone))


@pytest_asyncio.fixture(scope="class", loop_scope="class")
async def stage(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    """One mesh for all drills of a class. At its end they are judged once more: nothing may have come twice since."""
    results: list[Result] = request.cls.results
    async with staged(request.cls.wanted, tmp_path_factory.mktemp("drills")) as opened:
        yield opened
        late = [(each.drill.name, (await each.play.verdict()).which) for each in results]
    assert not [(name, which) for name, which in late if any(which.values())]


@sharing(SMALL)
@pytest.mark.asyncio(loop_scope="class")
class TestOnASmallMesh:
    wanted = SMALL
    results: ClassVar[list[Result]] = []

    async def test_every_message_ends_in_one_outcome_in_order(self, drill: Drill, stage: Stage) -> None:
        self.results.append(await passed(drill, stage))


@sharing(QUIET)
@pytest.mark.asyncio(loop_scope="class")
class TestWithAQuietWindow:
    wanted = QUIET
    results: ClassVar[list[Result]] = []

    async def test_every_message_ends_in_one_outcome_in_order(self, drill: Drill, stage: Stage) -> None:
        self.results.append(await passed(drill, stage))


@sharing(WHOLE)
@pytest.mark.asyncio(loop_scope="class")
class TestOnAWholeMesh:
    wanted = WHOLE
    results: ClassVar[list[Result]] = []

    async def test_every_message_ends_in_one_outcome_in_order(self, drill: Drill, stage: Stage) -> None:
        self.results.append(await passed(drill, stage))


@named(*(drill for drill in DRILLS.values() if drill.alone))
async def test_on_a_mesh_of_its_own(drill: Drill, tmp_path: Path) -> None:
    try:
        async with staged(drill.wanted, tmp_path) as opened:
            await passed(drill, opened)
    except Skipped as why:
        pytest.skip(str(why))


async def passed(drill: Drill, stage: Stage) -> Result:
    result = await run(drill, stage, short=True)
    assert not result.complaints
    return result


def test_no_drill_is_left_out() -> None:
    assert {drill.wanted for drill in DRILLS.values() if not drill.alone} == {SMALL, QUIET, WHOLE}
