"""Prices that take arithmetic: three nights for two, four of these and one of those."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from math import prod

import regex

from agents.analysis.plans import Conclusion, unasked
from agents.analysis.pricelists import Entry, Price, entries, mentions, price_of
from agents.analysis.quantities import COUNT, EACH, PEOPLE, TIMES, UNIT_OF, amounts, count, in_units
from agents.analysis.scratchpad import Call, Finding, Observation, Scratchpad
from agents.analysis.tools import READ, SEARCH
from mesh.bounds import fits, unbound
from mesh.contracts.answers import Source
from mesh.text import clipped, content_words, sentences, words

CONDITIONS = "conditions"
MOST_CONDITIONS = 6
MOST_ITEMS = 3
MOST_DOCUMENTS = 4
LONGEST_STATED = 200

_ASKS_PRICE = regex.compile(
    r"\bhow much\b|\b(?:price|costs?|charged?|pay|fees?|total|come to)\b|\bcu[aá]nto\b|\bprecio\b"
    r"|\bwhat (?:would|will|does|do)\b.*\b(?:be|make)\s*\??$",
    regex.IGNORECASE,
)
_ASKS_ELSE = regex.compile(r"\bhow (?:long|many|often|far|old)\b|\bwhen\b|\bdeposit\b|\bcu[aá]ndo\b", regex.IGNORECASE)
_TOTAL = regex.compile(r"\b(?:total|altogether|all together|in all|come to|sum)\b", regex.IGNORECASE)
_UNITS = "|".join(sorted((word for word, unit in UNIT_OF.items() if unit != EACH), key=len, reverse=True))
_HEADS = "|".join(sorted((word for word, unit in UNIT_OF.items() if unit in PEOPLE), key=len, reverse=True))
_AFTER_UNIT = (
    r"(?=\s*(?:[?!.,;:+]|$|\b(?:in|for|with|and|plus|at|of|do|does|would|will|is|are|be|cost|costs|including|on|from|to|stay|"
    r"together|altogether|if|when|please|how|y|en|con|de|para|por|cuesta|cuestan)\b))"
)
_QUANTITY = regex.compile(
    rf"\b(?:(?:for|during|of|per|para|por|durante|de)\s+)?(?:(?:the\s+)?(?:first|next)\s+)?"
    rf"(?:(?P<n>{COUNT})\s+(?P<unit>{_UNITS})|(?:a|an)\s+(?P<one>{_HEADS})){_AFTER_UNIT}"
    rf"(?:\s+(?:in|at|of|en|de)\b(?!\s+total))?",
    regex.IGNORECASE,
)
_FRAME = regex.compile(
    r"\b(?:how much|cu[aá]nto|cu[aá]nta|what(?:'s| is| are)?|would|will|does|do|is|are|it|be|costs?|cuestan?|"
    r"valen?|come to|in total|altogether|all together|in all|en total|total|the (?:price|cost) (?:of|for)|"
    r"price|prices|(?:do|will|would) (?:i|we) (?:pay|have to pay)|(?:i|we) (?:pay|need to pay|have to pay|owe)|"
    r"(?:to|i|we)(?: want(?: to)?| would like to)? (?:stay|book|buy|get|rent|hire|take|order)|staying|"
    r"(?:i|we)|if|to|please|tell me|that|pay|charged?|you|say|hello|hi)\b|[¿?!.]",
    regex.IGNORECASE,
)
_JOINS = regex.compile(
    r"\s*(?:,|\+|\bplus\b|\band\b|\bwith\b|\bincluding\b|\by\b|\bcon\b|\bm[aá]s\b)\s*", regex.IGNORECASE
)
_LEADS = regex.compile(
    r"^(?:in|at|for|of|on|from|en|de|por|para|a|an|the|el|la|los|las|un|una|your|their)\s+", regex.IGNORECASE
)
_TRAILS = regex.compile(r"\s+(?:for|in|at|of|on|to|per|de|en|por|para)$", regex.IGNORECASE)
_COUNTED = regex.compile(rf"^(?P<n>{COUNT})\s+(?P<rest>\S.*)$", regex.IGNORECASE)
_LASTING = "|".join(word for word, unit in UNIT_OF.items() if unit in TIMES)
_NUMBERED = regex.compile(rf"\d|\b{COUNT}\s+(?:{_UNITS})\b|\b(?:{_LASTING})\b", regex.IGNORECASE)
_SIZE = regex.compile(r"\b(?P<n>\d+)[\s-]?(?P<unit>lbs?|kgs?|kilos?|cm)\b", regex.IGNORECASE)
_EXTRA = regex.compile(rf"(?:extra|additional|further)\s+(?:{_LASTING})", regex.IGNORECASE)
_PLURAL = regex.compile(r"\p{L}{2,}(?<!s)s(?:\s+(?:of|for|with|de|con)\b|$)", regex.IGNORECASE)
"""Three menus; but a 3 course menu is one, and a 5 litre can."""
_ONCE = regex.compile(
    r"\b(?:once|one[- ]off|one[- ]time|joining|registration|enrolment|sign[- ]?up)\b", regex.IGNORECASE
)
_TAXES = regex.compile(r"(?:the |all )*(?:vat|tax(?:es)?|iva|fees)", regex.IGNORECASE)
_MODIFIES = regex.compile(
    r"\b(?:less|cheaper|discount\w*|reduc\w+|surcharge|supplement|extra (?:charge|cost|fee|person|guest)|minimum|"
    r"maximum|or more|season|tax|taxes|vat|half|double|free|plus|not included|excl\w*|weekends?|from \d|"
    r"m[aá]s barat\w+|descuento|recargo|suplemento|m[ií]nimo|temporada|impuesto|tasa|iva|gratis|mitad)\b|\d\s?%",
    regex.IGNORECASE,
)
_CHANGES = regex.compile(
    r"\b(?:surcharge|supplement|extra|more|less|cheaper|off|discount\w*|reduc\w+|half|double|tax|vat|recargo|suplemento|"
    r"descuento|m[aá]s|menos)\b|%",
    regex.IGNORECASE,
)
_ON_TOP = regex.compile(r"\b(?:excl\w*|plus|not incl\w*|sin|without)\b|%|\+", regex.IGNORECASE)
_FOR_ALL = regex.compile(
    r"\b(?:prices?|rates?|fees?|vat|tax(?:es)?|iva|groups?|all|every|each|orders?|bookings?|customers?|guests?|members?|"
    r"precios?|tarifas?|grupos?|tod[oa]s)\b",
    regex.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Item:
    name: str
    count: int = 1
    asked: tuple[tuple[str, int], ...] = ()
    """How many nights, people, … of it."""
    size: tuple[tuple[float, str], ...] = ()
    """The 70 lb of "a 70 lb dog"."""
    own: bool = field(default=True, compare=False)
    """Whether any of them was said of it, and not of another thing beside it."""


@dataclass(frozen=True, slots=True)
class Worked:
    """One line of the sum."""

    item: Item
    factors: tuple[tuple[int, str], ...]
    price: Price
    source: Source

    @property
    def value(self) -> Decimal:
        return self.price.amount.value * prod(number for number, _ in self.factors)

    def line(self) -> str:
        amount, name = self.price.amount, self.price.entry.name or self.item.name
        factors = " × ".join(f"{number} {_worded(unit, number)}".strip() for number, unit in self.factors)
        if not factors:
            return f"{_titled(name)}: {amount.written()}"
        return f"{_titled(name)}: {factors} × {amount.written()} = {amount.written(self.value)}"


@dataclass(frozen=True, slots=True)
class Sum:
    items: tuple[Item, ...]
    text: str

    @classmethod
    def of(cls, text: str) -> Sum | None:
        if not _ASKS_PRICE.search(text) or _ASKS_ELSE.search(text) or len(text) > 300:
            return None
        items = _items(text)
        multiplied = any(item.count > 1 or item.asked for item in items)
        adds_up = len(items) > 1 and bool(_TOTAL.search(text))
        if not 0 < len(items) <= MOST_ITEMS or not (multiplied or adds_up):
            return None
        return cls(items, text)

    def next(self, pad: Scratchpad) -> Call | None:
        searches = [Call(SEARCH, f"{item.name} price") for item in self.items]
        return unasked(pad, searches) or unasked(pad, reads(pad))

    def fold(self, pad: Scratchpad, call: Call, observation: Observation) -> Scratchpad:
        """Of a document, what it says of the items, and what may change their price."""
        pad = pad.after(call, observation)
        if call.tool != READ:
            return pad
        for passage in observation.passages:
            listed = entries(passage.text)
            for item in self.items:
                pad = pad.found(*kept(listed, item.name, passage.source))
            sections = {entry.section for entry in listed for item in self.items if mentions(entry, item.name)}
            if sections:
                pad = pad.found(*self._conditions(passage.text, passage.source, sections))
        return pad

    def conclude(self, pad: Scratchpad) -> Conclusion | None:
        by_item = {item: self._worked(item, pad) for item in self.items}
        worked = [each for lines in by_item.values() for each in lines]
        multiplied = any(each.factors for each in worked)
        if not (multiplied or len(worked) > 1) or len({each.price.amount.currency for each in worked}) > 1:
            return None
        lines = [each.line() for each in worked]
        missing = [item for item, found in by_item.items() if not found]
        if len(worked) > 1:
            total = sum((each.value for each in worked), Decimal(0))
            lines.append(f"*{'Together' if missing else 'Total'}: {worked[0].price.amount.written(total)}*")
        lines += [f"Not counted: {item.name}. I found no price that fits." for item in missing]
        if self._people_left_out(worked):
            lines.append("The price is not given per person, so the number of people is not counted.")
        stated = dict.fromkeys(each.price.entry.text for each in worked)
        lines += ["", *(f"> {clipped(text, LONGEST_STATED)}" for text in stated)]
        conditions = [finding for finding in pad.about(CONDITIONS) if finding.quote not in stated]
        if conditions:
            lines.append("\nThis is before anything of the following that applies:")
            lines += [f"• {clipped(finding.quote, LONGEST_STATED)}" for finding in conditions[:MOST_CONDITIONS]]
        sources = tuple(dict.fromkeys(each.source for each in worked))
        return Conclusion("\n".join(lines), sources, 1.0)

    def _worked(self, item: Item, pad: Scratchpad) -> list[Worked]:
        """Lines of the sum for one item; none where its price does not fit what was asked."""
        findings = pad.about(item.name)
        prices = price_of(item.name, _of_size([entry_of(finding) for finding in findings], item.size), self.text)
        if not prices:
            return []
        source = next(finding.source for finding in findings if finding.quote == prices[0].entry.text)
        asked = in_units(dict(item.asked), {unit for price in prices for unit in price.amount.per})
        units = {unit: number for unit, number in asked.items() if unit not in PEOPLE}
        people = {unit: number for unit, number in asked.items() if unit in PEOPLE}
        if not item.own and all(_ONCE.search(price.entry.text) and not price.amount.per for price in prices):
            units = {}
        if any(price.amount.per - PEOPLE - {EACH} != set(units) for price in prices):
            return []
        counted = [(item.count, "")] if item.count > 1 else []
        factors = (*counted, *((number, unit) for unit, number in units.items()))
        if not any(price.amount.per & PEOPLE for price in prices):
            if "child" in people or (people and not units.keys() & {"night", "week", "month"}):
                return []  # who knows whether it is for all of them, and what children pay
            return [Worked(item, factors, prices[0], source)]
        heads = [(kind, number, _for(kind, prices)) for kind, number in people.items()]
        found = [Worked(item, ((number, kind), *factors), price, source) for kind, number, price in heads if price]
        return found if heads and len(found) == len(heads) else []

    def _people_left_out(self, worked: Iterable[Worked]) -> bool:
        return any(
            any(unit in PEOPLE for unit, _ in each.item.asked) and not each.price.amount.per & PEOPLE for each in worked
        )

    def _conditions(self, text: str, source: Source, sections: Iterable[str]) -> Iterator[Finding]:
        """Sentences that change a price, and are about what was asked, or about all prices. What stands elsewhere with
        a price of its own ("From 6 people, 38€ per person", under Parties) is another thing."""
        about = {word for item in self.items for word in content_words(item.name)}
        units = {word for item in self.items for unit, _ in item.asked for word in words(unit)}
        heading = ""
        for span in sentences(text):
            if span.kind == "heading":
                heading = " ".join(span.of(text).strip("# *").split())
            here = not heading or any(heading in section for section in sections)
            sentence = " ".join(span.of(text).split()).strip("#*•- ")
            if span.kind == "row" or not _MODIFIES.search(sentence):
                continue
            if span.kind == "heading" and not _ON_TOP.search(sentence):
                continue
            elsewhere = not here and amounts(sentence) and not _CHANGES.search(sentence)
            if (about if elsewhere else about | units) & set(words(sentence)) or _FOR_ALL.search(sentence):
                yield Finding(sentence, sentence, source, CONDITIONS, 1.0)


# ── what is kept of a document ────────────────────────────────────────────────────────────────────────────────────


def reads(pad: Scratchpad) -> list[Call]:
    """The documents that the searches led to, the likeliest first."""
    return [Call(READ, document.document_id) for document in pad.checked[:MOST_DOCUMENTS]]


def kept(listed: Iterable[Entry], thing: str, document: Source) -> Iterator[Finding]:
    """The entries that name a thing and a price, each with the place that it stands at."""
    for entry in listed:
        if mentions(entry, thing) and amounts(entry.text):
            source = document.model_copy(update={"section": entry.section, "quote": entry.text})
            yield Finding(entry.name, entry.text, source, thing, 1.0, entry.cells)


def entry_of(finding: Finding) -> Entry:
    return Entry(finding.claim, finding.quote, finding.source.section, finding.cells)


def _of_size(listed: list[Entry], size: tuple[tuple[float, str], ...]) -> list[Entry]:
    """Those whose bounds the size is within, and none other; without the bounds, which the question has met."""
    for number, unit in size:
        listed = [
            replace(entry, name=unbound(entry.name), cells=tuple((title, unbound(cell)) for title, cell in entry.cells))
            for entry in listed
            if fits(entry.name, number, words(unit))
        ]
    return listed


def _for(kind: str, prices: Iterable[Price]) -> Price | None:
    """Of that kind of person: an adult is a person, a child pays what is said for children."""
    wanted = ("adult", "person") if kind in ("adult", "person") else (kind,)
    found = [price for price in prices for each in wanted if each in price.amount.per]
    if (
        kind == "person"
        and any("child" in price.amount.per for price in prices)
        and not any("person" in price.amount.per for price in prices)
    ):
        return None
    return found[0] if found else None


# ── what is asked for ─────────────────────────────────────────────────────────────────────────────────────────────


def _items(text: str) -> tuple[Item, ...]:
    """Nothing where a number belongs to a name ("the 60 minute massage"), or a quantity to nobody knows what."""
    found: list[tuple[str, int, dict[str, int], tuple[tuple[float, str], ...]]] = []
    loose: dict[str, int] = {}
    for piece in _JOINS.split(text):
        asked: dict[str, int] = {}
        for match in _QUANTITY.finditer(piece):
            unit = UNIT_OF[(match["unit"] or match["one"]).lower()]
            if unit in asked:
                return ()
            asked[unit] = count(match["n"]) if match["n"] else 1
        bare = _QUANTITY.sub(" ", piece)
        size = tuple((float(each["n"]), each["unit"]) for each in _SIZE.finditer(bare))
        name, number = _thing(_SIZE.sub(" ", bare))
        numbered = _NUMBERED.search(name) and not (number > 1 and _EXTRA.fullmatch(name))
        if content_words(name) and (numbered or (number > 1 and not _PLURAL.search(name))):
            return ()
        if _TAXES.fullmatch(name):
            return ()
        if content_words(name):
            found.append((name, number, asked, size))
        elif loose.keys() & asked.keys():
            return ()
        else:
            loose |= asked
    if any(loose.keys() & asked.keys() for _, _, asked, _ in found):
        return ()
    shared = _shared([asked for _, _, asked, _ in found], loose)
    return tuple(
        Item(name, number, tuple({**shared, **asked}.items()), size, bool(asked)) for name, number, asked, size in found
    )


def _shared(each: list[dict[str, int]], loose: dict[str, int]) -> Mapping[str, int]:
    """What holds for all: what stands alone, and what is said with one of them only ("the room for two nights and
    parking")."""
    units = [unit for asked in each for unit in asked]
    once = {unit: asked[unit] for asked in each for unit in asked if units.count(unit) == 1}
    return once | loose


def _thing(piece: str) -> tuple[str, int]:
    name, number = " ".join(_FRAME.sub(" ", piece).split()), 1
    while (shorter := _LEADS.sub("", name)) != name:
        name = shorter
    if counted := _COUNTED.match(name):
        number, name = count(counted["n"]), counted["rest"]
    return _TRAILS.sub("", name), number


def _worded(unit: str, number: int) -> str:
    plural = {"person": "people", "child": "children", "class": "classes"}
    return unit if number == 1 or not unit else plural.get(unit, f"{unit}s")


def _titled(name: str) -> str:
    return name[:1].upper() + name[1:]
