"""What can be quoted from a passage: a sentence, a list's item, a table's row in words, a question's reply."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import regex

from agents.knowledge.weekdays import days_in
from mesh.text import Span, sentences, words


@dataclass(frozen=True)
class Candidate:
    """A passage that a search found. `cosine` is None where only the lexical leg found it."""

    id: str
    text: str
    heading_path: tuple[str, ...] = ()
    source: str = ""
    """The file's name without folder and ending."""
    cosine: float | None = None
    score: float = 0.0
    """As `ranking.fuse` gave it."""
    own: bool = False
    """The asker's own document, that nobody else sees."""

    @cached_property
    def context(self) -> str:
        return " > ".join(part for part in (regex.sub(r"[_\-]+", " ", self.source), *self.heading_path) if part)

    @cached_property
    def terms(self) -> frozenset[str]:
        return frozenset(words(f"{self.context}\n{self.text}")) | days_in(self.text)


UnitKind = Literal["sentence", "item", "row", "reply"]


@dataclass(frozen=True)
class Unit:
    """The least that can be quoted: a sentence, a list's item, a table's row in words, a question's reply."""

    passage: Candidate
    place: int
    text: str
    kind: UnitKind
    label: str
    group: int
    """Units of one paragraph, list or table share it."""

    @cached_property
    def terms(self) -> frozenset[str]:
        return frozenset(words(self.text)) | days_in(self.text)

    @cached_property
    def around(self) -> frozenset[str]:
        return frozenset(words(f"{self.passage.context}\n{self.label}"))

    @property
    def embedded(self) -> str:
        """With the headings that it stands under: measured, the right unit is found more often."""
        above = " > ".join(part for part in (self.passage.context, self.label) if part)
        return f"{above}\n{self.text}" if above else self.text


_CELL = regex.compile(r"(?<!\\)\||\t")
_MARKUP = regex.compile(r"(?<!\\)(?:\*\*|__|`|(?<!\S)\*(?=\S)|(?<=\S)\*(?!\w))")
_ESCAPED = regex.compile(r"\\([\\`*_\[\]<>&#|~])")
"""A reader of Word files escapes what Markdown would take for markup."""


_BLANK_LINE = regex.compile(r"\n[^\S\n]*\n")


def _plain(line: str) -> str:
    return str(_ESCAPED.sub(r"\1", _MARKUP.sub("", line)))


def _cells(row: str) -> list[str]:
    inner = row.strip().removeprefix("|").removesuffix("|")
    return [_plain(cell).strip() for cell in _CELL.split(inner)]


def _in_words(header: Sequence[str], row: str) -> str:
    cells = _cells(row)
    if len(header) != len(cells):
        return ", ".join(cell for cell in cells if cell)
    named = zip(header, cells, strict=True)
    return ", ".join(f"{name}: {cell}" if name else cell for name, cell in named if cell)


def _is_header(text: str, row: Span, below: Span | None) -> bool:
    if below is None or below.kind != "row":
        return False
    first, second = row.of(text), below.of(text)
    ruled = "-" in text[row.end : below.start]
    return ruled or (not any(c.isdecimal() for c in first) and any(c.isdecimal() for c in second))


def _stands_alone(text: str, left: Span | None, right: Span | None) -> bool:
    start, end = left.end if left else 0, right.start if right else len(text)
    return left is None or right is None or bool(_BLANK_LINE.search(text, start, end))


def _is_numbered_title(text: str, line: Span, above: Span | None, below: Span | None) -> bool:
    """ "5. Late return" above a paragraph, as contracts and plain text have it; in a list, items stand together."""
    if line.kind != "item" or below is None or below.kind != "sentence" or (above and above.kind == "item"):
        return False
    written = line.of(text)
    return len(written) <= 70 and written[0].isdecimal() and written[-1].isalnum()


def _is_label(text: str, line: Span, above: Span | None, below: Span | None) -> bool:
    """A line that names what follows: a title in a text file, the opening of a list, `WARRANTY.`"""
    written = line.of(text)
    if line.kind == "heading" or _is_numbered_title(text, line, above, below):
        return True
    if below is None or line.kind != "sentence" or len(written) > 70:
        return False
    digits = any(c.isdecimal() for c in written)
    if written.endswith((":", "：")) or (written.isupper() and not digits and written[-1] not in "?!"):
        return True
    if written[-1] in ".!?।。" or ":" in written or digits or below.kind == "row":
        return False
    return _stands_alone(text, above, line) and (above is None or not _stands_alone(text, line, below))


def units_of(passage: Candidate) -> list[Unit]:
    """In reading order. Headings, labels and table headers are in the units that they name."""
    text = passage.text
    spans = sentences(text)
    found: list[Unit] = []
    title = label = ""
    header: list[str] = []
    group = 0
    for place, span in enumerate(spans):
        above = spans[place - 1] if place else None
        below = spans[place + 1] if place + 1 < len(spans) else None
        apart = above is None or above.kind != span.kind or _stands_alone(text, above, span)
        group += apart
        if span.kind == "row":
            if apart:
                header = _cells(span.of(text)) if _is_header(text, span, below) else []
                if header:
                    continue
            shown = _in_words(header, span.of(text))
        else:
            if apart and span.kind == "sentence":
                label = title
            shown = " ".join(_plain(span.of(text)).split())  # a page's width broke it, not its author
            if _is_label(text, span, above, below):
                label = shown.lstrip("# ")
                title = label if span.kind == "item" or _stands_alone(text, span, below) else title
                group += 1
                continue
        if not shown:
            continue
        last = found[-1] if found else None
        if last and last.text.endswith(("?", "？", "؟")) and span.kind != "row":
            found[-1] = Unit(passage, last.place, f"{last.text} {shown}", "reply", last.label, last.group)
        else:
            kind: UnitKind = span.kind if span.kind != "heading" else "sentence"
            found.append(Unit(passage, len(found), shown, kind, label, group))
    return found
