"""What a question wants to know."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from agents.memory.lexicon import NAME, concepts, tidy, types
from agents.memory.subjects import AVERSE, NEGATED

LONGEST = 500
"""Characters that are looked at: whoever writes more is not asking what they told before."""

_PERSONAL = re.compile(
    r"\b(?:i|i'm|i've|my|me|mine|our|ours|we|us|mi|mis|m[ií]o|yo|nuestr[oa]s?|vivo|soy|trabajo|tengo|llamo"
    r"|nací|prefiero|"
    r"conmigo|odio|hablo|vivimos|tenemos)\b|मेर[ाीे]|मैं|मुझे|हमार[ाीे]|(?:^|\s)हम(?:\s|$)|मुझको",
    re.IGNORECASE,
)
_EVERYTHING = re.compile(
    r"\b(?:know|remember|learned|got|have|stored|saved|noted|recall)\b.{0,24}\b(?:about|on) (?:me|us)\b"
    r"|\bwhat (?:have|did) i (?:told|tell|said|say)(?: to)?(?: you)?(?: so far| about (?:me|myself))?\W*$"
    r"|\bwhat do you (?:remember|know)\W*$|\bmy (?:notes|memories|facts)\W*$"
    r"|\b(?:sabes|recuerdas|conoces)\b.{0,12}\b(?:de|sobre) m[ií]\b|मेरे बारे में",
    re.IGNORECASE,
)
_LATEST = re.compile(
    r"\b(?:latest|last|most recent|recently|newest|now|currently|these days|ahora|último|última)\b|अभी|अब",
    re.I,
)
_CLOSED = re.compile(
    r"^(?:so |and |hey |hi |ok )?(?:am|is|are|was|were|do|does|did|have|has|can|could|will|would|should|may"
    r"|es|soy|tengo|क्या)\b",
    re.I,
)
_MEMORY_ASK = re.compile(
    r"^(?:do|did|can|could|would|will) (?:you|i) (?:still |please |ever )?(?:remember|recall|know|tell|remind"
    r"|say|mention)\b(?: me)?(?: that| about)?",
    re.IGNORECASE,
)
_SOFT = re.compile(
    r"\b(?:what|which|qué|que|cuál) (?P<noun>(?!is\b|are\b|was\b|do\b|does\b|did\b|am\b|has\b|have\b|es\b"
    r"|son\b|soy\b)\w+)"
    r"(?: of \w+)? (?:(?:do|does|did)n't|do|does|did|am|is|are|was|were|have|has|should|can|will|es|me|soy"
    r"|tengo)\b",
    re.IGNORECASE,
)
_KINDS_ASKED = (
    (re.compile(r"\b(?:what|which) time\b|\bqué hora\b|कितने बजे", re.I), {"clock"}),
    (
        re.compile(r"\bwhen\b|\b(?:what|which) (?:day|date|month)\b|\bcu[aá]ndo\b|(?:^|\s)कब(?:\s|$)", re.I),
        {"day", "clock", "daypart"},
    ),
    (re.compile(r"\bwhere\b|\bd[oó]nde\b|(?:^|\s)(?:कहाँ|कहां)(?:\s|$)", re.I), {"place"}),
    (re.compile(r"\bhow (?:many|old|much|tall)\b|\bcu[aá]nt[oa]s?\b|कितन[ाेी]", re.I), {"number"}),
)


@dataclass(frozen=True, slots=True)
class Question:
    wanted: frozenset[str]
    soft: frozenset[str]
    """The noun of "which food do I hate": it says what kind of answer is wanted."""
    kinds: frozenset[str]
    """One of these must be in the answer; empty when any will do."""
    personal: bool
    everything: bool
    latest: bool
    closed: bool
    """To be answered with yes or no."""
    either: bool
    """ "Tea or coffee?" """
    negated: bool
    names: frozenset[str]


@lru_cache(maxsize=512)
def ask(text: str) -> Question:
    plain = tidy(text[:LONGEST])
    closed = bool(_CLOSED.match(plain)) and not _MEMORY_ASK.match(plain)
    body = _MEMORY_ASK.sub("", plain)
    soft, kinds = _soft(body)
    wanted = concepts(body)
    wanted_set = {t for t in wanted if t not in soft and t not in types()}
    if not wanted_set:
        wanted_set, soft = set(soft) or set(wanted), set()
    for pattern, asked in _KINDS_ASKED:
        if pattern.search(body):
            kinds = kinds or asked
    return Question(
        wanted=frozenset(wanted_set),
        soft=frozenset(soft),
        kinds=frozenset(kinds),
        personal=bool(_PERSONAL.search(plain)),
        everything=bool(_EVERYTHING.search(plain)) and not wanted_set,
        latest=bool(_LATEST.search(plain)),
        closed=closed,
        either=bool(re.search(r"\b(?:or|o)\b|(?:^|\s)या(?:\s|$)", plain, re.IGNORECASE)),
        negated=bool(NEGATED.search(plain)) ^ bool(AVERSE.search(plain)),
        names=frozenset(term for name in NAME.findall(plain) for term in concepts(name)),
    )


def _soft(body: str) -> tuple[set[str], set[str]]:
    found = _SOFT.search(body)
    if found is None:
        return set(), set()
    soft = set(concepts(found["noun"]))
    if "colour" in soft:
        return soft, {"colour"}
    if "number" in soft:
        return soft, {"number"}
    return soft, set()
