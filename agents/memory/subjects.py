"""What a statement is about, by the shape of its sentence and the words that we know. No model: where the words differ
altogether, the embedding has to decide."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from agents.memory.lexicon import (
    ATTRIBUTES,
    BEINGS,
    MANY,
    NAME,
    ONE_ONLY,
    any_of,
    concepts,
    implied,
    kinds_in,
    known,
    tidy,
    types,
)

_POSSESSED = re.compile(
    r"^(?:and )?(?:my|our|the (?=\w[\w ]* (?:of|for) (?:my|our)\b)|mis?|nuestr[oa]s?"
    r"|el (?=\w+ de mi\b)) ?(?P<subject>.+?)"
    r"(?P<link>(?: also| now| actually| just| currently)*(?: is| are| was| were| will be|'s(?= called| named)"
    r"| es| son| está| será"
    r"| se llama| (?:has |have |just )*changed| =|:)(?:(?: now| called| named| actually| currently| also| to"
    r"| changed to| going to be| ahora)\b)*)(?:(?<=[:=]) ?| )(?P<value>.+)$",
    re.IGNORECASE,
)
_SHORT_IS = re.compile(r"^(?:my|our) (?P<subject>(?:favou?rite )?\w+)'s (?P<value>.+)$", re.IGNORECASE)
"""My birthday's 4 May."""
_REWRITTEN = (  # the same said with a verb
    (
        re.compile(r"^(?:i|we)(?:'m| am|'re| are)?(?: now)?(?: staying| stay)? in room (?:number )?", re.I),
        "my room is ",
    ),
    (
        re.compile(r"^(?:i|we)(?:'m| am|'re| are)?(?: originally| actually| not)*(?: come)? from ", re.I),
        "my origin is ",
    ),
    (re.compile(r"^(?:yo )?soy de ", re.I), "mi origin es "),
    (
        re.compile(
            r"^[Ii](?:'m| am) (?=[A-Z][a-z'’-]+(?: [A-Z][\w'’-]+)?(?:$|,| and ))(?!\w+(?:ian|ish|ese|ican|ench|tch)\b)"
            r"(?!(?:German|Greek|Swiss|Thai|Hindu|Muslim|Jewish|Sikh|Catholic|Korean|European|Punjabi|Tamil|Bengali|Arab|Czech)\b)"
        ),
        "my name is ",
    ),
    (re.compile(r"^[Ii] (?:now )?(?:support|root for) (?=[A-Z])"), "my favourite team is "),
    (re.compile(r"^(?:i|we) (?:now )?drive (?=an? )", re.I), "my car is "),
)
_REVERSED = re.compile(
    r"^(?P<value>.+?) (?:is|are|es|son) (?:now )?(?:my|our|mis?|nuestr[oa]s?) (?P<subject>.+)$", re.IGNORECASE
)
_FIRST = re.compile(
    r"^(?:(?:yo|i|we)(?:'m|'ve|'re|'d)?\b|me\b|soy\b|vivo\b|tengo\b|trabajo\b|you can call me\b|call me\b"
    r"|ll[aá]mame\b)",
    re.IGNORECASE,
)
_HAVE = re.compile(
    r"^(?:i|we)(?: now| also)?(?: have|'ve| own)(?: now| got| also)* (?:(?P<count>\d+|one|two|three|four|five"
    r"|six|seven|eight|nine|ten|a couple of) )?"
    r"|^tengo (?:(?P<cuenta>\d+|dos|tres|cuatro|cinco|seis) )?",
    re.IGNORECASE,
)
_A_ROLE = re.compile(
    r"(?:\b(?:i am|i'm|is|am|soy|es)(?: now| currently| actually)? (?:an?|un|una) |\bas (?:an?"
    r"|the) )(?P<role>[a-z]\w+)",
    re.IGNORECASE,
)
_NO_ROLE = re.compile(
    r"\b(?:person|fan|lover|member|guest|bit|little|big|huge|client|customer|type|citizen|few)\b", re.I
)
NEGATED = re.compile(
    r"\b(?:not|no longer|never|don't|doesn't|isn't|aren't|am not|can't|cannot|won't|haven't|stopped|quit"
    r"|gave up|ya no"
    r"|no (?=como|bebo|soy|tengo|vivo|me|es|puedo|trabajo))\b|नहीं|नही|\bwithout\b|\bn't\b",
    re.IGNORECASE,
)
AVERSE = re.compile(
    any_of("hate hates hated dislike dislikes loathe detest odio detesto नापसंद नफ़रत नफरत"), re.IGNORECASE
)
_STAND = re.compile(r"\b(?:can't|cannot|can not) stand\b", re.IGNORECASE)
_OWNER = re.compile(r"([\w\u0900-\u097f]+)'s\b|\b(?:of|de) (?:my|our|mis?) (\w+)|([\u0900-\u097f]+) (?:का|की|के) ", re.I)
_OVER = re.compile(r"\b(prefer\w* )(.+?) (?:over|to|than|rather than) .+$", re.IGNORECASE)
_MINE = re.compile(r"\b(?:my|our|mis?|nuestr[oa]s?) ((?:favou?rite )?\w+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Statement:
    """`subject` is what it is about, `value` what it says of it: both as concepts, else as index terms."""

    subject: frozenset[str]
    value: frozenset[str]
    named: frozenset[str]
    head: str
    """The noun that a "my … is …" is about: appointment, in "my doctor's appointment"."""
    owners: frozenset[str]
    """Who or what else it is about: the sister in "my sister's name"."""
    kinds: frozenset[str]
    """Which kinds of value it holds: keys of `SPANS`, `name`, or nothing that we know."""
    single: bool
    negated: bool

    @property
    def terms(self) -> frozenset[str]:
        return self.subject | self.value | self.named


@lru_cache(maxsize=2048)
def read(text: str) -> Statement:
    plain = tidy(text)
    for pattern, meant in _REWRITTEN:
        plain = pattern.sub(meant, plain)
    plain = _OVER.sub(r"\1\2", plain)
    subject, value, copula = _split(plain)
    terms = {*subject, *value}
    for term in terms & implied().keys():
        subject, value = (subject - {term}) | {implied()[term]}, value | {term}
    if (role := _role(plain)) and not subject & {"diet", "marital", "allergy", "age"}:
        subject, value = (subject - {role}) | {"work"}, value | {role}
    named = _named(plain)
    negated = bool(NEGATED.search(_STAND.sub("", plain))) ^ bool(AVERSE.search(plain) or _STAND.search(plain))
    owners = _owners(plain, terms, subject)
    kinds = kinds_in(_value_text(plain))
    if copula and "name" in kinds and subject <= BEINGS and not kinds & {"day", "clock"}:
        subject = subject | {"name"}
    return Statement(
        subject=frozenset(subject),
        named=named,
        head=_head(plain),
        value=frozenset(value - subject),
        owners=owners,
        kinds=kinds,
        single=_single(subject, kinds, plain, copula),
        negated=negated,
    )


def _split(plain: str) -> tuple[frozenset[str], frozenset[str], bool]:
    found = _copula(plain)
    if found:
        link = found.groupdict().get("link") or ""
        subject = frozenset(concepts(_without_names(found["subject"]) + " " + re.sub(r"\bto\b", "", link)))
        value = frozenset(concepts(found["value"]))
    else:
        return (*_verbal(plain), False)
    moved = value & ATTRIBUTES
    return subject | moved, value - moved - subject, True


def _copula(plain: str) -> re.Match[str] | None:
    return _POSSESSED.match(plain) or _REVERSED.match(plain) or _SHORT_IS.match(plain)


def _head(plain: str) -> str:
    found = _copula(plain)
    nouns = [term for term in concepts(_without_names(found["subject"])) if term not in types()] if found else []
    return nouns[-1] if nouns else ""


def _verbal(plain: str) -> tuple[frozenset[str], frozenset[str]]:
    """A sentence with a verb of its own: "I live in Lyon", "my flight leaves at 6", "मैं दिल्ली में रहता हूँ"."""
    terms = concepts(plain)
    subject = {term for term in terms if term in ATTRIBUTES or term in {"workplace"}}
    if re.search(r"[\u0900-\u097f]", plain):
        subject |= {term for term in terms if known(term) and not term.isdecimal()}
    elif having := _HAVE.match(plain):
        nouns = [t for t in concepts(_without_names(plain[having.end() :])) if t not in subject and not t.isdecimal()]
        noun = next((t for t in nouns if t in BEINGS), nouns[0] if nouns else "")
        subject |= {noun} if noun else set()
    elif not subject or not _FIRST.match(plain):
        head = re.split(r"\b(?:in|at|on|to|for|from|with|en|a las|el)\b|\d", plain, maxsplit=1)[0]
        subject |= set(concepts(_without_names(head))[: 1 if _FIRST.match(plain) else 2])
    subject |= {term for mine in _MINE.findall(plain) for term in concepts(mine)}
    return frozenset(subject), frozenset(terms) - subject


def _without_names(text: str) -> str:
    return NAME.sub(" ", " " + text) if text[:1].islower() else text


def _value_text(plain: str) -> str:
    found = _copula(plain)
    return " " + found["value"] if found else plain


def _role(plain: str) -> str:
    found = _A_ROLE.search(plain)
    if not found or _NO_ROLE.search(plain):
        return ""
    subject = _POSSESSED.match(plain)
    if subject is not None and not BEINGS & set(concepts(subject["subject"])):
        return ""
    return next(iter(concepts(found["role"])), "")


def _named(plain: str) -> frozenset[str]:
    """Names that belong to the subject: Rex in "my dog Rex is four", Rome in "my flight to Rome"."""
    if found := _POSSESSED.match(plain):
        head = found["subject"]
    elif re.match(r"(?:my|our) ", plain, re.IGNORECASE):
        head = re.split(r"\b(?:in|at|on|to|for|from|with|lives|works|is|has)\b", plain, maxsplit=1)[0]
    else:
        return frozenset()
    return frozenset(term for name in NAME.findall(" " + head) for term in concepts(name) if term not in BEINGS)


def _owners(plain: str, terms: set[str], subject: frozenset[str]) -> frozenset[str]:
    said = _copula(plain)
    about = said["subject"] if said else plain
    owners = {term for found in _OWNER.findall(about) for term in concepts(" ".join(found))}
    if said is None and _FIRST.match(plain) and not _HAVE.match(plain):
        return frozenset(owners & terms)  # "I play chess with my uncle" is about me
    return frozenset((owners & terms) | (BEINGS & subject))


def _single(subject: frozenset[str], kinds: frozenset[str], plain: str, copula: bool) -> bool:
    if subject & MANY and "favourite" not in subject:
        return False
    if "prefer" in subject:
        return bool(kinds & {"daypart", "side", "drink", "day", "clock"})
    if subject & ONE_ONLY:
        return True
    if having := _HAVE.match(plain):
        return any(having.groups())
    if copula:
        return bool(kinds) or not subject & BEINGS
    return not _FIRST.match(plain) or bool(_MINE.search(plain))


def same_subject(a: Statement, b: Statement) -> bool:
    """Whether both say something of one and the same side of one and the same person or thing."""
    left, right = a.subject - {"workplace"}, b.subject - {"workplace"}
    if not left or left != right or a.owners != b.owners:
        return False
    if a.named and b.named and a.named != b.named:
        return False
    return ("workplace" in a.subject) == ("workplace" in b.subject) or "work" not in left


def competes(a: Statement, b: Statement) -> bool:
    """Whether both can't be true at a time."""
    if not same_subject(a, b):
        return False
    if a.negated != b.negated:
        return bool(a.value & b.value) or (not a.value and not b.value)
    if a.negated or a.value == b.value:
        return False
    if not (a.single and b.single):
        return _differ_in_a_number(a.value, b.value)
    return bool(a.subject & ONE_ONLY) or bool(a.kinds & b.kinds) or not (a.kinds or b.kinds)


def _differ_in_a_number(a: frozenset[str], b: frozenset[str]) -> bool:
    """A table for four, a table for five."""
    return bool(a & b) and a != b and all(term.isdecimal() for term in a ^ b)
