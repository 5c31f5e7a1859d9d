"""What is foreign takes as long as what is absent. The figures: `python -m tests.bench boundary`."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from tests.boundary import timing
from tests.boundary.stage import Stage

PAIRS = 40
TELLS = 0.2
"""How far from one half is no noise any more: three times the standard deviation of so many pairs, where the two are
alike, and four of twice as many."""


async def test_what_is_foreign_takes_as_long_as_what_is_absent(stage: Stage) -> None:
    await timing.furnish(stage)
    for path, calls in timing.pairs().items():
        found = await timing.compare(stage, calls, PAIRS)
        if abs(found.later - 0.5) > TELLS:  # once more, and more of them: a noisy machine does not repeat itself
            found = await timing.compare(stage, calls, 2 * PAIRS)
        assert abs(found.later - 0.5) <= TELLS, f"{path}: {found}"


async def test_a_look_at_the_shelf_that_only_foreign_ids_cost_would_be_noticed(stage: Stage) -> None:
    """Or the test above would hold whatever is done."""
    await timing.furnish(stage)
    shelf, calls = stage.library.stores.shelf, timing.pairs()["knowledge.get_document"]
    foreign = calls[0][1]["document_id"]
    looked = shelf.documents

    async def documents(grant: Any, *, only: Any = None) -> Any:
        found = await looked(grant, only=only)
        if only == [foreign]:
            await asyncio.sleep(0.004)
        return found

    cast(Any, shelf).documents = documents
    assert (await timing.compare(stage, calls, PAIRS)).later - 0.5 > TELLS
