"""The control side of the simulated Twilio, under `/simulate`: people write, read, and look at what happened; and say
how Twilio misbehaves. `mesh.testing.phone.Phone` speaks it."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import math
from collections import deque
from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from mesh.adapters.twilio_signature import address
from mesh.testing.exchange import KEPT, Listing
from mesh.testing.forms import form_of, with_file, with_quote
from mesh.testing.manners import exchange_of
from mesh.testing.media import FETCHES, store_of
from mesh.testing.messages import Medium
from mesh.testing.rules import Rules, templates

LONGEST_WAIT = 60.0
MOST_COPIES = 20
TOLD = 1_000
"""Entries of the log, unless asked for otherwise."""
SENDS = ("accept", "accept_then_fail", "accept_then_hang", "fail", "hang", "refuse", "throttle")
LISTS = ("answer", "fail", "hang", "throttle")


def routes() -> list[BaseRoute]:
    return [
        Route("/simulate/inbound", inbound, methods=["POST"]),
        Route("/simulate/replies", replies),
        Route("/simulate/log", log),
        Route("/simulate/script", script, methods=["GET", "POST"]),
        Route("/simulate/listing", listing, methods=["POST"]),
        Route("/simulate/media", media, methods=["POST"]),
        Route("/simulate/rules", rules, methods=["POST"]),
        Route("/simulate/settled", settled),
        Route("/simulate/templates", known_templates, methods=["POST"]),
    ]


async def inbound(request: Request) -> Response:
    """`fields` adds to the form or changes it; null takes a field away. Of what is more than a text, the form is kept,
    and posted again when its sid is given again."""
    asked, exchange = await request.json(), exchange_of(request)
    account = exchange.account
    text = str(asked.get("text", "")).encode("utf-8", "replace").decode()
    file, quoted = asked.get("file"), asked.get("quoting")
    sid = asked.get("message_sid") or exchange.new_sid(file=bool(file))
    known = exchange.message(sid)
    given: tuple[Medium, ...] = ()
    if known and known.form:
        form: dict[str, Any] = {**known.form}
    else:
        form = form_of(account, sid, address(asked["from"]), address(asked.get("to") or account.number), text)
        if quoted:
            form = with_quote(form, quoted, exchange.message(quoted))
        if file and known is None:
            given = (exchange.files.put(sid, file["name"], file["media_type"], base64.b64decode(file["raw"])),)
            form = with_file(form, given[0], store_of(request).api_base + given[0].path(account.sid))
    form.update(asked.get("fields") or {})
    post = await exchange.receive(
        {name: str(value) for name, value in form.items() if value is not None},
        media=given,
        deliver=asked.get("deliver", True),
        copies=min(max(int(asked.get("copies", 1)), 1), MOST_COPIES),
        delay=_seconds(asked.get("delay", 0), 3600.0),
    )
    return JSONResponse({"message_sid": sid, "status": post.status, "ms": post.ms, "error": post.error})


async def replies(request: Request) -> Response:
    query, exchange = request.query_params, exchange_of(request)
    after, to = int(query.get("after_seq", "0")), query.get("to", "")
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_seconds(query.get("wait", "0"), LONGEST_WAIT)), exchange.news:
            await exchange.news.wait_for(lambda: exchange.closing.is_set() or exchange.replies(after, to))
    return JSONResponse(exchange.replies(after, to))


async def log(request: Request) -> Response:
    query = request.query_params
    return JSONResponse(exchange_of(request).journal.after(int(query.get("after", "0")), int(query.get("limit", TOLD))))


async def script(request: Request) -> Response:
    """Of the next sends. Takes the place of what was left of it before."""
    exchange = exchange_of(request)
    if request.method == "POST":
        steps = (await request.json())["next"]
        if trouble := _unknown(steps, SENDS):
            return trouble
        exchange.script = deque(steps, maxlen=KEPT)
    return JSONResponse({"next": [*exchange.script]})


async def listing(request: Request) -> Response:
    asked = await request.json()
    if trouble := _unknown(asked["next"], LISTS):
        return trouble
    exchange_of(request).listing = Listing(deque(asked["next"], maxlen=KEPT), _seconds(asked.get("late", 0), 3600.0))
    return JSONResponse(asked)


async def media(request: Request) -> Response:
    """Of the next fetches. Takes the place of what was left of it before."""
    steps = (await request.json())["next"]
    if trouble := _unknown(steps, FETCHES):
        return trouble
    store_of(request).steps = deque(steps, maxlen=KEPT)
    return JSONResponse({"next": steps})


async def rules(request: Request) -> Response:
    """Takes the place of the rules before."""
    asked = await request.json()
    exchange_of(request).rules = Rules(**asked)
    return JSONResponse(asked)


async def settled(request: Request) -> Response:
    await exchange_of(request).settle()
    return JSONResponse({"settled": True})


async def known_templates(request: Request) -> Response:
    """Adds to those that are known."""
    exchange = exchange_of(request)
    exchange.templates.update(templates(await request.json()))
    return JSONResponse({"known": [*exchange.templates]})


def _unknown(steps: Sequence[dict[str, Any]], known: Sequence[str]) -> JSONResponse | None:
    unknown = [step.get("do") for step in steps if step.get("do") not in known]
    if not unknown:
        return None
    return JSONResponse({"error": f"I can't do {unknown[0]!r}; I know {', '.join(known)}."}, 400)


def _seconds(given: object, most: float) -> float:
    seconds = float(str(given))
    return min(max(seconds, 0.0), most) if math.isfinite(seconds) else 0.0
