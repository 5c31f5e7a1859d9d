"""From the text of a document to what is embedded: by the author's headings, else by sentence."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from markdown_it import MarkdownIt

from mesh.ports import Chunk, Part
from mesh.text import Span, sentences

if TYPE_CHECKING:
    from markdown_it.token import Token

SIZE = 800
OVERLAP = 100
MARKDOWN = frozenset({".md", ".markdown", ".mdown", ".mkd"})
WORD = frozenset({".docx", ".docm", ".dotx", ".dotm"})
SLIDES = frozenset({".pptx", ".pptm", ".ppsx", ".ppsm", ".potx", ".potm"})
SHEETS = frozenset({".xlsx", ".xlsm", ".xltx", ".xltm"})
PAGES = frozenset({".html", ".htm", ".xhtml", ".xht", ".epub"})
MAILS = frozenset({".eml", ".msg", ".mht", ".mhtml"})

_NEWLINE = re.compile(r"\r\n?|\n")  # as markdown-it counts lines
_FRONT_MATTER = re.compile(r"---[ \t]*\n(?:.*\n)*?---[ \t]*(?:\n|\Z)")
_TABLE_RULE = re.compile(r"\s*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?\s*")
_LINE = re.compile(r"[^\r\n]+")
_WORD = re.compile(r"\S*")
_ENDLESS = 5000
"""Characters of one line that are taken by themselves: the time for a line grows with its square."""
_LEAD = 100
"""A line or two before a long table go with its first rows, rather than standing alone."""


def has_headings(name: str) -> bool:
    """Markdown, and what is read as such: the headings are the author's own."""
    return PurePosixPath(name).suffix.lower() in MARKDOWN | WORD | SLIDES | SHEETS | PAGES | MAILS


def chunk(name: str, parts: Sequence[Part]) -> list[Chunk]:
    """Two sections never share a chunk: one fact among five subjects is not found."""
    cut = sections if has_headings(name) else _whole
    found: list[Chunk] = []
    for part in parts:
        for section in cut(part.text):
            for start, text in _pieces(part.text, section):
                found.append(Chunk(len(found), text, section.path, part.label, start))
    return found


def embedding_text(name: str, chunk: Chunk) -> str:
    """What is embedded: the chunk under its file's and its headings' names."""
    return " > ".join((PurePosixPath(name).stem, *chunk.heading_path)) + "\n" + chunk.text


# ── sections ──────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Section:
    """`text[start:end]`, without the heading itself."""

    start: int
    end: int
    path: tuple[str, ...] = ()


def _whole(text: str) -> list[Section]:
    return [Section(0, len(text))]


def sections(text: str) -> list[Section]:
    """By the headings of the document itself: one in a code fence, a quotation or a list is none."""
    body = _FRONT_MATTER.match(text)
    blanked = "\n" * text[: body.end()].count("\n") + text[body.end() :] if body else text
    lines = [0, *(newline.end() for newline in _NEWLINE.finditer(text)), len(text)]
    open_headings: list[tuple[int, str]] = []
    found: list[Section] = []
    begin = 0
    for first, after, level, title in _headings(_parser().parse(blanked)):
        found.append(Section(begin, lines[first], _path(open_headings)))
        while open_headings and open_headings[-1][0] >= level:
            open_headings.pop()
        open_headings.append((level, title))
        begin = lines[min(after, len(lines) - 1)]
    found.append(Section(begin, len(text), _path(open_headings)))
    return found


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark")


def _path(open_headings: Sequence[tuple[int, str]]) -> tuple[str, ...]:
    return tuple(title for _, title in open_headings if title)


def _headings(tokens: Sequence[Token]) -> Iterator[tuple[int, int, int, str]]:
    """First line, line after, level and words of each."""
    for opening, inline in pairwise(tokens):
        if opening.type == "heading_open" and opening.level == 0 and opening.map:
            first, after = opening.map
            yield first, after, int(opening.tag[1:]), _words(inline)


def _words(inline: Token) -> str:
    written = (child.content or " " for child in inline.children or () if child.type in _WORDED)
    return " ".join("".join(written).split())


_WORDED = frozenset({"text", "code_inline", "softbreak", "hardbreak", "image"})


# ── pieces of a section ───────────────────────────────────────────────────────────────────────────────────────────


def _pieces(text: str, section: Section) -> Iterator[tuple[int, str]]:
    body = text[section.start : section.end]
    if len(body.strip()) <= SIZE:
        segments: Iterator[tuple[int, str]] = iter([(0, body)])
    else:
        segments = _segments(body)
    for start, piece in segments:
        if stripped := piece.strip():
            yield section.start + start + len(piece) - len(piece.lstrip()), stripped


def _segments(body: str) -> Iterator[tuple[int, str]]:
    """Prose by sentence, and tables that are longer than a chunk by row."""
    reached = 0
    for start, end in _endless(body):
        yield from _blocks(body, reached, start)
        yield from _prose(body, start, end)
        reached = end
    yield from _blocks(body, reached, len(body))


def _endless(body: str) -> Iterator[tuple[int, int]]:
    """Pieces of lines that are too long, each up to a word's end if there is one soon."""
    for line in _LINE.finditer(body):
        start = line.start()
        while line.end() - start >= _ENDLESS:
            stop = start + _ENDLESS
            word = _WORD.match(body, stop, min(stop + 100, line.end()))
            end = word.end() if word and word.end() < stop + 100 else stop
            yield start, end
            start = end


def _blocks(body: str, start: int, end: int) -> Iterator[tuple[int, str]]:
    reached = start
    for table in _tables(body, start, end):
        if table.end - table.start <= SIZE:
            continue
        lead = body[reached : table.start]
        if len(lead.strip()) > _LEAD:
            yield from _prose(body, reached, table.start)
            lead = ""
        yield from _rows(body, table, lead)
        reached = table.end
    yield from _prose(body, reached, end)


def _prose(body: str, start: int, end: int) -> Iterator[tuple[int, str]]:
    """LlamaIndex's chunks, and where each lies: they are stripped, and overlap. A scrap joins the one before."""
    prose = body[start:end]
    found: list[tuple[int, int]] = []
    at = 0
    for piece in _splitter()(prose):
        begin = prose.find(piece, at)
        if found and len(piece) < OVERLAP:
            found[-1] = (found[-1][0], begin + len(piece))
        else:
            found.append((begin, begin + len(piece)))
        at = max(begin + 1, begin + len(piece) - OVERLAP)
    for begin, after in found:
        yield start + begin, prose[begin:after]


@lru_cache(maxsize=1)
def _splitter() -> Callable[[str], list[str]]:
    # Imported here: it costs a second and 100 MB, which a worker that only answers never needs.
    from llama_index.core.node_parser.text.sentence import SentenceSplitter

    return SentenceSplitter(
        chunk_size=SIZE,
        chunk_overlap=OVERLAP,
        tokenizer=list,  # sizes in characters
        paragraph_separator="\n\n",
        chunking_tokenizer_fn=_units,  # ours: nltk's wants a download
    ).split_text


def _units(text: str) -> list[str]:
    """Sentences, and tables whole; one after the other they are the text."""
    tables = _tables(text, 0, len(text))
    inside = {span for table in tables for span in range(table.start + 1, table.end)}
    cuts = [span.start for span in sentences(text) if span.start not in inside]
    return [text[start:end] for start, end in pairwise([0, *cuts, len(text)]) if start < end]


@dataclass(frozen=True, slots=True)
class _Table:
    rows: tuple[Span, ...]
    header_end: int
    """Where the ruled header ends; `start` if there is none."""

    @property
    def start(self) -> int:
        return self.rows[0].start

    @property
    def end(self) -> int:
        return self.rows[-1].end


def _tables(text: str, start: int, end: int) -> list[_Table]:
    found: list[_Table] = []
    rows: list[Span] = []
    for span in _spans(text, start, end):
        if rows and not (span.kind == "row" and _adjoin(text, rows[-1], span)):
            found += _table(text, rows)
            rows = []
        if span.kind == "row":
            rows.append(span)
    return found + _table(text, rows)


def _spans(text: str, start: int, end: int) -> list[Span]:
    found = sentences(text[start:end])
    return [Span(start + each.start, start + each.end, each.kind) for each in found] if start else found


def _adjoin(text: str, row: Span, following: Span) -> bool:
    between = text[row.end : following.start]
    return between.count("\n") == 1 or (between.count("\n") == 2 and bool(between.strip()))


def _table(text: str, rows: Sequence[Span]) -> list[_Table]:
    if len(rows) < 2:
        return []
    between = text[rows[0].end : rows[1].start]
    ruled = "-" in between and bool(_TABLE_RULE.fullmatch(between))
    return [_Table(tuple(rows), rows[1].start if ruled else rows[0].start)]


def _rows(body: str, table: _Table, lead: str) -> Iterator[tuple[int, str]]:
    header = body[table.start : table.header_end] if table.header_end - table.start <= SIZE // 2 else ""
    opening = lead + header
    start = table.start - len(lead)
    held = ""
    for row in table.rows[1 if header else 0 :]:
        line = body[row.start : row.end]
        if held and len(opening) + len(held) + len(line) + 1 > SIZE:
            yield start, opening + held
            opening, start, held = header, row.start, ""
        if len(opening) + len(line) > SIZE:
            yield from _prose(body, row.start, row.end)
        else:
            held = f"{held}\n{line}" if held else line
    if held:
        yield start, opening + held
