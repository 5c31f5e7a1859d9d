"""The kinds of thing that questions ask for, in English, Spanish and Hindi: a price, a time, a name, a number.
Prices and times also in French, German and Portuguese."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import regex

CALENDAR = (
    r"(?:mon|tue|tues|wed|wednes|thu|thur|thurs|fri|sat|satur|sun)(?:days?)?|jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?"
    r"|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?"
)
_NAME = rf"(?<!^)(?<![.!?:] )\b(?!(?i:{CALENDAR})\b)\p{{Lu}}[\p{{M}}\p{{N}}'’-]*\p{{Ll}}[\p{{L}}\p{{M}}\p{{N}}'’-]*"
"""A name, and no weekday and no VAT."""
_STREET = (
    r"street|st\.|road|rd\.|lane|avenue|ave\.|boulevard|square|quay|court|terrace|crescent|drive|highway|harbou?r"
    r"|floor|calle|avenida|avda\.|plaza|paseo|camino|carretera|rua|rue|piazza|via|\p{L}+(?:stra(?:ß|ss)e|weg|platz)"
)
_ADDRESS = (
    rf"\b(?i:{_STREET})(?!\p{{L}})"
    rf"|(?<![\d\p{{Sc}}.,:-]\s?)\b\d{{1,4}}[a-z]? (?!(?i:{CALENDAR})\b)\p{{Lu}}\p{{Ll}}{{2,}}\b(?!:)"
    rf"|(?<!^)(?<![.!?:\n] ?)\b(?!(?i:{CALENDAR})\b)\p{{Lu}}\p{{Ll}}{{3,}},? \d{{1,4}}\b"
    r"(?![-:%€.]|\s(?:[€%ap]|\p{Ll}))"
    r"|\b[A-Z]{1,2}\d{1,2}[A-Z]? \d[A-Z]{2}\b|(?<![\d,.] ?)\b\d{5}\b(?! ?\d)"
    r"|\b(?:corner of|next to|opposite|behind|basement)\b"
    r"|रोड|मार्ग|नगर|गली|चौक"
)
_NUMBER_WORD = (
    r"one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|hundred|thousand|million|billion|half"
    r"|once|twice|first|una|dos|tres|cuatro|cinco|seis|siete|ocho|nueve|diez"
)
_MEASURE = (
    r"minutes?|mins?|hours?|hrs?|days?|nights?|weeks?|months?|years?|kgs?|kilos?|grams?|lbs?|pounds?|euros?|dollars?"
    r"|miles?|kms?|kilomet(?:er|re)s?|met(?:er|re)s?|feet|litres?|liters?|degrees?|percent|times"
    r"|minutos?|horas?|d[ií]as?|noches?|semanas?|mes(?:es)?|a[nñ]os?"
)
"""What tells how long, how old or how heavy, and not how many of a thing."""
_CURRENCY = (
    r"usd|eur|gbp|inr|chf|sek|nok|dkk|isk|pln|czk|huf|ron|try|cad|aud|nzd|sgd|hkd|jpy|cny|krw|zar|ngn|kes|brl|mxn"
    r"|ars|clp|cop|aed|sar|ils|kr|rs|fr|zł|kč|r\$"
)
_MONEY = (
    rf"\p{{Sc}}\s?\d|\b(?:{_CURRENCY})\.?\s?\d"
    rf"|\d[\d.,]*\s?(?:\p{{Sc}}|%|(?:{_CURRENCY})\b|(?:dollar|euro|pound|rupee|peso|cent|franc|kron(?:or|er|e)|zloty"
    r"|crown|forint|lira|lei|leu|ruble|yen|yuan|won|baht|ringgit|rand|shilling|dirham|riyal|dinar|shekel|naira|reais?"
    r"|sole?|buck|quid)s?\b"
    r"|p\b|pence\b)"
    r"|\bfree\b|\bgr[aá]tis\b|\bgratuit[aeos]*\b|\bkostenlos\b"
    r"|\bno (?:extra )?(?:charge|cost)|\bwaived\b|रुपये|रुपए|मुफ़?्त|निःशुल्क"
)
_AGE = (
    r"\d[- ]years?\b|\byears? old\b|\bage[ds]?\b|\b(?:1[4-9]|20)\d\d\b(?! \d)|\bcentur(?:y|ies)\b"
    r"|\b(?:over|under|from|at least|above|below|older than|younger than) \d{1,3}\b(?! \d)"
    r"|\b\d{1,3} (?:and|or|to|years) (?:over|older|above|up|under|younger|below)\b|\b\d\d?\+"
    r"|\d a[nñ]os\b|\bedad\b|\d jahren?\b|\balter\b|\d ans\b|[aâ]ge\b|\d anos\b|\bidade\b|\d (?:साल|वर्ष)|उम्र|आयु"
)
_TIME = (
    r"\d{1,2}[:.h]\d\d|\d\s?(?:am|pm|a\.m|p\.m)\b|\b\d{4}\b|\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b"
    r"|\b(?:january|february|march|april|may|june|july|august|september|october|november|december)\b"
    r"|\b(?:lunes|martes|mi[eé]rcoles|jueves|viernes|s[aá]bado|domingo|enero|febrero|marzo|abril|mayo|junio"
    r"|julio|agosto|septiembre|octubre|noviembre|diciembre)s?\b"
    r"|\b(?:hour|day|week|month|year|minute|hora|d[ií]a|semana|a[nñ]o|minuto)s?\b|\bmes(?:es)?\b"
    r"|\d\s?h\b|\buhr\b|\b(?:heure|jour|semaine|stunde|tage?|woche|monate?|jahre?|ano)[ns]?\b|\bm[eê]s\b|\bann[eé]es?\b"
    r"|\b(?:lun|mar|mercre|jeu|vendre|same)di\b|\bdimanche\b|\b(?:mon|diens|donners|frei|sams|sonn)tags?\b|\bmittwochs?\b"
    r"|\b(?:segunda|ter[cç]a|quarta|quinta|sexta)-feiras?\b"
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


PRICE = Wish(
    r"\bhow much\b|\bprices?\b|\bcosts?\b|\bfees?\b|\bcharged?s?\b"
    r"|\bcu[aá]nto (?:cuestan?|vale|cobran?|es|sale)\b|\bprecios?\b|\bcuestan?\b|\bvale\b|\btarifas?\b"
    r"|\bquanto (?:custam?|[eé]|s[aã]o|fica|sai|cobram?)\b|\bcustam?\b|\bpreços?\b"
    r"|\b(?:combien |[cç]a )?co[uû]te(?:nt)?\b|\bprix\b|\btarifs?\b"
    r"|\b(?:was |wie ?viel )?kostet\b|\b(?:was |wie ?viel )?kosten\b|\bpreise?\b"
    r"|कीमत|दाम|फीस|फ़ीस|शुल्क|कितने का|कितने की",
    _MONEY,
)

_PRICED = regex.compile(
    r"\bhow much (?:is|are|was|were|does|do|did|would|will|for|to)\b|\b(?:price|cost) of\b"
    r"|\bwhat (?:does|do|did|would|will) .*\b(?<!in )(?:cost|charge)(?=\W*$|\s(?:for|per|to|if|when|me|us|you)\b)"
    r"|\bcu[aá]nto (?:cuestan?|vale|cobran?)\b|\bwas kostet\b|\bcombien co[uû]te|\bquanto custam?\b",
    regex.IGNORECASE,
)
_AS_GOOD = regex.compile(
    r"\b(?:half|third|quarter|double|twice|included|nothing|same|mitad|incluid[oa]s?|nada|hälfte|inbegriffen|moiti[eé]"
    r"|compris[es]?|metade)\b|\d\s?%",
    regex.IGNORECASE,
)


_SUM = regex.compile(
    rf"(?<![\d:.])\d[\d.,]*\s(?!(?:{_MEASURE}|a\.?m|p\.?m|and|for|from|until|people|persons|guests|children|adults|who)\b)"
    r"\p{L}{3,}",
    regex.IGNORECASE,
)
"""An amount of what may be a currency."""


def is_unpriced(question: str, said: str, around: str) -> bool:
    """Whether an amount of money is asked for, and a sentence has none, nor what is around it, nor what would do for
    one."""
    if not _PRICED.search(question) or _SUM.search(said):
        return False
    return PRICE.met(around) <= 0 and not _AS_GOOD.search(around)


WHO = Wish(r"\bwho(?:se|m)?\b|\bqui[eé]n(?:es)?\b|कौन|किसने|किसका", _NAME, cased=True)

WISHES = (
    Wish(
        r"\be-?mail address|\b(?:your|the|'s) e-?mail\b|^e-?mail\b|^(?:[\p{L}'’-]+ ){1,3}e-?mail\W*$"
        r"|\b(?:su|tu|el) correo"
        r"|\bcorreo electr[oó]nico|ईमेल",
        r"\S@\S",
        only=True,
    ),
    Wish(
        r"\b(?:(?:your|the|'s) )?(?:tele)?phone number\b|\b(?:your|the|'s) (?:tele)?phone\b|^(?:tele)?phone\b"
        r"|\b(?:emergency|contact|mobile|whatsapp|fax|support|hotline) number\b"
        r"|\bnumber (?:to|can i) call\b|\bdirect line\b"
        r"|\bn[uú]mero de tel[eé]fono\b|\b(?:su|tu|el) tel[eé]fono\b"
        r"|(?:फ़ोन|फोन|मोबाइल) नंबर",
        r"\+?\d[\d\s().-]{5,}\d",
        only=True,
    ),
    Wish(
        r"\b(?:what(?:'s| is)|(?:your|the|studio|shop|street|postal|full) )\s?(?:your |the )?address\b|^address\b"
        r"|\bwhere (?:exactly )?(?:are|can (?:i|we) find|do (?:i|we) find) (?:you|u)(?: located| based)?\b"
        r"(?! (?:from|going))"
        r"|\bwhere(?:'s| is| are) (?:your|the|ur) (?:shop|studio|office|workshop|store|place|premises|salon|clinic|"
        r"practice|surgery|restaurant|caf[eé]|bakery|gym|school|kitchen|showroom|business|company)\b(?: located)?"
        r"|\b(?:are|is) (?:you|the \w+|your \w+) located\b|\blocated\W*$"
        r"|\bd[oó]nde (?:est[aá]n|est[aá]is|se encuentran)(?: ubicad[oa]s)?\W*$|\b(?:su|tu|la) direcci[oó]n\b"
        r"|\bआपका पता\b",
        _ADDRESS,
        only=True,
        cased=True,
    ),
    Wish(
        r"\bwhere\b|\baddress\b|\blocated\b|\bd[oó]nde\b|\bdirecci[oó]n\b|\bubicaci[oó]n\b|कहाँ|कहां|\bपता\b",
        rf"{_NAME}|\b(?:street|road|lane|avenue|floor|calle|avenida|plaza)\b|रोड|मार्ग|नगर|गली|चौक",
        cased=True,
    ),
    PRICE,
    Wish(
        r"\bwhen\b|\bwhat (?:time|year|day|month|date)s?\b|\bwhich (?:year|day|month)\b"
        r"|\bhow (?:long|soon|often)\b|\bhours\b|\bopen(?:ing)? (?:on|at|till|until|times?)\b"
        r"|\b(?:are|is) (?:you|it|the (?:\w+ ){1,3})(?:open|closed)\b"
        r"|\bcu[aá]ndo\b|\b(?:a )?qu[eé] (?:hora|d[ií]a|a[nñ]o)\b"
        r"|\bhorarios?\b|\bcu[aá]nto tiempo\b"
        r"|\b(?:at[eé] )?quando\b|\b(?:a |at[eé] )?que horas\b|\bhorários?\b|\bquanto tempo\b"
        r"|\bquand\b|\b(?:à |jusqu['’]à )?quelles? heures?\b|\bhoraires?\b|\bcombien de temps\b"
        r"|\b(?:ab |bis )?wann\b|\bum wie ?viel uhr\b|\bwie lange\b|\böffnungszeiten\b"
        r"|कब|कितने (?:बजे|समय|दिन)",
        _TIME,
    ),
    Wish(
        r"\bhow old\b|\bwhat age\b|\bqu[eé] edad\b|\bcu[aá]ntos a[nñ]os tienen?\b|\bwie alt\b|\bquel [aâ]ge\b"
        r"|\bque idade\b",
        _AGE,
        only=True,
    ),
    Wish(
        rf"\bhow (?:far|heavy|big|large|tall|high)\b|\b(?:how many|cu[aá]nt[oa]s?) (?=(?:{_MEASURE})\b)"
        r"|\bpercent(?:age)?\b",
        rf"\d|\b(?:{_NUMBER_WORD})\b|एक|दो|तीन|चार|पाँच|पांच|छह|सात|आठ|दस",
    ),
    Wish(
        r"\bhow many\b|\bcu[aá]nt[oa]s?\b|कितन[ेीा]",
        rf"(?<![\d.,:\p{{Sc}}])(?<!\p{{Sc}} )\d++(?![.,:]?\d|\s?-?(?:{_MEASURE}|am|pm|\p{{Sc}}|%)(?!\p{{L}}))"
        rf"|\b(?:{_NUMBER_WORD})\b(?!\s(?:{_MEASURE})\b)|एक|दो|तीन|चार|पाँच|पांच|छह|सात|आठ|दस",
        only=True,
    ),
    WHO,
)

# not "was", which is German for what: "Was kostet das?"
_YES_OR_NO = regex.compile(r"\W*(?:is|are|do|does|can|could|will|would|may|must|has|have)\b", regex.IGNORECASE)


def wish_of(question: str) -> Wish | None:
    """The first that it asks for. Whether something is in the fee asks for no amount."""
    wish = next((wish for wish in WISHES if wish.question.search(question)), None)
    return None if wish is PRICE and _YES_OR_NO.match(question) else wish


WISH_WORDS = regex.compile("|".join(wish.asked for wish in WISHES), regex.IGNORECASE)

_KIND = regex.compile(rf"\b(?P<which>{_NUMBER_WORD}|\d+)-(?P<of>\p{{L}}{{4,}})\b", regex.IGNORECASE)
_GRADE = regex.compile(r"\b(?P<letters>\p{Lu}{1,3})(?P<digits>\d{1,2})\b")


_OF_THE = (
    r"\b(?:the|an?|any|your|our|el|la|un[ao]?|su|die|das|der|eine?|ihre?|le|les|une?|votre|o|a|uma?)\s(?:\p{L}+\s)?"
)
_KINDS = tuple(
    (regex.compile(_OF_THE + rf"(?:{asked})\b", regex.IGNORECASE), regex.compile(seen, regex.IGNORECASE))
    for asked, seen in (
        (
            "deposit|down payment|dep[oó]sito|fianza|anzahlung|kaution|acompte|caution",
            r"deposit|down payment|\badvance|up ?front|prepa(?:y|id)|dep[oó]sito|fianza|se[nñ]al|anzahlung|kaution"
            r"|voraus|acompte|caution|avance|sinal|adiant|अग्रिम|जमा",
        ),
        (
            "discount|descuento|rabatt|erm[aä](?:ß|ss)igung|remise|r[eé]duction|desconto",
            r"discount|reduc|cheaper|less\b|\boff\b|free|half|descuento|rebaja|rabatt|erm[aä](?:ß|ss)igt?|remise|desconto|छूट",
        ),
        (
            "guarantee|warranty|garant[ií]a|garantie",
            r"guarant|warrant|garant|\bput it right\b|repaired? free|free repair|वारंटी|गारंटी",
        ),
    )
)
"""Kinds of sums and terms that a price or a time of the same thing is not: how they are asked for, and how said."""


def of_another_kind(question: str, said: str) -> bool:
    """Whether a four-bedroom house is asked for and only a three-bedroom one is spoken of, or C1 and only B2, or the
    deposit and only the price."""
    if any(asked.search(question) and not seen.search(said) for asked, seen in _KINDS):
        return True
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
