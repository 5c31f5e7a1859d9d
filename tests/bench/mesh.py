"""Cold start and memory of every process of the embedded mesh."""

from __future__ import annotations

import tempfile
from pathlib import Path

import psutil

from mesh.settings import load
from mesh.up import Mesh


async def run() -> dict[str, object]:
    home = Path(tempfile.mkdtemp(prefix="adiyan-bench-"))
    mesh = Mesh(load(adiyan_home=home, gateway_port=0))
    async with mesh as started:
        memory = {each.part.name: _megabytes(each.process.pid) for each in mesh.supervisor.running if each.process}
        starts = {each.part.name: round(each.took_s, 2) for each in mesh.supervisor.running}
    return {
        "cold_start_s": round(started.seconds, 2),
        "start_s": starts,
        "rss_mb": memory,
        "rss_total_mb": round(sum(memory.values())),
    }


def _megabytes(pid: int) -> float:
    return round(float(psutil.Process(pid).memory_info().rss) / 1e6, 1)
