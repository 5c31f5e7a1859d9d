"""What to do about a question without a chat model: its shape decides which look-ups it takes, and what is made
of them.

A plan that cannot be carried through, because a price is missing or says something else, has no answer: then the
question is left to whoever quotes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import regex

from agents.analysis.scratchpad import Call, Finding, Observation, Scratchpad
from agents.analysis.tools import ASK_DOCUMENTS, ASK_MEMORY
from mesh.contracts.answers import Source
from mesh.questions import as_written, is_personal, parts
from mesh.text import content_words, words


@dataclass(frozen=True, slots=True)
class Conclusion:
    text: str
    sources: tuple[Source, ...]
    confidence: float


class Plan(Protocol):
    def next(self, pad: Scratchpad) -> Call | None:
        """None: there is nothing more to look up."""
        ...

    def fold(self, pad: Scratchpad, call: Call, observation: Observation) -> Scratchpad:
        """The pad with what the observation brings, and without the rest of it."""
        ...

    def conclude(self, pad: Scratchpad) -> Conclusion | None: ...


def folded(pad: Scratchpad, call: Call, observation: Observation) -> Scratchpad:
    """Each passage is a finding, in its own words."""
    findings = [
        Finding(passage.text, passage.text, passage.source, call.input, passage.confidence)
        for passage in observation.passages
    ]
    return pad.after(call, observation).found(*findings)


def unasked(pad: Scratchpad, calls: Iterable[Call]) -> Call | None:
    return next((call for call in calls if not pad.made(call)), None)


def concluded(text: str, findings: Iterable[Finding]) -> Conclusion:
    used = list(findings)
    sources = tuple(dict.fromkeys(finding.source for finding in used))
    return Conclusion(text, sources, min((finding.confidence for finding in used), default=0.0))


def names(text: str, thing: str) -> bool:
    """Whether each word that tells the thing from others is there."""
    wanted = set(content_words(thing))
    return bool(wanted) and wanted <= set(words(text))


def lines_about(finding: Finding, thing: str) -> list[str]:
    """Lines of the quotation that name the thing, and nothing longer where one is called just that: the double room is
    not the deluxe double room. All of them where its heading names it; none where nothing does."""
    lines = [bare for line in finding.quote.splitlines() if (bare := line.strip(" *•-"))]
    naming = [line for line in lines if names(line, thing)]
    wanted = set(content_words(thing))
    exact = [line for line in naming if set(content_words(called(line))) == wanted]
    if exact or naming:
        return exact or naming
    return lines if names(f"{finding.source.section} {finding.quote}", thing) else []


_CALLED = regex.compile(
    r"^\W*(?:(?P<column>[^:|,.]{1,40}): (?P<cell>[^,|]+), [^:|,]{1,40}: |(?P<item>[^:|.$€£₹\d]{1,60}): )"
)


def called(line: str) -> str:
    """The first cell of a row, or what stands before the colon of an item; empty for a sentence."""
    found = _CALLED.match(line)
    return (found["cell"] or found["item"]).strip() if found else ""


@dataclass(frozen=True, slots=True)
class Several:
    """Questions of which some are about the person: the documents answer what they can, the memory the rest."""

    text: str

    @classmethod
    def of(cls, text: str) -> Several | None:
        asked = parts(text)
        personal = sum(map(is_personal, asked))
        return cls(text) if 0 < personal < len(asked) else None

    def next(self, pad: Scratchpad) -> Call | None:
        remaining = [question for question in pad.open if is_personal(question)]
        return unasked(pad, [Call(ASK_DOCUMENTS, self.text), *(Call(ASK_MEMORY, question) for question in remaining)])

    def fold(self, pad: Scratchpad, call: Call, observation: Observation) -> Scratchpad:
        pad = folded(pad, call, observation)
        if call.tool == ASK_DOCUMENTS:
            return pad.asking(observation.unanswered if observation.passages else parts(self.text))
        return pad.asking(tuple(each for each in pad.open if each != call.input)) if observation.passages else pad

    def conclude(self, pad: Scratchpad) -> Conclusion | None:
        if not pad.findings:
            return None
        lines = [finding.quote for finding in pad.findings]
        lines += [f"I'm not sure about “{as_written(question)}”." for question in pad.open]
        return concluded("\n\n".join(lines), pad.findings)
