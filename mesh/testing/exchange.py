"""What the simulated Twilio keeps, and everything that goes out from it to the webhooks."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from itertools import takewhile
from typing import Any
from urllib.parse import urlencode

import httpx

from mesh.adapters.twilio_signature import SIGNATURE_HEADER, Pairs, address, identity, signature

KEPT = 10_000
VERSION = "2010-04-01"


@dataclass(frozen=True)
class Account:
    sid: str
    token: str
    number: str
    webhook: str
    status_url: str = ""


@dataclass
class Message:
    seq: int
    sid: str
    to: str
    sender: str
    body: str
    direction: str
    status: str
    created: datetime = field(default_factory=lambda: datetime.now(UTC))
    sent: datetime | None = None
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
            "num_media": "0",
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
        people = {"to": identity(self.to), "from": identity(self.sender)}
        return {"seq": self.seq, "sid": self.sid, **people, "body": self.body, "at": self.created.isoformat()}


@dataclass(frozen=True)
class Post:
    """A webhook that was sent. `status` 0: nobody took it, and `error` says why."""

    message_sid: str
    event: str
    at: str
    status: int
    ms: float
    error: str = ""


class Exchange:
    """All state, and everything that goes out to the webhooks."""

    def __init__(self, account: Account) -> None:
        self.account = account
        self.messages: deque[Message] = deque(maxlen=KEPT)
        self.posts: deque[Post] = deque(maxlen=KEPT)
        self.script: deque[dict[str, Any]] = deque()
        self.news = asyncio.Condition()
        self.changes = asyncio.Condition()
        """For whoever looks at a conversation: `news` tells of the mesh's messages only, and wakes fewer."""
        self.changed = 0
        self.closing = asyncio.Event()
        self._seq = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._http = httpx.AsyncClient(timeout=httpx.Timeout(15.0, connect=5.0), trust_env=False)

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

    async def send(self, to: str, body: str, callback: str) -> Message:
        """Keeps a message of the mesh, and lets its states follow."""
        message = self._keep("SM" + secrets.token_hex(16), to, f"whatsapp:{self.account.number}", body, "outbound-api")
        async with self.news:
            self.news.notify_all()
        await self._change(message)
        task = asyncio.create_task(self._follow(message, callback or self.account.status_url))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return message

    async def receive(self, form: Mapping[str, str]) -> Post:
        """A person's message: Twilio keeps it, whether or not the webhook takes it."""
        sid = form.get("MessageSid", "")
        message = next((kept for kept in self.messages if kept.sid == sid), None)
        if message is None:
            message = self._keep(sid, form.get("To", ""), form.get("From", ""), form.get("Body", ""), "inbound")
        await self._change(message, taken=message.taken or None)
        post = await self._post(self.account.webhook, "inbound", sid, list(form.items()))
        await self._change(message, taken=message.taken or post.status == 200)
        return post

    def replies(self, after: int, to: str) -> list[dict[str, Any]]:
        """Oldest first; looked for from the newest back, so that many who wait stay cheap."""
        recipient = address(to) if to else ""
        recent = takewhile(lambda message: message.seq > after, reversed(self.messages))
        fit = [each for each in recent if each.direction != "inbound" and recipient in ("", each.to)]
        return [message.reply() for message in reversed(fit)]

    def talk(self, who: str, after: int = 0) -> list[Message]:
        """Of both sides, oldest first: what changed after that."""
        person = address(who)
        return [each for each in self.messages if each.changed > after and person in (each.to, each.sender)]

    async def _change(self, message: Message, *, taken: bool | None = None) -> None:
        self.changed += 1
        message.changed, message.taken = self.changed, taken
        async with self.changes:
            self.changes.notify_all()

    def _keep(self, sid: str, to: str, sender: str, body: str, direction: str) -> Message:
        self._seq += 1
        status = "received" if direction == "inbound" else "queued"
        message = Message(self._seq, sid, to, sender, body, direction, status)
        message.sent = message.created if direction == "inbound" else None
        self.messages.append(message)
        return message

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

    async def _post(self, url: str, event: str, sid: str, form: Pairs) -> Post:
        headers = {
            SIGNATURE_HEADER: signature(url, form, self.account.token),
            "Content-Type": "application/x-www-form-urlencoded; charset=UTF-8",
            "I-Twilio-Idempotency-Token": secrets.token_hex(16),
            "User-Agent": "TwilioProxy/1.1",
        }
        at, started = datetime.now(UTC).isoformat(), time.perf_counter()
        status, error = 0, ""
        try:
            status = (await self._http.post(url, content=urlencode(form), headers=headers)).status_code
        except httpx.HTTPError as trouble:
            error = type(trouble).__name__
        post = Post(sid, event, at, status, round((time.perf_counter() - started) * 1000, 1), error)
        self.posts.append(post)
        return post
