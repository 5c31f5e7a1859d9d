"""Each provider behind the same port: the simulated one, the channel to it, and, where the channel needs them, the
gateway and Redis behind it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime

import pytest
from redis.asyncio import Redis

from mesh.adapters.meta import MetaChannel
from mesh.adapters.meta_echoes import Echoes
from mesh.connections import connect
from mesh.errors import Ambiguous
from mesh.gateway.app import create_app
from mesh.gateway.meta import MetaWebhooks
from mesh.ports.channel import Channel
from mesh.testing.phone import Phone
from tests import simulated as twilio_stage
from tests.contract.gateway_stage import Recorder, served
from tests.processes import free_port

ID, TOKEN, SECRET, VERIFY, NUMBER = "106540352242922", "an-access-token", "s3cret", "a word", "+15550783881"

Opened = Callable[..., AbstractAsyncContextManager[Channel]]


@dataclass(frozen=True)
class Provider:
    name: str
    base: str
    number: str
    phone: Phone
    opened: Opened
    """Takes `base`, `token`, `connect_timeout`, `read_timeout` and `wait_seconds`."""
    codes: dict[str, str]
    """The provider's own, for what has no word of the mesh's."""
    token_setting: str
    inbox: Recorder = field(default_factory=Recorder)
    """What Meta's webhooks bring; of Twilio's nothing is taken here."""


@pytest.fixture(scope="module")
def twilio_base() -> Iterator[str]:
    with twilio_stage.simulated() as address:
        yield address


@dataclass(frozen=True)
class SimulatedMeta:
    base: str
    webhook_port: int


@contextlib.contextmanager
def simulated_meta(webhook_port: int, number: str = NUMBER) -> Iterator[SimulatedMeta]:
    webhook = f"http://127.0.0.1:{webhook_port}/whatsapp/meta"
    command = [sys.executable, "-m", "mesh.testing.meta", "--port", "0", "--webhook", webhook, "--number", number]
    account = ["--phone-number-id", ID, "--access-token", TOKEN, "--app-secret", SECRET]
    with subprocess.Popen([*command, *account], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield SimulatedMeta(process.stdout.readline().split()[-1], webhook_port)
        process.terminate()


@pytest.fixture(scope="module")
def meta_base() -> Iterator[SimulatedMeta]:
    with simulated_meta(free_port()) as simulated:
        yield simulated


def meta_webhooks(inbox: Recorder, redis: Redis) -> MetaWebhooks:
    return MetaWebhooks(inbox, Echoes(redis), app_secret=SECRET, verify_token=VERIFY, numbers={ID: NUMBER})


@contextlib.asynccontextmanager
async def opened_meta(
    redis: Redis,
    base: str,
    *,
    token: str = TOKEN,
    connect_timeout: float = 2.0,
    read_timeout: float = 10.0,
    wait_seconds: float = 8.0,
) -> AsyncIterator[MetaChannel]:
    channel = MetaChannel(
        token,
        {NUMBER: ID},
        Echoes(redis),
        api_base=f"{base}/v25.0",
        connect_timeout=connect_timeout,
        read_timeout=read_timeout,
        wait_seconds=wait_seconds,
    )
    try:
        yield channel
    finally:
        await channel.close()


@contextlib.asynccontextmanager
async def meta_provider(simulated: SimulatedMeta, redis_url: str) -> AsyncIterator[Provider]:
    """With a gateway that takes the statuses."""
    redis, inbox = connect(redis_url), Recorder()
    listener = socket.create_server(("127.0.0.1", simulated.webhook_port))
    app = create_app(inbox, meta=meta_webhooks(inbox, redis))
    codes = {"too long": "100", "empty": "100", "token": "190"}

    @contextlib.asynccontextmanager
    async def opened(*, base: str = simulated.base, **options: float | str) -> AsyncIterator[Channel]:
        async with opened_meta(redis, base, **options) as channel:  # type: ignore[arg-type]  # handed on as they are
            yield channel

    async with served(app, listener), Phone(simulated.base) as phone:
        yield Provider("meta", simulated.base, NUMBER, phone, opened, codes, "META_ACCESS_TOKEN", inbox)
        await phone.script()
        await phone.rules()
    await redis.aclose()


@contextlib.asynccontextmanager
async def twilio_provider(simulated: str) -> AsyncIterator[Provider]:
    codes = {"too long": "21617", "empty": "21602", "token": "20003"}

    @contextlib.asynccontextmanager
    async def opened(
        *, base: str = simulated, wait_seconds: float = 0.0, **options: float | str
    ) -> AsyncIterator[Channel]:
        async with twilio_stage.opened(base, **options) as channel:  # type: ignore[arg-type]  # handed on as they are
            yield channel

    async with Phone(simulated) as phone:
        yield Provider("twilio", simulated, twilio_stage.NUMBER, phone, opened, codes, "TWILIO_AUTH_TOKEN")
        await phone.script()
        await phone.rules()


@pytest.fixture(params=["twilio", "meta"])
async def provider(request: pytest.FixtureRequest, redis_url: str) -> AsyncIterator[Provider]:
    if request.param == "meta":
        async with meta_provider(request.getfixturevalue("meta_base"), redis_url) as found:
            yield found
    else:
        async with twilio_provider(request.getfixturevalue("twilio_base")) as found:
            yield found


@pytest.fixture
async def channel(provider: Provider) -> AsyncIterator[Channel]:
    async with provider.opened() as channel:
        yield channel


async def settled(channel: Channel, *, sender: str, recipient: str, text: str, since: datetime) -> list[str]:
    """What `find` says, once it can tell: a provider without a list has to wait for its statuses."""
    async with asyncio.timeout(15):
        while True:
            try:
                return await channel.find(sender=sender, recipient=recipient, text=text, since=since)
            except Ambiguous:
                await asyncio.sleep(0.05)
