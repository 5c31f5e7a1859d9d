"""Web pages: what a browser shows of them, with headings, lists and tables. For e-mails and e-books too."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass

from lxml import etree  # type: ignore[import-untyped]  # it has no types

from . import Parts, Unreadable, plain
from .blocks import Block, tidy, written
from .elements import number, raised
from .package import Element
from .seen import Pictures, how
from .text import decoded
from .web_tables import Table

MOST_ELEMENTS = 1_000_000
SEEN = 5_000
"""Bytes from which on a picture inside of the page is worth a word."""

_UNSEEN = frozenset(
    [
        "head",
        "script",
        "style",
        "template",
        "noscript",
        "svg",
        "iframe",
        "object",
        "video",
        "audio",
        "canvas",
        "datalist",
        "map",
        "rt",
        "rp",
        "frameset",
    ]
)
_BREAKS = frozenset(
    [
        "address",
        "article",
        "aside",
        "blockquote",
        "body",
        "center",
        "dd",
        "details",
        "dialog",
        "div",
        "dl",
        "dt",
        "fieldset",
        "figcaption",
        "figure",
        "footer",
        "form",
        "header",
        "hgroup",
        "hr",
        "html",
        "legend",
        "main",
        "menu",
        "nav",
        "ol",
        "p",
        "pre",
        "search",
        "section",
        "summary",
        "ul",
        "table",
        "caption",
        "tr",
        "li",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "thead",
        "tbody",
        "tfoot",
        "td",
        "th",
    ]
)
_LISTS = ("ul", "ol", "menu", "dir")
_HEADING = re.compile(r"h[1-6]")
_SPACE = re.compile(r"[ \t\r\n\f]+")
_CHARSET = re.compile(rb"""<meta[^>]{0,300}?charset\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)
_XML_CHARSET = re.compile(rb"""\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w.:-]+)""")
_HIDING = re.compile(
    r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden|mso-hide\s*:\s*all|font-size\s*:\s*0(?:px|pt|em|%)?\s*(?:;|!|$)"
    r"|opacity\s*:\s*0(?:\.0+)?\s*(?:;|!|$))",
    re.IGNORECASE,
)
_RULE = re.compile(r"([^{}]+)\{([^{}]*)\}")
_SIMPLE = re.compile(r"([\w-]*)([.#][\w-]+)")
_AT_BLOCK = re.compile(r"@[^{};]+\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}")
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


@dataclass
class Page:
    title: str
    blocks: list[Block]
    doubt: str = ""
    unread: int = 0
    """Pictures inside of it whose text could not be read."""
    words: int = 0
    """Those whose text is among the blocks."""
    cut: bool = False


def read(name: str, raw: bytes) -> Parts:
    page = page_of(name, raw)
    blocks = page.blocks
    first = next((block.text for block in blocks if block.filled), "")
    if page.title and " ".join(first.split()).casefold() != page.title.casefold():
        blocks = [Block(page.title, level=0), *blocks]
    if not any(block.filled for block in page.blocks):
        if page.cut:
            raise Unreadable(f"{name} is nested too deeply to be read. Please print the page to PDF.", "limit")
        raise Unreadable(
            f"{name} could not be read: there is no text in it (a program in it may load it). "
            "Please print the page to PDF and send that.",
            "nothing",
        )
    troubles = [page.doubt] if page.doubt else []
    if page.cut:
        troubles.append("it is nested too deeply or too long, and not all of it could be read")
    if page.unread:
        what = "a picture" if page.unread == 1 else f"{page.unread} pictures"
        troubles.append(f"it holds {what} whose text could not be read")
    return [("", written(blocks), f"{name}: {'; '.join(troubles)}" if troubles else "", *how(page.words))]


def page_of(name: str, raw: bytes, told: str = "") -> Page:
    """`told`: the encoding, where something outside of the page states it."""
    stated = _XML_CHARSET.match(raw[:300]) or _CHARSET.search(raw[:4096].replace(b"\x00", b""))
    text, doubt = decoded(name, raw, told or (stated[1].decode() if stated else ""))
    page = shown(text)
    page.doubt = doubt
    return page


def shown(text: str) -> Page:
    parser = etree.HTMLParser(encoding="utf-8", huge_tree=True, remove_comments=True, remove_pis=True, no_network=True)
    content = plain(text).encode("utf-8", "replace")
    try:
        root = etree.fromstring(content, parser)
    except etree.XMLSyntaxError:  # nothing that could be an element
        root = None
    if root is None:
        return Page("", [])
    title = next((" ".join("".join(each.itertext()).split()) for each in root.iter("title")), "")
    walk = _Walk(_hidden_by_sheet(root))
    walk.through(root)
    cut = walk.cut or any("depth" in each.message.lower() for each in parser.error_log)
    return Page(title, walk.found(), unread=walk.unread, words=walk.seen.found, cut=cut)


def _hidden_by_sheet(root: Element) -> frozenset[str]:
    """Classes and ids that a style sheet in the page hides, whatever the screen."""
    found = set()
    for sheet in root.iter("style"):
        rules = _AT_BLOCK.sub("", _COMMENT.sub("", sheet.text or ""))
        for selectors, style in _RULE.findall(rules[:200_000]):
            if _HIDING.search(style):
                simple = (_SIMPLE.fullmatch(selector.strip()) for selector in selectors.split(","))
                found |= {each[2] for each in simple if each}
    return frozenset(found)


class _Walk:
    """In the order of the page, without recursion: pages are nested as deeply as anybody likes."""

    def __init__(self, hidden: frozenset[str]) -> None:
        self.unread = 0
        self._hidden = hidden
        self._blocks: list[Block] = []
        self._said: list[str] = []
        self._raised = 0
        self._kept = 0
        self._lists: list[int | None] = []
        """Of each list that is open the last number; None for points."""
        self._mark = ""
        self._tables: list[Table] = []
        self._inside: list[tuple[list[int | None], list[Block]]] = []
        self.seen = Pictures()
        self.cut = False

    def found(self) -> list[Block]:
        self._flush()
        return self._blocks

    def through(self, root: Element) -> None:
        walk = etree.iterwalk(root, events=("start", "end"))
        skipped = None
        for count, (event, element) in enumerate(walk):
            if event == "start":
                self.cut = self.cut or count > 2 * MOST_ELEMENTS
                if self.cut or not isinstance(element.tag, str) or self._is_hidden(element):
                    skipped = element
                    walk.skip_subtree()
                    continue
                self._open(element)
                self._say(element.text)
            else:
                if element is not skipped:
                    self._close(element)
                if element is not root:
                    self._say(element.tail)

    def _is_hidden(self, element: Element) -> bool:
        if element.tag in _UNSEEN or element.get("hidden") is not None:
            return True
        if (style := element.get("style")) and _HIDING.search(style):
            return True
        if not self._hidden:
            return False
        names = {f".{each}" for each in (element.get("class") or "").split()} | {f"#{element.get('id')}"}
        return not self._hidden.isdisjoint(names)

    # ── text ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _say(self, text: str | None) -> None:
        if not text:
            return
        if self._raised:
            text = raised(self._said[-1] if self._said else "", text)
        self._said.append(text if self._kept else _SPACE.sub(" ", text))

    def _flush(self, level: int | None = None) -> None:
        text = tidy("".join(self._said))
        self._said.clear()
        if not text:
            return
        if level is not None:
            self._blocks.append(Block(" ".join(text.split()), level=level))
            return
        depth = max(len(self._lists) - 1, 0)
        if self._mark:
            self._blocks.append(Block(self._mark + text, depth=depth))
            self._mark = ""
        else:
            self._blocks.append(Block(text, depth=depth + 1 if self._lists else 0))

    # ── elements ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _open(self, element: Element) -> None:
        tag = element.tag
        if tag in _BREAKS:
            self._flush()
        if tag == "br":
            self._said.append("\n")
        elif tag == "sup":
            self._raised += 1
        elif tag in ("pre", "textarea"):
            self._kept += 1
        elif tag == "img":
            self._picture(element)
        elif tag == "option":
            self._said.append(" ")
        elif tag in _LISTS:
            self._lists.append(number(element.get("start"), 1) - 1 if tag == "ol" else None)
        elif tag == "li":
            self._mark = self._next_mark()
        elif tag == "table":
            self._open_table()
        elif self._tables:
            self._open_in_table(element)

    def _close(self, element: Element) -> None:
        tag = element.tag
        if _HEADING.fullmatch(tag):
            self._flush(int(tag[1]))
        elif tag in _BREAKS:
            self._flush()
        if tag == "sup":
            self._raised -= 1
        elif tag in ("pre", "textarea"):
            self._kept -= 1
        elif tag == "option":
            self._said.append(",")
        elif tag in _LISTS and self._lists:
            self._lists.pop()
        elif tag == "li":
            self._mark = ""
        elif tag == "table" and self._tables:
            self._close_table(element)
        elif self._tables:
            self._close_in_table(element)

    def _next_mark(self) -> str:
        if not self._lists or self._lists[-1] is None:
            return "- "
        self._lists[-1] += 1
        return f"{self._lists[-1]}. "

    def _picture(self, element: Element) -> None:
        alt = " ".join((element.get("alt") or "").split())
        if alt:
            self._said.append(f" {alt} ")
        kind, _, content = (element.get("src") or "").partition(";base64,")
        if not kind.startswith("data:image/") or len(content) * 3 // 4 < SEEN:
            return
        try:
            raw = base64.b64decode(content)
        except (binascii.Error, ValueError):
            return
        words = self.seen.words(hash(raw), raw)
        self.unread += words is None
        if words:
            self._said.append(f"\n{words}\n")

    # ── tables ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _open_table(self) -> None:
        self._tables.append(Table(outer=self._blocks))
        self._inside.append((self._lists, self._blocks))
        self._lists, self._blocks = [], []

    def _open_in_table(self, element: Element) -> None:
        table = self._tables[-1]
        if element.tag == "thead":
            table.in_head = True
        elif element.tag == "tr":
            self._end_row(table)
            table.header = True
        elif element.tag in ("td", "th"):
            self._loose(table)

    def _loose(self, table: Table) -> None:
        """A caption, or what a broken page has between its cells, stands before the table."""
        self._flush()
        table.outer += self._blocks
        self._blocks = []

    def _close_in_table(self, element: Element) -> None:
        table = self._tables[-1]
        if element.tag == "thead":
            table.in_head = False
        elif element.tag == "tr":
            self._end_row(table)
        elif element.tag in ("td", "th"):
            table.add(element, self._blocks)
            self._blocks, self._lists, self._mark = [], [], ""

    def _end_row(self, table: Table) -> None:
        self._loose(table)
        table.end_row()

    def _close_table(self, element: Element) -> None:
        table = self._tables.pop()
        self._end_row(table)
        self._lists, self._blocks = self._inside.pop()
        self._blocks += table.blocks(element)
