"""Which skill is a message for? The nearest example utterance among the cards that the grant covers decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import regex

from mesh.ports.models import Embedder, Vector
from mesh.questions import is_personal, parts
from mesh.skills import Card

SMALL_TALK_FLOOR = 0.93
SMALL_TALK_WORDS = 8
"""Small talk is short and close to an example; everything else is looked up."""

_WHERE_OR_WHEN = regex.compile(
    r"\b(?:where|when|d[oó]nde|cu[aá]ndo|où|quand|wo|wann|onde|quando)\b|कहाँ|कहां|कब", regex.IGNORECASE
)
""" "Where are you?" is near to "who are you?", and asks for an address."""
_ASKS = regex.compile(
    r"[?？؟]"
    r"|^\W*(who|whom|whose|what|when|where|which|why|how|is|are|am|was|were|do|does|did|can|could|may|will|would|"
    r"should|shall|has|have|had|tell|show|give|find|list|explain|search|look|compare|summari[sz]e|send|"
    r"(what|where|when|who|how)s|"
    r"qu[eé]|qui[eé]n|cu[aá]ndo|cu[aá]nto|cu[aá]l|c[oó]mo|d[oó]nde|dime|"
    r"qui|quand|combien|comment|o[uù]|quel|quelle|wer|was|wann|wo|wie|warum|quem|quando|quanto|onde|qual)\b"
    r"|(क्या|कौन|कब|कहाँ|कहां|कैसे|कितन|क्यों|किस)"
    r"|\b(i|we)('d| would)? (need|want|like) to (know|see|find|ask|book|cancel)\b"
    r"|\b(i|we) (need|want) (the|a|an|your|some)\b"
    r"|\b(please|can you|could you) (tell|show|send|give|find)\b",
    regex.IGNORECASE,
)


_PRICE = r"\b(?:how much|costs?|prices?|pay|cu[aá]nto|precios?)\b"
_NUMBER = r"\b(?:\d{1,4}|two|three|four|five|six|seven|eight|nine|ten|dos|tres|cuatro|cinco|seis|siete|ocho|diez)\b"
_COMPOUND = regex.compile(
    r"\b(?:compare|comparison|difference between|cheaper|cheapest|price difference|difference in|dearer|dearest|"
    r"priciest|lowest|highest|than|in total|altogether|"
    r"in all|come to|remaining|outstanding|balance|owe|total|still (?:due|to pay|(?:have|need) to pay)|left to pay|"
    r"(?:more|most|less|least) (?:expensive|affordable)|"
    r"left\b.*\bafter|m[aá]s (?:barat|car|econ[oó]mic)[oa]s?|diferencia|en total)\b"
    rf"|^(?=.*(?:{_PRICE}|\bwhat (?:would|will)\b.*\bbe\b)).*{_NUMBER}",
    regex.IGNORECASE | regex.DOTALL,
)


def compound(text: str) -> bool:
    """Whether it looks as if it took more than one look-up: a comparison, a sum, or a question about documents together
    with one about the person. Guessed too often rather than too seldom: who is asked in vain passes it on at once."""
    personal = [is_personal(part) for part in parts(text)]
    return _COMPOUND.search(text) is not None or (any(personal) and not all(personal))


def asks(text: str) -> bool:
    """Whether a message is shaped like a question or a request, in a few languages."""
    return _ASKS.search(text.strip()) is not None


_TELLS_TOO = regex.compile(
    r"\b(?:remember|note (?:that|down)|make a note|keep in mind|don['’]t forget|recuerda|anota)\b|याद", regex.IGNORECASE
)

_ORDER = {
    "compound": ("compound", "question", "statement"),
    "question": ("question", "compound", "statement"),
    "statement": ("statement", "question", "compound"),
}


class Router:
    """Keeps the vectors of the cards' examples; embeds each message once."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._kept: dict[Card, list[Vector]] = {}

    async def ranked(self, text: str, cards: Mapping[str, Card]) -> list[tuple[str, float]]:
        """Names, best first, with a cosine. A card that hears only statements comes after those that hear questions
        when the message asks, and the other way round; one that hears what is compound comes before or after the
        questions' cards."""
        (vector,) = await self._embedder.alike([text])
        order = _ORDER["compound" if asks(text) and compound(text) else "question" if asks(text) else "statement"]
        wants_answer = bool(regex.search(r"[?？؟]", text)) and not _TELLS_TOO.search(text)
        scored = []
        for name, card in cards.items():
            if wants_answer and card.hears == "statement":
                continue  # "total? I live 5 miles away": noting that is no answer
            near = sorted((_dot(vector, example) for example in await self._examples(card)), reverse=True)[:2]
            score = sum(near) / len(near)
            scored.append((order.index(card.hears) if card.hears in order else 0, score, name))
        scored.sort(key=lambda entry: (entry[0], -entry[1], entry[2]))
        return [(name, score) for _, score, name in scored]

    async def small_talk(self, text: str, cards: Mapping[str, Card]) -> str | None:
        """The name of the card, for a short message that is close to one of its examples."""
        if len(text.split()) > SMALL_TALK_WORDS or _WHERE_OR_WHEN.search(text):
            return None
        (vector,) = await self._embedder.alike([text.strip().lower()])
        best, name = max(
            [(max(_dot(vector, e) for e in await self._examples(card)), name) for name, card in cards.items()]
        )
        return name if best >= SMALL_TALK_FLOOR else None

    async def _examples(self, card: Card) -> list[Vector]:
        if card not in self._kept:
            self._kept[card] = await self._embedder.alike(card.examples)
        return self._kept[card]


def _dot(a: Sequence[float], b: Sequence[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))
