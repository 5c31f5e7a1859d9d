"""What every page of ours is served with: nothing from elsewhere, in no frame, kept by no cache, and only under a name
of this machine, so that a page of somebody else's can't read it by pointing its own name here (DNS rebinding)."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK_NAMES = ("127.0.0.1", "localhost")

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "media-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def guard(app: Starlette, *names: str) -> None:
    """`names` are served besides those of loopback: the address that it listens on, a proxy's name for it."""
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=[*LOOPBACK_NAMES, *filter(None, names)], www_redirect=False)
    app.add_middleware(_Guarded)


class _Guarded:
    """Adds the headers to every answer, and lets no other site's page change anything."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        foreign = Headers(scope=scope).get("sec-fetch-site", "none") not in ("none", "same-origin")
        refused = foreign and scope["method"] not in ("GET", "HEAD")
        answer = PlainTextResponse("Another site's page may not do that.\n", 403) if refused else self._app
        await answer(scope, receive, send_with_headers)
