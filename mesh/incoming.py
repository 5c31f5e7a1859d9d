"""A person's message as the ledger keeps it, and what sets it apart from those around it."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from mesh.commands import command_of
from mesh.ports.channel import Attachment, Inbound

NOTICE = "notice:"
"""What the id of no provider begins with: the mesh itself wants to say something."""


def pack_inbound(message: Inbound) -> str:
    return json.dumps(dataclasses.asdict(message))


def unpack_inbound(body: str | bytes) -> Inbound:
    """A newer version may have written more: what is not known here is left aside."""
    kept: dict[str, Any] = _known_of(Inbound, json.loads(body))
    attachments = tuple(Attachment(**_known_of(Attachment, each)) for each in kept.pop("attachments", ()))
    return Inbound(**kept, attachments=attachments)


def _known_of(kind: type, found: dict[str, Any]) -> dict[str, Any]:
    names = {field.name for field in dataclasses.fields(kind)}
    return {name: value for name, value in found.items() if name in names}


def is_stop(message: Inbound) -> bool:
    """Whether they want no more messages. That counts from the moment that it is accepted."""
    if message.message_id.startswith(NOTICE) or message.kind == "reaction" or message.media:
        return False
    command = command_of(message.text, message.button)
    return command is not None and command.name == "stop"


def kind_of(message: Inbound) -> str:
    """What sets a message apart from those around it, so that it is answered by itself: `cancel`, another `command`,
    `media`, `reaction`, or `notice` when the mesh itself wants to say something; empty for plain text."""
    if message.message_id.startswith(NOTICE):
        return "notice"
    if message.kind == "reaction":
        return "reaction"
    if message.media:
        return "media"
    command = command_of(message.text, message.button)
    if command:
        return "cancel" if command.name == "cancel" else "command"
    return "command" if message.text.strip().startswith("/") else ""
