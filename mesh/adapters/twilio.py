"""Sending WhatsApp messages by Twilio's official SDK (its REST part; webhooks are in `twilio_signature`).

The SDK's own asynchronous client is not used: it ignores its `timeout`, drops the headers of an error (so also
`Retry-After`), logs phone numbers, and can't tell a request that was never sent from one that may have been. `_Wire`
below stands in its place, and raises what the ledger needs to know.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import logging
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import httpx
from twilio.base.exceptions import TwilioException  # type: ignore[import-untyped]  # twilio ships no py.typed
from twilio.http.response import Response  # type: ignore[import-untyped]  # twilio ships no py.typed
from twilio.rest import Client  # type: ignore[import-untyped]  # twilio ships no py.typed

from mesh.adapters.fetching import Fetcher, Places
from mesh.adapters.twilio_signature import MAX_MEDIA, address, parse_inbound
from mesh.errors import Ambiguous, ChannelError, Malformed, Misconfigured, Refused, Throttled
from mesh.ports.channel import Attachment, Inbound, Media
from mesh.settings import is_loopback

log = logging.getLogger(__name__)

FILES = frozenset(
    [
        ".jpg",
        ".jpeg",
        ".png",
        ".webp",
        ".ogg",
        ".amr",
        ".3gp",
        ".aac",
        ".mp3",
        ".mp4",
        ".pdf",
        ".doc",
        ".docx",
        ".pptx",
        ".xlsx",
        ".vcf",
    ]
)
"""What Twilio shows on WhatsApp: no plain text, no tables of values, no web page (error 63021)."""
RATE_CODES = {"20429", "63018"}
MAX_FILES_ASKED = 100
KEPT_FILES = 1000
PAGE_SIZE = 100
MAX_PAGES = 5
TYPING_S = 3.0
_MESSAGING = re.compile(r"(?<=://)api\.(?=([a-z0-9-]+\.)*twilio\.com(:|/|$))")
_SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")

_UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, IndexError)
"""What the SDK runs into when an answer is not what it expects."""
_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)


class TwilioChannel:
    """A `mesh.ports.channel.Channel`. Nothing is sent again here: the ledger decides that."""

    limit = 1600
    files = FILES

    def __init__(
        self,
        account_sid: str,
        auth_token: str,
        *,
        api_base: str = "https://api.twilio.com",
        status_callback: str = "",
        connect_timeout: float = 10.0,
        read_timeout: float = 10.0,
    ) -> None:
        """Time-outs in seconds. Raises `Misconfigured`."""
        if urlsplit(api_base).scheme not in ("http", "https") or not urlsplit(api_base).hostname:
            raise Misconfigured(f"TWILIO_API_BASE must look like https://api.twilio.com; it is {api_base!r}.")
        if not account_sid or not auth_token:
            raise Misconfigured("TWILIO_ACCOUNT_SID and TWILIO_AUTH_TOKEN must both be set.")
        self._wire = _Wire(api_base, connect_timeout, read_timeout)
        # A mapping that is empty would make the SDK read TWILIO_EDGE and TWILIO_REGION, and rewrite the host by them.
        client = Client(account_sid, auth_token, http_client=self._wire, environment={"TWILIO_EDGE": ""})
        client.api.base_url = api_base
        self._messages = client.api.v2010.accounts(account_sid).messages
        self._files = Fetcher(_places(api_base, account_sid, auth_token))
        self._known_files: dict[str, tuple[tuple[str, str], ...]] = {}
        """Of listed messages, by their ids: what the webhook would have said about their files."""
        self._auth = (account_sid, auth_token)
        self._api_base = api_base.rstrip("/")
        self.typing_url = f"{_MESSAGING.sub('messaging.', api_base, count=1).rstrip('/')}/v2/Indicators/Typing.json"
        self._options = {"status_callback": status_callback} if status_callback else {}

    async def send(self, *, sender: str, recipient: str, text: str, link: str = "", template: str = "") -> str:
        async with _understood():
            message = await self._messages.create_async(
                to=address(recipient), from_=address(sender), **_content(text, link, template), **self._options
            )
        if not message.sid:
            raise Ambiguous(detail="Twilio's answer has no sid")
        return str(message.sid)

    async def fetch(self, attachment: Attachment, *, most_bytes: int) -> Media:
        return await self._files.fetch(attachment, most_bytes=most_bytes)

    async def find(self, *, sender: str, recipient: str, text: str, since: datetime) -> list[str]:
        """Oldest first, among the newest 500 of this chat. `since` is compared to the second, by Twilio's
        clock. An error says nothing about the message: look again.

        A file without words is one with no body. Twilio's list has a template as it reads, and does not tell that it
        is one: when nothing says just this, it is what says this among other words.

        Twilio's `DateSent` filter is not used: it is documented by the day, and a message that still waits in
        Twilio's queue has no such date."""
        same: list[str] = []
        around: list[str] = []
        wanted = _flat(text)
        async with _understood(), aclosing(self._newest(since, to=address(recipient), from_=address(sender))) as pages:
            async for page in pages:
                for message in page:
                    body = message.body or ""
                    if _same(body, text) and (wanted or _count(message.num_media)):
                        same.append(str(message.sid))
                    elif wanted and wanted in _flat(body):
                        around.append(str(message.sid))
        return (same or around)[::-1]

    async def received(self, *, recipient: str, since: datetime) -> list[Inbound]:
        """`DateSent` is not asked about here either: of a person's message it is when the webhook was sent, and what
        this looks for is the message whose webhook was not.

        What can't be read is left out, and the log is told: it must not hide the rest."""
        found: dict[str, Inbound] = {}
        unread = 0
        async with _understood(), aclosing(self._newest(since, _each_readable, to=address(recipient))) as pages:
            async for page in pages:
                for message in page:
                    try:
                        inbound = _inbound(message)
                    except (Malformed, *_UNREADABLE):
                        unread += 1
                        continue
                    if message.direction == "inbound" and inbound.recipient == recipient:
                        found.setdefault(inbound.message_id, inbound)
        if unread:
            log.warning("! listed messages that can't be read count=%d", unread)
        return await self._with_files([*found.values()][::-1])

    async def _with_files(self, messages: list[Inbound]) -> list[Inbound]:
        """The list tells how many files a message has; what they are is asked about each, and kept for the next look.
        Messages beyond the bound are left for that look, too. A message whose files can't be asked about now goes
        without them: it is looked at twice before it is taken, and its person is better told than ignored."""
        asked = [message for message in messages if message.media and message.message_id not in self._known_files]
        at_once = asyncio.Semaphore(5)

        async def ask(message: Inbound) -> None:
            async with at_once:
                with contextlib.suppress(ChannelError):
                    if files := await self._files_of(message.message_id):
                        self._known_files[message.message_id] = files

        await asyncio.gather(*(ask(message) for message in asked[:MAX_FILES_ASKED]))
        while len(self._known_files) > KEPT_FILES:
            del self._known_files[next(iter(self._known_files))]
        if left := {message.message_id for message in asked[MAX_FILES_ASKED:]}:
            log.warning("! listed messages with files that are left for the next look count=%d", len(left))
        return [
            parse_inbound([*message.fields.items(), *self._known_files.get(message.message_id, ())])
            if message.media
            else message
            for message in messages
            if message.message_id not in left
        ]

    async def _files_of(self, message_id: str) -> tuple[tuple[str, str], ...]:
        """As the webhook has them."""
        async with _understood():
            page = await self._messages(message_id).media.page_async(page_size=MAX_MEDIA)
            found = [(str(file.uri), str(file.content_type or "")) for file in page]
        pairs = (
            ((f"MediaUrl{n}", self._api_base + uri.removesuffix(".json")), (f"MediaContentType{n}", media_type))
            for n, (uri, media_type) in enumerate(found[:MAX_MEDIA])
        )
        return tuple(pair for both in pairs for pair in both)

    async def typing(self, *, sender: str, recipient: str, message_id: str) -> None:
        """Twilio knows both by the message. The SDK's part for it is left alone: it takes long to import."""
        asked = {"messageId": message_id, "channel": "whatsapp"}
        try:
            async with asyncio.timeout(TYPING_S):
                await self._wire.request("POST", self.typing_url, data=asked, auth=self._auth)
        except ChannelError as error:
            log.debug("typing message=%s detail=%s", message_id, error.detail)
        except (TimeoutError, RuntimeError, ValueError) as error:  # RuntimeError: the channel was closed
            log.debug("typing message=%s error=%s", message_id, type(error).__name__)

    async def _newest(
        self, since: datetime, read: Callable[[Iterator[Any]], Iterable[Any]] = iter, **query: str
    ) -> AsyncGenerator[list[Any], None]:
        """By pages, newest first, until one has nothing of that time. `since` is compared to the second."""
        start = since.astimezone(UTC).replace(microsecond=0)
        page = await self._messages.page_async(page_size=PAGE_SIZE, **query)
        for left in reversed(range(MAX_PAGES)):
            recent = [message for message in read(page) if _is_since(message, start)]
            yield recent
            if not recent or not page.next_page_url:
                return
            if left:
                page = await self._messages.get_page_async(page.next_page_url)
        log.warning("! only the newest %d listed messages were looked at", MAX_PAGES * PAGE_SIZE)

    async def close(self) -> None:
        await self._wire.close()
        await self._files.close()


def _places(api_base: str, account_sid: str, auth_token: str) -> Places:
    """Media without HTTP authentication are at S3, in Twilio's own bucket: see Twilio's "Protect Media Access"."""
    host = urlsplit(api_base).hostname or ""
    basic = base64.b64encode(f"{account_sid}:{auth_token}".encode()).decode("ascii")
    return Places(
        hosts=("*.twilio.com", "*.twiliocdn.com", "s3-external-1.amazonaws.com/media.twiliocdn.com/"),
        authorization=f"Basic {basic}",
        trusted=("api.twilio.com", *((host,) if host.endswith(".twilio.com") else ())),
        local=api_base if is_loopback(host) else "",
    )


def _content(text: str, link: str, template: str) -> dict[str, Any]:
    if template:  # a variable may hold no line breaks
        return {"content_sid": template, "content_variables": json.dumps({"1": _flat(text)}, ensure_ascii=False)}
    body = {"body": _sendable(text)} if text or not link else {}
    return {**body, "media_url": [link]} if link else body


def _each_readable(page: Iterator[Any]) -> Iterator[Any]:
    """None for what can't be read."""
    while True:
        try:
            yield next(page)
        except StopIteration:
            return
        except _UNREADABLE:
            yield None


def _inbound(message: Any) -> Inbound:
    """As the webhook would have given it, as far as a list tells. Raises `Malformed`, or something unreadable."""
    fields = {
        "MessageSid": message.sid,
        "AccountSid": message.account_sid,
        "From": message.from_,
        "To": message.to,
        "Body": message.body or "",
        "NumMedia": message.num_media,
        "DateCreated": message.date_created and message.date_created.isoformat(),
        "CaughtUp": "1",
    }
    return parse_inbound([(name, _sendable(str(value))) for name, value in fields.items() if value is not None])


def _is_since(message: Any, start: datetime) -> bool:
    """A message without a readable date counts: better found than sent twice, or than not answered."""
    created = getattr(message, "date_created", None)
    return not isinstance(created, datetime) or created.replace(tzinfo=UTC) >= start


def _sendable(text: str) -> str:
    """Without halves of characters, which no encoding can carry."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _same(one: str, other: str) -> bool:
    """Line ends and the white space around a text may come back changed."""
    return one.replace("\r\n", "\n").strip() == _sendable(other).replace("\r\n", "\n").strip()


def _flat(text: str) -> str:
    return " ".join(_sendable(text).split())


def _count(files: Any) -> int:
    return int(files) if str(files).isdecimal() else 0


@asynccontextmanager
async def _understood() -> AsyncIterator[None]:
    """Twilio answered with success, and with a body that is not what the SDK expects of it."""
    try:
        yield
    except (TwilioException, httpx.InvalidURL, *_UNREADABLE) as cause:
        raise Ambiguous(detail=f"Twilio's answer can't be read: {type(cause).__name__}") from cause


class _Wire:
    """The SDK's HTTP client, as far as the SDK uses it."""

    is_async = True

    def __init__(self, api_base: str, connect_timeout: float, read_timeout: float) -> None:
        self._connect_timeout = connect_timeout
        self._read_timeout = read_timeout
        base = urlsplit(api_base)
        self._client = httpx.AsyncClient(
            timeout=httpx.Timeout(read_timeout, connect=connect_timeout, pool=connect_timeout),
            limits=httpx.Limits(max_connections=50, max_keepalive_connections=10, keepalive_expiry=4),
            verify=base.scheme == "https",  # plain HTTP needs no TLS context, which takes 70 ms to make
            trust_env=base.hostname not in ("localhost", "127.0.0.1", "::1"),
        )

    async def request(
        self,
        method: str,
        uri: str,
        params: Mapping[str, Any] | None = None,
        data: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        auth: tuple[str, str] | None = None,
        timeout: float | None = None,
        allow_redirects: bool = False,
    ) -> Response:
        call = self._client.request(method, uri, params=params, data=data, headers=headers, auth=auth)
        try:
            # httpx counts every read by itself: this bounds an answer that drips.
            async with asyncio.timeout(self._connect_timeout + 2 * self._read_timeout):
                answer = await call
        except _NEVER_SENT as cause:
            raise Throttled(retry_after=1.0, detail=f"not sent: {type(cause).__name__}") from cause
        except (httpx.HTTPError, TimeoutError) as cause:
            raise Ambiguous(detail=f"no answer: {type(cause).__name__}") from cause
        if not answer.is_success:
            raise _refusal(answer)
        return Response(answer.status_code, answer.text, answer.headers)

    async def close(self) -> None:
        await self._client.aclose()


def _refusal(answer: httpx.Response) -> ChannelError:
    """Twilio's own words are left out of `detail`: they name phone numbers."""
    code = _code(answer)
    detail = f"twilio status={answer.status_code} code={code}"
    if answer.status_code == 429 or code in RATE_CODES:
        return Throttled(retry_after=_retry_after(answer), detail=detail)
    if answer.status_code >= 500 or answer.status_code == 408:
        return Ambiguous(detail=detail)
    if answer.status_code == 401:
        detail += ": check TWILIO_ACCOUNT_SID and TWILIO_AUTH_TOKEN"
    return Refused(provider_code=code, detail=detail)


def _code(answer: httpx.Response) -> str:
    try:
        return str(int(answer.json()["code"]))
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError, ValueError):
        return str(answer.status_code)


def _retry_after(answer: httpx.Response) -> float:
    """Seconds; 1 when Twilio does not say, an hour at most."""
    given = answer.headers.get("Retry-After", "")
    return min(max(float(given), 0.1), 3600.0) if _SECONDS.fullmatch(given) else 1.0
