"""Reads one file in a process of its own, so that a person's file can harm nothing else.

Run by path, so that it imports nothing of the mesh. In: the file; its name, and which reader, as arguments. Out: one
JSON object, `{"media_type", "parts": [[label, text, trouble, how], …]}` or `{"unreadable": sentence, "kind"}`.
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agents.knowledge.reading import Unreadable, files
else:
    sys.path.append(str(Path(__file__).parent))
    from reading import Unreadable, files

ADDRESS_SPACE = 2 << 30
CPU_SECONDS = 60
ADDRESS_SPACE_OF_OCR = 3 << 30
CPU_SECONDS_OF_OCR = 660


def _confine() -> None:
    """OCR takes the larger limits, when it is needed."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS_OF_OCR))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE_OF_OCR))


def main(name: str, reader: str) -> None:
    _confine()
    try:
        raw = sys.stdin.buffer.read()
        media_type, parts = files.read(name, raw)
        if reader == "docling":
            parts = files.reader("docling").instead(raw, media_type, parts)
        answer: dict[str, object] = {"media_type": media_type, "parts": parts}
    except Unreadable as error:
        answer = {"unreadable": str(error), "kind": error.kind}
    sys.stdout.buffer.write(json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace"))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "light")
