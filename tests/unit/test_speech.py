"""Voice notes: how a file becomes sound, how the weights are put together, and what is made of a server's answer."""

from __future__ import annotations

import asyncio
import hashlib
import io
import os
import random
import struct
import subprocess
import sys
import time
import wave
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from mesh.adapters import speech as adapter
from mesh.adapters.speech import ogg_seconds, spoken
from mesh.embedded import parts, sound, whisper
from mesh.embedded.sound import BYTES_PER_SECOND, NoSound, TooMuch, decode
from mesh.settings import ROOT

VOICE = ROOT / "config" / "demo" / "voice"
ENGLISH = (VOICE / "english.ogg").read_bytes()

needs_voice = pytest.mark.skipif(
    not parts.speech_installed(), reason="the extra `voice` is not installed (its packages are in pyproject.toml)"
)


def wav(samples: bytes, rate: int = 16_000) -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setparams((1, 2, rate, 0, "NONE", ""))
        out.writeframes(samples)
    return file.getvalue()


# ── a file becomes sound ──────────────────────────────────────────────────────────────────────────────────────────


@needs_voice
async def test_a_voice_note_becomes_all_of_its_sound() -> None:
    assert len(await decode(ENGLISH, longest_s=120)) / BYTES_PER_SECOND == pytest.approx(10.6, abs=0.1)


@needs_voice
async def test_what_is_longer_than_it_may_be_is_refused() -> None:
    with pytest.raises(TooMuch):
        await decode(ENGLISH, longest_s=10)


@needs_voice
async def test_a_small_file_that_unfolds_to_hours_is_refused_at_once() -> None:
    unfolded = hours_of_silence(3)
    assert len(unfolded) < 3_000_000  # the sound in it has 170 MB
    began = time.monotonic()
    with pytest.raises(TooMuch):
        await decode(unfolded, longest_s=120)
    assert time.monotonic() - began < 3


def hours_of_silence(hours: int) -> bytes:
    av = pytest.importorskip("av")
    file = io.BytesIO()
    with av.open(file, "w", format="flac") as out:
        stream = out.add_stream("flac", rate=8_000, layout="mono")
        frame = av.AudioFrame("s16", "mono", 4_608)
        frame.planes[0].update(bytes(frame.planes[0].buffer_size))
        frame.sample_rate = 8_000
        for _ in range(hours * 3600 * 8_000 // 4_608):
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    return file.getvalue()


@needs_voice
@pytest.mark.parametrize(
    "raw",
    [b"", b"OggS", b"%PDF-1.7 no sound", wav(b""), ENGLISH[:60], os.urandom(5_000)],
    ids=["nothing", "a beginning", "a document", "an empty recording", "a header", "noise"],
)
async def test_what_is_no_sound_is_refused(raw: bytes) -> None:
    with pytest.raises(NoSound):
        await decode(raw, longest_s=120)


@needs_voice
async def test_what_is_cut_off_is_heard_up_to_there() -> None:
    half = await decode(ENGLISH[: len(ENGLISH) // 2], longest_s=120)
    assert 3 < len(half) / BYTES_PER_SECOND < 7


@needs_voice
async def test_damaged_files_are_refused_or_heard_and_nothing_else() -> None:
    chance = random.Random(5)
    for _ in range(12):
        damaged = bytearray(ENGLISH)
        for _ in range(chance.choice((1, 10, 300))):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        try:
            assert len(await decode(bytes(damaged), longest_s=120)) <= 120 * BYTES_PER_SECOND
        except (NoSound, TooMuch):
            continue


@needs_voice
@pytest.mark.parametrize("rate", [1, 400_000_000])
async def test_a_rate_that_nobody_records_at_is_refused(rate: int) -> None:
    with pytest.raises(NoSound):
        await decode(wav(bytes(2_000), rate), longest_s=1e9)


@needs_voice
@pytest.mark.parametrize(
    "raw",
    [
        b"#EXTM3U\n#EXT-X-MEDIA-SEQUENCE:0\n#EXTINF:10.0,\nfile:///etc/hostname\n#EXT-X-ENDLIST\n",
        b"ffconcat version 1.0\nfile /etc/hostname\n",
        struct.pack(">4s5I", b".snd", 24, 32_000, 3, 16_000, 1) + bytes(32_000),
    ],
    ids=["a playlist", "a list of files", "a format that no telephone sends"],
)
async def test_only_what_people_send_is_opened(raw: bytes) -> None:
    with pytest.raises(NoSound):
        await decode(raw, longest_s=120)


async def test_a_decoder_that_crashes_takes_nothing_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stands_in(tmp_path, monkeypatch, "kill -SEGV $$")
    with pytest.raises(NoSound, match="-11"):
        await decode(ENGLISH, longest_s=120)


async def test_a_decoder_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stands_in(tmp_path, monkeypatch, "exec sleep 60")
    monkeypatch.setattr(sound, "WITHIN_S", 0.3)
    before = children()
    with pytest.raises(NoSound):
        await decode(ENGLISH, longest_s=120)
    assert children() <= before


async def test_a_decoder_ends_with_whoever_waited_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stands_in(tmp_path, monkeypatch, "exec sleep 60")
    before = children()
    waiting = asyncio.create_task(decode(ENGLISH, longest_s=120))
    until = time.monotonic() + 5
    while children() <= before:
        assert time.monotonic() < until
        await asyncio.sleep(0.01)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert children() <= before


def children() -> set[psutil.Process]:
    """Others' among them: a server that the whole run shares."""
    return set(psutil.Process().children())


def stands_in(folder: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    script = folder / "python"
    script.write_text(f"#!/bin/sh\n{command}\n")
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script))


def test_a_decoder_can_open_neither_a_file_nor_a_connection() -> None:
    for what in ("open('/etc/hostname')", "socket.socket()"):
        tried = f"import socket; from mesh.embedded.sound import _lock_down; _lock_down(); {what}"
        ran = subprocess.run([sys.executable, "-c", tried], stderr=subprocess.PIPE, text=True, check=False)
        assert "Too many open files" in ran.stderr


# ── the weights ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Two packages of small weights, and their SHA-256."""
    one, two = (tmp_path / "site" / name / "data" for name in ("weights_one", "weights_two"))
    for folder in (one, two):
        folder.mkdir(parents=True)
        (folder.parent / "__init__.py").touch()
    (one / "model.bin.part1").write_bytes(b"first ")
    (two / "model.bin.part2").write_bytes(b"second")
    (one / "config.json").write_bytes(b"{}")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.setattr(whisper, "PACKAGES", ("weights_one", "weights_two"))
    digests = {"model.bin": b"first second", "config.json": b"{}"}
    monkeypatch.setattr(
        whisper, "FILES", {name: hashlib.sha256(content).hexdigest() for name, content in digests.items()}
    )
    yield tmp_path / "site"
    for name in ("weights_one", "weights_two"):
        sys.modules.pop(name, None)


def test_the_weights_are_put_together_once(packages: Path, tmp_path: Path) -> None:
    folder = whisper.weights(tmp_path / "data")
    model = folder / "model.bin"
    assert model.read_bytes() == b"first second"
    made = model.stat()
    assert whisper.weights(tmp_path / "data") == folder
    assert model.stat() == made


def test_what_was_interrupted_or_damaged_is_put_together_anew(packages: Path, tmp_path: Path) -> None:
    model = whisper.weights(tmp_path / "data") / "model.bin"
    model.with_name(".model.bin.joining").write_bytes(b"fir")
    model.write_bytes(b"first sec")
    whisper.weights(tmp_path / "data")
    assert model.read_bytes() == b"first second"
    assert sorted(path.name for path in model.parent.iterdir()) == ["config.json", "model.bin"]


def test_other_weights_than_the_public_ones_are_never_used(packages: Path, tmp_path: Path) -> None:
    (packages / "weights_two" / "data" / "model.bin.part2").write_bytes(b"sekond")
    with pytest.raises(ValueError, match="not the public model's: install them again"):
        whisper.weights(tmp_path / "data")
    assert list((tmp_path / "data").rglob("*model.bin*")) == []


# ── what is told ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_voice_note_says_how_long_it_is() -> None:
    assert ogg_seconds(ENGLISH) == pytest.approx(10.6, abs=0.1)
    assert ogg_seconds(wav(bytes(32_000))) == 0
    assert ogg_seconds(b"") == 0
    assert ogg_seconds(b"OggS OpusHead") == 0


@pytest.mark.parametrize(
    ("seconds", "said"), [(120, "2 minutes"), (90, "1 minute and 30 seconds"), (60, "1 minute"), (1, "1 second")]
)
def test_a_limit_is_told_as_people_say_it(seconds: float, said: str) -> None:
    assert spoken(seconds) == said


def test_the_confidence_counts_each_part_by_its_length() -> None:
    long, short = (adapter.Segment(text=text, avg_logprob=sure) for text, sure in (("x" * 90, 0.0), ("y" * 10, -1e9)))
    assert adapter._confidence([long, short]) == pytest.approx(0.9)
    assert adapter._confidence([]) == adapter.UNTOLD
