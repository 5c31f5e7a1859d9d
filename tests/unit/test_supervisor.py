"""Children that are started, watched, restarted, and never left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from mesh.embedded import supervisor as module
from mesh.embedded.supervisor import READY_FILE, AlreadyRunning, Part, StartFailed, Supervisor, free_port, listen
from mesh.errors import Misconfigured
from mesh.settings import ROOT

READY_THEN_SLEEP = f"import os, pathlib, time; pathlib.Path(os.environ['{READY_FILE}']).touch(); time.sleep(600)"


def python(code: str, name: str = "child") -> Part:
    return Part(name, (sys.executable, "-c", code))


async def until(condition: Callable[[], bool], within_s: float = 15.0) -> None:
    async with asyncio.timeout(within_s):
        while not condition():
            await asyncio.sleep(0.02)


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


async def test_leaving_ends_every_child(tmp_path: Path) -> None:
    async with Supervisor(tmp_path) as supervisor:
        await supervisor.start_together(python(READY_THEN_SLEEP, "a"), python(READY_THEN_SLEEP, "b"))
        pids = [each.process.pid for each in supervisor.running if each.process]
    assert len(pids) == 2
    assert all(gone(pid) for pid in pids)


async def test_a_child_that_dies_is_started_again(tmp_path: Path) -> None:
    async with Supervisor(tmp_path) as supervisor:
        await supervisor.start(python(READY_THEN_SLEEP))
        (running,) = supervisor.running
        assert running.process is not None
        first = running.process.pid
        os.kill(first, signal.SIGKILL)
        await until(lambda: running.process is not None and running.process.pid != first)
        assert running.restarts == 1


async def test_who_lived_for_a_while_is_started_again_at_once_however_often_it_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BACK_OFF_S", (0.01, 600.0))
    monkeypatch.setattr(module, "HEALTHY_AFTER_S", 0.05)
    async with Supervisor(tmp_path) as supervisor:
        running = await supervisor.launch(python("import time; time.sleep(0.2)"))
        await until(lambda: running.restarts >= 3)


async def test_who_dies_at_once_is_started_again_after_ever_longer_pauses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "BACK_OFF_S", (0.01, 0.02, 600.0))
    async with Supervisor(tmp_path) as supervisor:
        running = await supervisor.launch(python("raise SystemExit(3)"))
        await until(lambda: "again in 600.0 s" in caplog.text)
        assert running.restarts == 2


async def test_a_child_that_ignores_the_request_to_end_is_killed(tmp_path: Path) -> None:
    stubborn = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {READY_THEN_SLEEP}"
    async with Supervisor(tmp_path) as supervisor:
        await supervisor.start(python(stubborn))
        (running,) = supervisor.running
        await running.stop(grace=0.2)
        assert running.process is not None
        assert running.process.returncode == -signal.SIGKILL


async def test_a_child_that_cannot_start_is_named_with_its_last_words(tmp_path: Path) -> None:
    async with Supervisor(tmp_path) as supervisor:
        with pytest.raises(StartFailed, match=r"child did not start: .*the disk is on fire"):
            await supervisor.start(python("raise SystemExit('the disk is on fire')"))


async def test_a_child_that_never_gets_ready_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "READY_WITHIN_S", 0.3)
    async with Supervisor(tmp_path) as supervisor:
        with pytest.raises(StartFailed, match="child was not ready"):
            await supervisor.start(python("import time; time.sleep(600)"))


async def test_a_second_mesh_on_the_same_data_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOCK_WITHIN_S", 0.2)
    async with Supervisor(tmp_path):
        with pytest.raises(AlreadyRunning, match=str(tmp_path)):
            async with Supervisor(tmp_path):
                pass


async def test_the_data_is_held_until_the_last_child_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A child of a killed mesh may still be writing: nothing may open its files before it has ended."""
    monkeypatch.setattr(module, "LOCK_WITHIN_S", 0.2)
    async with Supervisor(tmp_path) as supervisor:
        await supervisor.start(python(READY_THEN_SLEEP))
        assert supervisor.lock is not None
        supervisor.lock.close()
        with pytest.raises(AlreadyRunning):
            async with Supervisor(tmp_path):
                pass
        await supervisor.running[0].stop()
        async with Supervisor(tmp_path):
            pass


@pytest.mark.skipif(sys.platform != "linux", reason="PR_SET_PDEATHSIG is Linux's; elsewhere the leash does it")
async def test_children_end_even_when_the_supervisor_is_killed(tmp_path: Path) -> None:
    code = textwrap.dedent(f"""
        import asyncio, sys
        from pathlib import Path
        from mesh.embedded.supervisor import Part, Supervisor
        async def main():
            async with Supervisor(Path({str(tmp_path)!r})) as supervisor:
                await supervisor.start(Part("child", (sys.executable, "-c", {READY_THEN_SLEEP!r})))
                print(supervisor.running[0].process.pid, flush=True)
                await asyncio.sleep(600)
        asyncio.run(main())
    """)
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, cwd=ROOT, text=True)
    assert parent.stdout is not None
    child = int(await asyncio.to_thread(parent.stdout.readline))
    parent.kill()
    parent.wait()
    parent.stdout.close()
    await until(lambda: gone(child))


async def test_the_leash_ends_its_command_when_the_parent_is_gone(tmp_path: Path) -> None:
    said = tmp_path / "pid"
    child = f"import os, time; open({str(said)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    code = textwrap.dedent(f"""
        import os, subprocess, sys, time
        command = [sys.executable, "-m", "mesh.embedded.leash", str(os.getpid()), sys.executable, "-c", {child!r}]
        subprocess.Popen(command)
        time.sleep(600)
    """)
    parent = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT)
    await until(lambda: said.exists() and said.read_text() != "")
    parent.kill()
    parent.wait()
    await until(lambda: gone(int(said.read_text())))


def test_a_busy_port_is_passed_over_for_another() -> None:
    with listen("127.0.0.1") as taken:
        port = taken.getsockname()[1]
        with listen("127.0.0.1", port) as other:
            assert other.getsockname()[1] not in (0, port)


def test_a_free_port_is_taken_as_asked() -> None:
    port = free_port()
    with listen("127.0.0.1", port) as listener:
        assert listener.getsockname()[1] == port


def test_a_host_that_is_not_ours_is_named() -> None:
    with pytest.raises(StartFailed, match=r"192\.0\.2\.1"):
        listen("192.0.2.1")


async def test_a_dead_mesh_that_nobody_has_reaped_holds_nothing(tmp_path: Path) -> None:
    zombie = subprocess.Popen([sys.executable, "-c", "pass"])
    await until(lambda: gone(zombie.pid))
    assert not module.runs(zombie.pid)
    zombie.wait()
    assert module.runs(os.getpid())


async def test_a_data_folder_that_cannot_be_made_is_a_setting_that_is_named() -> None:
    with pytest.raises(Misconfigured, match="ADIYAN_HOME"):
        async with Supervisor(Path("/dev/null")):
            pass
