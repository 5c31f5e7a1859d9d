"""How long it takes to be told of what is foreign, beside what is absent: asked in turn, so that whatever else the
machine does falls on both."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from mesh.contracts.documents import DELETE_DOCUMENT, SET_VISIBILITY
from mesh.envelope import digest
from mesh.skills import Skill
from tests.boundary.probes import BY_ID, BY_TEXT
from tests.boundary.stage import NAME, PUBLISHER, SECRET, Stage
from tests.people import ASHA

Call = tuple[Skill[Any, Any], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Compared:
    """Medians in milliseconds. `later` is how often a foreign one takes longer than an absent one, of all pairs: one
    half where nothing can be told."""

    foreign_ms: float
    absent_ms: float
    later: float

    @property
    def ratio(self) -> float:
        return self.foreign_ms / self.absent_ms


def pairs() -> Mapping[str, tuple[Call, Call]]:
    """By path: what is foreign, and what is absent."""
    foreign_id, absent_id = digest(ASHA, NAME), digest(ASHA, "zugspitze-contrakt.md")
    # No word of them but the small ones is in a document that the asker sees: else theirs would be another's time.
    texts = {
        "question": ("Who paid the KANARIENVOGEL at TREPPENWITZ?", "Who paid the KANARIENFOGEL at TREPPENWIDZ?"),
        "word": ("KANARIENVOGEL", "KANARIENFOGEL"),
        "name": (NAME, NAME.replace("contract", "contrakt")),
    }
    found: dict[str, tuple[Call, Call]] = {}
    for path, (skill, payload) in BY_TEXT.items():
        for what, (foreign, absent) in texts.items():
            found[f"{path}, {what}"] = ((skill, payload(foreign)), (skill, payload(absent)))
    for path, (skill, payload) in BY_ID.items():
        found[path] = ((skill, payload(foreign_id)), (skill, payload(absent_id)))
    for what, skill, more in (
        ("private", SET_VISIBILITY, {"visibility": "private"}),
        ("global", SET_VISIBILITY, {"visibility": "global"}),
        ("delete", DELETE_DOCUMENT, {}),
    ):
        found[f"{skill.name}, {what}"] = (
            (skill, {**more, "document_id": foreign_id}),
            (skill, {**more, "document_id": absent_id}),
        )
    return found


async def furnish(stage: Stage) -> None:
    await stage.furnish()
    await stage.ingest(ASHA, NAME, SECRET)


async def compare(stage: Stage, calls: tuple[Call, Call], times: int) -> Compared:
    """On behalf of somebody who may search and share."""
    took: tuple[list[float], list[float]] = ([], [])
    for turn in range(times + 2):
        for which in (0, 1) if turn % 2 else (1, 0):
            began = time.perf_counter()
            await stage.call(PUBLISHER, *calls[which])
            if turn >= 2:  # the first ones warm up
                took[which].append(time.perf_counter() - began)
    foreign, absent = took
    later = sum((a > b) + (a == b) / 2 for a in foreign for b in absent) / (len(foreign) * len(absent))
    return Compared(median(foreign) * 1000, median(absent) * 1000, later)


async def compared(
    stage: Stage, times: int, tell: Callable[[str, Compared], None] = lambda *_: None
) -> dict[str, Compared]:
    found = {}
    for path, calls in pairs().items():
        found[path] = await compare(stage, calls, times)
        tell(path, found[path])
    return found
