"""Readers of one format each, for `parse_child`: they run in its process, and import nothing of the mesh."""

from __future__ import annotations

import re
from typing import Literal

LONGEST_TEXT = 20_000_000
READABLE = "Please send it as PDF, Word (.docx), Markdown or plain text."

Parts = list[tuple[str, ...]]
"""Label, text and trouble of each, and for some a fourth: how its text was read (`mesh.ports.documents.Part`). A
trouble begins with what it is about."""

_CONTROL = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f]")


Kind = Literal["corrupt", "empty", "limit", "nothing", "password", "unsupported"]
"""Why a file is refused. `empty` has no content at all, `nothing` has no text in it."""


class Unreadable(Exception):
    """Its text is a sentence for the person who sent the file, and begins with the file's name."""

    def __init__(self, sentence: str, kind: Kind = "corrupt") -> None:
        super().__init__(sentence)
        self.kind = kind


def plain(text: str) -> str:
    return _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def controls(text: str) -> int:
    return len(_CONTROL.findall(text))
