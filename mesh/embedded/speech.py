"""A server that writes down what is said: `python -m mesh.embedded.speech --port N --data FOLDER`, loopback only.

It speaks OpenAI's HTTP form with one model, Whisper base, which finds the language by itself and is loaded by the first
voice note, in a second: until somebody speaks, the process is small. Notes are written down one at a time, each with
all the cores. A file is decoded in a process of its own (`sound`), and what has no speech in it never reaches the
model, which would make words up.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Protocol

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from mesh.embedded.sound import NoSound, TooMuch, decode
from mesh.embedded.whisper import MODEL, Whisper, Written

log = logging.getLogger(__name__)

MAX_FILE_BYTES = 16 * 1024 * 1024
MAX_FORM_BYTES = MAX_FILE_BYTES + 64 * 1024
READ_WITHIN_S = 30.0
MAX_WAITING = 16
DECODERS = 2
LONGEST_S = 120.0


class Refused(Exception):
    """An answer in OpenAI's error form."""

    def __init__(self, status: int, code: str, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.code = code
        self.text = text


class Listener(Protocol):
    def write_down(self, samples: bytes, gone: threading.Event) -> Written: ...


# ── the line in front of it ───────────────────────────────────────────────────────────────────────────────────────


class Line:
    """One note at a time, in the order in which they came. Raises `Refused`."""

    def __init__(self, listener: Listener, longest_s: float) -> None:
        self._listener = listener
        self._longest_s = longest_s
        self._thread = ThreadPoolExecutor(1, "listening")
        self._turn = asyncio.Lock()
        self._decoders = asyncio.Semaphore(DECODERS)
        self._waiting = 0

    @contextmanager
    def place(self) -> Iterator[None]:
        if self._waiting >= MAX_WAITING:
            raise Refused(503, "server_busy", f"{self._waiting} files wait already; please try again.")
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1

    async def write_down(self, raw: bytes) -> Written:
        began = time.perf_counter()
        async with self._decoders:
            samples = await self._decoded(raw)
        async with self._turn:
            written = await self._written(samples)
        log.info(
            "← seconds=%.1f language=%s segments=%d took_ms=%d",
            written.duration,
            written.language or "-",
            len(written.segments),
            (time.perf_counter() - began) * 1000,
        )
        return written

    async def _decoded(self, raw: bytes) -> bytes:
        try:
            return await decode(raw, longest_s=self._longest_s)
        except TooMuch as error:
            raise Refused(413, "audio_too_long", f"It lasts longer than {self._longest_s:g} seconds.") from error
        except NoSound as error:
            log.info("· refused bytes=%d: %s", len(raw), error)
            raise Refused(400, "invalid_audio", "It is no sound that can be played, or it is broken.") from error

    async def _written(self, samples: bytes) -> Written:
        gone = threading.Event()
        work = asyncio.get_running_loop().run_in_executor(self._thread, self._listener.write_down, samples, gone)
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            gone.set()
            with suppress(Exception):
                await work  # the next one begins when the thread is free
            raise
        except (OSError, ValueError, ImportError, RuntimeError) as error:
            log.exception("! it could not be written down")
            raise Refused(503, "server_error", f"The model can't be used: {type(error).__name__}.") from error


# ── the HTTP form ─────────────────────────────────────────────────────────────────────────────────────────────────


class Form(MultiPartParser):
    spool_max_size = MAX_FORM_BYTES  # in memory: what people say is never written to a disk


class Routes:
    def __init__(self, line: Line) -> None:
        self._line = line

    def all(self) -> list[Route]:
        return [
            Route("/healthz", _alive),
            Route("/v1/models", _models),
            Route("/v1/audio/transcriptions", _answering(self._transcribe), methods=["POST"]),
        ]

    async def _transcribe(self, request: Request) -> Response:
        with self._line.place():
            return await self._transcribed(request)

    async def _transcribed(self, request: Request) -> Response:
        raw, fields = await _form(request)
        if fields.get("model") != MODEL:
            raise Refused(404, "model_not_found", f"The model {fields.get('model')!r} is not here; {MODEL} is.")
        wanted = fields.get("response_format", "json")
        if wanted not in ("json", "verbose_json", "text"):
            raise Refused(400, "invalid_request", "response_format must be json, verbose_json or text.")
        written = await _while_connected(request, self._line.write_down(raw))
        if wanted == "text":
            return PlainTextResponse(written.text)
        if wanted == "json":
            return JSONResponse({"text": written.text})
        return JSONResponse({"task": "transcribe", **asdict(written), "text": written.text})


async def _while_connected(request: Request, work: Awaitable[Written]) -> Written:
    task = asyncio.ensure_future(work)
    watch = asyncio.create_task(_gone(request))
    try:
        await asyncio.wait({task, watch}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise Refused(499, "client_gone", "Nobody waits for the answer any more.")
        return task.result()
    finally:
        watch.cancel()
        task.cancel()
        await asyncio.gather(task, watch, return_exceptions=True)


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _form(request: Request) -> tuple[bytes, dict[str, str]]:
    body = await _body(request)

    async def once() -> AsyncGenerator[bytes, None]:
        yield body
        yield b""

    if not request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
        raise Refused(415, "invalid_request", "Send multipart/form-data with the fields file and model.")
    try:
        form = await Form(request.headers, once(), max_files=1, max_fields=16, max_part_size=4096).parse()
    except (MultiPartException, KeyError, ValueError) as error:
        raise Refused(400, "invalid_request", "The form can't be read.") from error
    try:
        file = form.get("file")
        if not isinstance(file, UploadFile):
            raise Refused(400, "invalid_request", "The field file is missing.")
        return await file.read(), {name: value for name, value in form.multi_items() if isinstance(value, str)}
    finally:
        await form.close()


async def _body(request: Request) -> bytes:
    too_large = Refused(413, "file_too_large", f"The file is larger than {MAX_FILE_BYTES} bytes.")
    length = request.headers.get("content-length", "0")
    if length.isdecimal() and int(length) > MAX_FORM_BYTES:
        raise too_large
    body = bytearray()
    try:
        async with asyncio.timeout(READ_WITHIN_S):
            async for chunk in request.stream():
                body += chunk
                if len(body) > MAX_FORM_BYTES:
                    raise too_large
    except TimeoutError as error:
        raise Refused(408, "too_slow", f"The file did not come in {READ_WITHIN_S:g} s.") from error
    return bytes(body)


def _answering(work: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        try:
            return await work(request)
        except Refused as refused:
            kind = "invalid_request_error" if refused.status < 500 else "server_error"
            said = {"message": refused.text, "type": kind, "code": refused.code}
            return JSONResponse({"error": said}, refused.status)

    return endpoint


async def _alive(_: Request) -> Response:
    return PlainTextResponse("alive\n")


async def _models(_: Request) -> Response:
    return JSONResponse({"object": "list", "data": [{"id": MODEL, "object": "model", "owned_by": "openai"}]})


def app(listener: Listener, longest_s: float = LONGEST_S) -> Starlette:
    return Starlette(routes=Routes(Line(listener, longest_s)).all())


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m mesh.embedded.speech", description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--data", type=Path, required=True, help="where the weights are put together")
    parser.add_argument("--seconds", type=float, default=LONGEST_S, help="the longest sound that is listened to")
    chosen = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)-7s speech %(message)s")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # faster-whisper would fetch a model that it does not find
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))  # uvicorn puts this back, and raises the signal again
    uvicorn.run(
        app(Whisper(chosen.data), chosen.seconds),
        host="127.0.0.1",
        port=chosen.port,
        log_level="warning",
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=1,
    )


if __name__ == "__main__":
    main()
