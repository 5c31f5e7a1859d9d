"""What a new statement does to what is known already: said again, replaces, or is new. Rules on the statement's shape
first; the embedding only where the words differ."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from agents.memory.extracting import Stated, corrected
from agents.memory.lexicon import MANY, SPANS, concepts, kinds_in, tidy
from agents.memory.subjects import Statement, competes, read, same_subject
from mesh.ports.memory import Fact

# Cosines of multilingual-e5-small are compressed: unrelated facts of one person lie at .79-.84, a second allergy at
# .95, a changed value at .84-.97, the same in other words at .95-1.0 (tests/unit/data/memory/pairs.jsonl).
SAME = 0.965
"""Above it, and with no value that differs, two statements say the same."""
MEANT_WITHIN = timedelta(hours=1)
_NOW = re.compile(r"\bnow\b|\bahora\b|(?:^|\s)अब(?:\s|$)", re.IGNORECASE)
CLOSE = 0.90
"""Above it a flagged correction replaces its neighbour, although their subjects are not recognised as one."""


@dataclass(frozen=True, slots=True)
class New:
    pass


@dataclass(frozen=True, slots=True)
class Restated:
    fact_id: str


@dataclass(frozen=True, slots=True)
class Supersedes:
    fact_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Outdated:
    """Told before the fact that it contradicts, and only heard after it."""

    by: str


Verdict = New | Restated | Supersedes | Outdated


def judge(new: Stated, nearest: Sequence[Fact], *, told_at: datetime | None = None) -> Verdict:
    """`nearest` are live facts with their cosine to the new statement, most similar first."""
    statement = read(new.text)
    for fact in nearest:
        if _says_the_same(statement, read(fact.text), fact.similarity, new):
            return Restated(fact.fact_id)
    beaten = [fact for fact in nearest if _beats(new, statement, fact)]
    if not beaten and (new.corrects or _NOW.search(new.text)):
        beaten = _corrected_neighbour(new, statement, nearest)
    later = [fact for fact in beaten if told_at is not None and fact.told_at > told_at]
    if later:
        return Outdated(later[0].fact_id)
    return Supersedes(tuple(fact.fact_id for fact in beaten)) if beaten else New()


def _says_the_same(new: Statement, old: Statement, similarity: float, stated: Stated) -> bool:
    if new.negated != old.negated or new.owners != old.owners:
        return False
    if new.terms == old.terms:
        return True
    if same_subject(new, old) and new.value and new.value < old.value and not stated.corrects:
        return True
    return similarity >= SAME and _plain(new) == _plain(old) and new.value == old.value


def _plain(statement: Statement) -> frozenset[str]:
    return statement.subject - {"workplace"}


def _beats(new: Stated, statement: Statement, fact: Fact) -> bool:
    old = read(fact.text)
    if competes(statement, old):
        return True
    if same_subject(statement, old) and statement.value > old.value and statement.negated == old.negated:
        return True
    taken_back = set(concepts(new.instead_of))
    return bool(taken_back) and taken_back <= old.terms and bool(statement.subject & old.subject)


def _corrected_neighbour(new: Stated, statement: Statement, nearest: Sequence[Fact]) -> list[Fact]:
    """A flagged correction replaces one fact of the same subject, even where there could be several."""
    same = [fact for fact in nearest if _corrects(statement, read(fact.text))]
    if not new.corrects and statement.subject & MANY:
        return []
    if same:
        return [max(same, key=lambda fact: (fact.told_at, fact.similarity))]
    close = [
        fact
        for fact in nearest
        if fact.similarity >= CLOSE
        and read(fact.text).owners == statement.owners
        and read(fact.text).subject & statement.subject
    ]
    return close[:1]


def _corrects(new: Statement, old: Statement) -> bool:
    """The same subject, or less of it with a value of the same kind: "I finish at 6", after "I finish work at 5"."""
    if same_subject(new, old):
        return True
    nested = new.subject < old.subject or old.subject < new.subject
    return bool(nested and new.subject and old.subject and new.owners == old.owners and new.kinds & old.kinds)


# ── corrections that mean nothing by themselves ───────────────────────────────────────────────────────────────────

_VALUE = re.compile(
    r"^.*?(?:\b(?:is|are|was|will be|es|son|se llama|call me|called|named|llamo)\b|'s(?= called"
    r"| named))(?: called| named| now| on| at| in)? ",
    re.IGNORECASE,
)
_AFTER = re.compile(r"^.*\b(?:in|at|to|for|as|with|a|an|the|en|de|two|three|four) ", re.IGNORECASE)
_OF_MINE = re.compile(r"^(?:i|we) \w+ (?:my|our) \w+ (?=\w)", re.IGNORECASE)
_NUMBERED = ("clock", "day", "daypart", "colour", "side", "drink", "number")


def settle(loose: Stated, known: Sequence[Fact], *, said_at: datetime) -> tuple[Stated, Fact] | None:
    """ "No, I meant Thursday" in full, "My appointment is on Thursday", and the fact that it corrects. None when it
    fits nothing that is known.

    `known` are live facts, the last told first. Unless it names what it is about, or what it takes back, only what was
    told within the hour can be meant.
    """
    for fact in _candidates(loose, known, said_at):
        if text := respelled(tidy(fact.text), loose.text, loose.instead_of):
            return corrected(loose, text), fact
    return None


def _candidates(loose: Stated, known: Sequence[Fact], said_at: datetime) -> list[Fact]:
    if loose.instead_of:
        old = set(concepts(loose.instead_of)) or {loose.instead_of.casefold()}
        return [fact for fact in known if old <= read(fact.text).terms]
    if about := _named_subject(loose, known):
        return about
    kinds = kinds_in(" " + loose.text)
    recent = [fact for fact in known if said_at - fact.told_at <= MEANT_WITHIN]
    alike = [fact for fact in recent if kinds & kinds_in(tidy(fact.text))]
    return alike or recent[:1]


def _named_subject(loose: Stated, known: Sequence[Fact]) -> list[Fact]:
    """ "The appointment is on Thursday": a loose correction that names what it is about."""
    found = re.match(r"^the (?P<subject>.+?) (?:is|are|was|'s) ", loose.text, re.IGNORECASE)
    if found is None:
        return []
    wanted = set(concepts(found["subject"]))
    return [fact for fact in known if wanted and wanted <= read(fact.text).terms]


def respelled(fact: str, value: str, old: str = "") -> str:
    """The fact's sentence with the new value in the place of the old one; empty when there is no such place."""
    value = re.sub(r"^the [\w ]+? (?:is|are|was) (?:(?:on|at|in) )?", "", value, flags=re.IGNORECASE)
    if old and (found := re.search(rf"(?<!\w){re.escape(old)}(?!\w)", fact, re.IGNORECASE)):
        return fact[: found.start()] + value + fact[found.end() :]
    if replaced := _respelled_kinds(fact, value):
        return replaced
    value = re.sub(r"^(?:on|at|in|to|called|named) ", "", value, flags=re.IGNORECASE)
    if found := _VALUE.match(fact + " ") or _AFTER.match(fact) or _OF_MINE.match(fact):
        return fact[: found.end()] + value if found.end() < len(fact) else ""
    return ""


def _respelled_kinds(fact: str, value: str) -> str:
    """Each day, hour, colour … of the value in the place of the fact's own; a bare number only if nothing else fits."""
    text = fact
    for kind in _NUMBERED:
        new_span, old_span = SPANS[kind].search(value), SPANS[kind].search(text)
        if new_span and old_span and (kind != "number" or text == fact):
            text = text[: old_span.start()] + new_span[0].strip() + text[old_span.end() :]
    return "" if text == fact else text


def merged(new: Stated, replaced: Sequence[Fact]) -> Stated:
    """A correction that repeats less than what it corrects keeps the rest: "I'm flying on 14 March" after "I'm flying
    to Tokyo on 12 March" is "I'm flying to Tokyo on 14 March"."""
    if not new.corrects or len(replaced) != 1:
        return new
    old = tidy(replaced[0].text)
    bare = set(concepts(_without_kinds(new.text)))
    if not bare or not bare < set(concepts(_without_kinds(old))):
        return new
    text = _respelled_kinds(old, new.text)
    return corrected(new, text) if text else new


def _without_kinds(text: str) -> str:
    for kind in _NUMBERED:
        text = SPANS[kind].sub(" ", text)
    return text
