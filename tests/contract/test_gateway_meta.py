"""The gateway's side of Meta: what it takes, what it turns away, and what it never lets near the inbox."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from mesh.adapters.meta_webhooks import SIGNATURE_HEADER, echo_of, signature
from mesh.errors import Misconfigured, Unavailable
from mesh.gateway.app import TWILIO_MESSAGES, create_app
from mesh.gateway.door import Bounds
from mesh.gateway.meta import FORGED, META, MetaWebhooks
from tests.contract.gateway_stage import NUMBER, PERSON, Recorder, connected, rest, served

SECRET, VERIFY, ID = "s3cret", "a word of our own", "106540352242922"


class Notes:
    """Keeps what is noted of our own messages."""

    def __init__(self) -> None:
        self.kept: list[tuple[str, str, float]] = []

    async def note(self, echo: str, provider_id: str, at: float) -> None:
        self.kept.append((echo, provider_id, at))


@pytest.fixture
def inbox() -> Recorder:
    return Recorder()


@pytest.fixture
def notes() -> Notes:
    return Notes()


def webhooks(inbox: Recorder, notes: Notes, **bounds: Any) -> MetaWebhooks:
    return MetaWebhooks(inbox, notes, app_secret=SECRET, verify_token=VERIFY, numbers={ID: NUMBER}, **bounds)


@pytest.fixture
async def http(inbox: Recorder, notes: Notes) -> AsyncIterator[httpx.AsyncClient]:
    app = create_app(inbox, meta=webhooks(inbox, notes, store_seconds=0.3), refusal_seconds=0.0)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://10.0.0.5:8080") as client:
        yield client


def message(message_id: str = "wamid.1", text: str = "a secret question", sender: str = PERSON) -> dict[str, Any]:
    return {"from": sender.lstrip("+"), "id": message_id, "type": "text", "text": {"body": text}}


def status(state: str, message_id: str = "wamid.9", **more: Any) -> dict[str, Any]:
    return {"id": message_id, "status": state, "timestamp": "1750263773", **more}


def body(messages: list[Any] | None = None, statuses: list[Any] | None = None) -> bytes:
    value = {"metadata": {"phone_number_id": ID}, "messages": messages or [], "statuses": statuses or []}
    return json.dumps({"entry": [{"changes": [{"field": "messages", "value": value}]}]}).encode()


async def post(http: httpx.AsyncClient, raw: bytes, given: str | None = None) -> httpx.Response:
    headers = {SIGNATURE_HEADER: signature(raw, SECRET) if given is None else given}
    return await http.post(META, content=raw, headers={"Content-Type": "application/json", **headers})


# ── the signature ─────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_signed_message_is_accepted(http: httpx.AsyncClient, inbox: Recorder) -> None:
    assert (await post(http, body([message()]))).status_code == 200
    (kept,) = inbox.messages
    assert (kept.message_id, kept.sender, kept.recipient) == ("wamid.1", PERSON, NUMBER)


RAW = body([message()])
SIGNED = signature(RAW, SECRET)


@pytest.mark.parametrize(
    "given",
    [
        "",
        "sha256=",
        SIGNED.removeprefix("sha256="),
        SIGNED.upper(),
        SIGNED.replace("sha256", "sha1"),
        SIGNED[:-1],
        f"{SIGNED}0",
        f" {SIGNED} ",
        "sha256=" + "0" * 64,
        signature(RAW, "another secret"),
        signature(RAW, ""),
        signature(RAW + b" ", SECRET),
        "sha256=" + "é" * 64,
    ],
)
async def test_a_forged_signature_is_refused_and_says_what_to_check(
    http: httpx.AsyncClient, inbox: Recorder, given: str
) -> None:
    headers = {SIGNATURE_HEADER.encode(): given.encode()}
    answer = await http.post(META, content=RAW, headers=headers)
    assert (answer.status_code, answer.text) == (403, FORGED)
    assert inbox.untouched


async def test_without_a_signature_nothing_is_taken(http: httpx.AsyncClient, inbox: Recorder) -> None:
    assert (await http.post(META, content=RAW)).status_code == 403
    assert inbox.untouched


@pytest.mark.parametrize("altered", [RAW + b"\n", RAW.replace(b"secret", b"public"), RAW.replace(b": ", b":"), b""])
async def test_one_altered_byte_is_one_too_many(http: httpx.AsyncClient, inbox: Recorder, altered: bytes) -> None:
    assert (await post(http, altered, SIGNED)).status_code == 403
    assert inbox.untouched


async def test_what_is_signed_is_the_raw_body_whatever_its_escapes(http: httpx.AsyncClient, inbox: Recorder) -> None:
    raw = RAW.replace(b"a secret question", rb"\u0928\u092e\u0938\u094d\u0924\u0947")
    assert (await post(http, raw)).status_code == 200
    assert inbox.messages[0].text == "नमस्ते"


@pytest.mark.parametrize("missing", ["app_secret", "verify_token"])
def test_an_empty_secret_stops_start_up(inbox: Recorder, notes: Notes, missing: str) -> None:
    given: dict[str, Any] = {"app_secret": SECRET, "verify_token": VERIFY, missing: ""}
    with pytest.raises(Misconfigured):
        MetaWebhooks(inbox, notes, numbers={ID: NUMBER}, **given)


# ── the challenge ─────────────────────────────────────────────────────────────────────────────────────────────────


def asked(**changed: str) -> dict[str, str]:
    given = {"mode": "subscribe", "verify_token": VERIFY, "challenge": "1158201444", **changed}
    return {f"hub.{name}": each for name, each in given.items()}


async def test_the_challenge_is_echoed_to_who_knows_the_token(http: httpx.AsyncClient) -> None:
    answer = await http.get(META, params=asked())
    assert (answer.status_code, answer.text) == (200, "1158201444")
    assert answer.headers["content-type"].startswith("text/plain")


@pytest.mark.parametrize("changed", [{"verify_token": "wrong"}, {"verify_token": ""}, {"mode": "unsubscribe"}])
async def test_the_challenge_is_not_echoed_to_anybody_else(http: httpx.AsyncClient, changed: dict[str, str]) -> None:
    answer = await http.get(META, params=asked(**changed))
    assert answer.status_code == 403
    assert "1158201444" not in answer.text


@pytest.mark.parametrize("challenge", ["", "<script>alert(1)</script>", "x" * 300])
async def test_nothing_else_is_echoed(http: httpx.AsyncClient, challenge: str) -> None:
    answer = await http.get(META, params=asked(challenge=challenge))
    assert (answer.status_code, answer.text) == (400, "hub.challenge is missing.\n")


# ── batches ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_all_of_a_body_is_taken_in_its_order(http: httpx.AsyncClient, inbox: Recorder, notes: Notes) -> None:
    echo = echo_of(NUMBER, PERSON, "hello")
    raw = body(
        [message(f"wamid.{number}", sender=f"+1555123{number:04d}") for number in range(100)],
        [status("sent", biz_opaque_callback_data=echo), status("failed", "wamid.8", errors=[{"code": 131047}])],
    )
    assert (await post(http, raw)).status_code == 200
    assert [each.message_id for each in inbox.messages] == [f"wamid.{number}" for number in range(100)]
    assert [(each.state, each.error_code) for each in inbox.deliveries] == [("sent", ""), ("failed", "63016")]
    assert notes.kept == [(echo, "wamid.9", 1750263773.0)]


async def test_what_can_t_be_read_hides_nothing_else_and_is_in_the_log(
    http: httpx.AsyncClient, inbox: Recorder, caplog: pytest.LogCaptureFixture
) -> None:
    answer = await post(http, body([{"id": "wamid.0", "type": "text"}, message()]))
    assert answer.status_code == 200
    assert [each.message_id for each in inbox.messages] == ["wamid.1"]
    assert "a message does not tell who sent it" in caplog.text


async def test_a_body_that_comes_again_is_kept_once(http: httpx.AsyncClient, inbox: Recorder) -> None:
    for _ in range(3):
        assert (await post(http, RAW)).status_code == 200
    assert len(inbox.messages) == 1


@pytest.mark.parametrize("stuck", [False, True])
async def test_200_is_said_only_when_all_of_it_is_safe(http: httpx.AsyncClient, inbox: Recorder, stuck: bool) -> None:
    inbox.stuck, inbox.trouble = stuck, Unavailable(detail="redis: gone")
    raw = body([message("wamid.1"), message("wamid.2")])
    assert (await post(http, raw)).status_code == 503
    inbox.stuck, inbox.trouble = False, None
    assert (await post(http, raw)).status_code == 200
    assert [each.message_id for each in inbox.messages] == ["wamid.1", "wamid.2"]


async def test_the_log_has_metas_own_code_and_neither_words_nor_numbers(
    http: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    await post(http, body([message()], [status("failed", errors=[{"code": 131047}], recipient_id=PERSON[1:])]))
    ours = "\n".join(each.getMessage() for each in caplog.records if each.name.startswith("mesh"))
    assert "code=63016 meta=131047" in ours
    assert "secret question" not in ours
    assert PERSON[1:] not in ours


# ── garbage ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("raw", [b"{", b"[]", b"\xff\xfe", b"[" * 100_000, b'{"entry":' * 20_000, b"null"])
async def test_signed_garbage_is_refused(http: httpx.AsyncClient, inbox: Recorder, raw: bytes) -> None:
    assert (await post(http, raw)).status_code == 400
    assert inbox.untouched


async def test_a_megabyte_that_is_signed_is_taken_and_one_that_is_not_is_refused(
    http: httpx.AsyncClient, inbox: Recorder
) -> None:
    raw = body([message(f"wamid.{number}", "x" * 1000) for number in range(1000)])
    assert len(raw) > 1_000_000
    assert (await post(http, raw, "sha256=" + "0" * 64)).status_code == 403
    assert inbox.untouched
    assert (await post(http, raw)).status_code == 200
    assert len(inbox.messages) == 1000


async def test_a_body_that_is_too_long_is_refused_whatever_its_length_says(inbox: Recorder, notes: Notes) -> None:
    app = create_app(inbox, meta=webhooks(inbox, notes, body_limit=2000), refusal_seconds=0.0)
    raw = body([message(text="x" * 3000)])

    async def parts() -> AsyncIterator[bytes]:
        yield raw

    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x") as client:
        assert (await post(client, raw)).status_code == 413
        headers = {SIGNATURE_HEADER: signature(raw, SECRET)}
        assert (await client.post(META, content=parts(), headers=headers)).status_code == 413
    assert inbox.untouched


async def test_a_body_that_dawdles_is_given_up(inbox: Recorder, notes: Notes) -> None:
    app = create_app(inbox, meta=webhooks(inbox, notes, read_seconds=0.2), refusal_seconds=0.0)
    async with served(app) as port, connected(port) as (reader, writer):
        writer.write(head(1000) + b"{")
        assert b"408" in await rest(reader)


async def test_large_bodies_are_only_so_many_at_once(inbox: Recorder, notes: Notes) -> None:
    hooks = webhooks(inbox, notes, read_seconds=5.0)
    app = create_app(inbox, meta=hooks, refusal_seconds=0.0)
    raw = body([message(f"wamid.{number}", "x" * 1000) for number in range(200)])
    async with served(app, bounds=Bounds(pieces=512)) as port:
        held = [connected(port) for _ in range(8)]
        for each in held:
            _, writer = await each.__aenter__()
            writer.write(head(len(raw)) + raw[:100_000])
            await writer.drain()
        while hooks._large < 8:
            await asyncio.sleep(0.01)
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
            assert (await post(client, raw)).status_code == 503
            assert (await post(client, RAW)).status_code == 200  # everyday ones are taken meanwhile
            for each in held:
                await each.__aexit__(None, None, None)
            while hooks._large:
                await asyncio.sleep(0.01)
            assert (await post(client, raw)).status_code == 200


def head(length: int) -> bytes:
    lines = (f"POST {META} HTTP/1.1", "Host: x", f"{SIGNATURE_HEADER}: {SIGNED}", f"Content-Length: {length}", "", "")
    return "\r\n".join(lines).encode()


async def test_a_gateway_of_meta_takes_nothing_of_twilio(http: httpx.AsyncClient) -> None:
    assert (await http.post(TWILIO_MESSAGES, content=b"MessageSid=SM1")).status_code == 404


async def test_a_refusal_is_held_back(inbox: Recorder, notes: Notes) -> None:
    app = create_app(inbox, meta=webhooks(inbox, notes), refusal_seconds=0.4)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x") as client:
        began = time.perf_counter()
        assert (await post(client, RAW, "sha256=" + "0" * 64)).status_code == 403
    assert time.perf_counter() - began > 0.19
