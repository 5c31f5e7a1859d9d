"""The orchestrator's own words: what it says when no skill has an answer, and small talk."""

from __future__ import annotations

from mesh.contracts import Source
from mesh.skills import Card

UNKNOWN = (
    "I couldn't find that in the documents I may show you, so I won't guess. "
    "You could ask it another way, or send me a document that has it."
)
ONLY_TEXT = "I can only read text messages for now. Please write me your question."
EMPTY = "Your message came through without any text. What would you like to know?"
CRASHING = "I'm sorry, I can't answer this message: something on my side keeps failing. The owner can see it."

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
            ),
        ),
        "Hello! Ask me anything about the documents you have here, or tell me something to remember.",
    ),
    "thanks": (
        Card(
            summary="Thanks.",
            examples=("thank you", "thanks a lot", "great, thanks", "gracias", "धन्यवाद", "merci", "ok"),
        ),
        "You're welcome!",
    ),
    "goodbye": (
        Card(
            summary="Goodbye.",
            examples=("bye", "goodbye", "see you later", "good night", "adiós", "अलविदा", "au revoir"),
        ),
        "Goodbye, and write any time.",
    ),
    "help": (
        Card(
            summary="Asks what this is.",
            examples=("help", "what can you do?", "who are you?", "how does this work?", "ayuda", "मदद"),
        ),
        "I answer questions from the documents that you may see here, and I remember what you tell me about yourself. "
        "Try: “How much is a double room?” or “My favourite colour is teal.”",
    ),
}


def with_source(text: str, sources: tuple[Source, ...]) -> str:
    """The answer, and beneath it what it stands on. Memory names its source in the answer itself."""
    labels = dict.fromkeys(source.label for source in sources if source.kind == "document")
    return f"{text}\n\n_Source: {'; '.join(labels)}_" if labels else text


def fit(text: str, limit: int) -> str:
    """Cut at a sentence or a word under the provider's limit."""
    if len(text) <= limit:
        return text
    head = text[: limit - 1]
    cut = max(head.rfind(". ") + 1, head.rfind("\n"), head.rfind(" ") if head.rfind(". ") < limit // 2 else 0)
    return head[: cut or limit - 1].rstrip() + "…"
