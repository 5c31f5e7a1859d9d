"""What a person states about themselves, or asks to be remembered: by rules, without a chat model.

Kept are declaratives in the first person or about what is one's own. Dropped are questions, requests, greetings and
what is true for an hour only."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from agents.memory import phrases
from agents.memory.lexicon import SPANS
from mesh.text import sentences

LONGEST = 300
"""Characters. A longer sentence is a document, not something that one tells about oneself."""
MOST = 20
"""Facts from one message."""


@dataclass(frozen=True, slots=True)
class Stated:
    text: str
    corrects: bool = False
    instead_of: str = ""
    """The value that the person takes back, when they name it: "green, not blue"."""
    loose: bool = False
    """Means something only next to what was said before: "Thursday", "it's green"."""


def facts_in(text: str) -> list[Stated]:
    """In the order in which they were said, without repeats."""
    found: dict[str, Stated] = {}
    corrects = False
    for clause in _clauses(text):
        stated, corrects = _stated(clause, corrects)
        if stated is not None:
            found.setdefault(stated.text.casefold(), stated)
    return list(found.values())[:MOST]


def _clauses(text: str) -> Iterator[str]:
    plain = text.replace("’", "'").replace("‘", "'")
    for span in sentences(plain):
        sentence = phrases.SHARED.sub(r"\1 and I \2", " ".join(span.of(plain).split()))
        if len(sentence) > LONGEST:
            continue
        question = sentence.rstrip("\"'”» ").endswith(("?", "؟", "？"))
        parts = phrases.UNCAPPED.split(sentence)
        pieces = [piece for part in parts for piece in phrases.CLAUSES.split(part) if piece.strip()]
        pieces = list(_antecedents(pieces))
        yield from pieces[:-1]
        if pieces:
            yield pieces[-1] + ("?" if question and not pieces[-1].endswith("?") else "")


def _antecedents(pieces: list[str]) -> Iterator[str]:
    """ "My kid is called Leo", "he's 5": the second says it of "my kid Leo"."""
    about = ""
    for piece in pieces:
        if about and (found := phrases.OF_WHOM.match(piece)):
            yield f"{about} {'are' if 're' in found[0] else 'is'} {piece[found.end() :]}"
            continue
        if found := phrases.ABOUT_WHOM.match(piece):
            about = f"{found['who']} {found['name'] or ''}".strip()
        yield piece


def _stated(clause: str, carried: bool) -> tuple[Stated | None, bool]:
    """What the clause states, and whether the next one is a correction because this one said only "no, sorry"."""
    text, corrects, asked = _led(clause)
    corrects = corrects or carried
    if not text.strip(phrases.EDGES + "?"):
        return None, corrects
    if (text.endswith("?") or _is_question(text)) and not asked:
        return None, False
    instead = bool(re.search(r"\b(?:instead|,? sorry|my bad|my mistake|perdón)\W*$", text, re.IGNORECASE))
    text = phrases.TAIL.sub("", text.strip(phrases.EDGES + "?¿¡")).strip(phrases.EDGES)
    text, old = _instead(text)
    if changed := _changed(text):
        return Stated(changed, True, old, loose=True), False
    corrects = corrects or bool(old) or instead
    if _is_about_self(text) or (asked and len(text.split()) > 1):
        if not asked and _passes(text):
            return None, corrects and carried
        return Stated(_sentence(text), corrects, old), False
    if (corrects or _now_so(text)) and _fits_before(text):
        return Stated(_value(text), True, old, loose=True), False
    return None, False


def _led(clause: str) -> tuple[str, bool, bool]:
    text, corrects, asked = phrases.CALLED.sub("call me ", clause.strip()), False, False
    if phrases.NOT_A_NOTE.match(text):
        return text + "?", False, False
    while True:
        before = text
        if found := phrases.REMEMBER.match(text):
            text, asked = text[found.end() :], True
        elif found := phrases.HEDGE.match(text):
            text = text[found.end() :]
        elif found := phrases.CORRECTING.match(text):
            text, corrects = text[found.end() :], True
        elif (found := phrases.GREETING.match(text)) and not _is_about_self(text):
            text = text[found.end() :]
        text = text.lstrip(" ,.:;!—–-¡¿")
        if text == before or not text:
            return text, corrects, asked


def _is_question(text: str) -> bool:
    return bool(phrases.QUESTION.match(text) or phrases.HINDI_QUESTION.search(text))


def _is_about_self(text: str) -> bool:
    return bool(phrases.OWN.match(text) or re.match(r"^[\u0900-\u097f\s]*(?:मेर[ाीे]|मैं|मुझे)\s", text))


def _passes(text: str) -> bool:
    """Whether it is a request, or a state that will be over soon."""
    if phrases.BACK_CALL.search(text):
        return True
    if phrases.NEED.match(text):
        return not phrases.LASTING_NEED.search(text)
    if found := phrases.PROGRESSIVE.match(text):
        verb = found[1].casefold()
        if verb in phrases.PLANNED_ING and verb not in {"moving"}:
            return not (_dated(text) or re.search(r"\b(?:married|room|divorced)\b", text, re.I))
        return verb not in phrases.LASTING_ING
    if phrases.SAID_TO_US.search(text) and not re.match(r"you can|moved here|i moved", text, re.IGNORECASE):
        return True
    if phrases.REQUEST.match(text) or phrases.TRANSIENT.match(text):
        return True
    if len(text.split()) < 2 or (text.casefold().startswith(("my ", "our ", "mi ")) and not _has_verb(text)):
        return True
    if found := None if phrases.TAKEN.match(text) else phrases.PAST.match(text):
        verb = found[1].casefold()
        past = verb in phrases.IRREGULAR or (verb.endswith("ed") and verb not in {"need"})
        return past and verb not in phrases.LASTING_PAST
    return False


def _dated(text: str) -> bool:
    found = SPANS["day"].search(text)
    return bool(found and found[0].casefold() not in {"today", "tonight"})


def _has_verb(text: str) -> bool:
    return len(text.split()) > 2


def _changed(text: str) -> str:
    """ "It's been moved to Friday" as "Friday", "they moved the wedding to 27 July" as "the wedding is 27 July"."""
    for pattern in phrases.CHANGED:
        if found := pattern.match(text):
            subject = re.sub(r"^(?:my|our|the) ", "", found["subject"], flags=re.IGNORECASE)
            alone = subject.casefold() in {"it", "that", "this"}
            return found["value"] if alone else f"the {subject} is {found['value']}"
    return ""


def _now_so(text: str) -> bool:
    """ "It's actually Max", "it is green now": said of something, and against what was."""
    return bool(
        phrases.PRONOUN.match(text) and re.search(r"\b(?:actually|now|no longer|really|instead)\b", text, re.IGNORECASE)
    )


def _fits_before(text: str) -> bool:
    return 0 < len(text.split()) <= 9 and not phrases.POLITE.match(text) and not _passes_loose(text)


def _passes_loose(text: str) -> bool:
    found = phrases.PRONOUN.match(text)
    value = found["value"] if found else text
    if re.search(r"\bones?$|^(?:the )?(?:other|first|second|last|next)\b", value, re.IGNORECASE):
        return True
    return bool(phrases.POLITE.match(value) or re.match(r"^(?:i|we|you|there|if|because|let's)\b", text, re.I))


def _value(text: str) -> str:
    found = phrases.PRONOUN.match(text)
    value = re.sub(r" now$", "", (found["value"] if found else text).strip(phrases.EDGES), flags=re.IGNORECASE)
    return re.sub(r"^(?:to|make (?:it|that)|changed? to|i meant) ", "", value, flags=re.IGNORECASE)


def _instead(text: str) -> tuple[str, str]:
    for pattern in phrases.INSTEAD:
        if found := pattern.match(text):
            parts = found.groupdict()
            head = (parts.get("head") or "").strip()
            if owned := parts.get("owned"):
                head = f"{owned} is"
            new = f"{head} {parts['new']}".strip(phrases.EDGES)
            if phrases.UNFINISHED.search(new):
                continue
            return new, parts["old"].strip(phrases.EDGES)
    return text, ""


def _sentence(text: str) -> str:
    text = re.sub(r"^(?:please |just |also |now )+(?=call me\b)", "", text, flags=re.IGNORECASE)
    text = re.sub(r"\bi('m|'ve)?\b(?=[ ,])", lambda m: "I" + (m[1] or ""), text)
    closed = text[:1].upper() + text[1:]
    return closed + ("।" if re.search(r"[\u0900-\u097f]$", closed) else ".")


def corrected(stated: Stated, text: str) -> Stated:
    """A loose correction, put into the words of what it corrects."""
    return replace(stated, text=_sentence(text.strip(phrases.EDGES)), loose=False)
