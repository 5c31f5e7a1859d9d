"""Sending WhatsApp messages by Meta's Cloud API (webhooks are in `meta_webhooks`).

Meta has no list of messages, so nothing can be looked up there. What stands in its place is in `meta_echoes`: a send is
noted before it begins, and every status names the message that it belongs to. What stays uncertain: a message that was
taken, and of which no status came within `wait_seconds` (the gateway may be away, and statuses wait at Meta), is sent
again, and its person reads it twice. And a person's message whose webhook never came can't be asked for at all: Meta
repeats webhooks for up to seven days.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from collections.abc import Mapping
from datetime import datetime
from itertools import chain
from typing import Any
from urllib.parse import unquote, urlsplit

import httpx

from mesh.adapters.fetching import ELSEWHERE, GONE, NOT_NOW, Fetcher, Places
from mesh.adapters.meta_echoes import Echoes
from mesh.adapters.meta_webhooks import CODES, PASSING, TOO_FAST, echo_of, media_id, translated
from mesh.errors import (
    Ambiguous,
    ChannelError,
    Misconfigured,
    NotFound,
    Refused,
    Throttled,
    Unavailable,
    Unreadable,
)
from mesh.ports.channel import Attachment, Inbound, Media
from mesh.settings import is_loopback

log = logging.getLogger(__name__)

TYPING_S = 3.0
AFTER_A_BURST_S = 6.0
"""To one person, Meta takes about one message in so many seconds."""
LANGUAGE = "en"
"""Of a template that names none."""
TOKEN_CODES = ("0", "3", "10", "190", "131005")
_NUMBER = ("33", "131045", "133010")
_KINDS = {
    "image": (".jpg", ".jpeg", ".png"),
    "video": (".mp4", ".3gp"),
    "audio": (".aac", ".amr", ".mp3", ".m4a", ".ogg"),
}
"""By the ending of a file's name; any other is a document."""
_DOCUMENTS = (".txt", ".pdf", ".doc", ".docx", ".ppt", ".pptx", ".xls", ".xlsx")
_SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")
_PHONE = re.compile(r"\+[1-9][0-9]{6,14}")
_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)


class MetaChannel:
    """A `mesh.ports.channel.Channel`. Nothing is sent again here: the ledger decides that."""

    limit = 4096
    files = frozenset((*chain(*_KINDS.values()), *_DOCUMENTS))

    def __init__(
        self,
        access_token: str,
        numbers: Mapping[str, str],
        echoes: Echoes,
        *,
        api_base: str = "https://graph.facebook.com/v25.0",
        connect_timeout: float = 10.0,
        read_timeout: float = 10.0,
        wait_seconds: float = 15.0,
    ) -> None:
        """`numbers` of ours, and Meta's ids of them. `wait_seconds`: how long after a send of which nothing is known a
        status may still tell. Raises `Misconfigured`."""
        base = urlsplit(api_base)
        if base.scheme not in ("http", "https") or not base.hostname:
            raise Misconfigured(f"META_API_BASE must look like https://graph.facebook.com/v25.0; it is {api_base!r}.")
        if not access_token or not numbers or not all(each.isalnum() for each in numbers.values()):
            raise Misconfigured("META_ACCESS_TOKEN and META_PHONE_NUMBER_ID must both be set.")
        self._base = api_base.rstrip("/")
        self._numbers = dict(numbers)
        self._echoes = echoes
        self._wait_seconds = wait_seconds
        self._longest = connect_timeout + 2 * read_timeout
        self._files = Fetcher(_places(api_base, access_token))
        self._http = httpx.AsyncClient(
            headers={"Authorization": f"Bearer {access_token}", "User-Agent": "adiyan"},
            timeout=httpx.Timeout(read_timeout, connect=connect_timeout, pool=connect_timeout),
            limits=httpx.Limits(max_connections=50, max_keepalive_connections=10, keepalive_expiry=4),
            verify=base.scheme == "https",  # plain HTTP needs no TLS context, which takes 70 ms to make
            trust_env=not is_loopback(base.hostname),
        )

    async def send(self, *, sender: str, recipient: str, text: str, link: str = "", template: str = "") -> str:
        echo = echo_of(sender, recipient, text)
        message = {
            "recipient_type": "individual",
            **_addressed(recipient),
            **_content(_sendable(text), link, template),
            "biz_opaque_callback_data": echo,
        }
        try:
            member = await self._echoes.begin(echo)
        except Unavailable as cause:
            raise Throttled(retry_after=1.0, detail="not sent: it could not be noted before") from cause
        try:
            provider_id = _id(await self._post(sender, message))
        except (Throttled, Refused):
            await self._ended(echo, member)
            raise
        await self._ended(echo, member, provider_id)
        return provider_id

    async def _ended(self, echo: str, member: str, provider_id: str = "") -> None:
        """When it can't be noted, a later send of the same words is settled more slowly, and no worse."""
        try:
            await self._echoes.end(echo, member, provider_id)
        except Unavailable as error:
            log.warning("! the end of a send was not noted: %s", error.detail)

    async def fetch(self, attachment: Attachment, *, most_bytes: int) -> Media:
        """An id leads to an address, which is good for five minutes."""
        known = media_id(attachment.reference)
        if not known:
            raise Unreadable(ELSEWHERE, detail="media: not an id of Meta's")
        try:
            answer = await self._ask("GET", f"/{known}")
        except ChannelError as cause:
            raise Unavailable(NOT_NOW, detail=f"media: {cause.detail}") from cause
        if answer.status_code == 404 or (answer.status_code == 400 and _code(answer) == "100"):
            raise NotFound(GONE, detail=f"media: status={answer.status_code} code={_code(answer)}")
        found = _object(answer)
        if not answer.is_success or not isinstance(url := found.get("url"), str):
            raise Unavailable(NOT_NOW, detail=f"media: {_detail(answer)}")
        media_type = attachment.media_type or str(found.get("mime_type") or "")
        return await self._files.fetch(Attachment(url, media_type, attachment.name), most_bytes=most_bytes)

    async def find(self, *, sender: str, recipient: str, text: str, since: datetime) -> list[str]:
        """What Meta answered, and what its statuses told. Raises `Ambiguous` while there is a send of which a status
        may still tell: for `wait_seconds` after the last one began."""
        try:
            sends = await self._echoes.since(echo_of(sender, recipient, text), since.timestamp())
        except Unavailable as cause:
            raise Ambiguous(detail=cause.detail) from cause
        if len(sends.begun) > sends.told and max(sends.begun) + self._wait_seconds > time.time():
            raise Ambiguous(detail="no status has told of it yet")
        return list(sends.ids)

    async def received(self, *, recipient: str, since: datetime) -> list[Inbound]:
        """Nothing: there is no such list at Meta, which sends webhooks again for up to seven days instead."""
        return []

    async def typing(self, *, sender: str, recipient: str, message_id: str) -> None:
        asked = {"status": "read", "message_id": message_id, "typing_indicator": {"type": "text"}}
        try:
            async with asyncio.timeout(TYPING_S):
                await self._post(sender, asked)
        except ChannelError as error:
            log.debug("typing message=%s detail=%s", message_id, error.detail)
        except (TimeoutError, RuntimeError, ValueError) as error:  # RuntimeError: the channel was closed
            log.debug("typing message=%s error=%s", message_id, type(error).__name__)

    async def close(self) -> None:
        await self._http.aclose()
        await self._files.close()

    # ── asking Meta ───────────────────────────────────────────────────────────────────────────────────────────────

    async def _post(self, sender: str, body: Mapping[str, Any]) -> httpx.Response:
        """Goes out from `sender`. Raises `ChannelError` unless Meta answered with success."""
        number = self._numbers.get(sender)
        if number is None:
            raise Refused(provider_code="133010", detail="META_PHONE_NUMBER_ID and META_NUMBERS lack the sender")
        answer = await self._ask("POST", f"/{number}/messages", {"messaging_product": "whatsapp", **body})
        if not answer.is_success:
            raise _refusal(answer)
        return answer

    async def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> httpx.Response:
        try:
            # httpx counts every read by itself: this bounds an answer that drips.
            async with asyncio.timeout(self._longest):
                return await self._http.request(method, self._base + path, json=body)
        except _NEVER_SENT as cause:
            raise Throttled(retry_after=1.0, detail=f"not sent: {type(cause).__name__}") from cause
        except (httpx.HTTPError, TimeoutError) as cause:
            raise Ambiguous(detail=f"no answer: {type(cause).__name__}") from cause


def _places(api_base: str, access_token: str) -> Places:
    """The token is for these two, and for nobody whom they redirect to."""
    host = urlsplit(api_base).hostname or ""
    return Places(
        hosts=("lookaside.fbsbx.com", "graph.facebook.com"),
        authorization=f"Bearer {access_token}",
        trusted=("lookaside.fbsbx.com", "graph.facebook.com"),
        local=api_base if is_loopback(host) else "",
    )


def _addressed(recipient: str) -> dict[str, str]:
    """In `to`, an id that is no number would be taken for one, and the message dropped without an error."""
    if _PHONE.fullmatch(recipient):
        return {"to": recipient}
    return {"recipient": recipient.removeprefix("whatsapp:")}


def _content(text: str, link: str, template: str) -> dict[str, Any]:
    if template:
        return {"type": "template", "template": _template(text, template)}
    if not link:
        return {"type": "text", "text": {"body": text}}
    name = unquote(urlsplit(link).path.rpartition("/")[2])
    kind = next((kind for kind, endings in _KINDS.items() if name.lower().endswith(endings)), "document")
    if kind == "audio" and text:
        kind = "document"  # a recording takes no words beside it
    named = {"filename": name} if kind == "document" and name else {}
    return {"type": kind, kind: {"link": link, **({"caption": text} if text else {}), **named}}


def _template(text: str, template: str) -> dict[str, Any]:
    """`name/language`. A variable may hold no line breaks."""
    name, _, language = template.partition("/")
    variable = {"type": "body", "parameters": [{"type": "text", "text": " ".join(text.split())}]}
    return {
        "name": name,
        "language": {"code": language or LANGUAGE},
        **({"components": [variable]} if text.strip() else {}),
    }


def _sendable(text: str) -> str:
    """Without halves of characters, which no encoding can carry."""
    return text.encode("utf-8", "replace").decode("utf-8")


# ── what Meta answers ─────────────────────────────────────────────────────────────────────────────────────────────


def _id(answer: httpx.Response) -> str:
    try:
        found = _object(answer)["messages"][0]["id"]
    except (KeyError, IndexError, TypeError):
        found = ""
    if not isinstance(found, str) or not found:
        raise Ambiguous(detail="Meta's answer has no message id")
    return found


def _object(answer: httpx.Response) -> dict[str, Any]:
    try:
        found = answer.json()
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _refusal(answer: httpx.Response) -> ChannelError:
    """Meta's own words are left out of `detail`: they name phone numbers."""
    code, detail = _code(answer), _detail(answer)
    if code in PASSING or answer.status_code >= 500 or answer.status_code == 408:
        return Ambiguous(detail=detail)
    if answer.status_code == 429 or CODES.get(code) == TOO_FAST:
        return Throttled(retry_after=_retry_after(answer, code), detail=detail)
    if answer.status_code == 401 or code in TOKEN_CODES:
        detail += ": check META_ACCESS_TOKEN"
    if code in _NUMBER:
        detail += ": check META_PHONE_NUMBER_ID"
    return Refused(provider_code=translated(code), detail=detail)


def _detail(answer: httpx.Response) -> str:
    return f"meta status={answer.status_code} code={_code(answer)}"


def _code(answer: httpx.Response) -> str:
    error = _object(answer).get("error")
    code = error.get("code") if isinstance(error, dict) else None
    return str(code) if isinstance(code, int) else str(answer.status_code)


def _retry_after(answer: httpx.Response, code: str) -> float:
    """Seconds; when Meta does not say, 1, or what one person is to be spared. An hour at most."""
    given = answer.headers.get("Retry-After", "")
    if _SECONDS.fullmatch(given):
        return min(max(float(given), 0.1), 3600.0)
    return AFTER_A_BURST_S if code == "131056" else 1.0
