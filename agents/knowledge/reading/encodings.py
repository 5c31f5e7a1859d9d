"""Which encoding a text is in, when neither a mark at its start nor UTF-8 says so: each candidate decodes it, and the
one whose letters are those of a language wins. Measured against charset-normalizer in docs/decisions/0012."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

SAMPLE = 1 << 16
"""Bytes that are looked at."""
SURE = 0.8
"""Of a score: 1 when every letter beyond ASCII is one of the language's."""
NARROW = 0.05

_LATIN = {
    "cp1252": (
        "äöüß", "éèêëàâçîïôùûœæ", "áéíóúñü", "áâãàçéêíóôõú", "àèéìòù", "åäöéæø", "áéíóúýþæöð", "éëïöüóè",
        "äöõüšž",
    ),
    "cp1250": ("ąćęłńóśźż", "áčďéěíňóřšťúůýž", "áéíóöőúüű", "ăâîşţșț", "čćđšž", "áäčďéíĺľňóôŕšťúýž", "ëç"),
    "iso8859-2": ("ąćęłńóśźż", "áčďéěíňóřšťúůýž", "áéíóöőúüű"),
    "cp1254": ("çğıöşüâî",),
    "cp1257": ("āčēģīķļņšūž", "ąčęėįšųūž", "äöõüšž"),
    "iso8859-15": ("äöüß", "éèêëàâçîïôùûœ"),
    "cp850": ("äöüß", "éèêëàâçîïôùû", "áéíóúñü", "áâãàçéêíóôõú", "åäöæø"),
    "mac-roman": ("äöüß", "éèêëàâçîïôùûœ", "áéíóúñü", "áâãàçéêíóôõú", "åäöæø"),
}  # fmt: skip
_RUSSIAN = "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфёъ"
_CYRILLIC = (
    _RUSSIAN,
    "оанивтерскдлупмзябгїьчхцюжйєшщфґі",
    "аионерстувкјлдмпгзбшчцћжњђљхфџ",
    "аиоетнрсвлдпкгмзъубщчяшцжйхюфь",
)
_GREEK = "αοιετνσηυρπκμλςωίόάγέήδύθφβώχξζψϊϋΐΰ"
_OTHERS = {  # the commonest letters first
    "cp1251": _CYRILLIC,
    "koi8-r": (_RUSSIAN,),
    "koi8-u": _CYRILLIC[1:2],
    "cp866": (_RUSSIAN,),
    "iso8859-5": _CYRILLIC,
    "mac-cyrillic": _CYRILLIC[:2],
    "cp1253": (_GREEK,),
    "iso8859-7": (_GREEK,),
    "cp1255": ("יוהלאתרמבשנעדכחפקסטםןזגצךףץ" + "".join(map(chr, (*range(0x5B0, 0x5C4), *range(0x5F0, 0x5F5)))),),
    "cp1256": ("اليمنوترةبدعسفهكقأحجشطصخضىذزثئغءظإؤآپچژگ،؛؟ًٌٍَُِّْ",),
    "cp874": ("".join(map(chr, (*range(0xE01, 0xE3B), *range(0xE40, 0xE4F)))),),
}
_WIDE = ("cp949", "cp932", "euc_jp", "gb18030", "big5hkscs")
_CANDIDATES = (*_LATIN, *_OTHERS, *_WIDE)
"""Of equals the first is taken."""
_LETTERS = 33
"""Of an alphabet; what comes after them is rare."""
_RARE = {"iso8859-2": 0.97, "cp1257": 0.97, "cp850": 0.96, "mac-roman": 0.94, "koi8-u": 0.97, "mac-cyrillic": 0.85}
_PUNCTUATION = frozenset("“”„‘’‚«»‹›–—…•·€£¥§©®™°±²³¹½¼¾×÷ºª¿¡№´µ\u00a0")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Guess:
    encoding: str
    score: float
    doubtful: bool


def guess(raw: bytes) -> Guess | None:
    """None when it is text in no encoding that is known here."""
    sample = _sample(raw)
    scores = sorted(
        (
            (score, -place, encoding)
            for place, encoding in enumerate(_CANDIDATES)
            if (score := _score(sample, encoding))
        ),
        reverse=True,
    )
    if not scores or scores[0][0] <= 0.2:
        return None
    best, _, encoding = scores[0]
    said = _decoded(sample, encoding)
    others = [score for score, _, other in scores[1:] if score > best - NARROW and _decoded(sample, other) != said]
    close = bool(others) and not (encoding == "cp1252" and best >= SURE)  # the commonest by far: a tie is its own
    return Guess(encoding, best, best < SURE or close)


def _sample(raw: bytes) -> bytes:
    """The start, and no half line of it unless there is only one."""
    if len(raw) <= SAMPLE:
        return raw
    return raw[: raw.rfind(b"\n", 0, SAMPLE) + 1] or raw[:SAMPLE]


def _decoded(sample: bytes, encoding: str) -> str | None:
    try:
        return sample.decode(encoding)
    except UnicodeDecodeError as error:
        if encoding in _WIDE and error.start > len(sample) - 4 >= SAMPLE - 8:
            return sample[: error.start].decode(encoding, "ignore")
        if encoding not in _WIDE and error.reason.startswith("character maps"):
            loose = sample.decode(encoding, "replace")
            return loose if loose.count("�") * 100 < sum(byte > 0x7F for byte in sample) else None
        return None


def _score(sample: bytes, encoding: str) -> float:
    text = _decoded(sample, encoding)
    if text is None:
        return 0
    if encoding in _WIDE:
        return _wide_score(text, encoding)
    alphabets = _LATIN.get(encoding) or _OTHERS[encoding]
    marks, other = _tally(text)
    beyond = sum(marks.values())
    if not beyond:
        return 0
    weights = [_weights(alphabet, encoding in _OTHERS and encoding != "cp874") for alphabet in alphabets]
    known = max(sum(count * worth.get(mark, 0) for mark, count in marks.items()) for worth in weights)
    if encoding == "cp1252":  # in several languages
        known = max(known, 0.85 * sum(count for mark, count in marks.items() if any(mark in each for each in weights)))
    known += sum(marks[mark] for mark in _PUNCTUATION) if encoding not in ("cp850", "mac-roman") else 0
    if encoding in _LATIN:  # there, letters beyond ASCII stand alone
        other += 0.3 * sum(a != b and min(a, b) > "\x7f" and a.isalpha() and b.isalpha() for a, b in pairwise(text))
    return min((known - other) / beyond, 1) * _RARE.get(encoding, 1)


@cache
def _weights(alphabet: str, ordered: bool) -> dict[str, float]:
    """Of the letters, small and capital; of a whole alphabet the common ones count more, 1 on the average of a text."""
    worth = {letter: 1.12 - 0.5 * min(at / _LETTERS, 1.2) if ordered else 1 for at, letter in enumerate(alphabet)}
    return worth | {letter.upper(): weight for letter, weight in worth.items() if len(letter.upper()) == 1}


def _tally(text: str) -> tuple[Counter[str], float]:
    """Characters beyond ASCII, and what speaks against them: capitals within words, words of two scripts."""
    marks = Counter(character for character in text if character > "\x7f")
    against = 0.0
    for word in _WORD.findall(text):
        if word.isascii():
            continue
        against += sum(2 for before, after in pairwise(word) if before.islower() and after.isupper())
        scripts = {_script(letter) for letter in word if letter.isalpha()}
        against += 2 * (len(scripts) - 1) if scripts else 0
        if len(word) > 1 and word[0].islower() and word[1:].isupper():
            against += 2
    against += sum(count for mark, count in marks.items() if unicodedata.category(mark) in ("Cc", "Co", "Cn"))
    against += sum(0.5 * count for before_after, count in _within(text).items() if before_after)
    return marks, against


def _within(text: str) -> Counter[str]:
    """Signs between two letters, where a letter is meant: caf‚s."""
    return Counter(
        sign
        for before, sign, after in zip(text, text[1:], text[2:], strict=False)
        if sign > "\x7f" and not sign.isalnum() and before.isalpha() and after.isalpha() and sign not in "’'·\u00a0–—"
        and not unicodedata.combining(sign)
    )  # fmt: skip


def _script(letter: str) -> str:
    return "" if letter in "ªº" else unicodedata.name(letter, "?").partition(" ")[0]


def _wide_score(text: str, encoding: str) -> float:
    """Of what two bytes say: how much of it is common. Kana and the first level of each standard are."""
    beyond = [character for character in text if character > "\x7f"]
    if not beyond:
        return 0
    mixed = sum(2 for pair in pairwise(text) if _is_latin_beside_wide(*pair))
    score = (sum(_commons(beyond, encoding)) - mixed) / len(beyond)
    low = any(character.encode(encoding)[-1] < 0x80 for character in beyond)
    return score if low or encoding != "big5hkscs" else score * 0.9  # a third of its characters end so


def _is_latin_beside_wide(before: str, after: str) -> bool:
    """fr꼒 is no word; “3カット” and “PC用” are."""
    return before.isascii() and before.islower() and "\u4e00" <= after <= "\ud7a3"


def _commons(characters: list[str], encoding: str) -> Iterator[float]:
    for character in characters:
        code = ord(character)
        if 0xFF61 <= code <= 0xFF9F:  # half-width kana: one byte
            yield -0.5
        elif 0x3041 <= code <= 0x30FE:
            yield 1 if encoding in ("cp932", "euc_jp") else 0
        elif 0x3000 <= code <= 0x303F or 0xFF00 <= code <= 0xFF60 or character in "“”‘’—…·、。":
            yield 0.7
        elif 0xAC00 <= code <= 0xD7A3:
            yield (1 if min(character.encode("cp949")) > 0xA0 else -0.5) if encoding == "cp949" else -1
        elif 0x4E00 <= code <= 0x9FFF:
            yield _common_ideograph(character, encoding)
        else:
            yield -1


def _common_ideograph(character: str, encoding: str) -> float:
    try:
        first, *_ = character.encode(encoding)
    except UnicodeEncodeError:
        return -1
    match encoding:
        case "gb18030":
            return 0.93 if 0xB0 <= first <= 0xD7 and _common_bytes(character, "gb2312") else -0.5
        case "big5hkscs":
            return 0.98 if 0xA4 <= first <= 0xC6 else -0.3
        case "cp932":
            return 0.92 if 0x88 <= first <= 0x97 else -0.3
        case "euc_jp":
            return 0.92 if 0xB0 <= first <= 0xCF else -0.3
    return -0.3  # Hanja in Korean


@cache
def _common_bytes(character: str, standard: str) -> bool:
    try:
        return bool(character.encode(standard))
    except UnicodeEncodeError:
        return False
