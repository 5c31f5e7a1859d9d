"""What an acronym stands for, as the documents themselves say it: "service level agreement (SLA)", "SLA (service level
agreement)"."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import regex

_MARK = r"\p{Lu}[\p{Lu}\p{N}&]{0,5}\p{Lu}s?"
_AFTER = regex.compile(rf"(?P<long>(?:[\p{{L}}\p{{M}}'’]+[ \n-]+){{2,9}})\((?P<short>{_MARK})\)")
_BEFORE = regex.compile(rf"\b(?P<short>{_MARK}) \((?P<long>[\p{{L}}\p{{M}}'’]+(?:[ \n-]+[\p{{L}}\p{{M}}'’]+){{1,8}})\)")
_SHORT = regex.compile(rf"\b{_MARK}\b")
_WORD = regex.compile(r"[\p{L}\p{M}'’]+")
_SMALL = frozenset(
    ("a", "an", "and", "of", "the", "for", "in", "on", "to", "de", "del", "la", "el", "los", "las", "y", "e")
)


def definitions(texts: Iterable[str]) -> dict[str, str]:
    """The long form of each acronym; the first one where two are told."""
    found: dict[str, str] = {}
    for text in texts:
        if "(" not in text:
            continue
        for match in (*_AFTER.finditer(text), *_BEFORE.finditer(text)):
            short = _bare(match["short"])
            if long := _of_initials(
                short, match["long"].split() if "-" not in match["long"] else _WORD.findall(match["long"])
            ):
                found.setdefault(short, long)
    return found


def _bare(short: str) -> str:
    return short[:-1] if short.endswith("s") else short


def _of_initials(short: str, words: list[str]) -> str | None:
    """The last words, from the one that begins with the first letter, if all letters are initials in their order."""
    letters = [letter.casefold() for letter in short if letter.isalpha()]
    for begin in range(len(words) - 2, -1, -1):
        chosen = words[begin:]
        if chosen[0][0].casefold() != letters[0]:
            continue
        initials = [word[0].casefold() for word in chosen if word.casefold() not in _SMALL]
        if letters in (initials, [word[0].casefold() for word in chosen]):
            return " ".join(chosen)
    return None


def acronyms_in(question: str) -> list[str]:
    return list(dict.fromkeys(_bare(found) for found in _SHORT.findall(question)))


def expanded(question: str, known: Mapping[str, str]) -> str:
    """With the long form of each acronym that does not have it beside it; the question itself where there is none."""
    folded = " ".join(question.casefold().split())
    more = [known[short] for short in acronyms_in(question) if short in known and known[short].casefold() not in folded]
    return f"{question} ({', '.join(more)})" if more else question
