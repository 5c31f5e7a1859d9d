"""The loop and its scratchpad, with a mind and tools that are told what to do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import pytest

from agents.analysis.deciding import ByRules, plan_of, quoted
from agents.analysis.grounding import grounded
from agents.analysis.investigating import MOST_BARREN, MOST_STEPS, Investigated, investigate
from agents.analysis.plans import Conclusion, folded
from agents.analysis.scratchpad import LONGEST_PAD, Call, Finding, Observation, Passage, Scratchpad
from agents.analysis.tools import Tool
from mesh.contracts.answers import Ask, Source
from mesh.errors import Denied, MeshError, Unavailable, Unfit

NEVER = 1e12
SOURCE = Source(kind="document", name="a.md", reference="d1#0")


@dataclass
class Told:
    """Decides as it is told; keeps every passage."""

    calls: Iterable[Call | MeshError]
    hurried: list[bool] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._calls = iter(self.calls)

    async def decide(self, ask: Ask, pad: Scratchpad, tools: Mapping[str, Tool]) -> Call | None:
        call = next(self._calls, None)
        if isinstance(call, MeshError):
            raise call
        return call

    async def fold(self, ask: Ask, pad: Scratchpad, call: Call, observation: Observation) -> Scratchpad:
        return folded(pad, call, observation)

    async def conclude(self, ask: Ask, pad: Scratchpad, *, hurried: bool) -> Conclusion | None:
        self.hurried.append(hurried)
        return quoted(pad)


def tool(says: Callable[[str], str], *, error: MeshError | None = None) -> dict[str, Tool]:
    async def run(text: str) -> Observation:
        if error:
            raise error
        said = says(text)
        return Observation((Passage(said, SOURCE, 0.9),) if said else ())

    return {"look": Tool("look", "looks", run)}


async def run(mind: Told, tools: dict[str, Tool], **more: object) -> Investigated:
    return await investigate(Ask(text="What?"), mind, tools, **{"deadline": NEVER, **more})  # type: ignore[arg-type]  # a clock or a deadline


async def test_it_ends_when_it_is_told_to() -> None:
    found = await run(Told([Call("look", "a"), Call("look", "b")]), tool(lambda text: f"about {text}"))
    assert found.ended == "finished"
    assert [finding.quote for finding in found.pad.findings] == ["about a", "about b"]
    assert len(found.steps) == 2


async def test_there_are_ten_steps_at_most() -> None:
    endless = Told(Call("look", str(number)) for number in range(100))
    found = await run(endless, tool(lambda text: f"about {text}"))
    assert (len(found.steps), found.ended) == (MOST_STEPS, "step cap") == (10, "step cap")
    assert found.conclusion is not None


async def test_a_repeated_call_ends_it_with_what_is_found() -> None:
    found = await run(Told([Call("look", "a"), Call("look", " A ")]), tool(lambda text: "fact"))
    assert (found.ended, len(found.steps)) == ("repeated", 1)
    assert found.conclusion is not None
    assert found.conclusion.text == "fact"


async def test_a_dead_end_is_noticed() -> None:
    found = await run(Told(Call("look", str(number)) for number in range(100)), tool(lambda text: ""))
    assert (found.ended, len(found.steps), found.conclusion) == ("dead end", MOST_BARREN, None)


async def test_it_stops_in_time_and_concludes_at_once() -> None:
    now = [0.0]

    def says(text: str) -> str:
        now[0] += 4.0
        return f"about {text}"

    mind = Told(Call("look", str(number)) for number in range(100))
    found = await run(mind, tool(says), deadline=15.0, clock=lambda: now[0])
    assert found.ended == "out of time"
    assert now[0] == 12.0, "a step as long as the longest would have ended after the deadline"
    assert mind.hurried == [True]
    assert found.conclusion is not None


async def test_what_a_tool_fails_with_is_an_observation() -> None:
    found = await run(Told([Call("look", "a")]), tool(str, error=Unavailable()))
    assert found.ended == "finished"
    assert found.pad.troubles == (Unavailable.default,)


async def test_a_tool_that_is_refused_brings_nothing() -> None:
    found = await run(Told([Call("look", "a")]), tool(str, error=Denied()))
    assert (found.conclusion, found.pad.findings) == (None, ())


async def test_a_mind_that_fails_keeps_what_was_found() -> None:
    found = await run(Told([Call("look", "a"), Unfit()]), tool(lambda text: "fact"))
    assert found.ended == "unfit"
    assert found.conclusion is not None
    assert found.conclusion.text == "fact"


async def test_rules_use_no_tool_that_the_grant_does_not_cover() -> None:
    plan = plan_of("How much are 3 nights in the suite?")
    assert plan is not None
    found = await investigate(Ask(text="…"), ByRules(plan), {}, deadline=NEVER)
    assert (found.steps, found.conclusion) == ((), None)


async def test_a_cancelled_investigation_stops_its_tool() -> None:
    began, stopped = asyncio.Event(), asyncio.Event()

    async def run_tool(text: str) -> Observation:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return Observation()

    task = asyncio.create_task(run(Told([Call("look", "a")]), {"look": Tool("look", "looks", run_tool)}))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert stopped.is_set()


# ── the scratchpad ────────────────────────────────────────────────────────────────────────────────────────────────


def finding(text: str) -> Finding:
    return Finding(text, text, SOURCE, "what?")


def test_a_pad_stays_small_however_much_was_found() -> None:
    pad = Scratchpad()
    for number in range(500):
        call = Call("look", f"{number} " + "x" * 280)
        pad = pad.after(call, Observation((Passage("y", SOURCE),))).found(finding(f"{number} " + "z" * 5_000))
    pad = pad.asking("o" * 300 for _ in range(4))
    assert len(pad.rendered()) <= LONGEST_PAD
    assert "more findings" in pad.rendered(), "what is left out is counted"


def test_a_document_is_checked_once_and_a_finding_kept_once() -> None:
    pad = Scratchpad()
    for _ in range(2):
        pad = pad.after(Call("look", "a"), Observation((Passage("p", SOURCE),))).found(finding("one"))
    assert [document.name for document in pad.checked] == ["a.md"]
    assert len(pad.findings) == 1


# ── what a model may claim ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "text",
    [
        "The deluxe room costs 112 euros.",
        "Three nights cost 336 euros in total.",
        "Ms Solís runs Casa Verde.",
        "That isn't known.",
    ],
)
def test_what_the_evidence_says_is_borne_out(text: str) -> None:
    evidence = ["Deluxe room: 112 euros", "3 nights, three: 336 euros", "Marta Solís represents Casa Verde. Ms Solís"]
    assert grounded(text, evidence)


@pytest.mark.parametrize(
    "text",
    [
        "The deluxe room costs 113 euros.",
        "It costs 112 euros, and breakfast is 9 euros.",
        "It was founded by Joana Prado.",
        "It is open on Sunday.",
        "It costs two hundred euros.",
    ],
)
def test_an_invention_is_not(text: str) -> None:
    assert not grounded(text, ["Deluxe room: 112 euros", "Marta Solís represents Casa Verde."])
