"""Two things against each other, and what is left of a sum."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

import regex

from agents.analysis.plans import Conclusion, called, concluded, folded, lines_about, names, unasked
from agents.analysis.pricelists import Price, entries, price_of
from agents.analysis.pricing import entry_of, kept, reads
from agents.analysis.quantities import Amount, amounts
from agents.analysis.scratchpad import Call, Finding, Observation, Scratchpad
from agents.analysis.tools import ASK_DOCUMENTS, READ, SEARCH
from mesh.text import content_words

_THING = r"[^?!.;:]+?"
_CHEAP = r"cheaper|less expensive|more affordable|m[aá]s barat[oa]s?|m[aá]s econ[oó]mic[oa]s?"
_DEAR = r"more expensive|dearer|pricier|m[aá]s car[oa]s?"
_THAN = rf"(?:{_CHEAP}|{_DEAR})"
_OR = r"(?:,?\s+(?:or|o)\s+)"
_PATTERNS = tuple(
    regex.compile(pattern, regex.IGNORECASE)
    for pattern in (
        rf"\b(?:which|what|qu[eé]|cu[aá]l)\b[^?]*?\b{_THAN}\b[\s,:–-]*(?P<a>{_THING}){_OR}(?P<b>{_THING})\s*[?.!]*$",
        rf"^\W*(?:is|are|es|son)\s+(?P<a>{_THING})\s+{_THAN}\s+(?:than|que)\s+(?P<b>{_THING})\s*[?.!]*$",
        rf"^\W*(?:is|are|es|son)\s+(?P<a>{_THING}){_OR}(?P<b>{_THING})\s+{_THAN}\s*[?.!]*$",
        rf"\bhow much (?:more|less|cheaper|more expensive)\b(?:\s+(?:does|do|is|are))?\s+(?P<a>{_THING})"
        rf"(?:\s+costs?)?\s+than\s+(?P<b>{_THING})(?:\s+costs?)?\s*[?.!]*$",
        r"\b(?:price difference|difference in (?:price|cost)|diferencia de precio)"
        rf"\s+(?:between|entre)\s+(?P<a>{_THING})"
        rf"\s+(?:and|y)\s+(?P<b>{_THING})\s*[?.!]*$",
    )
)
_SUBJECTS = tuple(
    regex.compile(pattern, regex.IGNORECASE)
    for pattern in (
        rf"\bcompare\s+(?:the\s+)?(?P<of>{_THING})\s+(?:of|for)\s+(?P<a>{_THING})\s+(?:and|with|to)\s+(?P<b>{_THING})\s*[?.!]*$",
        rf"\bcompare\s+(?P<a>{_THING})\s+(?:and|with|to)\s+(?P<b>{_THING})\s*[?.!]*$",
        rf"\b(?:difference|diferencia)\s+(?:between|entre)\s+(?P<a>{_THING})\s+(?:and|y)\s+(?P<b>{_THING})\s*[?.!]*$",
    )
)
_SHARED = regex.compile(r"\s+(?:for|in|of|para|de|en)\s+.+$", regex.IGNORECASE)
_ARTICLE = regex.compile(r"^(?:the|a|an|your|el|la|los|las|un|una)\s+", regex.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Comparison:
    a: str
    b: str
    of: str = ""
    """What is compared, when it is not the price."""
    by_price: bool = True
    text: str = ""

    @classmethod
    def of_text(cls, text: str) -> Comparison | None:
        if len(text) > 300:
            return None
        for patterns, by_price in ((_PATTERNS, True), (_SUBJECTS, False)):
            for pattern in patterns:
                if found := pattern.search(text):
                    a, b = found["a"].strip(" ,"), found["b"].strip(" ,")
                    if not by_price and (shared := _SHARED.search(b)):
                        a += shared.group()  # compare low and high season for the suite
                    if content_words(a) and content_words(b) and set(content_words(a)) != set(content_words(b)):
                        of = found.groupdict().get("of") or ""
                        return cls(a, b, of, by_price or of.lower() in ("price", "prices", "cost", "costs"), text)
        return None

    def question(self, thing: str) -> str:
        thing = _with_head(self.a, self.b) if thing == self.a else thing
        return f"What are the {self.of} of {thing}?" if self.of else f"What is {thing}?"

    def next(self, pad: Scratchpad) -> Call | None:
        if not self.by_price:
            return unasked(pad, [Call(ASK_DOCUMENTS, self.question(thing)) for thing in (self.a, self.b)])
        searches = [Call(SEARCH, f"{thing} price") for thing in (_with_head(self.a, self.b), self.b)]
        return unasked(pad, searches) or unasked(pad, reads(pad))

    def fold(self, pad: Scratchpad, call: Call, observation: Observation) -> Scratchpad:
        if not self.by_price:
            return folded(pad, call, observation)
        pad = pad.after(call, observation)
        for passage in observation.passages if call.tool == READ else ():
            listed = entries(passage.text)
            for thing in (self.a, self.b):
                pad = pad.found(*kept(listed, thing, passage.source))
        return pad

    def conclude(self, pad: Scratchpad) -> Conclusion | None:
        return self._by_price(pad) if self.by_price else self._side_by_side(pad)

    def _side_by_side(self, pad: Scratchpad) -> Conclusion | None:
        """Both in the documents' words. What is the same for both is not said twice, and not called the same."""
        found = [(thing, said) for thing in (self.a, self.b) if (said := self._said(thing, pad))]
        if len(found) < 2:
            return None
        lines = [text if called(text) else f"{_titled(thing)}: {text}" for thing, (_, text) in found]
        return concluded("\n".join(dict.fromkeys(lines)), [finding for _, (finding, _) in found])

    def _said(self, thing: str, pad: Scratchpad) -> tuple[Finding, str] | None:
        for finding in pad.about(self.question(thing)):
            if lines := lines_about(finding, thing):
                return finding, "\n".join(lines)
        return None

    def _by_price(self, pad: Scratchpad) -> Conclusion | None:
        one, other = (self._price(thing, pad) for thing in (self.a, self.b))
        if not one or not other or one[0].entry == other[0].entry:
            return None
        (price, finding), (against, second) = one, other
        left, right = price.amount, against.amount
        numbered = any(regex.search(r"\d", each.entry.name) for each in (price, against))
        if numbered or (left.currency, left.per) != (right.currency, right.per):
            return None  # a day's pass and a card for ten visits are not of one kind
        a, b = _titled(price.entry.name or self.a), _titled(against.entry.name or self.b)
        told = [f"{a}: {left.priced()}", f"{b}: {right.priced()}"]
        if left.value == right.value:
            told.append("They cost the same.")
        else:
            cheaper = a if left.value < right.value else b
            told.append(f"*{cheaper} is cheaper, by {left.written(abs(left.value - right.value))}.*")
        return concluded("\n".join(told), [finding, second])

    def _price(self, thing: str, pad: Scratchpad) -> tuple[Price, Finding] | None:
        findings = pad.about(thing)
        prices = price_of(thing, [entry_of(finding) for finding in findings], self.text)
        if len(prices) != 1:
            return None
        return prices[0], next(finding for finding in findings if finding.quote == prices[0].entry.text)


_LEFT = regex.compile(
    r"(?=.*\b(?:how much|what|cu[aá]nto|qu[eé])\b)(?!.*\b(?:how long|when|days?|weeks?)\b)"
    r".*\b(?:left|remaining|remains?|outstanding"
    r"|still (?:due|owed?|(?:have |need )?to pay)|owe|balance|queda|pendiente)\b",
    regex.IGNORECASE | regex.DOTALL,
)
_DEPOSIT = r"deposit|down payment|advance(?: payment)?|first (?:payment|instal?lment)|dep[oó]sito|señal|anticipo"
_TAKEN = regex.compile(
    r"\b(?:after|minus|less|without|once|despu[eé]s de|tras|menos)\s+(?:paying\s+|pagar\s+)?"
    rf"(?:the|my|our|el|la|mi)?\s*(?P<taken>{_DEPOSIT})"
    r"(?:\s+(?:is|was|has been)\s+(?:paid|deducted|taken off))?\s*[?.!]*$",
    regex.IGNORECASE,
)
_OF_WHAT = regex.compile(r"\b(?:if|for|when|with|by|until)\b|\d", regex.IGNORECASE)
"""It asks about something that is not bought yet."""
_SECURITY = regex.compile(r"\b(?:damage|security|refundable|key)\s+deposit\b|\bfianza\b", regex.IGNORECASE)
"""It is given back: no part of what is to be paid."""
_VAT = regex.compile(r"\b(?:excl\w*|plus|without|not including|sin)\b.{0,20}\b(?:vat|tax\w*|iva)\b", regex.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Balance:
    """What is left of the total after the deposit, the first thing that is paid."""

    taken: str

    @classmethod
    def of(cls, text: str) -> Balance | None:
        if not _LEFT.match(text) or len(text) > 200:
            return None
        if taken := _TAKEN.search(text):
            return cls(taken["taken"])
        return None if _OF_WHAT.search(text) else cls("deposit")

    @property
    def _questions(self) -> tuple[str, str]:
        return "What is the total fee or price?", f"How much is the {self.taken}?"

    def next(self, pad: Scratchpad) -> Call | None:
        return unasked(pad, [Call(ASK_DOCUMENTS, question) for question in self._questions] + reads(pad)[:2])

    def fold(self, pad: Scratchpad, call: Call, observation: Observation) -> Scratchpad:
        """Of a document, each sentence that states a total or the deposit: there may be more than one."""
        if call.tool != READ:
            return pad.after(call, observation)
        pad = pad.after(call, observation)
        for passage in observation.passages:
            for entry in entries(passage.text):
                thing = next((thing for thing in ("total", self.taken) if names(entry.text, thing)), "")
                if thing and amounts(entry.text) and not _SECURITY.search(entry.text):
                    source = passage.source.model_copy(update={"section": entry.section, "quote": entry.text})
                    pad = pad.found(Finding(entry.text, entry.text, source, thing, 1.0))
        return pad

    def conclude(self, pad: Scratchpad) -> Conclusion | None:
        """Only within one document, and where it states one total and one deposit."""
        whole, taken = self._stated(pad, "total"), self._stated(pad, self.taken)
        if not whole or not taken or whole[0].source.name != taken[0].source.name:
            return None
        one, other = whole[1], taken[1]
        if one.currency != other.currency or not Decimal(0) < other.value < one.value:
            return None
        left = one.written(one.value - other.value)
        text = f"{one.written()} − {other.written()} = *{left}*\n\n> {whole[0].quote}\n> {taken[0].quote}"
        return concluded(text, [whole[0], taken[0]])

    def _stated(self, pad: Scratchpad, thing: str) -> tuple[Finding, Amount] | None:
        found = [(finding, amounts(finding.quote)) for finding in pad.about(thing)]
        if len(found) != 1 or len(found[0][1]) != 1 or _VAT.search(found[0][0].quote):
            return None
        return found[0][0], found[0][1][0]


def _with_head(a: str, b: str) -> str:
    """ "The standard or the deluxe room": the standard room."""
    alone = len(_ARTICLE.sub("", a).split()) == 1 < len(_ARTICLE.sub("", b).split())
    return f"{a} {b.split()[-1]}" if alone else a


def _titled(thing: str) -> str:
    bare = _ARTICLE.sub("", thing)
    return bare[:1].upper() + bare[1:]
