"""How rare each word of a question is in the whole index, told from the sums that the index gave for a few passages.

A passage's BM25 sum is the sum of its words' rarities (inverse document frequencies), each times a weight that follows
from the passage's text. So a dozen passages are a dozen equations in the rarities, and the least squares of them, drawn
to a middling rarity where they say nothing, need no second question to the index."""

from __future__ import annotations

from collections.abc import Sequence

MIDDLING = 4.0
LEAST, MOST = 0.1, 12.0
_DRAWN = 0.05


def rarities(weights: Sequence[Sequence[float]], sums: Sequence[float]) -> list[float]:
    """One for each column of `weights`, which has a row for each passage. A sum of 0 is none that is known."""
    rows = [(row, total) for row, total in zip(weights, sums, strict=True) if total > 0]
    count = len(weights[0]) if weights else 0
    if not rows:
        return [MIDDLING] * count
    left = [[sum(row[i] * row[j] for row, _ in rows) for j in range(count)] for i in range(count)]
    right = [sum(row[i] * (total - MIDDLING * sum(row)) for row, total in rows) for i in range(count)]
    for i in range(count):
        left[i][i] += _DRAWN
    return [min(MOST, max(LEAST, MIDDLING + found)) for found in _solved(left, right)]


def _solved(left: list[list[float]], right: list[float]) -> list[float]:
    """By elimination, for a matrix that is symmetric and positive definite: no pivots are needed."""
    count = len(right)
    for i in range(count):
        for j in range(i + 1, count):
            if factor := left[j][i] / left[i][i]:
                for k in range(i, count):
                    left[j][k] -= factor * left[i][k]
                right[j] -= factor * right[i]
    found = [0.0] * count
    for i in reversed(range(count)):
        found[i] = (right[i] - sum(left[i][j] * found[j] for j in range(i + 1, count))) / left[i][i]
    return found
