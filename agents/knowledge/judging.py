"""Whether a quotation answers: the evidence for it, and how much each part of it weighs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

ANSWERS = 0.5
MOST_LEAD = 6.0
FAR_AHEAD = 4.0
AHEAD = 0.025
"""As far ahead as the best passage usually is: taken where there is nothing to compare it with."""
NEXT = 5
MOST_ABOVE = 0.05
MOST_WORDED = 12.0
REFUSED = -0.1
"""Logit. Nothing that lacks what nothing else would do for is rated higher; below, it still has its order."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Why a quotation is, or is not, taken for the answer. Coverages are None across languages."""

    sentence_cosine: float
    passage_coverage: float | None
    """Share of the question's subject words, by inverse document frequency, that the passage has; [0, 1]."""
    sentence_coverage: float | None
    wanted: int
    """1: the kind of thing asked for (a price, a time, a name) is there; 0: no kind was asked for; -1: it is
    not; -2: it is not, and nothing else would do (a telephone number), or what is there is of another kind."""
    lead: float = 0.0
    """How much better it is rated than the best of any other passage, up to `MOST_LEAD`; below 0, how much worse."""
    aside: bool = False
    """Asked is whether a thing is done or had ("do you sell …"), and the passage lacks the rarest of its words."""
    unnamed: bool = False
    """The question names someone or something that the passage does not."""
    unnumbered: bool = False
    """The question has a number that the sentence and its headings do not."""
    pairs: float = 0.0
    """Share of the question's neighbouring words that are neighbours in the passage, too; [0, 1]."""
    ahead: float = AHEAD
    """How far the search's best cosine is above the mean of the next `NEXT`: what is answered once stands out."""
    above: float = 0.0
    """The sentence's cosine less the best of any passage: how much is in the sentence, and how much in the subject."""
    worded: float = 0.0
    """How far the search's best BM25 score is above the next, up to `MOST_WORDED`."""
    shared: float = 0.0
    """Across languages: the share of the subject words, by rarity, that are said all the same (names, numbers, words
    that languages have in common)."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """A logistic model over `Evidence`. Its cosine weights belong to one embedder: fit another's anew."""

    sharpness: float
    """What a cosine of 1 is worth against words when one sentence is chosen among several."""
    own: Weights
    foreign: Weights
    """Across languages."""
    least: float = 0.0
    """Logits that an answer must have: more than 0 where passages are close to one another."""

    def stricter_by(self, logits: float) -> Judgement:
        return replace(self, least=self.least + logits)

    def confidence(self, evidence: Evidence) -> float:
        """In [0, 1]; from `ANSWERS` on it is taken for the answer."""
        foreign = evidence.passage_coverage is None or evidence.sentence_coverage is None
        total = (self.foreign if foreign else self.own).logit(evidence) - self.least
        if evidence.wanted <= -2:
            total = min(total, REFUSED)
        return 1 / (1 + math.exp(-max(-40.0, min(40.0, total))))


@dataclass(frozen=True, slots=True)
class Weights:
    cosine: float
    bias: float
    passage_coverage: float = 0.0
    sentence_coverage: float = 0.0
    wanted: float = 0.0
    lead: float = 0.0
    """The less words tell, the more it counts: a paraphrase or another language shares few with its answer."""
    aside: float = 0.0
    unnamed: float = 0.0
    unnumbered: float = 0.0
    pairs: float = 0.0
    ahead: float = 0.0
    above: float = 0.0
    worded: float = 0.0
    shared: float = 0.0

    def logit(self, evidence: Evidence) -> float:
        words_tell = evidence.passage_coverage or 0.0
        return (
            self.bias
            + self.cosine * evidence.sentence_cosine
            + self.passage_coverage * words_tell
            + self.sentence_coverage * (evidence.sentence_coverage or 0.0)
            + self.wanted * evidence.wanted
            + self.lead * evidence.lead * (1 - words_tell)
            + self.aside * (evidence.aside and evidence.lead < FAR_AHEAD)
            + self.unnamed * evidence.unnamed
            + self.unnumbered * evidence.unnumbered
            + self.pairs * evidence.pairs
            + self.ahead * evidence.ahead
            + self.above * evidence.above
            + self.worded * evidence.worded
            + self.shared * evidence.shared
        )


def ahead(cosines: Sequence[float]) -> float:
    """Of few passages, those that are not there are taken to be as far behind as usual."""
    best, *others = sorted(cosines, reverse=True)[: NEXT + 1] or [0.0]
    return (math.fsum(best - other for other in others) + AHEAD * (NEXT - len(others))) / NEXT


def above(sentence: float, passages: Sequence[float]) -> float:
    return max(-MOST_ABOVE, min(MOST_ABOVE, sentence - max(passages))) if passages else 0.0


def worded(sums: Sequence[float]) -> float:
    best, second, *_ = [*sorted(sums, reverse=True)[:2], 0.0, 0.0]
    return min(MOST_WORDED, best - second)


# Fitted on tests/unit/data/answers and on halves of SQuAD 2 and XQuAD; docs/benchmarks.md has what it does on
# the other halves, and on businesses that it was not fitted on.
MULTILINGUAL_E5_SMALL = Judgement(
    sharpness=84.0,
    own=Weights(
        cosine=23.9,
        bias=-23.55,
        passage_coverage=1.84,
        sentence_coverage=1.09,
        wanted=0.61,
        lead=0.136,
        aside=-0.95,
        unnamed=-1.04,
        unnumbered=-0.78,
        pairs=1.36,
        ahead=27.9,
        above=20.4,
        worded=0.097,
    ),
    foreign=Weights(cosine=18.3, bias=-16.8, lead=0.33, unnamed=-0.7, unnumbered=-1.5, ahead=45.8, shared=1.5),
)
