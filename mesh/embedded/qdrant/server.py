"""The routes. The loop only reads and writes sockets: parsing, the engine and rendering happen in threads."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from mesh.embedded.qdrant.fields import Refused, parse
from mesh.embedded.qdrant.handlers import HANDLERS, Handler, retrieve_one
from mesh.embedded.qdrant.schema import schema_of
from mesh.embedded.qdrant.store import Store
from mesh.embedded.qdrant.upkeep import Upkeep

log = logging.getLogger(__name__)

VERSION = "1.20.0"
"""Of Qdrant's REST form, for the client's check that it fits."""
MAX_BODY_BYTES = 32 * 1024 * 1024
THREADS = 4

Work = Callable[[Store, object], object]
Endpoint = Callable[[Request], Awaitable[Response]]


def app(root: Path, optimize_after: int) -> Starlette:
    store = Store(root)
    threads = ThreadPoolExecutor(THREADS, "engine")
    upkeep_threads = ThreadPoolExecutor(2, "upkeep")
    routes = Routes(store, threads)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()
        upkeep = Upkeep(store, lambda work: loop.run_in_executor(upkeep_threads, work), optimize_after)
        running = asyncio.create_task(upkeep.run())
        yield
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await upkeep.stop()
        store.close()

    return Starlette(routes=routes.all(), lifespan=lifespan, exception_handlers={404: _no_route, 405: _no_route})


class Routes:
    def __init__(self, store: Store, threads: ThreadPoolExecutor) -> None:
        self._store = store
        self._threads = threads

    def all(self) -> list[Route]:
        one = "/collections/{name}"
        return [
            Route("/", _welcome),
            *(Route(path, _healthy) for path in ("/healthz", "/readyz", "/livez")),
            Route("/aliases", self._endpoint(lambda _, __: {"aliases": []})),
            Route("/collections", self._endpoint(_list)),
            Route(f"{one}/exists", self._named(lambda store, name, _: {"exists": name in store.names()})),
            Route(one, self._named(_create), methods=["PUT"]),
            Route(one, self._named(lambda store, name, _: store.drop(name)), methods=["DELETE"]),
            Route(f"{one}/index/{{field:path}}", self._delete_index, methods=["DELETE"]),
            *(Route(f"{one}{path}", self._on(run), methods=[verb]) for (verb, path), run in HANDLERS.items()),
            Route(f"{one}/points/{{point}}", self._retrieve_one),
        ]

    def _on(self, handler: Handler) -> Endpoint:
        return self._named(lambda store, name, body: handler(store.get(name), body))

    def _named(self, work: Callable[[Store, str, object], object]) -> Endpoint:
        async def endpoint(request: Request) -> Response:
            name = request.path_params["name"]
            return await self._answer(request, lambda store, body: work(store, name, body))

        return endpoint

    def _endpoint(self, work: Work) -> Endpoint:
        async def endpoint(request: Request) -> Response:
            return await self._answer(request, work)

        return endpoint

    async def _delete_index(self, request: Request) -> Response:
        name, field = request.path_params["name"], request.path_params["field"]

        def work(store: Store, _: object) -> object:
            return {"operation_id": store.get(name).delete_index(field), "status": "completed"}

        return await self._answer(request, work)

    async def _retrieve_one(self, request: Request) -> Response:
        name, point = request.path_params["name"], request.path_params["point"]
        return await self._answer(request, lambda store, _: retrieve_one(store.get(name), point))

    async def _answer(self, request: Request, work: Work) -> Response:
        began = time.perf_counter()
        body = await _body(request)
        if body is None:
            return _rendered(413, {"error": f"JSON payload is larger than allowed ({MAX_BODY_BYTES} bytes)"}, began)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, lambda: self._work(work, body, began))

    def _work(self, work: Work, body: bytes, began: float) -> Response:
        try:
            return _rendered(200, "ok", began, work(self._store, parse(body)))
        except BaseException as error:  # the engine's panics are no Exceptions; see _refusal
            refused = _refusal(error)
            return _rendered(refused.status, {"error": refused.text}, began)


def _refusal(error: BaseException) -> Refused:
    """The engine raises bare exceptions; its panics are not even those."""
    if isinstance(error, Refused):
        return error
    text = str(error).split("\n")[0]
    if type(error).__name__ == "PanicException" or text.startswith("Service runtime error"):
        log.error("! the engine failed: %s", text)
        return Refused(500, f"Service internal error: {text}")
    if text.startswith("No point with id"):
        return Refused(404, f"Not found: {text}")
    if type(error) is Exception or isinstance(error, ValueError | TypeError | OverflowError | RecursionError):
        return Refused(400, f"Wrong input: {text}")
    log.error("! a request failed", exc_info=error)
    return Refused(500, f"Service internal error: {type(error).__name__}")


async def _body(request: Request) -> bytes | None:
    """None when it is too large."""
    chunks, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > MAX_BODY_BYTES:
            return None
        chunks.append(chunk)
    return b"".join(chunks)


def _rendered(code: int, status: object, began: float, result: object = None) -> Response:
    answer = {"status": status, "time": time.perf_counter() - began}
    if status == "ok":
        answer["result"] = result
    text = json.dumps(answer, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Response(text.encode("utf-8", "replace"), code, media_type="application/json")


def _list(store: Store, _: object) -> object:
    return {"collections": [{"name": name} for name in store.names()]}


def _create(store: Store, name: str, body: object) -> object:
    store.create(name, schema_of(body))
    return True


async def _welcome(_: Request) -> Response:
    about = {"title": "qdrant - vector search engine (embedded)", "version": VERSION, "commit": ""}
    return Response(json.dumps(about), media_type="application/json")


async def _healthy(_: Request) -> Response:
    return PlainTextResponse("healthz check passed")


async def _no_route(request: Request, error: Exception) -> Response:
    text = f"{request.method} {request.url.path} is not supported by the embedded Qdrant"
    return _rendered(404, {"error": f"Not found: {text}"}, time.perf_counter())
