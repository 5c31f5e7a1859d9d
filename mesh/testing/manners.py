"""How the simulated Twilio answers: its errors, its credentials, and its misbehaviour."""

from __future__ import annotations

import asyncio
import base64
import hmac
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from mesh.testing.exchange import Exchange
from mesh.testing.messages import ERRORS

HANG_SECONDS = 600.0


def exchange_of(request: Request) -> Exchange:
    exchange = request.app.state.exchange
    assert isinstance(exchange, Exchange)
    return exchange


def error(status: int, code: int, text: str = "", headers: Mapping[str, str] | None = None) -> JSONResponse:
    message = text or ERRORS.get(code, "The request failed")
    more = f"https://www.twilio.com/docs/errors/{code}"
    body = {"code": code, "message": message, "more_info": more, "status": status}
    return JSONResponse(body, status, headers=headers)


def not_found(request: Request) -> JSONResponse:
    return error(404, 20404, f"The requested resource {request.url.path} was not found")


def stranger(request: Request) -> JSONResponse | None:
    account = exchange_of(request).account
    expected = "Basic " + base64.b64encode(f"{account.sid}:{account.token}".encode()).decode()
    given = request.headers.get("authorization", "")
    if request.path_params.get("account", account.sid) == account.sid and hmac.compare_digest(
        given.encode(), expected.encode()
    ):
        return None
    return error(401, 20003, headers={"WWW-Authenticate": 'Basic realm="Twilio API"'})


async def misbehave(request: Request, step: Mapping[str, Any]) -> Response:
    match step["do"]:
        case "throttle":
            return error(429, 20429, headers={"Retry-After": str(step.get("retry_after", 1))})
        case "refuse":
            return error(400, int(step.get("code", 63024)))
        case "hang":
            await hang(request, float(step.get("seconds", HANG_SECONDS)))
    return error(int(step.get("status", 503)), 20500, "Service unavailable")


async def hang(request: Request, seconds: float) -> None:
    """Until then, or until the caller gives up, or this process stops."""
    waits = {asyncio.create_task(_gone(request)), asyncio.create_task(exchange_of(request).closing.wait())}
    _, pending = await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()


async def _gone(request: Request) -> bool:
    while (await request.receive())["type"] != "http.disconnect":
        pass
    return True
