"""What an investigation knows: findings with their sources, documents that were checked, questions that are open. It is
all that a decision sees; what a tool returned is folded into it, and dropped."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from mesh.contracts.answers import Source
from mesh.text import clipped

MOST_FINDINGS = 24
LONGEST_FINDING = 600
LONGEST_PAD = 7_000
"""In characters, as a decision reads it."""


@dataclass(frozen=True, slots=True)
class Call:
    """One use of a tool."""

    tool: str
    input: str

    @property
    def same(self) -> tuple[str, str]:
        """Two calls that differ in case or spacing alone ask the same."""
        return self.tool, " ".join(self.input.casefold().split())

    def __str__(self) -> str:
        return f"{self.tool}: {self.input}"


@dataclass(frozen=True, slots=True)
class Passage:
    text: str
    source: Source
    confidence: float = 0.0


@dataclass(frozen=True, slots=True)
class Observation:
    """What a tool returned. `trouble` is for the person to read."""

    passages: tuple[Passage, ...] = ()
    unanswered: tuple[str, ...] = ()
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """`quote` is the source's own words; `claim` may say it shorter."""

    claim: str
    quote: str
    source: Source
    about: str
    """What was asked when it was found."""
    confidence: float = 0.0
    cells: tuple[tuple[str, str], ...] = ()
    """Of a table's row, with the names of their columns."""


@dataclass(frozen=True, slots=True)
class Checked:
    name: str
    document_id: str


@dataclass(frozen=True, slots=True)
class Scratchpad:
    findings: tuple[Finding, ...] = ()
    checked: tuple[Checked, ...] = ()
    open: tuple[str, ...] = ()
    calls: tuple[Call, ...] = field(default=())
    troubles: tuple[str, ...] = ()

    def about(self, question: str) -> list[Finding]:
        return [finding for finding in self.findings if finding.about == question]

    def made(self, call: Call) -> bool:
        return any(call.same == other.same for other in self.calls)

    def after(self, call: Call, observation: Observation) -> Scratchpad:
        """With the call, the documents that it looked at, and what went wrong; the findings are for whoever folds."""
        seen = {document.document_id for document in self.checked}
        looked_at = [
            Checked(passage.source.name, passage.source.reference.partition("#")[0])
            for passage in observation.passages
            if passage.source.kind == "document"
        ]
        new = {each.document_id: each for each in looked_at if each.document_id not in seen}
        troubles = self.troubles + ((observation.trouble,) if observation.trouble else ())
        return replace(self, calls=(*self.calls, call), checked=(*self.checked, *new.values()), troubles=troubles)

    def asking(self, questions: Iterable[str]) -> Scratchpad:
        return replace(self, open=tuple(dict.fromkeys(questions)))

    def found(self, *findings: Finding) -> Scratchpad:
        """A quotation that is known already is not kept twice, and there is an end to them."""
        kept = list(self.findings)
        for finding in findings:
            if not any(finding.quote == other.quote and finding.about == other.about for other in kept):
                kept.append(replace(finding, claim=clipped(finding.claim, LONGEST_FINDING)))
        return replace(self, findings=tuple(kept[:MOST_FINDINGS]))

    def rendered(self, limit: int = LONGEST_PAD) -> str:
        """As a decision reads it. What has no room is counted, so that nobody takes the part for the whole."""
        lines = [f"[{n}] {finding.claim} ({finding.source.label})" for n, finding in enumerate(self.findings, 1)]
        shown: list[str] = []
        for line in lines:
            if sum(map(len, shown)) + len(line) > limit * 2 // 3:
                shown.append(f"… and {len(lines) - len(shown)} more findings")
                break
            shown.append(line)
        blocks = [
            "Findings:\n" + ("\n".join(shown) or "none yet"),
            "Documents checked: " + (", ".join(document.name for document in self.checked) or "none yet"),
            "Still open: " + ("; ".join(self.open) or "nothing"),
            "Already tried:\n" + ("\n".join(map(str, self.calls)) or "nothing yet"),
        ]
        return clipped("\n\n".join(clipped(block, limit) for block in blocks), limit)
