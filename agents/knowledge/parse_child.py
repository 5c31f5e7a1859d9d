"""Reads one file in a process of its own, so that a person's file can harm nothing else.

Run by path, so that it imports nothing of the mesh. In: the file, and its name as the argument. Out: one JSON object,
`{"media_type", "parts": [[label, text, trouble], …]}` or `{"unreadable": sentence}`.
"""

from __future__ import annotations

import json
import re
import resource
import sys
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agents.knowledge.reading import LONGEST_TEXT, READABLE, Parts, Unreadable, controls, plain
else:
    sys.path.append(str(Path(__file__).parent))
    from reading import LONGEST_TEXT, READABLE, Parts, Unreadable, controls, plain

ADDRESS_SPACE = 2 << 30
CPU_SECONDS = 60
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"

_ARCHIVE = b"PK\x03\x04"
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_OLD_OFFICE = (("WordDocument", "Word", ".docx"), ("PowerPoint Document", "PowerPoint", ""), ("Workbook", "Excel", ""))
_FORMATS = (
    (b"\x89PNG\r\n\x1a\n", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"GIF8", "a GIF picture"),
    (b"II*\x00", "a TIFF picture"),
    (b"MM\x00*", "a TIFF picture"),
    (b"BM", "a BMP picture"),
    (_OLE, "an old Office file"),
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
_BY_NAME = {
    ".eml": "an e-mail",
    ".htm": "a web page",
    ".html": "a web page",
}  # text, but not to be read as such
_WORD = frozenset({".docx", ".docm", ".dotx", ".dotm"})
_NAMED_OTHERWISE = frozenset({".pdf", ".md", ".txt", ".doc", *_WORD})


def read(name: str, raw: bytes) -> tuple[str, Parts]:
    """What the bytes are counts, not what the name says."""
    if not raw.strip(b"\x00 \t\r\n\xef\xbb\xbf"):
        raise Unreadable(f"{name} is empty. Please check the file and send it again.")
    suffix = PurePosixPath(name).suffix.lower()
    if b"%PDF-" in raw[:1024]:
        return "application/pdf", import_module("reading.pdf").read(name, raw)
    if raw.startswith(_ARCHIVE):
        return DOCX, _word(name, raw, suffix)
    if raw.startswith(_OLE):
        raise Unreadable(_about_old_office(name, raw))
    if found := _other_format(raw):
        raise _not_yet(name, found, suffix)
    if suffix == ".pdf":
        raise Unreadable(f"{name} is named like a PDF but isn't one, or it is damaged. Please save it again as PDF.")
    if suffix in _WORD:
        raise Unreadable(
            f"{name} is named like a Word document but isn't one, or it is damaged. Please save it again as .docx."
        )
    if named := _BY_NAME.get(suffix):
        raise Unreadable(f"{name} is {named}, which I can't read yet. {READABLE}")
    media_type = "text/markdown" if suffix in (".md", ".markdown", ".mdown", ".mkd") else "text/plain"
    return media_type, [("", _text(name, raw), "")]


def _not_yet(name: str, found: str, suffix: str) -> Unreadable:
    is_it = "is really" if suffix in _NAMED_OTHERWISE else "is"
    return Unreadable(f"{name} {is_it} {found}, which I can't read yet. {READABLE}")


def _other_format(raw: bytes) -> str:
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


# ── documents ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _word(name: str, raw: bytes, suffix: str) -> Parts:
    word = import_module("reading.word")
    package = word.Package(name, raw)
    other = word.other_kind(package)
    if other and not (other == "a compressed file" and suffix in _WORD):
        raise _not_yet(name, other, suffix)
    return word.read(name, package)  # type: ignore[no-any-return]  # by path, mypy does not see it


def _about_old_office(name: str, raw: bytes) -> str:
    """Names in such a file are in UTF-16. A file with a password is kept in one, whatever it is."""
    if "EncryptedPackage".encode("utf-16-le") in raw:
        return f"{name} is protected by a password. Please send a copy without one."
    for mark, program, newer in _OLD_OFFICE:
        if mark.encode("utf-16-le") in raw:
            save = f"save it as {newer} or PDF" if newer else "save it as PDF"
            return f"{name} is an old {program} file, which I can't read. Please {save} and send that."
    return f"{name} is an old Office file, which I can't read. {READABLE}"


# ── text ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _text(name: str, raw: bytes) -> str:
    try:
        text = _decoded(raw)
    except UnicodeDecodeError as error:
        raise Unreadable(f"{name} is in an encoding that I don't know. Please save it as UTF-8 text.") from error
    if len(text) > LONGEST_TEXT:
        raise Unreadable(f"{name} is too long ({len(text):,} characters). Please send it in several files.")
    if controls(text[:100_000]) > len(text[:100_000]) // 200:
        raise Unreadable(f"{name} isn't text in a form that I know. {READABLE}")
    return plain(text)


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
