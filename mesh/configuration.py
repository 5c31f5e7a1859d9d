"""Tiers and agents as `config/` has them: what MongoDB is seeded from."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mesh.errors import Misconfigured
from mesh.ports import Tier
from mesh.settings import read_yaml

_PERMISSION = re.compile(r"[a-z][a-z0-9_]*:[a-z][a-z0-9_]*")


class _Tier(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str = Field(pattern=r"^[a-z][a-z0-9_-]*$")
    permissions: list[str]
    refusal: str = ""


class AgentEntry(BaseModel):
    """`module` is loaded by the worker; it must have an `agent`."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    module: str = Field(pattern=r"^[A-Za-z_][\w.]*$")
    copies: int = Field(default=1, ge=0, le=64)


def tiers(config: Path) -> list[Tier]:
    file = config / "tiers.yaml"
    return [_tier(file, entry) for entry in _list(file)]


def agents(config: Path) -> list[dict[str, Any]]:
    """In the order of their names. There must be an orchestrator: without one, nobody would ever be answered."""
    found = [_agent(file).model_dump() for file in sorted((config / "agents").glob("*.yaml"))]
    if not any(entry["name"] == "orchestrator" for entry in found):
        raise Misconfigured(f"{config / 'agents'} has no entry for the orchestrator: nobody would be answered.")
    return found


def entry_of(document: dict[str, object]) -> AgentEntry:
    """An agent as MongoDB has it. Raises `Misconfigured`."""
    try:
        return AgentEntry.model_validate(document)
    except ValidationError as error:
        raise Misconfigured(f"MongoDB, agent {document.get('name')}: {_what(error)}") from error


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
        if not _PERMISSION.fullmatch(permission):
            raise Misconfigured(f"{file}: tier {tier.name}: permission {permission!r} is not of the form area:verb.")
    return Tier(tier.name, frozenset(tier.permissions), tier.refusal)


def _agent(file: Path) -> AgentEntry:
    try:
        return AgentEntry.model_validate(read_yaml(file))
    except ValidationError as error:
        raise Misconfigured(f"{file}: {_what(error)}") from error


def _what(error: ValidationError) -> str:
    first = error.errors()[0]
    return f"{'.'.join(map(str, first['loc'])) or 'the entry'}: {first['msg']}; it is {first['input']!r}."
