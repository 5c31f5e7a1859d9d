"""An answer without a chat model: the words of a document that answer, or the admission that none do."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import regex

from agents.knowledge.ranking import spread
from mesh.text import Span, content_words, language, sentences, words

Vector = Sequence[float]
Embed = Callable[[Sequence[str]], Awaitable[Sequence[Vector]]]

PASSAGES_READ = 4
SENTENCES_EMBEDDED = 12
WHOLE_SECTION = 350  # characters; a section up to this is quoted whole
QUOTATION = 450  # characters; what a quotation grows to, unless one sentence is longer
ANSWERS = 0.5


@dataclass(frozen=True)
class Candidate:
    """A passage that a search found. `cosine` is None where only the lexical leg found it."""

    id: str
    text: str
    heading_path: tuple[str, ...] = ()
    source: str = ""
    """The file's name without folder and ending."""
    cosine: float | None = None
    score: float = 0.0
    """As `ranking.fuse` gave it."""

    @cached_property
    def context(self) -> str:
        return " > ".join(part for part in (regex.sub(r"[_\-]+", " ", self.source), *self.heading_path) if part)

    @cached_property
    def terms(self) -> frozenset[str]:
        return frozenset(words(f"{self.context}\n{self.text}"))


@dataclass(frozen=True, slots=True)
class Evidence:
    """Why a quotation is, or is not, taken for the answer. Coverages are None across languages."""

    sentence_cosine: float
    passage_coverage: float | None
    """Share of the question's subject words, by inverse document frequency, that the passage has; [0, 1]."""
    sentence_coverage: float | None
    wanted: int
    """1: the kind of thing asked for (a price, a time, a name) is there; 0: no kind was asked for; -1: it is
    not; -2: it is not, and nothing else would do (a telephone number)."""
    stranger: bool
    """The question names someone or some number that the sentence and its headings do not."""


@dataclass(frozen=True, slots=True)
class Extract:
    quotation: str
    passage_id: str
    confidence: float
    """In [0, 1]; from `ANSWERS` on, the quotation may be given as the answer."""
    evidence: Evidence

    @property
    def answers(self) -> bool:
        return self.confidence >= ANSWERS


@dataclass(frozen=True, slots=True)
class Judgement:
    """A logistic model over `Evidence`. Its cosine weights belong to one embedder: fit another's anew."""

    sharpness: float
    """What a cosine of 1 is worth against words when one sentence is chosen among several."""
    cosine: float
    passage_coverage: float
    sentence_coverage: float
    wanted: float
    stranger: float
    foreign: float
    bias: float

    def confidence(self, evidence: Evidence) -> float:
        if evidence.wanted <= -2:
            return 0.0
        total = self.bias + self.cosine * evidence.sentence_cosine + self.wanted * evidence.wanted
        if evidence.passage_coverage is None or evidence.sentence_coverage is None:
            total += self.foreign
        else:
            total += self.passage_coverage * evidence.passage_coverage
            total += self.sentence_coverage * evidence.sentence_coverage
            total += self.stranger * evidence.stranger
        return 1 / (1 + math.exp(-max(-40.0, min(40.0, total))))


# Fitted on tests/unit/data/answers and on halves of SQuAD 2 and XQuAD; docs/benchmarks.md has what it does on
# the other halves, and on businesses that it was not fitted on.
MULTILINGUAL_E5_SMALL = Judgement(
    sharpness=84.0,
    cosine=35.0,
    passage_coverage=2.7,
    sentence_coverage=1.6,
    wanted=0.9,
    stranger=-0.5,
    foreign=3.3,
    bias=-32.0,
)


async def extract(
    question: str,
    question_vector: Vector,
    candidates: Sequence[Candidate],
    embed: Embed,
    *,
    judgement: Judgement = MULTILINGUAL_E5_SMALL,
) -> Extract | None:
    """The best quotation from the first `PASSAGES_READ` candidates, or None where they hold no text.

    Check `.answers` before giving it as the answer.

    Args:
        candidates: best first, all that the search returned (40 or so): those that are not read still tell
            which words are rare.
        embed: vectors of unit length, embedded as passages are; called once, with up to `SENTENCES_EMBEDDED`.
    """
    asked = Question(question, candidates)
    units = [unit for candidate in candidates[:PASSAGES_READ] for unit in units_of(candidate)]
    if not units:
        return None
    units = _worth_embedding(asked, units)
    vectors = await embed([unit.embedded for unit in units])
    cosines = [_dot(question_vector, vector) for vector in vectors]
    ratings = [judgement.sharpness * cosine + asked.likeness(unit) for unit, cosine in zip(units, cosines, strict=True)]
    best = max(range(len(units)), key=lambda i: ratings[i])
    chosen = units[best]
    rated = {(unit.passage.id, unit.place): rating for unit, rating in zip(units, ratings, strict=True)}
    quotation = _quotation(asked, chosen, rated)
    evidence = asked.evidence(chosen, cosines[best], quotation)
    return Extract(quotation, chosen.passage.id, judgement.confidence(evidence), evidence)


def _dot(left: Vector, right: Vector) -> float:
    return math.fsum(float(a) * float(b) for a, b in zip(left, right, strict=True))


# --- what is asked -----------------------------------------------------------------------------------------

_NAME = r"(?<!^)(?<![.!?:] )\b\p{Lu}[\p{L}\p{M}\p{N}'’-]+"
_NUMBER_WORD = (
    r"one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|hundred|thousand|million|billion|half"
    r"|once|twice|first|una|dos|tres|cuatro|cinco|seis|siete|ocho|nueve|diez"
)
_CURRENCY = (
    r"usd|eur|gbp|inr|chf|sek|nok|dkk|isk|pln|czk|huf|ron|try|cad|aud|nzd|sgd|hkd|jpy|cny|krw|zar|ngn|kes|brl|mxn"
    r"|ars|clp|cop|aed|sar|ils|kr|rs|fr|zł|kč|r\$"
)
_MONEY = (
    rf"\p{{Sc}}\s?\d|\b(?:{_CURRENCY})\.?\s?\d"
    rf"|\d[\d.,]*\s?(?:\p{{Sc}}|%|(?:{_CURRENCY})\b|(?:dollar|euro|pound|rupee|peso|cent|franc|kron(?:or|er|e))s?\b"
    r"|p\b|pence\b)"
    r"|\bfree\b|\bgratis\b|\bno (?:extra )?(?:charge|cost)|\bwaived\b|रुपये|रुपए|मुफ़?्त|निःशुल्क"
)
_TIME = (
    r"\d{1,2}[:.h]\d\d|\d\s?(?:am|pm|a\.m|p\.m)\b|\b\d{4}\b|\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b"
    r"|\b(?:january|february|march|april|may|june|july|august|september|october|november|december)\b"
    r"|\b(?:lunes|martes|mi[eé]rcoles|jueves|viernes|s[aá]bado|domingo|enero|febrero|marzo|abril|mayo|junio"
    r"|julio|agosto|septiembre|octubre|noviembre|diciembre)s?\b"
    r"|\b(?:hour|day|week|month|year|minute|hora|d[ií]a|semana|a[nñ]o|minuto)s?\b|\bmes(?:es)?\b"
    r"|\bcentur(?:y|ies)\b|\bnoon\b|\bmidnight\b|\bdaily\b|\bclosed\b|\bcerrad[oa]\b"
    r"|बजे|घंटे|दिन|महीने|साल|मिनट|वार\b|छुट्टी|बंद"
)


@dataclass(frozen=True)
class Wish:
    """A kind of thing that questions ask for: how it is asked, and how it looks in a document."""

    asked: str
    seen: str
    only: bool = False
    cased: bool = False

    @cached_property
    def question(self) -> regex.Pattern[str]:
        return regex.compile(self.asked, regex.IGNORECASE)

    @cached_property
    def answer(self) -> regex.Pattern[str]:
        return regex.compile(self.seen, 0 if self.cased else regex.IGNORECASE)

    def met(self, text: str) -> int:
        if self.answer.search(text):
            return 1
        if self.cased and not regex.search(r"\p{Lu}|\p{Ll}", text):
            return 0  # a script without capitals shows no names
        return -2 if self.only else -1


WISHES = (
    Wish(
        r"\be-?mail address|\b(?:your|the|'s) e-?mail\b|^e-?mail\b|\b(?:su|tu|el) correo"
        r"|\bcorreo electr[oó]nico|ईमेल",
        r"\S@\S",
        only=True,
    ),
    Wish(
        r"\b(?:tele)?phone number\b|\b(?:your|the|'s) (?:tele)?phone\b|^(?:tele)?phone\b"
        r"|\bnumber (?:to|can i) call\b|\bdirect line\b"
        r"|\bn[uú]mero de tel[eé]fono\b|\b(?:su|tu|el) tel[eé]fono\b"
        r"|(?:फ़ोन|फोन|मोबाइल) नंबर",
        r"\+?\d[\d\s().-]{5,}\d",
        only=True,
    ),
    Wish(
        r"\bwhere\b|\baddress\b|\blocated\b|\bd[oó]nde\b|\bdirecci[oó]n\b|\bubicaci[oó]n\b|कहाँ|कहां|\bपता\b",
        rf"{_NAME}|\b(?:street|road|lane|avenue|floor|calle|avenida|plaza)\b|रोड|मार्ग|नगर|गली|चौक",
        cased=True,
    ),
    Wish(
        r"\bhow much\b|\bprices?\b|\bcosts?\b|\bfees?\b|\bcharged?s?\b"
        r"|\bcu[aá]nto (?:cuestan?|vale|cobran?|es|sale)\b|\bprecios?\b|\bcuestan?\b|\bvale\b|\btarifas?\b"
        r"|कीमत|दाम|फीस|फ़ीस|शुल्क|कितने का|कितने की",
        _MONEY,
    ),
    Wish(
        r"\bwhen\b|\bwhat (?:time|year|day|month|date)s?\b|\bwhich (?:year|day|month)\b"
        r"|\bhow (?:long|soon|often)\b|\bhours\b|\bcu[aá]ndo\b|\b(?:a )?qu[eé] (?:hora|d[ií]a|a[nñ]o)\b"
        r"|\bhorarios?\b|\bcu[aá]nto tiempo\b"
        r"|कब|कितने (?:बजे|समय|दिन)",
        _TIME,
    ),
    Wish(
        r"\bhow (?:many|far|old|heavy|big|large|tall|high)\b|\bcu[aá]nt[oa]s?\b|\bpercent(?:age)?\b|कितन[ेीा]",
        rf"\d|\b(?:{_NUMBER_WORD})\b|एक|दो|तीन|चार|पाँच|पांच|छह|सात|आठ|दस",
    ),
    Wish(r"\bwho(?:se|m)?\b|\bqui[eé]n(?:es)?\b|कौन|किसने|किसका", _NAME, cased=True),
)
_WRITTEN = regex.compile(r"[\p{L}\p{M}\p{N}]+(?:['’][\p{L}\p{M}]+)?")


def _alike(term: str, terms: frozenset[str]) -> float:
    """1 for the term itself, 0.8 for a relative (paediatrician, paediatrics), else 0."""
    if term in terms:
        return 1.0
    if len(term) >= 5 and term.isalpha():
        for other in terms:
            needed = max(4, math.ceil(0.6 * max(len(term), len(other))))
            if term[:needed] == other[:needed] and len(other) >= needed:
                return 0.8
    return 0.0


class Question:
    """A question against the passages that were found for it."""

    def __init__(self, text: str, candidates: Sequence[Candidate]) -> None:
        self.text = text
        self.language = language(text)
        self.wish = next((wish for wish in WISHES if wish.question.search(text)), None)
        plain = self.wish.question.sub(" ", text) if self.wish else text
        self.subject = tuple(dict.fromkeys(content_words(plain)))
        self._number = len(candidates)
        self._frequency = Counter(term for candidate in candidates for term in candidate.terms)
        self._highest = max((candidate.score for candidate in candidates), default=0.0)
        self._spread = spread({c.id: c.cosine for c in candidates if c.cosine is not None})
        self.names = self._names_in(text)

    def _rarity(self, term: str) -> float:
        frequency = self._frequency[term]
        return math.log1p((self._number - frequency + 0.5) / (frequency + 0.5))

    def coverage(self, terms: frozenset[str]) -> float | None:
        """Share of the subject words, by rarity, that are among the terms; None where all is in the wish."""
        weights = [self._rarity(term) for term in self.subject]
        if not self.subject:
            return None
        found = (weight * _alike(term, terms) for term, weight in zip(self.subject, weights, strict=True))
        return sum(found) / sum(weights)

    def met(self, text: str) -> int:
        return self.wish.met(text) if self.wish else 0

    def _names_in(self, text: str) -> tuple[str, ...]:
        """Capitalised words and numbers, but for the first word; none where capitals tell nothing."""
        written = [found.group() for found in _WRITTEN.finditer(text)][1:]
        named = [word for word in written if word[0].isupper() or word[0].isdecimal()]
        if self.language == "de" or (len(written) > 2 and 2 * len(named) > len(written)):
            named = [word for word in named if word[0].isdecimal()]
        return tuple(word for word in named if set(content_words(word)) & set(self.subject))

    def likeness(self, unit: Unit) -> float:
        """How well a unit answers, but for its cosine; comparable among the units of one question only."""
        met = max(-1, self.met(unit.text))
        own = self.coverage(unit.terms)
        standing = (unit.passage.score - self._highest) / self._spread
        return 0.6 * (float(met > 0) if own is None else own) + 0.5 * met + 0.9 * standing

    def evidence(self, unit: Unit, cosine: float, quotation: str) -> Evidence:
        met = self.met(quotation)
        spoken = language(unit.passage.text)
        if self.language and spoken and self.language != spoken:
            return Evidence(cosine, None, None, met, stranger=False)
        near = unit.terms | unit.around
        passage, sentence = self.coverage(unit.passage.terms), self.coverage(near)
        if passage is None or sentence is None:
            passage = sentence = float(met > 0)
        stranger = any(not any(_alike(term, near) for term in words(name)) for name in self.names)
        return Evidence(cosine, passage, sentence, met, stranger)


# --- units -------------------------------------------------------------------------------------------------

UnitKind = Literal["sentence", "item", "row", "reply"]


@dataclass(frozen=True)
class Unit:
    """The least that can be quoted: a sentence, a list's item, a table's row in words, a question's reply."""

    passage: Candidate
    place: int
    text: str
    kind: UnitKind
    label: str
    group: int
    """Units of one paragraph, list or table share it."""

    @cached_property
    def terms(self) -> frozenset[str]:
        return frozenset(words(self.text))

    @cached_property
    def around(self) -> frozenset[str]:
        return frozenset(words(f"{self.passage.context}\n{self.label}"))

    @property
    def embedded(self) -> str:
        """With the headings that it stands under: measured, the right unit is found more often."""
        above = " > ".join(part for part in (self.passage.context, self.label) if part)
        return f"{above}\n{self.text}" if above else self.text


_CELL = regex.compile(r"(?<!\\)\||\t")
_MARKUP = regex.compile(r"\*\*|__|`|(?<!\S)\*(?=\S)|(?<=\S)\*(?!\S)")


_BLANK_LINE = regex.compile(r"\n[^\S\n]*\n")


def _plain(line: str) -> str:
    return str(_MARKUP.sub("", line))


def _cells(row: str) -> list[str]:
    inner = row.strip().removeprefix("|").removesuffix("|")
    return [_plain(cell).strip() for cell in _CELL.split(inner)]


def _in_words(header: Sequence[str], row: str) -> str:
    cells = _cells(row)
    if len(header) != len(cells):
        return ", ".join(cell for cell in cells if cell)
    named = zip(header, cells, strict=True)
    return ", ".join(f"{name}: {cell}" if name else cell for name, cell in named if cell)


def _is_header(text: str, row: Span, below: Span | None) -> bool:
    if below is None or below.kind != "row":
        return False
    first, second = row.of(text), below.of(text)
    ruled = "-" in text[row.end : below.start]
    return ruled or (not any(c.isdecimal() for c in first) and any(c.isdecimal() for c in second))


def _stands_alone(text: str, left: Span | None, right: Span | None) -> bool:
    start, end = left.end if left else 0, right.start if right else len(text)
    return left is None or right is None or bool(_BLANK_LINE.search(text, start, end))


def _is_label(text: str, line: Span, above: Span | None, below: Span | None) -> bool:
    """A line that names what follows: a title in a text file, the opening of a list, `WARRANTY.`"""
    written = line.of(text)
    if line.kind == "heading":
        return True
    if below is None or line.kind != "sentence" or len(written) > 70:
        return False
    digits = any(c.isdecimal() for c in written)
    if written.endswith((":", "：")) or (written.isupper() and not digits and written[-1] not in "?!"):
        return True
    if written[-1] in ".!?।。" or ":" in written or digits or below.kind == "row":
        return False
    return _stands_alone(text, above, line) and (above is None or not _stands_alone(text, line, below))


def units_of(passage: Candidate) -> list[Unit]:
    """In reading order. Headings, labels and table headers are in the units that they name."""
    text = passage.text
    spans = sentences(text)
    found: list[Unit] = []
    title = label = ""
    header: list[str] = []
    group = 0
    for place, span in enumerate(spans):
        above = spans[place - 1] if place else None
        below = spans[place + 1] if place + 1 < len(spans) else None
        apart = above is None or above.kind != span.kind or _stands_alone(text, above, span)
        group += apart
        if span.kind == "row":
            if apart:
                header = _cells(span.of(text)) if _is_header(text, span, below) else []
                if header:
                    continue
            shown = _in_words(header, span.of(text))
        else:
            if apart and span.kind == "sentence":
                label = title
            shown = _plain(span.of(text))
            if _is_label(text, span, above, below):
                label = shown.lstrip("# ")
                title = label if _stands_alone(text, span, below) else title
                group += 1
                continue
        if not shown:
            continue
        last = found[-1] if found else None
        if last and last.text.endswith(("?", "？", "؟")) and span.kind != "row":
            found[-1] = Unit(passage, last.place, f"{last.text} {shown}", "reply", last.label, last.group)
        else:
            kind: UnitKind = span.kind if span.kind != "heading" else "sentence"
            found.append(Unit(passage, len(found), shown, kind, label, group))
    return found


def _worth_embedding(asked: Question, units: list[Unit]) -> list[Unit]:
    """The likeliest by words; by place where words tell nothing, as between languages."""
    likely = sorted(units, key=lambda unit: 0.02 * unit.place - asked.likeness(unit))
    kept = set(map(id, likely[:SENTENCES_EMBEDDED]))
    return [unit for unit in units if id(unit) in kept]


# --- quotation ---------------------------------------------------------------------------------------------


def _joined(units: Iterable[Unit]) -> str:
    """Sentences on one line, items and rows on lines of their own; a list with the line that opens it."""
    shown = ""
    above: Unit | None = None
    for unit in units:
        if above is None:
            opens = unit.kind == "item" and unit.label.endswith((":", "："))
            shown = f"{unit.label}\n{unit.text}" if opens else unit.text
        else:
            flows = above.group == unit.group and unit.kind in ("sentence", "reply")
            shown += (" " if flows else "\n") + unit.text
        above = unit
    return shown


def _quotation(asked: Question, chosen: Unit, rated: dict[tuple[str, int], float]) -> str:
    everything = units_of(chosen.passage)
    whole = _joined(everything)
    if chosen.kind != "row" and len(whole) <= WHOLE_SECTION:
        return whole
    same = [unit for unit in everything if unit.group == chosen.group]
    if chosen.kind == "row":
        return _rows(asked, chosen, same, rated)
    if chosen.kind == "item" and len(_joined(same)) <= QUOTATION:
        return _joined(same)
    first = last = same.index(next(unit for unit in same if unit.place == chosen.place))
    while True:  # the sentence after first: it qualifies; then the one before
        grown = [(first, last + 1)] if last + 1 < len(same) else []
        grown += [(first - 1, last)] if first else []
        fitting = [(a, b) for a, b in grown if b - a < 3 and len(_joined(same[a : b + 1])) <= WHOLE_SECTION]
        if not fitting:
            return _joined(same[first : last + 1])
        first, last = fitting[0]


def _rows(asked: Question, chosen: Unit, table: list[Unit], rated: dict[tuple[str, int], float]) -> str:
    """The row, with those that the question's words do not tell from it."""
    best = asked.coverage(chosen.terms)
    if best:
        kept = [row for row in table if (asked.coverage(row.terms) or 0.0) >= best - 1e-9 or row.place == chosen.place]
    else:
        kept = table
    kept.sort(key=lambda row: (row.place != chosen.place, -rated.get((row.passage.id, row.place), -math.inf)))
    shown = kept[:1]
    for row in kept[1:4]:
        if len(_joined([*shown, row])) <= QUOTATION:
            shown.append(row)
    return _joined(sorted(shown, key=lambda row: row.place))
