"""A person's phone, on the simulated Twilio."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, NamedTuple, Self

import httpx

from mesh.testing.rules import Rules

File = tuple[str, str, bytes]
"""Name, media type and bytes."""


class NotTaken(RuntimeError):
    """The webhook did not answer with 200. `status` 0: nobody listened."""

    def __init__(self, status: int, error: str = "") -> None:
        super().__init__(f"the webhook answered {status or error}")
        self.status = status


@dataclass(frozen=True, slots=True)
class Posted:
    """What the webhook answered, and in how many milliseconds."""

    message_sid: str
    status: int
    ms: float
    error: str = ""


class Shown(NamedTuple):
    """A file on the person's phone. `url` is on the simulated Twilio, and needs no credentials: see `Phone.open`."""

    url: str
    media_type: str
    name: str
    size: int


@dataclass(frozen=True, slots=True)
class Received:
    """A message of the mesh. `seq` grows: it is what `replies` continues after. `buttons` are what they say and their
    payloads."""

    seq: int
    sid: str
    sender: str
    recipient: str
    text: str
    at: datetime
    media: tuple[Shown, ...] = ()
    buttons: tuple[tuple[str, str], ...] = ()


class Phone:
    """One for any number of people: `sender` is an identity such as `+15551230001` or `whatsapp:US.13491`."""

    def __init__(self, base_url: str) -> None:
        self.address = base_url.rstrip("/")
        # The simulated Twilio speaks plain HTTP: a TLS context would take 70 ms to make, and never be used.
        limits = httpx.Limits(max_connections=1000, max_keepalive_connections=100)
        self._http = httpx.AsyncClient(base_url=base_url, timeout=30.0, limits=limits, trust_env=False, verify=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    async def say(self, sender: str, text: str) -> str:
        """Returns the message's sid. Raises `NotTaken`."""
        posted = await self.post(sender, text)
        if posted.status != 200:
            raise NotTaken(posted.status, posted.error)
        return posted.message_sid

    async def post(
        self,
        sender: str,
        text: str,
        *,
        message_sid: str = "",
        to: str = "",
        fields: Mapping[str, str | None] | None = None,
        deliver: bool = True,
        copies: int = 1,
        delay: float = 0.0,
        files: Sequence[File] = (),
        quoting: str = "",
    ) -> Posted:
        """Whatever the webhook answers. A given `message_sid` replays; a field of None is left out of the form.

        Each of the `files` is a message of its own, the text goes with the first, and what is returned is of the last.
        A document without a text has its name as `Body`, and a webp image is a sticker. `quoting` is the sid of the
        message, of either side, that this one replies to.

        Twilio has the message from now on. `deliver=False`: its webhook is lost. `copies`: it is posted so often, at
        once; the first one's answer is returned. `delay`: it is posted after so many seconds, for which this does not
        wait, so that what is said later may arrive before it. When nothing was posted (yet), the status is 0, and
        `error` is `not posted` or `posted later`."""
        if message_sid and len(files) > 1:
            raise ValueError("Each file is a message of its own: they can't share a sid.")
        asked = {
            "from": sender,
            "to": to,
            "message_sid": message_sid,
            "fields": dict(fields or {}),
            "deliver": deliver,
            "copies": copies,
            "delay": delay,
            "quoting": quoting,
        }
        posted = Posted("", 0, 0.0)
        for number, file in enumerate(files or [None]):
            told = {"text": text if number == 0 else "", "file": _file(file) if file else None}
            posted = Posted(**await self._json("POST", "/simulate/inbound", json=asked | told, timeout=120.0))
        return posted

    async def locate(
        self, sender: str, latitude: float, longitude: float, *, address: str = "", label: str = "", **options: Any
    ) -> Posted:
        """A place. `options` are those of `post`, here and below."""
        place = {"Latitude": str(latitude), "Longitude": str(longitude), "Address": address, "Label": label}
        return await self._kind("location", sender, "", {name: each for name, each in place.items() if each}, options)

    async def share(self, sender: str, vcard: str, **options: Any) -> Posted:
        """A contact."""
        return await self.post(sender, "", files=[("contact.vcf", "text/vcard", vcard.encode())], **options)

    async def sticker(self, sender: str, webp: bytes, **options: Any) -> Posted:
        return await self.post(sender, "", files=[("sticker.webp", "image/webp", webp)], **options)

    async def react(self, sender: str, emoji: str, message_sid: str, **options: Any) -> Posted:
        """To a message of either side; an empty `emoji` takes it back. Twilio documents no form for it: this is one as
        of a quoted reply, whose `Body` is the emoji."""
        return await self._kind("reaction", sender, emoji, {}, {"quoting": message_sid, **options})

    async def press(self, sender: str, text: str, payload: str, message_sid: str = "", **options: Any) -> Posted:
        """A button, which says `text`, of the message `message_sid`."""
        button = {"ButtonText": text, "ButtonPayload": payload}
        return await self._kind("button", sender, text, button, {"quoting": message_sid, **options})

    async def _kind(
        self, kind: str, sender: str, text: str, fields: Mapping[str, str], options: Mapping[str, Any]
    ) -> Posted:
        more = options.get("fields") or {}
        return await self.post(sender, text, **{**options, "fields": {"MessageType": kind, **fields, **more}})

    async def open(self, shown: Shown) -> bytes:
        """What is in a file of a reply."""
        answer = await self._http.get(shown.url)
        answer.raise_for_status()
        return answer.content

    async def replies(self, sender: str, after: int = 0, wait: float = 0.0) -> list[Received]:
        """Oldest first. Waits up to `wait` seconds (60 at most) for the first one."""
        query = {"to": sender, "after_seq": after, "wait": wait}
        found = await self._json("GET", "/simulate/replies", params=query, timeout=wait + 10.0)
        return [_received(each) for each in found]

    async def script(self, *steps: Mapping[str, Any]) -> None:
        """What becomes of the next sends, in order: `{"do": "throttle", "retry_after": 1}`, `fail`, `refuse`, `hang`,
        `accept_then_hang`, `accept_then_fail` or `accept`. None given: what is left of the script is dropped."""
        await self._json("POST", "/simulate/script", json={"next": [dict(step) for step in steps]})

    async def listing(self, *steps: Mapping[str, Any], late: float = 0.0) -> None:
        """What becomes of the next looks into Twilio's list, in order: `{"do": "fail", "status": 503}`, `throttle`,
        `hang` or `answer`. Until the next call of this, a message is listed `late` seconds after it was taken, whoever
        wrote it. Nothing given: the list is as it should be."""
        await self._json("POST", "/simulate/listing", json={"next": [dict(step) for step in steps], "late": late})

    async def media(self, *steps: Mapping[str, Any]) -> None:
        """What becomes of the next fetches of a person's files, in order; each answers at Twilio's own address first,
        which then leads to another host. Nothing given: all are answered.

        - `{"do": "missing"}`: 404, as Twilio answers now and then for a moment. `fail` (`status`), `throttle`
          (`retry_after`), `hang`.
        - `redirect`: leads to `to`; a private address unless given. `loop`: to itself, without end.
        - `drip`: `bytes` (16) every `every` (1) seconds. `endless`: the file, and then zeros, without a length.
        - `wrong_type`: as `type` (text/html). `bomb`: gzip, which becomes `bytes` (1 GB) of zeros.
        - `answer`."""
        await self._json("POST", "/simulate/media", json={"next": [dict(step) for step in steps]})

    async def rules(self, **rules: Any) -> None:
        """What Twilio and Meta hold the mesh to from now on, as `Rules` has it; what is not given is off."""
        await self._json("POST", "/simulate/rules", json=asdict(Rules(**rules)))

    async def templates(self, known: Mapping[str, Any]) -> None:
        """By sid: a text with {{1}}; or `{"text": …, "buttons": [{"title": …, "id": …}]}`; or None for one that Meta
        has not approved. Adds to those that are known."""
        await self._json("POST", "/simulate/templates", json=dict(known))

    async def settle(self) -> None:
        """Until nothing more is on its way: no callback, no delayed webhook, no file that is downloaded."""
        await self._json("GET", "/simulate/settled", timeout=120.0)

    async def log(self, after: int = 0) -> dict[str, list[dict[str, Any]]]:
        """What happened, each kind oldest first, fetched by pages. Every entry has its number `n`, which grows over all
        kinds and never changes: give the greatest as `after`, and only what is new is told. `at` is the time of day,
        `mono` the machine's monotonic clock in seconds.

        - `said`: a person's message that Twilio has. `seq`, `sid`, `from`, `to`, `body`, `at`, `mono`, `kind`, `media`.
        - `inbound`: a webhook with one, once it is over. `message_sid`, `at` and `mono` of its start, `status`, `ms`,
          `error`. As many as there were copies; none for one that was lost.
        - `outbound`: a message of the mesh that was taken. As `said`, and `answer`: `success`, `hung` or `failed`, that
          is after it was taken.
        - `refused`: one that was not. `to`, `at`, `mono`, `status` (0: it hung), `code`.
        - `callbacks`: a webhook with a state (`event`) of an outbound message; otherwise as `inbound`.
        - `failed`: a message of the mesh that was taken and will not arrive. `sid`, `to`, `code`, `why`, `at`, `mono`.
        - `fetched`: a request for a person's file. `medium_sid`, `message_sid`, `host` (`api`, or `cdn` after the
          redirect), `status`, `credentials` (whether they were sent), `do`, `at`, `mono`.
        - `typing`: `message_sid`, `to`, `at`, `mono`."""
        found: dict[str, list[dict[str, Any]]] = {}
        more = True
        while more:
            page = await self._json("GET", "/simulate/log", params={"after": after})
            after, more = page.pop("last"), page.pop("more")
            for kind, entries in page.items():
                found.setdefault(kind, []).extend(entries)
        return found

    async def _json(self, method: str, path: str, **options: Any) -> Any:
        answer = await self._http.request(method, path, **options)
        if answer.is_error:
            raise ValueError(f"the simulated Twilio refused: {answer.text}")
        return answer.json()


def _received(found: Mapping[str, Any]) -> Received:
    return Received(
        seq=found["seq"],
        sid=found["sid"],
        sender=found["from"],
        recipient=found["to"],
        text=found["body"],
        at=datetime.fromisoformat(found["at"]),
        media=tuple(Shown(**each) for each in found["media"]),
        buttons=tuple((each["title"], each["id"]) for each in found["buttons"]),
    )


def _file(file: File) -> dict[str, str]:
    name, media_type, raw = file
    return {"name": name, "media_type": media_type, "raw": base64.b64encode(raw).decode()}
