"""What could not be read in a Word file, where it is, and why."""

from __future__ import annotations

from dataclasses import dataclass

from . import Parts
from .drawings import Picture

NAMED = 10
"""Of one kind; the others are counted."""
QUOTED = 60
"""Characters."""


@dataclass
class Entry:
    kind: str
    why: str
    where: str = ""


class Report:
    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._pictures: set[object] = set()
        self._hidden: list[str] = []
        self._hides = False
        self._damaged: list[str] = []

    @property
    def pictures(self) -> int:
        return len(self._pictures)

    def __bool__(self) -> bool:
        return bool(self._entries or self._hidden or self._damaged)

    def shows(self, which: object, found: Picture) -> bool:
        """False for a picture that was seen before, and for decoration."""
        if found.decorative or found.small or which in self._pictures:
            return False
        self._pictures.add(which)
        return True

    def picture(self, found: Picture) -> None:
        alt = f"“{shortened(found.alt)}”" if found.alt else "none"
        self.unread("picture", f"its text could not be read; alt text: {alt}")

    def unread(self, kind: str, why: str = "its text could not be read") -> None:
        self._entries.append(Entry(kind, why))

    def hides(self) -> None:
        self._hides = True

    def damaged(self, what: str) -> None:
        self._damaged.append(what)

    def settle(self, where: str) -> None:
        """Where all that was told since the last call is."""
        for entry in self._entries:
            entry.where = entry.where or where
        if self._hides:
            self._hidden.append(where)
            self._hides = False

    def parts(self) -> Parts:
        found: Parts = []
        for kind in dict.fromkeys(entry.kind for entry in self._entries):
            entries = [entry for entry in self._entries if entry.kind == kind]
            for number, entry in enumerate(entries[:NAMED], start=1):
                label = f"{kind} {number}"
                found.append((label, "", f"{label} ({entry.where}): {entry.why}"))
            if (more := len(entries) - NAMED) > 0:
                others = f"{more} more {kind}{'s' if more > 1 else ''}"
                found.append((others, "", f"and {others} that could not be read"))
        if self._hidden:
            places = f"in {len(self._hidden)} places, first " if len(self._hidden) > 1 else ""
            why = f"hidden text ({places}{self._hidden[0]}): Word does not show it, so it was left out"
            found.append(("hidden text", "", why))
        found += [(what, "", f"{what}: damaged, and could not be read") for what in self._damaged]
        return found


def shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= QUOTED else text[:QUOTED].rsplit(" ", 1)[0].rstrip(" ,.;:") + "…"
