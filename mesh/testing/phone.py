"""A person's phone, on the simulated Twilio."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

import httpx


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


@dataclass(frozen=True, slots=True)
class Received:
    """A message of the mesh. `seq` grows: it is what `replies` continues after."""

    seq: int
    sid: str
    sender: str
    recipient: str
    text: str
    at: datetime


class Phone:
    """One for any number of people: `sender` is an identity such as `+15551230001` or `whatsapp:US.13491`."""

    def __init__(self, base_url: str) -> None:
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
    ) -> Posted:
        """Whatever the webhook answers. A given `message_sid` replays; a field of None is left out of the form.

        Twilio has the message from now on. `deliver=False`: its webhook is lost. `copies`: it is posted so often, at
        once; the first one's answer is returned. `delay`: it is posted after so many seconds, for which this does not
        wait, so that what is said later may arrive before it. When nothing was posted (yet), the status is 0, and
        `error` is `not posted` or `posted later`."""
        asked = {
            "from": sender,
            "text": text,
            "to": to,
            "message_sid": message_sid,
            "fields": dict(fields or {}),
            "deliver": deliver,
            "copies": copies,
            "delay": delay,
        }
        return Posted(**await self._json("POST", "/simulate/inbound", json=asked))

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

    async def log(self, after: int = 0) -> dict[str, list[dict[str, Any]]]:
        """What happened, each kind oldest first, fetched by pages. Every entry has its number `n`, which grows over all
        kinds and never changes: give the greatest as `after`, and only what is new is told. `at` is the time of day,
        `mono` the machine's monotonic clock in seconds.

        - `said`: a person's message that Twilio has. `seq`, `sid`, `from`, `to`, `body`, `at`, `mono`.
        - `inbound`: a webhook with one, once it is over. `message_sid`, `at` and `mono` of its start, `status`, `ms`,
          `error`. As many as there were copies; none for one that was lost.
        - `outbound`: a message of the mesh that was taken. As `said`, and `answer`: `success`, `hung` or `failed`, that
          is after it was taken.
        - `refused`: one that was not. `to`, `at`, `mono`, `status` (0: it hung), `code`.
        - `callbacks`: a webhook with a state (`event`) of an outbound message; otherwise as `inbound`.
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
    )
