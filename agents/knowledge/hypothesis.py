"""HyDE: a made-up answer lies nearer to the passage that answers than the question does. It is embedded, and never
shown to anybody."""

from __future__ import annotations

from collections.abc import Sequence

from mesh.envelope import Wire
from mesh.errors import MeshError
from mesh.ports.models import ChatModel, Embedder, Vector

SHARE = 0.25
"""Of the made-up answer in the vector that is searched with."""
_SYSTEM = (
    "Write the two sentences of a document that would answer this question, in its language. Make the facts up: they "
    "are only used to find the document."
)


class Hypothesis(Wire):
    passage: str


async def towards_an_answer(question: str, vector: Vector, chat: ChatModel, embedder: Embedder) -> Vector:
    """The question's vector, moved towards that of a made-up answer; as it is when none can be made now."""
    try:
        passage = (await chat.answer(_SYSTEM, question, Hypothesis)).passage.strip()
        (answer,) = await embedder.documents([passage]) if passage else ([],)
    except MeshError:
        return vector
    return _between(vector, answer) if answer else vector


def _between(one: Sequence[float], other: Sequence[float]) -> Vector:
    mixed = [(1 - SHARE) * a + SHARE * b for a, b in zip(one, other, strict=True)]
    length = sum(each * each for each in mixed) ** 0.5
    return [each / length for each in mixed] if length else list(one)
