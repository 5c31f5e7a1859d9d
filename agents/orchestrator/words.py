"""The orchestrator's own words: what it says when no skill has an answer, and small talk."""

from __future__ import annotations

from mesh.contracts import Source
from mesh.skills import Card
from mesh.text import language

UNKNOWN = "Sorry, I couldn't find an answer to that, and I won't guess. Please ask us directly, or ask me another way."
_UNKNOWN_IN = {
    "es": "No lo he encontrado, y prefiero no adivinar. Pregúntanos directamente, o pregúntamelo de otra manera.",
    "hi": "माफ़ कीजिए, मुझे इसका जवाब नहीं मिला, और मैं अंदाज़ा नहीं लगाऊँगा। कृपया हमसे सीधे पूछिए, या दूसरे शब्दों में पूछिए।",
}
"""None of these may hold anything that could be taken for an answer."""
ONLY_TEXT = "I can only read text messages for now. Please write me your question."
EMPTY = "Your message came through without any text. What would you like to know?"
CRASHING = "I'm sorry, I can't answer this message: something on my side keeps failing. The owner can see it."
STILL_WORKING = "Still working on it, this takes a little longer …"
CANCELLED = "All right, I've stopped. Ask me anything else."
WITHOUT_A_SEARCH = {"cancelled": CANCELLED, "cancel": "There is nothing under way that I could stop."}
"""By the kind of a turn."""

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
            ),
        ),
        "Hello! Ask me anything about the documents you have here, or tell me something to remember.",
    ),
    "wellbeing": (
        Card(
            summary="Asks how one is.",
            examples=("how are you?", "how are you doing today?", "what's up", "nice to meet you", "¿cómo estás?"),
        ),
        "I'm well, thank you. What would you like to know?",
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
            ),
        ),
        "You're welcome!",
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
            ),
        ),
        "Goodbye, and write any time.",
    ),
    "aside": (
        Card(summary="Neither asks nor tells.", examples=("yes", "no", "sorry", "never mind", "haha", "lol", "test")),
        "All right. Ask me anything, whenever you like.",
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
            ),
        ),
        "I answer questions from the documents that you may see here, and I remember what you tell me about yourself. "
        "Ask what something costs or when it is open, or tell me what I should remember.",
    ),
}


def unknown(question: str) -> str:
    """In the language of the question, where we have it."""
    return _UNKNOWN_IN.get(language(question) or "", UNKNOWN)


def with_source(text: str, sources: tuple[Source, ...]) -> str:
    """The answer, and beneath it what it stands on. Memory names its source in the answer itself."""
    names = dict.fromkeys(source.name for source in sources if source.kind == "document")
    return f"{text}\n\n_Source: {'; '.join(names)}_" if names else text


def fit(text: str, limit: int) -> str:
    """Cut at a sentence or a word under the provider's limit."""
    if len(text) <= limit:
        return text
    head = text[: limit - 1]
    cut = max(head.rfind(". ") + 1, head.rfind("\n"), head.rfind(" ") if head.rfind(". ") < limit // 2 else 0)
    return head[: cut or limit - 1].rstrip() + "…"


def too_many(left_out: int) -> str:
    """For messages over the cap, one word for all of them."""
    one = left_out <= 1
    return (
        f"That was more than I can take in at once: I left out {'one message' if one else f'{left_out} messages'} of "
        f"yours. Please send {'it' if one else 'what matters'} again in a minute."
    )
