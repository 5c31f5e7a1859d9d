"""A question that one passage opens and another answers.

"What is the phone number of the skipper of the Seagull?" One passage says who the skipper is. The question, with that
name in place of "the skipper of the Seagull", is answered by another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import regex

from agents.knowledge.answering import LIGHT_WORDS, Extract
from agents.knowledge.likeness import alike
from agents.knowledge.units import Candidate, Unit, units_of
from agents.knowledge.wishes import CALENDAR, WHO, WISH_WORDS, Wish, wish_of
from mesh.text import content_words, language, words

SOURCES = 4
"""So many of the first passages are read for names."""
MOST = 2
"""Questions that are asked again."""
LATER = 0.5
"""Words of a description that a place among the passages is worth."""
LONGEST_CELL = 6
"""Words of a table's cell that may be a name."""

MORE = 4
"""Words of a sentence that hardly does more than name something, besides its name and what the question says of it."""
LONGEST = 300
"""Characters of a question that is taken apart."""

_TOKEN = regex.compile(r"[\p{L}\p{M}\p{N}]+(?:['’.-][\p{L}\p{M}\p{N}]+)*")
_POSSESSIVE = regex.compile(r"['’]s?$")
_TITLE = regex.compile(r"^(?:(?:Dr|Prof|Mr|Mrs|Ms|Mx|Sr|Sra|Srta|Dra|Herr|Frau|Hr|Fr|Mme|M|Mlle|Dona|Dom)\.? )+")
_SMALL = regex.compile(r"of|the|and|de|la|le|du|del|y|di|da|do|van|von|der|den|bin")
"""Words in small letters within a name."""
_NO_NAME = regex.compile(
    r"The|A|An|Our|Your|My|This|That|These|Those|It|Its|He|His|She|Her|They|Their|We|You|I|In|On|At|For|From|With|By|To"
    r"|If|When|Where|Who|What|As|And|But|Or|No|Not|Yes|Also|Only|All|Both|Each|Every|Some|Many|Most|Such|Other|Another"
    r"|There|Here|Then|Thus|Therefore|However|Moreover|Additionally|Currently|Although|Though|While|Whereas|Because|Since"
    r"|Even|Despite|During|After|Before|Under|Over|Until|Following|According|Founded|Based|Located|Please|El|La|Los|Las"
    r"|Un|Una|Nuestr[oa]s?|Su|Der|Die|Das|Ein|Eine|Unser|Unsere|Er|Sie|Es|Le|Les|Notre|Nos|Il|Elle|O|Os|As|Nosso|Nossa"
    r"|Ele|Ela"
    rf"|(?i:{CALENDAR})"
)
_NAMING = regex.compile(r"\p{L}[^@:/€$£\d]*(?:\d+[^@:/€$£\d]{0,2})?")
"""A cell that may be a name, and no address, price or date."""
_PRONOUN = regex.compile(r"He|She|They|It|Él|Ella|Er|Sie|Es|Il|Elle|Ele|Ela")

_ARTICLE = regex.compile(
    r"(?:\b(?:(?<=\b(?:does|did|do|is|was|of|with|for|by|can|from|to)\s)that|the|an?|this|our|your|their|its|his|her|my"
    r"|el|las?|los|una?|der|die|das|den|dem|les?|os?)\s+)+$",
    regex.IGNORECASE,
)
_POSSESSED = regex.compile(
    r"\b(?:the|our|your|its|his|her|their|el|la|nuestr[oa]|su|der|die|das|unsere?|le|notre|o|a|noss[oa])\s+$",
    regex.IGNORECASE,
)
_HELPS = regex.compile(
    r"\b(?:do|does|did|can|could|will|would|shall|should|may|must|is|are|was|were|has|have|had)\b|['’]s\b",
    regex.IGNORECASE,
)
"""Before a description, that a verb may stand right behind it: "does the skipper | speak"."""
_BEFORE = regex.compile(
    r"(?<!\b(?:kind|sort|type|name)\s)\b(?:of|de|del|da|do|von|zu|du)\s+$|\($|^\W*$", regex.IGNORECASE
)
"""Where a description may begin without an article; a bracket has what a question points back to."""
_ANY_ONE = regex.compile(r"(?:an?|una?|eine?|um|uma)\s+(?!\p{L}+ who\b)", regex.IGNORECASE)
_GOES_ON = regex.compile(
    r"\s+(?:of|for|with|in|at|on|to|who|whom|that|which|whose|de|del|con|para|que|von|des|der|mit|für|du|avec|pour|qui"
    r"|da|do|com)\b",
    regex.IGNORECASE,
)
_RELATED = regex.compile(r"\b(?:who|that|which|whose|for|que|quien|qui|quem)\b", regex.IGNORECASE)
_WHO_DOES = regex.compile(
    r"(?:\b(?:the|an?|some|your|our)\s+(?:\p{L}+\s+){0,2}?)?"
    r"\b(?:(?!(?:of|on|in|at|by|for|with|to|from|and|or|is|are|say|know|think|me)\b)\p{L}+\s+(?:(?:with|to|from)\s+)?whom?"
    r"|(?:leader|head|teacher|coach|trainer|instructor|guide|driver|organi[sz]er|host|speaker|author|person|man|woman|lady"
    r"|colleague)\s+(?:of|for))\s+(?:\p{L}+\s+){0,2}$",
    regex.IGNORECASE,
)
"""Who it is that does something: "the person who | does the refunds", "the leader of the | remembrance walk"."""
_AGENT = regex.compile(
    r"\b(?:by|with|from|ask|contact|see|call|von|mit|bei|por|con|par|avec|com)\s+$", regex.IGNORECASE
)
_LED = regex.compile(r"(?:\p{L}+ )?(?:by|with|von|mit|bei|por|con|par|avec|com) \p{Lu}", regex.IGNORECASE)
"""What stands under a heading that says of what: "Led by Sunita."."""
_PEOPLE = regex.compile(
    r"\b(?:who|by|with|leader|teacher|coach|trainer|instructor|guide|driver|contact|person|staff|host|responsible|qui[eé]n"
    r"|profesor[a]?|wer|leitung|lehrer(?:in)?|qui|quem)\b",
    regex.IGNORECASE,
)
"""What a column of people's names is called."""
_LINK = regex.compile(
    r"(?:\s*[,:=–—(-]\s*|\s+(?:\p{L}{1,12}\s+)?"
    r"(?:is|are|was|were|called|named|by|es|son|era|fue|llamad[oa]s?|por|ist|sind|war|hei(?:ß|ss)t|von|est|sont|par|é"
    r"|são|foi)\s+(?:(?:currently|still|now|also)\s+)?)"
    r"(?:(?:the|an?|our|your|its|his|her|their|el|la|una?|nuestr[oa]|der|die|das|eine?|unsere?|le|notre|o|a|noss[oa]"
    r"|Dr|Mr|Mrs|Ms)\.?\s+)?"
    r"(?:\p{Ll}+\s+){0,2}",
    regex.IGNORECASE,
)
"""What stands between a name and what it is: "our skipper is | Ida Holm", "Ida Holm, | skipper of", "directed by |"."""
_CALLED = frozenset(words("name named called nombre llama nom heißt nome"))


@dataclass(frozen=True, slots=True)
class Step:
    """A sentence that names what the question describes, and the question with the name in its place."""

    unit: Unit
    name: str
    question: str
    described: frozenset[str]
    """Terms of the question that the sentence and its headings say."""
    left: frozenset[str]
    """Its other terms."""
    wish: Wish | None = field(default=None, repr=False)

    def is_all_of(self, extract: Extract, passage: Candidate) -> bool:
        """Whether an answer is no more than this sentence, or not about what is described; of a sentence that hardly
        does more than name it."""
        if not self.unit.cells:
            more = frozenset(content_words(self.unit.text)) - self.described - frozenset(words(self.name))
            if len(more) > MORE or self._met(self.unit.text):
                return False
        return extract.said == self.unit.text or not self.described <= _quoted(extract, passage)

    def says_more(self, extract: Extract, passage: Candidate) -> bool:
        """Whether an answer that speaks of what is described says more of what is asked than the sentence does."""
        if not self.described <= _quoted(extract, passage):
            return False
        if self.left and _share(self.left, frozenset(words(extract.quotation))) == 1:
            return True
        if extract.said == self.unit.text:
            return False
        return bool(self.left & frozenset(words(extract.said))) or self._met(extract.said)

    def answered(self, extract: Extract, passage: Candidate) -> bool:
        """Whether an answer says of the name what is asked of it: half of the words that are left, or, where none is,
        the kind of thing that is asked for."""
        name = frozenset(words(self.name))
        context, quoted = frozenset(words(passage.context)), frozenset(words(extract.quotation))
        if not name <= passage.terms or _share(name, context | quoted) < 0.5:
            return False
        left = self.left - LIGHT_WORDS
        if not left:
            return self._met(extract.quotation if self.wish and self.wish.only else extract.said)
        return _share(left, context | frozenset(words(extract.said))) >= 0.5 or _share(left, quoted) == 1

    def _met(self, text: str) -> bool:
        return self.wish is not None and self.wish.met(text) > 0


def _quoted(extract: Extract, passage: Candidate) -> frozenset[str]:
    return frozenset(words(f"{passage.context}\n{extract.quotation}"))


def _share(terms: frozenset[str], said: frozenset[str]) -> float:
    return sum(alike(term, said) > 0 for term in terms) / len(terms)


def steps(question: str, candidates: Sequence[Candidate]) -> list[Step]:
    """The likeliest first; none where nothing that the question describes is named.

    Args:
        candidates: best first.
    """
    if len(question) > LONGEST:
        return []
    asked = _Asked(question)
    found: dict[str, tuple[float, Step]] = {}
    for place, passage in enumerate(candidates[:SOURCES]):
        above = None
        for unit in units_of(passage):
            for step in asked.steps(unit, above):
                weight = len(step.described) - LATER * place
                if step.question not in found or found[step.question][0] < weight:
                    found[step.question] = weight, step
            above = unit
    return [step for _, step in sorted(found.values(), key=lambda each: -each[0])[:MOST]]


class _Asked:
    def __init__(self, text: str) -> None:
        self.text = text
        self.wish = wish_of(text)
        wished = [found.span() for found in WISH_WORDS.finditer(text)]
        self.tokens: list[tuple[int, int, str]] = []
        """Start, end and term of each word of the subject."""
        for found in _TOKEN.finditer(text):
            bare = _POSSESSIVE.sub("", found.group())
            terms = content_words(bare)
            if terms and not any(start <= found.start() < end for start, end in wished):
                self.tokens.append((found.start(), found.start() + len(bare), terms[0]))
        self.terms = frozenset(term for _, _, term in self.tokens)
        self.in_capitals = language(text) == "de" or not any(text[start].islower() for start, _, _ in self.tokens)
        """They do not tell a name."""

    def steps(self, unit: Unit, above: Unit | None) -> Iterator[Step]:
        """From one sentence, or row; `above` is the one before it."""
        own = frozenset(words(" ".join(cell for _, cell in unit.cells))) if unit.cells else unit.terms
        around = unit.around | frozenset(words(" ".join(column for column, _ in unit.cells)))
        here = [alike(term, own) > 0 for _, _, term in self.tokens]
        said = [each or alike(term, around) > 0 for each, (_, _, term) in zip(here, self.tokens, strict=True)]
        for first, last in _runs(said):
            does = _WHO_DOES.search(self.text, 0, self.tokens[first][0])
            if not (any(here[first : last + 1]) or (does and _LED.match(unit.text))) or not self._describes(
                first, last
            ):
                continue
            described = frozenset(term for _, _, term in self.tokens[first : last + 1])
            start, end = self._span(first, last)
            if start == self.tokens[first][0] and not _BEFORE.search(self.text, 0, start):
                continue  # "led by Hasan" describes nobody
            if _ANY_ONE.match(self.text, start):
                continue
            left = frozenset(term for at, _, term in self.tokens if not start <= at < end) - described
            if left <= _CALLED and (self.wish in (None, WHO) or self.wish.met(unit.text) > 0):
                continue  # all of it is said here
            related = _RELATED.search(self.text, start, end)
            told = "who" if does else related.group().casefold() if related else ""
            for name in _names(unit, above, described, related=told):
                if not frozenset(content_words(name)) <= self.terms:
                    question = f"{self.text[:start]}{name}{self.text[end:]}"
                    yield Step(unit, name, question, described, left, self.wish)

    def _describes(self, first: int, last: int) -> bool:
        """Whether a description begins and ends here: not "largest [boat]", nor "[skipper] of the Albatros". It is
        no name itself."""
        if first and not self.text[self.tokens[first - 1][1] : self.tokens[first][0]].strip():
            return False
        if last + 1 < len(self.tokens):
            between = self.text[self.tokens[last][1] : self.tokens[last + 1][0]]
            if _GOES_ON.match(between) or not (between.strip() or _HELPS.search(self.text, 0, self.tokens[first][0])):
                return False
        return self.in_capitals or any(self.text[start].islower() for start, _, _ in self.tokens[first : last + 1])

    def _span(self, first: int, last: int) -> tuple[int, int]:
        """Of the description, with its article, and with who does what it says."""
        start, end = self.tokens[first][0], self.tokens[last][1]
        for before in (_WHO_DOES, _ARTICLE):
            if found := before.search(self.text, 0, start):
                start = found.start()
        inside = self.text[start:end]
        return start, end + (inside.count("(") > inside.count(")") and self.text.startswith(")", end))


def _runs(said: Sequence[bool]) -> Iterator[tuple[int, int]]:
    start = None
    for place, each in enumerate((*said, False)):
        if each and start is None:
            start = place
        elif not each and start is not None:
            yield start, place - 1
            start = None


# ── names ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _names(unit: Unit, above: Unit | None, described: frozenset[str], *, related: str) -> Iterator[str]:
    """Those that a sentence says to be what is described; where it is described by what it does (`related` is who or
    that), also its subject. Of a row, the cells whose column is what is described."""
    if unit.cells:
        for column, cell in unit.cells:
            is_it = _tells(column, described) or (related == "who" and _PEOPLE.search(column))
            if is_it and len(cell.split()) <= LONGEST_CELL and _NAMING.fullmatch(cell):
                yield cell
        return
    text, tokens = unit.text, list(_TOKEN.finditer(unit.text))
    marks = [place for place, token in enumerate(tokens) if _tells(token.group(), described)]
    for start, end in _capitalised(text, tokens):
        if any(start <= mark < end for mark in marks):
            continue  # the Tsarist Empire is not "the Tsarist regime"
        before = max((mark for mark in marks if mark < start), default=None)
        after = min((mark for mark in marks if mark >= end), default=None)
        if (
            (after is not None and start <= 1 and (related == "who" or (related and end - start > 1)))
            or (related == "who" and _AGENT.search(text, 0, tokens[start].start()))
            or (before is not None and _ends_at(text, tokens, end) and _is_it(text, tokens[before], tokens[start]))
            or (after is not None and _LINK.fullmatch(text, tokens[end - 1].end(), tokens[after].start()))
        ):
            yield _bare(text[tokens[start].start() : tokens[end - 1].end()])
    if related and above and marks and _PRONOUN.fullmatch(tokens[0].group()):
        tokens = list(_TOKEN.finditer(above.text))
        for start, end in _capitalised(above.text, tokens)[:1]:
            if start <= 1:
                yield _bare(above.text[tokens[start].start() : tokens[end - 1].end()])


def _is_it(text: str, mark: regex.Match[str], name: regex.Match[str]) -> bool:
    """ "The skipper is Ida Holm", "our skipper Ida Holm"; not "she speaks Danish"."""
    if text[mark.end() : name.start()].isspace():
        return _POSSESSED.search(text, 0, mark.start()) is not None
    return _LINK.fullmatch(text, mark.end(), name.start()) is not None


def _ends_at(text: str, tokens: Sequence[regex.Match[str]], end: int) -> bool:
    """Whether a name may end there: not "directed by the American | singer"."""
    if end == len(tokens) or text[tokens[end - 1].end() : tokens[end].start()].strip():
        return True
    return not content_words(tokens[end].group())


def _tells(text: str, described: frozenset[str]) -> bool:
    return any(alike(term, described) > 0 for term in content_words(text) if not term.isdecimal())


def _bare(name: str) -> str:
    return _TITLE.sub("", _POSSESSIVE.sub("", name))


def _capitalised(text: str, tokens: Sequence[regex.Match[str]]) -> list[tuple[int, int]]:
    """Runs of tokens: the first, and the one after the last."""
    found = []
    place = 0
    while place < len(tokens):
        end = place + 1
        word = tokens[place].group()
        if word[0].isupper() and not _NO_NAME.fullmatch(word):
            while end < len(tokens) and _joined(text, tokens, end):
                end += 1
            found.append((place, end))
        place = end
    return found


def _joined(text: str, tokens: Sequence[regex.Match[str]], at: int) -> bool:
    between = text[tokens[at - 1].end() : tokens[at].start()]
    if between != " " and not (between == ". " and len(tokens[at - 1].group()) <= 3):
        return False
    following = tokens[at + 1].group() if at + 1 < len(tokens) else ""
    return tokens[at].group()[0].isupper() or bool(_SMALL.fullmatch(tokens[at].group()) and following[:1].isupper())
