"""The kinds of thing that questions ask for, in English, Spanish and Hindi: a price, a time, a name, a number."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import regex

_NAME = r"(?<!^)(?<![.!?:] )\b\p{Lu}[\p{L}\p{M}\p{N}'’-]+"
_NUMBER_WORD = (
    r"one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|hundred|thousand|million|billion|half"
    r"|once|twice|first|una|dos|tres|cuatro|cinco|seis|siete|ocho|nueve|diez"
)
_CURRENCY = (
    r"usd|eur|gbp|inr|chf|sek|nok|dkk|isk|pln|czk|huf|ron|try|cad|aud|nzd|sgd|hkd|jpy|cny|krw|zar|ngn|kes|brl|mxn"
    r"|ars|clp|cop|aed|sar|ils|kr|rs|fr|zł|kč|r\$"
)
_MONEY = (
    rf"\p{{Sc}}\s?\d|\b(?:{_CURRENCY})\.?\s?\d"
    rf"|\d[\d.,]*\s?(?:\p{{Sc}}|%|(?:{_CURRENCY})\b|(?:dollar|euro|pound|rupee|peso|cent|franc|kron(?:or|er|e))s?\b"
    r"|p\b|pence\b)"
    r"|\bfree\b|\bgratis\b|\bno (?:extra )?(?:charge|cost)|\bwaived\b|रुपये|रुपए|मुफ़?्त|निःशुल्क"
)
_TIME = (
    r"\d{1,2}[:.h]\d\d|\d\s?(?:am|pm|a\.m|p\.m)\b|\b\d{4}\b|\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b"
    r"|\b(?:january|february|march|april|may|june|july|august|september|october|november|december)\b"
    r"|\b(?:lunes|martes|mi[eé]rcoles|jueves|viernes|s[aá]bado|domingo|enero|febrero|marzo|abril|mayo|junio"
    r"|julio|agosto|septiembre|octubre|noviembre|diciembre)s?\b"
    r"|\b(?:hour|day|week|month|year|minute|hora|d[ií]a|semana|a[nñ]o|minuto)s?\b|\bmes(?:es)?\b"
    r"|\bcentur(?:y|ies)\b|\bnoon\b|\bmidnight\b|\bdaily\b|\bclosed\b|\bcerrad[oa]\b"
    r"|बजे|घंटे|दिन|महीने|साल|मिनट|वार\b|छुट्टी|बंद"
)


@dataclass(frozen=True)
class Wish:
    """A kind of thing that questions ask for: how it is asked, and how it looks in a document."""

    asked: str
    seen: str
    only: bool = False
    cased: bool = False

    @cached_property
    def question(self) -> regex.Pattern[str]:
        return regex.compile(self.asked, regex.IGNORECASE)

    @cached_property
    def answer(self) -> regex.Pattern[str]:
        return regex.compile(self.seen, 0 if self.cased else regex.IGNORECASE)

    def met(self, text: str) -> int:
        if self.answer.search(text):
            return 1
        if self.cased and not regex.search(r"\p{Lu}|\p{Ll}", text):
            return 0  # a script without capitals shows no names
        return -2 if self.only else -1


WISHES = (
    Wish(
        r"\be-?mail address|\b(?:your|the|'s) e-?mail\b|^e-?mail\b|^(?:[\p{L}'’-]+ ){1,3}e-?mail\W*$"
        r"|\b(?:su|tu|el) correo"
        r"|\bcorreo electr[oó]nico|ईमेल",
        r"\S@\S",
        only=True,
    ),
    Wish(
        r"\b(?:tele)?phone number\b|\b(?:your|the|'s) (?:tele)?phone\b|^(?:tele)?phone\b"
        r"|\b(?:emergency|contact|mobile|whatsapp|fax|support|hotline) number\b"
        r"|\bnumber (?:to|can i) call\b|\bdirect line\b"
        r"|\bn[uú]mero de tel[eé]fono\b|\b(?:su|tu|el) tel[eé]fono\b"
        r"|(?:फ़ोन|फोन|मोबाइल) नंबर",
        r"\+?\d[\d\s().-]{5,}\d",
        only=True,
    ),
    Wish(
        r"\bwhere\b|\baddress\b|\blocated\b|\bd[oó]nde\b|\bdirecci[oó]n\b|\bubicaci[oó]n\b|कहाँ|कहां|\bपता\b",
        rf"{_NAME}|\b(?:street|road|lane|avenue|floor|calle|avenida|plaza)\b|रोड|मार्ग|नगर|गली|चौक",
        cased=True,
    ),
    Wish(
        r"\bhow much\b|\bprices?\b|\bcosts?\b|\bfees?\b|\bcharged?s?\b"
        r"|\bcu[aá]nto (?:cuestan?|vale|cobran?|es|sale)\b|\bprecios?\b|\bcuestan?\b|\bvale\b|\btarifas?\b"
        r"|कीमत|दाम|फीस|फ़ीस|शुल्क|कितने का|कितने की",
        _MONEY,
    ),
    Wish(
        r"\bwhen\b|\bwhat (?:time|year|day|month|date)s?\b|\bwhich (?:year|day|month)\b"
        r"|\bhow (?:long|soon|often)\b|\bhours\b|\bopen(?:ing)? (?:on|at|till|until|times?)\b"
        r"|\b(?:are|is) (?:you|it|the (?:\w+ ){1,3})(?:open|closed)\b"
        r"|\bcu[aá]ndo\b|\b(?:a )?qu[eé] (?:hora|d[ií]a|a[nñ]o)\b"
        r"|\bhorarios?\b|\bcu[aá]nto tiempo\b"
        r"|कब|कितने (?:बजे|समय|दिन)",
        _TIME,
    ),
    Wish(
        r"\bhow (?:many|far|old|heavy|big|large|tall|high)\b|\bcu[aá]nt[oa]s?\b|\bpercent(?:age)?\b|कितन[ेीा]",
        rf"\d|\b(?:{_NUMBER_WORD})\b|एक|दो|तीन|चार|पाँच|पांच|छह|सात|आठ|दस",
    ),
    Wish(r"\bwho(?:se|m)?\b|\bqui[eé]n(?:es)?\b|कौन|किसने|किसका", _NAME, cased=True),
)

WISH_WORDS = regex.compile("|".join(wish.asked for wish in WISHES), regex.IGNORECASE)

_KIND = regex.compile(rf"\b(?P<which>{_NUMBER_WORD}|\d+)-(?P<of>\p{{L}}{{4,}})\b", regex.IGNORECASE)
_GRADE = regex.compile(r"\b(?P<letters>\p{Lu}{1,3})(?P<digits>\d{1,2})\b")


def of_another_kind(question: str, said: str) -> bool:
    """Whether a four-bedroom house is asked for and only a three-bedroom one is spoken of, or C1 and only B2."""
    plain = said.casefold()
    for kind in _KIND.finditer(question):
        others = regex.search(rf"\b(?:{_NUMBER_WORD}|\d+)-{kind['of']}", plain, regex.IGNORECASE)
        if kind.group().casefold() not in plain and others:
            return True
    for grade in _GRADE.finditer(question):
        alike = {
            other.group()
            for other in _GRADE.finditer(said)
            if all(len(other[part]) == len(grade[part]) for part in ("letters", "digits"))
        }
        if alike and grade.group() not in alike:
            return True
    return False
