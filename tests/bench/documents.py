"""Reads every file of a folder as the mesh does, and holds what it yields against the folder's `manifest.json`: a list
of `{"file", "expect", "must_not", "outcome", "via"}`. White space is ignored, and so are the escapes of Markdown.

`outcome` is ok, empty, error:KIND, ok_or_limit or error_or_ok. A file that is read yields its strings or it doesn't;
one that is refused, and need not be read, has none to yield. DOCUMENT_READER=docling asks for Docling's text."""

from __future__ import annotations

import asyncio
import json
import os
import re
import resource
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from agents.knowledge.parsing import Parsed, parse
from mesh.errors import Unreadable
from mesh.settings import ROOT, Settings

DATA = Path(os.environ.get("ADIYAN_DATA", ROOT.parent / "shared" / "data")) / "docs"
_ESCAPE = re.compile(r"\\(?=[\\`*_\[\]<&#|~])")
_FAMILIES = {
    "tif": "image",
    "webp": "image",
    "png": "image",
    "jpg": "image",
    "bmp": "image",
    "gif": "image",
    "htm": "html",
}


@dataclass(frozen=True, slots=True)
class Read:
    listed: dict[str, Any]
    parsed: Parsed | Unreadable
    seconds: float

    @property
    def outcome(self) -> str:
        if isinstance(self.parsed, Parsed):
            return "ok"
        return "empty" if self.parsed.kind == "nothing" else f"error:{self.parsed.kind or 'crash'}"

    @property
    def crashed(self) -> bool:
        return isinstance(self.parsed, Unreadable) and "ended with" in self.parsed.detail

    @property
    def matches(self) -> bool:
        wanted = str(self.listed["outcome"])
        if self.crashed:
            return False
        if wanted == "ok_or_limit":
            return self.outcome in ("ok", "error:limit")
        return wanted == "error_or_ok" or self.outcome == wanted

    @property
    def expected(self) -> list[str]:
        """What need not be found, where a refusal is as good, is not counted when it is refused."""
        excused = self.listed["outcome"] in ("ok_or_limit", "error_or_ok") and self.outcome != "ok"
        return [] if excused else list(self.listed["expect"])

    @property
    def missed(self) -> list[str]:
        return [text for text in self.expected if not self._holds(text)]

    @property
    def violations(self) -> list[str]:
        return [text for text in self.listed.get("must_not", ()) if self._holds(text)]

    def _holds(self, text: str) -> bool:
        parts = self.parsed.parts if isinstance(self.parsed, Parsed) else ()
        read = "".join("".join(part.text.split()) for part in parts)
        wanted = "".join(text.split())
        return wanted in read or wanted in _ESCAPE.sub("", read)


async def run(data: Path = DATA) -> dict[str, object]:
    manifest = data / "manifest.json"
    if not manifest.exists():
        return {"skipped": f"no manifest.json in {data}: --data or ADIYAN_DATA says where the files are"}
    began = time.perf_counter()
    found = [await _read(data, listed) for listed in json.loads(manifest.read_text("utf-8"))]
    seconds = time.perf_counter() - began
    _print(found)
    return {
        "files": len(found),
        "expected_found": sum(len(each.expected) - len(each.missed) for each in found),
        "expected_total": sum(len(each.expected) for each in found),
        "must_not_violations": sum(len(each.violations) for each in found),
        "outcome_matches": sum(each.matches for each in found),
        "crashes": sum(each.crashed for each in found),
        "seconds": round(seconds, 2),
        "slowest": max(((round(each.seconds, 2), each.listed["file"]) for each in found), default=None),
        "peak_mb": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024,
        "by_format": _by_format(found),
        "by_docling": sum(
            any(part.how == "docling" for part in each.parsed.parts)
            for each in found
            if isinstance(each.parsed, Parsed)
        ),
        "without_ocr": _tally([each for each in found if each.listed.get("via") != "ocr"]),
        "missed": {each.listed["file"]: each.missed for each in found if each.missed},
        "violations": {each.listed["file"]: each.violations for each in found if each.violations},
        "other_outcomes": {
            each.listed["file"]: f"{each.outcome}, not {each.listed['outcome']}" for each in found if not each.matches
        },
    }


async def _read(data: Path, listed: dict[str, Any]) -> Read:
    raw = await asyncio.to_thread((data / listed["file"]).read_bytes)
    began = time.perf_counter()
    try:
        parsed: Parsed | Unreadable = await parse(listed["file"], raw, reader=Settings().document_reader)
    except Unreadable as error:
        parsed = error
    return Read(listed, parsed, time.perf_counter() - began)


def _by_format(found: list[Read]) -> dict[str, str]:
    families: dict[str, list[Read]] = {}
    for each in found:
        suffix = Path(each.listed["file"]).suffix.lstrip(".").lower()
        families.setdefault(_FAMILIES.get(suffix, suffix), []).append(each)
    return {family: _tally(members) for family, members in sorted(families.items())}


def _tally(found: list[Read]) -> str:
    count: Counter[str] = Counter()
    for each in found:
        count["total"] += len(each.expected)
        count["found"] += len(each.expected) - len(each.missed)
        count["match"] += each.matches
    return f"{count['found']}/{count['total']} strings, {count['match']}/{len(found)} outcomes"


def _print(found: list[Read]) -> None:
    table = Table("file", "via", "outcome", "missed or forbidden", "why", title="missed", title_justify="left")
    for each in found:
        if each.missed or each.violations or not each.matches:
            said = [repr(text) for text in each.missed] + [f"FORBIDDEN {text!r}" for text in each.violations]
            parsed = each.parsed
            why = "; ".join(parsed.troubles) if isinstance(parsed, Parsed) else f"{parsed.user_text} {parsed.detail}"
            outcome = each.outcome if each.matches else f"{each.outcome} ≠ {each.listed['outcome']}"
            table.add_row(each.listed["file"], each.listed.get("via", ""), outcome, "\n".join(said), why[:160])
    Console().print(table)
