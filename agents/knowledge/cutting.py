"""A text cut into pieces of up to a chunk: prose by sentence, tables by row, and what is whole not at all."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from mesh.text import Span, sentences

SIZE = 800
OVERLAP = 100

_TABLE_RULE = re.compile(r"\s*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?\s*")
_LINE = re.compile(r"[^\r\n]+")
_WORD = re.compile(r"\S*")
_SPACE = re.compile(r"\s*")
_ENDLESS = 5000
"""Characters of one line that are taken by themselves: the time for a line grows with its square."""
_MASKS = 0xF0000, 0xFFFD
"""A plane of characters that mean nothing, and how many there are: each stands for one thing that is whole."""
_MASKED = re.compile("([\U000f0000-\U000ffffc])\\1*")

Stretch = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Piece:
    """`text[start:end]`, below the `header` of the table that it goes on with. Neither end is white space."""

    start: int
    end: int
    header: str = ""

    @property
    def size(self) -> int:
        return len(self.header) + self.end - self.start


def pieces(text: str, whole: Sequence[Stretch] = ()) -> Iterator[Piece]:
    """`whole` are stretches of up to a chunk, in order, that are not cut in two.

    A piece has at most SIZE + OVERLAP characters, and the header of its table, which has at most SIZE / 2.
    """
    start, end = _trimmed(text, 0, len(text))
    if end - start <= SIZE:
        if start < end:
            yield Piece(start, end)
        return
    for piece in _joined(_cut(_mask(text, whole) if whole else text)):
        yield Piece(*_trimmed(text, piece.start, piece.end), piece.header)


def _trimmed(text: str, start: int, end: int) -> Stretch:
    stretch = text[start:end]
    return start + len(stretch) - len(stretch.lstrip()), start + len(stretch.rstrip())


def _after_space(text: str, start: int) -> int:
    found = _SPACE.match(text, start)
    return found.end() if found else start


def _joined(found: Iterable[Piece]) -> Iterator[Piece]:
    """A scrap joins what stands before it, else what follows."""
    held: Piece | None = None
    for piece in found:
        if held:
            both = Piece(held.start, piece.end, held.header)
            if min(held.end - held.start, piece.end - piece.start) < OVERLAP and both.size <= SIZE + OVERLAP:
                held = both
                continue
            yield held
        held = piece
    if held:
        yield held


# ── what is whole ─────────────────────────────────────────────────────────────────────────────────────────────────


def _mask(text: str, whole: Iterable[Stretch]) -> str:
    """As long as the text, with one long word of its own in the place of each."""
    first, count = _MASKS
    written: list[str] = []
    reached = 0
    for number, (start, end) in enumerate(whole):
        written += text[reached:start], chr(first + number % count) * (end - start)
        reached = end
    return "".join(written) + text[reached:]


def _cut(masked: str) -> Iterator[Piece]:
    endless = list(_endless(masked))
    sides = [0, *(side for stretch in endless for side in stretch), len(masked)]
    tables = [
        table for start, end in zip(sides[::2], sides[1::2], strict=True) for table in _tables(masked, start, end)
    ]
    long = {table.start: table for table in tables if table.end - table.start > SIZE}
    masked = _mask(masked, [(table.start, table.end) for table in tables if table.start not in long])
    reached = 0
    for start, end in sorted([*endless, *((table.start, table.end) for table in long.values())]):
        lead = _after_space(masked, reached)
        if start not in long or start - lead > OVERLAP:
            yield from _prose(masked, reached, start)
            lead = start
        yield from _rows(masked, long[start], lead) if start in long else _prose(masked, start, end)
        reached = end
    yield from _prose(masked, reached, len(masked))


def _endless(text: str) -> Iterator[Stretch]:
    """Pieces of lines that are too long, each up to a word's end if there is one soon."""
    for line in _LINE.finditer(text):
        start = line.start()
        while line.end() - start >= _ENDLESS:
            stop = start + _ENDLESS
            word = _WORD.match(text, stop, min(stop + 100, line.end()))
            end = word.end() if word and word.end() < stop + 100 else stop
            yield start, end
            start = end


# ── prose ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _prose(text: str, start: int, end: int) -> Iterator[Piece]:
    """LlamaIndex's chunks, and where each lies: they are stripped, and overlap."""
    prose = text[start:end]
    reached = 0
    for piece in _splitter()(prose) if prose.strip() else ():
        # In text that repeats itself a piece could lie in many places. The last one that leaves no gap never lies
        # before the true one, so that the end of the text is reached.
        begin = prose.rfind(piece, 0, _after_space(prose, reached) + len(piece))
        reached = begin + len(piece)
        yield Piece(start + begin, start + reached)


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
    """Sentences, and what is whole; one after the other they are the text."""
    cuts = [0]
    reached = 0
    for masked in _MASKED.finditer(text):
        cuts += [reached + span.start for span in sentences(text[reached : masked.start()])]
        cuts += masked.span()
        reached = masked.end()
    cuts += [reached + span.start for span in sentences(text[reached:])]
    return [text[start:end] for start, end in pairwise([*cuts, len(text)]) if start < end]


# ── tables ────────────────────────────────────────────────────────────────────────────────────────────────────────


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
    for span in sentences(text[start:end]):
        if rows and not (span.kind == "row" and _adjoin(text, rows[-1].end, start + span.start)):
            found += _table(text, rows)
            rows = []
        if span.kind == "row":
            rows.append(Span(start + span.start, start + span.end, span.kind))
    return found + _table(text, rows)


def _adjoin(text: str, end: int, following: int) -> bool:
    between = text[end:following]
    return between.count("\n") == 1 or (between.count("\n") == 2 and bool(between.strip()))


def _table(text: str, rows: Sequence[Span]) -> list[_Table]:
    if len(rows) < 2:
        return []
    return [_Table(tuple(rows), rows[1].start if _ruled(text, rows[0], rows[1]) else rows[0].start)]


def _ruled(text: str, first: Span, second: Span) -> bool:
    between = text[first.end : second.start]
    return "-" in between and bool(_TABLE_RULE.fullmatch(between))


def header(text: str) -> str:
    """The ruled one of the table that a chunk begins with, repeated or not; else empty."""
    match sentences(text)[:2]:
        case [Span(start=0, kind="row") as first, second] if _ruled(text, first, second):
            return text[: second.start]
    return ""


def _rows(text: str, table: _Table, lead: int) -> Iterator[Piece]:
    """As many rows at a time as there is room for. The first come with what stands before the table, from `lead` on."""
    header = text[table.start : table.header_end] if table.header_end - table.start <= SIZE // 2 else ""
    start, above = lead, ""
    held: Piece | None = None
    for row in table.rows[1 if header else 0 :]:
        if held and len(above) + row.end - start > SIZE:
            yield held
            held = None
            start, above = row.start, header
        if row.end - row.start > SIZE:
            first, *others = _prose(text, start, row.end)
            yield Piece(first.start, first.end, above)
            yield from (Piece(each.start, each.end, header) for each in others)
            start, above = _after_space(text, row.end), header
        else:
            held = Piece(start, row.end, above)
    if held:
        yield held
