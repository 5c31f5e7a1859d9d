"""What the simulated Twilio saw, in the order in which it was known: enough to judge, from it alone, what was lost,
sent twice, out of order or left unanswered."""

from __future__ import annotations

import time
from collections import deque
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Literal, get_args

KEPT = 200_000
MOST = 5_000
"""Told at once: this many take some 20 ms, in which nothing else is served."""

Kind = Literal["said", "inbound", "outbound", "callbacks", "refused", "typing", "failed", "fetched"]
KINDS: tuple[Kind, ...] = get_args(Kind)


def now() -> dict[str, Any]:
    """`mono` is in seconds, of the machine's monotonic clock: comparable with other processes of the same machine."""
    return {"at": datetime.now(UTC).isoformat(), "mono": time.monotonic()}


class Journal:
    """Entries are numbered (`n`) without gaps, and never change."""

    def __init__(self) -> None:
        self._kept: deque[tuple[Kind, dict[str, Any]]] = deque(maxlen=KEPT)
        self._last = 0

    def write(self, kind: Kind, entry: dict[str, Any]) -> None:
        self._last += 1
        self._kept.append((kind, {"n": self._last, **entry}))

    def after(self, number: int, most: int) -> dict[str, Any]:
        """By kind; `last` is what to continue after, and `more` says whether there is something."""
        first = self._last - len(self._kept)
        start = min(max(number, first), self._last)
        end = min(start + min(max(most, 1), MOST), self._last)
        told: dict[str, Any] = {kind: [] for kind in KINDS}
        for kind, entry in islice(self._kept, start - first, end - first):
            told[kind].append(entry)
        return {**told, "last": end, "more": end < self._last}
