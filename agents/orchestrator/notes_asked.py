"""Which of their notes a person asks for, by rules, in six languages: "what did I save this week about parking?" """

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

import regex

from agents.orchestrator.periods import Period, period, today

LONGEST = 200


@dataclass(frozen=True, slots=True)
class Asked:
    days: Period | None = None
    tags: tuple[str, ...] = ()
    about: str = ""

    @property
    def facts(self) -> str:
        """What was asked for, in any language; with something before it, or empty."""
        days = ""
        if self.days:
            first, last = self.days.first, self.days.last
            days = str(first) if first == last else f"{first} – {last or ''}".strip()
        shown = [days, " ".join(f"#{tag}" for tag in self.tags), f"“{self.about}”" if self.about else ""]
        return "".join(f" · {each}" for each in shown if each)


_EN = r"(?:saved?|noted?(?: down)?|wr(?:ite|ote|itten) down|jot(?:ted)? down|kept|keep|made notes|make notes)"
_ES = r"(?:(?:he|hab[ií]a) (?:guardado|anotado|apuntado)|guard[eé]|anot[eé]|apunt[eé])"
_FR = r"(?:not[eé]|enregistr[eé]|gard[eé])"
_QUESTIONS = tuple(
    regex.compile(rf"^\W*(?:{form})\W*$", regex.IGNORECASE)
    for form in (
        rf"(?:what|which notes?|what notes?) (?:did|have|had) (?:i|we) {_EN}\b(?P<rest>.*)",
        r"(?:please )?(?:(?:show|list|give|tell)(?: me)?|find|search|see|read) (?:all )?(?:of )?(?:my |the )?notes\b"
        r"(?P<rest>.*)",
        r"(?:what(?:['’]s| is| are| do i have)? in my notes|(?:do i have|are there) (?:any )?notes)\b(?P<rest>.*)",
        r"(?:all )?(?:of )?(?:my )?notes\b(?P<rest>.+)",
        rf"(?:qu[eé]|qu[eé] notas) {_ES}\b(?P<rest>.*)",
        r"(?:mu[eé]strame|ens[eé][nñ]ame|dame|busca|lista|ver|mostrar)? ?(?:todas )?(?:mis |las )?notas\b(?P<rest>.+)",
        rf"qu['’]est-ce que j['’]ai {_FR}\b(?P<rest>.*)",
        rf"qu['’]ai-je {_FR}\b(?P<rest>.*)",
        r"(?:montre[rz]?(?:-moi)? )?(?:toutes )?(?:mes )?notes\b(?P<rest>.+)",
        r"was habe? ich\b(?P<rest>.*?) ?(?:notiert|gespeichert|aufgeschrieben|gemerkt)",
        r"(?:zeige?(?: mir)? )?(?:alle )?(?:meine )?notizen\b(?P<rest>.+)",
        r"o que (?:eu )?(?:salvei|guardei|anotei)\b(?P<rest>.*)",
        r"(?:mostr[ae](?:r|-me)? )?(?:todas )?(?:as )?minhas (?:notas|anota[cç][oõ]es)\b(?P<rest>.+)",
        r"मैंने(?P<rest>.*?) ?क्या (?:क्या )?(?:सेव|नोट|सहेजा|लिखा)(?: किया| की| किये)?(?: था| है)?",
        r"(?P<rest>.*?) ?(?:मेरे|मेरी) (?:नोट्स|नोट|टिप्पणियाँ|टिप्पणियां)(?: दिखाओ| दिखाएं| दिखाइए)?",
    )
)
_TAG = r"[\p{L}\p{M}\p{N}_][\p{L}\p{M}\p{N}_/-]*"
_WITH = (
    r"tagged(?: with| as)?|with(?: the)?(?: tags?)?|con(?: las?)?(?: etiquetas?)?|etiquetad[ao]s?(?: con| como)?"
    r"|mit(?: dem)?(?: tags?)?|avec(?: le)?(?: tags?)?|com(?: a)?(?: tags?| etiquetas?)?|टैग"
)
_TAGGED = regex.compile(
    rf"(?:\b(?:and )?(?:{_WITH})\s*)?(?<![\p{{L}}\p{{M}}\p{{N}}])#(?P<tag>{_TAG})(?:\s*(?:,|and|y|und|et|e|और)\b)?",
    regex.IGNORECASE,
)
_TAGGED_WORD = regex.compile(
    rf"\b(?:tagged(?: with| as)?|etiquetad[ao]s?(?: con| como)?)\s+(?P<tag>{_TAG})$", regex.IGNORECASE
)
_ABOUT = regex.compile(
    r"(?:about|regarding|concerning|sobre|acerca de|sur|[aà] propos d[eu]|[uü]ber|zu|zum|zur)\s+(?P<about>\S.*)"
    r"|(?P<about>\S.*?) (?:के बारे में|पर)",
    regex.IGNORECASE,
)
_AROUND = " ?¿!.,।"


def asked(text: str, now: date | None = None) -> Asked | None:
    """None for anything else: of a question about notes nothing is left that is no time, tag or subject."""
    text = " ".join(text.split())
    if len(text) > LONGEST:
        return None
    for form in _QUESTIONS:
        if not (found := form.match(text)):
            continue
        wanted, left = _taken_apart(found["rest"], now or today())
        if not left and (wanted != Asked() or not form.pattern.endswith(r"(?P<rest>.+))\W*$")):
            return wanted
        if about := _ABOUT.fullmatch(left):
            return Asked(wanted.days, wanted.tags, about["about"].strip(_AROUND))
    return None


def named(argument: str, now: date | None = None) -> Asked:
    """After /notes any words are what they are about."""
    wanted, left = _taken_apart(argument, now or today())
    about = _ABOUT.fullmatch(left)
    return Asked(wanted.days, wanted.tags, (about["about"] if about else left).strip(_AROUND))


def _taken_apart(text: str, now: date) -> tuple[Asked, str]:
    """What was understood, and what is left."""
    text = text.strip(_AROUND)
    tags = [found["tag"] for found in _TAGGED.finditer(text)]
    text = " ".join(_TAGGED.sub(" ", text).split())
    if not tags and (found := _TAGGED_WORD.search(text)):
        tags, text = [found["tag"]], text[: found.start()].strip()
    days, left = period(text, now)
    return Asked(days, tuple(tags)), " ".join(left.split()).strip(_AROUND)
