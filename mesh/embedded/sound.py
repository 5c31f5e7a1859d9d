"""`python -m mesh.embedded.sound SECONDS`: a file on standard input, its sound on standard output as 16-bit mono at
16,000 samples a second.

A process of its own for each file, since a file comes from anybody and the decoders are written in C: a crash, an
endless file or one that unfolds to gigabytes ends this process and nothing else. It stops as soon as more than SECONDS
have come out, and once it reads it can open neither a file nor a connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import resource
import subprocess
import sys
import wave
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

RATE = 16_000
BYTES_PER_SECOND = 2 * RATE
WITHIN_S = 15.0
"""Two minutes of sound take a fifth of a second."""
CPU_S = 10
MEMORY_BYTES = 1024**3
FORMATS = "ogg,mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,mp3,wav,aac,amr,amrnb,amrwb,flac"
"""None that names other files to be read, as playlists do."""
RATES = range(4_000, 192_001)
TOO_LONG, NO_SOUND = 3, 4
"""Exit codes."""


class TooMuch(Exception):
    """It lasts longer than it may."""


class NoSound(Exception):
    """It can't be played: no sound in it, or broken."""


async def decode(raw: bytes, *, longest_s: float) -> bytes:
    """Raises `TooMuch` or `NoSound`."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "mesh.embedded.sound", f"{longest_s:g}"),
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(WITHIN_S):
            samples, _ = await process.communicate(raw)
    except TimeoutError as error:
        raise NoSound(f"it was not decoded in {WITHIN_S:g} s") from error
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    if process.returncode == TOO_LONG:
        raise TooMuch
    if process.returncode != 0 or not samples:
        raise NoSound(f"the decoder ended with {process.returncode}")
    return samples


# ── the child ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _samples(file: BinaryIO, longest_s: float) -> Iterator[bytes]:
    """What is broken inside is left out, as a player does."""
    av = import_module("av")
    options = {"format_whitelist": FORMATS, "protocol_whitelist": "none"}
    with av.open(file, options=options, metadata_errors="ignore") as container:
        if not container.streams.audio:
            raise NoSound
        stream = container.streams.audio[0]
        resampler = av.AudioResampler("s16", "mono", RATE)
        seconds = 0.0
        packets = container.demux(stream)
        while True:
            try:
                packet = next(packets)
                frames = packet.decode()
            except StopIteration:
                break
            except av.error.InvalidDataError:
                continue
            for frame in frames:
                if frame.sample_rate not in RATES:
                    raise NoSound
                seconds += frame.samples / frame.sample_rate
                if seconds > longest_s:  # before it is resampled: little can unfold to much there, too
                    raise TooMuch
                frame.pts = None
                yield from _bytes(resampler.resample(frame))
        if seconds:
            yield from _bytes(resampler.resample(None))


def _bytes(frames: list[Any]) -> Iterator[bytes]:
    for frame in frames:
        yield bytes(frame.planes[0])[: 2 * frame.samples]  # the plane is padded


def _beep() -> BinaryIO:
    """A tenth of a second: what is decoded once has imported all that it needs."""
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setparams((1, 2, RATE, 0, "NONE", ""))
        out.writeframes(bytes(BYTES_PER_SECOND // 10))
    file.seek(0)
    return file


def _lock_down() -> None:
    for what, most in (
        (resource.RLIMIT_CPU, CPU_S),
        (resource.RLIMIT_AS, MEMORY_BYTES),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 3),
    ):
        with contextlib.suppress(ValueError, OSError):  # not every system has all of them
            resource.setrlimit(what, (most, most))


def main() -> int:
    longest_s = float(sys.argv[1])
    av = import_module("av")
    av.logging.set_level(None)
    for _ in _samples(_beep(), longest_s):
        pass
    _lock_down()
    file = io.BytesIO(sys.stdin.buffer.read())
    try:
        for samples in _samples(file, longest_s):
            sys.stdout.buffer.write(samples)
        sys.stdout.buffer.flush()
    except TooMuch:
        return TOO_LONG
    except (NoSound, av.error.FFmpegError, MemoryError):
        return NO_SOUND
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
