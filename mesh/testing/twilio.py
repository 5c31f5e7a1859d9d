"""The simulated Twilio: its REST form, its signed webhooks, and a control side (`mesh.testing.control`). A process of
its own:

    python -m mesh.testing.twilio --port 9010 --webhook http://127.0.0.1:8080/whatsapp/twilio

It prints its address when it listens (`--port 0` picks one), keeps the newest 50,000 messages in memory, and is driven
by `mesh.testing.phone.Phone`, or by hand on the chat page at its address. As with Twilio, a webhook that fails is not
sent again, and its message stays in the list.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import hmac
import json
import socket
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from itertools import islice
from typing import Any
from urllib.parse import parse_qsl, urlencode

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from mesh.adapters.twilio_signature import identity
from mesh.errors import Malformed
from mesh.pages import guard
from mesh.testing import chat_page, control
from mesh.testing.control import exchange_of
from mesh.testing.exchange import VERSION, Account, Exchange, Message

BODY_LIMIT = 1600
HANG_SECONDS = 600.0

_REFUSALS = {"throttle": (429, 20429), "fail": (503, 20500), "refuse": (400, 63024), "hang": (0, 0)}
"""Status and code of a message that is not taken."""
_TEXTS = {
    20003: "Authenticate",
    20429: "Too Many Requests",
    21602: "Message body is required.",
    21603: "A 'From' phone number is required.",
    21604: "A 'To' phone number is required.",
    21617: "The concatenated message body exceeds the 1600 character limit.",
    21910: "Invalid 'From' and 'To' pair. 'From' and 'To' should be of the same channel",
    63007: "Twilio could not find a Channel with the specified From address",
    63024: "Invalid message recipient",
}


# ── Twilio's REST form ────────────────────────────────────────────────────────────────────────────────────────────


def _error(status: int, code: int, text: str = "", headers: Mapping[str, str] | None = None) -> JSONResponse:
    message = text or _TEXTS.get(code, "The request failed")
    more = f"https://www.twilio.com/docs/errors/{code}"
    body = {"code": code, "message": message, "more_info": more, "status": status}
    return JSONResponse(body, status, headers=headers)


def _not_found(request: Request) -> JSONResponse:
    return _error(404, 20404, f"The requested resource {request.url.path} was not found")


def _stranger(request: Request) -> JSONResponse | None:
    account = exchange_of(request).account
    expected = "Basic " + base64.b64encode(f"{account.sid}:{account.token}".encode()).decode()
    given = request.headers.get("authorization", "")
    if request.path_params.get("account", account.sid) == account.sid and hmac.compare_digest(
        given.encode(), expected.encode()
    ):
        return None
    return _error(401, 20003, headers={"WWW-Authenticate": 'Basic realm="Twilio API"'})


async def create_message(request: Request) -> Response:
    exchange = exchange_of(request)
    form = dict(parse_qsl((await request.body()).decode(), keep_blank_values=True))
    trouble = _stranger(request) or _unfit(form, exchange.account)
    if trouble:
        return trouble
    step = exchange.script.popleft() if exchange.script else {"do": "accept"}
    doing = step["do"]
    if doing in _REFUSALS:
        status, code = _REFUSALS[doing]
        exchange.refuse(form["To"], int(step.get("status", status)), int(step.get("code", code)))
        return await _misbehave(request, step)
    outcome = {"accept_then_hang": "hung", "accept_then_fail": "failed"}.get(doing, "success")
    message = await exchange.send(form["To"], form["Body"], form.get("StatusCallback", ""), outcome)
    if doing == "accept_then_hang":
        await _hang(request, float(step.get("seconds", HANG_SECONDS)))
    if doing == "accept_then_fail":
        return await _misbehave(request, {**step, "do": "fail"})
    return JSONResponse(message.resource(exchange.account.sid), 201)


async def _misbehave(request: Request, step: Mapping[str, Any]) -> Response:
    match step["do"]:
        case "throttle":
            return _error(429, 20429, headers={"Retry-After": str(step.get("retry_after", 1))})
        case "refuse":
            return _error(400, int(step.get("code", 63024)))
        case "hang":
            await _hang(request, float(step.get("seconds", HANG_SECONDS)))
    return _error(int(step.get("status", 503)), 20500, "Service unavailable")


def _unfit(form: Mapping[str, str], account: Account) -> JSONResponse | None:
    for name, code in (("To", 21604), ("From", 21603), ("Body", 21602)):
        if not form.get(name):
            return _error(400, code)
    if form["From"] != f"whatsapp:{account.number}":
        return _error(400, 63007)
    try:
        identity(form["To"])
    except Malformed:
        return _error(400, 21910)
    return _error(400, 21617) if len(form["Body"]) > BODY_LIMIT else None


async def _hang(request: Request, seconds: float) -> None:
    """Until then, or until the caller gives up, or this process stops."""
    waits = {asyncio.create_task(_gone(request)), asyncio.create_task(exchange_of(request).closing.wait())}
    _, pending = await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()


async def _gone(request: Request) -> bool:
    while (await request.receive())["type"] != "http.disconnect":
        pass
    return True


async def list_messages(request: Request) -> Response:
    """Newest first, by pages."""
    trouble = _stranger(request)
    if trouble:
        return trouble
    query, exchange = request.query_params, exchange_of(request)
    step = exchange.listing.steps.popleft() if exchange.listing.steps else {"do": "answer"}
    if step["do"] != "answer":
        return await _misbehave(request, step)
    size = min(max(int(query.get("PageSize", "50")), 1), 1000)
    page = max(int(query.get("Page", "0")), 0)
    fits = _filter(query)
    start = page * size
    found = [*islice((each for each in exchange.listed(query.get("To", "")) if fits(each)), start, start + size + 1)]
    shown, more = found[:size], len(found) > size

    def uri(number: int) -> str:
        kept = {name: value for name, value in query.items() if name not in ("Page", "PageSize", "PageToken")}
        token = {"PageToken": f"PA{number}"} if number else {}
        return f"{request.url.path}?{urlencode({**kept, 'PageSize': size, 'Page': number, **token})}"

    return JSONResponse(
        {
            "messages": [message.resource(exchange.account.sid) for message in shown],
            "page": page,
            "page_size": size,
            "start": start,
            "end": start + max(len(shown) - 1, 0),
            "uri": uri(page),
            "first_page_uri": uri(0),
            "next_page_uri": uri(page + 1) if more else None,
            "previous_page_uri": uri(page - 1) if page else None,
        }
    )


def _filter(query: Mapping[str, str]) -> Callable[[Message], bool]:
    """A message that is not sent yet has no date to be filtered by."""
    on, before, after = (query.get(name, "")[:10] for name in ("DateSent", "DateSent<", "DateSent>"))
    sender, dated = query.get("From", ""), bool(on or before or after)

    def fits(message: Message) -> bool:
        if sender and message.sender != sender:
            return False
        if not dated:
            return True
        day = message.sent.date().isoformat() if message.sent else ""
        return (not on or day == on) and (not before or "" < day <= before) and (not after or day >= after)

    return fits


async def fetch_message(request: Request) -> Response:
    trouble = _stranger(request)
    if trouble:
        return trouble
    exchange = exchange_of(request)
    message = exchange.message(request.path_params["sid"])
    return JSONResponse(message.resource(exchange.account.sid)) if message else _not_found(request)


async def type_indicator(request: Request) -> Response:
    """Its own host at Twilio: `messaging.twilio.com`."""
    form = dict(parse_qsl((await request.body()).decode(), keep_blank_values=True))
    if trouble := _stranger(request):
        return trouble
    if form.get("channel") != "whatsapp":
        return _error(400, 20001, "channel must be whatsapp")
    if not await exchange_of(request).type(form.get("messageId", "")):
        return _error(400, 20001, "messageId is not of a person's message")
    return JSONResponse({"success": True})


async def _bad(request: Request, trouble: Exception) -> Response:
    return JSONResponse({"error": f"{type(trouble).__name__}: {trouble}"}, 400)


def create_app(account: Account, host: str = "") -> Starlette:
    """`host`: the address that it listens on; `*`: it is served under any name."""

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        app.state.exchange = Exchange(account)
        try:
            yield
        finally:
            await app.state.exchange.close()

    async def alive(request: Request) -> Response:
        return PlainTextResponse("alive\n")

    messages = f"/{VERSION}/Accounts/{{account}}/Messages"
    routes = [
        Route("/healthz", alive),
        Route(f"{messages}.json", create_message, methods=["POST"]),
        Route(f"{messages}.json", list_messages),
        Route(f"{messages}/{{sid}}.json", fetch_message),
        Route("/v2/Indicators/Typing.json", type_indicator, methods=["POST"]),
        *control.routes(),
        *chat_page.routes(exchange_of),
    ]
    bad = dict.fromkeys((ValueError, KeyError, TypeError, AttributeError, json.JSONDecodeError), _bad)
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers=bad)
    guard(app, host)
    return app


class _Server(uvicorn.Server):
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
    chosen = parser.parse_args(argv)
    account = Account(chosen.account_sid, chosen.auth_token, chosen.number, chosen.webhook, chosen.status_url)
    with socket.create_server((chosen.host, chosen.port), backlog=1024) as listener:
        print(f"simulated Twilio: http://{chosen.host}:{listener.getsockname()[1]}", flush=True)
        app = create_app(account, "*" if chosen.host == "0.0.0.0" else chosen.host)  # noqa: S104 - compared with
        config = uvicorn.Config(app, log_level="error", ws="none", timeout_graceful_shutdown=1)
        _Server(config, app).run(sockets=[listener])


if __name__ == "__main__":
    main()
