"""Meta's webhooks: is this body really Meta's, and what does it say? Light on purpose: the gateway imports it.

One body may hold messages and statuses of many people, of several numbers. What of it can't be read is left out and
named, since refusing it would make Meta send all of it again for a week.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mesh.envelope import digest
from mesh.errors import Malformed, Misconfigured
from mesh.ports.channel import Attachment, Delivery, Inbound, InboundKind

SIGNATURE_HEADER = "X-Hub-Signature-256"
REFERENCE = "meta:"
"""What an attachment's reference begins with, before Meta's id of the file."""
MAX_FIELDS = 200
MAX_DEPTH = 6
_PREFIX = "whatsapp:"
_GIVEN = re.compile(r"sha256=([0-9a-f]{64})")
_NUMBER = re.compile(r"\+?([1-9][0-9]{6,14})")
_SCOPED = re.compile(r"[A-Z]{2}\.[A-Za-z0-9.]{1,132}")
"""WhatsApp's id of a person, as one business sees them: a country, and letters and digits."""
_ID = re.compile(r"[A-Za-z0-9_.=+/-]{1,256}")
_MEDIA_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
_STATE = re.compile(r"[a-z_]{1,32}")
_ECHO = re.compile(r"[0-9a-f]{32}")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_FILES: dict[str, InboundKind] = {
    "document": "document",
    "image": "image",
    "audio": "audio",
    "voice": "audio",
    "video": "video",
    "sticker": "sticker",
}
_SAME_STATE = {"played": "read"}

WINDOW_CLOSED, WITHHELD, TOO_FAST = "63016", "63049", "63018"
PASSING = ("1", "2", "131000", "131016")
"""Faults of Meta's own: nobody knows whether it took the message."""
_RATES = ("4", "80007", "130429", "131056")
CODES = {
    "131047": WINDOW_CLOSED,
    **dict.fromkeys(("131049", "130472", "131050"), WITHHELD),
    **dict.fromkeys((*_RATES, *PASSING), TOO_FAST),
    "131030": "63015",
    **dict.fromkeys(("131026", "131021"), "63024"),
}
"""Meta's codes in the words that the mesh reacts to, which are Twilio's; what is not here keeps its own code.

131050 is no opt-out: who wants no more *marketing* still asks, and is to be answered. What Meta calls a passing fault
comes once more in a while, as what was too fast does."""


@dataclass(frozen=True, slots=True)
class Status:
    """What became of a message of ours. `code` is Meta's own, `at` in seconds since the epoch."""

    delivery: Delivery
    code: str = ""
    echo: str = ""
    """What we gave along when we sent it (see `echo_of`); empty when it was not we."""
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class Webhook:
    messages: tuple[Inbound, ...] = ()
    statuses: tuple[Status, ...] = ()
    aside: tuple[str, ...] = ()
    """What was left out, and why: for the log."""


class Signatures:
    def __init__(self, app_secret: str) -> None:
        """Raises `Misconfigured`: with an empty secret, anybody could sign."""
        if not app_secret:
            raise Misconfigured("META_APP_SECRET is empty: no webhook could be told from a forged one.")
        self._secret = app_secret.encode()

    def check(self, given: str) -> Check | None:
        """None for what can't be a signature."""
        found = _GIVEN.fullmatch(given)
        return Check(found[1], hmac.new(self._secret, digestmod=hashlib.sha256)) if found else None


class Check:
    """Of one body, part by part, exactly as it comes in."""

    def __init__(self, given: str, computed: hmac.HMAC) -> None:
        self._given = given
        self._computed = computed

    def take(self, part: bytes) -> None:
        self._computed.update(part)

    def fits(self) -> bool:
        """Takes the same time whether and where it differs."""
        return hmac.compare_digest(self._computed.hexdigest(), self._given)


def signature(body: bytes, app_secret: str) -> str:
    return f"sha256={hmac.new(app_secret.encode(), body, hashlib.sha256).hexdigest()}"


def echo_of(sender: str, recipient: str, text: str) -> str:
    """What goes along with a message, and comes back in its statuses."""
    return digest("meta", sender, recipient, text.encode("utf-8", "replace").decode())


def translated(code: str) -> str:
    return CODES.get(code, code)


# ── walking ───────────────────────────────────────────────────────────────────────────────────────────────────────


def parse_webhook(raw: bytes, numbers: Mapping[str, str]) -> Webhook:
    """`numbers` of ours, by Meta's ids of them. Raises `Malformed` only when nothing of it can be read."""
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError) as cause:
        raise Malformed(detail="the body is not JSON") from cause
    if not isinstance(body, dict) or not isinstance(body.get("entry"), list):
        raise Malformed(detail="the body is no webhook of Meta's")
    messages: list[Inbound] = []
    statuses: list[Status] = []
    aside: list[str] = []
    for value in _values(body):
        recipient = numbers.get(_text(_of(value, "metadata").get("phone_number_id")))
        if recipient is None:
            aside.append("it is of a number that is not ours: see META_PHONE_NUMBER_ID")
            continue
        aside.extend(f"Meta reports error {_text(trouble.get('code'))}" for trouble in _each(value, "errors"))
        for message in _each(value, "messages"):
            try:
                messages.append(_inbound(message, value, recipient))
            except Malformed as error:
                aside.append(error.detail)
        for status in _each(value, "statuses"):
            try:
                statuses.append(_status(status))
            except Malformed as error:
                aside.append(error.detail)
    return Webhook(tuple(messages), tuple(statuses), tuple(aside))


def _values(body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for entry in _each(body, "entry"):
        for change in _each(entry, "changes"):
            if change.get("field", "messages") == "messages":
                yield _of(change, "value")


def _inbound(message: Mapping[str, Any], value: Mapping[str, Any], recipient: str) -> Inbound:
    kind = _text(message.get("type"))
    if kind == "system":  # says that somebody's number changed: nobody has asked anything
        raise Malformed(detail=f"it is a notice of WhatsApp's: {_name(_of(message, 'system').get('type'))}")
    message_id = _text(message.get("id"))
    if not _ID.fullmatch(message_id):
        raise Malformed(detail="a message has no usable id")
    contact = _contact(message, value)
    sender = _sender(message, contact)
    quoted = _text(_of(message, "context").get("id"))
    said = _said(kind, message)
    return Inbound(
        message_id=message_id,
        sender=sender,
        recipient=recipient,
        text=said.text,
        fields=_fields(message, contact, value),
        media=int(kind in _FILES),
        kind=said.kind,
        attachments=said.attachments,
        quoted=found if _ID.fullmatch(found := said.quoted or quoted) else "",
        button=said.button,
    )


def _sender(message: Mapping[str, Any], contact: Mapping[str, Any]) -> str:
    """The number, which Meta vouches for; WhatsApp's id for somebody who has a name in its place."""
    if given := _text(message.get("from")):
        number = _NUMBER.fullmatch(given)
        if number:
            return f"+{number[1]}"
    for scoped in (given, _text(message.get("from_user_id")), _text(contact.get("user_id"))):
        if _SCOPED.fullmatch(scoped):
            return _PREFIX + scoped
    raise Malformed(detail="a message does not tell who sent it")


def _contact(message: Mapping[str, Any], value: Mapping[str, Any]) -> dict[str, Any]:
    contacts = list(_each(value, "contacts"))
    for contact in contacts:
        for theirs, its in (("wa_id", "from"), ("user_id", "from_user_id")):
            if contact.get(theirs) and contact.get(theirs) == message.get(its):
                return contact
    return contacts[0] if len(contacts) == 1 and not message.get("from") else {}


# ── what was said ─────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _Said:
    kind: InboundKind
    text: str = ""
    attachments: tuple[Attachment, ...] = ()
    quoted: str = ""
    button: str = ""


def _said(kind: str, message: Mapping[str, Any]) -> _Said:
    what = _of(message, kind)
    if kind == "text":
        return _Said("text", _clean(what.get("body")))
    if kind in _FILES:
        return _Said(_FILES[kind], _clean(what.get("caption")), _attachments(what))
    if kind == "location":
        return _Said("location", _place(what))
    if kind == "reaction":  # without an emoji when it is taken back
        return _Said("reaction", _clean(what.get("emoji")), quoted=_text(what.get("message_id")))
    if kind == "button":
        return _Said("button", _clean(what.get("text")), button=_clean(what.get("payload")))
    if kind == "interactive":
        reply = _of(what, "button_reply") or _of(what, "list_reply")
        if reply:
            return _Said("button", _clean(reply.get("title")), button=_clean(reply.get("id")))
    if kind == "contacts":
        return _Said("contacts")
    return _Said("other", _clean(what.get("text")) if kind == "order" else "")


def _attachments(what: Mapping[str, Any]) -> tuple[Attachment, ...]:
    media_id = _text(what.get("id"))
    if not _MEDIA_ID.fullmatch(media_id):
        return ()  # Meta could not take the file itself
    return (Attachment(REFERENCE + media_id, _clean(what.get("mime_type")), _clean(what.get("filename"))),)


def _place(what: Mapping[str, Any]) -> str:
    """By its name where it has one."""
    named = [_clean(what[name]) for name in ("name", "address") if what.get(name)]
    return ", ".join(named or [_text(what[name]) for name in ("latitude", "longitude") if name in what])


def media_id(reference: str) -> str:
    """Empty for a reference that is none of Meta's."""
    found = reference.removeprefix(REFERENCE)
    return found if reference.startswith(REFERENCE) and _MEDIA_ID.fullmatch(found) else ""


# ── statuses ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _status(status: Mapping[str, Any]) -> Status:
    provider_id, state = _text(status.get("id")), _text(status.get("status")).lower()
    if not _ID.fullmatch(provider_id) or not _STATE.fullmatch(state):
        raise Malformed(detail="a status has no usable id or state")
    code = next((_text(error.get("code")) for error in _each(status, "errors")), "")
    echo, at = _text(status.get("biz_opaque_callback_data")), _text(status.get("timestamp"))
    return Status(
        Delivery(provider_id, _SAME_STATE.get(state, state), translated(code)),
        code,
        echo if _ECHO.fullmatch(echo) else "",
        float(at) if re.fullmatch(r"[0-9]{1,12}", at) else time.time(),
    )


# ── values ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _fields(message: Mapping[str, Any], contact: Mapping[str, Any], value: Mapping[str, Any]) -> dict[str, str]:
    """All of it, flat: `text.body`, `errors.0.code`. What is too much or too deep is left out."""
    whole = {**message, "contact": contact, "metadata": _of(value, "metadata")}
    found: dict[str, str] = {}
    for name, leaf in _leaves("", whole, MAX_DEPTH):
        if len(found) == MAX_FIELDS:
            break
        found[_clean(name)] = leaf
    return found


def _leaves(name: str, value: object, depth: int) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict | list):
        if depth:
            pairs = value.items() if isinstance(value, dict) else enumerate(value)
            for key, below in pairs:
                yield from _leaves(f"{name}.{key}" if name else str(key), below, depth - 1)
    elif isinstance(value, bool):
        yield name, str(value).lower()
    elif value is not None:
        yield name, _clean(value)


def _each(value: Mapping[str, Any], name: str) -> Iterator[dict[str, Any]]:
    found = value.get(name)
    return (each for each in found if isinstance(each, dict)) if isinstance(found, list) else iter(())


def _of(value: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = value.get(name)
    return found if isinstance(found, dict) else {}


def _text(value: object) -> str:
    return str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else ""


def _clean(value: object) -> str:
    """Without control characters and halves of characters, which no store can keep."""
    whole = _text(value).encode("utf-8", "replace").decode("utf-8")
    return _CONTROL.sub("", whole.replace("\r\n", "\n").replace("\r", "\n"))


def _name(value: object) -> str:
    return found if _STATE.fullmatch(found := _text(value)) else "of an unknown kind"
