"""The simulated Twilio: its REST form, its signed webhooks, and a control side (`mesh.testing.control`). A process of
its own:

    python -m mesh.testing.twilio --port 9010 --webhook http://127.0.0.1:8080/whatsapp/twilio

It prints its address when it listens (`--port 0` picks one), keeps the newest 50,000 messages and 256 MB of files in
memory, and is driven by `mesh.testing.phone.Phone`, or by hand on the chat page at its address. As with Twilio, a
webhook that fails is not sent again, unless told to, and its message stays in the list.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from mesh.pages import guard
from mesh.testing import chat_page, control, media, rest
from mesh.testing.exchange import Exchange
from mesh.testing.manners import exchange_of
from mesh.testing.messages import Account
from mesh.testing.rules import Template, templates


async def bad(request: Request, trouble: Exception) -> Response:
    return JSONResponse({"error": f"{type(trouble).__name__}: {trouble}"}, 400)


def create_app(
    account: Account, store: media.Store, host: str = "", known: Mapping[str, Template] | None = None
) -> Starlette:
    """`host`: the address that it listens on; `*`: it is served under any name. `known`: templates by their sid."""

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        app.state.exchange, app.state.store = Exchange(account, known), store
        try:
            yield
        finally:
            await app.state.exchange.close()

    async def alive(request: Request) -> Response:
        return PlainTextResponse("alive\n")

    routes = [
        Route("/healthz", alive),
        *rest.routes(),
        *media.routes(),
        *control.routes(),
        *chat_page.routes(exchange_of),
    ]
    troubles = dict.fromkeys((ValueError, KeyError, TypeError, AttributeError, json.JSONDecodeError), bad)
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers=troubles)
    guard(app, host)
    return app


class Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, app: Starlette) -> None:
        super().__init__(config)
        self._app = app

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self._app.state.exchange.stop_waiting()
        await super().shutdown(sockets)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m mesh.testing.twilio", description="The simulated Twilio.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=9010, help="0 picks a free one")
    parser.add_argument("--webhook", required=True, help="where a person's messages are posted, and what is signed")
    parser.add_argument("--status-url", default="", help="for messages that name no StatusCallback")
    parser.add_argument("--account-sid", default="AC" + "0" * 32)
    parser.add_argument("--auth-token", default="simulated")
    parser.add_argument("--number", default="+14155238886")
    parser.add_argument("--template", type=Path, help="JSON: template sid → text with {{1}}")
    parser.add_argument("--api-base", default="", help="as the mesh knows it; the start of a file's address")
    parser.add_argument("--cdn-base", default="", help="where a file's address leads to; by default on localhost")
    chosen = parser.parse_args(argv)
    known = templates(json.loads(chosen.template.read_text("utf-8"))) if chosen.template else {}
    account = Account(chosen.account_sid, chosen.auth_token, chosen.number, chosen.webhook, chosen.status_url)
    with socket.create_server((chosen.host, chosen.port), backlog=1024) as listener:
        port = listener.getsockname()[1]
        print(f"simulated Twilio: http://{chosen.host}:{port}", flush=True)
        open_to_all = chosen.host == "0.0.0.0"  # noqa: S104 - compared with
        base = chosen.api_base or f"http://{'127.0.0.1' if open_to_all else chosen.host}:{port}"
        store = media.Store(base.rstrip("/"), (chosen.cdn_base or f"http://localhost:{port}").rstrip("/"))
        app = create_app(account, store, "*" if open_to_all else chosen.host, known)
        config = uvicorn.Config(app, log_level="error", ws="none", timeout_graceful_shutdown=1)
        Server(config, app).run(sockets=[listener])


if __name__ == "__main__":
    main()
