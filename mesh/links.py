"""Short-lived signed links to documents. A link names a document and on whose behalf it is asked for, and grants
nothing by itself: whether that person may have the document is looked up when the link is used."""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import secrets
from datetime import timedelta
from hashlib import sha256
from urllib.parse import quote

from redis.asyncio import Redis
from redis.exceptions import RedisError

from mesh import clock
from mesh.errors import NotFound, Unavailable
from mesh.files import GONE, PATH, Link, readable
from mesh.settings import IDENTITY

KEY = "mesh:links:key"
KEY_BYTES = 32
FOR = timedelta(minutes=15)
LONGEST = 600
"""Characters of a token: nothing that we have made is longer."""
SHOWN = 40
"""Characters of a name in a link, which is to fit into a message."""


class Links:
    def __init__(self, key: bytes) -> None:
        if len(key) != KEY_BYTES:
            raise ValueError(f"a key is of {KEY_BYTES} bytes")
        self._key = key

    def make(self, document_id: str, client: str, name: str, seconds: float = FOR.total_seconds()) -> str:
        """A path, `/files/<token>/<name>`: put the public address before it. The name is there for whoever looks at the
        link; what is sent is named by the document."""
        body = _text(json.dumps([document_id, client, int(clock.now() + seconds)]).encode())
        shown = readable(name).replace("/", "_").strip(".") or "file"
        stem, dot, extension = shown.rpartition(".")
        shown = f"{stem[:SHOWN]}{dot}{extension[:SHOWN]}"  # nine characters of an address may be one of a name
        return f"{PATH}/{body}.{_text(self._signature(body))}/{quote(shown, safe='')}"

    def read(self, token: str) -> Link:
        """Raises `NotFound`, in the same words for what is forged, altered or expired."""
        body, _, signature = token.partition(".")
        if len(token) > LONGEST or not hmac.compare_digest(signature.encode(), _text(self._signature(body)).encode()):
            raise NotFound(GONE, detail="a link that was not made here")
        try:
            link = Link(*json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))))
        except (ValueError, TypeError, binascii.Error) as error:
            raise NotFound(GONE, detail="a link of another version") from error
        if link.expires <= clock.now() or not IDENTITY.fullmatch(link.client):
            raise NotFound(GONE, detail="a link that has expired")
        return link

    def _signature(self, body: str) -> bytes:
        return hmac.digest(self._key, body.encode(), sha256)


async def links(redis: Redis) -> Links:
    """With the key that all processes share; the first one makes it."""
    try:
        key = await redis.get(KEY)
        if key is None:
            await redis.set(KEY, secrets.token_bytes(KEY_BYTES), nx=True)
            key = await redis.get(KEY)
    except RedisError as error:
        raise Unavailable(detail=f"redis: {type(error).__name__}") from error
    return Links(key or b"")


class Addresses:
    """Links as a person gets them, below the address under which the gateway is known."""

    def __init__(self, redis: Redis, public_url: str) -> None:
        self._redis = redis
        self._public_url = public_url.rstrip("/")

    async def address(self, document_id: str, client: str, name: str) -> str:
        """Good for 15 minutes. Raises `Unavailable` when Redis can't be reached."""
        return self._public_url + (await links(self._redis)).make(document_id, client, name)


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
