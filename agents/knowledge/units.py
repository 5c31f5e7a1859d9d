"""What can be quoted from a passage: a sentence, a list's item, a table's row in words, a question's reply."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import regex

from agents.knowledge.weekdays import days_in, is_hours
from mesh.text import Span, sentences, telling, words


@dataclass(frozen=True)
class Candidate:
    """A passage that a search found. `cosine` is None where only the lexical leg found it."""

    id: str
    text: str
    heading_path: tuple[str, ...] = ()
    source: str = ""
    """The file's name without folder and ending."""
    cosine: float | None = None
    sparse: float = 0.0
    """BM25; 0 where only the other leg found it."""
    score: float = 0.0
    """As `ranking.fuse` gave it."""
    own: bool = False
    """The asker's own document, that nobody else sees."""

    @cached_property
    def context(self) -> str:
        named = regex.sub(r"[_\-]+", " ", telling(self.source))
        return " > ".join(part for part in (named, *self.heading_path) if part)

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
    cells: tuple[tuple[str, str], ...] = ()
    """Of a row: column and cell, where the table has a header."""
    headed: bool = False
    """Its label stands right above its paragraph, list or table, and not above another before it."""
    own_line: bool = False
    """Its author began a line for it."""
    spaced: str = ""
    """As written where gaps set it out in columns."""

    @property
    def shown(self) -> str:
        """For people to read: a row as "*Single* — Low: $65 · High: $85"."""
        if self.spaced:
            return self.spaced
        if len(self.cells) < 2 or not self.cells[0][0]:
            return self.text
        (_, named), *rest = self.cells
        return f"*{named}* — " + " · ".join(f"{column}: {cell}" if column else cell for column, cell in rest)

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


HOURS = "Opening hours"
"""What lines of days and times are called where nothing stands above them."""
SHORT_LINE = 60
_GAP = regex.compile(r"(?<=\S)[^\S\n]{3,}(?=\S)")
"""Between the columns of a table that is set with spaces."""
_PRICED = regex.compile(r"\p{Sc}\s?\d|\d\s?\p{Sc}")
_SIGNED = regex.compile(
    r"(?:(?:kind|best|warm) regards|(?:yours )?(?:sincerely|faithfully|truly)|cheers|saludos|atentamente"
    r"|(?:mit )?(?:freundlichen?|viele|liebe|beste) gr(?:ü|ue)(?:ß|ss)en?|cordialement|atenciosamente|abraços)",
    regex.IGNORECASE,
)
_BLANK_LINE = regex.compile(r"\n[^\S\n]*\n")


def _plain(line: str) -> str:
    return str(_ESCAPED.sub(r"\1", _MARKUP.sub("", line)))


def _cells(row: str) -> list[str]:
    inner = row.strip().removeprefix("|").removesuffix("|")
    return [_plain(cell).strip() for cell in _CELL.split(inner)]


def _in_words(header: Sequence[str], row: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    cells = _cells(row)
    if len(header) != len(cells):
        return ", ".join(cell for cell in cells if cell), ()
    named = tuple((name, cell) for name, cell in zip(header, cells, strict=True) if cell)
    return ", ".join(f"{name}: {cell}" if name else cell for name, cell in named), named


def _is_header(text: str, row: Span, below: Span | None) -> bool:
    if below is None or below.kind != "row":
        return False
    first, second = row.of(text), below.of(text)
    ruled = "-" in text[row.end : below.start]
    return ruled or (not any(c.isdecimal() for c in first) and any(c.isdecimal() for c in second))


def _stands_alone(text: str, left: Span | None, right: Span | None) -> bool:
    start, end = left.end if left else 0, right.start if right else len(text)
    return left is None or right is None or bool(_BLANK_LINE.search(text, start, end))


def _author_broke(text: str, above: Span, line: Span) -> bool:
    """A short line ends where its author wanted it to end; a long one where the page did."""
    end = text.find("\n", above.end, line.start)
    return end >= 0 and end - (text.rfind("\n", 0, end) + 1) <= SHORT_LINE


def _is_numbered_title(text: str, line: Span, above: Span | None, below: Span | None) -> bool:
    """ "5. Late return" above a paragraph, as contracts and plain text have it; in a list, items stand together."""
    if line.kind != "item" or below is None or below.kind != "sentence" or (above and above.kind == "item"):
        return False
    written = line.of(text)
    return len(written) <= 70 and written[0].isdecimal() and written[-1].isalnum()


def _label_apart(text: str, above: Span | None, line: Span) -> bool:
    return len(line.of(text).split()) <= 6 and (above is None or _stands_alone(text, above, line))


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
    if written[-1] in ".,!?।。" or ":" in written or below.kind == "row" or days_in(written):
        return False  # "Dear Mrs. Achebe," and "Mon closed" name nothing
    if _SIGNED.fullmatch(written):
        return False
    if digits:  # "Clay, 10 kg bag" above what each of them costs
        return not _PRICED.search(written) and bool(_PRICED.search(below.of(text))) and _label_apart(text, above, line)
    return _stands_alone(text, above, line) and (above is None or not _stands_alone(text, line, below))


def units_of(passage: Candidate) -> list[Unit]:
    """In reading order. Headings, labels and table headers are in the units that they name."""
    text = passage.text
    spans = sentences(text)
    found: list[Unit] = []
    title = label = ""
    header: list[str] = []
    group = headed = 0
    waits = brief = False
    for place, span in enumerate(spans):
        cells: tuple[tuple[str, str], ...] = ()
        spaced = ""
        above = spans[place - 1] if place else None
        below = spans[place + 1] if place + 1 < len(spans) else None
        apart = above is None or above.kind != span.kind or _stands_alone(text, above, span)
        group += apart
        if span.kind == "row":
            if apart:
                header = _cells(span.of(text)) if _is_header(text, span, below) else []
                if header:
                    continue
            shown, cells = _in_words(header, span.of(text))
        else:
            if apart and span.kind == "sentence":
                if brief and not waits:  # a bag's size is no title for what comes after its prices
                    title, brief = "", False
                label = title
            shown = " ".join(_plain(span.of(text)).split())  # a page's width broke it, not its author
            if _GAP.search(span.of(text)):
                lines = _GAP.sub(" · ", _plain(span.of(text))).splitlines()
                spaced = "\n".join(" ".join(line.split()) for line in lines)
            if _is_label(text, span, above, below):
                label = shown.lstrip("# ")
                of_all = span.kind == "item" or _stands_alone(text, span, below)
                title = label if of_all else title
                brief = any(c.isdecimal() for c in label.lstrip("0123456789."))
                waits = True
                group += 1
                continue
        if not shown:
            continue
        last = found[-1] if found else None
        if last and last.text.endswith(("?", "？", "؟")) and span.kind != "row":
            found[-1] = Unit(
                passage, last.place, f"{last.text} {shown}", "reply", last.label, last.group, own_line=last.own_line
            )
        else:
            kind: UnitKind = span.kind if span.kind != "heading" else "sentence"
            named = label or (HOURS if kind == "sentence" and is_hours(shown) else "")
            headed, waits = (group if waits else headed), False
            own_line = above is not None and _author_broke(text, above, span)
            found.append(Unit(passage, len(found), shown, kind, named, group, cells, headed == group, own_line, spaced))
    return found
