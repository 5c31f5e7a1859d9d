"""Log lines: event, key=value, units. Never message text, never a phone number (see `mesh.envelope.pseudonym`)."""

from __future__ import annotations

import hashlib
import logging
import re
import sys
from datetime import UTC, datetime

_NUMBER = re.compile(r"\+?\d{8,15}(?!\w)")
_META_ID = re.compile(r"wamid\.[A-Za-z0-9+/=_-]+")
"""Meta's id of a message: in base64, and the person's number is in it."""
_LETTERS = str.maketrans("0123456789", "ghijklmnop")
_QUIET = (
    "arq",
    "httpx",
    "httpcore",
    "uvicorn.access",
    "twilio",
    "asyncio",
    "pymongo",
    "qdrant_client",
    "mem0",
)


def set_up(process: str, level: str = "INFO", *, sparing: bool = False) -> None:
    """One line an event, to standard error. `sparing`: strangers can cause its warnings, and must not fill the disk."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Line(process))
    if sparing:
        handler.addFilter(Sparing())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)


class _Line(logging.Formatter):
    """With a net below the rule: what looks like a phone number is masked, wherever it came from."""

    def __init__(self, process: str) -> None:
        super().__init__()
        self._process = process

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC)
        line = f"{at:%Y-%m-%dT%H:%M:%S.%fZ} {record.levelname.lower():<7} {self._process} {record.getMessage()}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return _NUMBER.sub("[number]", _META_ID.sub(_named, line))


def _named(found: re.Match[str]) -> str:
    """Stable, and without digits that could pass for a number."""
    return f"wamid.{hashlib.sha256(found[0].encode()).hexdigest()[:16].translate(_LETTERS)}"


class Sparing(logging.Filter):
    """Of each logger's warnings and errors, so many in so many seconds. The first one afterwards says how many were
    left out."""

    def __init__(self, most: int = 20, seconds: float = 10.0) -> None:
        super().__init__()
        self._most = most
        self._seconds = seconds
        self._since: dict[tuple[str, int], float] = {}
        self._count: dict[tuple[str, int], int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING:
            return True
        kind = (record.name, record.levelno)
        left_out = 0
        if record.created - self._since.get(kind, 0.0) >= self._seconds:
            left_out = max(0, self._count.get(kind, 0) - self._most)
            self._since[kind], self._count[kind] = record.created, 0
        self._count[kind] += 1
        if left_out:
            record.msg = f"{record.msg} left_out={left_out}"
        return self._count[kind] <= self._most
