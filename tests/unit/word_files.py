"""Word files for tests, made of python-docx and XML, and what is read in them."""

from __future__ import annotations

import io
import re
import struct
import zipfile
import zlib
from collections.abc import Callable

import pytest
from docx import Document
from docx.document import Document as Made
from docx.oxml import parse_xml
from docx.oxml.ns import nsmap

from agents.knowledge.chunking import chunk
from agents.knowledge.parsing import Parsed, parse
from mesh.errors import Unreadable
from mesh.ports.documents import Chunk
from tests.unit.drawn import WITHOUT_OCR

_NAMESPACES = {
    **nsmap,
    "m": "http://schemas.openxmlformats.org/officeDocument/2006/math",
    "mc": "http://schemas.openxmlformats.org/markup-compatibility/2006",
    "o": "urn:schemas-microsoft-com:office:office",
    "v": "urn:schemas-microsoft-com:vml",
    "wps": "http://schemas.microsoft.com/office/word/2010/wordprocessingShape",
}
DECLARED = " ".join(f'xmlns:{prefix}="{address}"' for prefix, address in _NAMESPACES.items() if prefix != "xml")


def raw_of(made: Made) -> bytes:
    kept = io.BytesIO()
    made.save(kept)
    return kept.getvalue()


def body(*elements: str, into: Made | None = None) -> Made:
    """A document of these elements, written as XML without the namespaces."""
    made = into or Document()
    for element in elements:
        made.element.body.insert(-1, parse_xml(re.sub(r"^<([\w:]+)", rf"<\1 {DECLARED}", element)))
    return made


def p(*runs: str, properties: str = "") -> str:
    return f"<w:p><w:pPr>{properties}</w:pPr>{''.join(runs)}</w:p>"


def r(text: str, properties: str = "") -> str:
    return f'<w:r><w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def changed(raw: bytes, change: Callable[[str, bytes], bytes | None]) -> bytes:
    """The archive with its members changed; None leaves one out."""
    kept = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(raw)) as old, zipfile.ZipFile(kept, "w", zipfile.ZIP_DEFLATED) as made:
        for member in old.infolist():
            if (content := change(member.filename, old.read(member))) is not None:
                made.writestr(member.filename, content)
    return kept.getvalue()


def added(raw: bytes, name: str, content: str) -> bytes:
    kept = io.BytesIO(raw)
    with zipfile.ZipFile(kept, "a") as made:
        made.writestr(name, content)
    return kept.getvalue()


def replaced(raw: bytes, name: str, old: str, new: str) -> bytes:
    def change(member: str, content: bytes) -> bytes:
        if member != name:
            return content
        assert old.encode() in content, f"{old} is not in {name}"
        return content.replace(old.encode(), new.encode())

    return changed(raw, change)


def png(width: int = 200, height: int = 100, shade: int = 0) -> io.BytesIO:
    def piece(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    rows = (b"\0" + bytes([shade]) * width) * height
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    made = piece(b"IHDR", head) + piece(b"IDAT", zlib.compress(rows)) + piece(b"IEND", b"")
    return io.BytesIO(b"\x89PNG\r\n\x1a\n" + made)


async def read(made: Made | bytes, name: str = "guide.docx", *, ocr: bool = True) -> Parsed:
    raw = made if isinstance(made, bytes) else raw_of(made)
    return await (parse(name, raw) if ocr else parse(name, raw, child=WITHOUT_OCR))


async def text(made: Made | bytes) -> str:
    return (await read(made)).parts[0].text


async def chunks(made: Made | bytes) -> list[Chunk]:
    parsed = await read(made)
    return chunk(parsed.media_type, parsed.parts)


async def unreadable(raw: bytes, name: str = "guide.docx", *, ocr: bool = True) -> str:
    with pytest.raises(Unreadable) as failed:
        await (parse(name, raw) if ocr else parse(name, raw, child=WITHOUT_OCR))
    assert failed.value.user_text.startswith(name), "the person must know which file is meant"
    assert not failed.value.detail, "it was refused, and did not break the reader"
    return failed.value.user_text


def table(*rows: tuple[str, ...], into: Made | None = None) -> Made:
    made = into or Document()
    grid = made.add_table(len(rows), len(rows[0]))
    for row, line in zip(rows, grid.rows, strict=True):
        for text, cell in zip(row, line.cells, strict=True):
            cell.text = text
    return made
