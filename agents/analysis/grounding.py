"""Whether a text says only what its evidence does: each number and each name in it must stand there, and each word that
is not one of those with which findings are put together. A model may be led astray by what it reads; what no tool
returned is not said all the same."""

from __future__ import annotations

from collections.abc import Iterable

import regex

from mesh.text import content_words, language, words

_SENTENCE_START = regex.compile(r"(?:^|[.!?:\n•-]\s*)[\"“*_(]*$")
_NAME = regex.compile(r"\b\p{Lu}[\p{L}\p{M}’'-]+")
_MADE_UP = regex.compile(
    r"\b(?=\w*\p{L})(?:\w*\p{Lu}\w*\p{Lu}\w*|\w*[\p{Nd}_]\w*|\p{Ll}+\p{Lu}\w*)\b|\S*(?:@|://|www\.)\S*"
)
"""No ordinary word, wherever it stands: KANARIENVOGEL, key_7, x2Y, an address."""
_NUMBER = regex.compile(r"\p{Nd}+(?:[.,٬٫:]\p{Nd}+)*")
_COMMON = frozenset(
    words(
        "I Yes No The It They There This That Monday Tuesday Wednesday Thursday Friday Saturday Sunday total together"
    )
)
_SPELLED = frozenset(
    words(
        """two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
        eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million half double
        twice Monday Tuesday Wednesday Thursday Friday Saturday Sunday January February April June July August September
        October November December"""
    )
)


_JOINING = frozenset(
    words(
        """cost costs price priced come comes total altogether sum amount more less cheap cheaper cheapest expensive
        most least run runs night day week month person piece extra plus minus difference differ between save saves
        answer per known unknown found find document documents say says mention mentions according state states
        available include includes included need needs pay paid left remain remains higher lower same equal equals
        first second both each
        cuesta cuestan precio suma importe caro cara barato barata noche día semana mes persona diferencia dice
        según documento sabe conoce incluye incluido queda quedan igual respuesta pagar
        coûte coûtent prix somme montant cher chère moins nuit jour semaine mois personne différence dit selon
        connu inconnu inclut inclus reste égal réponse payer
        kostet kosten preis summe betrag teuer teurer billig billiger günstiger nacht tag woche monat unterschied sagt
        laut dokument bekannt unbekannt enthält enthalten bleibt bleiben gleich antwort zahlen insgesamt
        custa custam preço soma valor noite dia semana mês pessoa diferença diz documento conhecido inclui incluído
        resta igual resposta pagar
        कीमत कुल राशि महंगा सस्ता रात दिन सप्ताह महीना व्यक्ति अंतर दस्तावेज़ शामिल बाकी उत्तर ज्ञात"""
    )
)
"""With which findings are put together."""


def grounded(text: str, evidence: Iterable[str], *, question: str = "", around: str = "") -> bool:
    """Numbers, spelled ones too, days and names; a name at the start of a sentence may be an ordinary word. And every
    other word, which may also be of what stands `around` the evidence, except for who asked in another language than
    the evidence's and is answered in theirs."""
    pieces = list(evidence)
    known = {word for piece in (*pieces, question) for word in words(piece)}
    if any(not set(words(found.group())) <= known | _COMMON for found in _MADE_UP.finditer(text)):
        return False
    said_here = known | {*words(around)} | _JOINING | _COMMON
    if not _translates(text, pieces, question) and not set(content_words(text)) <= said_here:
        return False
    numbers = {word for match in _NUMBER.finditer(text) for word in words(match.group())}
    said = set(words(text))
    if not numbers <= known or not (said & _SPELLED) <= known:
        return False
    for match in _NAME.finditer(text):
        if _SENTENCE_START.search(text[: match.start()]):
            continue
        if not set(words(match.group())) <= known | _COMMON:
            return False
    return True


def _translates(text: str, evidence: Iterable[str], question: str) -> bool:
    spoken = language(text)
    return spoken is not None and spoken == language(question) and language(" ".join(evidence)) not in (None, spoken)
