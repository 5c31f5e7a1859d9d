"""Which files are taken from people, what they are, and what they may be called. Light: the gateway imports it."""

from __future__ import annotations

import hashlib
import unicodedata
from datetime import date
from mimetypes import MimeTypes
from pathlib import PurePosixPath

from mesh.ports.channel import InboundKind

_OFFICE = "application/vnd.openxmlformats-officedocument."
_EXTENSIONS: dict[str, tuple[str, ...]] = {
    "application/pdf": (".pdf",),
    "application/msword": (".doc",),
    f"{_OFFICE}wordprocessingml.document": (".docx",),
    f"{_OFFICE}wordprocessingml.template": (".dotx",),
    "application/vnd.ms-word.document.macroenabled.12": (".docm",),
    "application/vnd.ms-word.template.macroenabled.12": (".dotm",),
    "application/vnd.ms-excel": (".xls", ".csv"),
    f"{_OFFICE}spreadsheetml.sheet": (".xlsx",),
    f"{_OFFICE}spreadsheetml.template": (".xltx",),
    "application/vnd.ms-excel.sheet.macroenabled.12": (".xlsm",),
    "application/vnd.ms-excel.template.macroenabled.12": (".xltm",),
    "application/vnd.ms-powerpoint": (".ppt",),
    f"{_OFFICE}presentationml.presentation": (".pptx",),
    f"{_OFFICE}presentationml.slideshow": (".ppsx",),
    f"{_OFFICE}presentationml.template": (".potx",),
    "application/vnd.ms-powerpoint.presentation.macroenabled.12": (".pptm",),
    "application/vnd.ms-powerpoint.slideshow.macroenabled.12": (".ppsm",),
    "application/vnd.ms-powerpoint.template.macroenabled.12": (".potm",),
    "application/vnd.oasis.opendocument.text": (".odt",),
    "application/vnd.oasis.opendocument.spreadsheet": (".ods",),
    "application/vnd.oasis.opendocument.presentation": (".odp",),
    "application/rtf": (".rtf",),
    "text/rtf": (".rtf",),
    "text/plain": (".txt", ".md", ".markdown", ".mdown", ".mkd", ".csv", ".tsv", ".log"),
    "text/markdown": (".md", ".markdown", ".mdown", ".mkd"),
    "text/csv": (".csv",),
    "text/tab-separated-values": (".tsv", ".tab"),
    "text/html": (".html", ".htm", ".xhtml"),
    "application/xhtml+xml": (".xhtml", ".html", ".htm"),
    "message/rfc822": (".eml", ".mht", ".mhtml"),
    "application/vnd.ms-outlook": (".msg",),
    "application/epub+zip": (".epub",),
    "text/vcard": (".vcf",),
    "text/x-vcard": (".vcf",),
    "text/directory": (".vcf",),
    "image/jpeg": (".jpg", ".jpeg"),
    "image/jpg": (".jpg", ".jpeg"),
    "image/png": (".png",),
    "image/webp": (".webp",),
    "image/gif": (".gif",),
    "image/tiff": (".tiff", ".tif"),
    "image/heic": (".heic",),
    "audio/ogg": (".ogg", ".oga", ".opus"),
    "application/ogg": (".ogg", ".oga", ".opus"),
    "audio/opus": (".opus",),
    "audio/mpeg": (".mp3",),
    "audio/mp3": (".mp3",),
    "audio/mp4": (".m4a", ".mp4"),
    "audio/x-m4a": (".m4a",),
    "audio/aac": (".aac",),
    "audio/amr": (".amr",),
    "audio/3gpp": (".3gp",),
    "audio/wav": (".wav",),
    "audio/x-wav": (".wav",),
    "audio/webm": (".webm",),
    "video/mp4": (".mp4",),
    "video/3gpp": (".3gp",),
    "video/webm": (".webm",),
    "video/quicktime": (".mov",),
    "video/mpeg": (".mpeg", ".mpg"),
}
"""The usual one first. No scripts or archives: nobody asks questions about them."""
_PAGES = ("text/html", "application/xhtml+xml")
_SAYS_NOTHING = ("", "application/octet-stream", "binary/octet-stream")
_CONTACTS = ("text/vcard", "text/x-vcard", "text/directory")
_LONGEST_NAME = 120
_USUAL = MimeTypes().types_map[True].keys() | MimeTypes().types_map[False].keys()
"""Extensions of files that are taken or not, without those of this machine alone: what is refused has a name, too."""
_OVERRIDES = frozenset({"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"})
"""Marks of the direction of writing, which can make `fdp.exe` of a name read as `exe.pdf`."""


def bare(media_type: str) -> str:
    """`Audio/OGG; codecs=opus` as `audio/ogg`; empty for one that says nothing."""
    found = media_type.partition(";")[0].strip().lower()
    return "" if found in _SAYS_NOTHING else found


def taken(media_type: str) -> bool:
    return bare(media_type) in _EXTENSIONS


def is_page(media_type: str) -> bool:
    """What a server also answers with when it has no file to give."""
    return bare(media_type) in _PAGES


def type_by_name(name: str) -> str:
    """Empty when the extension is not one of those that are taken."""
    suffix = PurePosixPath(name.strip()).suffix.lower()
    fits = [media_type for media_type, known in _EXTENSIONS.items() if suffix in known]
    return min(fits, key=lambda media_type: _EXTENSIONS[media_type].index(suffix), default="")


def is_name_of(text: str, media_type: str) -> bool:
    """Whether a message's words are no more than the name of its file."""
    suffix = PurePosixPath(text).suffix.lower()
    if not suffix or len(text) > 255 or "\n" in text or text != text.strip():
        return False
    known = bare(media_type)
    if known in _EXTENSIONS:
        return suffix in _EXTENSIONS[known]
    return bool(type_by_name(text)) or suffix in _USUAL


def kind_of(media_type: str) -> InboundKind:
    """What a message with such a file is, when nothing else tells."""
    found = bare(media_type)
    if found in _CONTACTS:
        return "contacts"
    if found == "image/webp":
        return "sticker"  # WhatsApp makes JPEG of pictures
    if found == "application/ogg":
        return "audio"
    match found.partition("/")[0]:
        case "image":
            return "image"
        case "audio":
            return "audio"
        case "video":
            return "video"
    return "document"


def file_name(claimed: str, media_type: str, raw: bytes, today: date) -> str:
    """A bare name with an extension that fits. A file that has no name gets one by its day and its content: a second
    one of that day is another document, and the same one, fetched again, is not."""
    extensions = _EXTENSIONS[media_type]
    name = _clean(claimed)
    if not name:
        stem = {"contacts": "contact", "sticker": "image"}.get(kind := kind_of(media_type), kind)
        return f"{stem}-{today.isoformat()}-{hashlib.sha256(raw).hexdigest()[:4]}{extensions[0]}"
    if PurePosixPath(name).suffix.lower() in extensions:
        stem, _, extension = name.rpartition(".")
        return f"{_short(stem)}.{extension}"
    return _short(name) + extensions[0]


def _short(stem: str) -> str:
    """Two names that differ at their ends alone stay two: one of them must not take the other's place."""
    if len(stem) <= _LONGEST_NAME:
        return stem
    return f"{stem[: _LONGEST_NAME - 5]}-{hashlib.sha256(stem.encode()).hexdigest()[:4]}"


def _clean(name: str) -> str:
    last = unicodedata.normalize("NFC", name).replace("\\", "/").rstrip("/").rpartition("/")[2]
    return " ".join("".join(c for c in last if not _hides(c)).split()).strip(". ")


def _hides(character: str) -> bool:
    kind = unicodedata.category(character)
    return kind in ("Cc", "Cs", "Zl", "Zp") or unicodedata.bidirectional(character) in _OVERRIDES
