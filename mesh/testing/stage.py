"""The scripted model behind its HTTP form: what it was told, what it hears, and what it says."""

from __future__ import annotations

import asyncio
import json
import math
from collections import deque
from dataclasses import dataclass
from typing import Any

from mesh.testing.instances import instance
from mesh.testing.script import Heard, Step

KEPT = 1_000
KEPT_CHARS = 20_000_000
"""Of prompts, in all."""
CHARS_PER_TOKEN = 4
DEFAULT_CTX = 4_096
MOST_PREDICTED = 4_096
THINKS = "-thinking"


@dataclass(frozen=True)
class Chosen:
    embedding_model: str = "multilingual-e5-small"
    dims: int = 384
    chat_model: str = "scripted"
    context: int = 131_072
    """The longest window of the chat models, in tokens."""

    @property
    def chat_models(self) -> tuple[str, str]:
        return self.chat_model, self.chat_model + THINKS


@dataclass(frozen=True)
class Asked:
    """A chat call, or a generation, which is one with two messages. A window is cut as Ollama does it: from the front,
    and to a half, so that there is room for the answer."""

    model: str
    name: str
    system: str
    prompt: str
    format: Any
    options: dict[str, Any]
    think: Any
    stream: bool
    chat: bool

    @property
    def window(self) -> int:
        return int(self.options.get("num_ctx") or DEFAULT_CTX)

    @property
    def prompt_tokens(self) -> int:
        """After the cut."""
        tokens = tokens_of(f"{self.system}\n{self.prompt}")
        return tokens if tokens <= self.window else self.window // 2 + 2

    @property
    def seen(self) -> str:
        return f"{self.system}\n{self.prompt}"[-self.prompt_tokens * CHARS_PER_TOKEN :]


class Stage:
    """The script, the rules, and what was heard."""

    def __init__(self, chosen: Chosen) -> None:
        self.chosen = chosen
        self.script: list[Step] = []
        self.rules: list[Step] = []
        self.heard: deque[Heard] = deque()
        self.closing = asyncio.Event()
        self._count = 0
        self._chars = 0

    def take(self, heard: str) -> Step | None:
        for rule in self.rules:
            if rule.fits(heard):
                return rule
        for number, step in enumerate(self.script):
            if step.fits(heard):
                return self.script.pop(number)
        return None

    def hear(self, asked: Asked) -> Heard:
        self._count += 1
        heard = Heard(
            number=self._count,
            model=asked.model,
            system=asked.system,
            prompt=asked.prompt,
            format=asked.format,
            options=asked.options,
            think=asked.think,
            stream=asked.stream,
        )
        self.heard.append(heard)
        self._chars += len(heard.system) + len(heard.prompt)
        while len(self.heard) > KEPT or (self._chars > KEPT_CHARS and len(self.heard) > 1):
            oldest = self.heard.popleft()
            self._chars -= len(oldest.system) + len(oldest.prompt)
        return heard

    def forget(self) -> None:
        self.heard.clear()
        self._chars = 0


def said_by(asked: Asked, step: Step) -> str:
    said = step.say
    if said is None:
        said = instance(asked.format) if isinstance(asked.format, dict) else {} if asked.format == "json" else "ok"
    text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
    match step.do:
        case "prose":
            return f"Certainly! Here is what you asked for:\n\n```json\n{text}\n```\n\nI hope that {{this}} helps."
        case "malformed" | "truncated":
            return text[: len(text) * 2 // 3]
        case "wrong_shape":
            return '["not", "what", "was", "asked"]'
        case "empty":
            return ""
        case "repeat":
            once = text.rstrip('}]"') + " "
            return once * math.ceil(asked.window * CHARS_PER_TOKEN / len(once))
    return text


def tokens_of(text: str) -> int:
    return math.ceil(len(text) / CHARS_PER_TOKEN)
