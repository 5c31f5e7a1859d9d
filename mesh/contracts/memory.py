"""The memory agent: what people told of themselves."""

from __future__ import annotations

from datetime import datetime, timedelta

from mesh.contracts.answers import Answer, Ask, Memory, Nothing
from mesh.envelope import Wire
from mesh.skills import Card, Skill


class Recall(Wire):
    about: str
    limit: int = 5


class Recalled(Wire):
    memories: tuple[Memory, ...]


class Remember(Wire):
    text: str
    message_id: str
    said_at: datetime


class Remembered(Wire):
    """Texts of the facts that were new, said again, or replaced by a new one."""

    new: tuple[str, ...] = ()
    restated: tuple[str, ...] = ()
    superseded: tuple[str, ...] = ()


class Told(Wire):
    """Everything that is remembered of a person, oldest first; what was replaced is not among it."""

    memories: tuple[Memory, ...]


class Forget(Wire):
    """`about` names one thing; empty: everything."""

    about: str = ""


class Forgotten(Wire):
    texts: tuple[str, ...]
    """The facts that are gone, as they were."""


EXPORT_MEMORY = Skill(
    name="memory.export", takes=Nothing, returns=Told, needs="memory:recall", within=timedelta(seconds=10)
)
FORGET = Skill(
    name="memory.forget",
    takes=Forget,
    returns=Forgotten,
    needs="memory:write",
    within=timedelta(seconds=30),
    fresh=True,
)
"""Out of every store and log."""
RECALL = Skill(name="memory.recall", takes=Recall, returns=Recalled, needs="memory:recall", within=timedelta(seconds=4))
REMEMBER = Skill(
    name="memory.remember",
    takes=Remember,
    returns=Remembered,
    needs="memory:write",
    kept=True,
    within=timedelta(seconds=30),
)
ANSWER_FROM_MEMORY = Skill(
    name="memory.answer",
    takes=Ask,
    returns=Answer,
    needs="memory:recall",
    within=timedelta(seconds=10),
    card=Card(
        summary="Answers a question about what the person told earlier about themselves.",
        examples=(
            "What is my favourite colour?",
            "When is my birthday?",
            "What did I tell you about my allergies?",
            "What's my dog's name?",
            "Do you remember where I live?",
            "Who is my doctor?",
            "What do you know about me?",
            "¿Cuál es mi color favorito?",
        ),
        hears="question",
    ),
)
NOTE = Skill(
    name="memory.note",
    takes=Ask,
    returns=Answer,
    needs="memory:write",
    kept=True,
    within=timedelta(seconds=15),
    card=Card(
        summary="Takes in something that the person tells about themselves, or a correction of it.",
        examples=(
            "My favourite colour is blue.",
            "I am allergic to peanuts.",
            "Actually, my birthday is on 4 May.",
            "I moved to Lyon last month.",
            "Please remember that I prefer mornings.",
            "We have two children.",
            "My room number is 12.",
            "No, I meant Thursday.",
        ),
        hears="statement",
    ),
)
