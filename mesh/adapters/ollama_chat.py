"""Chat with a model of an Ollama server, held to a JSON schema, through Ollama's own client."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, TypeVar

import httpx
import ollama
from pydantic import BaseModel, ValidationError

from mesh.errors import MeshError, Misconfigured, TimedOut, TooLong, Unavailable, Unfit
from mesh.ports.models import Shape
from mesh.tokens import most_tokens

log = logging.getLogger(__name__)

TIMEOUT_S = 60.0
"""For one answer, with its second try."""
CONNECT_S = 5.0
ANSWER_TOKENS = 1_500
"""The longest answer; a quarter of the window at most."""
TEMPLATE_TOKENS = 64
"""What the model's template puts around the messages."""
COMPLAINT_CHARS = 300
FEWEST_PER_CHAR = 1 / 8
"""Tokens. English has one in 4.9 characters at the least; a prompt that was cut loses half or more."""

AGAIN = (
    "{prompt}\n\n---\nYour last answer could not be used ({why}). Answer once more: one JSON object that fits this "
    "schema, and nothing before or after it.\n{schema}"
)

Got = TypeVar("Got")


class Misfit(ValueError):
    """The text is for the model: what was wrong with its answer. `kinds` is for the log."""

    def __init__(self, why: str, kinds: str) -> None:
        super().__init__(why)
        self.kinds = kinds


class OllamaChat:
    """One call holds no memory of another. Cancelling it closes the connection, and so ends the server's work."""

    def __init__(
        self,
        host: str,
        *,
        model: str,
        window: int,
        timeout: float = TIMEOUT_S,
        answer_tokens: int = ANSWER_TOKENS,
    ) -> None:
        self.model = model
        self.window = window
        self._timeout = timeout
        self._reserve = min(answer_tokens, window // 4)
        self._thinks: bool | None = None
        self._client = ollama.AsyncClient(host=host, timeout=httpx.Timeout(timeout, connect=CONNECT_S))

    async def answer(self, system: str, prompt: str, shape: type[Shape]) -> Shape:
        schema = schema_of(shape)
        written = json.dumps(schema, ensure_ascii=False)
        self._check_room(system, AGAIN.format(prompt=prompt, why="?" * COMPLAINT_CHARS, schema=written))
        with self._bounded():
            async with asyncio.timeout(self._timeout):
                try:
                    return _read(await self._ask(system, prompt, schema), shape)
                except Misfit as first:
                    log.info("↻ chat model=%s shape=%s misfit=%s", self.model, shape.__name__, first.kinds)
                    again = AGAIN.format(prompt=prompt, why=first, schema=written)
                try:
                    return _read(await self._ask(system, again, schema), shape)
                except Misfit as second:
                    raise Unfit(detail=f"chat: {shape.__name__}: {second.kinds}") from second

    async def probe(self) -> None:
        """Raises `Misconfigured`, also for a window that is longer than the model's own."""
        with self._bounded():
            shown = await self._reached(self._client.show(self.model))
        can = shown.capabilities
        if can is not None and "completion" not in can:
            raise self._no_chat()
        lengths = [value for name, value in (shown.modelinfo or {}).items() if name.endswith(".context_length")]
        if lengths and int(lengths[0]) < self.window:
            raise Misconfigured(
                f"Setting chat_window (CHAT_WINDOW) is {self.window}, but {self.model} reads {lengths[0]} tokens at "
                f"most: set it to {lengths[0]} or less."
            )
        self._thinks = "thinking" in (can or ())

    async def close(self) -> None:
        await self._client.close()  # type: ignore[no-untyped-call]  # ollama's annotation is missing

    async def _ask(self, system: str, prompt: str, schema: dict[str, Any]) -> str:
        if self._thinks is None:
            await self.probe()
        began = time.monotonic()
        said = await self._reached(
            self._client.chat(
                model=self.model,
                messages=[
                    {"role": "system", "content": _encodable(system)},
                    {"role": "user", "content": _encodable(prompt)},
                ],
                format=schema,
                options={"num_ctx": self.window, "num_predict": self._reserve, "temperature": 0},
                # servers before 0.12.5 refuse the word for a model that does not think
                think=False if self._thinks else None,
            )
        )
        log.info(
            "· chat model=%s ms=%d prompt_tokens=%s answer_tokens=%s ended=%s",
            self.model,
            (time.monotonic() - began) * 1000,
            said.prompt_eval_count,
            said.eval_count,
            said.done_reason,
        )
        self._look_for_a_cut(len(system) + len(prompt), said.prompt_eval_count)
        if said.done_reason == "length":
            raise Unfit(detail=f"chat: the answer was longer than {self._reserve} tokens")
        return said.message.content or ""

    def _check_room(self, *texts: str) -> None:
        needed = sum(most_tokens(text) for text in texts) + TEMPLATE_TOKENS + self._reserve
        if needed > self.window:
            raise TooLong(detail=f"chat: up to {needed} tokens with the answer, the window has {self.window}")

    def _look_for_a_cut(self, chars: int, evaluated: int | None) -> None:
        """A server cuts without a word, from the front. `prompt_eval_count` is what is left."""
        if not evaluated:
            return
        if evaluated > self.window - self._reserve or evaluated < int(chars * FEWEST_PER_CHAR):
            log.warning(
                "! chat model=%s prompt_tokens=%d chars=%d window=%d: the prompt was probably cut by the server; is "
                "CHAT_WINDOW what the server gives?",
                self.model,
                evaluated,
                chars,
                self.window,
            )

    @contextmanager
    def _bounded(self) -> Iterator[None]:
        try:
            yield
        except (TimeoutError, httpx.TimeoutException) as error:
            raise TimedOut(detail=f"chat: no answer in {self._timeout:g} s") from error

    async def _reached(self, call: Awaitable[Got]) -> Got:
        try:
            return await call
        except ollama.ResponseError as error:
            raise self._refused(error.status_code, str(error.error)) from error
        except httpx.ConnectTimeout as error:
            raise Unavailable(detail="chat: ConnectTimeout") from error
        except httpx.TimeoutException:
            raise
        except (httpx.HTTPError, ConnectionError) as error:
            raise Unavailable(detail=f"chat: {type(error).__name__}") from error
        except (ValueError, TypeError, AttributeError) as error:  # how the client meets what is not Ollama's form
            raise Unavailable(detail="chat: the server does not answer as Ollama does") from error

    def _refused(self, status: int, said: str) -> MeshError:
        if status == 404:
            return Misconfigured(
                f"The model server has no model {self.model}: pull it, or set chat_model (CHAT_MODEL)."
            )
        if "does not support chat" in said:
            return self._no_chat()
        if "context" in said and ("exceed" in said or "length" in said):
            return TooLong(detail=f"chat: HTTP {status}: the prompt exceeds the server's window")
        return Unavailable(detail=f"chat: HTTP {status}: {' '.join(said.split())[:160]}")

    def _no_chat(self) -> Misconfigured:
        return Misconfigured(
            f"{self.model} can't chat: set chat_model (CHAT_MODEL) to a model that can, or to nothing."
        )


# ── shapes ────────────────────────────────────────────────────────────────────────────────────────────────────────


@lru_cache(64)
def schema_of(shape: type[BaseModel]) -> dict[str, Any]:
    """With what it refers to put in place: llama.cpp's grammar loses references in some orders, and then holds the
    model to nothing (ollama issue 8444). A shape that holds itself keeps its references."""
    schema = shape.model_json_schema()
    definitions = schema.pop("$defs", {})
    placed: dict[str, Any] = _placed(schema, definitions, ())
    return {**placed, "$defs": definitions} if '"$ref"' in json.dumps(placed) else placed


def _placed(node: Any, definitions: dict[str, Any], inside: tuple[str, ...]) -> Any:
    if isinstance(node, list):
        return [_placed(each, definitions, inside) for each in node]
    if not isinstance(node, dict):
        return node
    name = str(node.get("$ref", "")).removeprefix("#/$defs/")
    if name in definitions and name not in inside:
        beside = {key: value for key, value in node.items() if key != "$ref"}
        return {**_placed(definitions[name], definitions, (*inside, name)), **beside}
    return {key: _placed(value, definitions, inside) for key, value in node.items()}


def _read(said: str, shape: type[Shape]) -> Shape:
    """Raises `Misfit`."""
    if not said.strip():
        raise Misfit("it was empty", "empty")
    try:
        return shape.model_validate_json(_json_in(said))
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)[:3]
        wrong = [f"{'.'.join(map(str, each['loc'])) or 'all of it'}: {each['msg']}" for each in found]
        kinds = ", ".join(each["type"] for each in found)
        raise Misfit("; ".join(wrong)[:COMPLAINT_CHARS], kinds) from error


def _json_in(said: str) -> str:
    """Without the fences and the talk that models put around it."""
    text = said.rpartition("</think>")[2]
    start = re.search(r"[{\[]", text)
    if start is None:
        return text
    try:
        _, end = json.JSONDecoder().raw_decode(text, start.start())
    except (ValueError, RecursionError):
        return text[start.start() :]
    return text[start.start() : end]


def _encodable(text: str) -> str:
    """A lone surrogate can't be sent."""
    return text.encode("utf-8", "replace").decode()
