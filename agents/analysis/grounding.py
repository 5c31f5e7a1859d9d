"""Whether a text says only what its evidence does: each number and each name in it must stand there."""

from __future__ import annotations

from collections.abc import Iterable

import regex

from mesh.text import words

_SENTENCE_START = regex.compile(r"(?:^|[.!?:\n•-]\s*)[\"“*_(]*$")
_NAME = regex.compile(r"\b\p{Lu}[\p{L}\p{M}’'-]+")
_NUMBER = regex.compile(r"\p{Nd}+(?:[.,٬٫:]\p{Nd}+)*")
_COMMON = frozenset(
    words(
        "I Yes No The It They There This That Monday Tuesday Wednesday Thursday Friday Saturday Sunday total together"
    )
)
_SPELLED = frozenset(
    words(
        """two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
        eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million half double
        twice Monday Tuesday Wednesday Thursday Friday Saturday Sunday January February April June July August September
        October November December"""
    )
)


def grounded(text: str, evidence: Iterable[str]) -> bool:
    """Numbers, spelled ones too, days and names; a name at the start of a sentence may be an ordinary word."""
    known = {word for piece in evidence for word in words(piece)}
    numbers = {word for match in _NUMBER.finditer(text) for word in words(match.group())}
    said = set(words(text))
    if not numbers <= known or not (said & _SPELLED) <= known:
        return False
    for match in _NAME.finditer(text):
        if _SENTENCE_START.search(text[: match.start()]):
            continue
        if not set(words(match.group())) <= known | _COMMON:
            return False
    return True
