"""Text in any encoding: by its mark, else UTF-32 and UTF-16 by their zeros, else UTF-8, else by its letters."""

from __future__ import annotations

import codecs

from . import LONGEST_TEXT, READABLE, Parts, Unreadable, controls, plain
from .encodings import guess

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_ZEROS = 2_000
"""Bytes in which zeros are looked for."""
_ESCAPED = (b"\x1b$B", b"\x1b$@", b"\x1b(J")


def read(name: str, raw: bytes) -> Parts:
    text, doubt = decoded(name, raw)
    return [("", plain(text), f"{name}: {doubt}" if doubt else "")]


def decoded(name: str, raw: bytes, told: str = "") -> tuple[str, str]:
    """The text, and what is doubtful about it. `told`: the encoding that the file itself states."""
    text, doubt = _decoded(name, raw, told)
    if len(text) > LONGEST_TEXT:
        raise Unreadable(f"{name} is too long ({len(text):,} characters). Please send it in several files.", "limit")
    start = text[:100_000]
    if controls(start) > len(start) // 200:
        raise Unreadable(f"{name} isn't text in a form that I know. {READABLE}", "unsupported")
    return text, doubt


def _decoded(name: str, raw: bytes, told: str) -> tuple[str, str]:
    for mark, encoding in _MARKS:
        if raw.startswith(mark):
            return _mended(raw, encoding)
    if encoding := _by_zeros(raw):
        return _mended(raw, encoding)
    if _is_ebcdic(raw[:_ZEROS]):
        return _mended(raw, "cp500")
    if any(each in raw for each in _ESCAPED) and raw.isascii():
        return _mended(raw, "iso2022_jp")
    try:
        return raw.decode("utf-8"), ""
    except UnicodeDecodeError as error:
        wrong = error
    if told and (text := _as_told(raw, told)) is not None:
        return text, ""
    if _nearly_utf8(raw, wrong.start):
        return _mended(raw, "utf-8")
    found = guess(raw)
    if found is None:
        raise Unreadable(
            f"{name} is in an encoding that I don't know. Please save it as UTF-8 text.", "unsupported"
        ) from wrong
    text, doubt = _mended(raw, found.encoding)
    if found.doubtful and not doubt:
        doubt = f"some of its letters may be wrong: it does not say its encoding ({found.encoding} was taken)"
    return text, doubt


def _mended(raw: bytes, encoding: str) -> tuple[str, str]:
    try:
        return raw.decode(encoding), ""
    except UnicodeDecodeError:
        text = raw.decode(encoding, "replace")
        count = text.count("\ufffd")
        return text, f"{count} of its letters could not be read" if count > 1 else ""


def _as_told(raw: bytes, told: str) -> str | None:
    """Pages that say Latin-1 mean Windows' superset of it, and those that say GB2312 or Shift-JIS the larger ones."""
    try:
        name = codecs.lookup(told.strip()).name
    except (LookupError, ValueError):
        return None
    larger = {"iso8859-1": "cp1252", "gb2312": "gb18030", "gbk": "gb18030", "shift_jis": "cp932", "euc_kr": "cp949"}
    try:
        return raw.decode(larger.get(name, name), "replace")
    except (LookupError, ValueError):  # a codec that is none of text, such as base64
        return None


def _by_zeros(raw: bytes) -> str:
    """Latin text has a zero in every second byte of UTF-16; every text has some there, for its spaces and line ends."""
    start = raw[: _ZEROS - _ZEROS % 4]
    if b"\x00" not in start:
        return ""
    count = [start[at::4].count(0) for at in range(4)]
    quarter = max(len(start) // 4, 1)
    if len(raw) % 4 == 0 and count[0] > 0.9 * quarter and count[1] > 0.9 * quarter and count[3] < 0.1 * quarter:
        return "utf-32-be"
    if len(raw) % 4 == 0 and count[3] > 0.9 * quarter and count[2] > 0.9 * quarter and count[0] < 0.1 * quarter:
        return "utf-32-le"
    first, second = count[0] + count[2], count[1] + count[3]
    likely = ("utf-16-be", "utf-16-le") if first > second else ("utf-16-le", "utf-16-be")
    return next((encoding for encoding in likely if _is_text(start, encoding)), "")


def _is_text(start: bytes, encoding: str) -> bool:
    """No binary file has so few different high bytes, and white space among what they make."""
    text = start[: len(start) // 2 * 2].decode(encoding, "ignore")
    letters = sum(character.isprintable() or character.isspace() for character in text)
    return letters > 0.95 * len(start) / 2 and (len(start) < 40 or any(character in " \n\u3000" for character in text))


def _is_ebcdic(start: bytes) -> bool:
    """Of a mainframe: spaces are @, and every letter lies beyond ASCII."""
    if 20 * start.count(b"@") < len(start) or 5 * sum(byte > 0x7F for byte in start) < 3 * len(start):
        return False
    text = start.decode("cp500")
    return sum(each.isascii() and (each.isalnum() or each in " .,;:'-()\n") for each in text) > 0.9 * len(text)


def unicode_form(raw: bytes) -> str:
    """UTF-16 or UTF-32, where it is in one of them."""
    marked = next((encoding for mark, encoding in _MARKS[1:] if raw.startswith(mark)), "")
    return marked or _by_zeros(raw)


def _nearly_utf8(raw: bytes, start: int) -> bool:
    """A few bytes that are none, among many that are; or cut off within the last letter."""
    if start > len(raw) - 4 and not raw[:start].isascii():
        return True
    text = raw[:1_000_000].decode("utf-8", "replace")
    wrong = text.count("\ufffd")
    return wrong * 10 < sum(character > "\x7f" for character in text) - wrong
