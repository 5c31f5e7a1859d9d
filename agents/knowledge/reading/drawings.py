"""Pictures, charts, diagrams and formulas of a Word file: what can be read of them, and what can't."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from .blocks import Block, Row
from .package import RELATIONSHIPS, Element, W

A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
C = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
DGM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}"
M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
VML = "{urn:schemas-microsoft-com:vml}"
WP = "{http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing}"
ID = f"{{{RELATIONSHIPS}}}"

ALTERNATE = MC + "AlternateContent"
BOX = W + "txbxContent"
CHART = C + "chart"
NEWER_CHART = "{http://schemas.microsoft.com/office/drawing/2014/chartex}chart"
DIAGRAM = DGM + "relIds"
FORMULA = M + "oMath"
IMAGE, OLDER_IMAGE = A + "blip", VML + "imagedata"
INK = "{http://schemas.microsoft.com/office/word/2010/wordml}contentPart"
LETTERING = VML + "textpath"
OBJECT = "{urn:schemas-microsoft-com:office:office}OLEObject"
WORDS = (A + "t", W + "t")
KNOWN = frozenset(
    (BOX, CHART, NEWER_CHART, DIAGRAM, FORMULA, IMAGE, OLDER_IMAGE, INK, LETTERING, OBJECT, *WORDS, W + "sym")
)
_DECORATIVE = "{http://schemas.microsoft.com/office/drawing/2017/decorative}decorative"

SMALLEST = 40
"""Pixels of 1/96 inch: what is smaller on either side is an icon or a line."""
_PIXELS = {"pt": 96 / 72, "in": 96.0, "cm": 96 / 2.54, "mm": 96 / 25.4, "px": 1.0, "": 1.0}
_LENGTH = re.compile(r"(?<![\w-])(width|height):\s*([\d.]+)(pt|in|cm|mm|px|)")


@dataclass(frozen=True, slots=True)
class Picture:
    link: str
    """The relationship's id."""
    alt: str
    small: bool
    decorative: bool


def chosen(alternate: Element) -> Element | None:
    """Of a thing that is written in several ways, the first in which there is something that we know."""
    options = [*alternate.iterfind(MC + "Choice"), *alternate.iterfind(MC + "Fallback")]
    return next((option for option in options if any(each.tag in KNOWN for each in option.iter())), None)


def things(drawing: Element) -> Iterator[Element]:
    """The known elements in it, in order; what is in a text box is the box's."""
    for child in drawing:
        if child.tag == ALTERNATE:
            option = chosen(child)
            if option is not None:
                yield from things(option)
        elif child.tag in KNOWN:
            yield child
        else:
            yield from things(child)


def hidden(drawing: Element) -> bool:
    about = drawing.find(f".//{WP}docPr")
    return about is not None and about.get("hidden") in ("1", "true")


def picture(image: Element, drawing: Element) -> Picture:
    if image.tag == OLDER_IMAGE:
        shape = image.getparent()
        sides = [float(size) * _PIXELS[unit] for _, size, unit in _LENGTH.findall(shape.get("style", ""))]
        alt = shape.get("alt") or ""
        return Picture(image.get(ID + "id", ""), " ".join(alt.split()), _is_small(sides), decorative=False)
    about, extent = drawing.find(f".//{WP}docPr"), drawing.find(f".//{WP}extent")
    sides = [float(extent.get(side) or 0) / 9525 for side in ("cx", "cy")] if extent is not None else []
    own = next((each for each in image.iterancestors() if each.tag.endswith("}pic")), None)
    named = own.find(".//{*}cNvPr") if own is not None else None
    alts = (each.get(key) for each in (about, named) if each is not None for key in ("descr", "title"))
    mark = about.find(f".//{_DECORATIVE}") if about is not None else None
    return Picture(
        image.get(ID + "embed") or image.get(ID + "link") or "",
        " ".join((next(filter(None, alts), "") or "").split()),
        _is_small(sides),
        mark is not None and mark.get("val") in ("1", "true"),
    )


def _is_small(sides: list[float]) -> bool:
    return bool(sides) and min(sides) < SMALLEST


# ── charts and diagrams ───────────────────────────────────────────────────────────────────────────────────────────


def chart(root: Element) -> list[Block]:
    """Its title, and its numbers as a table; empty when the file does not keep them."""
    title = "".join(each.text or "" for each in root.iterfind(f"{C}chart/{C}title//{A}t")).strip()
    series = list(root.iter(C + "ser"))
    names = [_points(each.find(C + "tx")).get(0, "") for each in series]
    values = [_points(_first(each, "val", "yVal")) for each in series]
    labels: dict[int, str] = {}
    for each in series:
        labels = labels or _points(_first(each, "cat", "xVal"))
    places = sorted(set(labels).union(*values))
    if not any(values):
        return []
    rows: list[Row] = [("", *(name or f"{n}" for n, name in enumerate(names, start=1)))]
    rows += [(labels.get(at, ""), *(column.get(at, "") for column in values)) for at in places]
    return [Block(text) for text in [title] if text] + [Block(rows=tuple(rows), header=True)]


def _first(series: Element, *names: str) -> Element | None:
    found = (series.find(C + name) for name in names)
    return next((each for each in found if each is not None), None)


def _points(holder: Element | None) -> dict[int, str]:
    if holder is None:
        return {}
    level = holder.find(f".//{C}lvl")  # the innermost of several
    form = holder.findtext(f".//{C}formatCode") or ""
    points = {
        int(each.get("idx", 0)): _number(each.findtext(C + "v") or "", form)
        for each in (holder if level is None else level).iter(C + "pt")
    }
    return points or {i: each.text or "" for i, each in enumerate(holder.iterfind(C + "v"))}


def _number(text: str, form: str) -> str:
    if not form or form == "General":
        form = ""
    with suppress(ValueError, OverflowError):
        number = float(text)
        if "%" in form:
            return f"{number * 100:.10g}%"
        if re.search(r"[yd]", re.sub(r'"[^"]*"|\[[^\]]*\]', "", form), re.IGNORECASE):
            return f"{datetime(1899, 12, 30) + timedelta(days=number):%Y-%m-%d}"  # noqa: DTZ001 — a day, as written
        return f"{number:.10g}" if "e" not in f"{number:.10g}" else text
    return text


def diagram(root: Element) -> list[Block]:
    found = []
    for point in root.iter(DGM + "pt"):
        text = " ".join("".join(each.text or "" for each in line.iter(A + "t")) for line in point.iter(A + "p"))
        if text.strip() and point.get("type") not in ("pres", "parTrans", "sibTrans"):
            found.append(Block(f"- {' '.join(text.split())}"))
    return found


# ── formulas ──────────────────────────────────────────────────────────────────────────────────────────────────────

_PAIRS = {"f": ("/", "num", "den"), "sSup": ("^", "e", "sup"), "sSub": ("_", "e", "sub")}


def formula(element: Element) -> str:
    """On one line: (a+b)/2, x^2. What is laid out in space, such as a matrix, comes as its parts in order."""
    kind = element.tag.removeprefix(M)
    if kind == "t":
        return element.text or ""
    if kind in _PAIRS:
        sign, *names = _PAIRS[kind]
        return sign.join(_enclosed(_inner(element.find(M + name))) for name in names)
    if kind == "sSubSup":
        base, below, above = (_inner(element.find(M + name)) for name in ("e", "sub", "sup"))
        return f"{base}_{below}^{above}"
    if kind == "rad":
        degree = _inner(element.find(M + "deg"))
        return f"root({degree}, {_inner(element.find(M + 'e'))})" if degree else f"√({_inner(element.find(M + 'e'))})"
    if kind == "nary":
        operator = element.find(f"{M}naryPr/{M}chr")
        below, above, of = (_inner(element.find(M + name)) for name in ("sub", "sup", "e"))
        limits = (f"_{_enclosed(below)}" if below else "") + (f"^{_enclosed(above)}" if above else "")
        return f"{operator.get(M + 'val', '∫') if operator is not None else '∫'}{limits} {of}"
    if kind == "d":
        opening, closing = (element.find(f"{M}dPr/{M}{name}") for name in ("begChr", "endChr"))
        left = "(" if opening is None else opening.get(M + "val", "")
        right = ")" if closing is None else closing.get(M + "val", "")
        return left + ", ".join(map(_inner, element.iterfind(M + "e"))) + right
    if kind in ("mr", "m", "eqArr"):
        return "; ".join(filter(None, map(_inner, element))) if kind != "mr" else ", ".join(map(_inner, element))
    return _inner(element)


def _enclosed(text: str) -> str:
    return text if text.replace(".", "").isalnum() else f"({text})"


def _inner(element: Element | None) -> str:
    if element is None or element.tag.endswith(("Pr", "}del", "}moveFrom")):
        return ""
    return "".join(map(formula, element))
