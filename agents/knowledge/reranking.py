"""A second look at the first passages of a search, without a model: how well one sentence holds the question's words,
their neighbours and the kind of thing that it asks for. A few milliseconds for a dozen passages.

Another reranker, such as a cross-encoder of the owner's, takes its place by the port `mesh.ports.passages.Reranker`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import PurePosixPath

import regex

from agents.knowledge.ranking import spread
from agents.knowledge.rarity import rarities
from agents.knowledge.sounding import is_latin_alone, sounds
from agents.knowledge.wishes import WISHES
from mesh.ports.passages import Passage
from mesh.text import content_words, telling, term_weight, words

# In spreads of the cosines. Chosen on one half of the questions of XQuAD (en, es, hi, and across) and SQuAD 2, reported
# on the other (docs/benchmarks.md).
WORDS = 0.10
SENTENCE = 3.0
NEIGHBOURS = 1.7
WISH = 0.2
SOUND = 0.36

_ALMOST = 0.6
"""What a word of one beginning counts: `población` for `poblado`."""
_LONG = 5
_SENTENCE_END = regex.compile(r"(?<=[.!?।॥。？！])\s+|\n+")


class Light:
    """The built-in one."""

    most = 12

    def read_ahead(self, passages: Sequence[Passage]) -> None:
        """Of what is likely to be asked about next: reading takes most of the time, and is kept."""
        for each in passages[: self.most]:
            _read(each.document_id, each.chunk.text)
            is_latin_alone(each.chunk.text)

    async def rerank(self, question: str, passages: Sequence[Passage]) -> list[float]:
        cosines = {place: each.dense for place, each in enumerate(passages) if each.dense is not None}
        unit, lowest = spread(cosines), min(cosines.values(), default=0.0)
        return [
            (cosines.get(place, lowest) / unit) + signs.weighed
            for place, signs in enumerate(signs_of(question, passages))
        ]


@dataclass(frozen=True, slots=True)
class Signs:
    """That a passage answers a question."""

    words: float
    """BM25, as the index has it."""
    sentence: float
    """Share of the question's words that the best sentence has, each by its rarity; in [0, 1]."""
    neighbours: float
    """Share of them that stand beside the same word as in the question."""
    wish: int
    """Whether the best sentence has the kind of thing that is asked for: 1, -1 or worse; 0: nothing tells."""
    sound: int
    """Consonants of names that sound alike in two scripts."""

    @property
    def weighed(self) -> float:
        return (
            WORDS * self.words
            + SENTENCE * self.sentence
            + NEIGHBOURS * self.neighbours
            + WISH * self.wish
            + SOUND * self.sound
        )


@dataclass(frozen=True, slots=True)
class _Read:
    """A passage's text as index terms."""

    sentences: tuple[tuple[str, tuple[str, ...]], ...]
    counts: Mapping[str, int]
    pairs: frozenset[tuple[str, str]]


@lru_cache(maxsize=4096)
def _read(document_id: str, text: str) -> _Read:
    """Kept for each document by itself: how long it takes must not tell that another one has the same text."""
    sentences = tuple((each, tuple(words(each))) for each in _SENTENCE_END.split(text) if each.strip())
    return _Read(
        sentences,
        Counter(term for _, terms in sentences for term in terms),
        frozenset(pair for _, terms in sentences for pair in pairwise(terms)),
    )


def signs_of(question: str, passages: Sequence[Passage]) -> list[Signs]:
    asked = tuple(dict.fromkeys(content_words(question) or words(question)))
    beside = [pair for pair in pairwise(words(question)) if pair[0] in asked or pair[1] in asked]
    wish = next((each for each in WISHES if each.question.search(question)), None)
    read = [_read(each.document_id, each.chunk.text) for each in passages]
    counts = [_with_headings(each, passage) for each, passage in zip(read, passages, strict=True)]
    sums = [passage.sparse or 0.0 for passage in passages]
    weights = [[term_weight(each[term], each.total()) for term in asked] for each in counts]
    rarity = dict(zip(asked, rarities(weights, sums), strict=True))
    every = sum(rarity.values()) or 1.0
    found = []
    for passage, each, counted, by_words in zip(passages, read, counts, sums, strict=True):
        share, best = _best_sentence(each, _meant(asked, counted), rarity)
        neighbours = sum(rarity.get(a, 0.0) + rarity.get(b, 0.0) for a, b in beside if (a, b) in each.pairs)
        found.append(
            Signs(
                words=by_words,
                sentence=share / every,
                neighbours=neighbours / every,
                wish=wish.met(best) if wish and best else 0,
                sound=_sound(question, passage.chunk.text),
            )
        )
    return found


def _with_headings(read: _Read, passage: Passage) -> Counter[str]:
    stem = telling(PurePosixPath(passage.source_filename).stem)
    counted = Counter(read.counts)
    counted.update(_terms(" ".join((stem, *passage.chunk.heading_path))))
    return counted


@lru_cache(maxsize=4096)
def _terms(above: str) -> tuple[str, ...]:
    return tuple(words(above))


def _meant(asked: Sequence[str], said: Collection[str]) -> dict[str, list[tuple[str, float]]]:
    """The passage's terms, each with those of the question that it stands for, and how well."""
    meant: dict[str, list[tuple[str, float]]] = {}
    for term in asked:
        if term in said:
            meant.setdefault(term, []).append((term, 1.0))
        elif len(term) >= _LONG and (other := _alike(term, said)):
            meant.setdefault(other, []).append((term, _ALMOST))
    return meant


def _alike(term: str, said: Collection[str]) -> str | None:
    """A word that begins the same: seven tenths of the longer one."""
    beginning = term[: max(4, len(term) * 6 // 10)]
    for other in said:
        if other.startswith(beginning):
            needed = -(-7 * max(len(term), len(other)) // 10)
            if term[:needed] == other[:needed]:
                return other
    return None


def _best_sentence(
    read: _Read, meant: Mapping[str, Sequence[tuple[str, float]]], rarity: Mapping[str, float]
) -> tuple[float, str]:
    most, best = 0.0, read.sentences[0][0] if read.sentences else ""
    for written, terms in read.sentences:
        got = {term: how for said in meant.keys() & terms for term, how in meant[said]}
        held = sum(rarity[term] * how for term, how in got.items())
        if held > most:
            most, best = held, written
    return most, best


def _sound(question: str, passage: str) -> int:
    if is_latin_alone(question) and is_latin_alone(passage):
        return 0
    return sum(min(len(name), 5) - 1 for name in sounds(question).shared(sounds(passage)))
