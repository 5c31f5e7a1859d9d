"""A skill is a constant: what an agent can be asked for, what it takes, and what one must be allowed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Generic, Literal, TypeVar

from mesh.envelope import Wire

In = TypeVar("In", bound=Wire)
Out = TypeVar("Out", bound=Wire)

_NAME = re.compile(r"[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*")
_PERMISSION = re.compile(r"[a-z][a-z0-9_]*:[a-z][a-z0-9_]*")


class Card(Wire):
    """How the orchestrator recognises that a message is for a skill that takes `Ask` and returns `Answer`."""

    summary: str
    examples: tuple[str, ...]
    hears: Literal["question", "compound", "statement", "any"] = "any"
    """`compound`: a question that takes more than one look-up. It is asked other questions, too, but after those who
    hear them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill(Generic[In, Out]):
    """`needs` has no default: an unguarded skill cannot be written."""

    name: str
    """`agent.verb`; the agent's queue follows from it."""
    takes: type[In]
    returns: type[Out]
    needs: str
    """A permission, `area:verb`."""
    within: timedelta
    """The longest that one call may work, whatever the caller's deadline."""
    card: Card | None = None
    kept: bool = False
    """Whether a result is kept for a few minutes, for a replay after a crash: for what must not be done twice. A kept
    result is handed over only to a client whom the gate still admits."""
    fresh: bool = False
    """Look the client up again instead of trusting what was looked up within the last second."""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"skill name {self.name!r} is not of the form agent.verb")
        if not _PERMISSION.fullmatch(self.needs):
            raise ValueError(f"skill {self.name}: permission {self.needs!r} is not of the form area:verb")

    @property
    def queue(self) -> str:
        return queue_of(self.name.partition(".")[0])


def queue_of(agent: str) -> str:
    return f"mesh:{agent}"
