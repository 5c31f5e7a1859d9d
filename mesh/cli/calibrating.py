"""How strict to be with the documents, learned from the documents."""

from __future__ import annotations

from rich.console import Console

from mesh.bus import Bus
from mesh.cli.admin import ask_as_owner, needs
from mesh.cli.printing import Row, Sheet
from mesh.cli.progressing import bars
from mesh.contracts.upkeep import CALIBRATE, SOUND_OUT, Calibrate, Sounding, SoundOut, Threshold
from mesh.settings import Settings
from mesh.up import running_settings

TOO_LITTLE = (
    "There is too little to learn from: the defaults hold. It takes a dozen passages that one person sees, "
    "each with a sentence or two; `adiyan kb list` counts them as chunks."
)


async def calibrate(console: Console) -> Sheet:
    settings, _ = running_settings()
    await needs(settings, "knowledge")
    async with Bus(settings.redis_url) as bus:
        found = await _sounded(bus, settings, console)
        learnt = (await ask_as_owner(bus, settings, CALIBRATE, Calibrate(found=tuple(found)))).learnt if found else ()
    notes = [] if learnt else [TOO_LITTLE]
    heads = ("documents that are seen by", "questions", "stricter by", "answered", "answered in vain")
    return Sheet(heads=heads, rows=[_row(each) for each in learnt], notes=notes)


async def _sounded(bus: Bus, settings: Settings, console: Console) -> list[Sounding]:
    found: list[Sounding] = []
    after: int | None = 0
    with bars(console) as progress:
        task = progress.add_task("questions", total=None)
        while after is not None:
            page = await ask_as_owner(bus, settings, SOUND_OUT, SoundOut(after=after))
            found += page.found
            after = page.following
            progress.update(task, total=page.total, completed=page.total if after is None else after)
    return found


def _row(learnt: Threshold) -> Row:
    return (
        learnt.viewer or "everybody",
        str(learnt.asked),
        _changed(f"{learnt.before:+.2f}", f"{learnt.after:+.2f}"),
        _changed(*(f"{share:.0%}" for share in learnt.answered)),
        _changed(*(f"{share:.0%}" for share in learnt.invented)),
    )


def _changed(before: str, after: str) -> str:
    return after if before == after else f"{before} → {after}"
