"""How long it takes to be told of what is foreign, beside what is absent, on each path to a document: medians of calls
made in turn, their ratio, and how often the foreign one took longer (`later`; 0.5 where nothing can be told). The
knowledge agent is behind its door, on the embedded index, with vectors that come at once."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from rich.console import Console

from tests.boundary.stage import staged
from tests.boundary.timing import Compared, compared, furnish
from tests.processes import qdrant, serving

TIMES = 200


async def run() -> dict[str, object]:
    console = Console(stderr=True)

    def tell(path: str, found: Compared) -> None:
        console.print(f"{path}: {found.foreign_ms:.2f} / {found.absent_ms:.2f} ms, later {found.later:.2f}")

    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        scripted = serving("mesh.testing.model", ready="/api/version", log=here / "model.log")
        with qdrant(here / "index") as index, scripted as model:
            async with staged(os.environ.get("QDRANT_URL", index), model, here) as stage:
                await furnish(stage)
                found = await compared(stage, TIMES, tell)
    ratios = [each.ratio for each in found.values()]
    return {
        "calls_each": TIMES,
        "ratio_least": round(min(ratios), 3),
        "ratio_most": round(max(ratios), 3),
        "later_farthest_from_half": round(max(abs(each.later - 0.5) for each in found.values()), 3),
        **{
            path: {
                "foreign_ms": round(each.foreign_ms, 3),
                "absent_ms": round(each.absent_ms, 3),
                "ratio": round(each.ratio, 3),
                "later": round(each.later, 3),
            }
            for path, each in found.items()
        },
    }
