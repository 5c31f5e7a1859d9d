"""PDF, page by page. Words in a picture, or in letters that the file does not explain, are read by OCR."""

from __future__ import annotations

import ctypes
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pypdfium2 as pdfium  # type: ignore[import-untyped]  # it has no types

from . import LONGEST_TEXT, Parts, Unreadable, mending, ocr, plain, rows, scans
from .pages import (
    BLANK,
    DAMAGED,
    DOUBTFUL_LETTERS,
    NO_TEXT,
    NO_WORDS,
    PICTURE,
    PICTURE_OVER_MOST,
    UNKNOWN_LETTERS,
    Page,
    told,
)
from .pdf_pictures import share, shown

MOST_PAGES = 5_000
SEEN = 0.03
"""Share of the page from which on a picture is worth a word."""

_SOFT_HYPHEN = re.compile("[\x02\ufffe]\\s*")  # what PDFium makes of a hyphen at the end of a line
_LENGTH = re.compile(rb"/Linearized\b.{0,200}?/L\s+(\d+)", re.DOTALL)
_ASIDE = (0xFFFD, *range(0x20))


def read(name: str, raw: bytes) -> Parts:
    document, count = _opened(name, raw)
    pages = _pages(name, document, count)
    if any(scans.needs_look(page) for page in pages) and (reader := ocr.reader()):
        scans.look(document, pages, reader)
    else:
        _name_pictures(pages)
    if not any(page.text for page in pages):
        raise Unreadable(_nothing(name, pages), "nothing")
    for page, text in zip(pages, mending.mended([page.text for page in pages]), strict=True):
        page.text = text
    return told(pages)


def _opened(name: str, raw: bytes) -> tuple[Any, int]:
    try:
        document = pdfium.PdfDocument(raw)
        pages = len(document)
        if document.get_formtype() != pdfium.raw.FORMTYPE_NONE:
            document.init_forms()
    except pdfium.PdfiumError as error:
        if "password" in str(error).lower():
            raise Unreadable(
                f"{name} is protected by a password. Please send a copy without one (print it to a new PDF).",
                "password",
            ) from error
        if _cut_off(raw):
            raise Unreadable(f"{name} is cut off: its end is missing. Please send it again.") from error
        raise Unreadable(f"{name} is damaged: it can't be opened as a PDF. Please save it again and resend.") from error
    if _cut_off(raw):
        raise Unreadable(f"{name} is cut off: its end is missing. Please send it again.")
    if pages > MOST_PAGES:
        raise Unreadable(
            f"{name} has {pages:,} pages; {MOST_PAGES:,} are the most that I can take. Please split it.", "limit"
        )
    return document, pages


def _nothing(name: str, pages: Sequence[Page]) -> str:
    which = "its page has" if len(pages) == 1 else f"none of its {len(pages)} pages has"
    troubles = {page.trouble for page in pages}
    if UNKNOWN_LETTERS in troubles:
        which, why = which + " letters that I can make out", "the file does not say which they are"
    else:
        which += " no text in it" if len(pages) == 1 else " text in it"
        why = "it is blank" if troubles == {BLANK} else "it may be a scan"
        if NO_WORDS in troubles:
            why = "I found no words on its pictures either"
        if ocr.TOO_MANY in troubles:
            why = "they are pictures, and too many to read them all"
    return f"{name} could not be read: {which} ({why}). Please send a PDF in which text can be selected, or plain text."


def _cut_off(raw: bytes) -> bool:
    if stated := _LENGTH.search(raw[:1024]):
        return int(stated[1]) > len(raw)
    return b"%%EOF" not in raw[-65_536:]


def _pages(name: str, document: Any, pages: int) -> list[Page]:
    found: list[Page] = []
    length = 0
    for index in range(pages):
        found.append(_page(document, index))
        length += len(found[-1].text)
        if length > LONGEST_TEXT:
            raise Unreadable(
                f"{name} holds too much text ({LONGEST_TEXT:,} characters by page {index + 1}). Please split it.",
                "limit",
            )
    return found


def _page(document: Any, index: int) -> Page:
    try:
        page = document[index]
        if document.formenv:  # what was filled in is no text of the page until it is made one
            page.flatten()
            page.close()
            page = document[index]
        textpage = page.get_textpage()
        try:
            return _read(page, textpage)
        finally:
            textpage.close()
            page.close()
    except (pdfium.PdfiumError, ValueError):
        return Page(trouble=DAMAGED)


def _read(page: Any, textpage: Any) -> Page:
    written = textpage.get_text_range()
    if mending.is_arabic(written):
        written = mending.in_logical_order(_letters(textpage))
    else:
        written = rows.rejoined(written, textpage)
    written = _SOFT_HYPHEN.sub(mending.BROKEN, written)
    text = plain(written).strip()
    letters = [c for c in written if not c.isspace()]
    unknown = sum(ord(c) in _ASIDE or unicodedata.category(c) in ("Co", "Cn") for c in letters)
    if 2 * unknown > len(letters):
        return Page(trouble=UNKNOWN_LETTERS)
    if not text:
        return Page(trouble=NO_TEXT)
    characters = textpage.count_chars()
    doubtful = sum(pdfium.raw.FPDFText_HasUnicodeMapError(textpage, i) == 1 for i in range(characters))
    trouble = DOUBTFUL_LETTERS if 5 * doubtful > characters or 5 * unknown > len(letters) else ""
    return Page(text, trouble, characters=characters, shown=shown(page, textpage))


def _letters(textpage: Any) -> Iterator[tuple[str, mending.Spot]]:
    across, up = ctypes.c_double(), ctypes.c_double()
    for i in range(textpage.count_chars()):
        pdfium.raw.FPDFText_GetCharOrigin(textpage, i, across, up)
        yield chr(pdfium.raw.FPDFText_GetUnicode(textpage, i)), (across.value, up.value)


# ── pictures ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _name_pictures(pages: Sequence[Page]) -> None:
    """Names the pages that hold a picture without text over it, unless it is on most of the pages: a background."""
    on = Counter(which for page in pages if page.shown for which in {which for which, _ in page.shown.pictures})
    everywhere = {which for which, count in on.items() if count > 2 and 2 * count > len(pages)}
    for page in pages:
        covered = sum(share(region) for region in page.shown.unread(everywhere)) if page.shown else 0
        if not page.trouble and covered >= SEEN:
            page.trouble = PICTURE_OVER_MOST if covered >= scans.MOST_OF_PAGE else PICTURE
