"""Which reader a file is for: what its bytes are counts, not what its name says."""

from __future__ import annotations

import re
from importlib import import_module, util
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from . import READABLE, Parts, Unreadable

if TYPE_CHECKING:
    from .message import Nesting
    from .package import Package

_OFFICE = "application/vnd.openxmlformats-officedocument."
DOCX = f"{_OFFICE}wordprocessingml.document"
PPTX = f"{_OFFICE}presentationml.presentation"
XLSX = f"{_OFFICE}spreadsheetml.sheet"
EPUB = "application/epub+zip"
MSG = "application/vnd.ms-outlook"
OPEN_DOCUMENT = "application/vnd.oasis.opendocument."

_ARCHIVES = (b"PK\x03\x04", b"PK\x05\x06")
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_OLD_OFFICE = (
    ("WordDocument", "Word", ".docx"),
    ("PowerPoint Document", "PowerPoint", ".pptx"),
    ("Workbook", "Excel", ".xlsx"),
    ("Book", "Excel", ".xlsx"),
)
_PICTURES = (
    (b"\x89PNG\r\n\x1a\n", "PNG"),
    (b"\xff\xd8\xff", "JPEG"),
    (b"GIF8", "GIF"),
    (b"II*\x00", "TIFF"),
    (b"MM\x00*", "TIFF"),
    (b"BM", "BMP"),
)
_FORMATS = (
    (b"{\\rtf", "an RTF document"),
    (b"OggS", "a sound recording"),
    (b"ID3", "a sound recording"),
    (b"\x1f\x8b", "a compressed file"),
    (b"7z\xbc\xaf", "a compressed file"),
    (b"Rar!", "a compressed file"),
    (b"BZh", "a compressed file"),
    (b"\xfd7zXZ\x00", "a compressed file"),
    (b"\x28\xb5\x2f\xfd", "a compressed file"),
    (b"\x7fELF", "a program"),
    (b"MZ", "a program"),
    (b"SQLite format 3\x00", "a database"),
)
_PROLOGUE = rb"\s*(?:<\?xml[^>]*>\s*)?(?:<!--(?:(?!-->).){0,2000}-->\s*){0,5}"
_WEB_PAGE = re.compile(_PROLOGUE + rb"<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL)
_OLD_SPREADSHEET = re.compile(
    rb"<\?mso-application\s+progid=.Excel\.Sheet|urn:schemas-microsoft-com:office:spreadsheet"
)
_TAG = re.compile(r"<(?:p|div|table|h[1-6]|ul|ol|br|span|a|title|meta)\b[^>]*>", re.IGNORECASE)

MARKDOWN = frozenset({".md", ".markdown", ".mdown", ".mkd"})
_WORD = frozenset({".docx", ".docm", ".dotx", ".dotm"})
_SLIDES = frozenset({".pptx", ".pptm", ".ppsx", ".ppsm", ".potx", ".potm"})
_SHEETS = frozenset({".xlsx", ".xlsm", ".xltx", ".xltm"})
_PAGES = frozenset({".html", ".htm", ".xhtml", ".xht"})
_MAILS = frozenset({".eml", ".mht", ".mhtml"})
_TABLES = frozenset({".csv", ".tsv", ".tab"})
_NAMED = {
    **dict.fromkeys(_WORD, "a Word document"),
    **dict.fromkeys(_SLIDES, "a PowerPoint file"),
    **dict.fromkeys(_SHEETS, "an Excel file"),
    ".epub": "an e-book",
    ".msg": "an e-mail of Outlook's",
}
_NAMED_OTHERWISE = frozenset({".pdf", ".txt", ".doc", ".xls", ".ppt", *_PAGES, *_MAILS, *_TABLES, *MARKDOWN, *_NAMED})

_OPEN_DOCUMENTS = tuple(OPEN_DOCUMENT + kind for kind in ("text", "presentation", "spreadsheet", "drawing"))
WITH_HEADINGS = frozenset(
    (DOCX, PPTX, XLSX, EPUB, "text/html", "text/markdown", "message/rfc822", MSG, *_OPEN_DOCUMENTS)
)
"""What is written down as Markdown: the headings in it are the author's own. A file of values has none."""

_KINDS = (
    ("word/", DOCX, "word", _WORD),
    ("ppt/", PPTX, "slides", _SLIDES),
    ("xl/", XLSX, "sheets", _SHEETS),
    ("meta-inf/container.xml", EPUB, "book", frozenset({".epub"})),
)
"""Of archives: what is inside, or how they are named."""

Told = tuple[str, Parts]
"""The media type, and what was read."""


def read(name: str, raw: bytes, nesting: Nesting | None = None) -> Told:
    """`nesting`: the messages that it is attached within."""
    if not raw.strip(b"\x00 \t\r\n\xef\xbb\xbf"):
        raise Unreadable(f"{name} is empty. Please check the file and send it again.", "empty")
    suffix = PurePosixPath(name).suffix.lower()
    if b"%PDF-" in raw[:1024]:
        return "application/pdf", reader("pdf").read(name, raw)
    if raw.startswith(_ARCHIVES):
        return _archive(name, raw, suffix)
    if raw.startswith(_OLE):
        return _old(name, raw, nesting)
    if kind := picture_kind(raw):
        return _picture(name, raw, kind, suffix)
    if found := _other_format(raw):
        raise _not_yet(name, found, suffix)
    return _text(name, raw, suffix, nesting)


def reader(name: str) -> Any:
    """Loaded when it is needed: each costs memory and time."""
    return import_module(f".{name}", __package__)


def has_reader(name: str) -> bool:
    return util.find_spec(f"{__package__}.{name}") is not None


def picture_kind(raw: bytes) -> str:
    """PNG, JPEG …; empty for what is no picture."""
    if raw[4:8] == b"ftyp" and raw[8:12] in (b"heic", b"heix", b"mif1", b"avif"):
        return "HEIC"
    if raw.startswith(b"RIFF") and raw[8:12] == b"WEBP":
        return "WebP"
    for magic, kind in _PICTURES:
        if raw.startswith(magic) and not _is_text_after_all(magic, raw):
            return kind
    return ""


def _other_format(raw: bytes) -> str:
    if raw[4:8] == b"ftyp":
        return "a video or sound recording"
    if raw.startswith(b"RIFF") and b"\x00" in raw[:12]:
        return "a video or sound recording"
    for magic, kind in _FORMATS:
        if raw.startswith(magic) and not _is_text_after_all(magic, raw):
            return kind
    return "an old Excel file (XML)" if _OLD_SPREADSHEET.search(raw[:2000]) else ""


def _is_text_after_all(magic: bytes, raw: bytes) -> bool:
    """“BM” and “BZh” also begin words."""
    return len(magic) <= 3 and magic.isalnum() and b"\x00" not in raw[:4096]


def _not_yet(name: str, found: str, suffix: str) -> Unreadable:
    is_it = "is really" if suffix in _NAMED_OTHERWISE else "is"
    return Unreadable(f"{name} {is_it} {found}, which I can't read yet. {READABLE}", "unsupported")


# ── documents ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _archive(name: str, raw: bytes, suffix: str) -> Told:
    package: Package = reader("package").Package(name, raw)
    if package.holds("xl/workbook.bin"):
        raise _not_yet(name, "a binary Excel file (.xlsb)", suffix)
    inside = next((kind for kind in _KINDS if package.holds(kind[0])), None)
    if inside is None and not package.holds("content.xml"):
        inside = next((kind for kind in _KINDS if suffix in kind[3]), None)
    if inside:
        return inside[1], reader(inside[2]).read(name, package)
    if package.holds("content.xml"):
        kind, parts = reader("opendocument").read(name, package)
        return OPEN_DOCUMENT + kind, parts
    raise _not_yet(name, "a compressed file", suffix)


def _old(name: str, raw: bytes, nesting: Nesting | None) -> Told:
    """Names in such a file are in UTF-16. A file with a password is kept in one, whatever it is."""
    if "EncryptedPackage".encode("utf-16-le") in raw:
        raise Unreadable(f"{name} is protected by a password. Please send a copy without one.", "password")
    if "__properties_version1.0".encode("utf-16-le") in raw:
        return MSG, reader("outlook").read(name, raw, nesting or reader("message").Nesting())
    for mark, program, newer in _OLD_OFFICE:
        if mark.encode("utf-16-le") in raw:
            raise Unreadable(
                f"{name} is an old {program} file, which I can't read. Please save it as {newer} or PDF and send that.",
                "unsupported",
            )
    if name.lower().endswith(".msg"):
        raise Unreadable(f"{name} is damaged: it can't be opened as an e-mail. Please send it again.")
    raise Unreadable(f"{name} is an old Office file, which I can't read. {READABLE}", "unsupported")


def _picture(name: str, raw: bytes, kind: str, suffix: str) -> Told:
    if has_reader("pictures"):
        return f"image/{kind.lower()}", reader("pictures").read(name, raw)
    raise _not_yet(name, f"a {kind} picture", suffix)


def _text(name: str, raw: bytes, suffix: str, nesting: Nesting | None) -> Told:
    start = raw[:8192].replace(b"\x00", b"").lstrip(b"\xef\xbb\xbf\xff\xfe")  # of UTF-16, what is ASCII
    if _WEB_PAGE.match(start):
        return "text/html", reader("web").read(name, raw)
    if suffix in _MAILS or reader("mail").is_mail(start):
        return "message/rfc822", reader("mail").read(name, raw, nesting or reader("message").Nesting())
    if suffix == ".pdf":
        raise Unreadable(f"{name} is named like a PDF but isn't one, or it is damaged. Please save it again as PDF.")
    text, doubt = reader("text").decoded(name, raw)
    if suffix in _PAGES and _TAG.search(text):
        return "text/html", reader("web").read(name, raw)
    if suffix in _TABLES or (suffix in (".xls", *_SHEETS) and reader("separated").separator(text)):
        return "text/csv", reader("separated").read(name, text, doubt)
    if named := _NAMED.get(suffix):
        again = (
            f" Please save it again as {suffix}." if suffix in _WORD | _SLIDES | _SHEETS else " Please send it again."
        )
        raise Unreadable(f"{name} is named like {named} but isn't one, or it is damaged.{again}")
    return "text/markdown" if suffix in MARKDOWN else "text/plain", reader("text").read(name, raw)
