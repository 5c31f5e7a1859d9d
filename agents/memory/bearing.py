"""Whether a told fact answers a question: the question must be about the person, and the fact about what is asked."""

from __future__ import annotations

import re

from agents.memory.lexicon import ATTRIBUTES, BEINGS, kinds_in, known, tidy
from agents.memory.questions import Question
from agents.memory.subjects import Statement, read

LIKELY = 0.88
"""Cosine above which a word of the question may be missing from the fact, if it is not a word that we know."""
POSSIBLE = 0.80
"""Cosine under which a fact is not considered at all; across languages the right ones begin at .82."""
NEAR = 0.87
"""Cosine above which a fact is at hand although it shares no word with the message."""
_PLACE = re.compile(
    r"\b(?:in|at|on|near|from|to|by|behind|under|inside|next|en|cerca)\b|(?:^|\s)(?:में|पर|से)(?:\s|$)", re.IGNORECASE
)
_TYPED = frozenset({"colour", "number"})
_LOOSE = frozenset({"workplace", "favourite", "number", "name", "like", "usedto", "prefer", "marital", "diet"})


def answers(question: Question, text: str, cosine: float) -> bool:
    """`text` is the fact's, `cosine` its similarity to the question."""
    statement = read(text)
    if not _addressed(question, statement) or cosine < POSSIBLE:
        return False
    if question.kinds and not question.kinds & _kinds(statement, text) and not _typed_alike(question, statement):
        return False
    if not question.wanted or not _same_people(question, statement):
        return False
    if "like" in question.wanted and not question.closed and question.negated != statement.negated:
        return False
    return _covered(question, statement, cosine) and _no_side_issue(question, statement)


def _kinds(statement: Statement, text: str) -> frozenset[str]:
    kinds = kinds_in(tidy(text))
    somewhere = (
        _PLACE.search(text)
        or statement.subject & {"home", "origin", "workplace"}
        or ("name" in kinds and "number" not in kinds)
    )
    return kinds | {"place"} if somewhere else kinds


def _addressed(question: Question, statement: Statement) -> bool:
    """A question without "I" or "my" is the mesh's to answer, unless it names somebody whom the person told of."""
    told_of = statement.named | (statement.value if "name" in statement.subject else frozenset())
    return question.personal or bool(question.names and question.names <= told_of)


def _typed_alike(question: Question, statement: Statement) -> bool:
    return bool(question.soft & _TYPED & statement.terms)


def _same_people(question: Question, statement: Statement) -> bool:
    asked = question.wanted | question.soft | question.names
    if question.names & statement.terms:
        return (question.wanted & BEINGS) <= statement.terms
    return statement.owners <= asked and (asked & BEINGS) <= statement.owners


def _covered(question: Question, statement: Statement, cosine: float) -> bool:
    missing = {term for term in question.wanted - statement.terms if not _meant(term, statement)}
    if not missing or (question.either and len(missing) < len(question.wanted - ATTRIBUTES)):
        return True
    if question.closed or any(known(term) for term in missing):
        return False
    return cosine >= LIKELY and 2 * len(missing) <= len(question.wanted)


def _meant(term: str, statement: Statement) -> bool:
    if term == "like":
        return "favourite" in statement.subject
    if term == "age":
        return "number" in statement.kinds and bool(statement.owners) and all(t.isdecimal() for t in statement.value)
    if term == "name" and statement.named and statement.owners:
        return True
    if term == "name":
        return "name" in statement.kinds and bool(statement.owners) and not statement.subject - BEINGS
    return term == "work" and "workplace" in statement.subject


def _no_side_issue(question: Question, statement: Statement) -> bool:
    """My favourite food is not my favourite colour: what we know by name on one side must be on the other."""
    asked = question.wanted | question.soft
    if statement.head and statement.head not in statement.owners:
        return statement.head in asked | _LOOSE
    extra = (statement.subject & ATTRIBUTES) - asked - _LOOSE
    return not extra or (bool(asked & statement.subject) and len(extra) < len(asked & statement.subject) + 1)


def touches(question: Question, statement: Statement, cosine: float) -> bool:
    """Whether a fact is worth having at hand for a message, without answering it."""
    asked = question.wanted | question.soft
    return cosine >= NEAR or (cosine >= POSSIBLE and bool(asked & statement.terms))
