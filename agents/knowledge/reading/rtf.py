"""The words of rich text, which Outlook keeps when a message was written as such."""

from __future__ import annotations

import re

from . import plain
from .text import decoded

_DICTIONARY = (
    b"{\\rtf1\\ansi\\mac\\deff0\\deftab720{\\fonttbl;}{\\f0\\fnil \\froman \\fswiss \\fmodern \\fscript "
    b"\\fdecor MS Sans SerifSymbolArialTimes New RomanCourier{\\colortbl\\red0\\green0\\blue0\r\n"
    b"\\par \\pard\\plain\\f0\\fs20\\b\\i\\u\\tab\\tx"
)
_WINDOW = 4096
_LARGEST = 20 << 20
_TOKEN = re.compile(
    rb"\\'([0-9a-f]{2})|\\([a-z]{1,32})(-?\d{1,10})? ?|\\([^a-z])|([{}])|([^\\{}\r\n]+)|[\r\n]|\\", re.IGNORECASE
)
_ASIDE = frozenset(
    b"fonttbl colortbl stylesheet info pict object header footer headerl headerr footerl footerr footnote themedata "
    b"datastore xmlnstbl listtable listoverridetable generator rsidtbl latentstyles fldinst mmathPr".split()
)
_SAID = {
    b"par": "\n", b"line": "\n", b"sect": "\n\n", b"tab": "\t", b"cell": " | ", b"row": "\n", b"emdash": "—",
    b"endash": "–", b"bullet": "•", b"lquote": "‘", b"rquote": "’", b"ldblquote": "“", b"rdblquote": "”",
}  # fmt: skip


def unpacked(raw: bytes) -> bytes:
    """Of what Outlook packs (MS-OXRTFCP). What is cut off is given as far as it goes."""
    size = min(int.from_bytes(raw[4:8], "little"), _LARGEST)
    if raw[8:12] == b"MELA":
        return raw[16 : 16 + size]
    window = bytearray(_DICTIONARY.ljust(_WINDOW, b"\x00"))
    at = len(_DICTIONARY)
    found = bytearray()
    place = 16
    while place < len(raw) and len(found) < size:
        flags = raw[place]
        place += 1
        for bit in range(8):
            if place >= len(raw) or len(found) >= size:
                break
            if not flags >> bit & 1:
                taken = bytearray(raw[place : place + 1])
                place += 1
            else:
                reference = int.from_bytes(raw[place : place + 2], "big")
                place += 2
                offset, length = reference >> 4, (reference & 15) + 2
                if offset == at % _WINDOW or place > len(raw):
                    return bytes(found)
                taken = bytearray()
                for step in range(length):  # it may reach into what it writes
                    byte = window[(offset + step) % _WINDOW]
                    window[(at + step) % _WINDOW] = byte
                    taken.append(byte)
            for byte in taken:
                window[at % _WINDOW] = byte
                at += 1
            found += taken
    return bytes(found)


def text_of(raw: bytes) -> str:
    """Also of a web page that was wrapped in rich text: its tags are left out."""
    found: list[str] = []
    held = bytearray()
    stack: list[tuple[bool, int]] = []
    aside, unicode_skip, skip = False, 1, 0
    page = re.search(rb"\\ansicpg(\d{2,5})", raw[:500])
    charset = f"cp{page[1].decode()}" if page else "cp1252"

    def settle() -> None:
        if held:
            found.append(_letters(bytes(held), charset))
            held.clear()

    for byte, word, number, sign, brace, text in _TOKEN.findall(raw):
        if brace == b"{":
            stack.append((aside, unicode_skip))
        elif brace == b"}":
            aside, unicode_skip = stack.pop() if stack else (False, 1)
        elif sign == b"*" or word in _ASIDE or (word == b"htmlrtf" and number != b"0"):
            aside = True
        elif word == b"htmlrtf":
            aside = False
        elif aside:
            continue
        elif word == b"uc":
            unicode_skip = int(number or 1)
        elif word == b"u" and number:
            settle()
            found.append(chr(int(number) % 65536))
            skip = unicode_skip
        elif word in _SAID:
            settle()
            found.append(_SAID[word])
        elif byte:
            if skip:
                skip -= 1
            else:
                held += bytes([int(byte, 16)])
        elif sign == b"~":
            held += b" "
        elif sign in (b"\\", b"{", b"}"):
            held += sign
        elif text:
            held += text[skip:]
            skip = max(skip - len(text), 0)
    settle()
    said = "".join(found).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return plain(re.sub(r"\n{3,}", "\n\n", said))


def _letters(raw: bytes, charset: str) -> str:
    try:
        return raw.decode(charset)
    except (LookupError, ValueError):
        return decoded("text", raw)[0]
