"""`python -m tests.drills`, as one uses it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import psutil
import pytest

from mesh.settings import ROOT
from tests.drills import DRILLS

COMMAND = (sys.executable, "-m", "tests.drills")


def drills(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


def test_the_list_names_every_drill() -> None:
    said = drills("--list").stdout
    assert all(name in said for name in DRILLS)


@pytest.mark.parametrize(
    ("arguments", "told"), [(("typhoon",), "--list"), (("storm", "--messages", "-1"), "1 or more")]
)
def test_a_mistake_is_told_before_anything_starts(arguments: tuple[str, ...], told: str) -> None:
    ran = drills(*arguments)
    assert ran.returncode == 2
    assert told in ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.timeout(60)
def test_interrupted_it_leaves_no_process_behind() -> None:
    with subprocess.Popen([*COMMAND, "throttled"], cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        children = children_of(process.pid, at_least=6)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "nothing is left running" in said
    _, left = psutil.wait_procs(children, timeout=10)
    assert not left


def children_of(pid: int, at_least: int) -> list[psutil.Process]:
    """Once there are so many."""
    until = time.monotonic() + 40
    while len(found := psutil.Process(pid).children(recursive=True)) < at_least:
        assert time.monotonic() < until
        time.sleep(0.05)
    return found
