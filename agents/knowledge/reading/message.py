"""An e-mail, however it was kept: its head, its words, and what is attached, which is read by the same readers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from . import READABLE, Parts, Unreadable, files
from .blocks import Block, guarded, tidy, written
from .seen import Pictures, how
from .web import page_of

DEEPEST = 3
MOST_ATTACHED = 50
SMALLEST_PICTURE = 5_000
"""Bytes: smaller ones in the text of a message are logos and lines."""
MESSAGE = "message"
ENCRYPTED = "it is encrypted"


class Nesting:
    """Of messages within messages, and what may still be read of them all."""

    def __init__(self) -> None:
        self.depth = 0
        self.left = MOST_ATTACHED


@dataclass(frozen=True, slots=True)
class Attached:
    name: str
    raw: bytes
    inline: bool = False
    """Shown in the text."""
    trouble: str = ""
    """Why it can't be read."""
    message: Message | None = None
    """What it is, where that is known already."""


@dataclass
class Message:
    head: list[tuple[str, str]]
    """From, To, Date, Subject."""
    plain: str = ""
    html: bytes = b""
    charset: str = ""
    """Of the web page, where the message states it."""
    attached: list[Attached] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)


def told(name: str, message: Message, nesting: Nesting) -> Parts:
    blocks, trouble = _words(name, message)
    head = Block("\n".join(f"{key}: {said}" for key, said in message.head if said))
    troubles = [*message.troubles, *([trouble] if trouble else [])]
    seen = Pictures()
    pictures = [each for each in message.attached if each.inline]
    unread = found = 0
    for picture in pictures:
        words = _seen(picture, seen, nesting)
        unread += words is None
        found += bool(words)
        blocks += [Block(tidy(words))] if words else []
    if unread:
        what = "a picture" if unread == 1 else f"{unread} pictures"
        troubles.append(f"it holds {what} whose text could not be read")
    if not any(block.filled for block in blocks) and not message.attached and ENCRYPTED in message.troubles:
        raise Unreadable(f"{name} is encrypted. Please send its text as a new message, or as PDF.", "password")
    text = written([head, *blocks])
    parts: Parts = [(MESSAGE, text, f"{MESSAGE}: {'; '.join(troubles)}" if troubles else "", *how(found))]
    nesting.depth += 1
    for each in message.attached:
        if not each.inline:
            parts += _attachment(each, nesting)
    nesting.depth -= 1
    if not any(part[1] for part in parts):
        raise Unreadable(f"{name} could not be read: there is no text in it.", "nothing")
    return parts


def _words(name: str, message: Message) -> tuple[list[Block], str]:
    """The plain form; that of the web where there is none, or where it says much less."""
    plain = [Block(text) for each in message.plain.split("\n\n") if (text := tidy(each))]
    if not message.html:
        return plain, ""
    try:
        page = page_of(name, message.html, message.charset)
    except Unreadable:
        return plain, "" if plain else "its text could not be read"
    length = sum(len(block.text) for block in plain)
    if 4 * length >= sum(len(block.text) + sum(map(len, block.rows)) for block in page.blocks):
        return plain, ""
    return page.blocks, page.doubt


def _seen(picture: Attached, seen: Pictures, nesting: Nesting) -> str | None:
    if len(picture.raw) < SMALLEST_PICTURE:
        return ""
    nesting.left -= 1
    return seen.words(hash(picture.raw), picture.raw) if nesting.left >= 0 else None


def _attachment(attached: Attached, nesting: Nesting) -> Iterator[tuple[str, ...]]:
    about = f"attachment {attached.name}"
    if attached.trouble:
        yield about, "", f"{about}: {attached.trouble}"
    elif nesting.depth > DEEPEST:
        yield about, "", f"{about}: it lies too deep within other messages, so it was not read"
    elif nesting.left <= 0:
        yield about, "", f"{about}: {MOST_ATTACHED} attachments were read before it; please send it by itself"
    elif attached.message:
        nesting.left -= 1
        yield from _labelled(attached.name, told(attached.name, attached.message, nesting), plain=False)
    else:
        yield from _read(attached, nesting)


def _read(attached: Attached, nesting: Nesting) -> Iterator[tuple[str, ...]]:
    nesting.left -= 1
    about = f"attachment {attached.name}"
    try:
        media_type, parts = files.read(attached.name, attached.raw, nesting)
    except Unreadable as error:
        yield about, "", f"attachment {str(error).removesuffix(READABLE).strip()}"
        return
    yield from _labelled(attached.name, parts, plain=media_type not in files.WITH_HEADINGS)


def _labelled(name: str, parts: Parts, *, plain: bool) -> Iterator[tuple[str, ...]]:
    about = f"attachment {name}"
    for label, text, trouble, *how_read in parts:
        if trouble:
            trouble = f"attachment {trouble}" if trouble.startswith(name) else f"{about} › {trouble}"
        yield f"{about} › {label}" if label else about, guarded(text) if plain else text, trouble, *how_read
