"""What the styles and lists of a Word file say of a paragraph: its heading level, its number, whether it is shown."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

from .elements import number, on, value
from .package import Element, W

TITLE = 0
DEEPEST = 64
"""Styles, one based on the other."""

# Word writes the English names of its own styles into every file; other programs may not.
_HEADING = re.compile(
    r"(?:heading|überschrift|titre|título|titulo|titolo|kop|rubrik|overskrift|otsikko|nagłówek|nadpis|заголовок"
    r"|cabeçalho|başlık|शीर्षक|标题|標題|見出し|제목)\s*([1-9])",
    re.IGNORECASE,
)
_TITLE = frozenset({"title", "titel", "titre", "título", "titolo", "название", "शीर्षक", "标题", "標題", "表題", "제목"})


class Styles:
    def __init__(self, root: Element | None) -> None:
        found = root.iterfind(W + "style") if root is not None else ()
        self._styles = {style.get(W + "styleId", ""): style for style in found}
        default = (s for s in self._styles.values() if s.get(W + "type") == "paragraph" and s.get(W + "default"))
        self._default = next((style.get(W + "styleId", "") for style in default), "")
        self.level = lru_cache(None)(self._level)
        self.switch = lru_cache(None)(self._switch)
        self.is_entry = lru_cache(None)(self._is_entry)
        self.numbered = lru_cache(None)(self._numbered)

    def of(self, properties: Element | None) -> str:
        """The style's id of a paragraph."""
        return value(properties, "pStyle") or self._default

    def _level(self, style_id: str) -> int | None:
        """0 for a title, 1 to 9 for headings, None for text."""
        if style_id not in self._styles:
            return _named(style_id)
        for style in self._chain(style_id):
            if (named := _named(value(style, "name") or "")) == TITLE:
                return TITLE
            if (outline := value(style, "pPr/outlineLvl")) is not None:
                return level_of(outline)
            if named is not None:
                return named
        return None

    def _switch(self, style_id: str, name: str) -> bool | None:
        """Of its letters: `b`, `vanish`. None where the style does not mention it."""
        switches = (on(style, f"rPr/{name}") for style in self._chain(style_id))
        return next((switch for switch in switches if switch is not None), None)

    def _is_entry(self, style_id: str) -> bool:
        """Of a table of contents: it repeats the headings."""
        return any(re.fullmatch(r"toc \d", (value(s, "name") or "").casefold()) for s in self._chain(style_id))

    def _numbered(self, style_id: str) -> Element | None:
        """The `w:numPr` that comes with a style."""
        found = (style.find(f"{W}pPr/{W}numPr") for style in self._chain(style_id))
        return next((each for each in found if each is not None), None)

    def lights_first_row(self, style_id: str) -> bool:
        """Whether a table's style makes its first row look like a header."""
        for style in self._chain(style_id):
            for part in style.iterfind(W + "tblStylePr"):
                if part.get(W + "type") == "firstRow":
                    return on(part, "rPr/b") is True or part.find(f"{W}tcPr/{W}shd") is not None
        return False

    def _chain(self, style_id: str) -> Iterator[Element]:
        for _ in range(DEEPEST):
            style = self._styles.get(style_id)
            if style is None:
                return
            yield style
            style_id = value(style, "basedOn") or ""


def level_of(outline: str) -> int | None:
    return number(outline, 9) + 1 if number(outline, 9) < 9 else None


def _named(name: str) -> int | None:
    if name.casefold() in _TITLE:
        return TITLE
    found = _HEADING.fullmatch(name)
    return int(found[1]) if found else None


# ── lists ─────────────────────────────────────────────────────────────────────────────────────────────────────────

BULLET = "-"
_PLACE = re.compile(r"%([1-9])")


@dataclass(frozen=True, slots=True)
class Step:
    """One level of a list."""

    start: int
    form: str
    text: str
    legal: bool
    restarts: bool
    style: str

    @classmethod
    def of(cls, level: Element) -> Step:
        return cls(
            number(value(level, "start"), 1),
            value(level, "numFmt") or "decimal",
            value(level, "lvlText") or "",
            bool(on(level, "isLgl")),
            value(level, "lvlRestart") != "0",
            value(level, "pStyle") or "",
        )


class Lists:
    """Counts as Word does: paragraphs must come in the order of the document."""

    def __init__(self, root: Element | None, styles: Styles) -> None:
        self._root = root
        self._styles = styles
        self._counts: dict[str, dict[int, int]] = defaultdict(dict)
        self._begun: set[tuple[str, int]] = set()
        self._kind = lru_cache(None)(self._kind_of)
        self._steps = lru_cache(None)(self._steps_of)

    @cached_property
    def _abstract(self) -> dict[str, Element]:
        found = self._root.iterfind(W + "abstractNum") if self._root is not None else ()
        return {each.get(W + "abstractNumId", ""): each for each in found}

    @cached_property
    def _numbers(self) -> dict[str, Element]:
        found = self._root.iterfind(W + "num") if self._root is not None else ()
        return {each.get(W + "numId", ""): each for each in found}

    def label(self, properties: Element | None, style_id: str) -> tuple[str, int] | None:
        """What stands before the paragraph, `-` for a bullet, and how deep it lies; None outside of lists."""
        own = properties.find(W + "numPr") if properties is not None else None
        styled = self._styles.numbered(style_id)
        list_id = value(own, "numId") or value(styled, "numId")
        if not list_id or list_id == "0" or list_id not in self._numbers:
            return None
        kind = self._kind(list_id)
        steps = self._steps(kind, list_id)
        depth = value(own, "ilvl") or value(styled, "ilvl")
        place = number(depth) if depth else next((i for i, step in steps.items() if step.style == style_id), 0)
        if place not in steps:
            return None
        counts = self._count(kind, list_id, place, steps)
        return _label(steps, counts, place), place

    def _kind_of(self, list_id: str) -> str:
        """The id of the abstract list behind a list, through the style that it may lend its levels from."""
        for _ in range(DEEPEST):
            kind = value(self._numbers.get(list_id), "abstractNumId") or ""
            linked = value(self._abstract.get(kind), "numStyleLink")
            lender = self._styles.numbered(linked) if linked else None
            if lender is None:
                return kind
            list_id = value(lender, "numId") or ""
        return ""

    def _steps_of(self, kind: str, list_id: str) -> dict[int, Step]:
        base = self._abstract.get(kind)
        levels = list(base.iterfind(W + "lvl")) if base is not None else []
        levels += self._numbers[list_id].iterfind(f"{W}lvlOverride/{W}lvl")
        return {number(level.get(W + "ilvl")): Step.of(level) for level in levels}

    def _count(self, kind: str, list_id: str, place: int, steps: dict[int, Step]) -> dict[int, int]:
        counts = self._counts[kind]
        if (list_id, place) not in self._begun:
            self._begun.add((list_id, place))
            for override in self._numbers[list_id].iterfind(W + "lvlOverride"):
                start = value(override, "startOverride")
                if start is not None and number(override.get(W + "ilvl")) == place:
                    counts[place] = number(start, 1) - 1
        counts[place] = counts.get(place, steps[place].start - 1) + 1
        for deeper in [each for each in counts if each > place and (each not in steps or steps[each].restarts)]:
            del counts[deeper]
        return counts


def _label(steps: dict[int, Step], counts: dict[int, int], place: int) -> str:
    step = steps[place]
    if step.form == "bullet":
        return BULLET
    if step.form == "none":
        return ""

    def shown(found: re.Match[str]) -> str:
        at = int(found[1]) - 1
        above = steps.get(at, step)
        return _written(counts.get(at, above.start), "decimal" if step.legal else above.form)

    return _PLACE.sub(shown, step.text).strip()


def _written(count: int, form: str) -> str:
    if form.endswith("Letter") and count > 0:
        letter = chr(ord("a") + (count - 1) % 26) * min((count - 1) // 26 + 1, 9)
        return letter.upper() if form.startswith("upper") else letter
    if form.endswith("Roman") and 0 < count < 4000:
        return _roman(count).upper() if form.startswith("upper") else _roman(count)
    if form == "decimalZero":
        return f"{count:02}"
    return "" if form in ("bullet", "none") else str(count)


def _roman(count: int) -> str:
    written = ""
    for worth, sign in zip(
        (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1),
        ("m", "cm", "d", "cd", "c", "xc", "l", "xl", "x", "ix", "v", "iv", "i"),
        strict=True,
    ):
        written += sign * (count // worth)
        count %= worth
    return written
