"""The simulated Meta: its Cloud API, its signed webhooks, and the control side of the simulated Twilio
(`mesh.testing.control`), whose words it understands: `mesh.testing.phone.Phone` drives it. A process of its own:

    python -m mesh.testing.meta --port 9011 --webhook http://127.0.0.1:8080/whatsapp/meta

It prints its address when it listens; what the mesh needs as META_API_BASE is that with `/v25.0`. A webhook that fails
is sent again as often as the rules say, which is not at all unless they do.
"""

from __future__ import annotations

import argparse
import contextlib
import hmac
import json
import secrets
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from mesh.adapters.twilio_signature import address
from mesh.pages import guard
from mesh.testing import control
from mesh.testing.manners import HANG_SECONDS, exchange_of, hang
from mesh.testing.media import Store, given, seen, store_of
from mesh.testing.messages import Account
from mesh.testing.meta_bodies import CODES, MetaExchange
from mesh.testing.twilio import Server, bad

BODY_LIMIT, CAPTION_LIMIT = 4096, 1024
FILES = ("image", "document", "audio", "video")
KINDS = ("text", "template", *FILES)
_REFUSALS = {"throttle": (429, 130429), "fail": (503, 131016), "refuse": (400, 131026), "hang": (0, 0)}
"""Status and code of a message that is not taken."""


def meta_of(request: Request) -> MetaExchange:
    exchange = exchange_of(request)
    assert isinstance(exchange, MetaExchange)
    return exchange


def error(status: int, code: int, text: str = "It failed", headers: Mapping[str, str] | None = None) -> JSONResponse:
    whole = {"message": f"(#{code}) {text}", "type": "OAuthException", "code": code, "fbtrace_id": secrets.token_hex(6)}
    return JSONResponse({"error": whole}, status, headers=headers)


def stranger(request: Request) -> JSONResponse | None:
    expected = f"Bearer {meta_of(request).access_token}"
    if hmac.compare_digest(request.headers.get("authorization", "").encode(), expected.encode()):
        return None
    return error(401, 190, "Invalid OAuth access token")


# ── messages ──────────────────────────────────────────────────────────────────────────────────────────────────────


async def messages(request: Request) -> Response:
    exchange = meta_of(request)
    if trouble := stranger(request):
        return trouble
    if request.path_params["number"] != exchange.account.sid:
        return error(400, 33, "There is no such phone number id")
    asked = await request.json()
    if asked.get("status") == "read":
        typed = await exchange.type(str(asked.get("message_id", "")))
        return JSONResponse({"success": True}) if typed else error(400, 131009, "There is no such message")
    if trouble := _unfit(asked, exchange):
        return trouble
    return await _take(request, exchange, asked)


async def _take(request: Request, exchange: MetaExchange, asked: dict[str, Any]) -> Response:
    to, kind = address(asked.get("to") or asked["recipient"]), asked["type"]
    template = exchange.templates.get(asked["template"]["name"]) if kind == "template" else None
    status, code = exchange.refusal(to, template=template is not None)
    if code:
        exchange.refuse(to, status, code)
        return error(status, CODES.get(code, code))
    step = exchange.script.popleft() if exchange.script else {"do": "accept"}
    doing = step["do"]
    if doing in _REFUSALS:
        status, code = _REFUSALS[doing]
        status, code = int(step.get("status", status)), int(step.get("code", code))
        exchange.refuse(to, status, code)
        if doing == "hang":
            await hang(request, float(step.get("seconds", HANG_SECONDS)))
        wait = {"Retry-After": str(step.get("retry_after", 1))} if doing == "throttle" else None
        return error(status or 503, CODES.get(code, code), headers=wait)
    text, failure = _text(asked, kind), 0
    if template:
        text, failure = template.filled(_variables(asked["template"]))
    answer = {"accept_then_hang": "hung", "accept_then_fail": "failed"}.get(doing, "success")
    link = asked[kind]["link"] if kind in FILES else ""
    webhook = exchange.account.webhook
    message = await exchange.send(to, text, webhook, answer, link=link, template=template, failure=failure)
    message.form = {"echo": str(asked.get("biz_opaque_callback_data", ""))}
    if doing == "accept_then_hang":
        await hang(request, float(step.get("seconds", HANG_SECONDS)))
    if doing == "accept_then_fail":
        return error(int(step.get("status", 503)), 131016)
    who = asked.get("to") or asked["recipient"]
    taken = {"contacts": [{"input": who, "wa_id": who.lstrip("+")}], "messages": [{"id": message.sid}]}
    return JSONResponse({"messaging_product": "whatsapp", **taken})


def _unfit(asked: Mapping[str, Any], exchange: MetaExchange) -> JSONResponse | None:
    kind = asked.get("type")
    if asked.get("messaging_product") != "whatsapp" or kind not in KINDS or not isinstance(asked.get(kind), dict):
        return error(400, 100, "Invalid parameter")
    if not (asked.get("to") or asked.get("recipient")):
        return error(400, 131008, "to is missing")
    if asked.get("to") and not asked["to"].lstrip("+").isdecimal():
        return error(400, 131009, "to is no number")  # Meta itself says nothing, and drops the message
    text = _text(asked, kind)
    if kind == "text" and not text:
        return error(400, 100, "text['body'] is required")
    if len(text) > (BODY_LIMIT if kind == "text" else CAPTION_LIMIT):
        return error(400, 100, "the text is too long")
    if kind == "template" and asked["template"].get("name") not in exchange.templates:
        return error(404, 132001, "There is no such template")
    return None


def _text(asked: Mapping[str, Any], kind: str) -> str:
    return str(asked[kind].get("body" if kind == "text" else "caption") or "")


def _variables(template: Mapping[str, Any]) -> dict[str, str]:
    bodies = (each["parameters"] for each in template.get("components", ()) if each["type"] == "body")
    return {str(number): each["text"] for number, each in enumerate(next(bodies, ()), 1)}


# ── files ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def upload(request: Request) -> Response:
    if trouble := stranger(request):
        return trouble
    async with request.form() as form:
        file = form.get("file")
        if not isinstance(file, UploadFile):
            return error(400, 100, "file is required")
        kind = str(form.get("type") or file.content_type or "")
        medium = meta_of(request).files.put("", file.filename or "file", kind, await file.read())
    return JSONResponse({"id": medium.sid})


async def node(request: Request) -> Response:
    """A file by its id: where its bytes are; or the phone number."""
    exchange, sid = meta_of(request), request.path_params["node"]
    if trouble := stranger(request):
        return trouble
    if sid == exchange.account.sid:
        number = exchange.account.number
        return JSONResponse({"id": sid, "display_phone_number": number, "verified_name": "A hotel"})
    store, found = store_of(request), exchange.files.get(sid)
    step = store.steps.popleft() if store.steps else {"do": "answer"}
    if step["do"] == "hang":
        await hang(request, float(step.get("seconds", HANG_SECONDS)))
    if found is None or step["do"] == "missing":
        return seen(request, "api", sid, error(400, 100, "Object does not exist"), step["do"])
    if step["do"] in ("fail", "throttle", "hang"):
        status, code = _REFUSALS["fail" if step["do"] == "hang" else step["do"]]
        return seen(request, "api", sid, error(int(step.get("status", status)), code), step["do"])
    url = str(step.get("to") or store.link(sid, step))
    told = {"id": sid, "url": url, "mime_type": found[0].media_type, "file_size": found[0].size, "sha256": ""}
    return seen(request, "api", sid, JSONResponse({"messaging_product": "whatsapp", **told}), step["do"])


async def cdn(request: Request) -> Response:
    """As `lookaside.fbsbx.com`: it wants the token, too."""
    sid, step = store_of(request).links.get(request.path_params["key"], ("", {"do": "answer"}))
    found = meta_of(request).files.get(sid)
    answer: Response | None = stranger(request)
    if answer is None:
        answer = given(request, *found, step) if found else PlainTextResponse("Not found\n", 404)
    return seen(request, "cdn", sid, answer, step["do"])


# ── the control side ──────────────────────────────────────────────────────────────────────────────────────────────


async def challenge(request: Request) -> Response:
    """Asks the webhook, as Meta does when its address is configured. `verify_token` is the one that it is told."""
    asked = await request.json()
    word = secrets.token_hex(8)
    query = {"hub.mode": "subscribe", "hub.verify_token": asked["verify_token"], "hub.challenge": word}
    async with httpx.AsyncClient(trust_env=False, verify=False) as client:
        answer = await client.get(meta_of(request).account.webhook, params=query)
    return JSONResponse({"status": answer.status_code, "echoed": answer.text == word})


def create_app(account: Account, access_token: str, store: Store, host: str = "") -> Starlette:
    """`host`: the address that it listens on."""

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        app.state.exchange, app.state.store = MetaExchange(account, access_token), store
        try:
            yield
        finally:
            await app.state.exchange.close()

    async def alive(request: Request) -> Response:
        return PlainTextResponse("alive\n")

    routes = [
        Route("/healthz", alive),
        *control.routes(),
        Route("/simulate/challenge", challenge, methods=["POST"]),
        Route("/cdn/{key}", cdn),
        Route("/{version}/{number}/messages", messages, methods=["POST"]),
        Route("/{version}/{number}/media", upload, methods=["POST"]),
        Route("/{version}/{node}", node),
    ]
    troubles = dict.fromkeys((ValueError, KeyError, TypeError, AttributeError, json.JSONDecodeError), bad)
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers=troubles)
    guard(app, host)
    return app


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m mesh.testing.meta", description="The simulated Meta.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=9011, help="0 picks a free one")
    parser.add_argument("--webhook", required=True, help="where messages and statuses are posted")
    parser.add_argument("--phone-number-id", default="106540352242922")
    parser.add_argument("--access-token", default="simulated")
    parser.add_argument("--app-secret", default="simulated")
    parser.add_argument("--number", default="+15550783881")
    chosen = parser.parse_args(argv)
    account = Account(chosen.phone_number_id, chosen.app_secret, chosen.number, chosen.webhook)
    with socket.create_server((chosen.host, chosen.port), backlog=1024) as listener:
        base = f"http://{chosen.host}:{listener.getsockname()[1]}"
        print(f"simulated Meta: {base}", flush=True)
        app = create_app(account, chosen.access_token, Store(base, base), chosen.host)
        config = uvicorn.Config(app, log_level="error", ws="none", timeout_graceful_shutdown=1)
        Server(config, app).run(sockets=[listener])


if __name__ == "__main__":
    main()
