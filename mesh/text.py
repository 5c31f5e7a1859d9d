"""Text as every index, ranking and quotation in the mesh sees it: words, sentences, sparse vectors."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Literal
from zlib import crc32

import regex
import snowballstemmer

from mesh.languages import APOSTROPHES, FUNCTION_WORDS
from mesh.languages import language as language  # asked for here

Kind = Literal["sentence", "item", "row", "heading"]

# BM25 weights: chosen by measurement (docs/benchmarks.md). The average is fixed, because a document's vector
# must not depend on the other documents; it is that of a chunk of up to 800 characters.
K1 = 0.9
B = 0.4
AVERAGE_WORDS = 100.0


@dataclass(frozen=True, slots=True)
class Span:
    """`text[start:end]`; never empty, never with white space at either end."""

    start: int
    end: int
    kind: Kind = "sentence"

    def of(self, text: str) -> str:
        return text[self.start : self.end]


# --- words -------------------------------------------------------------------------------------------------

_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}ー\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_WORD = regex.compile(
    rf"""
      (?P<number> \p{{Nd}}+ (?: [.,٬٫] \p{{Nd}}+ )* )
    | (?P<unspaced> [{_UNSPACED}]+ )
    | (?P<word> [[\p{{L}}\p{{M}}\p{{N}}]--[{_UNSPACED}]]+ (?: ' [\p{{L}}\p{{M}}]+ )* )
    """,
    regex.VERBOSE | regex.V1,
)
_PLAIN_WORD = re.compile(r"(\d+(?:[.,]\d+)*)|()([a-z0-9]+(?:'[a-z]+)*)", re.ASCII)
_THOUSANDS = regex.compile(r"(\d{1,3}(?:([.,٬])\d{3})(?:\2\d{3})*)((?!\2)[.,٫]\d+)?")
_SHORTEST_STEM = 4  # Canada is not can
_DEVANAGARI = regex.compile(r"\p{Devanagari}")
_LATIN = regex.compile(r"\p{Latin}")
_MARKS = regex.compile(r"\p{Mn}+")
_ARABIC_OPTIONAL = regex.compile(r"[\u064b-\u065f\u0670\u0640]")  # vowel signs and the stretching line


def _number(written: str) -> str:
    """1,200.50 and 1.200,50 and १,२००.५० are one term; 12.30 stays as it is."""
    number = "".join(str(unicodedata.digit(c)) if c.isdecimal() else c for c in written)
    if grouped := _THOUSANDS.fullmatch(number):
        whole, _, fraction = grouped.groups(default="")
        return str(regex.sub(r"\D", "", whole)) + (f".{fraction[1:]}" if fraction else "")
    return number


def _stem(word: str, language: str) -> str:
    # A stemmer holds the word that it works on, so one is made for each word: threads share nothing.
    return str(snowballstemmer.stemmer(language).stemWord(word))


@lru_cache(maxsize=1 << 16)
def _normal(word: str) -> str:
    """A word that is not in a script without spaces: apostrophes resolved, accents off Latin, stemmed.

    The English stemmer and then the Spanish one serve every Latin language, so that a question needs no guess about its
    own: measured, the second gives Spanish all that it would have by itself, and takes nothing from English.
    """
    if not word.isascii():
        word = _ARABIC_OPTIONAL.sub("", word)
        if _DEVANAGARI.match(word):
            return _stem(word, "hindi")
        if not _LATIN.match(word):
            return word
        word = _unaccented(word)
    if not (word.isascii() and word.isalpha()):
        return word
    stem = _stem(word, "english")
    shorter = _stem(stem, "spanish")
    return shorter if len(shorter) >= _SHORTEST_STEM and shorter not in _silent() else stem


def _unaccented(word: str) -> str:
    return unicodedata.normalize("NFC", _MARKS.sub("", unicodedata.normalize("NFD", word)))


@lru_cache(maxsize=1)
def _silent() -> frozenset[str]:
    """What no content word may be shortened to: a theme is not them."""
    return frozenset(_unaccented(word) for listed in FUNCTION_WORDS.values() for word in listed.casefold().split())


def _split_apostrophes(word: str) -> Iterator[str]:
    head, quote, tail = word.partition("'")
    if not quote:
        yield word
    elif tail == "s":  # the hotel's
        yield head
    elif len(head) <= 2 and len(tail) > 2:  # l'hotel, d'eau
        yield head
        yield from _split_apostrophes(tail)
    else:  # don't, o'clock
        yield word.replace("'", "")


def words(text: str) -> list[str]:
    """Index terms in reading order: case, width, accents of Latin, digits' script and endings levelled.

    Scripts without spaces between words (and Hangul) give overlapping pairs of characters.
    """
    text = unicodedata.normalize("NFKC", text.translate(APOSTROPHES)).casefold()
    found: list[str] = []
    for number, unspaced, word in _plain_tokens(text) if text.isascii() else _WORD.findall(text):
        if word:
            found += _terms(word)
        elif number:
            found.append(_number(number))
        else:
            found += [unspaced[i : i + 2] for i in range(len(unspaced) - 1)] or [unspaced]
    return found


@lru_cache(maxsize=1 << 16)
def _terms(word: str) -> tuple[str, ...]:
    return tuple(term for part in _split_apostrophes(word) if (term := _normal(part)))


def _plain_tokens(text: str) -> list[tuple[str, str, str]]:
    """As `_WORD` finds them in ASCII, in half the time."""
    return _PLAIN_WORD.findall(text)


# --- sparse vectors ----------------------------------------------------------------------------------------


def _index(term: str) -> int:
    return crc32(term.encode())


def sparse_document(text: str) -> tuple[list[int], list[float]]:
    """BM25's share of the document; the server multiplies by inverse document frequency (Modifier.IDF)."""
    counts = Counter(_index(term) for term in words(text))
    indices = sorted(counts)
    return indices, [term_weight(counts[i], counts.total()) for i in indices]


def term_weight(count: int, length: int) -> float:
    """Of a term that is `count` times among the `length` of a text."""
    return count * (K1 + 1) / (count + K1 * (1 - B + B * length / AVERAGE_WORDS))


def sparse_query(text: str) -> tuple[list[int], list[float]]:
    """Each content word once; all words where there is no content word, so that "who are you" finds."""
    indices = sorted({_index(term) for term in (content_words(text) or words(text))})
    return indices, [1.0] * len(indices)


# --- function words ----------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _function_words_of() -> dict[str, frozenset[str]]:
    return {code: frozenset(words(listed)) for code, listed in FUNCTION_WORDS.items()}


@lru_cache(maxsize=1)
def function_words() -> frozenset[str]:
    """Index terms that say nothing about a subject, of the languages that we know."""
    return frozenset().union(*_function_words_of().values())


def content_words(text: str) -> list[str]:
    """`words` without function words."""
    silent = function_words()
    return [term for term in words(text) if term not in silent]


# --- sentences ---------------------------------------------------------------------------------------------

_LINE = regex.compile(r"[^\r\n]+")
_HEADING = regex.compile(r"[ ]{0,3}\#{1,6}(?:\s|$)")
_ITEM = regex.compile(r"\s*(?:[-*+•·▪◦‣●○–—]|\(?\p{Nd}{1,3}[.)]|\(?\p{Ll}\))\s+(?=\S)")
_ROW = regex.compile(r"\s*\|.*|.*\S\s\|\s.*|.*\S\t+\S.*")
_RULED = frozenset("|:+-=_*~` \t")
_FIELD = regex.compile(r"[\p{Lu}\p{Lo}\p{N}][^:：.!?।\n]{0,40}[:：]\s")
_STOP = regex.compile(
    r"""(?: (?<![.!?…]) [.!?…]++ ["'”’»)\]*_]*+ (?= \s | $ )
          | [।॥؟۔。！？｡؛]++ ["'”’»)\]」』）*_]*+ )""",
    regex.VERBOSE,
)
_LAST_WORD = regex.compile(r"[^\s(\[\"'“¿¡|:*_]*$")


def _set(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


_TITLES = _set(
    """mr mrs ms dr prof sr sra srta dra st jr gen col capt lt sgt rev hon gov sen rep pres ud uds vd approx
    aprox vs viz al incl excl dept llc av ave avda blvd rd apt dpto eg ie cf ej डॉ श्री प्रो रु rs"""
)
_COUNTED = _set(  # abbreviations only before a number: "no. 5", but "we said no. Then"
    """no nos nr num núm pág pag pp vol fig ref art sec ch cap ext max min est ca tel
    jan feb mar apr jun jul aug sep sept oct nov dec"""
)
_LONG_UNIT = 320  # characters; a longer bullet is cut into its sentences


def _ends_sentence(text: str, start: int, mark: int, after: int, end: int) -> bool:
    """Whether the stop at `text[mark:after]` closes the sentence that began at `start`."""
    following = text[after : after + 20].lstrip()
    if after >= end or not following:
        return True
    if text[mark] in ".!?…" and following[0].islower():
        return False
    if text[mark : mark + 2].rstrip() != ".":
        return True
    found = _LAST_WORD.search(text[max(start, mark - 20) : mark])
    last = found.group().casefold() if found else ""
    if last in {"a.m", "p.m", "etc", "inc", "ltd", "co"}:
        return following[0].isupper()
    if last in _TITLES or ("." in last and last.replace(".", "").isalpha()):
        return False
    if last in _COUNTED:
        return not following[0].isdecimal()
    return not (len(last) == 1 and last.isascii() and last.isalpha() and following[0].isupper())  # J. Smith


def _is_rule(line: str) -> bool:
    written = line.strip()
    return _RULED.issuperset(written) and ("-" in written if "|" in written else len(written) > 2)


def _trimmed(text: str, start: int, end: int, kind: Kind) -> Iterator[Span]:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if start < end:
        yield Span(start, end, kind)


def _prose(text: str, start: int, end: int, kind: Kind) -> Iterator[Span]:
    begin = start
    for stop in _STOP.finditer(text, start, end):
        if _ends_sentence(text, begin, stop.start(), stop.end(), end):
            yield from _trimmed(text, begin, stop.end(), kind)
            begin = stop.end()
    yield from _trimmed(text, begin, end, kind)


def _breaks(text: str, lines: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Joins the lines that only a page's width broke; a line that ends early ends what it says."""
    width = max(end - start for start, end in lines)
    begin = lines[0][0]
    for (start, end), (following, limit) in pairwise(lines):
        first = len(text[following:limit].split(maxsplit=1)[0])
        if width < 40 or end - start + 1 + first < 0.75 * width or _FIELD.match(text, following, limit):
            yield begin, end
            begin = following
    yield begin, lines[-1][1]


def sentences(text: str) -> list[Span]:
    """Sentences, list items, table rows and headings of any script, in order and without overlap.

    Table rules and underlines belong to no span.
    """
    spans: list[Span] = []
    block: list[tuple[int, int]] = []
    kind: Kind = "sentence"

    def close() -> None:
        nonlocal kind
        if block:
            if kind == "item" and block[-1][1] - block[0][0] <= _LONG_UNIT:
                spans.extend(_trimmed(text, block[0][0], block[-1][1], "item"))
            elif kind == "item":
                spans.extend(_prose(text, block[0][0], block[-1][1], "item"))
            else:
                for start, end in _breaks(text, block):
                    spans.extend(_prose(text, start, end, "sentence"))
        block.clear()
        kind = "sentence"

    reached = 0
    for line in _LINE.finditer(text):
        start, end = line.span()
        if text.count("\n", reached, start) > 1 or not line.group().strip():
            close()
        reached = end
        if not line.group().strip():
            continue
        if _is_rule(line.group()):
            if len(block) == 1 and kind == "sentence" and line.group().strip()[0] in "=-":
                (title,) = block
                block.clear()
                spans.extend(_trimmed(text, *title, "heading"))
            close()
        elif _HEADING.match(line.group()):
            close()
            spans.extend(_trimmed(text, start, end, "heading"))
        elif _ROW.fullmatch(line.group()):
            close()
            spans.extend(_trimmed(text, start, end, "row"))
        elif _ITEM.match(line.group()):
            close()
            kind = "item"
            block.append((start, end))
        else:
            if kind == "item" and not (line.group()[0].isspace() or line.group()[0].islower()):
                close()
            block.append((start, end))
    close()
    return spans


# --- names of files ----------------------------------------------------------------------------------------

_NUMBERED = regex.compile(r"\b(?:img|dsc[nf]?|dcim|pxl|vid|ptt|aud|doc|scan|wa)(?=[-_ ]*\p{Nd})", regex.IGNORECASE)
_SAYS = regex.compile(rf"[\p{{L}}\p{{M}}]{{3}}|[{_UNSPACED}]")


def telling(stem: str) -> str:
    """A file's name, if it says anything: `Guest guide` does, and `IMG_2044` or `c00012` does not."""
    return stem if _SAYS.search(_NUMBERED.sub("", stem)) else ""


def under_names(file: str, heading_path: Iterable[str], text: str) -> str:
    """What a passage's words are: its own below those of its file's name and its headings."""
    return " ".join((telling(PurePosixPath(file).stem), *heading_path)) + f"\n{text}"


def clipped(text: str, limit: int) -> str:
    """At most `limit` characters; what was cut off shows as an ellipsis."""
    return text if len(text) <= limit else text[: max(0, limit - 1)].rstrip() + "…"
