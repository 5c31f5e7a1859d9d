"""What the gateway bears, over a real socket: each gets a clear status and a short text, and keeps nobody waiting."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import socket
import sys
import time
from collections.abc import AsyncIterator, Sequence
from urllib.parse import urlencode

import httpx
import pytest
import uvicorn
import uvloop
from starlette.applications import Starlette

from mesh.adapters.twilio_signature import SIGNATURE_HEADER, parse_pairs
from mesh.gateway.app import TWILIO_MESSAGES, TWILIO_STATUS, create_app
from mesh.gateway.door import Bounds, configured, listening
from tests.bench import webhooks
from tests.contract.gateway_stage import (
    PUBLIC,
    TOKEN,
    Recorder,
    connected,
    headers_for,
    message,
    raw_post,
    request,
    rest,
    says,
    served,
    signed,
)

FAKE = f"{SIGNATURE_HEADER}: {'A' * 27}="


@pytest.fixture
def inbox() -> Recorder:
    return Recorder()


@pytest.fixture
def app(inbox: Recorder) -> Starlette:
    return create_app(
        inbox, public_url=PUBLIC, auth_token=TOKEN, read_seconds=0.3, store_seconds=0.3, refusal_seconds=0.05
    )


@pytest.fixture
async def port(app: Starlette) -> AsyncIterator[int]:
    """And the gateway is well after whatever was done to it."""
    async with served(app) as port:
        yield port
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as other:
            assert (await other.get("/healthz")).status_code == 200


def get(method: str = "GET", path: str = TWILIO_MESSAGES, *headers: str, version: str = "HTTP/1.1") -> bytes:
    return "\r\n".join((f"{method} {path} {version}", *(headers or ("Host: x",)), "", "")).encode("latin-1")


def form(body: bytes) -> bytes:
    """Forged: the signature has the form of one."""
    return request(body, FAKE, f"Content-Length: {len(body)}")


def heads(number: int, line: str = "a:b") -> bytes:
    return get("POST", TWILIO_MESSAGES, "Host: x", *([line] * number))


ABUSES: dict[str, dict[str, tuple[bytes, int]]] = {
    "methods and paths": {
        **{method: (get(method), 405) for method in ("GET", "PUT", "DELETE", "OPTIONS", "TRACE", "BREW", "post")},
        "CONNECT": (get("CONNECT", "evil.example:443"), 404),
        "OPTIONS *": (get("OPTIONS", "*"), 404),
        "POST to /readyz": (get("POST", "/readyz"), 405),
        "traversal": (get("GET", "/whatsapp/../../etc/passwd"), 404),
        "escaped traversal": (get("GET", "/%2e%2e/%2e%2e/etc/passwd"), 404),
        "NUL in the path": (get("GET", "/%00%0a%ff"), 404),
        "two slashes": (get("POST", "//whatsapp//twilio"), 404),
        "another address": (get("GET", "http://evil.example/healthz"), 404),
        "long path": (get("GET", "/" + "a" * 7000), 404),
        "longer path": (get("GET", "/" + "a" * 70_000), 431),
    },
    "headers": {
        "many headers": (heads(150), 431),
        "60 kB of short headers": (heads(12_000), 431),
        "60 kB in one header": (heads(1, "a:" + "b" * 60_000), 431),
        "no colon": (get("GET", "/healthz", "Host: x", "nonsense"), 400),
        "NUL in a header": (get("GET", "/healthz", "Host: x", "a: \0"), 400),
        "no host": (get("GET", "/healthz", "a: b"), 400),
        "two hosts": (get("GET", "/healthz", "Host: x", "Host: y"), 400),
        "a host that is none": (get("GET", "/nowhere", "Host: ["), 404),
        "upgrade": (get("GET", TWILIO_MESSAGES, "Host: x", "Connection: Upgrade", "Upgrade: websocket"), 405),
        "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 404),
        "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)) * 3 + b"\r\n\r\n", 400),
    },
    "lengths": {
        "1 MB": (form(b"Body=" + b"a" * 1_000_000), 413),
        "1 MB, unsigned": (request(b"Body=" + b"a" * 1_000_000), 413),
        "1 GB announced": (request(b"Body=" + b"a" * 9000, "Content-Length: 1000000000"), 413),
        "1 GB announced, and asked first": (request(b"", "Content-Length: 1000000000", "Expect: 100-continue"), 413),
        "10^19 bytes": (request(b"", f"Content-Length: {10**19}"), 413),
        "10^5000 bytes": (request(b"", f"Content-Length: 1{'0' * 5000}"), 400),
        "less than nothing": (request(b"", "Content-Length: -1"), 400),
        "two lengths": (request(b"ab", "Content-Length: 1", "Content-Length: 2"), 400),
        "endless chunks": (request(b"2000\r\n" + b"a" * 8192 + b"\r\n", "Transfer-Encoding: chunked"), 408),
        "1 MB in chunks": (request((b"8000\r\n" + b"a" * 0x8000 + b"\r\n") * 31, "Transfer-Encoding: chunked"), 413),
        "chunks of a byte": (request(b"1\r\na\r\n" * 20_000, "Transfer-Encoding: chunked"), 413),
        "a chunk of no size": (request(b"xyz\r\n", "Transfer-Encoding: chunked"), 400),
        "another coding": (request(b"ab", "Transfer-Encoding: gzip"), 501),
    },
    "forms": {
        "empty": (form(b""), 403),
        "unsigned": (request(urlencode(message()).encode()), 403),
        "no escapes": (form(b"Body=%zz%&%=&%"), 403),
        "NUL": (form(b"Body=%00\0"), 403),
        "lone surrogate": (form(b"Body=%ED%A0%80"), 400),
        "overlong": (form(b"Body=%C0%AF"), 400),
        "half a character": (form(b"Body=\xf0\x9f"), 400),
        "right to left": (form(b"Body=%E2%80%AEabc"), 403),
        "unsigned, and no UTF-8": (request(b"Body=%ED%A0%80"), 403),
        "300 fields": (form(b"a=1&" * 300), 400),
        "10,000 fields": (form(b"a=1&" * 10_000), 400),
        "60 kB in escapes": (form(b"Body=" + b"%41" * 20_000), 403),
    },
    "signed, but not what we act upon": {
        "another sender": (signed(message(From="sms:+15551230001")), 400),
        "no sid": (signed(message(MessageSid=None)), 400),
        "a sid with NUL": (signed(message(MessageSid="SM\0")), 400),
        "two bodies": (signed([*message(), ("Body", "again")]), 400),
        "two senders": (signed([*message(), ("From", "whatsapp:+15559999999")]), 400),
    },
}


@pytest.mark.parametrize("abuses", ABUSES.values(), ids=list(ABUSES))
async def test_an_abuse_gets_a_clear_status_and_a_short_text_and_leaves_nothing(
    port: int, inbox: Recorder, caplog: pytest.LogCaptureFixture, abuses: dict[str, tuple[bytes, int]]
) -> None:
    """All of a kind at once, each until the gateway hangs up."""
    caplog.set_level(logging.DEBUG)
    answers = await asyncio.gather(*(says(port, raw) for raw, _ in abuses.values()))
    got = dict(zip(abuses, answers, strict=True))
    assert {name: answer[9:12].decode() for name, answer in got.items()} == {
        name: str(status) for name, (_, status) in abuses.items()
    }
    for name, answer in got.items():
        head, _, text = answer.partition(b"\r\n\r\n")
        assert 5 < len(text) < 300, name
        assert b"Traceback" not in text, name
        assert (b"\r\nallow: " in head.lower()) == (abuses[name][1] == 405), name
    assert inbox.untouched
    assert not [record for record in caplog.records if record.exc_info or record.levelno > logging.WARNING]


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (get("HEAD"), b"405"),
        (get("HEAD", TWILIO_MESSAGES, "Host: x", "Transfer-Encoding: chunked") + b"xyz\r\n", b"400 405"),
    ],
    ids=["wrong method", "and a chunk of no size: either may be seen first"],
)
async def test_an_answer_to_head_has_no_body(
    port: int, caplog: pytest.LogCaptureFixture, raw: bytes, status: bytes
) -> None:
    answer = await says(port, raw)
    assert answer[9:12] in status.split()
    assert answer.endswith(b"\r\n\r\n")
    assert not [record for record in caplog.records if record.exc_info]


async def test_what_is_odd_but_right_is_accepted(port: int, inbox: Recorder) -> None:
    rightful = {
        "SM-old": signed(message(MessageSid="SM-old"), version="1.0"),
        "SM-long": signed(message(MessageSid="SM-long", Body="अ" * 4000)),
        "SM-bidi": signed(message(MessageSid="SM-bidi", Body="\u202eabc\0")),
    }
    body = urlencode(message(MessageSid="SM-chunks")).encode()
    signature = f"{SIGNATURE_HEADER}: {headers_for(message(MessageSid='SM-chunks'))[SIGNATURE_HEADER]}"
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in (body[:50], body[50:])) + b"0\r\n\r\n"
    rightful["SM-chunks"] = request(chunks, signature, "Transfer-Encoding: chunked", "Connection: close")
    for raw in rightful.values():
        async with connected(port) as (reader, writer), asyncio.timeout(5):
            writer.write(raw)
            assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")
    assert {kept.message_id for kept in inbox.messages} == set(rightful)


async def test_requests_in_one_packet_are_answered_one_after_the_other(port: int, inbox: Recorder) -> None:
    raw = signed(message()) + signed(message(MessageSid="SM2")) + get("GET", "/nowhere")
    answer = await says(port, raw)
    assert [part[:3] for part in answer.split(b"HTTP/1.1 ")[1:]] == [b"200", b"200", b"404"]
    assert [kept.message_id for kept in inbox.messages] == ["SM1", "SM2"]


async def test_a_huge_body_is_turned_away_while_it_is_still_being_sent(port: int, inbox: Recorder) -> None:
    for header in ("Content-Length: 1000000000", "Transfer-Encoding: chunked"):
        sent = 0
        async with connected(port) as (reader, writer), asyncio.timeout(10):
            writer.write(request(b"", FAKE, header))
            answer = asyncio.ensure_future(rest(reader))
            with contextlib.suppress(ConnectionError):
                while not answer.done():
                    writer.write(b"8000\r\n" + b"a" * 0x8000 + b"\r\n")
                    sent += 0x8000
                    await writer.drain()
            assert (await answer).startswith(b"HTTP/1.1 413 ")
        assert sent < 20_000_000
    assert inbox.untouched


async def test_a_body_that_does_not_arrive_in_time_is_408(port: int, inbox: Recorder) -> None:
    answer = await raw_post(port, b"Body=hel", "Content-Length: 100")
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert inbox.untouched


async def drip(port: int, first: bytes, drop: bytes) -> tuple[bytes, float]:
    """Sends a drop every 50 ms. Returns what came back, and after how many seconds the gateway hung up."""
    async with connected(port) as (reader, writer), asyncio.timeout(5):
        began = time.monotonic()
        writer.write(first)
        answer = asyncio.ensure_future(rest(reader))
        while not answer.done():
            await asyncio.wait([answer], timeout=0.05)
            writer.write(drop)
        return await answer, time.monotonic() - began


@pytest.mark.parametrize(
    ("first", "drop"),
    [
        (b"G", b"E"),
        (b"POST / HTTP/1.1\r\nHost: x\r\n", b"A: b\r\n"),
        (get("GET", "/healthz"), b"G"),
        (request(b"B", "Content-Length: 60000"), b"a"),
        (request(b"", "Transfer-Encoding: chunked"), b"1\r\na\r\n"),
    ],
    ids=["request line", "headers", "second request", "body", "chunks"],
)
async def test_drops_do_not_buy_time(port: int, first: bytes, drop: bytes) -> None:
    answer, lasted = await drip(port, first, drop)
    assert answer.rpartition(b"HTTP/1.1 ")[2].startswith(b"408 ")
    assert lasted < 2


async def test_one_who_says_nothing_is_hung_up_on(port: int) -> None:
    assert await says(port, b"") == b""


async def test_a_body_that_nobody_reads_ends_the_connection(port: int) -> None:
    answer, lasted = await drip(port, get("GET", "/healthz", "Host: x", "Content-Length: 1000000000"), b"a" * 1000)
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert lasted < 2


async def test_a_caller_who_hangs_up_in_the_middle_does_no_harm(port: int, inbox: Recorder) -> None:
    async with connected(port) as (reader, writer):
        writer.write(request(b"Bo", "Content-Length: 99"))
        writer.close()
        await writer.wait_closed()
        assert await reader.read() == b""
    assert inbox.untouched


async def test_when_it_is_full_who_keeps_us_waiting_longest_goes(app: Starlette, inbox: Recorder) -> None:
    async with (
        served(app, bounds=Bounds(connections=2, head_seconds=60)) as port,
        connected(port) as (first, slow),
        connected(port) as (second, _),
        connected(port) as (third, writer),
        asyncio.timeout(10),
    ):
        slow.write(b"POST / HTTP/1.1\r\n")
        writer.write(signed(message()))
        assert (await third.readline()).startswith(b"HTTP/1.1 200 ")
        assert (await rest(first)).startswith(b"HTTP/1.1 503 ")
        assert not second.at_eof()
    assert not inbox.untouched


async def test_when_it_is_full_of_work_a_newcomer_is_told(app: Starlette, inbox: Recorder) -> None:
    inbox.stuck = True
    async with (
        served(app, bounds=Bounds(connections=2)) as port,
        connected(port) as (_, one),
        connected(port) as (_, two),
        asyncio.timeout(10),
    ):
        one.write(signed(message()))
        two.write(signed(message()))
        while inbox.open < 2:
            await asyncio.sleep(0)
        assert (await says(port, b"")).startswith(b"HTTP/1.1 503 ")


LARGE = b"Body=" + b"%41" * 8_000


async def test_large_forged_forms_do_not_keep_a_message_waiting(port: int, inbox: Recorder) -> None:
    """By the order in which they are answered: the message comes last, and is among the first."""
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as http:
        assert (await http.get("/healthz")).status_code == 200
        forged = [asyncio.create_task(says(port, form(LARGE))) for _ in range(80)]
        while not any(task.done() for task in forged):
            await asyncio.sleep(0)
        answer = await http.post(TWILIO_MESSAGES, content=urlencode(message()), headers=headers_for(message()))
        answered = [task.result()[9:12] for task in forged if task.done()]
        statuses = [(await task)[9:12] for task in forged]
    assert answer.status_code == 200
    assert answered.count(b"403") < 25
    assert set(statuses) == {b"403", b"503"}  # not all of them may stand in line


async def test_large_forged_forms_get_a_small_share_of_the_time(port: int) -> None:
    def parsed() -> float:
        began = time.perf_counter()
        parse_pairs(LARGE)
        return time.perf_counter() - began

    cost = min(parsed() for _ in range(5))
    began = time.perf_counter()
    await asyncio.gather(*(says(port, form(LARGE)) for _ in range(10)))
    assert time.perf_counter() - began > 10 * cost * 5


async def test_a_refusal_is_held_back_and_a_message_is_not(inbox: Recorder) -> None:
    app = create_app(inbox, public_url=PUBLIC, auth_token=TOKEN, refusal_seconds=2.0)
    bounds = Bounds(refusal_seconds=2.0)
    async with served(app, bounds=bounds) as port:
        refused = [asyncio.create_task(says(port, raw)) for raw in (get("PUT"), b"\0\r\n\r\n")]
        async with connected(port) as (reader, writer), asyncio.timeout(5):
            for number in range(20):
                writer.write(signed(message(MessageSid=f"SM{number}")))
                assert (await reader.readuntil(b"<Response/>")).startswith(b"HTTP/1.1 200 ")
        assert not any(task.done() for task in refused)
        assert [(await task)[9:12] for task in refused] == [b"405", b"400"]


async def test_messages_are_accepted_while_many_misbehave(inbox: Recorder) -> None:
    """As the benchmark has it, with fewer of them; how long it takes is in docs/benchmarks.md."""
    app = create_app(inbox, public_url=PUBLIC, auth_token=TOKEN)
    async with served(app, bounds=Bounds()) as port:
        options = json.dumps({"port": port, "connections": 2 * len(webhooks.ABUSES), "seconds": 4})
        command = (sys.executable, "-m", "tests.bench.webhooks", "abuse", options)
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        honest = await webhooks.load(port, rate=25, seconds=4, chats=10, tag="t")
        out, _ = await process.communicate()
    refused = {status for statuses in json.loads(out).values() for status in statuses}
    assert (honest["errors"], len(inbox.messages)) == ({}, 100)
    assert honest["p50_ms"] < 50
    assert refused - {"closed"} <= {"400", "403", "404", "405", "408", "413", "431", "503"}
    assert len(refused) > 5


async def test_of_what_is_refused_the_log_holds_path_and_status_alone(
    port: int, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    for name in ("uvicorn", "uvicorn.error"):  # another server in this process may have set them otherwise
        caplog.set_level(logging.DEBUG, logger=name)
        monkeypatch.setattr(logging.getLogger(name), "propagate", True)
    secret = "do-not-log-me"
    raws: Sequence[bytes] = (
        request(f"Body={secret}".encode(), FAKE, f"Content-Length: {len(secret) + 5}", f"X-Note: {secret}"),
        get("PUT", f"{TWILIO_STATUS}?note={secret}", "Host: x", f"Cookie: {secret}"),
        heads(150, f"a: {secret}"),
        get(secret, "/" + "a" * 5000),
        b"\0" * 1_000_000,
    )
    for raw in raws:
        await says(port, raw)
    lines = [record.getMessage() for record in caplog.records if record.name.startswith(("mesh", "uvicorn.error"))]
    assert [line for line in lines if "refused" in line] == [
        f"refused status=403 path={TWILIO_MESSAGES!r}",
        f"refused status=405 path={TWILIO_STATUS!r}",
        "refused status=431",
        f"refused status=404 path={'/' + 'a' * 119!r}",
        "refused status=431",
    ]
    assert "Invalid HTTP request received." in lines
    assert not any(secret in line for line in lines)


def test_many_connections_are_accepted_in_one_round_of_the_loop(app: Starlette) -> None:
    """Of uvloop's, which the process runs on: it takes one of each listener."""

    async def rounds_for(many: int) -> int:
        class Server(uvicorn.Server):
            async def main_loop(self) -> None:
                """Instead of waiting for a signal: connects, and counts the rounds until all are accepted."""
                waiting = [socket.create_connection(address) for _ in range(many)]
                while len(self.server_state.connections) < many:
                    self.rounds += 1
                    await asyncio.sleep(0)
                for each in waiting:
                    each.close()

            rounds = 0

        config = configured(app)
        listeners = listening(config)
        address: tuple[str, int] = listeners[0].getsockname()
        server = Server(config)
        await server.serve(listeners)
        return server.rounds

    assert uvloop.run(rounds_for(64)) < 30
