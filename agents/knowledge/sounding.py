"""Names across scripts: the consonants of a word, roughly as they sound. मैनहट्टन and Manhattan are both `mnhtn`.

Only for lifting one found passage over another: far too rough to say that two words are one."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import lru_cache

import regex

_SOUNDS = {
    "k": "कखкκ",
    "g": "गघгγ",
    "c": "चछч",
    "j": "जझжзζ",
    "t": "टठतथтτθ",
    "d": "डढदधдδ",
    "n": "नणङञंँнν",
    "p": "पпπ",
    "f": "फфφ",
    "b": "बभбβ",
    "m": "मмμ",
    "r": "रрρ",
    "l": "लळлλ",
    "v": "ववв",
    "s": "सशषсшщцσς",
    "h": "हхχ",
    "ks": "ξ",
    "ps": "ψ",
}
_SOUND = {ord(letter): sound for sound, letters in _SOUNDS.items() for letter in letters}
_ELSEWHERE = regex.compile(r"[\p{Devanagari}\p{Cyrillic}\p{Greek}]")
_WORD = regex.compile(r"[\p{L}\p{M}]+")
_VOICED = ("ज\u093c", "स")  # as in pizza: English spells it with an s as often as with a z
_SPELLED = (
    *(("ch", "c"), ("sh", "s"), ("th", "t"), ("ph", "f"), ("gh", "g"), ("kh", "k"), ("bh", "b"), ("dh", "d")),
    *(("x", "ks"), ("q", "k"), ("w", "v"), ("z", "s")),
)
_SOFT = regex.compile("c(?=[eiy])")
_HARD = regex.compile("c(?![eiyh])")
_SILENT = regex.compile("[^bcdfghjklmnprstv]+")
_TWICE = regex.compile(r"(.)\1+")


@dataclass(frozen=True, slots=True)
class Sounds:
    """The skeletons of a text's words, of two consonants and more, by script."""

    latin: frozenset[str]
    other: frozenset[str]

    def shared(self, others: Sounds) -> frozenset[str]:
        """What one has in Latin, and the other in another script."""
        return (self.latin & others.other) | (self.other & others.latin)


@lru_cache(maxsize=4096)
def is_latin_alone(text: str) -> bool:
    return not _ELSEWHERE.search(text)


@lru_cache(maxsize=4096)
def sounds(text: str) -> Sounds:
    latin: set[str] = set()
    other: set[str] = set()
    for word in _WORD.findall(text.casefold()):
        if len(found := skeleton(word)) > 1:
            (other if _ELSEWHERE.match(word) else latin).add(found)
    return Sounds(frozenset(latin), frozenset(other))


@lru_cache(maxsize=1 << 15)
def skeleton(word: str) -> str:
    """Of one folded word; empty where none of its letters is known."""
    bare = unicodedata.normalize("NFD", word)
    if _ELSEWHERE.match(bare):
        sounds = "".join(_SOUND.get(ord(letter), "") for letter in bare.replace(*_VOICED))
    else:
        sounds = _HARD.sub("k", _SOFT.sub("s", bare))
        for written, sound in _SPELLED:
            sounds = sounds.replace(written, sound)
        sounds = _SILENT.sub("", sounds)
    return str(_TWICE.sub(r"\1", sounds))
