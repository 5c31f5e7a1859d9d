"""Reads one file in a process of its own, so that a person's file can harm nothing else.

Run by path, so that it imports nothing of ours. In: the file, and its name as the argument. Out: one JSON object,
`{"media_type", "parts": [[label, text, trouble], …]}` or `{"unreadable": sentence}`.
"""

from __future__ import annotations

import json
import re
import resource
import sys
from pathlib import PurePosixPath
from typing import Any

ADDRESS_SPACE = 2 << 30
CPU_SECONDS = 60
LONGEST_TEXT = 20_000_000
MOST_PAGES = 5_000

READABLE = "Please send it as PDF, Markdown or plain text."
NO_TEXT = "no text could be read (it may be a scan)"

Parts = list[tuple[str, str, str]]

_OFFICE = ((b"word/", "a Word document"), (b"ppt/", "a PowerPoint file"), (b"xl/", "an Excel file"))
_FORMATS = (
    (b"\x89PNG\r\n\x1a\n", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"GIF8", "a GIF picture"),
    (b"II*\x00", "a TIFF picture"),
    (b"MM\x00*", "a TIFF picture"),
    (b"BM", "a BMP picture"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old or password-protected Office file"),
    (b"{\\rtf", "an RTF document"),
    (b"OggS", "a sound recording"),
    (b"ID3", "a sound recording"),
    (b"\x1f\x8b", "a compressed file"),
    (b"7z\xbc\xaf", "a compressed file"),
    (b"Rar!", "a compressed file"),
    (b"\x7fELF", "a program"),
    (b"MZ", "a program"),
)
_WEB_PAGE = re.compile(rb"\s*(?:<!--.*?-->\s*)?<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL)
_CONTROL = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_BY_NAME = {
    ".eml": "an e-mail",
    ".htm": "a web page",
    ".html": "a web page",
}  # text, but not to be read as such


class Unreadable(Exception):
    """Its text is a sentence for the person who sent the file."""


def read(name: str, raw: bytes) -> tuple[str, Parts]:
    """What the bytes are counts, not what the name says."""
    if not raw.strip(b"\x00 \t\r\n\xef\xbb\xbf"):
        raise Unreadable(f"{name} is empty. Please check the file and send it again.")
    suffix = PurePosixPath(name).suffix.lower()
    if b"%PDF-" in raw[:1024]:
        return "application/pdf", _pdf(name, raw)
    if found := _other_format(raw):
        is_it = "is really" if suffix in (".pdf", ".md", ".txt") else "is"
        raise Unreadable(f"{name} {is_it} {found}, which I can't read yet. {READABLE}")
    if suffix == ".pdf":
        raise Unreadable(f"{name} is named like a PDF but isn't one, or it is damaged. Please save it again as PDF.")
    if named := _BY_NAME.get(suffix):
        raise Unreadable(f"{name} is {named}, which I can't read yet. {READABLE}")
    media_type = "text/markdown" if suffix in (".md", ".markdown", ".mdown", ".mkd") else "text/plain"
    return media_type, [("", _text(name, raw), "")]


def _other_format(raw: bytes) -> str:
    if raw.startswith(b"PK\x03\x04"):
        return next((kind for mark, kind in _OFFICE if mark in raw), "a compressed file")
    if raw[4:8] == b"ftyp":
        return "a video or sound recording"
    if raw.startswith(b"RIFF"):
        return "a picture or sound recording"
    if _WEB_PAGE.match(raw[:4096]):
        return "a web page"
    for magic, kind in _FORMATS:
        if raw.startswith(magic) and not (len(magic) == 2 and magic.isalpha() and b"\x00" not in raw[:4096]):
            return kind
    return ""


# ── text ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _text(name: str, raw: bytes) -> str:
    try:
        text = _decoded(raw)
    except UnicodeDecodeError as error:
        raise Unreadable(f"{name} is in an encoding that I don't know. Please save it as UTF-8 text.") from error
    if len(text) > LONGEST_TEXT:
        raise Unreadable(f"{name} is too long ({len(text):,} characters). Please send it in several files.")
    if len(_CONTROL.findall(text[:100_000])) > len(text[:100_000]) // 200:
        raise Unreadable(f"{name} isn't text in a form that I know. {READABLE}")
    return _plain(text)


def _decoded(raw: bytes) -> str:
    """By its byte-order mark, else UTF-16 by its zeros, else UTF-8, else Western European."""
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return raw.decode("utf-16")
    half = len(raw[:1000]) // 2
    for offset, encoding in ((0, "utf-16-be"), (1, "utf-16-le")):
        if raw[offset:1000:2].count(0) > half * 0.6 and raw[1 - offset : 1000 : 2].count(0) < half * 0.1:
            return raw.decode(encoding)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return raw.decode("cp1252")


def _plain(text: str) -> str:
    return _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


# ── PDF ───────────────────────────────────────────────────────────────────────────────────────────────────────────

_SOFT_HYPHEN = re.compile("[\x02\ufffe]\\s*")  # what PDFium makes of a hyphen at the end of a line
_LENGTH = re.compile(rb"/Linearized\b.{0,200}?/L\s+(\d+)", re.DOTALL)


def _pdf(name: str, raw: bytes) -> Parts:
    import pypdfium2 as pdfium  # type: ignore[import-untyped]  # it has no types

    try:
        document = pdfium.PdfDocument(raw)
        pages = len(document)
        if document.get_formtype() != pdfium.raw.FORMTYPE_NONE:
            document.init_forms()
    except pdfium.PdfiumError as error:
        if "password" in str(error).lower():
            raise Unreadable(
                f"{name} is protected by a password. Please send a copy without one (print it to a new PDF)."
            ) from error
        if _cut_off(raw):
            raise Unreadable(f"{name} is cut off: its end is missing. Please send it again.") from error
        raise Unreadable(f"{name} is damaged: it can't be opened as a PDF. Please save it again and resend.") from error
    if _cut_off(raw):
        raise Unreadable(f"{name} is cut off: its end is missing. Please send it again.")
    if pages > MOST_PAGES:
        raise Unreadable(f"{name} has {pages:,} pages; {MOST_PAGES:,} are the most that I can take. Please split it.")
    parts = _pages(name, document, pages)
    if not any(text for _, text, _ in parts):
        which = "its page has" if pages == 1 else f"none of its {pages} pages has"
        no = "no " if pages == 1 else ""
        raise Unreadable(
            f"{name} could not be read: {which} {no}text in it (it may be a scan). "
            "Please send a PDF in which text can be selected, or plain text."
        )
    return parts


def _cut_off(raw: bytes) -> bool:
    if stated := _LENGTH.search(raw[:1024]):
        return int(stated[1]) > len(raw)
    return b"%%EOF" not in raw[-65_536:]


def _pages(name: str, document: Any, pages: int) -> Parts:
    parts: Parts = []
    length = 0
    for number in range(1, pages + 1):
        label = f"page {number}"
        text, trouble = _page(document, number - 1)
        length += len(text)
        if length > LONGEST_TEXT:
            raise Unreadable(f"{name} holds too much text ({LONGEST_TEXT:,} characters by {label}). Please split it.")
        parts.append((label, text, f"{label}: {trouble}" if trouble else ""))
    return parts


def _page(document: Any, index: int) -> tuple[str, str]:
    import pypdfium2 as pdfium

    try:
        page = document[index]
        if document.formenv:  # what was filled in is no text of the page until it is made one
            page.flatten()
            page.close()
            page = document[index]
        textpage = page.get_textpage()
        text = _SOFT_HYPHEN.sub("", textpage.get_text_range())
        textpage.close()
        page.close()
    except pdfium.PdfiumError:
        return "", "it is damaged and could not be read"
    text = _plain(text).strip()
    return text, "" if text else NO_TEXT


# ── the process ───────────────────────────────────────────────────────────────────────────────────────────────────


def _confine() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))


def main(name: str) -> None:
    _confine()
    try:
        media_type, parts = read(name, sys.stdin.buffer.read())
        answer: dict[str, object] = {"media_type": media_type, "parts": parts}
    except Unreadable as error:
        answer = {"unreadable": str(error)}
    sys.stdout.buffer.write(json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace"))


if __name__ == "__main__":
    main(sys.argv[1])
