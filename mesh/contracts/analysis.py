"""The analysis agent: what takes more than one look-up."""

from __future__ import annotations

from datetime import timedelta

from mesh.contracts.answers import Answer, Ask
from mesh.skills import Card, Skill

ANALYSE = Skill(
    name="analysis.ask",
    takes=Ask,
    returns=Answer,
    needs="analysis:ask",
    within=timedelta(seconds=90),
    card=Card(
        summary="Works out what takes more than one look-up: compares, adds up, picks the cheapest, follows a trail.",
        examples=(
            "How much do three nights in the double room cost for two people with breakfast?",
            "Which is cheaper, the small package or the large one?",
            "What is the difference between the standard and the premium plan?",
            "How much is left to pay after the deposit?",
            "What is your cheapest room?",
            "Compare the cancellation terms of the two rates.",
            "What do 4 adult tickets and 2 child tickets come to in total?",
            "¿Qué es más barato, la habitación doble o la suite?",
        ),
        hears="compound",
    ),
)
