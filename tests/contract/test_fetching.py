"""Fetching a person's file from a server that misbehaves: a real one, on loopback."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gzip
import ssl
import subprocess
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mesh.adapters.fetching import LATE_S, Fetcher, Places
from mesh.adapters.twilio import TwilioChannel
from mesh.errors import MeshError, NotFound, Unavailable, Unreadable
from mesh.ports.channel import Attachment, Channel, Media
from tests.simulated import SID, TOKEN, opened, talking

PDF = b"%PDF-1.7 a page"
MOST = 1000
BASIC = "Basic " + base64.b64encode(f"{SID}:{TOKEN}".encode()).decode()
Answers = Callable[[str, int], bytes]
"""By path, and how often it was asked for before."""


def answer(body: bytes = PDF, status: str = "200 OK", **headers: str) -> bytes:
    stated = {"Content-Type": "application/pdf", "Content-Length": str(len(body)), "Connection": "close"}
    stated |= {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in stated.items() if value)]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def redirect(to: str, status: str = "307 Temporary Redirect") -> bytes:
    return answer(b"", status, Location=to)


class Server:
    """What it was asked, and its answers."""

    def __init__(self, answers: Mapping[str, bytes] | Answers) -> None:
        self._answers = answers if callable(answers) else lambda path, _: answers.get(path, b"")
        self.asked: list[tuple[str, dict[str, str]]] = []

    @property
    def paths(self) -> list[str]:
        return [path for path, _ in self.asked]

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        path = head[0].split(" ")[1]
        before = self.paths.count(path)
        self.asked.append((path, {name.lower(): value for name, _, value in (line.partition(": ") for line in head)}))
        writer.write(self._answers(path, before))
        await writer.drain()


class Names:
    """A resolver that knows these names and counts."""

    def __init__(self, **numbers: Sequence[str] | Exception) -> None:
        self._numbers = {name.replace("_", "."): found for name, found in numbers.items()}
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        found = self._numbers.get(host, ["127.0.0.1"])
        if isinstance(found, Exception):
            raise found
        return found


@contextlib.asynccontextmanager
async def fetching(
    base: str, resolve: Names | None = None, *, total: float = 10.0, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Fetcher]:
    places = Places(
        hosts=("*.twilio.com", "files.example.com/ours/"),
        authorization=BASIC,
        trusted=("api.twilio.com",),
        local=base,
    )
    fetcher = Fetcher(places, resolve=resolve, tls=tls, total_seconds=total, late_seconds=(0.05, 0.05))
    try:
        yield fetcher
    finally:
        await fetcher.close()


async def fetched(
    answers: Mapping[str, bytes] | Answers, path: str = "/m", *, media_type: str = "application/pdf", name: str = ""
) -> Media:
    server = Server(answers)
    async with talking(server.talk) as base, fetching(base) as fetcher:
        return await fetcher.fetch(Attachment(base + path, media_type, name), most_bytes=MOST)


async def trouble(
    fetcher: Fetcher, reference: str, media_type: str = "application/pdf", most_bytes: int = MOST
) -> MeshError:
    with pytest.raises(MeshError) as caught:
        await fetcher.fetch(Attachment(reference, media_type), most_bytes=most_bytes)
    return caught.value


# ── as it should be ───────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_file_is_fetched_with_the_credentials_and_uncompressed() -> None:
    server = Server({"/m": answer()})
    async with talking(server.talk) as base, fetching(base) as fetcher:
        media = await fetcher.fetch(Attachment(f"{base}/m", "application/pdf", "contract.pdf"), most_bytes=MOST)
    assert media == Media(PDF, "application/pdf", "contract.pdf")
    ((_, headers),) = server.asked
    assert headers["authorization"] == BASIC
    assert headers["accept-encoding"] == "identity"
    assert headers["host"] == base.removeprefix("http://")


async def test_twilios_channel_fetches_from_the_simulated_twilio_by_its_own_credentials() -> None:
    server = Server({"/m": redirect("/n"), "/n": answer()})
    async with talking(server.talk) as base, opened(base) as channel:
        as_port: Channel = channel
        media = await as_port.fetch(Attachment(f"{base}/m", "application/pdf"), most_bytes=MOST)
    assert media.raw == PDF
    assert [headers["authorization"] for _, headers in server.asked] == [BASIC, BASIC]


async def test_a_file_that_comes_a_moment_late_is_waited_for() -> None:
    media = await fetched(lambda _, before: answer() if before == 2 else answer(b"", "404 Not Found"))
    assert media.raw == PDF


async def test_a_file_that_the_provider_has_no_more_is_not_found_after_three_tries_within_three_seconds() -> None:
    assert (len(LATE_S), sum(LATE_S) < 3) == (2, True)
    server = Server({"/m": answer(b"", "404 Not Found")})
    async with talking(server.talk) as base, fetching(base) as fetcher:
        found = await trouble(fetcher, f"{base}/m")
    assert isinstance(found, NotFound)
    assert "send it again" in found.user_text
    assert server.paths == ["/m"] * 3


async def test_the_body_may_come_without_its_length() -> None:
    chunked = b"5\r\n%PDF-\r\n3\r\n1.7\r\n0\r\n\r\n"
    media = await fetched({"/m": answer(b"", Content_Length="", Transfer_Encoding="chunked") + chunked})
    assert media.raw == b"%PDF-1.7"


@pytest.mark.parametrize(
    "status", ["500 Oops", "503 Busy", "429 Too Many", "401 Unauthorized", "403 Forbidden", "206 Part"]
)
async def test_a_provider_that_does_not_hand_it_out_now_is_unavailable_and_is_not_asked_again(status: str) -> None:
    server = Server({"/m": answer(status=status)})
    async with talking(server.talk) as base, fetching(base) as fetcher:
        found = await trouble(fetcher, f"{base}/m")
    assert isinstance(found, Unavailable)
    assert f"status={status[:3]}" in found.detail
    assert server.paths == ["/m"]


@pytest.mark.parametrize(
    "broken", [b"", b"not http\r\n\r\n", answer(Content_Length="100"), answer(Content_Length="-1")]
)
async def test_an_answer_that_is_none_or_ends_early_is_unavailable(broken: bytes) -> None:
    with pytest.raises(Unavailable):
        await fetched({"/m": broken})


async def test_nobody_there_is_unavailable() -> None:
    async with fetching("http://127.0.0.1:9") as fetcher:
        assert isinstance(await trouble(fetcher, "http://127.0.0.1:9/m"), Unavailable)


async def test_a_host_whose_first_address_does_not_answer_is_reached_at_its_second() -> None:
    server, names = Server({"/m": answer()}), Names(localhost=["127.0.0.9", "127.0.0.1"])
    async with talking(server.talk) as base, fetching(base, names) as fetcher:
        local = base.replace("127.0.0.1", "localhost")
        media = await fetcher.fetch(Attachment(f"{local}/m", "application/pdf"), most_bytes=MOST)
    assert media.raw == PDF


# ── where it may be ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "elsewhere",
    [
        "http://api.twilio.com/m",
        "https://api.twilio.com:8443/m",
        "https://api.twilio.com.evil.example/m",
        "https://eviltwilio.com/m",
        "https://twilio.com/m",
        "https://api.twilio.com@evil.example/m",
        "https://someone:secret@api.twilio.com/m",
        "https://evil.example%2f.twilio.com/m",
        "https://evil.example\\.twilio.com/m",
        "https://files.example.com/theirs/m",
        "https://files.example.com/ours/../theirs/m",
        "https://files.example.com/ours/%2e%2e/theirs/m",
        "https://127.0.0.1/m",
        "https://[::1]/m",
        "http://127.0.0.1:1/m",
        "http://127.0.0.2:{port}/m",
        "https://localhost:{port}/m",
        "http://169.254.169.254/latest/meta-data/",
        "file:///etc/passwd",
        "ftp://api.twilio.com/m",
        "//api.twilio.com/m",
        "/m",
        "",
        "https://",
        "https://xn--a.twilio.com/m",
        "https://api.twilio.com/m\r\nX: y",
        "https://\ud83d.twilio.com/m",
    ],
)
async def test_an_address_that_is_not_the_providers_is_refused_without_being_asked(elsewhere: str) -> None:
    server, names = Server({"/m": answer()}), Names()
    async with talking(server.talk) as base, fetching(base, names) as fetcher:
        reference = elsewhere.replace("{port}", base.rpartition(":")[2])
        found = await trouble(fetcher, reference)
    assert isinstance(found, Unreadable)
    assert "send it" in found.user_text
    assert (server.asked, names.asked) == ([], [])


@pytest.mark.parametrize(
    "number",
    [
        *("10.0.0.1", "172.16.0.1", "192.168.1.1", "127.0.0.1", "169.254.169.254", "100.64.0.1", "0.0.0.0"),
        *("224.0.0.1", "240.0.0.1", "255.255.255.255", "192.0.2.1", "198.18.0.1"),
        *("::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "fec0::1", "ff02::1", "2001:db8::1"),
        *("::ffff:127.0.0.1", "::ffff:8.8.8.8", "64:ff9b::a9fe:a9fe", "2002:7f00:1::1", "::127.0.0.1"),
    ],
)
async def test_a_name_of_the_providers_that_leads_to_us_is_refused_also_beside_a_good_address(number: str) -> None:
    for numbers in ([number], ["8.8.8.8", number]):
        names = Names(api_twilio_com=numbers)
        async with fetching("", names) as fetcher:
            found = await trouble(fetcher, "https://api.twilio.com/m")
        assert isinstance(found, Unreadable)
        assert "not allowed" in found.detail


async def test_a_name_that_nobody_knows_is_unavailable() -> None:
    async with fetching("", Names(api_twilio_com=OSError("no such name"))) as fetcher:
        assert isinstance(await trouble(fetcher, "https://api.twilio.com/m"), Unavailable)
    async with fetching("", Names(api_twilio_com=[])) as fetcher:
        assert isinstance(await trouble(fetcher, "https://api.twilio.com/m"), Unreadable)


async def test_the_simulated_provider_may_not_lead_away_from_this_machine() -> None:
    async with fetching("http://localhost:9010", Names(localhost=["10.0.0.1"])) as fetcher:
        assert isinstance(await trouble(fetcher, "http://localhost:9010/m"), Unreadable)
    with pytest.raises(ValueError, match="this machine"):
        Places(hosts=(), local="http://10.0.0.1:9010")


async def test_the_connection_goes_to_the_address_that_was_checked_and_the_name_is_asked_for_once() -> None:
    """Nobody but the resolver knows that this name is there: a second look-up would find 127.0.0.1, where nobody is."""
    server, names = Server({"/m": answer()}), Names(localhost=["127.0.0.7"])
    listening = await asyncio.start_server(_closing(server), "127.0.0.7", 0)
    port = listening.sockets[0].getsockname()[1]
    async with listening, fetching(f"http://localhost:{port}", names) as fetcher:
        reference = f"http://localhost:{port}/m"
        assert (await fetcher.fetch(Attachment(reference, "application/pdf"), most_bytes=MOST)).raw == PDF
    assert names.asked == ["localhost"]
    assert server.asked[0][1]["host"] == f"localhost:{port}"


def _closing(server: Server) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], asyncio.Future[None]]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await server.talk(reader, writer)
        writer.close()

    return lambda reader, writer: asyncio.ensure_future(serve(reader, writer))


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """For `localhost`, and not for its number."""
    folder = tmp_path_factory.mktemp("tls")
    key, made = folder / "key.pem", folder / "cert.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-nodes", "-days", "1", "-newkey", "ec"),
            *("-pkeyopt", "ec_paramgen_curve:prime256v1", "-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(made)),
        ],
        check=True,
        capture_output=True,
    )
    return key, made


async def test_over_tls_the_certificate_must_be_of_the_name_and_not_of_the_number(
    certificate: tuple[Path, Path],
) -> None:
    key, made = certificate
    server = Server({"/m": answer()})
    serving, trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context(cafile=str(made))
    serving.load_cert_chain(made, key)
    listening = await asyncio.start_server(_closing(server), "127.0.0.1", 0, ssl=serving)
    port = listening.sockets[0].getsockname()[1]
    async with listening:
        async with fetching(f"https://localhost:{port}", tls=trusting) as fetcher:
            media = await fetcher.fetch(Attachment(f"https://localhost:{port}/m", "application/pdf"), most_bytes=MOST)
            assert media.raw == PDF
        async with fetching(f"https://127.0.0.1:{port}", tls=trusting) as fetcher:
            assert isinstance(await trouble(fetcher, f"https://127.0.0.1:{port}/m"), Unavailable)
        async with fetching(f"https://localhost:{port}") as fetcher:
            assert isinstance(await trouble(fetcher, f"https://localhost:{port}/m"), Unavailable), "of no known maker"
    assert len(server.asked) == 1


# ── redirects ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_redirect_to_another_host_is_followed_without_the_credentials() -> None:
    server = Server({"/m": redirect("{other}/n"), "/n": redirect("/o"), "/o": redirect("{base}/p"), "/p": answer()})
    async with talking(server.talk) as base, fetching(base) as fetcher:
        other = base.replace("127.0.0.1", "localhost")
        named = {b"{other}": other.encode(), b"{base}": base.encode()}
        plain = server._answers

        def filled(path: str, before: int) -> bytes:
            found = plain(path, before)
            for name, value in named.items():
                found = found.replace(name, value)
            return found

        server._answers = filled
        media = await fetcher.fetch(Attachment(f"{base}/m", "application/pdf"), most_bytes=MOST)
    assert media.raw == PDF
    given = [(path, headers.get("authorization")) for path, headers in server.asked]
    assert given == [("/m", BASIC), ("/n", None), ("/o", None), ("/p", None)], "nor do they come back"


async def test_what_is_not_at_the_api_itself_gets_no_credentials() -> None:
    server = Server({"/m": answer()})
    async with talking(server.talk) as base, fetching(base) as fetcher:
        reference = base.replace("127.0.0.1", "localhost") + "/m"
        await fetcher.fetch(Attachment(reference, "application/pdf"), most_bytes=MOST)
    assert "authorization" not in server.asked[0][1]


@pytest.mark.parametrize(
    "where", ["http://169.254.169.254/latest/meta-data/", "{other}/m", "http://10.0.0.1/m", "file:///etc/passwd"]
)
@pytest.mark.parametrize("hops", [1, 3])
async def test_a_redirect_to_a_place_that_is_not_the_providers_is_refused_at_every_hop(where: str, hops: int) -> None:
    forbidden = Server({"/m": answer()})
    async with talking(forbidden.talk) as other:
        away = redirect(where.replace("{other}", other))
        server = Server({f"/{hop}": away if hop == hops else redirect(f"/{hop + 1}") for hop in range(1, hops + 1)})
        async with talking(server.talk) as base, fetching(base) as fetcher:
            assert isinstance(await trouble(fetcher, f"{base}/1"), Unreadable)
    assert (len(server.asked), forbidden.asked) == (hops, [])


async def test_a_name_that_leads_to_us_is_refused_after_a_redirect_too() -> None:
    server, names = Server({"/m": redirect("https://media.twilio.com/m")}), Names(media_twilio_com=["127.0.0.1"])
    async with talking(server.talk) as base, fetching(base, names) as fetcher:
        assert isinstance(await trouble(fetcher, f"{base}/m"), Unreadable)
    assert names.asked == ["127.0.0.1", "media.twilio.com"]


async def test_five_redirects_are_followed_and_a_loop_is_not() -> None:
    def chain(path: str, _: int) -> bytes:
        return answer() if path == "/5" else redirect(f"/{int(path[1:]) + 1}")

    assert (await fetched(chain, "/0")).raw == PDF
    server = Server({"/m": redirect("/m")})
    async with talking(server.talk) as base, fetching(base) as fetcher:
        assert isinstance(await trouble(fetcher, f"{base}/m"), Unreadable)
    assert len(server.asked) == 6


@pytest.mark.parametrize(
    "target", ["http://[", "\\\\evil.example\\m", "https://api.twilio.com:port/", "https://xn--a/"]
)
async def test_a_redirect_to_what_is_no_address_is_refused(target: str) -> None:
    with pytest.raises(Unreadable):
        await fetched({"/m": redirect(target)})


async def test_a_redirect_to_nowhere_is_unavailable() -> None:
    with pytest.raises(Unavailable):
        await fetched({"/m": answer(status="302 Found")})


# ── how much, and for how long ────────────────────────────────────────────────────────────────────────────────────


async def test_a_file_at_the_limit_is_taken_and_a_byte_more_is_refused_in_megabytes() -> None:
    assert len((await fetched({"/m": answer(b"x" * MOST)})).raw) == MOST
    server = Server({"/m": answer(b"x" * 10, Content_Length=str((16 << 20) + 1))})
    async with talking(server.talk) as base, fetching(base) as fetcher:
        found = await trouble(fetcher, f"{base}/m", most_bytes=16 << 20)
    assert isinstance(found, Unreadable)
    assert "up to 16 MB" in found.user_text


async def test_a_file_that_never_ends_is_left_at_the_limit() -> None:
    sent = 0

    async def pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer(b"", Content_Length="", Transfer_Encoding="chunked"))
        with contextlib.suppress(ConnectionError):
            while True:
                writer.write(b"1000\r\n" + b"x" * 0x1000 + b"\r\n")
                await writer.drain()
                sent += 0x1000

    async with talking(pour) as base, fetching(base) as fetcher:
        async with asyncio.timeout(5):
            assert isinstance(await trouble(fetcher, f"{base}/m", most_bytes=100_000), Unreadable)
    assert sent < 20_000_000


async def test_a_body_that_is_longer_than_it_says_is_cut_off_where_it_said() -> None:
    assert (await fetched({"/m": answer(PDF + b"x" * 5000, Content_Length=str(len(PDF)))})).raw == PDF


async def test_a_compressed_body_is_refused_and_never_unpacked() -> None:
    for encoding in ("gzip", "br", "deflate, gzip"):
        with pytest.raises(Unreadable) as caught:
            await fetched({"/m": answer(gzip.compress(b"0" * 10_000_000)[:900], Content_Encoding=encoding)})
        assert "compressed" in caught.value.detail


async def test_a_server_that_drips_is_left_after_the_time_for_all_of_it() -> None:
    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer(b"", Content_Length="900"))
        with contextlib.suppress(ConnectionError):
            while not writer.is_closing():
                writer.write(b" ")
                await writer.drain()
                await asyncio.sleep(0.02)

    async with talking(drip) as base, fetching(base, total=0.4) as fetcher:
        async with asyncio.timeout(5):
            assert isinstance(await trouble(fetcher, f"{base}/m"), Unavailable)


# ── what it is, and what it is called ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("claimed", "answered"),
    [
        ("application/x-msdownload", "application/pdf"),
        ("text/plain", "text/html"),
        ("image/svg+xml", "image/svg+xml"),
        ("application/zip", ""),
        ("", "text/html; charset=utf-8"),
        ("application/pdf", "text/html"),
        ("", ""),
        ("application/octet-stream", "binary/octet-stream"),
    ],
)
async def test_a_type_that_is_not_taken_is_refused(claimed: str, answered: str) -> None:
    with pytest.raises(Unreadable, match="kind of file"):
        await fetched({"/m": answer(Content_Type=answered)}, media_type=claimed)


async def test_a_type_that_is_not_taken_is_not_even_asked_for() -> None:
    server = Server({"/m": answer()})
    async with talking(server.talk) as base, fetching(base) as fetcher:
        assert isinstance(await trouble(fetcher, f"{base}/m", "application/x-sh"), Unreadable)
    assert server.asked == []


@pytest.mark.parametrize(
    ("claimed", "answered", "name", "media_type"),
    [
        ("Audio/OGG; codecs=opus", "audio/ogg", "", "audio/ogg"),
        ("", "application/pdf", "", "application/pdf"),
        (
            "application/octet-stream",
            "",
            "a.docx",
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        ),
        ("", "application/octet-stream", "notes.MD", "text/markdown"),
        ("text/plain", "application/octet-stream", "notes.md", "text/plain"),
    ],
)
async def test_the_type_is_what_was_claimed_else_what_was_answered_else_what_the_name_says(
    claimed: str, answered: str, name: str, media_type: str
) -> None:
    media = await fetched({"/m": answer(Content_Type=answered)}, media_type=claimed, name=name)
    assert media.media_type == media_type


@pytest.mark.parametrize(
    ("claimed", "disposition", "name"),
    [
        ("contract.pdf", 'attachment; filename="other.pdf"', "contract.pdf"),
        ("", 'attachment; filename="the contract.PDF"', "the contract.PDF"),
        ("", "attachment; filename*=UTF-8''na%C3%AFve.pdf", "naïve.pdf"),
        ("", 'attachment; filename="../../etc/passwd"', "passwd.pdf"),
        ("..\\..\\windows\\contract.pdf", "", "contract.pdf"),
        ("/etc/contract.pdf/", "", "contract.pdf"),
        ("contract.exe", "", "contract.exe.pdf"),
        ("contract.pdf.", "", "contract.pdf"),
        (".pdf", "", "pdf.pdf"),
        ("con\x00tr\nact.pdf", "", "contract.pdf"),
        ("exe.\u202efdp", "", "exe.fdp.pdf"),
        ("x" * 500 + ".pdf", "", "x" * 115 + "-c38c.pdf"),
        ("नियम.pdf", "", "नियम.pdf"),
    ],
)
async def test_the_name_is_a_bare_one_that_fits_the_type(claimed: str, disposition: str, name: str) -> None:
    media = await fetched({"/m": answer(Content_Disposition=disposition)}, name=claimed)
    assert media.name == name


@pytest.mark.parametrize(
    ("media_type", "begins", "ends"),
    [
        ("application/pdf", "document", ".pdf"),
        ("image/jpeg", "image", ".jpg"),
        ("image/webp", "image", ".webp"),
        ("audio/ogg", "audio", ".ogg"),
        ("video/mp4", "video", ".mp4"),
        ("text/vcard", "contact", ".vcf"),
    ],
)
async def test_what_has_no_name_is_called_by_its_kind_and_day_and_two_of_a_day_are_not_called_the_same(
    media_type: str, begins: str, ends: str
) -> None:
    days = {datetime.now(UTC).date()}
    named = [
        (await fetched({"/m": answer(raw, Content_Type=media_type)}, media_type=media_type, name=nothing)).name
        for raw, nothing in ((b"one", ""), (b"two", "..."), (b"one", "/"))
    ]
    days.add(datetime.now(UTC).date())
    assert all(name.startswith(tuple(f"{begins}-{day.isoformat()}-" for day in days)) for name in named)
    assert all(name.endswith(ends) for name in named)
    assert named[0] != named[1]
    assert named[0] == named[2], "the same file, fetched again"


# ── Twilio's places ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("reference", "allowed"),
    [
        ("https://api.twilio.com/2010-04-01/Accounts/AC1/Messages/MM1/Media/ME1", True),
        ("https://mms.twiliocdn.com/AC1/abc", True),
        ("https://media.twiliocdn.com/AC1/abc", True),
        ("https://s3-external-1.amazonaws.com/media.twiliocdn.com/AC1/abc", True),
        ("https://s3-external-1.amazonaws.com/somebodys-bucket/abc", False),
        ("https://s3.amazonaws.com/media.twiliocdn.com/AC1/abc", False),
        ("https://lookaside.fbsbx.com/whatsapp", False),
        ("http://api.twilio.com/2010-04-01/Accounts/AC1/Messages/MM1/Media/ME1", False),
        ("http://127.0.0.1:9010/m", False),
    ],
)
async def test_twilios_files_are_at_twilios_hosts(reference: str, allowed: bool) -> None:
    names = Names()
    channel = TwilioChannel(SID, TOKEN)
    channel._files._resolve = names
    with pytest.raises(Unreadable):  # all names lead here, where no provider is
        await channel.fetch(Attachment(reference, "application/pdf"), most_bytes=MOST)
    assert len(names.asked) == allowed
    await channel.close()


@pytest.mark.parametrize(
    ("api_base", "trusted"),
    [
        ("https://api.twilio.com", {"api.twilio.com"}),
        ("https://api.dublin.ie1.twilio.com", {"api.twilio.com", "api.dublin.ie1.twilio.com"}),
        ("https://proxy.example.com", {"api.twilio.com"}),
    ],
)
async def test_the_credentials_are_for_twilios_api_alone(api_base: str, trusted: set[str]) -> None:
    channel = TwilioChannel(SID, TOKEN, api_base=api_base)
    places = channel._files._places
    assert set(places.trusted) == trusted
    assert (places.authorization, places.local) == (BASIC, "")
    assert TOKEN not in repr(places)
    assert BASIC not in repr(places)
    await channel.close()
