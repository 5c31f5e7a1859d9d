"""Answering while nothing can be embedded. Only words are left to tell whether a passage answers, so more of them must:
what falls short is no "I don't know", but "I can't look now"."""

from __future__ import annotations

from collections.abc import Sequence

from agents.knowledge.answering import Extract
from agents.knowledge.searching import Searched
from mesh.catalogue import say
from mesh.errors import Unavailable
from mesh.ports.models import Vector
from mesh.text import content_words, language, words

QUESTION: Vector = (0.83,)
SENTENCE: Vector = (1.0,)
"""Their cosine is that of a question and a sentence on one subject, of which another answers."""
SAID = 0.75
"""Share of the question's words that a quotation and its headings must have."""
MOST_NAMED = 3


def check(question: str, extracts: Sequence[Extract], searched: Searched) -> None:
    """Raises `Unavailable` unless every one of them, and there is one, says what was asked."""
    context = {hit.reference: f"{hit.document.name} {hit.section}" for hit in searched.hits}
    asked = set(content_words(question))
    for extract in extracts:
        said = set(words(f"{context.get(extract.passage_id, '')}\n{extract.quotation}"))
        if not asked or len(asked & said) < SAID * len(asked):
            raise Unavailable(detail=f"words alone do not tell, level {searched.level}")
    if not extracts:
        raise Unavailable(_files(question, searched), detail=f"nothing was found by words, level {searched.level}")


def _files(question: str, searched: Searched) -> str:
    """What to ask for instead; empty for the usual words."""
    if searched.level != "names" or not searched.hits:
        return ""
    names = ", ".join(hit.document.name for hit in searched.hits[:MOST_NAMED])
    return say("only_names", language(question), names=names)
