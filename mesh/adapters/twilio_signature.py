"""Twilio's webhooks: is this form really Twilio's, and what does it say? Light on purpose: the gateway imports it, and
`twilio.rest` (see `mesh.adapters.twilio`) would double the gateway's start-up time."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

from twilio.request_validator import (  # type: ignore[import-untyped]  # twilio ships no py.typed
    HMAC_SHA1,
    HMAC_SHA256,
    RequestValidator,
    get_signature_algorithm,
)

from mesh.adapters.media_types import is_name_of, kind_of
from mesh.errors import Malformed, Misconfigured
from mesh.ports.channel import Attachment, Delivery, Inbound, InboundKind

Pairs = Sequence[tuple[str, str]]

SIGNATURE_HEADER = "X-Twilio-Signature"
SETTINGS_HEADER = "X-Twilio-Webhooks-Signature-Settings"
"""Of a webhook that is signed by a shared key: which one, and how."""
MAX_FIELDS = 200
"""Twilio sends some twenty, and two for each of at most ten media."""
MAX_MEDIA = 10
_PREFIX = "whatsapp:"
_NUMBER = re.compile(r"whatsapp:(\+[0-9]{1,15})")
_ADDRESS = re.compile(r"whatsapp:[^\s|]{1,160}")
_SID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_STATE = re.compile(r"[a-z_]{1,32}")
_SCOPED = re.compile(r"(?:whatsapp:)?([A-Z]{2}\.[A-Za-z0-9.]{1,132})")
"""WhatsApp's id of a person, as one business sees them: a country, and letters and digits."""
_ONCE = ("MessageSid", "From", "To", "Body")
_SCOPED_NAMES = ("ExternalUserId", "ExternalUserIdentifier", "ParentExternalUserId")
_KINDS: dict[str, InboundKind] = {
    "image": "image",
    "audio": "audio",
    "voice": "audio",
    "video": "video",
    "document": "document",
    "sticker": "sticker",
    "location": "location",
    "contact": "contacts",
    "contacts": "contacts",
    "reaction": "reaction",
    "button": "button",
    "interactive": "button",
}
"""By Twilio's `MessageType`."""
_SAME_STATE = {"accepted": "queued", "scheduled": "queued", "sending": "queued", "canceled": "failed"}


class _Multi:
    """What the official validator asks of a form in which a name may repeat."""

    def __init__(self, pairs: Pairs) -> None:
        self._values: dict[str, list[str]] = {}
        for name, value in pairs:
            self._values.setdefault(name, []).append(value)

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def getall(self, name: str) -> list[str]:
        return self._values[name]


def signature(url: str, pairs: Pairs, token: str, algorithm: str = HMAC_SHA1) -> str:
    """By Twilio's official code, which signs the *set* of a repeated name's values, sorted: `a=1&a=1` equals `a=1`."""
    return str(RequestValidator(token).compute_signature(url, _Multi(pairs), algorithm))


class Signatures:
    """Checks against the address that was configured, never one rebuilt from `Host` or forwarded headers."""

    def __init__(self, public_url: str, auth_token: str, shared_keys: Sequence[str] = ()) -> None:
        """`shared_keys` are their secrets: several while one replaces another. Raises `Misconfigured`: with an empty
        token, anybody could sign."""
        if not auth_token:
            raise Misconfigured("TWILIO_AUTH_TOKEN is empty: no webhook could be told from a forged one.")
        self._bases = _spellings(public_url)
        self._token = auth_token
        self._shared = tuple(key for key in shared_keys if key)

    def fit(self, path: str, query: str, pairs: Pairs, given: str, settings: str = "") -> bool:
        """`path` and `query` exactly as they were received, `settings` the header that announces a shared key: the
        account's token is then not what signs. Takes the same time whether and where it differs."""
        algorithm = str(get_signature_algorithm(settings)).upper()
        if algorithm not in (HMAC_SHA1, HMAC_SHA256):
            return False
        rest = f"{path}?{query}" if query else path
        seen = given.encode("utf-8", "replace")
        verdicts = [
            hmac.compare_digest(signature(base + rest, pairs, secret, algorithm).encode("ascii"), seen)
            for base in self._bases
            for secret in (self._shared if settings else (self._token,))
        ]
        return any(verdicts)


def body_fits(query: str, raw: bytes) -> bool:
    """Of a body that is not a form, the signed address holds the hash."""
    stated = parse_qs(query).get("bodySHA256", [""])[0].lower()
    return hmac.compare_digest(hashlib.sha256(raw).hexdigest().encode(), stated.encode("utf-8", "replace"))


def _spellings(public_url: str) -> tuple[str, ...]:
    """As configured, with the port and without: Twilio signs either, and its own validator accepts both."""
    base = public_url.rstrip("/")
    try:
        parts = urlsplit(base)
        port = parts.port
    except ValueError as cause:
        raise Misconfigured(f"PUBLIC_URL is not an address: {public_url!r}.") from cause
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise Misconfigured(f"PUBLIC_URL must look like https://mesh.example.com; it is {public_url!r}.")
    bare = parts.netloc.removesuffix(f":{port}")
    full = f"{bare}:{port or (443 if parts.scheme == 'https' else 80)}"
    others = (parts._replace(netloc=netloc).geturl() for netloc in (bare, full))
    return tuple(dict.fromkeys((base, *others)))


def parse_pairs(raw: bytes) -> list[tuple[str, str]]:
    """Names and values as they were signed: nothing trimmed, dropped or replaced. Raises `Malformed`."""
    try:
        text = raw.decode("utf-8")
        return parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS)
    except ValueError as cause:
        raise Malformed(detail="the form is not UTF-8, or has too many fields") from cause


def parse_object(raw: bytes) -> list[tuple[str, str]]:
    """A flat object in JSON, as the names and values of a form; a value that is none of text stays JSON. Raises
    `Malformed`."""
    try:
        found = json.loads(raw, object_pairs_hook=_Object)
        if not isinstance(found, _Object) or len(found.pairs) > MAX_FIELDS:
            raise ValueError("no object, or one of too many fields")
        return [(_whole(name), _whole(_as_text(value))) for name, value in found.pairs if value is not None]
    except (ValueError, RecursionError) as cause:
        raise Malformed(detail="the body is not a JSON object, or has too many fields") from cause


class _Object:
    """One whose names may repeat."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        self.pairs = pairs


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=lambda it: dict(it.pairs))


def _whole(text: str) -> str:
    """Without halves of characters, which no store can keep."""
    return text.encode("utf-8", "replace").decode("utf-8")


def identity(address: str) -> str:
    """`whatsapp:+15551230001` → `+15551230001`; any other WhatsApp id is kept whole. Raises `Malformed`, also for an
    address of another channel: a text message's sender can be forged, and must not pass for the same person."""
    number = _NUMBER.fullmatch(address)
    if number:
        return number[1]
    if not _ADDRESS.fullmatch(address) or not address.isprintable():
        raise Malformed(detail="From or To is not a WhatsApp address")
    return address


def address(identity: str) -> str:
    return identity if identity.startswith(_PREFIX) else _PREFIX + identity


def parse_inbound(pairs: Pairs) -> Inbound:
    """Who wrote is `From`, which Twilio vouches for, or WhatsApp's id of somebody without a number; `ProfileName` and
    `ProfileUsername` are what people call themselves. Control characters, on which stores and models choke, are left
    out: line breaks and tabs stay, and so does every other character, with the marks that tell the direction of
    writing. Raises `Malformed`, also for a status callback that was sent to the address for messages."""
    fields = _gather(pairs)
    if "MessageStatus" in fields:
        raise Malformed(detail="this is a status callback: its address is /whatsapp/twilio/status")
    sid, sender, recipient = _sid(fields), _sender(fields), identity(fields.get("To", ""))
    fields = {name: _cleaned(value) for name, value in fields.items()}
    count = fields.get("NumMedia", "")
    media = int(count) if re.fullmatch("[0-9]{1,3}", count) else 0
    text = fields.get("Body") or fields.get("ButtonText") or fields.get("ListTitle") or ""
    attachments = tuple(_attachments(fields, media))
    kind = _kind(fields, media, attachments)
    if kind == "document" and len(attachments) == 1 and is_name_of(text, attachments[0].media_type):
        # The file's name, which WhatsApp shows in place of a caption, is not what the person says.
        attachments = (Attachment(attachments[0].reference, attachments[0].media_type, name=text),)
        text = ""
    if kind == "location" and not text:
        text = _place(fields)
    quoted = fields.get("OriginalRepliedMessageSid", "")
    return Inbound(
        message_id=sid,
        sender=sender,
        recipient=recipient,
        text=text,
        fields=fields,
        media=media,
        kind=kind,
        attachments=attachments,
        quoted=quoted if _SID.fullmatch(quoted) else "",
        button=fields.get("ButtonPayload") or fields.get("ListId") or "",
    )


def _sender(fields: dict[str, str]) -> str:
    """An id stands in for a `From` that is absent, never for one that is wrong."""
    if fields.get("From"):
        return identity(fields["From"])
    for name in _SCOPED_NAMES:
        if found := _SCOPED.fullmatch(fields.get(name, "")):
            return address(found[1])
    raise Malformed(detail="From is missing, and there is no id in its place")


def _place(fields: dict[str, str]) -> str:
    """By its name where it has one."""
    named = [fields[name] for name in ("Label", "Address") if fields.get(name)]
    return ", ".join(named or [fields[name] for name in ("Latitude", "Longitude") if fields.get(name)])


def _kind(fields: dict[str, str], media: int, attachments: Sequence[Attachment]) -> InboundKind:
    """As Twilio says; of a message from its list, where it says nothing, as far as the rest tells."""
    said = fields.get("MessageType", "").strip().lower()
    if said not in ("", "text"):
        return _KINDS.get(said, "other")
    if fields.get("ButtonPayload") or fields.get("ButtonText") or fields.get("ListId"):
        return "button"
    if fields.get("Latitude") and fields.get("Longitude"):
        return "location"
    if media:
        return kind_of(attachments[0].media_type if attachments else "")
    return "text"


def _attachments(fields: dict[str, str], media: int) -> Iterator[Attachment]:
    for number in range(min(media, MAX_MEDIA)):
        if reference := fields.get(f"MediaUrl{number}"):
            yield Attachment(reference, fields.get(f"MediaContentType{number}", ""))


def parse_delivery(pairs: Pairs) -> Delivery:
    """A state that we don't know is handed on as it is. Raises `Malformed`."""
    fields = _gather(pairs)
    state = (fields.get("MessageStatus") or fields.get("SmsStatus") or "").lower()
    if not _STATE.fullmatch(state):
        raise Malformed(detail="MessageStatus is missing")
    return Delivery(
        provider_id=_sid(fields), state=_SAME_STATE.get(state, state), error_code=fields.get("ErrorCode", "")
    )


def _gather(pairs: Pairs) -> dict[str, str]:
    """The values of a repeated name are joined by line breaks, but nothing that we act upon may repeat."""
    fields: dict[str, str] = {}
    for name, value in pairs:
        if name in fields and name in _ONCE:
            raise Malformed(detail=f"{name} is given twice")
        fields[name] = f"{fields[name]}\n{value}" if name in fields else value
    return fields


def _cleaned(text: str) -> str:
    return _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def _sid(fields: dict[str, str]) -> str:
    sid = fields.get("MessageSid", "")
    if not _SID.fullmatch(sid):
        raise Malformed(detail="MessageSid is missing")
    return sid
