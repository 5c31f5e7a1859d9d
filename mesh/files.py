"""Files as they come in and are handed out: how large one may be, how its name reads, and what a link to one says."""

from __future__ import annotations

import math
import unicodedata
from dataclasses import dataclass
from io import BytesIO
from xml.sax.saxutils import escape
from zipfile import ZIP_DEFLATED, ZipFile

LARGEST = 20 << 20
"""Bytes of a document."""
PATH = "/files"
GONE = "This link is not valid, or not any more. Please ask for the file again in the chat."

WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
_FORMATS = "http://schemas.openxmlformats.org"
_TYPES = (
    f'{_HEAD}<Types xmlns="{_FORMATS}/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Default Extension="xml" ContentType="application/xml"/>'
    f'<Override PartName="/word/document.xml" ContentType="{WORD}.main+xml"/></Types>'
)
_RELATIONS = (
    f'{_HEAD}<Relationships xmlns="{_FORMATS}/package/2006/relationships"><Relationship Id="rId1" '
    f'Type="{_FORMATS}/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/></Relationships>'
)
_DOCUMENT = f'{_HEAD}<w:document xmlns:w="{_FORMATS}/wordprocessingml/2006/main"><w:body>{{}}</w:body></w:document>'

_OVERRIDES = frozenset({"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"})


@dataclass(frozen=True, slots=True)
class Link:
    """Which document, and on whose behalf it is asked for."""

    document_id: str
    client: str
    expires: int
    """In seconds since the epoch, by the mesh's clock."""


def too_large(name: str, size: int) -> str:
    return (
        f"{name} is too large ({math.ceil(size / (1 << 20))} MB); I can take up to {LARGEST >> 20} MB. "
        "Please split it, or send the pages that matter."
    )


def word_file(text: str) -> bytes:
    """A Word file of these lines: WhatsApp carries it, and no plain text."""
    lines = text.encode("utf-8", "replace").decode().splitlines()
    paragraphs = "".join(
        f'<w:p><w:r><w:t xml:space="preserve">{escape(_plain(each))}</w:t></w:r></w:p>' for each in lines
    )
    made = BytesIO()
    with ZipFile(made, "w", ZIP_DEFLATED) as package:
        package.writestr("[Content_Types].xml", _TYPES)
        package.writestr("_rels/.rels", _RELATIONS)
        package.writestr("word/document.xml", _DOCUMENT.format(paragraphs))
    return made.getvalue()


def _plain(line: str) -> str:
    """Without what XML can't hold."""
    return "".join(each for each in line if each == "\t" or (not _hides(each) and each not in "\ufffe\uffff"))


def readable(name: str) -> str:
    """Without what would make it read otherwise than it is: control characters, line ends, turned writing."""
    return "".join(character for character in name if not _hides(character))


def _hides(character: str) -> bool:
    kind = unicodedata.category(character)
    return kind in ("Cc", "Cs", "Zl", "Zp") or unicodedata.bidirectional(character) in _OVERRIDES
