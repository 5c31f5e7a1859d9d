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
        self._http = httpx.AsyncClient(base_url=base_url, timeout=30.0, trust_env=False, verify=False)

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
    ) -> Posted:
        """Whatever the webhook answers. A given `message_sid` replays; a field of None is left out of the form."""
        asked = {
            "from": sender,
            "text": text,
            "to": to,
            "message_sid": message_sid,
            "fields": dict(fields or {}),
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

    async def log(self) -> dict[str, list[dict[str, Any]]]:
        """`inbound`, `outbound` and `callbacks`, each oldest first."""
        found: dict[str, list[dict[str, Any]]] = await self._json("GET", "/simulate/log")
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
