"""What the simulated Twilio keeps, and everything that goes out from it to the webhooks."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import deque
from collections.abc import Coroutine, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from itertools import takewhile
from typing import Any
from urllib.parse import urlencode

import httpx

from mesh.adapters.twilio_signature import SIGNATURE_HEADER, Pairs, address, identity, signature
from mesh.errors import Malformed
from mesh.testing.journal import Journal, Kind, now

KEPT = 50_000
VERSION = "2010-04-01"
TYPING_S = 25.0


@dataclass(frozen=True)
class Account:
    sid: str
    token: str
    number: str
    webhook: str
    status_url: str = ""


@dataclass(slots=True)
class Message:
    seq: int
    sid: str
    to: str
    sender: str
    body: str
    direction: str
    status: str
    created: datetime = field(default_factory=lambda: datetime.now(UTC))
    mono: float = field(default_factory=time.monotonic)
    sent: datetime | None = None
    """Of a person's message: when its webhook was first posted."""
    files: str = "0"
    taken: bool | None = None
    """Whether the webhook took a person's message; None until it has answered."""
    changed: int = 0
    """Grows with each change to any message."""

    def resource(self, account: str) -> dict[str, Any]:
        """As Twilio's REST form has it."""
        uri = f"/{VERSION}/Accounts/{account}/Messages/{self.sid}"
        created = format_datetime(self.created)
        return {
            "account_sid": account,
            "api_version": VERSION,
            "body": self.body,
            "date_created": created,
            "date_sent": format_datetime(self.sent) if self.sent else None,
            "date_updated": created,
            "direction": self.direction,
            "error_code": None,
            "error_message": None,
            "from": self.sender,
            "messaging_service_sid": None,
            "num_media": self.files,
            "num_segments": "1",
            "price": None,
            "price_unit": None,
            "sid": self.sid,
            "status": self.status,
            "subresource_uris": {"media": f"{uri}/Media.json"},
            "tags": None,
            "to": self.to,
            "uri": f"{uri}.json",
        }

    def reply(self) -> dict[str, Any]:
        """As the control side has it: people by their identity."""
        people = {"to": _person(self.to), "from": _person(self.sender)}
        when = {"at": self.created.isoformat(), "mono": self.mono}
        return {"seq": self.seq, "sid": self.sid, **people, "body": self.body, **when}


def _person(address: str) -> str:
    try:
        return identity(address)
    except Malformed:
        return address


@dataclass(frozen=True, slots=True)
class Post:
    """What became of a webhook. `status` 0: nobody took it, and `error` says why."""

    message_sid: str
    status: int
    ms: float
    error: str = ""


@dataclass(slots=True)
class Listing:
    """How the list of messages misbehaves."""

    steps: deque[dict[str, Any]] = field(default_factory=deque)
    late: float = 0.0
    """Seconds for which a message is not listed yet."""


class Exchange:
    """All state, and everything that goes out to the webhooks."""

    def __init__(self, account: Account) -> None:
        self.account = account
        self.messages: deque[Message] = deque()
        self.journal = Journal()
        self.script: deque[dict[str, Any]] = deque()
        self.listing = Listing()
        self.news = asyncio.Condition()
        self.changes = asyncio.Condition()
        """For whoever looks at a conversation: `news` tells of the mesh's messages only, and wakes fewer."""
        self.changed = 0
        self.closing = asyncio.Event()
        self._seq = 0
        self._by_sid: dict[str, Message] = {}
        self._by_address: dict[str, deque[Message]] = {}
        """Of both sides."""
        self._typing: dict[str, tuple[float, int]] = {}
        """By person: until when (monotonic), and the number of the change."""
        self._tasks: set[asyncio.Task[Any]] = set()
        self._http = httpx.AsyncClient(
            timeout=httpx.Timeout(15.0, connect=5.0, pool=None),
            limits=httpx.Limits(max_connections=1000, max_keepalive_connections=100),
            trust_env=False,
        )

    async def stop_waiting(self) -> None:
        """Lets every open request end, so that the process can."""
        self.closing.set()
        for waiting in (self.news, self.changes):
            async with waiting:
                waiting.notify_all()

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._http.aclose()

    async def send(self, to: str, body: str, callback: str, answer: str = "success") -> Message:
        """Keeps a message of the mesh, and lets its states follow. `answer` is what its sender will make of it:
        `success`, `hung` or `failed`."""
        message = self._keep("SM" + secrets.token_hex(16), to, f"whatsapp:{self.account.number}", body, "outbound-api")
        self.journal.write("outbound", {**message.reply(), "answer": answer})
        self._typing.pop(to, None)
        async with self.news:
            self.news.notify_all()
        await self._change(message)
        self._later(self._follow(message, callback or self.account.status_url))
        return message

    def refuse(self, to: str, status: int, code: int) -> None:
        """Notes a message that was not taken. `status` 0: no answer."""
        self.journal.write("refused", {"to": _person(to), **now(), "status": status, "code": code})

    async def receive(
        self, form: Mapping[str, str], *, deliver: bool = True, copies: int = 1, delay: float = 0.0
    ) -> Post:
        """A person's message: Twilio keeps it, whether or not the webhook takes it. Its webhook is posted `copies`
        times at once, after `delay` seconds, for which this does not wait; or never. Returns the first post."""
        sid = form.get("MessageSid", "")
        message = self._by_sid.get(sid)
        if message is None:
            message = self._keep(sid, form.get("To", ""), form.get("From", ""), form.get("Body", ""), "inbound")
            message.files = form.get("NumMedia", "0")
            self.journal.write("said", message.reply())
        await self._change(message, taken=message.taken or None)
        if not deliver:
            return Post(sid, 0, 0.0, "not posted")
        if delay:
            self._later(self._deliver(message, form, copies, delay))
            return Post(sid, 0, 0.0, "posted later")
        return await self._deliver(message, form, copies)

    async def _deliver(self, message: Message, form: Mapping[str, str], copies: int, delay: float = 0.0) -> Post:
        await asyncio.sleep(delay)
        message.sent = message.sent or datetime.now(UTC)
        pairs, token = list(form.items()), secrets.token_hex(16)
        posts = (self._post(self.account.webhook, "inbound", message.sid, pairs, token) for _ in range(copies))
        answered = await asyncio.gather(*posts)
        await self._change(message, taken=message.taken or any(post.status == 200 for post in answered))
        return answered[0]

    async def type(self, message_sid: str) -> bool:
        """Whether there is such a message of a person."""
        message = self._by_sid.get(message_sid)
        if message is None or message.direction != "inbound":
            return False
        self.journal.write("typing", {"message_sid": message_sid, "to": _person(message.sender), **now()})
        self.changed += 1
        self._typing[message.sender] = (time.monotonic() + TYPING_S, self.changed)
        async with self.changes:
            self.changes.notify_all()
        return True

    def typing(self, who: str, after: int = 0) -> float:
        """Seconds for which that person still sees it; 0 also when nothing changed after that."""
        until, changed = self._typing.get(address(who), (0.0, 0))
        return max(until - time.monotonic(), 0.0) if changed > after else 0.0

    def message(self, sid: str) -> Message | None:
        return self._by_sid.get(sid)

    def listed(self, to: str) -> Iterator[Message]:
        """Newest first; to everybody when nobody is named."""
        latest = time.monotonic() - self.listing.late
        chosen = self._by_address.get(to, ()) if to else self.messages
        return (message for message in reversed(chosen) if message.mono <= latest and to in ("", message.to))

    def replies(self, after: int, to: str) -> list[dict[str, Any]]:
        """Oldest first; looked for from the newest back, so that many who wait stay cheap."""
        recipient = address(to) if to else ""
        chosen = self._by_address.get(recipient, ()) if to else self.messages
        recent = takewhile(lambda message: message.seq > after, reversed(chosen))
        fit = [each for each in recent if each.direction != "inbound" and recipient in ("", each.to)]
        return [message.reply() for message in reversed(fit)]

    def talk(self, who: str, after: int = 0) -> list[Message]:
        """Of both sides, oldest first: what changed after that."""
        return [each for each in self._by_address.get(address(who), ()) if each.changed > after]

    async def _change(self, message: Message, *, taken: bool | None = None) -> None:
        self.changed += 1
        message.changed, message.taken = self.changed, taken
        async with self.changes:
            self.changes.notify_all()

    def _keep(self, sid: str, to: str, sender: str, body: str, direction: str) -> Message:
        self._seq += 1
        status = "received" if direction == "inbound" else "queued"
        message = Message(self._seq, sid, to, sender, body, direction, status)
        if len(self.messages) == KEPT:
            self._forget(self.messages.popleft())
        self.messages.append(message)
        self._by_sid[sid] = message
        for side in {to, sender}:
            self._by_address.setdefault(side, deque()).append(message)
        return message

    def _forget(self, oldest: Message) -> None:
        """The oldest of all is the oldest of either side's."""
        self._by_sid.pop(oldest.sid, None)
        for side in {oldest.to, oldest.sender}:
            self._by_address[side].popleft()
            if not self._by_address[side]:
                del self._by_address[side]

    def _later(self, work: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _follow(self, message: Message, callback: str) -> None:
        """Queued is in the REST answer; Twilio posts what comes after it."""
        for state in ("sent", "delivered"):
            message.status = state
            message.sent = message.sent or datetime.now(UTC)
            if callback:
                await self._post(callback, state, message.sid, self._status_form(message))

    def _status_form(self, message: Message) -> Pairs:
        return [
            ("SmsSid", message.sid),
            ("SmsStatus", message.status),
            ("MessageStatus", message.status),
            ("ChannelToAddress", message.to.removeprefix("whatsapp:")),
            ("To", message.to),
            ("ChannelPrefix", "whatsapp"),
            ("MessageSid", message.sid),
            ("AccountSid", self.account.sid),
            ("From", message.sender),
            ("ApiVersion", VERSION),
        ]

    async def _post(self, url: str, event: str, sid: str, form: Pairs, token: str = "") -> Post:
        headers = {
            SIGNATURE_HEADER: signature(url, form, self.account.token),
            "Content-Type": "application/x-www-form-urlencoded; charset=UTF-8",
            "I-Twilio-Idempotency-Token": token or secrets.token_hex(16),
            "User-Agent": "TwilioProxy/1.1",
        }
        when, started = now(), time.perf_counter()
        status, error = 0, ""
        try:
            status = (await self._http.post(url, content=urlencode(form), headers=headers)).status_code
        except httpx.HTTPError as trouble:
            error = type(trouble).__name__
        post = Post(sid, status, round((time.perf_counter() - started) * 1000, 1), error)
        kind: Kind = "inbound" if event == "inbound" else "callbacks"
        self.journal.write(kind, {**asdict(post), "event": event, **when})
        return post
