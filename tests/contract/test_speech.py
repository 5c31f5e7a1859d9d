"""The promises of the port `Transcriber`, kept with the embedded server; and what becomes of every way in which a
server misbehaves, always with one that does so on purpose."""

from __future__ import annotations

import asyncio
import io
import json
import math
import random
import struct
import threading
import time
import wave
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
import uvicorn

from mesh.adapters import speech as adapter
from mesh.adapters.speech import HttpTranscriber
from mesh.cli import probes
from mesh.cli.findings import Scene
from mesh.embedded import parts, sound
from mesh.embedded import speech as server
from mesh.embedded.whisper import MODEL, Segment, Written
from mesh.errors import MeshError, Misconfigured, TooLong, Unavailable, Unreadable
from mesh.ports.models import Transcriber
from mesh.settings import ROOT, load
from mesh.up import Mesh
from mesh.wiring import Parts
from tests.processes import free_port, serving

VOICE = ROOT / "config" / "demo" / "voice"
ENGLISH, SPANISH, SILENCE = ((VOICE / f"{name}.ogg").read_bytes() for name in ("english", "spanish", "silence"))
OGG = "audio/ogg; codecs=opus"

needs_voice = pytest.mark.skipif(
    not parts.speech_installed(), reason="the extra `voice` is not installed (its packages are in pyproject.toml)"
)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("speech")
    options = ("--data", str(folder), "--seconds", "20")
    with serving("mesh.embedded.speech", *options, ready="/healthz", log=folder / "speech.log") as address:
        yield address
        said = (folder / "speech.log").read_text()
    assert "Traceback" not in said
    assert "breakfast" not in said


@pytest.fixture
async def hearing(url: str) -> AsyncIterator[Transcriber]:
    async with opened(url) as made:
        yield made


@asynccontextmanager
async def opened(
    base: str, *, model: str = MODEL, longest_s: float = 20, timeout: float = 60
) -> AsyncIterator[Transcriber]:
    made = HttpTranscriber(base, model=model, longest_s=longest_s, timeout=timeout)
    try:
        yield made
    finally:
        await made.close()


def wav(sample: Callable[[int], float], seconds: float, rate: int = 16_000) -> bytes:
    """`sample` gives values in [-1, 1]."""
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setparams((1, 2, rate, 0, "NONE", ""))
        values = (int(32_767 * max(-1.0, min(1.0, sample(index)))) for index in range(int(seconds * rate)))
        out.writeframes(b"".join(struct.pack("<h", value) for value in values))
    return file.getvalue()


# ── what the embedded server hears ────────────────────────────────────────────────────────────────────────────────


@needs_voice
@pytest.mark.parametrize(
    ("raw", "language", "words"),
    [
        (ENGLISH, "en", ("sister", "children", "Saturday", "breakfast cost", "served")),
        (SPANISH, "es", ("sábado", "hermana", "hijos", "desayuno", "mañana")),
    ],
    ids=["english", "spanish"],
)
async def test_what_was_said_is_written_down(
    hearing: Transcriber, raw: bytes, language: str, words: tuple[str, ...]
) -> None:
    heard = await hearing.hear(raw, OGG)
    assert [word for word in words if word not in heard.text] == []
    assert heard.language == language
    assert heard.seconds == pytest.approx(10.2, abs=0.6)
    assert 0.7 < heard.confidence <= 1


@needs_voice
@pytest.mark.parametrize("kind", ["silence", "noise", "tone", "engine"])
async def test_nothing_is_made_up_where_nothing_was_said(hearing: Transcriber, kind: str) -> None:
    chance = random.Random(2)
    raw = {
        "silence": lambda: SILENCE,
        "noise": lambda: wav(lambda _: chance.gauss(0, 0.1), 4),
        "tone": lambda: wav(lambda at: 0.4 * math.sin(at / 16_000 * 2 * math.pi * 440), 4),
        "engine": lambda: wav(lambda at: chance.gauss(0, 0.2) * (1 + math.sin(at / 16_000 * 8 * math.pi)) / 2, 4),
    }[kind]()
    heard = await hearing.hear(raw, OGG if kind == "silence" else "audio/wav")
    assert (heard.text, heard.language, heard.confidence) == ("", "", 0.0)
    assert heard.seconds == (10 if kind == "silence" else 4)


@needs_voice
async def test_what_is_no_sound_is_told_and_the_server_goes_on(hearing: Transcriber) -> None:
    for raw in (b"", b"%PDF-1.7 this is a document", ENGLISH[:100]):
        with pytest.raises(Unreadable, match="record it again"):
            await hearing.hear(raw, OGG)
    assert (await hearing.hear(SILENCE, OGG)).text == ""


@needs_voice
async def test_what_is_too_long_is_told_with_the_limit(hearing: Transcriber) -> None:
    with pytest.raises(TooLong, match="longer than 20 seconds"):
        await hearing.hear(wav(lambda _: 0.0, 21), "audio/wav")


@needs_voice
async def test_notes_that_come_at_once_are_all_heard(hearing: Transcriber) -> None:
    heard = await asyncio.gather(*(hearing.hear(raw, OGG) for raw in (ENGLISH, SILENCE, SPANISH)))
    assert [each.language for each in heard] == ["en", "", "es"]


@needs_voice
async def test_the_model_is_there_and_another_is_not(url: str, hearing: Transcriber) -> None:
    await hearing.probe()
    async with opened(url, model="whisper-large") as other:
        with pytest.raises(Misconfigured, match="has no model whisper-large"):
            await other.probe()
        with pytest.raises(Unavailable):
            await other.hear(SILENCE, OGG)


@needs_voice
@pytest.mark.parametrize(
    ("options", "status", "code"),
    [
        ({"content": b"raw", "headers": {"content-type": "audio/ogg"}}, 415, "invalid_request"),
        ({"content": b"--", "headers": {"content-type": "multipart/form-data; boundary=x"}}, 400, "invalid_request"),
        ({"content": b"--", "headers": {"content-type": "multipart/form-data"}}, 400, "invalid_request"),
        ({"data": {"model": MODEL}, "files": {"other": b""}}, 400, "invalid_request"),
        ({"data": {"model": "tiny"}, "files": {"file": SILENCE}}, 404, "model_not_found"),
        ({"data": {"model": MODEL, "response_format": "srt"}, "files": {"file": SILENCE}}, 400, "invalid_request"),
        ({"data": {"model": MODEL}, "files": {"file": bytes(17 * 1024 * 1024)}}, 413, "file_too_large"),
    ],
)
def test_a_request_that_does_not_fit_is_told_why(url: str, options: dict[str, object], status: int, code: str) -> None:
    answer = httpx.post(f"{url}/v1/audio/transcriptions", **options)  # type: ignore[arg-type]  # a table of requests
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert answer.json()["error"]["message"]


@needs_voice
def test_plain_answers_are_given_to_who_asks_for_them(url: str) -> None:
    def ask(wanted: str) -> httpx.Response:
        form = {"model": MODEL, "response_format": wanted}
        return httpx.post(f"{url}/v1/audio/transcriptions", data=form, files={"file": SILENCE})

    assert ask("json").json() == {"text": ""}
    assert ask("text").text == ""


# ── the line in front of the model ────────────────────────────────────────────────────────────────────────────────


class Stuck:
    """Writes down what is asked when it is let go, or when nobody waits for it any more."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.begun = threading.Event()
        self.left = threading.Event()
        self.at_once = self.most_at_once = 0

    def write_down(self, samples: bytes, gone: threading.Event) -> Written:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        self.begun.set()
        until = time.monotonic() + 10
        while not self.go.wait(0.01) and not gone.is_set():
            assert time.monotonic() < until
        if gone.is_set():
            self.left.set()
        self.at_once -= 1
        return Written("en", 1.0, (Segment(0, 0, 1, " Yes.", -0.1, 0, 1),))


@asynccontextmanager
async def served(listener: Stuck) -> AsyncIterator[str]:
    port = free_port()
    running = uvicorn.Server(uvicorn.Config(server.app(listener), port=port, log_level="error", lifespan="off"))
    task = asyncio.create_task(running.serve())
    try:
        await until(lambda: running.started)
        yield f"http://127.0.0.1:{port}"
    finally:
        listener.go.set()
        running.should_exit = True
        await task


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not true():
            await asyncio.sleep(0.01)


@needs_voice
async def test_one_note_is_listened_to_at_a_time_and_a_full_line_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MAX_WAITING", 3)
    decoded = []

    async def decode(raw: bytes, *, longest_s: float) -> bytes:
        decoded.append(await sound.decode(raw, longest_s=longest_s))
        return decoded[-1]

    monkeypatch.setattr(server, "decode", decode)
    stuck = Stuck()
    async with served(stuck) as base, opened(base) as hearing:
        asked = [asyncio.create_task(hearing.hear(SILENCE, OGG)) for _ in range(4)]
        done, _ = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
        (full,) = (task.exception() for task in done)
        assert isinstance(full, Unavailable)
        assert full.detail == "speech: HTTP 503 server_busy"
        await until(lambda: len(decoded) == 3)
        stuck.go.set()
        heard = [each for each in await asyncio.gather(*asked, return_exceptions=True) if each is not full]
    assert [getattr(each, "text", each) for each in heard] == ["Yes."] * 3
    assert stuck.most_at_once == 1


@needs_voice
async def test_what_nobody_waits_for_any_more_is_let_go(url: str) -> None:
    stuck = Stuck()
    async with served(stuck) as base, opened(base) as hearing:
        asked = asyncio.create_task(hearing.hear(SILENCE, OGG))
        await until(stuck.begun.is_set)
        asked.cancel()
        await until(stuck.left.is_set)
        stuck.go.set()
        assert (await hearing.hear(SILENCE, OGG)).text == "Yes."


# ── servers that misbehave ────────────────────────────────────────────────────────────────────────────────────────


class Elsewhere:
    """A server that answers each request with the bytes it is given; empty: never."""

    def __init__(self, answer: bytes) -> None:
        self.answer = answer
        self.asked: list[bytes] = []
        self._stop = asyncio.Event()

    async def __aenter__(self) -> Elsewhere:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._stop.set()
        self._server.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        sizes = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        self.asked.append(head + await reader.readexactly(int(sizes[0].split(b":")[1]) if sizes else 0))
        if self.answer:
            writer.write(self.answer)
        else:
            await self._stop.wait()
        writer.close()


def answer(status: int, body: object) -> bytes:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return b"HTTP/1.1 %d X\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % (status, len(raw)) + raw


@pytest.mark.parametrize(
    ("said", "kind", "detail"),
    [
        (answer(500, b"broken"), Unavailable, "HTTP 500"),
        (answer(503, {"error": {"code": "server_busy"}}), Unavailable, "HTTP 503 server_busy"),
        (answer(401, {"error": {"code": "invalid_api_key"}}), Unavailable, "HTTP 401 invalid_api_key"),
        (answer(404, {"error": "no such model"}), Unavailable, "HTTP 404"),
        (answer(302, b""), Unavailable, "HTTP 302"),
        (answer(400, {"error": {"code": None, "message": "what I heard"}}), Unreadable, "HTTP 400"),
        (answer(415, []), Unreadable, "HTTP 415"),
        (answer(413, {"error": {"code": "audio_too_long"}}), TooLong, "HTTP 413 audio_too_long"),
        (answer(413, b"<html>"), TooLong, "HTTP 413"),
        (answer(200, b"<html>"), Unavailable, "does not answer as OpenAI does"),
        (answer(200, {"language": "en"}), Unavailable, "does not answer as OpenAI does"),
        (answer(200, {"text": "x" * 20_001}), Unavailable, "does not answer as OpenAI does"),
        (answer(200, b" " * (1024 * 1024 + 1)), Unavailable, "has no end"),
        (b"nonsense\r\n\r\n", Unavailable, "RemoteProtocolError"),
        (b"HTTP/1.1 200 X\r\ncontent-length: 100\r\n\r\n{", Unavailable, "RemoteProtocolError"),
    ],
)
async def test_each_failure_has_words_for_the_person_and_a_cause_for_the_log(
    said: bytes, kind: type[MeshError], detail: str
) -> None:
    async with Elsewhere(said) as elsewhere, opened(elsewhere.url) as hearing:
        with pytest.raises(MeshError) as caught:
            await hearing.hear(SILENCE, OGG)
    assert type(caught.value) is kind
    assert detail in caught.value.detail
    assert "what I heard" not in caught.value.detail
    assert "write" in caught.value.user_text


async def test_a_server_that_never_answers_is_not_waited_for() -> None:
    async with Elsewhere(b"") as elsewhere, opened(elsewhere.url, timeout=0.2) as hearing:
        with pytest.raises(Unavailable):
            await hearing.hear(SILENCE, OGG)


async def test_a_server_that_is_not_there_is_told_by_hearing_and_by_probing() -> None:
    async with opened(f"http://127.0.0.1:{free_port()}") as hearing:
        for asking in (hearing.hear(SILENCE, OGG), hearing.probe()):
            with pytest.raises(Unavailable, match="right now") as caught:
                await asking
            assert caught.value.detail == "speech: ConnectError"


async def test_what_says_itself_that_it_is_too_long_or_is_too_large_is_not_sent() -> None:
    async with Elsewhere(answer(200, {"text": ""})) as elsewhere, opened(elsewhere.url, longest_s=9) as hearing:
        with pytest.raises(TooLong, match="longer than 9 seconds"):
            await hearing.hear(ENGLISH, OGG)
        with pytest.raises(TooLong):
            await hearing.hear(bytes(adapter.MOST_BYTES + 1), "audio/wav")
        assert elsewhere.asked == []


async def test_the_request_is_what_openai_takes() -> None:
    async with Elsewhere(answer(200, {"text": "Hi"})) as elsewhere, opened(elsewhere.url, model="m") as hearing:
        await hearing.hear(b"sound", "audio/mp4")
        await hearing.hear(b"sound", "audio/ogg\r\nX-Forged: yes")
    asked, forged = elsewhere.asked
    assert b"X-Forged" not in forged
    assert asked.startswith(b"POST /v1/audio/transcriptions ")
    for field in (b'name="model"\r\n\r\nm\r\n', b'name="response_format"\r\n\r\nverbose_json\r\n'):
        assert field in asked
    assert b'name="file"; filename="voice.m4a"\r\nContent-Type: audio/mp4\r\n\r\nsound\r\n' in asked


@pytest.mark.parametrize(
    ("said", "heard"),
    [
        ({"text": " Hola. ", "language": "spanish", "duration": 2.5}, ("Hola.", "es", 2.5, adapter.UNTOLD)),
        ({"text": "Hi", "language": "klingon"}, ("Hi", "", 10.0, adapter.UNTOLD)),
        ({"text": "Hi", "segments": [{"text": " Hi", "avg_logprob": 0.0}], "language": "en"}, ("Hi", "en", 10.0, 1.0)),
        ({"text": "", "language": "english", "duration": 10, "segments": []}, ("", "", 10.0, 0.0)),
        (
            {"text": "Thank you.", "segments": [{"text": "Thank you.", "avg_logprob": -1.2, "no_speech_prob": 0.9}]},
            ("", "", 10.0, 0.0),
        ),
    ],
    ids=["a name", "an unknown name", "sure", "nothing", "silence"],
)
async def test_what_other_servers_answer_is_understood(
    said: dict[str, object], heard: tuple[str, str, float, float]
) -> None:
    async with Elsewhere(answer(200, said)) as elsewhere, opened(elsewhere.url) as hearing:
        got = await hearing.hear(SILENCE, OGG)
    assert (got.text, got.language, round(got.seconds, 1), got.confidence) == heard


async def test_a_server_that_lists_no_models_is_taken_at_its_word() -> None:
    async with Elsewhere(answer(404, {})) as elsewhere, opened(elsewhere.url) as hearing:
        await hearing.probe()


# ── started and told ──────────────────────────────────────────────────────────────────────────────────────────────


def elsewhere_stores(home: Path, **more: object) -> dict[str, object]:
    """Settings with which `adiyan up` starts none of the other parts."""
    nowhere = f"127.0.0.1:{free_port()}"
    return {
        "adiyan_home": home,
        "redis_url": f"redis://{nowhere}",
        "mongodb_uri": f"mongodb://{nowhere}",
        "qdrant_url": f"http://{nowhere}",
        "ollama_host": f"http://{nowhere}",
        **more,
    }


@needs_voice
async def test_the_mesh_starts_it_and_tells_its_processes_where_it_is(tmp_path: Path) -> None:
    mesh = Mesh(load(**elsewhere_stores(tmp_path)))
    async with mesh.supervisor:
        environment = await mesh._start_stores()
        assert [running.part.name for running in mesh.supervisor.running] == ["speech"]
        settings = load(**{name.lower(): value for name, value in environment.items()})
        async with opened(settings.speech_url, model=settings.speech_model) as hearing:
            assert (await hearing.hear(SILENCE, OGG)).seconds == 10
        told = await probes.voice(Scene(settings, running=True, simulated=""))
    assert [finding.level.name for finding in told] == ["FINE"]
    assert "whisper-base, up to 2 minutes" in told[0].text


@pytest.mark.parametrize(
    "more", [{"speech_url": "http://127.0.0.1:9"}, {"production": True}], ids=lambda more: next(iter(more))
)
async def test_it_is_not_started_beside_another_nor_in_production(tmp_path: Path, more: dict[str, object]) -> None:
    account = {"twilio_account_sid": "AC1", "twilio_auth_token": "secret", "public_url": "https://mesh.example"}
    mesh = Mesh(load(**elsewhere_stores(tmp_path, **account, **more)))
    async with mesh.supervisor:
        environment = await mesh._start_stores()
        assert mesh.supervisor.running == []
    assert environment.get("SPEECH_URL", "") == more.get("speech_url", "")


async def test_an_agent_gets_what_hears_when_there_is_one_and_it_is_closed_behind_it() -> None:
    async with Parts(load(speech_url=""), bus=None) as made:  # type: ignore[arg-type]  # no bus is used
        assert made.transcriber() is None
    async with Elsewhere(answer(200, {"text": "Hi"})) as elsewhere:
        async with Parts(load(speech_url=elsewhere.url, speech_seconds=11), bus=None) as made:  # type: ignore[arg-type]  # no bus is used
            hearing = made.transcriber()
            assert hearing is not None
            assert (await hearing.hear(SILENCE, OGG)).text == "Hi"
        with pytest.raises(RuntimeError, match="closed"):
            await hearing.hear(SILENCE, OGG)


def test_an_address_that_is_none_is_told() -> None:
    with pytest.raises(Misconfigured, match="speech_url"):
        load(speech_url="whisper:9000")


async def test_without_the_extra_nothing_starts_and_the_doctor_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "SPEECH_PACKAGES", ("no_such_package",))
    settings = load(**elsewhere_stores(tmp_path))
    mesh = Mesh(settings)
    async with mesh.supervisor:
        assert "SPEECH_URL" not in await mesh._start_stores()
    (told,) = await probes.voice(Scene(settings, running=False, simulated=""))
    assert "people are asked to write instead" in told.text
    assert "`voice`" in told.todo


async def test_the_doctor_tells_a_server_that_is_not_there_or_has_no_such_model(tmp_path: Path) -> None:
    async def told(base: str) -> str:
        settings = load(**elsewhere_stores(tmp_path, speech_url=base))
        (finding,) = await probes.voice(Scene(settings, running=True, simulated=""))
        return f"{finding.level.name}: {finding.text} {finding.todo}"

    assert "BROKEN" in (said := await told(f"http://127.0.0.1:{free_port()}"))
    assert "correct SPEECH_URL" in said
    async with Elsewhere(answer(200, {"data": [{"id": "whisper-large"}]})) as elsewhere:
        assert "BROKEN: The speech server has no model whisper-base" in await told(elsewhere.url)
