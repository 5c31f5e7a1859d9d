"""The outline of a Markdown document: its sections by the author's headings, and what of them is not cut in two."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from markdown_it import MarkdownIt

from agents.knowledge.cutting import SIZE, Stretch

if TYPE_CHECKING:
    from markdown_it.token import Token

LONGEST_HEADING = 200
"""Characters: what is longer is a paragraph that was marked as a heading."""

_NEWLINE = re.compile(r"\r\n?|\n")  # as markdown-it counts lines
_DASHES = re.compile(r"---[ \t]*(?:\r\n?|\n|\Z)")
_KEY = re.compile(r"""["']?\w[\w .-]{0,60}["']?:(?=\s|$)""")
_GOES_ON = re.compile(r"[\s#\]}]|-\s|$")
_ATX = re.compile(r"\s*#+[ \t]*(.*?)[ \t]*#*\s*", re.DOTALL)
_MARKUP = re.compile(r"[\\`*_\[\]<&]")
_SAYS = re.compile(r"\d|[:：]\s*\S|[.!?।。؟]$")
"""A heading that is a statement: it must be found even if nothing stands below it."""
_WORDED = frozenset({"text", "code_inline", "softbreak", "hardbreak", "image"})


@dataclass(frozen=True, slots=True)
class Section:
    """`text[start:end]`, without the heading itself."""

    start: int
    end: int
    path: tuple[str, ...] = ()
    whole: tuple[Stretch, ...] = ()
    """Code and items of lists that fit into a chunk, and the lines of code that doesn't; counted from `start`."""


@dataclass(frozen=True, slots=True)
class _Heading:
    start: int
    end: int
    level: int
    title: str = ""
    words: Stretch = (0, 0)
    """Where the title is, with its markup."""


def sections(text: str) -> list[Section]:
    """By the headings of the document itself: one in a code fence, a quotation or a list is none."""
    body = _after_front_matter(text)
    blanked = "\n" * len(_NEWLINE.findall(text, 0, body)) + text[body:] if body else text
    lines = [0, *(newline.end() for newline in _NEWLINE.finditer(text)), len(text)]
    links: dict[str, Any] = {}
    tokens = _blocks().parse(blanked, links)
    headings = list(_headings(text, lines, tokens, links))
    found = list(_below(text, headings))
    if headings and not any(text[each.start : each.end].strip() for each in found):
        found = [Section(0, len(text))]  # nothing but headings: they are what it says
    return _with_whole(found, _whole(text, lines, tokens))


def _after_front_matter(text: str) -> int:
    """0 where there is none: a line of dashes may also be drawn above a page."""
    opening = _DASHES.match(text)
    at = opening.end() if opening else 0
    if not _KEY.match(text, at):
        return 0
    while at < len(text):
        if closing := _DASHES.match(text, at):
            return closing.end()
        if not (_KEY.match(text, at) or _GOES_ON.match(text, at)):
            return 0
        newline = _NEWLINE.search(text, at)
        at = newline.end() if newline else len(text)
    return 0


@lru_cache(maxsize=1)
def _blocks() -> MarkdownIt:
    return MarkdownIt("commonmark").disable(["inline", "text_join"])  # of what is written in a line, titles alone count


@lru_cache(maxsize=1)
def _inline() -> MarkdownIt:
    return MarkdownIt("commonmark")


def _headings(text: str, lines: Sequence[int], tokens: Sequence[Token], links: dict[str, Any]) -> Iterator[_Heading]:
    for opening, inline in pairwise(tokens):
        if opening.type != "heading_open" or opening.level or not opening.map or len(inline.content) > LONGEST_HEADING:
            continue
        first, after = opening.map
        start, end = lines[first], lines[min(after, len(lines) - 1)]
        if opening.markup.startswith("#"):
            title = _ATX.fullmatch(text, start, end)
            words = title.span(1) if title else (start, end)
        else:
            words = (start, lines[after - 1])
        yield _Heading(start, end, int(opening.tag[1:]), _title(inline.content, links), words)


def _title(content: str, links: dict[str, Any]) -> str:
    if not _MARKUP.search(content):
        return " ".join(content.split())
    (inline,) = _inline().parseInline(content, links)
    written = (child.content or " " for child in inline.children or () if child.type in _WORDED)
    return " ".join("".join(written).split())


def _below(text: str, headings: Sequence[_Heading]) -> Iterator[Section]:
    end = _Heading(len(text), len(text), 0)
    yield Section(0, (*headings, end)[0].start)
    open_headings: list[_Heading] = []
    for heading, following in pairwise([*headings, end]):
        while open_headings and open_headings[-1].level >= heading.level:
            open_headings.pop()
        above = tuple(each.title for each in open_headings if each.title)
        open_headings.append(heading)
        empty = following.level <= heading.level and not text[heading.end : following.start].strip()
        if empty and _SAYS.search(heading.title):
            yield Section(*heading.words, above)
        else:
            yield Section(heading.end, following.start, (*above, heading.title) if heading.title else above)


# ── what is not cut ───────────────────────────────────────────────────────────────────────────────────────────────


def _whole(text: str, lines: Sequence[int], tokens: Sequence[Token]) -> Iterator[Stretch]:
    reached = 0
    for token in tokens:
        if not token.map or token.map[0] < reached or token.type not in ("fence", "code_block", "list_item_open"):
            continue
        first, after = token.map
        start, end = _rows(text, lines, first, after)
        if end - start <= SIZE:
            yield from [(start, end)] if end > start else []
            reached = after
        elif token.type != "list_item_open":
            for line in range(first, after):
                start, end = _rows(text, lines, line, line + 1)
                if 0 < end - start <= SIZE:
                    yield start, end
            reached = after


def _rows(text: str, lines: Sequence[int], first: int, after: int) -> Stretch:
    start = lines[first]
    return start, start + len(text[start : lines[min(after, len(lines) - 1)]].rstrip())


def _with_whole(sections: Sequence[Section], whole: Iterator[Stretch]) -> list[Section]:
    found = []
    stretch = next(whole, None)
    for section in sections:
        inside = []
        while stretch and stretch[0] < section.end:
            if section.start <= stretch[0] and stretch[1] <= section.end:
                inside.append((stretch[0] - section.start, stretch[1] - section.start))
            stretch = next(whole, None)
        found.append(Section(section.start, section.end, section.path, tuple(inside)))
    return found
