"""A phone on a page: what a person would see in WhatsApp, on the simulated Twilio. It sends through
`/simulate/inbound`, as every other phone does."""

from __future__ import annotations

import asyncio
import contextlib
import html
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from mesh.adapters.twilio_signature import address
from mesh.testing.exchange import Exchange
from mesh.testing.messages import Message

HERE = Path(__file__).parent
LONGEST_WAIT_S = 25.0
PEOPLE = {"+15551230001": "Asha", "+15551230002": "Ben", "+15550000000": "the owner", "+15559990000": "a stranger"}
"""Those of the demo; anybody else can be typed."""
PLACE = ("Label", "Address", "Latitude", "Longitude")


def routes(exchange_of: Callable[[Request], Exchange]) -> list[BaseRoute]:
    life = secrets.token_hex(4)  # of this process: a page that was there before it must ask for everything again

    async def page(request: Request) -> Response:
        from mesh.settings import IDENTITY  # here: it would take a third of this process's start-up time

        people = "".join(f'<option value="{who}">{name}</option>' for who, name in PEOPLE.items())
        filled = (
            (HERE / "page.html")
            .read_text("utf-8")
            .replace("{{people}}", people)
            .replace("{{pattern}}", html.escape(IDENTITY.pattern))
            .replace("{{number}}", html.escape(exchange_of(request).account.number))
        )
        return HTMLResponse(filled)

    async def talk(request: Request) -> Response:
        """Both sides of one person's conversation: what changed after `since`, for which it waits a little."""
        from mesh.settings import IDENTITY

        who, exchange = request.query_params.get("who", ""), exchange_of(request)
        if not IDENTITY.fullmatch(who):
            return JSONResponse({"error": "Write a number with its country code, such as +15551230001."}, 400)
        given_life, _, change = request.query_params.get("since", "").partition(".")
        whole = given_life != life
        after = 0 if whole else int(change)
        if not whole:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LONGEST_WAIT_S), exchange.changes:
                    await exchange.changes.wait_for(lambda: exchange.closing.is_set() or _news(exchange, who, after))
        since, told = exchange.changed, exchange.talk(who, after)
        answer = {"since": f"{life}.{since}", "whole": whole, "messages": [_line(each, who) for each in told]}
        return JSONResponse({**answer, "typing": exchange.typing(who)})

    static = Mount("/page", StaticFiles(directory=HERE / "static"))
    return [Route("/", page), Route("/page/talk", talk), static]


def _news(exchange: Exchange, who: str, after: int) -> bool:
    return bool(exchange.talk(who, after) or exchange.typing(who, after))


def _line(message: Message, who: str) -> dict[str, Any]:
    mine = message.sender == address(who)
    state = {None: "sending", True: "taken", False: "failed"}[message.taken] if mine else ""
    form = message.form or {}
    return {
        "sid": message.sid,
        "seq": message.seq,
        "mine": mine,
        "text": "" if message.body in [each.name for each in message.media] else message.body,
        "at": message.created.isoformat(),
        "state": state,
        "kind": message.kind,
        "quoted": message.quoted,
        "media": [each.shown() for each in message.media],
        "buttons": [*message.buttons],
        "place": {name: form[name] for name in PLACE if name in form},
    }
