"""A scripted model server in Ollama's HTTP form: instant vectors, and chat that says what it is told. As a process:

    python -m mesh.testing.model --port 9011

It prints its address when it listens (`--port 0` picks one), on loopback only, and is driven through `/simulate` by
`mesh.testing.script.ModelScript`. Like a real server it cuts a prompt that is longer than `num_ctx`, from the front
and without a word; a token is four characters here.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import math
import socket
import time
import zlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

import uvicorn
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from mesh.testing.script import Step
from mesh.testing.stage import CHARS_PER_TOKEN, KEPT, MOST_PREDICTED, THINKS, Asked, Chosen, Stage, said_by, tokens_of
from mesh.testing.vectors import vector

VERSION = "0.12.0"
"""Of Ollama's HTTP form."""
MAX_BODY_BYTES = 8 * 1024 * 1024
PIECE = 12
"""Characters in one piece of a stream."""
_AT = "2026-01-01T00:00:00Z"


class Refused(Exception):
    """An answer in Ollama's error form."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


# ── vectors ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def embed(request: Request) -> Response:
    body, chosen = await _body(request), _stage(request).chosen
    _check_embeds(body, chosen)
    if body.get("dimensions") not in (None, 0, chosen.dims):
        raise Refused(400, f"{chosen.embedding_model} has {chosen.dims} dimensions; they can't be changed")
    given = body.get("input")
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list | None) or not all(isinstance(text, str) for text in texts or ()):
        raise Refused(400, "invalid input type: a string or a list of strings is expected")
    texts = [] if texts in (None, [""]) else texts
    vectors = [vector(text, chosen.dims) for text in texts or ()]
    tokens = sum(tokens_of(text) for text in texts or ())
    counts = {"total_duration": 1, "load_duration": 0, "prompt_eval_count": tokens}
    return JSONResponse({"model": body["model"], **counts, "embeddings": vectors})


async def embed_legacy(request: Request) -> Response:
    body, chosen = await _body(request), _stage(request).chosen
    _check_embeds(body, chosen)
    text = str(body.get("prompt") or "")
    return JSONResponse({"embedding": vector(text, chosen.dims) if text else []})


def _check_embeds(body: dict[str, Any], chosen: Chosen) -> None:
    if _model(body, chosen) != chosen.embedding_model:
        raise Refused(400, "this model does not support embeddings")


# ── chat ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def chat(request: Request) -> Response:
    return await _converse(request, chat=True)


async def generate(request: Request) -> Response:
    return await _converse(request, chat=False)


async def _converse(request: Request, *, chat: bool) -> Response:
    stage, began = _stage(request), time.perf_counter()
    asked = _asked(await _body(request), stage.chosen, chat=chat)
    if not asked.prompt and not asked.system:
        return JSONResponse(_line(asked, "", done_reason="load"))
    heard = stage.hear(asked)
    told = stage.take(asked.seen)
    step = told or Step()
    heard.done = step.do if told else "default"
    wait = math.inf if step.do == "hang" else step.seconds
    gone = bool(wait) and await _gone(request, stage, wait)
    heard.ended, heard.ms = "gone" if gone else "answered", (time.perf_counter() - began) * 1000
    if gone:
        return Response(status_code=499)
    if step.do == "fail":
        raise Refused(step.status, "the scripted model fails, as it was told")
    if step.do == "missing":
        raise Refused(404, f'model "{asked.model}" not found, try pulling it first')
    answer = _answer(asked, step)
    return Dropped(answer) if step.do == "drop" else answer


def _asked(body: dict[str, Any], chosen: Chosen, *, chat: bool) -> Asked:
    name = _model(body, chosen)
    if name not in chosen.chat_models:
        raise Refused(400, f'"{name}" does not support {"chat" if chat else "generate"}')
    if body.get("think") is not None and not name.endswith(THINKS):
        raise Refused(400, f'"{name}" does not support thinking')  # Ollama before 0.12.5, even where it is false
    if chat:
        messages = body.get("messages") or []
        if not all(isinstance(each, dict) and isinstance(each.get("content", ""), str) for each in messages):
            raise Refused(400, "invalid messages")
        told = [each.get("content", "") for each in messages if each.get("role") == "system"]
        said = [each.get("content", "") for each in messages if each.get("role") != "system"]
    else:
        told, said = [str(body.get("system") or "")], [str(body.get("prompt") or "")]
    return Asked(
        model=body["model"],
        name=name,
        system="\n\n".join(told),
        prompt="\n\n".join(said),
        format=body.get("format") or "",
        options=body.get("options") or {},
        think=body.get("think"),
        stream=body.get("stream") is not False,
        chat=chat,
    )


def _answer(asked: Asked, step: Step) -> Response:
    text, most = said_by(asked, step), int(asked.options.get("num_predict") or -1)
    most = min(most if most > 0 else MOST_PREDICTED, asked.window)
    too_long = tokens_of(text) > most
    text = text[: most * CHARS_PER_TOKEN] if too_long else text
    cut = too_long or step.do in ("truncated", "repeat")
    counts = {
        "total_duration": 1,
        "load_duration": 0,
        "prompt_eval_count": asked.prompt_tokens if step.prompt_tokens is None else step.prompt_tokens,
        "prompt_eval_duration": 1,
        "eval_count": tokens_of(text),
        "eval_duration": 1,
    }
    last = {"done_reason": "length" if cut else "stop", **counts}
    if not asked.stream:
        return JSONResponse(_line(asked, text, **last))
    pieces = [text[start : start + PIECE] for start in range(0, len(text), PIECE)]
    lines = [_line(asked, piece) for piece in pieces] + [_line(asked, "", **last)]
    return StreamingResponse(iter([json.dumps(line) + "\n" for line in lines]), media_type="application/x-ndjson")


def _line(asked: Asked, text: str, **last: Any) -> dict[str, Any]:
    thinks = asked.name.endswith(THINKS) and asked.think is not False and bool(last)
    thought = {"thinking": "They want an answer."} if thinks else {}
    said = (
        {"message": {"role": "assistant", "content": text, **thought}} if asked.chat else {"response": text, **thought}
    )
    return {"model": asked.model, "created_at": _AT, **said, "done": bool(last), **last}


class Dropped(Response):
    """Sends half of an answer, and leaves: the server closes the connection."""

    def __init__(self, answer: Response) -> None:
        super().__init__(b"x" * 64, media_type=answer.media_type)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": b'{"model":', "more_body": True})


async def _gone(request: Request, stage: Stage, seconds: float) -> bool:
    """Whether the caller hangs up, or this process stops, before that."""
    waits = {asyncio.create_task(_disconnected(request)), asyncio.create_task(stage.closing.wait())}
    done, pending = await asyncio.wait(
        waits, timeout=None if math.isinf(seconds) else seconds, return_when=asyncio.FIRST_COMPLETED
    )
    for task in pending:
        task.cancel()
    return bool(done)


async def _disconnected(request: Request) -> bool:
    while (await request.receive())["type"] != "http.disconnect":
        pass
    return True


# ── about the models ──────────────────────────────────────────────────────────────────────────────────────────────


def _card(name: str) -> dict[str, Any]:
    tagged, digest = f"{name}:latest", f"{zlib.crc32(name.encode()):064x}"
    return {"name": tagged, "model": tagged, "size": 1, "digest": digest, "details": _details(name)}


def _details(name: str) -> dict[str, Any]:
    size = {"parameter_size": "0", "quantization_level": "F32"}
    return {"parent_model": "", "format": "scripted", "family": name, "families": [name], **size}


async def tags(request: Request) -> Response:
    return JSONResponse({"models": [_card(name) | {"modified_at": _AT} for name in _names(request)]})


async def running(request: Request) -> Response:
    loaded = {"expires_at": "2318-01-01T00:00:00Z", "size_vram": 0}
    return JSONResponse({"models": [_card(name) | loaded for name in _names(request)]})


async def show(request: Request) -> Response:
    chosen = _stage(request).chosen
    name = _model(await _body(request), chosen)
    if name == chosen.embedding_model:
        can, sizes = ["embedding"], {"scripted.embedding_length": chosen.dims, "scripted.context_length": 512}
    else:
        can = ["completion", *(["thinking"] if name.endswith(THINKS) else [])]
        sizes = {"scripted.context_length": chosen.context}
    about = {"modelfile": f"FROM {name}", "parameters": "", "template": "", "license": "", "modified_at": _AT}
    info = {"general.architecture": "scripted", **sizes}
    return JSONResponse({**about, "details": _details(name), "model_info": info, "capabilities": can})


async def pull(request: Request) -> Response:
    body = await _body(request)
    _model(body, _stage(request).chosen)
    return JSONResponse({"status": "success"})


def _names(request: Request) -> tuple[str, ...]:
    chosen = _stage(request).chosen
    return chosen.embedding_model, *chosen.chat_models


def _model(body: dict[str, Any], chosen: Chosen) -> str:
    """The name without its tag. Raises `Refused` as Ollama does for a model that is not there."""
    given = body.get("model") or body.get("name")
    if not isinstance(given, str):
        raise Refused(400, "model is required")
    name = given.removesuffix(":latest")
    if name not in (chosen.embedding_model, *chosen.chat_models):
        raise Refused(404, f'model "{given}" not found, try pulling it first')
    body["model"] = given
    return name


# ── the control side ──────────────────────────────────────────────────────────────────────────────────────────────


async def script(request: Request) -> Response:
    stage = _stage(request)
    if request.method == "POST":
        stage.script = _steps(await _body(request), "next")
    elif request.method == "DELETE":
        stage.script = []
    return JSONResponse({"next": [step.model_dump(mode="json") for step in stage.script]})


async def rules(request: Request) -> Response:
    stage = _stage(request)
    stage.rules = _steps(await _body(request), "rules") if request.method == "POST" else []
    return JSONResponse({"rules": [step.model_dump(mode="json") for step in stage.rules]})


async def log(request: Request) -> Response:
    stage = _stage(request)
    if request.method == "DELETE":
        stage.forget()
    return JSONResponse({"chats": [heard.model_dump(mode="json") for heard in stage.heard]})


def _steps(body: dict[str, Any], name: str) -> list[Step]:
    given = body.get(name)
    if not isinstance(given, list) or len(given) > KEPT:
        raise Refused(400, f"{name} must be a list of at most {KEPT} steps")
    try:
        return [Step.model_validate(step) for step in given]
    except ValidationError as error:
        raise Refused(400, f"no such step: {error}") from error


# ── the server ────────────────────────────────────────────────────────────────────────────────────────────────────


async def _body(request: Request) -> dict[str, Any]:
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


def _stage(request: Request) -> Stage:
    stage = request.app.state.stage
    assert isinstance(stage, Stage)
    return stage


async def _refused(_: Request, refused: Exception) -> Response:
    assert isinstance(refused, Refused)
    return JSONResponse({"error": refused.text}, refused.status)


async def _bad(_: Request, trouble: Exception) -> Response:
    return JSONResponse({"error": f"{type(trouble).__name__}: {trouble}"}, 400)


async def _alive(_: Request) -> Response:
    return PlainTextResponse("Ollama is running")


async def _version(_: Request) -> Response:
    return JSONResponse({"version": VERSION})


def create_app(chosen: Chosen) -> Starlette:
    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        app.state.stage = Stage(chosen)
        yield

    post = ["POST"]
    routes = [
        Route("/", _alive),
        Route("/api/version", _version),
        Route("/api/tags", tags),
        Route("/api/ps", running),
        Route("/api/show", show, methods=post),
        Route("/api/embed", embed, methods=post),
        Route("/api/embeddings", embed_legacy, methods=post),
        Route("/api/chat", chat, methods=post),
        Route("/api/generate", generate, methods=post),
        Route("/api/pull", pull, methods=post),
        Route("/simulate/script", script, methods=["GET", "POST", "DELETE"]),
        Route("/simulate/rules", rules, methods=["POST", "DELETE"]),
        Route("/simulate/log", log, methods=["GET", "DELETE"]),
    ]
    handlers: dict[Any, Any] = {Refused: _refused, **dict.fromkeys((ValueError, KeyError, TypeError), _bad)}
    return Starlette(routes=routes, lifespan=lifespan, exception_handlers=handlers)


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, app: Starlette) -> None:
        super().__init__(config)
        self._app = app

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._app.state.stage.closing.set()
        await super().shutdown(sockets)


def main(argv: Sequence[str] | None = None) -> None:
    default = Chosen()
    parser = argparse.ArgumentParser(prog="python -m mesh.testing.model", description="The scripted model server.")
    parser.add_argument("--port", type=int, default=9011, help="0 picks a free one")
    parser.add_argument("--embedding-model", default=default.embedding_model)
    parser.add_argument("--dims", type=int, default=default.dims)
    parser.add_argument("--chat-model", default=default.chat_model, help=f"there is a second one, NAME{THINKS}")
    parser.add_argument(
        "--context", type=int, default=default.context, help="the chat models' longest window, in tokens"
    )
    given = parser.parse_args(argv)
    chosen = Chosen(given.embedding_model, given.dims, given.chat_model, given.context)
    with socket.create_server(("127.0.0.1", given.port), backlog=1024) as listener:
        print(f"scripted model: http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
        app = create_app(chosen)
        config = uvicorn.Config(app, log_level="critical", ws="none", timeout_graceful_shutdown=1)
        _Server(config, app).run(sockets=[listener])


if __name__ == "__main__":
    main()
