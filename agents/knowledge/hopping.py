"""The second hop: passages that are called what the question names, or what the first passages found for it name.

"Where is the director of Loose Ankles buried?" finds the film. The grave is told where the director is, whom only the
film's passage names: a search for the question's own words comes there by chance."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from mesh.names import named_in, names_of
from mesh.ports.passages import Passage
from mesh.text import content_words, words

HOPS = 2
"""The second only from what the first one brought."""
SOURCES = 5
"""So many of the first passages are read for names."""
MOST_NAMES = 600
"""Looked up in one step, those that would count for most."""
PLACES = 5
"""So many of the first places, at most, are given out anew."""

# In spreads of the cosines, as the words' share of a score is. Round numbers on a plateau of 2Wiki and HotpotQA
# (docs/benchmarks.md).
ASKED = 12.0
NAMED = 4.0
LATER = 2.0
SUBJECT = 4.0
RELATION = 4.0
OPEN = 8.0
FURTHER = 6.0
_STEM = 5


def bonds(question: str, found: Sequence[Passage]) -> dict[str, float]:
    """The names that are worth looking up, each with how much it speaks for what is called so.

    A passage leads on only where it leaves something of the question open; the more, the further. It counts for more
    when the question names it itself, and when the sentence speaks of what is asked ("directed by", of a director)."""
    asked = frozenset(content_words(question))
    named = named_in(question, small=True)
    strength = dict.fromkeys(named, ASKED)
    if not asked:
        return strength
    for place, passage in enumerate(found[:SOURCES]):
        own = names_of(passage.source_filename, passage.chunk)
        title = frozenset(word for name in own for word in name.split())
        open_ = asked - _met(asked, title | frozenset(words(passage.chunk.text)))
        if not open_:
            continue
        about = asked - title
        least = NAMED - LATER * place + OPEN * len(open_) / len(asked) + SUBJECT * any(name in named for name in own)
        told: dict[str, float] = {}
        for name, sentence in named_in(passage.chunk.text).items():
            if sentence not in told:
                told[sentence] = len(_met(about, frozenset(words(sentence)))) / max(1, len(about))
            if name not in own:
                strength[name] = max(strength.get(name, 0.0), least + RELATION * told[sentence])
    return strength


def merged(known: Mapping[str, float], bonds: Mapping[str, float], hop: int) -> dict[str, float]:
    """What was known to lead on, and what does `hop` steps further."""
    further = {name: bond - FURTHER * hop for name, bond in bonds.items()}
    return {name: max(known.get(name, 0.0), further.get(name, 0.0)) for name in (*known, *further)}


def _met(asked: Collection[str], said: frozenset[str]) -> frozenset[str]:
    """Of the same stem, or of one beginning: director, directed."""
    begun = {word[:_STEM] for word in said if len(word) > _STEM}
    return frozenset(word for word in asked if word in said or (len(word) > _STEM and word[:_STEM] in begun))


def hopped(
    passages: Sequence[Passage],
    scores: Sequence[float],
    *,
    found: int,
    strength: Mapping[str, float],
    unit: float,
    places: int = PLACES,
) -> list[int]:
    """The passages, by their places, in their new order; the first stays the first. Of the first few `places`, what the
    search had found keeps its order, before what was looked up.

    Args:
        passages: so many `found` by the search, best first; then what else is called one of the names.
        scores: of all of them, in one scale.
        unit: of `strength`, in that scale.
    """
    best: dict[str, int] = {}
    for place in sorted(range(len(passages)), key=lambda place: -scores[place]):
        for name in names_of(passages[place].source_filename, passages[place].chunk):
            best.setdefault(name, place)
    lift: dict[int, float] = {}
    for name, place in best.items():
        lift[place] = max(lift.get(place, 0.0), strength.get(name, 0.0))
    order = sorted(
        range(len(passages)), key=lambda place: (place > 0 or not found, -scores[place] - unit * lift.get(place, 0.0))
    )
    return [*sorted(order[:places], key=lambda place: min(place, found)), *order[places:]]
