"""Log lines: event, key=value, units. Never message text, never a phone number (see `mesh.envelope.pseudonym`)."""

from __future__ import annotations

import logging
import re
import sys

import structlog

_NUMBER = re.compile(r"\+?\d{8,15}(?!\w)")
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


def set_up(process: str, level: str = "INFO") -> None:
    """One line an event to standard error, through structlog's formatter for the standard library's loggers."""
    shared: list[structlog.typing.Processor] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="%Y-%m-%dT%H:%M:%S.%fZ", utc=True),
        _no_numbers,
    ]
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared,
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            _line(process),
        ],
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)


def _no_numbers(
    _: structlog.typing.WrappedLogger, __: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """A net below the rule: what looks like a phone number is masked, wherever it came from."""
    event["event"] = _NUMBER.sub("[number]", str(event.get("event", "")))
    return event


def _line(process: str) -> structlog.typing.Processor:
    def render(_: structlog.typing.WrappedLogger, __: str, event: structlog.typing.EventDict) -> str:
        trouble = event.get("exception")
        text = f"{event['timestamp']} {event['level']:<7} {process} {event['event']}"
        return f"{text}\n{trouble}" if trouble else text

    return render
