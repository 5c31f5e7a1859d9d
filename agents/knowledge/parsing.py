"""Text out of a person's file, page by page. The work is done by `parse_child`, which may crash, hang or swell."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from mesh.errors import Misconfigured, Unreadable
from mesh.files import LARGEST, too_large
from mesh.ports.documents import Part
from mesh.settings import DocumentReader

WITHIN = 360.0
"""With OCR; without it, the child is ended after a minute of work."""

_CHILD = (sys.executable, "-I", str(Path(__file__).with_name("parse_child.py")))


@dataclass(frozen=True, slots=True)
class Parsed:
    media_type: str
    parts: tuple[Part, ...]

    @property
    def troubles(self) -> tuple[str, ...]:
        return tuple(part.trouble for part in self.parts if part.trouble)


def installed(reader: DocumentReader) -> DocumentReader:
    """Raises `Misconfigured`."""
    if reader == "docling" and find_spec("docling") is None:
        raise Misconfigured(
            "document_reader is docling, but Docling is not installed here. Start with "
            "ADIYAN_LOCK=requirements.docling.lock ADIYAN_VENV=.venv-docling ./run, or leave document_reader at light."
        )
    return reader


async def parse(
    name: str, raw: bytes, *, within: float = WITHIN, child: Sequence[str] = _CHILD, reader: DocumentReader = "light"
) -> Parsed:
    """At least one part has text. Raises `Unreadable`, which names the file, what is wrong and what to do."""
    if len(raw) > LARGEST:
        raise Unreadable(too_large(name, len(raw)), kind="limit")
    process = await asyncio.create_subprocess_exec(
        *child,
        name,
        reader,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(within):
            output, complaint = await process.communicate(raw)
    except TimeoutError as error:
        raise Unreadable(
            f"{name} took too long to read. Please split it, or save it as a simpler PDF and send that.",
            detail=f"stopped after {within:.0f} s",
            kind="limit",
        ) from error
    finally:
        await _end(process)
    if process.returncode != 0:
        raise Unreadable(
            f"{name} could not be read: it is damaged, or too complex. Please save it again as PDF or plain text.",
            detail=f"the parser ended with {process.returncode}: {complaint[-200:].decode(errors='replace')}",
            kind="limit" if (process.returncode or 0) < 0 or b"MemoryError" in complaint[-2000:] else "corrupt",
        )
    return _understood(output)


def _understood(output: bytes) -> Parsed:
    answer = json.loads(output)
    if sentence := answer.get("unreadable"):
        raise Unreadable(sentence, kind=answer["kind"])
    return Parsed(answer["media_type"], tuple(Part(*part) for part in answer["parts"]))


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
