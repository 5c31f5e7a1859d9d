"""One error tree. The text of an error *is* what a person reads.

MeshError
├── Denied          the grant does not cover it
├── Malformed       the payload does not fit the skill
├── NotFound        absent, or not visible to the asker: the two look the same
├── Unreadable      a document, or a part of one, could not be read
├── Unavailable     a store, a model or an agent cannot be reached now
├── TimedOut        the deadline passed
├── Unfit           a model's answer was not of the shape that it was asked for
├── TooLong         a prompt leaves no room in the model's window
├── Crashed         a defect of ours; the trace is in the log
├── Misconfigured   a setting is wrong: start-up stops
└── ChannelError    the provider did not take a message
    ├── Throttled   not processed: send again after `retry_after` seconds
    ├── Ambiguous   it may have been taken: look before sending again
    └── Refused     final: `provider_code` says why
"""

from __future__ import annotations

from typing import ClassVar


class MeshError(Exception):
    """`user_text` is for the person in the chat, `detail` for the operator's log (no message text in it)."""

    code: ClassVar[str] = "error"
    default: ClassVar[str] = "Something went wrong. Please try again in a minute."

    def __init__(self, user_text: str = "", *, detail: str = "") -> None:
        self.user_text = user_text or self.default
        self.detail = detail
        super().__init__(self.user_text)


class Denied(MeshError):
    code = "denied"
    default = "That isn't part of your plan yet. Reply HELP to see what I can do for you."


class Malformed(MeshError):
    code = "malformed"
    default = "I couldn't make sense of that request. Please put it another way."


class NotFound(MeshError):
    code = "not_found"
    default = "I couldn't find that among the documents you can see."


class Unreadable(MeshError):
    code = "unreadable"
    default = "I couldn't read that file. Please send it as PDF, Word (.docx), Markdown or plain text."

    def __init__(self, user_text: str = "", *, detail: str = "", kind: str = "") -> None:
        """`kind` is the reader's: corrupt, empty, limit, nothing, password or unsupported. It never crosses the bus."""
        super().__init__(user_text, detail=detail)
        self.kind = kind


class Unavailable(MeshError):
    code = "unavailable"
    default = "I can't look that up right now. Please try again in a minute."


class TimedOut(MeshError):
    code = "timed_out"
    default = "That took longer than it should. Please ask me again."


class Unfit(MeshError):
    code = "unfit"
    default = "I couldn't put an answer together. Please ask it another way."


class TooLong(MeshError):
    code = "too_long"
    default = "That is more text than I can work through at once. Please ask about a part of it."


class Crashed(MeshError):
    code = "crashed"
    default = "Something broke on my side and I've noted it. Please try again, or put it another way."


class Misconfigured(MeshError):
    code = "misconfigured"


class ChannelError(MeshError):
    code = "channel"


class Throttled(ChannelError):
    code = "throttled"

    def __init__(self, user_text: str = "", *, retry_after: float, detail: str = "") -> None:
        super().__init__(user_text, detail=detail)
        self.retry_after = retry_after


class Ambiguous(ChannelError):
    code = "ambiguous"


class Refused(ChannelError):
    code = "refused"

    def __init__(self, user_text: str = "", *, provider_code: str, detail: str = "") -> None:
        super().__init__(user_text, detail=detail)
        self.provider_code = provider_code


_BY_CODE: dict[str, type[MeshError]] = {
    kind.code: kind
    for kind in (Denied, Malformed, NotFound, Unreadable, Unavailable, TimedOut, Unfit, TooLong, Crashed)
}


def rebuild(code: str, user_text: str, detail: str = "") -> MeshError:
    """The error that crossed the bus as a code and a text."""
    return _BY_CODE.get(code, Crashed)(user_text, detail=detail)
