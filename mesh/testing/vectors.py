"""Vectors without a model: instant, the same every time, and near where texts share words."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from functools import lru_cache

from mesh.text import content_words, words

ALIKE = 0.75
"""The cosine of texts that share nothing: as with E5, all cosines lie between there and 1, so that what is calibrated
for it holds."""


@lru_cache(4_096)
def vector(text: str, dims: int) -> tuple[float, ...]:
    """Of unit length. Near to one another are texts that share words, or parts of words."""
    bare = text.removeprefix("query: ").removeprefix("passage: ")
    known, telling = words(bare), set(content_words(bare))
    found = [0.0] * (dims - 1)
    for word in known or list(bare):
        weight = 1.0 if word in telling or not telling else 0.25
        for part, share in _parts(word):
            place = zlib.crc32(part.encode("utf-8", "replace"))
            found[(place >> 1) % len(found)] += weight * share * (1 if place & 1 else -1)
    length = math.hypot(*found)
    own = math.sqrt(1 - ALIKE) / length if length else 0.0
    return (math.sqrt(ALIKE) if length else 1.0, *(round(number * own, 7) for number in found))


def _parts(word: str) -> Iterator[tuple[str, float]]:
    yield word, 1.0
    inside = f"<{word}>"
    for start in range(len(inside) - 2):
        yield inside[start : start + 3], 0.35
