"""The gateway's door: bounds on number, time and size that hold before the app hears of a request.

By itself, uvicorn waits for ever for headers, parses any number of them that come in one packet, and takes a body in
pieces of one byte each.
"""

from __future__ import annotations

import asyncio
import contextlib
import http
import logging
import random
import socket
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

log = logging.getLogger(__name__)

_TEXTS = {
    400: "This is not a request of HTTP/1.1 that can be read.",
    408: "The headers did not arrive in time.",
    413: "The body came in too many pieces.",
    431: "The headers are too long, or too many.",
    501: "Send the body as it is, or in chunks.",
    503: "Too many connections. Please try again.",
}


@dataclass(frozen=True, slots=True)
class Bounds:
    connections: int = 900
    """Below the 1,024 files that a process may usually open."""
    head_seconds: float = 5.0
    """From the connection, or the first byte of a later request, to the last of the headers."""
    head_bytes: int = 8 * 1024
    headers: int = 100
    pieces: int = 64
    """In which a body may come: chunks, or packets."""
    refusal_seconds: float = 0.5
    """About how long a refusal is held back, so that who floods us is slowed down."""


AT_ONCE = 16
"""Connections that are accepted in one round of the event loop."""
DRAINED = 2_000_000
"""Bytes that are taken, and dropped, from somebody who is refused: while some are unread, closing would reset the
connection and could take the answer along."""


def configured(app: ASGIApp, *, host: str = "127.0.0.1", port: int = 0, bounds: Bounds | None = None) -> uvicorn.Config:
    door = partial(Door, bounds or Bounds(), {})
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        http=cast("type[asyncio.Protocol]", door),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=5,
    )


def listening(config: uvicorn.Config, listener: socket.socket | None = None) -> list[socket.socket]:
    """One listener in several copies, for `uvicorn.Server.serve`.

    uvloop accepts one connection of each in a round: behind a flood, honest ones would stand in one long line.
    """
    first = listener or config.bind_socket()
    return [first, *(first.dup() for _ in range(AT_ONCE - 1))]


class Door(H11Protocol):
    """One connection. `awaited` are those of the server whose clients we wait for, the longest first."""

    def __init__(self, bounds: Bounds, awaited: dict[Door, None], **given: Any) -> None:
        super().__init__(**given)
        self.conn: _Connection = _Connection(bounds)
        self._bounds = bounds
        self._awaited = awaited
        self._clock: asyncio.TimerHandle | None = None
        self._refused = False
        self._dropped = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        if len(self.connections) > self._bounds.connections:
            next(iter(self._awaited), self).answer(503)
        self._watch()

    def data_received(self, data: bytes) -> None:
        if self._refused:
            self._dropped += len(data)
            if self._dropped > DRAINED:
                self.transport.pause_reading()
            return
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        if self.conn.their_state is h11.SEND_BODY:  # nobody will read the rest of it
            self.transport.close()
        super().on_response_complete()
        self._note()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._stop()
        self._awaited.pop(self, None)

    def send_400_response(self, msg: str) -> None:
        """What uvicorn calls when h11 has raised."""
        self._refused = True
        held = self._bounds.refusal_seconds * random.uniform(0.5, 1.5)  # noqa: S311 - so that a flood does not pulse
        self.loop.call_later(held, self.answer, self.conn.refusal)

    def answer(self, status: int) -> None:
        """As far as HTTP still allows one; the connection ends in any case."""
        self._stop()
        self._awaited.pop(self, None)
        if self.transport.is_closing():
            return
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            log.warning("refused status=%d", status)
            text = f"{_TEXTS[status]}\n".encode()
            headers = {
                "Content-Type": "text/plain; charset=utf-8",
                "Content-Length": str(len(text)),
                "Connection": "close",
            }
            response = h11.Response(
                status_code=status, reason=http.HTTPStatus(status).phrase, headers=list(headers.items())
            )
            with contextlib.suppress(h11.LocalProtocolError):  # an answer to HEAD has no text
                for event in (response, h11.Data(data=text), h11.EndOfMessage()):
                    self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _watch(self) -> None:
        """Sets the clock while the headers are incomplete."""
        self._note()
        if self._refused or self.conn.their_state is not h11.IDLE:
            self._stop()
        elif self._clock is None and not self.transport.is_closing():
            self._clock = self.loop.call_later(self._bounds.head_seconds, self._too_slow)

    def _note(self) -> None:
        if self.conn.their_state in (h11.IDLE, h11.SEND_BODY) and not self.transport.is_closing():
            self._awaited.setdefault(self)
        else:
            self._awaited.pop(self, None)

    def _too_slow(self) -> None:
        self._clock = None
        if self.conn.trailing_data[0]:
            self.answer(408)
        else:  # it has asked for nothing
            self.transport.close()

    def _stop(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None


class _Connection(h11.Connection):
    def __init__(self, bounds: Bounds) -> None:
        super().__init__(h11.SERVER, bounds.head_bytes)
        self.refusal = 400
        self._bounds = bounds
        self._pieces = 0

    def next_event(self) -> Any:
        """`refusal` is the status when it raises."""
        try:
            if self.their_state is h11.IDLE:
                self._look_at_head()
            event = super().next_event()
            self._count(event)
        except h11.RemoteProtocolError as error:
            self.refusal = error.error_status_hint if error.error_status_hint in _TEXTS else 400
            raise
        return event

    def _look_at_head(self) -> None:
        """h11 bounds only headers that are incomplete, and takes 20 ms to parse 64 KiB of short ones."""
        head = self.trailing_data[0].partition(b"\r\n\r\n")[0]
        if len(head) > self._bounds.head_bytes or head.count(b"\n") > self._bounds.headers:
            raise h11.RemoteProtocolError("headers", error_status_hint=431)

    def _count(self, event: Any) -> None:
        if isinstance(event, h11.Request):
            self._pieces = 0
        elif isinstance(event, h11.Data):
            self._pieces += 1
            if self._pieces > self._bounds.pieces:
                raise h11.RemoteProtocolError("pieces", error_status_hint=413)
