"""One against all of its kind: the cheapest and the dearest of what a document lists."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

import regex

from agents.analysis.plans import Conclusion, concluded, unasked
from agents.analysis.pricelists import Entry, Price, entries, plain_price
from agents.analysis.pricing import entry_of, reads
from agents.analysis.scratchpad import Call, Finding, Observation, Scratchpad
from agents.analysis.tools import READ, SEARCH
from mesh.contracts.answers import Source
from mesh.text import content_words, words

_CHEAPEST = (
    r"cheapest|least expensive|most affordable|lowest[- ]priced|lowest (?:price|rate|fee)|m[aá]s barat[oa]s?|"
    r"m[aá]s econ[oó]mic[oa]s?"
)
_DEAREST = r"most expensive|priciest|dearest|highest[- ]priced|highest (?:price|rate|fee)|m[aá]s car[oa]s?"
_EXTREME = regex.compile(rf"\b(?:(?P<low>{_CHEAPEST})|(?P<high>{_DEAREST}))\b", regex.IGNORECASE)
_FRAME = regex.compile(
    r"\b(?:what|which|who|how much|does|do|is|are|the|your|you|have|has|offer|there|cost|costs|one|of|all|for|tell me|"
    r"show me|please|and|cu[aá]l|qu[eé]|es|la|el|tienen|per|price|option|options|opci[oó]n)\b|[¿?!.,]|['’]s\b",
    regex.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Extreme:
    """The cheapest or the dearest of what one document lists."""

    noun: str
    highest: bool
    text: str = ""

    @classmethod
    def of(cls, text: str) -> Extreme | None:
        found = _EXTREME.search(text)
        if not found or len(text) > 200:
            return None
        noun = " ".join(_FRAME.sub(" ", _EXTREME.sub(" ", text)).split())
        return cls(noun, bool(found["high"]), text) if 0 < len(content_words(noun)) <= 4 else None

    def next(self, pad: Scratchpad) -> Call | None:
        if pad.findings:
            return None
        return unasked(pad, [Call(SEARCH, f"{self.noun} price"), *reads(pad)[:2]])

    def fold(self, pad: Scratchpad, call: Call, observation: Observation) -> Scratchpad:
        pad = pad.after(call, observation)
        if call.tool != READ:
            return pad
        for passage in observation.passages:
            listed = self._listed(entries(passage.text), passage.source.name)
            pad = pad.found(*(self._finding(entry, passage.source) for entry in listed))
        return pad

    def conclude(self, pad: Scratchpad) -> Conclusion | None:
        priced = [(self._price(entry_of(finding)), finding) for finding in pad.findings]
        found = [(price.amount, finding) for price, finding in priced if price]
        if len(found) < 2 or len(found) < len(priced):
            return None
        best = (max if self.highest else min)(found, key=lambda each: each[0].value)
        same = [each for each in found if each[0].value == best[0].value]
        section = best[1].source.section
        where = f"{best[1].source.name}, under “{section.rpartition(' › ')[2]}”" if section else best[1].source.name
        which = "most expensive" if self.highest else "cheapest"
        told = "; ".join(f"{finding.claim}: {amount.priced()}" for amount, finding in same)
        are = "They are" if len(same) > 1 else "It is"
        text = f"*{told}*\n{are} the {which} of the {len(found)} listed in {where}."
        return concluded(text, [finding for _, finding in same])

    def _price(self, entry: Entry) -> Price | None:
        return plain_price(entry, f"{self.noun} {entry.name}", self.text)

    def _finding(self, entry: Entry, document: Source) -> Finding:
        source = document.model_copy(update={"section": entry.section or entry.label, "quote": entry.text})
        return Finding(entry.name, entry.text, source, self.noun, 1.0, entry.cells)

    def _listed(self, found: Iterable[Entry], document: str) -> list[Entry]:
        """Those of the first list or table that is about the noun, if each entry has one plain price, in one currency
        and for the same unit."""
        lists: dict[int, list[Entry]] = {}
        for entry in found:
            lists.setdefault(entry.listed_in, []).append(entry)
        wanted = set(content_words(self.noun)) - set(words(PurePosixPath(document).stem))
        for listed in lists.values():
            about = [entry for entry in listed if entry.name and wanted <= _around(entry)]
            if any(regex.search(r"\d", entry.name) for entry in about):
                continue  # of one hour and of two: not of one kind
            prices = [self._price(entry) for entry in about]
            kinds = {(price.amount.currency, price.amount.per) for price in prices if price}
            if len(about) > 1 and all(prices) and len(kinds) == 1:
                return about
        return []


def _around(entry: Entry) -> set[str]:
    columns = " ".join(title for title, _ in entry.cells)
    return set(words(f"{entry.section} {entry.label} {columns} {entry.name}"))
