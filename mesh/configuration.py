"""Tiers and agents as `config/` has them: what MongoDB is seeded from."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from mesh.errors import Misconfigured
from mesh.ports.people import Tier
from mesh.settings import read_yaml

PERMISSION = re.compile(r"[a-z][a-z0-9_]*:[a-z][a-z0-9_]*")
ORCHESTRATOR = "orchestrator"
TAKEN = frozenset({"gateway", "dashboard"})
"""Processes of the mesh that are no agents."""


class _Tier(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str = Field(pattern=r"^[a-z][a-z0-9_-]*$")
    permissions: list[str]
    refusal: str = ""


class AgentEntry(BaseModel):
    """`module` is loaded by the worker; it must have an `agent`. With 0 copies it is off: nothing is asked of it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    module: str = Field(pattern=r"^[A-Za-z_][\w.]*$")
    copies: int = Field(default=1, ge=0, le=64)

    @field_validator("name")
    @classmethod
    def _is_free(cls, name: str) -> str:
        if name in TAKEN:
            raise ValueError("is the name of a process of the mesh itself")
        return name

    @field_validator("copies")
    @classmethod
    def _answers(cls, copies: int, info: ValidationInfo) -> int:
        if copies == 0 and info.data.get("name") == ORCHESTRATOR:
            raise ValueError("the orchestrator can't be switched off: nobody would be answered")
        return copies


@dataclass(frozen=True, slots=True)
class Agents:
    """As MongoDB has them. By name: those that can be read as they were meant, and what is wrong with the others."""

    good: dict[str, AgentEntry]
    bad: dict[str, str]

    def serves(self, name: str) -> bool:
        """Whether it may be asked for anything."""
        return name in self.good and self.good[name].copies > 0


def tiers(config: Path) -> list[Tier]:
    file = config / "tiers.yaml"
    return [_tier(file, entry) for entry in _list(file)]


def agents(config: Path) -> list[dict[str, Any]]:
    """In the order of their names. There must be an orchestrator: without one, nobody would ever be answered."""
    found = [_agent(file).model_dump() for file in sorted((config / "agents").glob("*.yaml"))]
    if not any(entry["name"] == ORCHESTRATOR for entry in found):
        raise Misconfigured(f"{config / 'agents'} has no entry for the orchestrator: nobody would be answered.")
    return found


def entry_of(document: dict[str, object]) -> AgentEntry:
    """An agent as MongoDB has it. Raises `Misconfigured`."""
    try:
        return AgentEntry.model_validate(document)
    except ValidationError as error:
        raise Misconfigured(f"MongoDB, agent {document.get('name')}: {_what(error)}") from error


def read_agents(documents: Iterable[dict[str, object]]) -> Agents:
    good: dict[str, AgentEntry] = {}
    bad: dict[str, str] = {}
    for document in documents:
        name = str(document.get("name"))
        if name in good or name in bad:
            good.pop(name, None)
            bad[name] = f"MongoDB, agent {name}: there are two entries of this name."
            continue
        try:
            good[name] = entry_of(document)
        except Misconfigured as error:
            bad[name] = error.user_text
    return Agents(good, bad)


def _list(file: Path) -> list[Any]:
    entries = read_yaml(file)
    if not isinstance(entries, list):
        raise Misconfigured(f"{file} must be a list of tiers, each with a name and permissions.")
    return entries


def _tier(file: Path, entry: Any) -> Tier:
    try:
        tier = _Tier.model_validate(entry)
    except ValidationError as error:
        raise Misconfigured(f"{file}: {_what(error)}") from error
    for permission in tier.permissions:
        if not PERMISSION.fullmatch(permission):
            raise Misconfigured(f"{file}: tier {tier.name}: permission {permission!r} is not of the form area:verb.")
    return Tier(tier.name, frozenset(tier.permissions), tier.refusal)


def _agent(file: Path) -> AgentEntry:
    try:
        return AgentEntry.model_validate(read_yaml(file))
    except ValidationError as error:
        raise Misconfigured(f"{file}: {_what(error)}") from error


def _what(error: ValidationError) -> str:
    first = error.errors()[0]
    message = first["msg"].removeprefix("Value error, ")
    return f"{'.'.join(map(str, first['loc'])) or 'the entry'}: {message}; it is {first['input']!r}."
