"""The drills' own agent. It answers a message with the tokens in it, so that a reply names what it is a reply to. Words
in the message tell it to do more: `hold` to wait until it is let go, `slow` to take its time, `poison` to kill its
worker."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

from mesh.context import Context
from mesh.contracts.answers import Answer, Ask
from mesh.dispatch import Agent
from mesh.skills import Card, Skill
from mesh.wiring import Parts

FOLDER = "DRILLS_FOLDER"
"""Names the folder where what is held leaves TOKEN.held, and waits for TOKEN.go: by the last token in it."""
HOLD, SLOW, POISON = "hold", "slow", "poison"
SLOW_S = 0.5
WITHIN_S = 20.0
"""Longer than what a killed worker was at is left alone."""
USUAL = "Would you say the token {token} back to me, please?"
"""Long enough not to be taken for small talk."""

_TOKEN = re.compile(r"\bm[0-9]{5,}\b")

ECHO = Skill(
    name="echo.say",
    takes=Ask,
    returns=Answer,
    needs="chat:converse",
    within=timedelta(seconds=WITHIN_S),
    card=Card(
        summary="Says a token back.",
        examples=(USUAL.format(token="m00001"), "Would you say m00001 back?"),
        hears="question",
    ),
)


def token_of(number: int) -> str:
    return f"m{number:05d}"


def tokens_in(text: str) -> tuple[str, ...]:
    """In order, each once."""
    return tuple(dict.fromkeys(_TOKEN.findall(text)))


@asynccontextmanager
async def open_folder(parts: Parts) -> AsyncIterator[Path]:
    yield Path(os.environ[FOLDER])


agent: Agent[Path] = Agent("echo", opens=open_folder)


@agent.handles(ECHO)
async def say(ask: Ask, ctx: Context[Path]) -> Answer:
    tokens, told = tokens_in(ask.text), ask.text.split()
    if POISON in told:
        os.kill(os.getpid(), signal.SIGKILL)
    if SLOW in told:
        await asyncio.sleep(SLOW_S)
    if HOLD in told and tokens:
        (ctx.own / f"{tokens[-1]}.held").touch()
        while not (ctx.own / f"{tokens[-1]}.go").exists():
            await asyncio.sleep(0.02)
    return Answer(text=f"echo {' '.join(tokens)}", grounded=bool(tokens), confidence=1.0)
