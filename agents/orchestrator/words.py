"""The orchestrator's own words: what it says when no skill has an answer, and small talk. The texts are in the
catalogue."""

from __future__ import annotations

from mesh.catalogue import say
from mesh.contracts.answers import Source
from mesh.skills import Card
from mesh.text import language

UNKNOWN = say("unknown", "en")
CRASHING = say("crashing", "en")
STILL_WORKING = say("still_working", "en")
CANCELLED = say("cancelled", "en")

SMALL_TALK: dict[str, tuple[Card, str]] = {
    "greeting": (
        Card(
            summary="A greeting.",
            examples=(
                "hello",
                "hi",
                "good morning",
                "hey there",
                "hola",
                "buenos días",
                "नमस्ते",
                "bonjour",
                "olá",
                "good evening",
                "buenas tardes",
                "namaste",
                "👋",
                "salut",
                "bonsoir",
                "hallo",
                "guten tag",
                "guten morgen",
                "oi",
                "bom dia",
                "boa tarde",
                "नमस्कार",
            ),
        ),
        "greeting",
    ),
    "wellbeing": (
        Card(
            summary="Asks how one is.",
            examples=(
                "how are you?",
                "how are you doing today?",
                "what's up",
                "nice to meet you",
                "¿cómo estás?",
                "comment ça va ?",
                "wie geht es dir?",
                "tudo bem?",
                "आप कैसे हैं?",
            ),
        ),
        "wellbeing",
    ),
    "thanks": (
        Card(
            summary="Thanks.",
            examples=(
                "thank you",
                "thanks a lot",
                "great, thanks",
                "thank you very much for your help",
                "thanks, that was really helpful",
                "gracias",
                "muchas gracias por tu ayuda",
                "धन्यवाद",
                "merci",
                "ok",
                "perfect",
                "cool",
                "👍",
                "merci beaucoup",
                "danke",
                "vielen dank",
                "obrigado",
                "obrigada",
                "muito obrigado",
                "शुक्रिया",
            ),
        ),
        "thanks",
    ),
    "goodbye": (
        Card(
            summary="Goodbye.",
            examples=(
                "bye",
                "goodbye",
                "see you later",
                "have a nice day",
                "good night",
                "adiós",
                "अलविदा",
                "au revoir",
                "auf wiedersehen",
                "tschüss",
                "tchau",
                "até logo",
                "bonne journée",
            ),
        ),
        "goodbye",
    ),
    "aside": (
        Card(summary="Neither asks nor tells.", examples=("yes", "no", "sorry", "never mind", "haha", "lol", "test")),
        "aside",
    ),
    "help": (
        Card(
            summary="Asks what this is.",
            examples=(
                "help",
                "what can you do?",
                "who are you?",
                "are you a bot?",
                "how does this work?",
                "ayuda",
                "मदद",
                "¿quién eres?",
                "qui êtes-vous ?",
                "wer bist du?",
                "quem é você?",
                "आप कौन हैं?",
            ),
        ),
        "help",
    ),
}
"""By name, with the catalogue's key of what is said."""


def unknown(question: str) -> str:
    """In the language of the question, where we have it."""
    return say("unknown", language(question))


def without_a_search(kind: str, spoken: str | None, *, file: bool = False) -> str | None:
    """For turns of a kind that needs none. `file`: one was being taken in, which no cancel undoes."""
    keys = {"cancelled": "cancelled_file" if file else "cancelled", "cancel": "nothing_to_cancel"}
    return say(keys[kind], spoken) if kind in keys else None


def with_source(text: str, sources: tuple[Source, ...], spoken: str | None = None) -> str:
    """The answer, and beneath it what it stands on. Memory names its source in the answer itself."""
    names = dict.fromkeys(source.name for source in sources if source.kind == "document")
    return f"{text}\n\n_{say('source_label', spoken)}: {'; '.join(names)}_" if names else text


def fit(text: str, limit: int) -> str:
    """Cut at a sentence or a word under the provider's limit."""
    if len(text) <= limit:
        return text
    head = text[: limit - 1]
    cut = max(head.rfind(". ") + 1, head.rfind("\n"), head.rfind(" ") if head.rfind(". ") < limit // 2 else 0)
    return head[: cut or limit - 1].rstrip() + "…"


def too_many(left_out: int, spoken: str | None = None) -> str:
    """For messages over the cap, one word for all of them."""
    return say("too_many_one", spoken) if left_out <= 1 else say("too_many", spoken, count=left_out)
