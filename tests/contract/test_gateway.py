"""The gateway: what it takes, what it turns away, and what it never lets near the inbox."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import sys
from collections.abc import AsyncIterator
from urllib.parse import urlencode

import httpx
import pytest
from starlette.applications import Starlette

from mesh.adapters.twilio import TwilioChannel
from mesh.adapters.twilio_signature import SIGNATURE_HEADER, Pairs, signature
from mesh.connections import connect
from mesh.envelope import pseudonym
from mesh.errors import Misconfigured, Unavailable
from mesh.gateway.app import FORM, TWILIO_MESSAGES, TWILIO_STATUS, create_app
from mesh.ledger import Ledger
from mesh.ports.channel import Delivery
from mesh.testing.phone import Phone
from tests.contract.gateway_stage import (
    NUMBER,
    PERSON,
    PUBLIC,
    TOKEN,
    Recorder,
    headers_for,
    message,
    post,
    served,
    status,
)


@pytest.fixture
def inbox() -> Recorder:
    return Recorder()


@pytest.fixture
def app(inbox: Recorder) -> Starlette:
    return create_app(
        inbox,
        public_url=PUBLIC,
        auth_token=TOKEN,
        body_limit=4096,
        read_seconds=0.3,
        store_seconds=0.3,
        refusal_seconds=0.0,
    )


@pytest.fixture
async def http(app: Starlette) -> AsyncIterator[httpx.AsyncClient]:
    """Its host is not the public one, as behind a proxy."""
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://10.0.0.5:8080") as client:
        yield client


async def test_a_signed_message_is_accepted_and_answered_with_an_empty_twiml(
    http: httpx.AsyncClient, inbox: Recorder
) -> None:
    answer = await post(http, message())
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/xml")
    assert answer.text.endswith("<Response/>")
    (kept,) = inbox.messages
    assert (kept.message_id, kept.sender, kept.recipient) == ("SM1", PERSON, NUMBER)
    assert kept.text == " a secret question "


async def test_a_duplicate_is_answered_like_the_first_and_kept_once(http: httpx.AsyncClient, inbox: Recorder) -> None:
    answers = [await post(http, message()) for _ in range(3)]
    assert {(answer.status_code, answer.text) for answer in answers} == {(200, answers[0].text)}
    assert len(inbox.messages) == 1


@pytest.mark.parametrize("path", [TWILIO_MESSAGES, TWILIO_STATUS])
@pytest.mark.parametrize("forged", [None, "", "Zm9yZ2Vk", "é".encode()])
async def test_a_forged_or_missing_signature_is_403_and_the_inbox_is_untouched(
    http: httpx.AsyncClient, inbox: Recorder, path: str, forged: str | bytes | None
) -> None:
    headers: dict[str, str | bytes] = {"Content-Type": FORM}
    if forged is not None:
        headers[SIGNATURE_HEADER] = forged
    raw = [(name.encode(), value.encode() if isinstance(value, str) else value) for name, value in headers.items()]
    answer = await http.post(path, content=urlencode([*message(), *status()]), headers=raw)
    assert answer.status_code == 403
    assert "PUBLIC_URL" in answer.text
    assert inbox.untouched


@pytest.mark.parametrize(
    "altered",
    [
        message(From="whatsapp:+15559999999"),
        message(Body="a secret question"),
        message(Extra="1"),
        message(ProfileName=None),
    ],
)
async def test_an_altered_form_is_403_and_the_inbox_is_untouched(
    http: httpx.AsyncClient, inbox: Recorder, altered: Pairs
) -> None:
    answer = await http.post(TWILIO_MESSAGES, content=urlencode(altered), headers=headers_for(message()))
    assert answer.status_code == 403
    assert inbox.untouched


async def test_a_signature_for_one_address_is_not_good_for_another(http: httpx.AsyncClient, inbox: Recorder) -> None:
    both = [*message(), ("SmsStatus", "delivered")]
    answer = await http.post(TWILIO_STATUS, content=urlencode(both), headers=headers_for(both, TWILIO_MESSAGES))
    assert answer.status_code == 403
    assert inbox.untouched


async def test_forwarded_headers_can_not_choose_the_address_that_was_signed(
    http: httpx.AsyncClient, inbox: Recorder
) -> None:
    pairs = message()
    lies = {"Host": "evil.example", "X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "https"}
    signed = {
        SIGNATURE_HEADER: signature("https://evil.example" + TWILIO_MESSAGES, pairs, TOKEN),
        "Content-Type": FORM,
    }
    answer = await http.post(TWILIO_MESSAGES, content=urlencode(pairs), headers={**lies, **signed})
    assert answer.status_code == 403
    honest = await http.post(TWILIO_MESSAGES, content=urlencode(pairs), headers={**lies, **headers_for(pairs)})
    assert honest.status_code == 200


async def test_a_query_is_part_of_the_signed_address(http: httpx.AsyncClient) -> None:
    path = TWILIO_MESSAGES + "?b=it's%201&a=2"
    assert (await post(http, message(), path)).status_code == 200
    unsigned = await http.post(path, content=urlencode(message()), headers=headers_for(message()))
    assert unsigned.status_code == 403


async def test_an_inbox_that_is_unavailable_is_503_with_retry_after(http: httpx.AsyncClient, inbox: Recorder) -> None:
    inbox.trouble = Unavailable(detail="redis is away")
    for pairs, path in ((message(), TWILIO_MESSAGES), (status(), TWILIO_STATUS)):
        answer = await post(http, pairs, path)
        assert (answer.status_code, int(answer.headers["retry-after"]) > 0) == (503, True)
        assert "redis" not in answer.text
    inbox.trouble = None
    assert (await post(http, message())).status_code == 200


async def test_an_inbox_that_does_not_answer_is_503_before_twilio_gives_up(
    http: httpx.AsyncClient, inbox: Recorder
) -> None:
    inbox.stuck = True
    assert (await post(http, message())).status_code == 503


async def test_a_status_callback_reaches_the_inbox(http: httpx.AsyncClient, inbox: Recorder) -> None:
    answer = await post(http, status(MessageStatus="undelivered", ErrorCode="63024"), TWILIO_STATUS)
    assert answer.status_code == 204
    assert inbox.deliveries == [Delivery("SM9", "undelivered", "63024")]


@pytest.mark.parametrize("missing", ["MessageSid", "From", "To"])
async def test_a_signed_form_without_what_we_act_upon_is_400(
    http: httpx.AsyncClient, inbox: Recorder, missing: str
) -> None:
    assert (await post(http, message(**{missing: None}))).status_code == 400
    assert inbox.untouched


@pytest.mark.parametrize("raw", [b"Body=%ff", b"Body=\xff", b"Body=%ED%A0%BD", b"&".join([b"a=1"] * 600)])
async def test_a_form_that_is_not_utf8_is_400_and_not_a_crash(
    http: httpx.AsyncClient, inbox: Recorder, raw: bytes
) -> None:
    answer = await http.post(TWILIO_MESSAGES, content=raw, headers=headers_for([]))
    assert answer.status_code == 400
    assert inbox.untouched


@pytest.mark.parametrize(
    "text", ["\ufffe\u202eabc\u202c", "\u200fשלום\u200e", "e\u0301👩‍👩‍👧", "", "&=+%", "a\tb\n" * 50, "\u2028\ufeff"]
)
async def test_odd_characters_arrive_unchanged(http: httpx.AsyncClient, inbox: Recorder, text: str) -> None:
    assert (await post(http, message(Body=text))).status_code == 200
    assert inbox.messages[0].text == text


@pytest.mark.parametrize(
    ("text", "arrives"),
    [
        ("\0", ""),
        ("a\0b", "ab"),
        ("a\x1b[31mb\x7f\x85", "a[31mb"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("\0\u202e\0א", "\u202eא"),
    ],
)
async def test_control_characters_do_not_get_past_the_border(
    http: httpx.AsyncClient, inbox: Recorder, text: str, arrives: str
) -> None:
    assert (await post(http, message(Body=text, ProfileName=text))).status_code == 200
    (kept,) = inbox.messages
    assert (kept.text, kept.fields["Body"], kept.fields["ProfileName"]) == (arrives, arrives, arrives)


async def test_odd_text_is_in_the_ledger_as_it_arrived_and_without_control_characters(redis_url: str) -> None:
    redis = connect(redis_url)
    ledger = Ledger(redis)
    app = create_app(ledger, public_url=PUBLIC, auth_token=TOKEN)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://10.0.0.5:8080") as http:
        assert (await post(http, message(Body="\u202eשלום\0 👋\x1b\r\nagain\ufffe"))).status_code == 200
    kept = await ledger.message("SM1")
    assert kept is not None
    assert kept.text == kept.fields["Body"] == "\u202eשלום 👋\nagain\ufffe"
    await ledger.close()
    await redis.aclose()


async def test_a_status_callback_at_the_address_for_messages_does_not_become_a_message(
    http: httpx.AsyncClient, inbox: Recorder
) -> None:
    assert (await post(http, message(MessageStatus="delivered"))).status_code == 400
    assert inbox.untouched


@pytest.mark.parametrize("kind", ["application/xml", "multipart/form-data; boundary=x", "text/plain", ""])
async def test_another_content_type_is_415(http: httpx.AsyncClient, inbox: Recorder, kind: str) -> None:
    headers = {**headers_for(message()), "Content-Type": kind}
    answer = await http.post(TWILIO_MESSAGES, content=urlencode(message()), headers=headers)
    assert (answer.status_code, FORM in answer.text) == (415, True)
    assert inbox.untouched


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH"])
@pytest.mark.parametrize("path", [TWILIO_MESSAGES, TWILIO_STATUS])
async def test_another_method_is_405(http: httpx.AsyncClient, method: str, path: str) -> None:
    assert (await http.request(method, path)).status_code == 405


@pytest.mark.parametrize("path", ["/docs", "/redoc", "/openapi.json", "/", TWILIO_MESSAGES + "/"])
async def test_nothing_else_is_served(http: httpx.AsyncClient, path: str) -> None:
    assert (await http.get(path)).status_code == 404


async def test_alive_and_ready_are_told_apart(http: httpx.AsyncClient, inbox: Recorder) -> None:
    assert [(await http.get(path)).status_code for path in ("/healthz", "/readyz")] == [200, 200]
    inbox.is_ready = False
    assert [(await http.get(path)).status_code for path in ("/healthz", "/readyz")] == [200, 503]
    inbox.trouble = Unavailable()
    assert [(await http.get(path)).status_code for path in ("/healthz", "/readyz")] == [200, 503]


async def test_the_log_names_the_client_by_pseudonym_and_holds_no_text_and_no_number(
    http: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "mesh")
    await post(http, message())
    await post(http, status(), TWILIO_STATUS)
    await http.post(TWILIO_MESSAGES, content=urlencode(message()), headers={"Content-Type": FORM})
    await http.get("/a%0Aforged line")
    lines = [record.getMessage() for record in caplog.records if record.name.startswith("mesh")]
    assert pseudonym(PERSON) in lines[0]
    assert len(lines) == 4
    for line in lines:
        assert "\n" not in line
        assert not any(private in line for private in ("secret", PERSON.removeprefix("+"), "Asha"))


async def test_a_body_at_the_limit_is_read_and_one_byte_more_is_413(http: httpx.AsyncClient, inbox: Recorder) -> None:
    room = 4096 - len(urlencode(message(Body="")))
    assert (await post(http, message(Body="x" * room))).status_code == 200
    assert (await post(http, message(MessageSid="SM2", Body="x" * (room + 1)))).status_code == 413
    assert [kept.message_id for kept in inbox.messages] == ["SM1"]


@pytest.mark.parametrize(("public", "token"), [("mesh.example.com", TOKEN), (PUBLIC, ""), ("", TOKEN)])
def test_a_gateway_that_could_not_tell_friend_from_foe_does_not_start(inbox: Recorder, public: str, token: str) -> None:
    with pytest.raises(Misconfigured):
        create_app(inbox, public_url=public, auth_token=token)


@contextlib.asynccontextmanager
async def simulated_twilio(public: str, sid: str) -> AsyncIterator[str]:
    arguments = ["--port", "0", "--webhook", public + TWILIO_MESSAGES, "--number", NUMBER]
    account = ["--account-sid", sid, "--auth-token", TOKEN]
    command = [sys.executable, "-m", "mesh.testing.twilio", *arguments, *account]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    try:
        yield (await process.stdout.readline()).decode().split()[-1]
    finally:
        process.terminate()
        await process.communicate()


async def test_the_simulated_twilio_and_the_gateway_understand_each_other(inbox: Recorder) -> None:
    sid, listener = "AC" + "2" * 32, socket.create_server(("127.0.0.1", 0))
    public = f"http://127.0.0.1:{listener.getsockname()[1]}"
    app = create_app(inbox, public_url=public, auth_token=TOKEN)
    async with served(app, listener), simulated_twilio(public, sid) as base:
        channel = TwilioChannel(sid, TOKEN, api_base=base, status_callback=public + TWILIO_STATUS)
        async with Phone(base) as phone, asyncio.timeout(10):
            told = await phone.say(PERSON, " ¿Hola? 👋\n")
            replayed = await phone.post(PERSON, " ¿Hola? 👋\n", message_sid=told)
            anonymous = await phone.post("whatsapp:US.1349", "hi", fields={"ProfileName": None, "New": "1"})
            sent = await channel.send(sender=NUMBER, recipient=PERSON, text="Hello")
            while len(inbox.deliveries) < 2:
                inbox.news.clear()
                await inbox.news.wait()
        await channel.close()
    assert (replayed.status, anonymous.status) == (200, 200)
    said = [(kept.sender, kept.text) for kept in inbox.messages]
    assert said == [(PERSON, " ¿Hola? 👋\n"), ("whatsapp:US.1349", "hi")]
    assert inbox.messages[0].message_id == told
    assert inbox.deliveries == [Delivery(sent, "sent"), Delivery(sent, "delivered")]
