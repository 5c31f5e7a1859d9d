"""What crosses a process boundary: frozen, with named fields, and JSON on the wire (never pickle)."""

from __future__ import annotations

import hashlib
import secrets
from functools import cached_property
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

MESH = "mesh"
"""The mesh's own identity: it may drive the ledger and nothing else. No person's identity can look like it."""


class Wire(BaseModel):
    """A payload. Fields that it does not name are left aside: during a deploy, a newer version may have written them.
    So a new field must never narrow what the others allow."""

    model_config = ConfigDict(frozen=True, extra="ignore", ser_json_bytes="base64", val_json_bytes="base64")


class Request(Wire):
    """One ask. It carries no tier and no permission: those are looked up where the work is done."""

    client: str
    """On whose behalf: an E.164 number, `whatsapp:<id>`, or `MESH`."""
    skill: str
    payload: JsonValue
    trace: str
    key: str
    """Idempotency key: the same client, skill and key is the same work."""
    deadline: float
    """Absolute, in seconds since the epoch."""

    @cached_property
    def job_id(self) -> str:
        """Bound to the client, so that another client's replay can never attach to this result."""
        return f"{self.skill}:{digest(self.client, self.skill, self.key)}"


class Ok(Wire):
    outcome: Literal["ok"] = "ok"
    value: JsonValue


class Failed(Wire):
    outcome: Literal["failed"] = "failed"
    code: str
    user_text: str


Outcome = Annotated[Ok | Failed, Field(discriminator="outcome")]


def digest(*parts: str, length: int = 32) -> str:
    """Hex of a SHA-256 over length-prefixed parts: ("ab", "c") and ("a", "bc") differ."""
    hashed = hashlib.sha256()
    for part in parts:
        raw = part.encode("utf-8", "surrogatepass")
        hashed.update(len(raw).to_bytes(8, "big"))
        hashed.update(raw)
    return hashed.hexdigest()[:length]


def new_trace() -> str:
    return secrets.token_hex(8)


def pseudonym(client: str) -> str:
    """How a client is named in logs: stable, and not a phone number."""
    return client if client == MESH else "c_" + digest("client", client, length=10)
