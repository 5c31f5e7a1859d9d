"""Elements of a Word file: what they are called, say and hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from .drawings import ALTERNATE, chosen
from .package import Element, W
from .symbols import symbol

_VAL = W + "val"
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
GONE = frozenset({"del", "moveFrom", "delText", "delInstrText", "rt"})
"""Deleted, moved away, or said in other words above the line."""


def value(element: Element, path: str) -> str | None:
    """Of the `w:val` that the path leads to, as in `pPr/pStyle`; None where it leads nowhere."""
    found = element.find(_clark(path)) if element is not None else None
    return None if found is None else str(found.get(_VAL, ""))


@lru_cache(None)
def _clark(path: str) -> str:
    return "/".join(W + step for step in path.split("/"))


def on(element: Element, path: str) -> bool | None:
    """Of a switch; None where it is not mentioned."""
    found = value(element, path)
    return None if found is None else found not in ("0", "false", "off", "none")


def number(text: str | None, default: int = 0) -> int:
    try:
        return int(text or "")
    except ValueError:
        return default


def name_of(element: Element) -> str:
    """Of Word's own elements; empty for others."""
    tag = element.tag
    return str(tag[len(W) :]) if isinstance(tag, str) and tag.startswith(W) else ""


def content_of(element: Element) -> Sequence[Element] | Element:
    """What is to be read of it."""
    if element.tag == ALTERNATE:
        found = chosen(element)
    elif name_of(element) == "sdt":
        found = element.find(W + "sdtContent")
    elif name_of(element) == "ruby":
        found = element.find(W + "rubyBase")
    else:
        return element
    return () if found is None else found


def children_of(parent: Element, name: str) -> Iterator[Element]:
    """Rows of a table and cells of a row, whatever they are wrapped in."""
    for child in parent:
        found = name_of(child)
        if found == name:
            yield child
        elif found not in GONE and not found.endswith("Pr"):
            yield from children_of(content_of(child), name)


def text_of(element: Element, name: str) -> str | None:
    match name:
        case "t":
            return " ".join((element.text or "").splitlines()) if "\n" in (element.text or "") else element.text or ""
        case "tab" | "ptab":
            return "\t"
        case "br" | "cr":
            return "\n"
        case "noBreakHyphen":
            return "-"
        case "sym":
            return symbol(element.get(W + "font", ""), element.get(W + "char", ""))
    return None


def raised(before: str, text: str) -> str:
    """84 with a raised 1 after it is not 841."""
    return text.translate(_RAISED) if before[-1:].isdecimal() and text.strip().isdecimal() else text


def is_placeholder(control: Element) -> bool:
    """“Click here to enter text” is nothing that anybody wrote."""
    return bool(on(control, "sdtPr/showingPlcHdr"))


def runs_on(properties: Element | None) -> bool:
    """The end of the paragraph was deleted, or it is a large first letter: the next one goes on."""
    if properties is None:
        return False
    frame = properties.find(W + "framePr")
    if frame is not None and frame.get(W + "dropCap") in ("drop", "margin"):
        return True
    return any(properties.find(f"{W}rPr/{W}{name}") is not None for name in ("del", "moveFrom"))


def chosen_in(form: Element | None) -> str:
    """Of an old form's list or box to tick."""
    if form is None:
        return ""
    if (box := form.find(W + "checkBox")) is not None:
        state = on(box, "checked")
        return "☒" if (on(box, "default") if state is None else state) else "☐"
    entries = [each.get(W + "val", "") for each in form.iterfind(f"{W}ddList/{W}listEntry")]
    picked = number(value(form, "ddList/result"))
    return entries[picked] if 0 <= picked < len(entries) else ""


def code_of(instruction: str) -> str:
    return instruction.split(maxsplit=1)[0].upper() if instruction.strip() else ""


def has_bit(hexadecimal: str | None, bit: int) -> bool:
    try:
        return bool(int(hexadecimal or "0", 16) & bit)
    except ValueError:
        return False
