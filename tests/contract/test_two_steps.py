"""Questions that one document opens and another answers, through the agent's own door, with the real models."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mesh.contracts.answers import Answer, Ask
from mesh.contracts.documents import ANSWER_FROM_DOCUMENTS
from tests.boundary.stage import Stage, leaked, staged
from tests.people import ASHA, BEN, OWNER

BOATS = b"""# The boats

Our largest boat is the Albatros. The Seagull is our oldest boat; it was built in 1961.

## Albatros

The Albatros takes 40 people. Its skipper is Jonas Berg. It costs 900 euros for half a day.

## Seagull

The Seagull takes 12 people. Its skipper is Ida Holm. It costs 260 euros for half a day.
"""
COURSES = b"""# Courses of the autumn

| Course | Teacher | Day | Room |
|---|---|---|---|
| Spanish A2 | Ana Ruiz | Monday | Blue room |
| French B1 | Luc Martin | Tuesday | Red room |
"""
PRICES = b"""# Prices

## Courses

Spanish A2 costs 240 euros for twelve evenings. French B1 costs 280 euros.

## Private lessons

A private lesson with Ana Ruiz is 45 euros an hour.
"""
SKIPPERS = b"""# Skippers KANARIENVOGEL

| Who | Phone | Licence |
|---|---|---|
| Ida Holm | 040 777 222 | KANARIENVOGEL |
| Jonas Berg | 040 777 111 | TREPPENWITZ |
"""


@pytest.fixture
async def stage(qdrant_url: str, models_url: str, tmp_path: Path) -> AsyncIterator[Stage]:
    async with staged(qdrant_url, models_url, tmp_path) as opened:
        for name, raw in (("boats.md", BOATS), ("courses.md", COURSES), ("prices.md", PRICES)):
            await opened.ingest(OWNER, name, raw, visibility="global")
        yield opened


async def ask(stage: Stage, client: str, text: str) -> Answer:
    return await stage.ask(client, ANSWER_FROM_DOCUMENTS, Ask(text=text, message_id=uuid.uuid4().hex))


@pytest.mark.parametrize(
    ("question", "opening", "answer"),
    [
        ("How much is the course that Ana Ruiz teaches?", "courses.md", "240"),
        ("How much does the Monday course cost?", "courses.md", "240"),
        ("How much does the largest boat cost?", "boats.md", "900"),
        ("How many people does the oldest boat take?", "boats.md", "12 people"),
        ("What does a private lesson with the teacher of Spanish A2 cost?", "courses.md", "45 euros"),
    ],
)
async def test_both_documents_are_quoted_and_named(stage: Stage, question: str, opening: str, answer: str) -> None:
    told = await ask(stage, ASHA, question)
    assert told.grounded
    assert told.sources[0].name == opening
    assert answer in told.sources[-1].quote
    assert answer in told.text


@pytest.mark.parametrize(
    "question",
    [
        "How old is the skipper of the Seagull?",
        "What does the skipper of the Albatros earn?",
        "How much is the deposit of the largest boat?",
        "When was the teacher of Spanish A2 born?",
        "Does the largest boat have a toilet?",
    ],
)
async def test_who_it_is_is_no_answer_to_what_is_asked_of_them(stage: Stage, question: str) -> None:
    """These were answered with the sentence that names them."""
    told = await ask(stage, ASHA, question)
    assert not told.grounded
    assert told.text == ""


async def test_the_second_document_is_only_for_whom_may_see_it(stage: Stage) -> None:
    card = await stage.ingest(BEN, "skippers.md", SKIPPERS)
    question = "What is the phone number of the skipper of the Seagull?"
    his = await ask(stage, BEN, question)
    assert [each.name for each in his.sources] == ["boats.md", "skippers.md"]
    assert "040 777 222" in his.text
    hers = await ask(stage, ASHA, question)
    assert not hers.grounded
    assert not leaked(hers.model_dump(mode="json"), card.document_id)


async def test_nor_does_anothers_document_open_a_question(stage: Stage) -> None:
    """Who the harbour master is, only Ben knows; what she earns, everybody would."""
    await stage.ingest(BEN, "harbour.md", b"# Harbour\n\nOur harbour master is Ada KANARIENVOGEL.\n")
    await stage.ingest(
        OWNER, "wages.md", b"# Wages\n\nAda KANARIENVOGEL earns 4,100 euros a month.\n", visibility="global"
    )
    question = "How much does the harbour master earn?"
    assert "4,100" in (await ask(stage, BEN, question)).text
    hers = await ask(stage, ASHA, question)
    assert "harbour.md" not in [each.name for each in hers.sources]
    assert "harbour master is" not in hers.text
