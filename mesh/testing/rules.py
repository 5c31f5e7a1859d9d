"""What Twilio and Meta hold a sender to, each off until it is asked for; and templates."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

LONGEST_TEMPLATE = 1_024
_PLACE = re.compile(r"{{\s*(\w+)\s*}}")
_UNFIT = re.compile(r"[\n\t]| {5}")

FROM_META = frozenset({63013, 63016, 63024, 63049})
"""What Meta sends back is `undelivered`, after it was sent; what Twilio can't send is `failed`."""


@dataclass(frozen=True, slots=True)
class Rules:
    """People are given by their identities. *Later* means: taken with 201, and the code comes in a callback."""

    window_s: float | None = None
    """A text or file is only sent so long after the person's last message. 24 hours at Meta. Later: 63016."""
    window_refuses: bool = False
    """63016 at once instead, with 400."""
    every_s: float | None = None
    """The sandbox's rate: one message in so many seconds, to whomever. 3 at Twilio. Later: 63018."""
    rate_refuses: bool = False
    """20429 at once instead, with 429: the message was not taken."""
    unjoined: tuple[str, ...] = ()
    """Not in the sandbox. Later: 63015."""
    opted_out: tuple[str, ...] = ()
    """At once, with 400: 21610."""
    withheld: tuple[str, ...] = ()
    """By Meta. Later: 63049."""
    invalid: tuple[str, ...] = ()
    """Nobody on WhatsApp. Later: 63024."""
    callbacks: Literal["in order", "reversed", "never"] = "in order"
    callback_copies: int = 1
    read: bool = False
    """Whether what was delivered is read, too."""
    retries: int = 0
    """How often the webhook of a person's message is posted again, with the same token, after no answer of 2xx."""
    captions: bool = True
    """False: as on WhatsApp, a text beside a file that is no image or video is lost."""

    def __post_init__(self) -> None:
        if self.callbacks not in ("in order", "reversed", "never"):
            raise ValueError(f"I can't do {self.callbacks!r}; I know in order, reversed, never.")

    def refusal(self, who: str, *, template: bool, since_heard: float, since_sent: float) -> tuple[int, int]:
        """Status and code of what is not taken; zeros when it is. Times in seconds."""
        if who in self.opted_out:
            return 400, 21610
        if self.rate_refuses and self._too_fast(since_sent):
            return 429, 20429
        if self.window_refuses and not template and self._too_late(since_heard):
            return 400, 63016
        return 0, 0

    def failure(self, who: str, *, template: bool, since_heard: float, since_sent: float) -> int:
        """The code of what is taken and does not arrive, or 0."""
        for people, code in ((self.unjoined, 63015), (self.invalid, 63024), (self.withheld, 63049)):
            if who in people:
                return code
        if self._too_fast(since_sent):
            return 63018
        return 63016 if not template and self._too_late(since_heard) else 0

    def _too_fast(self, since_sent: float) -> bool:
        return self.every_s is not None and since_sent < self.every_s

    def _too_late(self, since_heard: float) -> bool:
        return self.window_s is not None and since_heard > self.window_s


@dataclass(frozen=True, slots=True)
class Template:
    """`text` holds places such as {{1}}; None: Twilio has it, and Meta has not approved it. A button is a `title` and
    an `id`, which is what its payload will be."""

    text: str | None
    buttons: tuple[dict[str, str], ...] = ()

    def filled(self, variables: Mapping[str, str]) -> tuple[str, int]:
        """The text, and the code of what is wrong with it, or 0."""
        if self.text is None:
            return "", 63027
        text = _PLACE.sub(lambda found: variables.get(found[1], found[0]), self.text)
        if set(_PLACE.findall(self.text)) != set(variables):
            return text, 63028
        if any(_UNFIT.search(value) for value in variables.values()):
            return text, 63013
        return text, 63021 if len(text) > LONGEST_TEMPLATE else 0


def templates(given: Mapping[str, Any]) -> dict[str, Template]:
    """By sid: a text, null, or an object with `text` and `buttons`."""
    found: dict[str, Template] = {}
    for sid, each in given.items():
        whole = each if isinstance(each, dict) else {"text": each}
        buttons = ({"title": str(one["title"]), "id": str(one["id"])} for one in whole.get("buttons", ()))
        found[sid] = Template(whole["text"], tuple(buttons))
    return found


def variables(given: str) -> dict[str, str] | None:
    """None for what Twilio refuses: no JSON object, or an empty value."""
    try:
        found = json.loads(given or "{}")
    except ValueError:
        return None
    if not isinstance(found, dict) or not all(isinstance(value, str) and value for value in found.values()):
        return None
    return found
