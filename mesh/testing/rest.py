"""Messages in Twilio's REST form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from mesh.adapters.twilio_signature import identity
from mesh.errors import Malformed
from mesh.testing.exchange import Exchange
from mesh.testing.manners import HANG_SECONDS, error, exchange_of, hang, misbehave, not_found, stranger
from mesh.testing.messages import VERSION, Message
from mesh.testing.rules import variables

BODY_LIMIT = 1600

_REFUSALS = {"throttle": (429, 20429), "fail": (503, 20500), "refuse": (400, 63024), "hang": (0, 0)}
"""Status and code of a message that is not taken."""


def routes() -> list[BaseRoute]:
    messages = f"/{VERSION}/Accounts/{{account}}/Messages"
    return [
        Route(f"{messages}.json", create_message, methods=["POST"]),
        Route(f"{messages}.json", list_messages),
        Route(f"{messages}/{{sid}}.json", fetch_message),
        Route("/v2/Indicators/Typing.json", type_indicator, methods=["POST"]),
    ]


async def create_message(request: Request) -> Response:
    exchange = exchange_of(request)
    pairs = parse_qsl((await request.body()).decode(), keep_blank_values=True)
    form = dict(reversed(pairs))  # of several files, WhatsApp takes the first
    trouble = stranger(request) or _unfit(form, exchange)
    if trouble:
        return trouble
    template = exchange.templates.get(form.get("ContentSid", ""))
    status, code = exchange.refusal(form["To"], template=template is not None)
    if code:
        exchange.refuse(form["To"], status, code)
        return error(status, code, headers={"Retry-After": "1"} if status == 429 else None)
    step = exchange.script.popleft() if exchange.script else {"do": "accept"}
    doing = step["do"]
    if doing in _REFUSALS:
        status, code = _REFUSALS[doing]
        exchange.refuse(form["To"], int(step.get("status", status)), int(step.get("code", code)))
        return await misbehave(request, step)
    text, failure = form.get("Body", ""), 0
    if template:
        text, failure = template.filled(variables(form.get("ContentVariables", "")) or {})
    message = await exchange.send(
        form["To"],
        text,
        form.get("StatusCallback", ""),
        {"accept_then_hang": "hung", "accept_then_fail": "failed"}.get(doing, "success"),
        link="" if template else form.get("MediaUrl", ""),
        template=template,
        failure=failure,
    )
    if doing == "accept_then_hang":
        await hang(request, float(step.get("seconds", HANG_SECONDS)))
    if doing == "accept_then_fail":
        return await misbehave(request, {**step, "do": "fail"})
    return JSONResponse(message.resource(exchange.account.sid), 201)


def _unfit(form: Mapping[str, str], exchange: Exchange) -> JSONResponse | None:
    said = form.get("Body") or form.get("MediaUrl") or form.get("ContentSid")
    for given, code in ((form.get("To"), 21604), (form.get("From"), 21603), (said, 21602)):
        if not given:
            return error(400, code)
    if form["From"] != f"whatsapp:{exchange.account.number}":
        return error(400, 63007)
    try:
        identity(form["To"])
    except Malformed:
        return error(400, 21910)
    if form.get("ContentSid"):
        if form["ContentSid"] not in exchange.templates:
            return error(400, 21655)
        return error(400, 21656) if variables(form.get("ContentVariables", "")) is None else None
    if (link := form.get("MediaUrl")) and not _is_link(link):
        return error(400, 21620)
    return error(400, 21617) if len(form.get("Body", "")) > BODY_LIMIT else None


def _is_link(given: str) -> bool:
    try:
        link = urlsplit(given)
    except ValueError:
        return False
    return link.scheme in ("http", "https") and bool(link.hostname)


async def list_messages(request: Request) -> Response:
    """Newest first, by pages."""
    trouble = stranger(request)
    if trouble:
        return trouble
    query, exchange = request.query_params, exchange_of(request)
    step = exchange.listing.steps.popleft() if exchange.listing.steps else {"do": "answer"}
    if step["do"] != "answer":
        return await misbehave(request, step)
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
    trouble = stranger(request)
    if trouble:
        return trouble
    exchange = exchange_of(request)
    message = exchange.message(request.path_params["sid"])
    return JSONResponse(message.resource(exchange.account.sid)) if message else not_found(request)


async def type_indicator(request: Request) -> Response:
    """Its own host at Twilio: `messaging.twilio.com`."""
    form = dict(parse_qsl((await request.body()).decode(), keep_blank_values=True))
    if trouble := stranger(request):
        return trouble
    if form.get("channel") != "whatsapp":
        return error(400, 20001, "channel must be whatsapp")
    if not await exchange_of(request).type(form.get("messageId", "")):
        return error(400, 20001, "messageId is not of a person's message")
    return JSONResponse({"success": True})
