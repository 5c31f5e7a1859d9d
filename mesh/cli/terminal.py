"""What every command needs: the terminal, a loop to run in, and the forms of what people type."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Coroutine
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console

from mesh.cli.printing import show, table
from mesh.errors import Malformed

T = TypeVar("T")
_SPACING = re.compile(r"[\s().-]")
console = Console(highlight=False)
Identity = Annotated[str, typer.Argument(help="A number such as +15551230001, or whatsapp:<id>.", show_default=False)]


def finish(work: Coroutine[Any, Any, T]) -> T:
    """Runs to the end; Ctrl-C ends it quietly with 130."""
    try:
        return asyncio.run(work)
    except KeyboardInterrupt:
        raise SystemExit(130) from None


def as_identity(text: str) -> str:
    """A number as people write it, with spaces and brackets, is understood. Raises `Malformed`."""
    from mesh.settings import IDENTITY

    text = _SPACING.sub("", text) if text.strip().startswith("+") else text
    if not IDENTITY.fullmatch(text):
        raise Malformed(f"{text!r} is not an identity: write a number with its country code, such as +15551230001.")
    return text


def print_table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    show(console, table(heads, rows))
