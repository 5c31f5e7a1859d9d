"""Voice notes written down by any server that speaks OpenAI's HTTP form (`/v1/audio/transcriptions`)."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import time
from typing import Any

import httpx
from pydantic import BaseModel, Field, ValidationError

from mesh.errors import MeshError, Misconfigured, TooLong, Unavailable, Unreadable
from mesh.ports.models import Heard

log = logging.getLogger(__name__)

TIMEOUT_S = 40.0
"""For one note, the wait for others included. Two minutes of speech take ten seconds on two idle cores."""
CONNECT_S = 3.0
PROBE_S = 5.0
MOST_BYTES = 16 * 1024 * 1024
MOST_ANSWER_BYTES = 1024 * 1024
MOST_CHARS = 20_000
OGG_HEADER_BYTES = 27
UNTOLD = 0.7
"""The confidence when a server tells none."""

UNAVAILABLE = "I can't listen to voice notes right now. Please write it instead, or send it again in a minute."
UNREADABLE = "I couldn't play that voice note. Please record it again, or write it instead."
TOO_LONG = "That voice note is longer than {longest}, the most I can listen to. Please send a shorter one, or write it."

ENDINGS = {
    "audio/aac": "aac",
    "audio/amr": "amr",
    "audio/flac": "flac",
    "audio/m4a": "m4a",
    "audio/mp4": "m4a",
    "audio/mpeg": "mp3",
    "audio/ogg": "ogg",
    "audio/opus": "ogg",
    "audio/wav": "wav",
    "audio/webm": "webm",
    "audio/x-m4a": "m4a",
    "audio/x-wav": "wav",
    "video/3gpp": "3gp",
    "video/mp4": "mp4",
}
"""Servers go by the file's name."""
LANGUAGES = {
    "arabic": "ar", "bengali": "bn", "chinese": "zh", "czech": "cs", "danish": "da", "dutch": "nl", "english": "en",
    "finnish": "fi", "french": "fr", "german": "de", "greek": "el", "hebrew": "he", "hindi": "hi", "hungarian": "hu",
    "indonesian": "id", "italian": "it", "japanese": "ja", "korean": "ko", "malay": "ms", "norwegian": "no",
    "polish": "pl", "portuguese": "pt", "romanian": "ro", "russian": "ru", "spanish": "es", "swahili": "sw",
    "swedish": "sv", "tamil": "ta", "thai": "th", "turkish": "tr", "ukrainian": "uk", "urdu": "ur",
    "vietnamese": "vi",
}  # fmt: skip
"""OpenAI's own server says the name, others the code."""


class Segment(BaseModel):
    text: str = ""
    start: float = Field(default=0, ge=0)
    end: float = Field(default=0, ge=0)
    avg_logprob: float | None = None
    no_speech_prob: float = 0

    @property
    def is_silence(self) -> bool:
        """By Whisper's own rule. On silence it says what it learned from subtitles: “Thank you.”"""
        return self.no_speech_prob > 0.6 and (self.avg_logprob or 0) < -1


class Written(BaseModel):
    """`verbose_json`. Some servers leave the segments out."""

    text: str = Field(max_length=MOST_CHARS)
    language: str | None = None
    duration: float | None = Field(default=None, ge=0)
    segments: list[Segment] | None = None


class HttpTranscriber:
    """`base` is the address without `/v1`."""

    def __init__(self, base: str, *, model: str, longest_s: float, timeout: float = TIMEOUT_S) -> None:
        self.model = model
        self._longest_s = longest_s
        local = httpx.URL(base).host in ("localhost", "127.0.0.1", "::1")
        self._client = httpx.AsyncClient(
            base_url=base, timeout=httpx.Timeout(timeout, connect=CONNECT_S), trust_env=not local
        )
        self._timeout = timeout

    async def hear(self, raw: bytes, media_type: str) -> Heard:
        began = time.monotonic()
        if len(raw) > MOST_BYTES:
            raise self._too_long(f"{len(raw)} bytes")
        if (seconds := ogg_seconds(raw)) > self._longest_s:
            raise self._too_long(f"{seconds:.0f} s, by its own word")
        kind = media_type.partition(";")[0].strip().lower()
        form = {"model": self.model, "response_format": "verbose_json"}
        if kind not in ENDINGS:  # it is the sender's word
            kind = "audio/ogg"
        files = {"file": (f"voice.{ENDINGS[kind]}", raw, kind)}
        status, body = await self._post("/v1/audio/transcriptions", form, files)
        if status != 200:
            raise self._refused(status, body)
        heard = _read(body, seconds)
        log.info(
            "· heard seconds=%.1f language=%s confidence=%.2f ms=%d",
            heard.seconds,
            heard.language or "-",
            heard.confidence,
            (time.monotonic() - began) * 1000,
        )
        return heard

    async def probe(self) -> None:
        """A server that does not list its models is taken at its word."""
        try:
            answer = await self._client.get("/v1/models", timeout=PROBE_S)
            listed = {str(each["id"]) for each in answer.json()["data"]} if answer.is_success else {self.model}
        except httpx.HTTPError as error:
            raise Unavailable(UNAVAILABLE, detail=f"speech: {type(error).__name__}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise Unavailable(UNAVAILABLE, detail="speech: the server does not answer as OpenAI does") from error
        if self.model not in listed:
            raise Misconfigured(
                f"The speech server has no model {self.model}: set speech_model (SPEECH_MODEL) to one that it has."
            )

    async def close(self) -> None:
        await self._client.aclose()

    async def _post(self, path: str, form: dict[str, str], files: dict[str, Any]) -> tuple[int, bytes]:
        body = bytearray()
        try:
            async with (
                asyncio.timeout(self._timeout),
                self._client.stream("POST", path, data=form, files=files) as answer,
            ):
                async for chunk in answer.aiter_bytes():
                    body += chunk
                    if len(body) > MOST_ANSWER_BYTES:
                        raise Unavailable(UNAVAILABLE, detail="speech: the answer has no end")
                return answer.status_code, bytes(body)
        except (TimeoutError, httpx.HTTPError) as error:
            raise Unavailable(UNAVAILABLE, detail=f"speech: {type(error).__name__}") from error

    def _refused(self, status: int, body: bytes) -> MeshError:
        code = _code(body)
        detail = f"speech: HTTP {status} {code}".strip()
        if status == 413 or code == "audio_too_long":
            return self._too_long(detail)
        if status in (400, 415, 422):
            return Unreadable(UNREADABLE, detail=detail)
        return Unavailable(UNAVAILABLE, detail=detail)

    def _too_long(self, detail: str) -> TooLong:
        return TooLong(TOO_LONG.format(longest=spoken(self._longest_s)), detail=f"speech: {detail}")


def spoken(seconds: float) -> str:
    """`2 minutes`, `1 minute and 30 seconds`."""
    counted = zip(divmod(round(seconds), 60), ("minute", "second"), strict=True)
    return " and ".join(f"{count} {unit}{'s' * (count != 1)}" for count, unit in counted if count)


def ogg_seconds(raw: bytes) -> float:
    """How long an Ogg file with Opus, which is what voice notes are, says that it is; 0 for any other. So that a server
    which would listen to hours is not asked to."""
    last = raw.rfind(b"OggS", 0, -OGG_HEADER_BYTES)
    if last < 0 or b"OpusHead" not in raw[:128]:
        return 0.0
    position = int.from_bytes(raw[last + 6 : last + 14], "little", signed=True)
    return max(0, position) / 48_000


def _read(body: bytes, seconds: float) -> Heard:
    try:
        written = Written.model_validate_json(body)
    except ValidationError as error:
        raise Unavailable(UNAVAILABLE, detail="speech: the server does not answer as OpenAI does") from error
    said = [each for each in written.segments or [] if each.text.strip() and not each.is_silence]
    text = " ".join(each.text.strip() for each in said) if written.segments else written.text.strip()
    language = (written.language or "").lower()
    return Heard(
        text=text,
        language=(language if len(language) <= 3 else LANGUAGES.get(language, "")) if text else "",
        seconds=written.duration or seconds,
        confidence=_confidence(said) if text else 0.0,
    )


def _confidence(said: list[Segment]) -> float:
    """By the length of what was said."""
    told = [(len(each.text), math.exp(min(0.0, each.avg_logprob))) for each in said if each.avg_logprob is not None]
    return sum(chars * sure for chars, sure in told) / sum(chars for chars, _ in told) if told else UNTOLD


def _code(body: bytes) -> str:
    """Of an error. What a server says in words may repeat what was said in the note: it is not logged."""
    try:
        code = json.loads(body)["error"]["code"]
    except (ValueError, KeyError, TypeError):
        return ""
    return code[:40] if isinstance(code, str) else ""
