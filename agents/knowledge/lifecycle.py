"""What a document is, as its name and its first heading tell: in force, a draft, or done with."""

from __future__ import annotations

from pathlib import PurePosixPath

import regex

from mesh.ports.passages import Passage

_OVER = regex.compile(
    r"\b(?:archived?|old|superseded|obsolete|deprecated|expired|withdrawn|archivad[oa]|antigu[oa]|obsolet[oa]|vencid[oa])\b"
    r"|पुरान[ाी]|समाप्त",
    regex.IGNORECASE,
)
_DRAFT = regex.compile(r"\b(?:draft|wip|proposal|borrador|propuesta)\b|मसौदा|प्रस्ताव", regex.IGNORECASE)
_BREAK = regex.compile(r"[_\-.]+")


def standing(passage: Passage) -> float:
    """1 for what is in force, which is what tells nothing else; 0.5 for a draft, 0 for what is done with."""
    named = (PurePosixPath(passage.source_filename).stem, *passage.chunk.heading_path[:1])
    told = _BREAK.sub(" ", " ".join(named))
    if _OVER.search(told):
        return 0.0
    return 0.5 if _DRAFT.search(told) else 1.0
