"""Files as they are handed out: how their names read, and what a link to one says."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

PATH = "/files"
GONE = "This link is not valid, or not any more. Please ask for the file again in the chat."

_OVERRIDES = frozenset({"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"})


@dataclass(frozen=True, slots=True)
class Link:
    """Which document, and on whose behalf it is asked for."""

    document_id: str
    client: str
    expires: int
    """In seconds since the epoch, by the mesh's clock."""


def readable(name: str) -> str:
    """Without what would make it read otherwise than it is: control characters, line ends, turned writing."""
    return "".join(character for character in name if not _hides(character))


def _hides(character: str) -> bool:
    kind = unicodedata.category(character)
    return kind in ("Cc", "Cs", "Zl", "Zp") or unicodedata.bidirectional(character) in _OVERRIDES
