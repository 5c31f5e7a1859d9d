"""Prices as documents list them: rows of tables, items, lines, sentences. A price is taken only where it is plain:
whatever could make it another one for somebody (a range, a minimum, "from", "half", a second column) leaves it to be
quoted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import regex
from markdown_it import MarkdownIt

from agents.analysis.quantities import PEOPLE, UNIT_OF, Amount, amounts
from mesh.text import content_words, sentences, words

LONGEST_LINE = 160
_UNIT_WORDS = "|".join(regex.escape(word) for word in sorted(UNIT_OF, key=len, reverse=True))


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing and what is said of it. `name` is empty for a sentence; `cells` are those of a row, with their column
    names."""

    name: str
    text: str
    section: str = ""
    cells: tuple[tuple[str, str], ...] = ()
    listed_in: int = 0
    """Entries of one table, list or paragraph have the same number."""
    label: str = ""
    """The line above them that says what they are, where it is no heading."""

    @property
    def heading(self) -> str:
        return self.section.rpartition(" › ")[2]


@dataclass(frozen=True, slots=True)
class Price:
    entry: Entry
    amount: Amount


# ── what a document lists ─────────────────────────────────────────────────────────────────────────────────────────

_NAMED = regex.compile(r"^(?P<name>[^:|€$£₹]{2,70}?)\s*(?::|\s[–—-]|\.{3,}|…+|\t)\s*(?=\S)")
_UP_TO_AMOUNT = regex.compile(
    r"^(?P<name>[\p{L}][^:|€$£₹.!?]{1,60}?)[\s,:–—-]*(?=[€$£₹]|\d+(?:[.,]\d+)?\s?(?:[€$£₹]|(?:euros?|EUR|USD|dollars?)\b))"
)


def entries(text: str) -> list[Entry]:
    """In reading order."""
    return list(_read(text))


def _read(text: str) -> Iterator[Entry]:
    headings: list[tuple[int, str]] = []
    header: list[str] = []
    row: list[str] = []
    number = 0
    inside = ""
    units: list[tuple[str, str]] = []
    label = ""
    siblings: dict[str, int] = {}
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        section = " › ".join(title for _, title in headings)
        match token.type:
            case "heading_open":
                level = int(token.tag[1])
                headings = [each for each in headings if each[0] < level]
                inside = f"h{level}"
            case "table_open" | "bullet_list_open" | "ordered_list_open":
                number, header = number + 1, []
            case "tr_open":
                row = []
            case "list_item_open":
                inside = "item"
            case "th_open" | "td_open":
                inside = token.tag
            case "inline":
                content = token.content.replace("*", "").replace("`", "")
                if inside.startswith("h"):
                    title = " ".join(content.split())
                    if _name(title) and amounts(title):  # "Petite – £850", above what it includes
                        number += 1
                        yield Entry(_name(title), title, section, (), siblings.setdefault(section, number))
                    headings.append((int(inside[1]), title))
                elif inside in ("th", "td"):
                    (header if inside == "th" else row).append(" ".join(content.split()))
                else:
                    number += inside != "item"
                    units += [(section, found["unit"]) for found in _ALL_PER.finditer(content)]
                    yield from _prose(content, section, number, label, item=inside == "item")
                    label = content.strip() if inside != "item" and _is_label(content) else ""
                inside = ""
            case "tr_close" if row:
                cells = tuple((title, cell) for title, cell in zip(header, row, strict=False) if cell)
                told = ", ".join(": ".join(cell) for cell in cells)
                above = [unit for place, unit in units if f"{section} › ".startswith(f"{place} › " if place else "")]
                yield Entry(row[0], told, section, _priced_per(cells, above), number)


_ALL_PER = regex.compile(
    rf"^(?:all |our )*(?:prices?|rates?|fees?|precios|tarifas)(?: (?:are|is|son|quoted|given|here|below))* (?:per|por) "
    rf"(?P<unit>(?:{_UNIT_WORDS})(?:(?: and|,| per|/| y)* (?:per )?(?:{_UNIT_WORDS}))?)\b",
    regex.IGNORECASE | regex.MULTILINE,
)
""" "Prices per person, VAT included" above a table."""


def _priced_per(cells: tuple[tuple[str, str], ...], above: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """With the unit that a sentence above the table gives to all its prices."""
    if not above or any(each.per for title, cell in cells for each in amounts(f"{title}: {cell}")):
        return cells
    return tuple((f"{title} per {above[-1]}" if amounts(f"{title}: {cell}") else title, cell) for title, cell in cells)


def _prose(content: str, section: str, number: int, label: str, *, item: bool) -> Iterator[Entry]:
    """Lines, where each says a price of its own; otherwise sentences."""
    lines = [" ".join(line.split()) for line in content.splitlines() if line.strip()]
    if len(lines) > 2 and not item and _is_label(lines[0]):
        label, lines = lines[0], lines[1:]
    priced = [line for line in lines if amounts(line)]
    if item or (priced and all(_name(line) for line in priced)):
        for line in lines if not item else [" ".join(lines)]:
            yield Entry(_name(line), line, section, (), number, label)
        return
    whole = " ".join(lines)
    for span in sentences(whole):
        yield Entry(_name(span.of(whole)), span.of(whole), section, (), number)


def _is_label(line: str) -> bool:
    """ "Clay, 10 kg bag", above what each of them costs."""
    bare = line.strip()
    return "\n" not in bare and len(bare.split()) <= 6 and bare[-1:] not in ".!?" and not amounts(bare)


def _name(line: str) -> str:
    """What a line is about, when it is no sentence."""
    found = _NAMED.match(line) or (None if line.endswith(".") else _UP_TO_AMOUNT.match(line))
    if not found or len(line) > LONGEST_LINE or len(sentences(line)) > 1:
        return ""
    return found["name"].strip(" ,-–—")


# ── the price of one thing ────────────────────────────────────────────────────────────────────────────────────────

_HEDGING = r"""
    from about approx\w* around circa ca roughly up.to at.least at.most minimum min maximum max start(?:s|ing)?
    free half double first further additional plus extra or.more and.more and.up over under dozen pack\w* box\w*
    bundle book voucher set groups? discount\w* was instead promo\w* offer off less each.way one.way return deposit
    weekends? weekdays? sat(?:urdays?)? sun(?:days?)? mon(?:days?)? fri(?:days?)? members? students? seniors?
    child\w* kids? adults? evenings? mornings? summer winter season july august december january excl\w* vat tax
    net desde unos hasta m[ií]nimo m[aá]ximo gratis mitad primer\w* adicional m[aá]s docena paquete caja bono
    grupos? descuento antes oferta fianza dep[oó]sito fines?.de.semana socios? estudiantes? niñ[oa]s? temporada
    verano invierno iva impuestos?
"""
_HEDGES = regex.compile(
    rf"\b(?P<word>{'|'.join(_HEDGING.split())})\b"
    r"|(?P<sign>\d\s?(?:[-–—]|to|a)\s?[€$£₹]?\d|\d\+|[€$£₹]\s?\d[\d.,]*\s?\+|[~≈]|\d\s?%|\bper\s+\d|\b\d+\s+for\b|/\s?\d)",
    regex.IGNORECASE,
)
_AGES = regex.compile(
    r"\b(?:children|child|kids?|niñ[oa]s?|menores)\b\s*\(?(?:under|over|up to|from|aged?|below|until|to|de|hasta)?\s*"
    r"(?:\d+|six|seven|eight|ten|twelve|fourteen|sixteen)(?:\s?(?:-|–|to|a)\s?\d+)?\s*(?:years?(?: old)?|años)?\)?",
    regex.IGNORECASE,
)
"""Who counts as a child does not make the price another one."""
_KINDS = frozenset(word for word, unit in UNIT_OF.items() if unit in PEOPLE)
_UNITS = frozenset(words(" ".join(UNIT_OF))) | set(
    words("per por cada minute minutes price prices cost costs fee fees rate rates")
)


def price_of(thing: str, found: Sequence[Entry], question: str) -> list[Price]:
    """What it costs: one price, or one for each kind of person. None where it is not listed, or not plainly; nor where
    two entries that name it disagree."""
    named = [entry for entry in found if _names(entry, thing) and amounts(entry.text)]
    own = [entry for entry in named if entry.name or _thing(thing) & set(words(_before_price(entry.text)))]
    exact = [entry for entry in own if _called(entry) == _thing(thing)]
    prices = [_plain(entry, thing, question) for entry in exact or own or named]
    kinds = {tuple((price.amount.value, price.amount.currency, price.amount.per) for price in each) for each in prices}
    return prices[0] if len(kinds) == 1 else []


def plain_price(entry: Entry, thing: str, question: str) -> Price | None:
    """Its one price, if it has one that is plain."""
    found = _plain(entry, thing, question)
    return found[0] if len(found) == 1 else None


def mentions(entry: Entry, thing: str) -> bool:
    return _names(entry, thing)


def _names(entry: Entry, thing: str) -> bool:
    """Each word of the thing is in the name (or in a sentence before its price), or in the headings above."""
    wanted = _thing(thing)
    if not wanted:
        return False
    above = set(words(f"{entry.section} {' '.join(title for title, _ in entry.cells)}"))
    own = _called(entry) if entry.name else set(words(_before_price(entry.text)))
    return wanted <= own | above and (bool(wanted & own) or wanted <= set(words(entry.heading)))


def _plain(entry: Entry, thing: str, question: str) -> list[Price]:
    """The amounts of an entry that are what the thing costs; none where anything could make it another price."""
    said = set(words(question)) | _thing(thing)
    if any(_hedged(text, said) for text in _telling(entry)):
        return []
    priced = _amounts(entry)
    by_head = [amount for amount in priced if amount.per & PEOPLE]
    kinds = [amount.per for amount in by_head]
    if by_head and len(by_head) == len(priced) and len(set(kinds)) == len(kinds):
        return [Price(entry, amount) for amount in by_head]
    if len(priced) > 1:
        labels = [set(content_words(amount.label)) for amount in priced]
        common = set.intersection(*labels)
        own = [label - common for label in labels]
        if not entry.cells or any(
            not label or label & _UNITS or any(word[0].isdigit() for word in label) for label in own
        ):
            return []
        priced = [amount for amount, label in zip(priced, own, strict=True) if label <= said]
    return [Price(entry, priced[0])] if len(priced) == 1 else []


def _telling(entry: Entry) -> list[str]:
    """The name, and what stands with a price: a remark in another column is no part of it, and is quoted anyway."""
    if not entry.cells:
        return [entry.text]
    return [entry.name, *(f"{title}: {cell}" for title, cell in entry.cells if amounts(f"{title}: {cell}"))]


def _amounts(entry: Entry) -> list[Amount]:
    if not entry.cells:
        return amounts(entry.text)
    return [
        Amount(each.value, each.currency, each.per | _kinds(title), title, each.form)
        for title, cell in entry.cells
        for each in amounts(f"{entry.name}; {title}: {cell}")
    ]


def _kinds(column: str) -> frozenset[str]:
    """A column "Adult" is per adult."""
    return frozenset(UNIT_OF[word] for word in column.lower().split() if word in _KINDS)


def _hedged(text: str, said: set[str]) -> bool:
    """Anything that might change the price, but for what the question itself says."""
    for match in _HEDGES.finditer(_AGES.sub(" ", text)):
        if match["sign"]:
            return True
        word = match["word"].lower()
        if set(words(word)) <= said or (
            word in _KINDS and amounts(text) and any(a.per & PEOPLE for a in amounts(text))
        ):
            continue
        return True
    return False


def _thing(thing: str) -> set[str]:
    return set(content_words(thing)) - _UNITS


def _called(entry: Entry) -> set[str]:
    return set(content_words(entry.name)) - _UNITS


def _before_price(sentence: str) -> str:
    found = amounts(sentence)
    return sentence[: sentence.find(found[0].written())] if found and found[0].written() in sentence else sentence
