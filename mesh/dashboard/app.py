"""One page that looks at Redis every two seconds, for as long as somebody looks at it."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import HTMLResponse, PlainTextResponse
from fastapi.staticfiles import StaticFiles
from jinja2 import Environment, FileSystemLoader

from mesh.dashboard import words
from mesh.dashboard.reading import Reader
from mesh.errors import Unavailable
from mesh.pages import guard

HERE = Path(__file__).parent

log = logging.getLogger(__name__)


def create_app(reader: Reader, *, names: Sequence[str] = (), chat_page: str = "") -> FastAPI:
    """`names` as `mesh.pages.guard` takes it; `chat_page`: where a message can be written, when that is known."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    app.mount("/static", StaticFiles(directory=HERE / "static"))
    templates = Environment(loader=FileSystemLoader(HERE / "templates"), autoescape=True, trim_blocks=True)
    templates.globals.update(words=words, chat_page=chat_page, when=_when)
    guard(app, *names)

    @app.get("/")
    async def page() -> HTMLResponse:
        template = templates.get_template("page.html")
        try:
            return HTMLResponse(template.render(seen=await reader.look(), trouble=""))
        except Unavailable as error:
            log.warning("! nothing to show: %s", error.detail)
            return HTMLResponse(template.render(seen=None, trouble=words.UNREACHABLE))

    @app.get("/board")
    async def board() -> HTMLResponse:
        """What changes: the script puts it in the place of what the page shows."""
        try:
            return HTMLResponse(templates.get_template("board.html").render(seen=await reader.look()))
        except Unavailable as error:
            log.warning("! nothing to show: %s", error.detail)
            return HTMLResponse(words.UNREACHABLE, 503)

    @app.get("/healthz")
    async def alive() -> PlainTextResponse:
        return PlainTextResponse("alive\n")

    return app


def _when(seconds: float) -> str:
    """In this machine's time, with its offset: for a `title`, beside an age."""
    return time.strftime("%Y-%m-%d %H:%M:%S %z", time.localtime(seconds))
