"""The loop: decide, use a tool, fold what it returned into the scratchpad; at most ten times."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from agents.analysis.deciding import Mind
from agents.analysis.plans import Conclusion
from agents.analysis.scratchpad import Scratchpad
from agents.analysis.tools import CALCULATE, Tool, use
from mesh.clock import now
from mesh.contracts.answers import Ask
from mesh.errors import MeshError

log = logging.getLogger(__name__)

MOST_STEPS = 10
MOST_BARREN = 3
"""Steps in a row that found nothing new: a dead end."""
RESERVED_S = 2.0
"""Left over for the conclusion."""


@dataclass(frozen=True, slots=True)
class Investigated:
    conclusion: Conclusion | None
    pad: Scratchpad
    steps: tuple[str, ...]
    ended: str
    """`finished`, `repeated`, `dead end`, `step cap`, `out of time`, or the code of the error that stopped the mind."""


async def investigate(
    ask: Ask, mind: Mind, tools: Mapping[str, Tool], *, deadline: float, clock: Callable[[], float] = now
) -> Investigated:
    """Ends in the best that was found, whatever stops it. `deadline` is in seconds since the epoch."""
    pad, steps = Scratchpad(open=(ask.text,)), list[str]()
    barren, longest = 0, 0.0
    ended = "step cap"
    while len(steps) < MOST_STEPS:
        began = clock()
        if deadline - began < max(RESERVED_S, 1.5 * longest):
            ended = "out of time"
            break
        try:
            call = await mind.decide(ask, pad, tools)
            if call is None or pad.made(call):
                ended = "repeated" if call else "finished"
                break
            observation = await use(tools[call.tool], call.input)
            known = len(pad.findings) + len(pad.checked)
            pad = await mind.fold(ask, pad, call, observation)
        except MeshError as error:
            log.warning("! the investigation was stopped code=%s detail=%s", error.code, error.detail)
            ended = error.code
            break
        new = len(pad.findings) + len(pad.checked) - known
        longest = max(longest, clock() - began)
        steps.append(f"{call.tool} {new} new {(clock() - began) * 1000:.0f} ms")
        barren = 0 if new or call.tool == CALCULATE else barren + 1
        if barren == MOST_BARREN:
            ended = "dead end"
            break
    conclusion = await _concluded(ask, mind, pad, hurried=ended not in ("finished", "repeated", "dead end", "step cap"))
    log.info("investigated steps=%d findings=%d ended=%s", len(steps), len(pad.findings), ended.replace(" ", "_"))
    return Investigated(conclusion, pad, tuple(steps), ended)


async def _concluded(ask: Ask, mind: Mind, pad: Scratchpad, *, hurried: bool) -> Conclusion | None:
    try:
        return await mind.conclude(ask, pad, hurried=hurried)
    except MeshError as error:
        log.warning("! no conclusion code=%s detail=%s", error.code, error.detail)
        return await mind.conclude(ask, pad, hurried=True)
