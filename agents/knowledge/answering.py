"""An answer without a chat model: the words of a document that answer, or the admission that none do."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import regex

from agents.knowledge.cells import is_empty, named_row
from agents.knowledge.judging import (
    ANSWERS,
    MOST_LEAD,
    MULTILINGUAL_E5_SMALL,
    Evidence,
    Judgement,
    above,
    ahead,
    worded,
)
from agents.knowledge.likeness import alike
from agents.knowledge.quoting import joined, quoted, shown
from agents.knowledge.ranking import spread
from agents.knowledge.units import Candidate, Unit, units_of
from agents.knowledge.wishes import is_unpriced, of_another_kind, wish_of
from mesh.questions import is_personal
from mesh.text import content_words, language, words

Vector = Sequence[float]
Embed = Callable[[Sequence[str]], Awaitable[Sequence[Vector]]]

PASSAGES_READ = 4
SENTENCES_EMBEDDED = 12
OWN_LEAD = 1.5  # spreads
STANDING = 0.9
LIGHT = 0.3
COVERED = 1.0
SAID = 1.0


@dataclass(frozen=True, slots=True)
class Extract:
    quotation: str
    passage_id: str
    confidence: float
    """In [0, 1]; from `ANSWERS` on, the quotation may be given as the answer."""
    evidence: Evidence
    shown: str = ""
    """The quotation for people to read: rows as sentences, and the heading above it where it says more."""
    said: str = ""
    """The unit of it that was judged."""

    @property
    def answers(self) -> bool:
        return self.confidence >= ANSWERS


async def extracts(
    question: str,
    question_vector: Vector,
    candidates: Sequence[Candidate],
    embed: Embed,
    *,
    judgement: Judgement = MULTILINGUAL_E5_SMALL,
    known: str = "",
) -> list[Extract]:
    """The best quotation of each of the first `PASSAGES_READ` candidates, the likeliest answer first: check `.answers`
    before giving one as the answer. None where they hold no text.

    Args:
        candidates: best first, all that the search returned (40 or so): those that are not read still tell
            which words are rare.
        embed: vectors of unit length, embedded as passages are; called once, with up to `SENTENCES_EMBEDDED`.
        known: what the asker told earlier: of several plans, it tells which is theirs.
    """
    asked = Question(question, candidates, known)
    units = [unit for candidate in asked.worth_reading(candidates) for unit in units_of(candidate)]
    if not units:
        return []
    units = _worth_embedding(asked, units)
    vectors = await embed([unit.embedded for unit in units])
    cosines = [_dot(question_vector, vector) for vector in vectors]
    ratings = [judgement.sharpness * cosine + asked.likeness(unit) for unit, cosine in zip(units, cosines, strict=True)]
    rated = {(unit.passage.id, unit.place): rating for unit, rating in zip(units, ratings, strict=True)}
    best: dict[str, int] = {}
    for i in sorted(range(len(units)), key=lambda i: -ratings[i]):
        best.setdefault(units[i].passage.id, i)
    found = []
    for passage_id, i in best.items():
        everything = units_of(units[i].passage)
        unit = named_row(asked.subject, units[i], everything)
        i = units.index(unit) if unit in units else i  # else it is judged by the likeness of its neighbour
        told = quoted(asked, unit, everything, rated)
        quotation = joined(told)
        rivals = [ratings[j] for key, j in best.items() if key != passage_id]
        lead = max(-MOST_LEAD, min(MOST_LEAD, ratings[i] - max(rivals))) if rivals else 0.0
        evidence = asked.evidence(unit, cosines[i], quotation, lead, everything)
        found.append(Extract(quotation, passage_id, judgement.confidence(evidence), evidence, shown(told), unit.text))
    return sorted(found, key=lambda each: -each.confidence)


def _dot(left: Vector, right: Vector) -> float:
    return math.fsum(float(a) * float(b) for a, b in zip(left, right, strict=True))


# --- what is asked -----------------------------------------------------------------------------------------

_WRITTEN = regex.compile(r"[\p{L}\p{M}\p{N}]+(?:['’][\p{L}\p{M}]+)?")


_COMPOUND = regex.compile(r"\w+(?:-\w+)+")
"""The e of e-mail is no Portuguese."""
_WHETHER = regex.compile(r"^\W*(?:do|can|could|will|would|does) (?:you|u|i|we|my|our)\b", regex.IGNORECASE)
LIGHT_WORDS = frozenset(
    words(
        """bring get take keep stay go come use make give want need find know allow offer provide possible available
        include included happen work long see look say like put thing people person someone something anything much
        many over under above below somebody anyone
        anybody hacer hago hacen ir voy vamos traer llevar ofrecer ofrecen dan dar poner permite
        permiten disponible incluido incluye necesito quiero"""
    )
)
"""May I bring a dog, keep a dog, come with a dog: documents choose another of these words, and mean the same."""


class Question:
    """A question against the passages that were found for it."""

    def __init__(self, text: str, candidates: Sequence[Candidate], known: str = "") -> None:
        self.text = text
        self.language = language(_COMPOUND.sub(" ", text))
        self.personal = is_personal(text)
        self.known = known if self.personal else ""
        self.wish = wish_of(text)
        plain = self.wish.question.sub(" ", text) if self.wish else text
        self.subject = tuple(dict.fromkeys(content_words(plain)))
        self._number = len(candidates)
        self._frequency = Counter(term for candidate in candidates for term in candidate.terms)
        self._highest = max((candidate.score for candidate in candidates), default=0.0)
        cosines = {c.id: c.cosine for c in candidates if c.cosine is not None}
        self._spread = spread(cosines)
        self._cosines = list(cosines.values())
        self._worded = worded([candidate.sparse for candidate in candidates])
        self.names = self._names_in(text)

    def worth_reading(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        def worth(candidate: Candidate) -> float:
            return self._standing(candidate) + COVERED * (self.coverage(candidate.terms) or 0.0)

        return sorted(candidates, key=worth, reverse=True)[:PASSAGES_READ]

    def _standing(self, candidate: Candidate) -> float:
        """How far behind the first, in spreads of the search's cosines; what is one's own moves up for "my …"."""
        behind = (candidate.score - self._highest) / self._spread
        return behind + OWN_LEAD * (self.personal and candidate.own)

    def _rarity(self, term: str) -> float:
        frequency = self._frequency[term]
        rarity = math.log1p((self._number - frequency + 0.5) / (frequency + 0.5))
        return LIGHT * rarity if term in LIGHT_WORDS else rarity

    def coverage(self, terms: frozenset[str]) -> float | None:
        """Share of the subject words, by rarity, that are among the terms; None where all is in the wish."""
        weights = [self._rarity(term) for term in self.subject]
        if not self.subject:
            return None
        found = (weight * alike(term, terms) for term, weight in zip(self.subject, weights, strict=True))
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
        standing = self._standing(unit.passage)
        decisive = 1.5 if self.wish and self.wish.only else 0.5
        return SAID * (float(met > 0) if own is None else own) + decisive * met + STANDING * standing

    def _aside(self, passage: Candidate) -> bool:
        weights = {term: self._rarity(term) for term in self.subject}
        if self.wish or not _WHETHER.search(self.text) or len(weights) < 2:
            return False
        rarest = [term for term, weight in weights.items() if weight >= max(weights.values()) - 1e-9]
        return not any(alike(term, passage.terms) for term in rarest)

    def evidence(self, unit: Unit, cosine: float, quotation: str, lead: float, everything: Sequence[Unit]) -> Evidence:
        around = f"{unit.passage.context}\n{unit.label}\n{quotation}"
        titled = "\n".join([unit.label or next(reversed(unit.passage.heading_path), ""), quotation])
        alone = self.wish and self.wish.only and (unit.own_line or unit.kind in ("item", "row"))
        met = self.met(unit.text if alone else titled)
        empty = is_empty(self.subject, self.wish, unit, everything)
        unpriced = not unit.cells and is_unpriced(self.text, f"{unit.label}\n{unit.text}", titled)
        if empty or unpriced or of_another_kind(self.text, around):
            met = -2
        near = unit.terms | unit.around
        spoken = language(unit.passage.text)
        foreign = bool(self.language and spoken and self.language != spoken)
        passage, sentence = self.coverage(unit.passage.terms), self.coverage(near)
        if passage is None or sentence is None:
            passage = sentence = float(met > 0)
        return Evidence(
            cosine,
            None if foreign else passage,
            None if foreign else sentence,
            met,
            lead,
            not foreign and self._aside(unit.passage),
            unnamed=not all(_says(name, unit.passage.terms) for name in self.names if not name[0].isdecimal()),
            unnumbered=not all(_says(name, near) for name in self.names if name[0].isdecimal()),
            pairs=self._pairs(unit.passage),
            ahead=ahead(self._cosines),
            above=above(cosine, self._cosines),
            worded=self._worded,
            shared=(self.coverage(frozenset(words(around))) or 0.0) if foreign else 0.0,
        )

    def _pairs(self, passage: Candidate) -> float:
        asked = set(pairwise(content_words(self.text)))
        said = set(pairwise(content_words(f"{passage.context}\n{passage.text}")))
        return len(asked & said) / max(1, len(asked))


def _says(name: str, terms: frozenset[str]) -> bool:
    return all(alike(term, terms) for term in words(name))


def _worth_embedding(asked: Question, units: list[Unit]) -> list[Unit]:
    """The likeliest by words; by place where words tell nothing, as between languages."""
    likely = sorted(units, key=lambda unit: 0.02 * unit.place - asked.likeness(unit))
    kept = set(map(id, likely[:SENTENCES_EMBEDDED]))
    return [unit for unit in units if id(unit) in kept]
