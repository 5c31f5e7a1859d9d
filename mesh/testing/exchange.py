"""What the simulated Twilio keeps, and everything that goes out from it to the webhooks."""

from __future__ import annotations

import asyncio
import math
import secrets
import time
from collections import deque
from collections.abc import Coroutine, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from itertools import takewhile
from typing import Any
from urllib.parse import urlencode

import httpx

from mesh.adapters.twilio_signature import SIGNATURE_HEADER, Pairs, address, signature
from mesh.testing.files import Files, Unfetched, download
from mesh.testing.journal import Journal, Kind, now
from mesh.testing.messages import ERRORS, VERSION, Account, Medium, Message, person
from mesh.testing.rules import FROM_META, Rules, Template

KEPT = 50_000
TYPING_S = 25.0
SHOWN_WITH_TEXT = ("image/", "video/")


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

    def __init__(self, account: Account, templates: Mapping[str, Template] | None = None) -> None:
        self.account = account
        self.messages: deque[Message] = deque()
        self.journal = Journal()
        self.script: deque[dict[str, Any]] = deque()
        self.listing = Listing()
        self.rules = Rules()
        self.templates = dict(templates or {})
        self.files = Files()
        self.news = asyncio.Condition()
        self.changes = asyncio.Condition()
        """For whoever looks at a conversation: `news` tells of the mesh's messages only, and wakes fewer."""
        self.changed = 0
        self.closing = asyncio.Event()
        self._seq = 0
        self._by_sid: dict[str, Message] = {}
        self._by_address: dict[str, deque[Message]] = {}
        """Of both sides."""
        self._heard: dict[str, float] = {}
        """By address: when that person last wrote (monotonic)."""
        self._last_sent = -math.inf
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

    async def settle(self) -> None:
        """Until nothing is on its way to a webhook."""
        while self._tasks and not self.closing.is_set():
            await asyncio.wait({*self._tasks}, timeout=1.0)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._http.aclose()

    def new_sid(self, *, file: bool) -> str:
        return ("MM" if file else "SM") + secrets.token_hex(16)

    # ── of the mesh ───────────────────────────────────────────────────────────────────────────────────────────────

    def refusal(self, to: str, *, template: bool) -> tuple[int, int]:
        """By the rules: status and code of a message that is not taken; zeros when it is."""
        return self.rules.refusal(person(to), template=template, **self._since(to))

    async def send(
        self,
        to: str,
        body: str,
        callback: str,
        answer: str = "success",
        *,
        link: str = "",
        template: Template | None = None,
        failure: int = 0,
    ) -> Message:
        """Keeps a message of the mesh, and lets its states follow. `answer` is what its sender will make of it:
        `success`, `hung` or `failed`; `failure` the code by which it will not arrive. What `link` shows arrives once
        it is downloaded."""
        failure = failure or self.rules.failure(person(to), template=template is not None, **self._since(to))
        sid = self.new_sid(file=bool(link))
        message = self._keep(sid, to, f"whatsapp:{self.account.number}", body, "outbound-api")
        message.buttons = template.buttons if template else ()
        message.files = "1" if link else "0"
        message.seen = not link and not failure
        self._last_sent = message.mono
        self.journal.write("outbound", {**message.reply(), "answer": answer})
        if message.seen:
            await self._arrive(message)
        self._later(self._follow(message, callback or self.account.status_url, link, failure))
        return message

    def refuse(self, to: str, status: int, code: int) -> None:
        """Notes a message that was not taken. `status` 0: no answer."""
        self.journal.write("refused", {"to": person(to), **now(), "status": status, "code": code})

    async def _follow(self, message: Message, callback: str, link: str, failure: int) -> None:
        """Queued is in the REST answer; Twilio posts what comes after it."""
        rules, why = self.rules, ERRORS.get(failure, "")
        if link and not failure:
            try:
                file = await download(self._http, link)
            except Unfetched as trouble:
                failure, why = trouble.code, str(trouble)
            else:
                message.media = (self.files.put(message.sid, *file),)
                if not rules.captions and not message.media[0].media_type.startswith(SHOWN_WITH_TEXT):
                    message.body = ""
                self._move_to_the_end(message)
                await self._arrive(message)
        states: tuple[str, ...] = ("sent", "delivered", "read") if rules.read else ("sent", "delivered")
        if failure:
            states = ("sent", "undelivered") if failure in FROM_META else ("failed",)
            failed = {"sid": message.sid, "to": person(message.to), "code": failure, "why": why, **now()}
            self.journal.write("failed", failed)
        if rules.callbacks == "reversed":
            for state in states:
                self._reach(message, state, failure)
        for state in reversed(states) if rules.callbacks == "reversed" else states:
            if rules.callbacks != "reversed":
                self._reach(message, state, failure)
            if callback and rules.callbacks != "never":
                form = self._status_form(message, state, failure)
                for _ in range(rules.callback_copies):
                    await self._post(callback, state, message.sid, form)

    def _reach(self, message: Message, state: str, failure: int) -> None:
        message.status = state
        message.error_code = 0 if state == "sent" else failure
        if state != "failed":
            message.sent = message.sent or datetime.now(UTC)

    async def _arrive(self, message: Message) -> None:
        message.seen = True
        self._typing.pop(message.to, None)
        async with self.news:
            self.news.notify_all()
        await self._change(message)

    def _since(self, to: str) -> dict[str, float]:
        at = time.monotonic()
        return {"since_heard": at - self._heard.get(to, -math.inf), "since_sent": at - self._last_sent}

    # ── of people ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def receive(
        self,
        form: Mapping[str, str],
        *,
        media: tuple[Medium, ...] = (),
        deliver: bool = True,
        copies: int = 1,
        delay: float = 0.0,
    ) -> Post:
        """A person's message: Twilio keeps it, whether or not the webhook takes it. Its webhook is posted `copies`
        times at once, after `delay` seconds, for which this does not wait; or never. Returns the first post, or what it
        came to when it was posted again."""
        sid = form.get("MessageSid", "")
        message = self._by_sid.get(sid)
        if message is None:
            message = self._keep(sid, form.get("To", ""), form.get("From", ""), form.get("Body", ""), "inbound")
            message.files = form.get("NumMedia", "0")
            message.media, message.kind = media, form.get("MessageType", "text")
            message.quoted = form.get("OriginalRepliedMessageSid", "")
            message.form = dict(form) if message.kind != "text" or message.quoted else None
            self._heard[message.sender] = message.mono
            self.journal.write("said", {**message.reply(), "kind": message.kind})
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
        answered = await asyncio.gather(*(self._try(message.sid, pairs, token) for _ in range(copies)))
        await self._change(message, taken=message.taken or any(post.status == 200 for post in answered))
        return answered[0]

    async def _try(self, sid: str, pairs: Pairs, token: str) -> Post:
        post = await self._post(self.account.webhook, "inbound", sid, pairs, token)
        for _ in range(self.rules.retries):
            if 200 <= post.status < 300:
                break
            post = await self._post(self.account.webhook, "inbound", sid, pairs, token)
        return post

    async def type(self, message_sid: str) -> bool:
        """Whether there is such a message of a person."""
        message = self._by_sid.get(message_sid)
        if message is None or message.direction != "inbound":
            return False
        self.journal.write("typing", {"message_sid": message_sid, "to": person(message.sender), **now()})
        self.changed += 1
        self._typing[message.sender] = (time.monotonic() + TYPING_S, self.changed)
        async with self.changes:
            self.changes.notify_all()
        return True

    def typing(self, who: str, after: int = 0) -> float:
        """Seconds for which that person still sees it; 0 also when nothing changed after that."""
        until, changed = self._typing.get(address(who), (0.0, 0))
        return max(until - time.monotonic(), 0.0) if changed > after else 0.0

    # ── what is kept ──────────────────────────────────────────────────────────────────────────────────────────────

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
        fit = [each for each in recent if each.direction != "inbound" and each.seen and recipient in ("", each.to)]
        return [message.reply() for message in reversed(fit)]

    def talk(self, who: str, after: int = 0) -> list[Message]:
        """Of both sides, oldest first, as the person has it: what changed after that."""
        return [each for each in self._by_address.get(address(who), ()) if each.changed > after and each.seen]

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
        self._by_sid[sid] = message
        self._append(message)
        return message

    def _append(self, message: Message) -> None:
        self.messages.append(message)
        for side in {message.to, message.sender}:
            self._by_address.setdefault(side, deque()).append(message)

    def _move_to_the_end(self, message: Message) -> None:
        """What arrives late has a number after all that arrived before it."""
        if message.sid not in self._by_sid:
            return
        self._seq += 1
        message.seq = self._seq
        for kept in (self.messages, *(self._by_address[side] for side in {message.to, message.sender})):
            kept.remove(message)
        self._append(message)

    def _forget(self, oldest: Message) -> None:
        """The oldest of all is the oldest of either side's."""
        self._by_sid.pop(oldest.sid, None)
        for medium in oldest.media:
            self.files.delete(medium.sid)
        for side in {oldest.to, oldest.sender}:
            self._by_address[side].popleft()
            if not self._by_address[side]:
                del self._by_address[side]

    def _later(self, work: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # ── webhooks ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _status_form(self, message: Message, state: str, failure: int) -> Pairs:
        told = failure if state in ("failed", "undelivered") else 0
        return [
            ("SmsSid", message.sid),
            ("SmsStatus", state),
            ("MessageStatus", state),
            ("ChannelToAddress", message.to.removeprefix("whatsapp:")),
            ("To", message.to),
            ("ChannelPrefix", "whatsapp"),
            ("MessageSid", message.sid),
            ("AccountSid", self.account.sid),
            *([("ErrorCode", str(told)), ("ErrorMessage", ERRORS.get(told, ""))] if told else ()),
            ("From", message.sender),
            ("ApiVersion", VERSION),
        ]

    def written(self, url: str, event: str, form: Pairs, token: str) -> tuple[bytes, dict[str, str]]:
        """What is posted, and its headers."""
        headers = {
            SIGNATURE_HEADER: signature(url, form, self.account.token),
            "Content-Type": "application/x-www-form-urlencoded; charset=UTF-8",
            "I-Twilio-Idempotency-Token": token or secrets.token_hex(16),
            "User-Agent": "TwilioProxy/1.1",
        }
        return urlencode(form).encode(), headers

    async def _post(self, url: str, event: str, sid: str, form: Pairs, token: str = "") -> Post:
        content, headers = self.written(url, event, form, token)
        when, started = now(), time.perf_counter()
        status, error = 0, ""
        try:
            status = (await self._http.post(url, content=content, headers=headers)).status_code
        except httpx.HTTPError as trouble:
            error = type(trouble).__name__
        post = Post(sid, status, round((time.perf_counter() - started) * 1000, 1), error)
        kind: Kind = "inbound" if event == "inbound" else "callbacks"
        self.journal.write(kind, {**asdict(post), "event": event, **when})
        return post
