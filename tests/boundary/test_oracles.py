"""What is not shown is not told by an order or a figure either."""

from __future__ import annotations

from typing import Any

import pytest

from tests.boundary.probes import BY_TEXT
from tests.boundary.stage import Stage
from tests.people import ASHA, BEN, OWNER

XYLOPHONE = b"The xylophone is kept in the hall of music near the door."
ZEPPELIN = b"The zeppelin is kept in the hall of flight near the door."
OTHERS = [b"Something else is kept in hall %d near the window." % number for number in range(3)]
FOREIGN = "\n\n".join(
    f"## Crew {number}\n\nA zeppelin zeppelin zeppelin, and the crew of zeppelin {number}." for number in range(12)
).encode()
QUESTIONS = ("xylophone zeppelin", "zeppelin", "Where is the zeppelin kept?", "Is the xylophone near the zeppelin?")


async def told(stage: Stage, client: str) -> list[dict[str, Any]]:
    return [
        await stage.call(client, skill, payload(question))
        for skill, payload in BY_TEXT.values()
        for question in QUESTIONS
    ]


@pytest.mark.parametrize("shared", [False, True], ids=["private", "shared with everyone"])
async def test_how_rare_a_word_is_in_documents_that_one_may_not_see_changes_nothing(stage: Stage, shared: bool) -> None:
    """BM25 counts over a whole collection if it is not told otherwise: two documents of one's own then change places
    when a third, which one does not see, holds one of their words."""
    for number, raw in enumerate((XYLOPHONE, ZEPPELIN, *OTHERS)):
        await stage.ingest(BEN, f"own-{number}.md", raw)
    before = await told(stage, BEN)
    await stage.ingest(OWNER, "crews.md", FOREIGN, owner=ASHA, visibility="global" if shared else "private")
    assert (await told(stage, BEN) != before) == shared, "and what everybody sees does count"
