"""Drills on the chat model: it hangs, fails, or talks rubbish. What it can't answer, another agent does."""

from __future__ import annotations

from mesh.testing.script import Do, Step
from tests.drills.drill import Drill
from tests.drills.play import Play
from tests.drills.stage import WHOLE

COMPOUND = "Which is cheaper in all, the small package {token} or the large one?"
"""Takes more than one look-up, so the analysis agent is asked first, and thinks with the model."""
GARBAGE: tuple[Do, ...] = ("prose", "malformed", "wrong_shape", "empty", "truncated", "repeat", "drop")


async def hangs(play: Play) -> None:
    await _with(play, Step(do="hang"))


async def fails(play: Play) -> None:
    await _with(play, Step(do="fail"))


async def garbage(play: Play) -> None:
    await play.stage.model.next(*(Step(do=do) for do in GARBAGE * play.messages))
    await _ask(play)


async def _with(play: Play, step: Step) -> None:
    await play.stage.model.rules(step)
    await _ask(play)


async def _ask(play: Play) -> None:
    people = await play.stage.people(3)
    try:
        await play.stream(people, play.messages, 2, text=COMPOUND)
        await play.drain(90, 0)
        heard = await play.stage.model.heard()
    finally:
        await play.stage.model.reset()
    play.expect(bool(heard), "the model was never asked")
    play.extra["model_calls"] = len(heard)


DRILLS = tuple(
    Drill(f"model-{what}", f"the chat model {what}", play, messages=12, short=3, wanted=WHOLE)
    for what, play in (("hangs", hangs), ("fails", fails), ("garbage", garbage))
)
