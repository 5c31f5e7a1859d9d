"""Docling's text in the place of ours, part by part, where it was asked for and is as complete.

Our own reader comes first: what it refuses is refused, what it leaves out (a hidden sheet) is left out, and a part
whose text Docling has not, or has not all of, keeps ours. `how` of each part says which it was.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from . import LONGEST_TEXT, Parts
from .files import DOCX, PPTX, XLSX

KINDS = {
    "application/pdf": "pdf",
    DOCX: "docx",
    PPTX: "pptx",
    XLSX: "xlsx",
    "text/html": "html",
    "text/markdown": "md",
}
"""What the extra reads."""
BY_DOCLING = "docling"
FAILED = "not by docling: it failed"
ABSENT = "not by docling: it is not installed"
FEWER_WORDS = "not by docling: it had fewer words"
MOST_MISSED = 0.02
"""Of the words that we have."""

_CHILD = (sys.executable, "-I", str(Path(__file__).parent.parent / "docling_child.py"))
_WORD = re.compile(r"[^\W_]+")
_TITLE = re.compile(r"# .*")


def instead(raw: bytes, media_type: str, parts: Parts) -> Parts:
    kind = KINDS.get(media_type)
    if kind is None:
        return parts
    written = _converted(raw, kind)
    if isinstance(written, str):
        return [_noted(part, written) if part[1] else part for part in parts]
    return [_chosen(part, written.get(part[0], "")) if part[1] else part for part in parts]


def _converted(raw: bytes, kind: str) -> dict[str, str] | str:
    """By label, or why there is nothing."""
    ended = subprocess.run([*_CHILD, kind], input=raw, capture_output=True, check=False)
    if ended.returncode:
        return ABSENT if b"No module named 'docling" in ended.stderr[-2000:] else FAILED
    written: dict[str, str] = json.loads(ended.stdout)
    return written if sum(map(len, written.values())) <= LONGEST_TEXT else FAILED


def _chosen(part: tuple[str, ...], text: str) -> tuple[str, ...]:
    label, ours, trouble, *_ = part
    title = _TITLE.match(ours)
    if title and label and title.group() not in text:
        text = f"{title.group()}\n\n{text}"  # a sheet's name is none of its cells
    words = _words(ours)
    if len(words - _words(text)) > MOST_MISSED * len(words):
        return _noted(part, FEWER_WORDS)
    return label, text, trouble, BY_DOCLING


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))


def _noted(part: tuple[str, ...], why: str) -> tuple[str, ...]:
    label, text, trouble, *how = part
    return label, text, trouble, "; ".join([*how, why])
