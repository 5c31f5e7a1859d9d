"""From the text of a document to what is embedded: by the author's headings, else by sentence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from agents.knowledge.cutting import pieces
from agents.knowledge.outline import Section, sections
from agents.knowledge.reading.files import WITH_HEADINGS
from mesh.ports.documents import Chunk, Part
from mesh.text import telling

_RULE = re.compile(r"[-=_*~\s]*")


def chunk(media_type: str, parts: Sequence[Part]) -> list[Chunk]:
    """Two sections never share a chunk: one fact among five subjects is not found. What has sections is told by the
    `media_type` that the reader found, whatever the file is called.

    Each is what its part holds from `start` on, where its table goes on below the header, repeated, of that table.
    """
    found: list[Chunk] = []
    for part in parts:
        for section in sections(part.text) if media_type in WITH_HEADINGS else [Section(0, len(part.text))]:
            body = part.text[section.start : section.end]
            for piece in pieces(body, section.whole):
                text = piece.header + body[piece.start : piece.end]
                if not _RULE.fullmatch(text):
                    found.append(Chunk(len(found), text, section.path, part.label, section.start + piece.start))
    return found


def embedding_text(name: str, chunk: Chunk) -> str:
    """What is embedded: the chunk under its file's and its headings' names. A name that says nothing is left out."""
    above = " > ".join(filter(None, (telling(PurePosixPath(name).stem), *chunk.heading_path)))
    return f"{above}\n{chunk.text}" if above else chunk.text
