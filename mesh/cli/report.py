"""What came of the demo's conversation: each line as it happens, and a summary at the end."""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import regex
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from mesh.cli.conversation import NAMES, Asked


@dataclass
class Heard:
    """What came of one line."""

    asked: Asked
    reply: str = ""
    sources: list[str] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    ms: float = 0.0

    @property
    def answered(self) -> bool:
        return bool(self.reply)

    @property
    def missing(self) -> list[str]:
        return [text for text in self.asked.expect if text.casefold() not in self.reply.casefold()]

    @property
    def leaked(self) -> list[str]:
        return [text for text in self.asked.forbid if text.casefold() in self.reply.casefold()]

    @property
    def held(self) -> bool:
        return self.answered and not self.missing and not self.leaked

    @property
    def refused(self) -> bool:
        """It was a question, and is answered by no skill: nothing that may be shown says it."""
        return self.answered and not self.sources and any("couldn't find" in text for text in self.asked.expect)

    @property
    def took(self) -> dict[str, float]:
        """Milliseconds that each agent was waited for."""
        waited: dict[str, float] = defaultdict(float)
        for step in self.steps:
            if found := _STEP.match(step):
                waited[found["agent"]] += float(found["ms"])
        return dict(waited)


_STEP = regex.compile(r"^(?P<agent>[a-z][a-z0-9_]*)\.[a-z0-9_]+ .*?(?P<ms>\d+) ms$")


def show(heard: Heard, console: Console) -> None:
    mark = "[green]✓[/]" if heard.held else "[red]✗[/]"
    name = NAMES.get(heard.asked.who, heard.asked.who)
    title = f"  [dim]{escape(heard.asked.shows)}[/]" if heard.asked.shows else ""
    console.print(f"{mark} [bold]{escape(name)}[/]: {escape(heard.asked.text)}{title}", soft_wrap=True)
    body = heard.reply.partition("\n\n_Source: ")[0]
    for line in (body or "no reply").splitlines():
        console.print(f"    [cyan]{escape(line)}[/]", soft_wrap=True)
    waited = [f"{agent} {ms:.0f} ms" for agent, ms in heard.took.items()]
    notes = [f"{heard.ms:.0f} ms", *waited, *(f"source: {source}" for source in dict.fromkeys(heard.sources))]
    console.print(f"    [dim]{escape(' · '.join(notes))}[/]", soft_wrap=True)
    for text in heard.missing:
        console.print(f"    [red]expected: {escape(text)}[/]")
    for text in heard.leaked:
        console.print(f"    [red]must not be there: {escape(text)}[/]")


def figures(heard: list[Heard], first_reply: float) -> dict[str, object]:
    expecting = [each for each in heard if each.asked.expect]
    found = [each for each in expecting if each.answered and not each.missing]
    times = [each.ms for each in heard if each.answered]
    return {
        "asked": len(heard),
        "answered": sum(each.answered for each in heard),
        "expected_found": round(len(found) / len(expecting), 4) if expecting else 1.0,
        "leaks": sum(bool(each.leaked) for each in heard),
        "first_reply_s": round(first_reply, 2),
        "p50_ms": round(statistics.median(times), 1) if times else 0.0,
        "by_agent": {
            agent: {"asked": len(ms), "p50_ms": round(statistics.median(ms), 1), "slowest_ms": round(max(ms), 1)}
            for agent, ms in _by_agent(heard).items()
        },
    }


def summarise(heard: list[Heard], summary: Mapping[str, object], troubles: Iterable[str], console: Console) -> None:
    """In words for somebody who has never seen this."""
    for trouble in troubles:
        console.print(f"[yellow]![/] {escape(trouble)}", soft_wrap=True)
    expecting = sum(bool(each.asked.expect) for each in heard)
    found = sum(each.answered and not each.missing for each in heard if each.asked.expect)
    sourced = sum(bool(each.sources) for each in heard)
    unknown = sum(each.refused for each in heard)
    leaks = sum(bool(each.leaked) for each in heard)
    forbidding = sum(bool(each.asked.forbid) for each in heard)
    lines = [(summary["answered"] == len(heard), f"{summary['answered']} of {len(heard)} messages were answered.")]
    if expecting:
        lines.append((found == expecting, f"{found} of {expecting} replies say what they should."))
    lines.append(
        (True, f"{sourced} stand on a passage of a document, or on what the person said before; the reply names it.")
    )
    if unknown:
        lines.append((True, f"{unknown} say that it is not known, where nothing that this person may see has it."))
    if forbidding:
        lines.append(
            (
                leaks == 0,
                f"{leaks} of {forbidding} replies show what this person may not see, when they were tempted to.",
            )
        )
    console.print("\n[bold]What came of it[/]")
    for good, line in lines:
        console.print(f"{'[green]✓[/]' if good else '[red]✗[/]'} {line}", soft_wrap=True)
    table = Table(
        "who worked on it", "messages", "usually", "at most", box=None, padding=(0, 2, 0, 0), header_style="dim"
    )
    for agent, ms in _by_agent(heard).items():
        table.add_row(agent, str(len(ms)), f"{statistics.median(ms):.0f} ms", f"{max(ms):.0f} ms")
    console.print()
    console.print(table)
    console.print(
        f"First reply {summary['first_reply_s']} s after the start; then {summary['p50_ms']:.0f} ms a reply (median), "
        "from the webhook to the reply at the provider.",
        soft_wrap=True,
    )


def write(file: Path, heard: list[Heard], summary: Mapping[str, object], troubles: list[str]) -> None:
    lines = [
        {
            "as": each.asked.who,
            "text": each.asked.text,
            "reply": each.reply,
            "sources": each.sources,
            "steps": each.steps,
            "ms": round(each.ms, 1),
            "held": each.held,
            "missing": each.missing,
            "leaked": each.leaked,
        }
        for each in heard
    ]
    file.write_text(json.dumps({**summary, "troubles": troubles, "lines": lines}, ensure_ascii=False, indent=1))


def _by_agent(heard: Iterable[Heard]) -> dict[str, list[float]]:
    """Milliseconds of each message that an agent was asked about; what is left of a turn is everybody else's: the
    gateway, the queues, the orchestrator and the sending."""
    waited: dict[str, list[float]] = defaultdict(list)
    for each in heard:
        for agent, ms in each.took.items():
            waited[agent].append(ms)
    rest = [each.ms - sum(each.took.values()) for each in heard if each.answered]
    by_name = {agent: waited[agent] for agent in sorted(waited)}
    return by_name | ({"gateway, orchestrator, sending": rest} if rest else {})
