"""The gateway's other signatures (JSON, shared keys), and whose forms it takes: our account's, to our numbers."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest

from mesh.adapters.twilio_signature import SETTINGS_HEADER, SIGNATURE_HEADER, Pairs, signature
from mesh.gateway.app import FORM, TWILIO_MESSAGES, TWILIO_STATUS, create_app
from mesh.ports.channel import Delivery
from tests.contract.gateway_stage import NUMBER, PERSON, PUBLIC, TOKEN, Recorder, message, post, status

OURS, OTHER = "AC" + "1" * 32, "AC" + "2" * 32
SHARED = "a shared secret"
BY_SHARED_KEY = "key=webhooks_sharedkey_01,algorithm=HMAC_SHA256"
Opened = Callable[..., AbstractAsyncContextManager[httpx.AsyncClient]]


@pytest.fixture
def inbox() -> Recorder:
    return Recorder()


@pytest.fixture
def gateway(inbox: Recorder) -> Opened:
    @asynccontextmanager
    async def opened(**options: Any) -> AsyncIterator[httpx.AsyncClient]:
        app = create_app(inbox, public_url=PUBLIC, auth_token=TOKEN, refusal_seconds=0.0, **options)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://10.0.0.5:8080") as client:
            yield client

    return opened


def hashed(path: str, body: bytes) -> str:
    return f"{path}?bodySHA256={hashlib.sha256(body).hexdigest()}"


async def post_json(http: httpx.AsyncClient, body: bytes, path: str = TWILIO_MESSAGES) -> httpx.Response:
    """`path` is signed as it is; without a query it gets the hash of the body."""
    path = path if "?" in path else hashed(path, body)
    headers = {SIGNATURE_HEADER: signature(PUBLIC + path, [], TOKEN), "Content-Type": "application/json; charset=utf-8"}
    return await http.post(path, content=body, headers=headers)


def as_json(pairs: Pairs, **more: object) -> bytes:
    return json.dumps({**dict(pairs), **more}).encode()


# ── JSON ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_message_in_json_is_the_same_as_in_a_form(gateway: Opened, inbox: Recorder) -> None:
    async with gateway() as http:
        assert (await post(http, message())).status_code == 200
        answer = await post_json(http, as_json(message(MessageSid="SM2")))
    assert (answer.status_code, answer.text[-11:]) == (200, "<Response/>")
    form, told = inbox.messages
    assert told.fields == {**form.fields, "MessageSid": "SM2"}
    assert (told.sender, told.text) == (form.sender, form.text) == (PERSON, " a secret question ")


async def test_a_status_in_json_reaches_the_inbox(gateway: Opened, inbox: Recorder) -> None:
    async with gateway() as http:
        answer = await post_json(http, as_json(status(MessageStatus="failed", ErrorCode="63016")), TWILIO_STATUS)
    assert answer.status_code == 204
    assert inbox.deliveries == [Delivery("SM9", "failed", "63016")]


async def test_json_whose_body_is_not_what_was_signed_is_403(gateway: Opened, inbox: Recorder) -> None:
    honest, forged = as_json(message()), as_json(message(From="whatsapp:+15559999999"))
    async with gateway() as http:
        paths = (hashed(TWILIO_MESSAGES, honest), f"{TWILIO_MESSAGES}?bodySHA256=", f"{TWILIO_MESSAGES}?a=1")
        for path in paths:
            assert (await post_json(http, forged, path)).status_code == 403, path
        unsigned = {
            SIGNATURE_HEADER: signature(PUBLIC + TWILIO_MESSAGES, [], TOKEN),
            "Content-Type": "application/json",
        }
        answer = await http.post(hashed(TWILIO_MESSAGES, forged), content=forged, headers=unsigned)
        assert answer.status_code == 403
    assert inbox.untouched


async def test_a_form_that_calls_itself_json_is_not_taken_by_the_signature_of_its_pairs(
    gateway: Opened, inbox: Recorder
) -> None:
    body = urlencode(message())
    headers = {SIGNATURE_HEADER: signature(PUBLIC + TWILIO_MESSAGES, message(), TOKEN)}
    async with gateway() as http:
        answer = await http.post(TWILIO_MESSAGES, content=body, headers={**headers, "Content-Type": "application/json"})
    assert answer.status_code == 403
    assert inbox.untouched


async def test_a_hash_in_the_query_does_not_stand_in_for_the_pairs_of_a_form(gateway: Opened, inbox: Recorder) -> None:
    body = urlencode(message()).encode()
    path = hashed(TWILIO_MESSAGES, body)
    headers = {SIGNATURE_HEADER: signature(PUBLIC + path, [], TOKEN), "Content-Type": FORM}
    async with gateway() as http:
        assert (await http.post(path, content=body, headers=headers)).status_code == 403
    assert inbox.untouched


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"7", b'"x"', b"{", b"\xff{}", b"[" * 30_000, b'{"a": ' * 10_000, b"1" * 5_000, b"{}"]
)
async def test_signed_json_that_is_no_message_is_400_and_not_a_crash(
    gateway: Opened, inbox: Recorder, body: bytes
) -> None:
    async with gateway() as http:
        assert (await post_json(http, body)).status_code == 400
    assert inbox.untouched


async def test_what_we_act_upon_may_not_be_given_twice_in_json_either(gateway: Opened, inbox: Recorder) -> None:
    twice = as_json(message())[:-1] + b', "From": "whatsapp:+15559999999"}'
    async with gateway() as http:
        assert (await post_json(http, twice)).status_code == 400
    assert inbox.untouched


async def test_values_of_json_that_are_no_text_are_kept_as_json_and_halves_of_characters_are_not(
    gateway: Opened, inbox: Recorder
) -> None:
    body = as_json(message(), NumMedia=2, New={"a": [1, "é"]}, Nothing=None, Body="half \ud83d & more")
    async with gateway() as http:
        assert (await post_json(http, body)).status_code == 200
    (kept,) = inbox.messages
    assert (kept.media, kept.fields["New"], kept.text) == (2, '{"a": [1, "é"]}', "half ? & more")
    assert "Nothing" not in kept.fields


async def test_ampersands_in_json_are_not_taken_for_fields(gateway: Opened, inbox: Recorder) -> None:
    async with gateway() as http:
        assert (await post_json(http, as_json(message(Body="&" * 300)))).status_code == 200
        many = {f"Field{number}": "x" for number in range(201)}
        assert (await post_json(http, as_json(message(MessageSid="SM2"), **many))).status_code == 400
    assert [kept.message_id for kept in inbox.messages] == ["SM1"]


# ── shared keys ───────────────────────────────────────────────────────────────────────────────────────────────────


async def shared_post(
    http: httpx.AsyncClient, secret: str, settings: str = BY_SHARED_KEY, algorithm: str = "HMAC_SHA256"
) -> httpx.Response:
    given = signature(PUBLIC + TWILIO_MESSAGES, message(), secret, algorithm)
    headers = {SIGNATURE_HEADER: given, SETTINGS_HEADER: settings, "Content-Type": FORM}
    return await http.post(TWILIO_MESSAGES, content=urlencode(message()), headers=headers)


async def test_a_form_signed_by_a_shared_key_is_taken_while_one_key_replaces_another(
    gateway: Opened, inbox: Recorder
) -> None:
    async with gateway(shared_keys=["the next secret", SHARED]) as http:
        assert (await shared_post(http, SHARED)).status_code == 200
        assert (await shared_post(http, "the next secret")).status_code == 200
        assert (await post(http, message())).status_code == 200, "the account's token still signs what no rule matches"
    assert len(inbox.messages) == 1


@pytest.mark.parametrize(
    ("keys", "secret", "settings", "algorithm"),
    [
        ([SHARED], "another", BY_SHARED_KEY, "HMAC_SHA256"),
        ([SHARED], TOKEN, BY_SHARED_KEY, "HMAC_SHA256"),
        ([SHARED], SHARED, "key=webhooks_sharedkey_01,algorithm=HMAC_MD5", "HMAC_SHA256"),
        ([SHARED], SHARED, "key=webhooks_sharedkey_01,algorithm=HMAC_SHA1", "HMAC_SHA256"),
        ([SHARED], SHARED, "", "HMAC_SHA256"),
        ([SHARED], TOKEN, "", "HMAC_SHA256"),
        ([], TOKEN, BY_SHARED_KEY, "HMAC_SHA256"),
        ([""], "", BY_SHARED_KEY, "HMAC_SHA256"),
    ],
)
async def test_a_signature_by_another_key_or_algorithm_than_announced_is_403(
    gateway: Opened, inbox: Recorder, keys: list[str], secret: str, settings: str, algorithm: str
) -> None:
    async with gateway(shared_keys=keys) as http:
        answer = await shared_post(http, secret, settings, algorithm)
    assert (answer.status_code, "TWILIO_SHARED_KEY" in answer.text) == (403, bool(settings))
    assert inbox.untouched


async def test_json_may_be_signed_by_a_shared_key(gateway: Opened, inbox: Recorder) -> None:
    body = as_json(message())
    path = hashed(TWILIO_MESSAGES, body)
    headers = {
        SIGNATURE_HEADER: signature(PUBLIC + path, [], SHARED, "HMAC_SHA256"),
        SETTINGS_HEADER: BY_SHARED_KEY,
        "Content-Type": "application/json",
    }
    async with gateway(shared_keys=[SHARED]) as http:
        assert (await http.post(path, content=body, headers=headers)).status_code == 200
    assert len(inbox.messages) == 1


# ── our account, our numbers ──────────────────────────────────────────────────────────────────────────────────────


async def test_a_signed_form_of_another_account_is_403_and_the_log_says_so(
    gateway: Opened, inbox: Recorder, caplog: pytest.LogCaptureFixture
) -> None:
    async with gateway(account_sid=OURS) as http:
        for sid in (OTHER, None, "", OURS.lower()):
            assert (await post(http, message(AccountSid=sid))).status_code == 403
        twice = [*message(AccountSid=OURS), ("AccountSid", OTHER)]
        assert (await post(http, twice)).status_code == 403
        assert (await post(http, status(AccountSid=OTHER), TWILIO_STATUS)).status_code == 403
        assert inbox.untouched
        assert sum("TWILIO_ACCOUNT_SID" in record.getMessage() for record in caplog.records) == 6
        assert (await post(http, message(AccountSid=OURS))).status_code == 200
        assert (await post(http, status(AccountSid=OURS), TWILIO_STATUS)).status_code == 204


async def test_messages_to_each_of_our_numbers_are_chats_of_their_own(
    gateway: Opened, inbox: Recorder, caplog: pytest.LogCaptureFixture
) -> None:
    second = "+14155550000"
    async with gateway(numbers=(NUMBER, second)) as http:
        service = message(MessageSid="SM2", To=f"whatsapp:{second}", MessagingServiceSid="MG1")
        assert (await post(http, message())).status_code == (await post(http, service)).status_code == 200
    assert [kept.chat for kept in inbox.messages] == [f"{NUMBER}|{PERSON}", f"{second}|{PERSON}"]
    assert inbox.messages[1].fields["MessagingServiceSid"] == "MG1"
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_a_message_to_a_number_that_the_settings_lack_is_taken_and_the_log_says_what_to_set(
    gateway: Opened, inbox: Recorder, caplog: pytest.LogCaptureFixture
) -> None:
    async with gateway(account_sid=OURS, numbers=("+14155550000",)) as http:
        assert (await post(http, message(AccountSid=OURS))).status_code == 200
    assert [kept.recipient for kept in inbox.messages] == [NUMBER]
    (told,) = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert "TWILIO_NUMBERS" in told
    assert NUMBER not in told
