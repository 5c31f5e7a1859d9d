"""Twilio's webhooks: is this form really Twilio's, and what does it say? Light on purpose: the gateway imports it, and
`twilio.rest` (see `mesh.adapters.twilio`) would double the gateway's start-up time."""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterator, Sequence
from urllib.parse import parse_qsl, urlsplit

from twilio.request_validator import RequestValidator  # type: ignore[import-untyped]  # twilio ships no py.typed

from mesh.errors import Malformed, Misconfigured
from mesh.ports import Delivery, Inbound

Pairs = Sequence[tuple[str, str]]

SIGNATURE_HEADER = "X-Twilio-Signature"
MAX_FIELDS = 200
"""Twilio sends some twenty, and two for each of at most ten media."""
_PREFIX = "whatsapp:"
_NUMBER = re.compile(r"whatsapp:(\+[0-9]{1,15})")
_ADDRESS = re.compile(r"whatsapp:[^\s|]{1,160}")
_SID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_STATE = re.compile(r"[a-z_]{1,32}")
_ONCE = ("MessageSid", "From", "To", "Body")
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


def signature(url: str, pairs: Pairs, token: str) -> str:
    """By Twilio's official code, which signs the *set* of a repeated name's values, sorted: `a=1&a=1` equals `a=1`."""
    return str(RequestValidator(token).compute_signature(url, _Multi(pairs)))


class Signatures:
    """Checks against the address that was configured, never one rebuilt from `Host` or forwarded headers."""

    def __init__(self, public_url: str, auth_token: str) -> None:
        """Raises `Misconfigured`: with an empty token, anybody could sign."""
        if not auth_token:
            raise Misconfigured("TWILIO_AUTH_TOKEN is empty: no webhook could be told from a forged one.")
        self._bases = _spellings(public_url)
        self._token = auth_token

    def fit(self, path: str, query: str, pairs: Pairs, given: str) -> bool:
        """`path` and `query` exactly as they were received. Takes the same time whether and where it differs."""
        rest = f"{path}?{query}" if query else path
        seen = given.encode("utf-8", "replace")
        verdicts = [
            hmac.compare_digest(signature(base + rest, pairs, self._token).encode("ascii"), seen)
            for base in self._bases
        ]
        return any(verdicts)


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
    """Who wrote is `From`, which Twilio vouches for; `ProfileName` is what people call themselves. Control characters,
    on which stores and models choke, are left out: line breaks and tabs stay, and so does every other character, with
    the marks that tell the direction of writing. Raises `Malformed`, also for a status callback that was sent to the
    address for messages."""
    fields = _gather(pairs)
    if "MessageStatus" in fields:
        raise Malformed(detail="this is a status callback: its address is /whatsapp/twilio/status")
    count = fields.get("NumMedia", "")
    return Inbound(
        message_id=_sid(fields),
        sender=identity(fields.get("From", "")),
        recipient=identity(fields.get("To", "")),
        text=_cleaned(fields.get("Body", "")),
        fields={name: _cleaned(value) for name, value in fields.items()},
        media=int(count) if re.fullmatch("[0-9]{1,3}", count) else 0,
    )


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
