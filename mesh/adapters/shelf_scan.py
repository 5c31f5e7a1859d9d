"""Looking through the text that the shelf keeps, when there is no index to ask: which documents hold which words.

Nothing is kept for it. An index of the words would be a second copy of every text, to be cleared with care whenever a
document is deleted, and used only while Qdrant is away.
"""

from __future__ import annotations

import math
import sqlite3
import time
import unicodedata
from collections import Counter
from collections.abc import Sequence

import regex

MOST_CHARACTERS = 64 << 20
LONGEST_S = 2.0

_MARKS = regex.compile(r"\p{Mn}+")


def folded(text: str) -> str:
    """Case, width and accents off, on both sides of a comparison."""
    text = text.casefold()
    return text if text.isascii() else _MARKS.sub("", unicodedata.normalize("NFKD", text))


def holding(
    database: sqlite3.Connection, allowed: str, owners: Sequence[str], beginnings: Sequence[str], most: int
) -> list[str]:
    """Ids of live documents, those with most of the beginnings of words first, where a rare one counts for more. The
    newest are looked through first, as far as `MOST_CHARACTERS` and `LONGEST_S` go; `allowed` is SQL, a constant."""
    wanted = [folded(each) for each in beginnings]
    rows = database.execute(
        f"""
        SELECT document_id, name, text FROM documents JOIN parts USING (document_id, state)
        WHERE state = 'live' AND ({allowed}) ORDER BY ingested_at DESC, document_id, number
        """,  # noqa: S608 - as said
        owners,
    )
    until, characters = time.monotonic() + LONGEST_S, 0
    found: dict[str, set[int]] = {}
    for document_id, name, text in rows:
        said = folded(f"{name}\n{text}")
        places = {place for place, beginning in enumerate(wanted) if beginning in said}
        found.setdefault(document_id, set()).update(places)
        characters += len(text)
        if characters > MOST_CHARACTERS or time.monotonic() > until:
            break
    often = Counter(place for places in found.values() for place in places)
    weight = {place: math.log(1 + len(found) / count) for place, count in often.items()}
    ranked = sorted(found, key=lambda each: -sum(weight[place] for place in found[each]))
    return [each for each in ranked if found[each]][:most]
