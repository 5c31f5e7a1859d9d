"""Fetching people's files from their provider, and from nowhere else.

What comes from outside names the address, so each hop is checked: whose host it is, and that it is not one of ours. The
connection is made to the very address that was checked, by its number: asking for it again could get another answer.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import re
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.message import EmailMessage

import httpx

from mesh.adapters.media_types import bare, file_name, is_page, taken, type_by_name
from mesh.errors import NotFound, Unavailable, Unreadable
from mesh.ports.channel import Attachment, Media
from mesh.settings import is_loopback

log = logging.getLogger(__name__)

MOST_REDIRECTS = 5
TOTAL_S = 30.0
LATE_S = (1.0, 1.5)
"""A provider may have a file a moment late: how long to wait before asking again, seconds."""

GONE = "That file isn't there any more. Please send it again."
ELSEWHERE = "I couldn't take that file from where it is. Please send it to me again, here in the chat."
UNKNOWN_TYPE = "I can't take that kind of file. Please send a PDF, a Word file, a plain text, a picture or a recording."
NOT_NOW = "I couldn't fetch your file just now. Please send it again in a minute."

_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_SITE_LOCAL = ipaddress.ip_network("fec0::/10")
_HEADERS = {"User-Agent": "adiyan", "Accept": "*/*", "Accept-Encoding": "identity"}
_TIMEOUT = httpx.Timeout(10.0, connect=5.0)
_HOST = re.compile(rb"[a-z0-9.-]{1,253}")
_ODD = re.compile(r"[\x00-\x20\x7f\\]")

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""The addresses of a host, as numbers. Raises `OSError`."""


@dataclass(frozen=True, slots=True)
class Places:
    """Where a provider's files are. `hosts` are names, `*.` before one for all below it, and a path may follow one:
    `files.example.com/ours/`. All are https, at the usual port."""

    hosts: tuple[str, ...]
    authorization: str = field(default="", repr=False)
    """The header. It is sent to `trusted` hosts alone, and no further than the first redirect to another."""
    trusted: tuple[str, ...] = ()
    local: str = ""
    """The base address of a provider that is simulated on this machine: it is trusted; `localhost` at its port is as
    good, without credentials."""

    def __post_init__(self) -> None:
        if self.local and not is_loopback(httpx.URL(self.local).host):
            raise ValueError("only a provider on this machine is local")

    def hold(self, url: httpx.URL) -> bool:
        if url.userinfo or ".." in url.path.split("/"):
            return False
        if self.is_local(url):
            return True
        usual = url.scheme == "https" and url.port is None and _HOST.fullmatch(url.raw_host)
        return bool(usual) and any(_covers(host, url) for host in self.hosts)

    def is_local(self, url: httpx.URL) -> bool:
        if not self.local:
            return False
        base = httpx.URL(self.local)
        names = {base.host, "localhost"}
        return url.host in names and (url.scheme, _port(url)) == (base.scheme, _port(base))

    def trust(self, url: httpx.URL) -> bool:
        if self.is_local(url):
            return url.host == httpx.URL(self.local).host
        return url.host in self.trusted


class Fetcher:
    """`fetch` is for the `fetch` of a `mesh.ports.channel.Channel`. It goes through no proxy: one would look the host
    up again, and connect by itself."""

    def __init__(
        self,
        places: Places,
        *,
        resolve: Resolve | None = None,
        tls: ssl.SSLContext | None = None,
        total_seconds: float = TOTAL_S,
        late_seconds: Sequence[float] = LATE_S,
    ) -> None:
        self._places = places
        self._resolve = resolve or _looked_up
        self._tls = tls
        self._total = total_seconds
        self._late = tuple(late_seconds)
        self._transport: httpx.AsyncHTTPTransport | None = None

    async def fetch(self, attachment: Attachment, *, most_bytes: int) -> Media:
        claimed = bare(attachment.media_type)
        if claimed and not taken(claimed):
            raise Unreadable(UNKNOWN_TYPE, detail=f"media type {claimed[:60]!r}")
        try:
            async with asyncio.timeout(self._total):
                answer, raw = await self._persist(_parsed(attachment.reference), most_bytes)
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, OSError) as cause:
            raise Unavailable(NOT_NOW, detail=f"media: {type(cause).__name__}") from cause
        answered = bare(answer.headers.get("content-type", ""))
        name = attachment.name or _stated_name(answer.headers.get("content-disposition", ""))
        media_type = claimed or answered or type_by_name(name)
        unasked = is_page(answered) and not is_page(claimed)
        if not taken(media_type) or unasked or (answered and not taken(answered)):
            raise Unreadable(UNKNOWN_TYPE, detail=f"media type {(answered or media_type)[:60]!r}")
        return Media(raw, media_type, file_name(name, media_type, raw, datetime.now(UTC).date()))

    async def close(self) -> None:
        if self._transport is not None:
            await self._transport.aclose()

    async def _persist(self, url: httpx.URL, most_bytes: int) -> tuple[httpx.Response, bytes]:
        for wait in (*self._late, None):
            try:
                return await self._follow(url, most_bytes)
            except NotFound:
                if wait is None:
                    raise
                await asyncio.sleep(wait)
        raise AssertionError("the last one returns or raises")

    async def _follow(self, url: httpx.URL, most_bytes: int) -> tuple[httpx.Response, bytes]:
        authorized = self._places.trust(url)
        for _ in range(MOST_REDIRECTS + 1):
            answer = await self._ask(url, self._places.authorization if authorized else "")
            try:
                if not answer.has_redirect_location:
                    return answer, await _read(answer, most_bytes)
                target = _parsed(answer.headers["location"], url)
            finally:
                await answer.aclose()
            authorized = authorized and _origin(target) == _origin(url)
            url = target
        raise Unreadable(ELSEWHERE, detail=f"media: more than {MOST_REDIRECTS} redirects")

    async def _ask(self, url: httpx.URL, authorization: str) -> httpx.Response:
        """At a number of the host, in the name of the host."""
        numbers = await self._checked(url)
        headers = _HEADERS | {"Host": url.netloc.decode("ascii")}
        if authorization:
            headers["Authorization"] = authorization
        for left, number in zip(reversed(range(len(numbers))), numbers, strict=True):
            request = httpx.Request(
                "GET",
                url.copy_with(host=number, fragment=None),
                headers=headers,
                extensions={"sni_hostname": url.host, "timeout": _TIMEOUT.as_dict()},
            )
            try:
                return await self._opened().handle_async_request(request)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                if not left:
                    raise
        raise AssertionError("the last one returns or raises")

    async def _checked(self, url: httpx.URL) -> Sequence[str]:
        """The host's numbers, two at most. Raises `Unreadable` when it is not a place for files."""
        if not self._places.hold(url):
            raise Unreadable(ELSEWHERE, detail=f"media: not a place of the provider's: {url.host[:100]!r}")
        fits = _is_loopback if self._places.is_local(url) else _is_public
        numbers = await self._resolve(url.host, _port(url))
        if not numbers or not all(fits(number) for number in numbers):
            raise Unreadable(ELSEWHERE, detail=f"media: {url.host[:100]!r} leads to an address that is not allowed")
        return numbers[:2]

    def _opened(self) -> httpx.AsyncHTTPTransport:
        """Made when it is first needed: its TLS context takes 70 ms. A client above it would keep cookies, follow
        what it can't read, and log addresses that are as good as a key. No connection is kept for another host that
        has the same address."""
        if self._transport is None:
            limits = httpx.Limits(max_connections=20, max_keepalive_connections=0)
            self._transport = httpx.AsyncHTTPTransport(verify=self._tls or True, limits=limits, trust_env=False)
        return self._transport


async def _read(answer: httpx.Response, most_bytes: int) -> bytes:
    if answer.status_code in (404, 410):
        raise NotFound(GONE, detail=f"media: status={answer.status_code}")
    if answer.status_code != 200:
        hint = ": are the account's id and token right?" if answer.status_code in (401, 403) else ""
        raise Unavailable(NOT_NOW, detail=f"media: status={answer.status_code}{hint}")
    if answer.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
        raise Unreadable(ELSEWHERE, detail="media: compressed, which was not asked for")
    if int(answer.headers.get("content-length", 0)) > most_bytes:
        raise _too_large(most_bytes)
    raw = bytearray()
    async for chunk in answer.aiter_raw():
        raw += chunk
        if len(raw) > most_bytes:
            raise _too_large(most_bytes)
    return bytes(raw)


def _too_large(most_bytes: int) -> Unreadable:
    most = f"{most_bytes / (1 << 20):.3g}"
    return Unreadable(
        f"That file is too large: I can take up to {most} MB. Please send a smaller one, or a part of it.",
        detail=f"media: more than {most_bytes} bytes",
    )


def _parsed(reference: str, base: httpx.URL | None = None) -> httpx.URL:
    """Raises `Unreadable`."""
    try:
        if _ODD.search(reference):
            raise ValueError("white space or a backslash")
        url = base.join(reference) if base else httpx.URL(reference)
        url.host  # noqa: B018 - of a name that is none, this raises
    except (httpx.InvalidURL, ValueError, TypeError) as cause:
        raise Unreadable(ELSEWHERE, detail=f"media: not an address: {type(cause).__name__}") from cause
    return url


def _covers(host: str, url: httpx.URL) -> bool:
    name, slash, path = host.partition("/")
    if slash and not url.path.startswith(slash + path):
        return False
    return url.host.endswith(name[1:]) if name.startswith("*.") else url.host == name


def _port(url: httpx.URL) -> int:
    return url.port or (443 if url.scheme == "https" else 80)


def _origin(url: httpx.URL) -> tuple[str, str, int]:
    return url.scheme, url.host, _port(url)


def _is_loopback(number: str) -> bool:
    return ipaddress.ip_address(number).is_loopback


def _is_public(number: str) -> bool:
    found = ipaddress.ip_address(number)
    if isinstance(found, ipaddress.IPv6Address):
        if found in _NAT64:
            return _is_public(str(ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)))
        if found.ipv4_mapped or found.sixtofour or found.teredo or found.scope_id or found in _SITE_LOCAL:
            return False
    return found.is_global and not (found.is_multicast or found.is_reserved)


async def _looked_up(host: str, port: int) -> list[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


def _stated_name(disposition: str) -> str:
    """Of `attachment; filename*=UTF-8''na%C3%AFve.pdf`."""
    if not disposition:
        return ""
    message = EmailMessage()
    try:
        message["Content-Disposition"] = disposition
        return message.get_filename() or ""
    except (ValueError, IndexError, LookupError):
        return ""
