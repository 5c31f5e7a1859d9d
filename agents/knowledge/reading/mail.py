"""E-mails as they are sent (EML), and web pages that are kept as such (MHTML)."""

from __future__ import annotations

import binascii
import codecs
import email
import re
from collections.abc import Iterable
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message as Mime

from . import Parts, Unreadable, plain
from .message import ENCRYPTED, Attached, Message, Nesting, told
from .text import decoded, unicode_form

SHOWN = ("From", "To", "Cc", "Date", "Subject")
_TRANSPORT = frozenset({"received", "message-id", "mime-version", "return-path", "delivered-to", "x-mailer"})
_PERSONAL = frozenset({"from", "to", "subject", "date"})
_HEADER = re.compile(rb"([!-9;-~]{1,70}):")
_SIGNATURES = ("application/pkcs7-signature", "application/x-pkcs7-signature", "application/pgp-signature")
_LOCKED = ("application/pkcs7-mime", "application/x-pkcs7-mime", "application/pgp-encrypted")
_ASIDE = ("text/css", "text/javascript", "application/javascript", "application/x-javascript", "text/x-amp-html")
_OUTLOOKS_OWN = ("application/ms-tnef", "application/vnd.ms-tnef")
_FLOWS = re.compile(r"(?<! ) \n(?!>)")
_BAD = (LookupError, ValueError, TypeError, AttributeError, HeaderParseError, binascii.Error)
"""What the standard library raises for headers that are malformed."""


def is_mail(start: bytes) -> bool:
    names = _header_names(start)
    if start[:100].lower().startswith((b"content-type: multipart/signed", b"mime-version: 1.0")):
        return "content-type" in names
    return bool(names & _TRANSPORT) and bool(names & _PERSONAL)


def read(name: str, raw: bytes, nesting: Nesting) -> Parts:
    if form := unicode_form(raw):
        raw = raw.decode(form, "replace").encode()
    start = raw[:8192].lstrip(b"\xef\xbb\xbf \t\r\n")
    if not _header_names(start) & (_TRANSPORT | _PERSONAL | {"content-type"}):
        raise Unreadable(f"{name} is named like an e-mail but isn't one, or it is damaged. Please send it again.")
    try:
        mime = email.message_from_bytes(raw.lstrip(b"\xef\xbb\xbf \t\r\n"))
        message = Message([(key, _header(mime, key)) for key in SHOWN])
        _Gathering(name, message).take(mime)
    except RecursionError as error:
        raise Unreadable(
            f"{name} holds parts within parts without end. Please send its text itself.", "limit"
        ) from error
    return told(name, message, nesting)


def _header_names(start: bytes) -> set[str]:
    """Of the lines up to the first that is none."""
    found = set()
    for at, line in enumerate(start.splitlines()):
        if line[:1] in (b" ", b"\t") or (at == 0 and line.startswith(b"From ")):
            continue
        header = _HEADER.match(line)
        if header is None:
            break
        found.add(header[1].decode("ascii", "replace").lower())
    return found


def _header(mime: Mime, name: str) -> str:
    return ", ".join(_said(value) for value in mime.get_all(name, [])[:20])


def _said(value: object) -> str:
    try:
        pieces = decode_header(value)  # type: ignore[arg-type]  # a Header, for one with bytes beyond ASCII
    except _BAD:
        return " ".join(str(value).split())
    said = "".join(piece if isinstance(piece, str) else _decoded(piece, charset or "") for piece, charset in pieces)
    return " ".join(plain(said).split())


def _decoded(piece: bytes, charset: str) -> str:
    try:
        return piece.decode(charset)
    except (LookupError, ValueError):
        try:
            return decoded("header", piece)[0]
        except Unreadable:
            return piece.decode("ascii", "replace")


class _Gathering:
    def __init__(self, name: str, message: Message) -> None:
        self._name = name
        self._message = message

    def take(self, mime: Mime, *, related: bool = False) -> None:
        kind = mime.get_content_type()
        if kind == "multipart/encrypted" or kind in _LOCKED:
            self._message.troubles.append(ENCRYPTED)
        elif kind in _SIGNATURES or kind in _ASIDE:
            return
        elif kind == "message/rfc822" and mime.is_multipart():
            self._message.attached.append(_forwarded(mime.get_payload(0)))  # type: ignore[arg-type]  # a message
        elif kind == "multipart/alternative":
            self._choose([part for part in mime.get_payload() if isinstance(part, Mime)])
        elif kind.startswith("multipart/") and not mime.is_multipart():  # nothing says where its parts begin
            self._words(mime, "text/plain", _content(mime))
        elif mime.is_multipart():
            for part in mime.get_payload():
                if isinstance(part, Mime):
                    self.take(part, related=related or kind == "multipart/related")
        else:
            self._leaf(mime, kind, related)

    def _choose(self, options: Iterable[Mime]) -> None:
        """The same said in several ways; invitations are said in the others already."""
        for option in options:
            if option.get_content_type() != "text/calendar":
                self.take(option, related=True)

    def _leaf(self, mime: Mime, kind: str, related: bool) -> None:
        raw = _content(mime)
        file_name = _file_name(mime)
        disposition = (mime.get_content_disposition() or "").lower()
        if kind.startswith("text/") and not file_name and disposition != "attachment":
            self._words(mime, kind, raw)
        elif kind in _OUTLOOKS_OWN:
            why = "it is packed in Outlook's own way, which I can't read"
            self._message.attached.append(Attached(file_name or "winmail.dat", b"", trouble=why))
        elif raw:
            inline = kind.startswith("image/") and disposition != "attachment" and (related or "Content-ID" in mime)
            name = file_name or _named(kind, len(self._message.attached) + 1)
            self._message.attached.append(Attached(name, raw, inline=inline))

    def _words(self, mime: Mime, kind: str, raw: bytes) -> None:
        charset = _charset(mime)
        if kind == "text/html":
            if self._message.html:  # of a page in frames, or a message in pieces
                self._message.html += b"<hr>" + raw
            else:
                self._message.html, self._message.charset = raw, charset
            return
        if not raw.strip():
            return
        try:
            text, doubt = decoded(self._name, raw, charset)
        except Unreadable:
            self._message.troubles.append("some of its text could not be read")
            return
        text = plain(text)
        if "-----BEGIN PGP MESSAGE-----" in text:
            self._message.troubles.append(ENCRYPTED)
            return
        if (mime.get_param("format") or "") == "flowed":
            text = _FLOWS.sub(" ", text)
        self._message.plain += ("\n\n" if self._message.plain else "") + text
        self._message.troubles += [doubt] if doubt else []


def _content(mime: Mime) -> bytes:
    try:
        content = mime.get_payload(decode=True)
    except _BAD:
        content = None
    if isinstance(content, bytes):
        return content
    return str(mime.get_payload()).encode("utf-8", "replace")


def _charset(mime: Mime) -> str:
    try:
        charset = mime.get_content_charset() or ""
        codecs.lookup(charset)
    except _BAD:
        return ""
    return charset


def _file_name(mime: Mime) -> str:
    try:
        name = mime.get_filename() or ""
    except _BAD:
        return "attachment"
    return _said(name).replace("\\", "/").rpartition("/")[2].strip()[:200]


def _named(kind: str, number: int) -> str:
    return f"{number}.{kind.rpartition('/')[2].removeprefix('x-')}"


def _forwarded(message: Mime) -> Attached:
    subject = _header(message, "Subject")[:80].replace("/", "-").strip(" .") or "message"
    try:
        return Attached(f"{subject}.eml", message.as_bytes())
    except (*_BAD, RecursionError):
        return Attached(f"{subject}.eml", b"", trouble="it is damaged and could not be read")
