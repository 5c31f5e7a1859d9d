"""Voice notes of ten seconds through the embedded speech server, as the mesh sends them: the first one, for which the
model is loaded, and then the same two, one after another; the longest that is taken; and what the process holds.
Skipped when the extra `voice` is not installed."""

from __future__ import annotations

import io
import statistics
import tempfile
import time
import wave
from pathlib import Path

import psutil

from mesh.adapters.speech import HttpTranscriber
from mesh.embedded import parts
from mesh.embedded.sound import BYTES_PER_SECOND, decode
from mesh.embedded.supervisor import Supervisor, free_port
from mesh.embedded.whisper import MODEL, weights
from mesh.ports.models import Heard
from mesh.settings import ROOT

VOICE = ROOT / "config" / "demo" / "voice"
NOTES = tuple((VOICE / f"{name}.ogg").read_bytes() for name in ("english", "spanish"))
SILENCE = (VOICE / "silence.ogg").read_bytes()
TIMES = 5
LONGEST_S = 120


async def run() -> dict[str, object]:
    if not parts.speech_installed():
        return {"skipped": "the extra `voice` is not installed (its packages are in pyproject.toml)"}
    with tempfile.TemporaryDirectory() as folder:
        async with Supervisor(Path(folder)) as supervisor:
            return await _measured(supervisor)


async def _measured(supervisor: Supervisor) -> dict[str, object]:
    port = free_port()
    await supervisor.start(parts.speech(port, supervisor.home / "speech", LONGEST_S))
    (running,) = supervisor.running
    assert running.process is not None
    process = psutil.Process(running.process.pid)
    idle = _megabytes(process)
    hearing = HttpTranscriber(f"http://127.0.0.1:{port}", model=MODEL, longest_s=LONGEST_S)
    try:
        _, first = await _timed(hearing, NOTES[0])
        told = [await _timed(hearing, note) for note in NOTES * TIMES]
        _, silence = await _timed(hearing, SILENCE)
        long, longest = await _timed(hearing, await _long())
    finally:
        await hearing.close()
    took = sorted(seconds for _, seconds in told)
    began = time.perf_counter()
    weights(supervisor.home / "speech")
    return {
        "start_s": round(running.took_s, 2),
        "start_rss_mb": idle,
        "first_note_s": round(first, 2),
        "of_it_checking_the_weights_s": round(time.perf_counter() - began, 2),
        "notes": len(took),
        "note_sound_s": round(statistics.mean(heard.seconds for heard, _ in told), 1),
        "note_p50_s": round(statistics.median(took), 2),
        "note_max_s": round(took[-1], 2),
        "confidence_min": round(min(heard.confidence for heard, _ in told), 2),
        "silence_s": round(silence, 2),
        "longest_note": f"{long.seconds:.0f} s of sound in {longest:.1f} s",
        "rss_mb": _megabytes(process),
        "rss_most_mb": _most_megabytes(process),
    }


async def _timed(hearing: HttpTranscriber, raw: bytes) -> tuple[Heard, float]:
    began = time.perf_counter()
    heard = await hearing.hear(raw, "audio/ogg")
    return heard, time.perf_counter() - began


async def _long() -> bytes:
    """Of speech, as a WAV file."""
    spoken = b"".join([await decode(note, longest_s=LONGEST_S) for note in NOTES])
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setparams((1, 2, BYTES_PER_SECOND // 2, 0, "NONE", ""))
        out.writeframes((spoken * 10)[: int(LONGEST_S - 1) * BYTES_PER_SECOND])
    return file.getvalue()


def _megabytes(process: psutil.Process) -> int:
    return int(process.memory_info().rss // 1024**2)


def _most_megabytes(process: psutil.Process) -> int:
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM"))
