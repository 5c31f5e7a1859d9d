"""A whole mesh that writes through Meta: no Twilio, real or simulated, is part of it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mesh.settings import ROOT
from mesh.testing.phone import Phone
from tests.contract.channel_stage import ID, NUMBER, SECRET, TOKEN, VERIFY, simulated_meta
from tests.journey.test_mesh import environment, start
from tests.people import ASHA, STRANGER
from tests.processes import free_port

pytestmark = pytest.mark.timeout(120)

NOTES = (
    "notes.txt",
    "text/plain",
    b"The fee of the gala is 7,413 zlotys. It is paid in two parts, in May and in June.",
)

META = {
    "META_ACCESS_TOKEN": TOKEN,
    "META_APP_SECRET": SECRET,
    "META_VERIFY_TOKEN": VERIFY,
    "META_PHONE_NUMBER_ID": ID,
    "META_NUMBER": NUMBER,
}


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path, str]]:
    """The simulated Meta's address, the mesh's home, and what it printed until it was up."""
    home, port = tmp_path_factory.mktemp("meta") / "home", free_port()
    with simulated_meta(port) as meta:
        settings = {
            **META,
            "META_API_BASE": f"{meta.base}/v25.0",
            "PUBLIC_URL": f"http://127.0.0.1:{port}",
            "GATEWAY_PORT": str(port),
        }
        process = start(home, **settings)
        assert process.stdout is not None
        printed = ""
        while "Ctrl-C" not in printed:
            line = process.stdout.readline()
            assert line, printed
            printed += line
        printed += process.stdout.readline()
        try:
            yield meta.base, home, printed
        finally:
            process.terminate()
            process.communicate(timeout=30)


async def test_a_stranger_is_answered_through_meta(mesh: tuple[str, Path, str]) -> None:
    base, _, printed = mesh
    assert "/whatsapp/meta" in printed
    async with Phone(base) as phone:
        await phone.say(STRANGER, "Hello, how much is a room?")
        (reply, *_) = await phone.replies(STRANGER, wait=30)
        assert reply.text
        assert reply.sender == NUMBER


async def test_no_secret_of_metas_is_written_down(mesh: tuple[str, Path, str]) -> None:
    _, home, _ = mesh
    written = b"".join(file.read_bytes() for file in home.glob("**/*.json")) + b"".join(
        file.read_bytes() for file in home.glob("logs/*")
    )
    assert b"META_NUMBER" in written
    assert [secret for secret in (TOKEN, SECRET, VERIFY) if secret.encode() in written] == []


async def test_a_document_sent_through_meta_is_read_and_answered_from(mesh: tuple[str, Path, str]) -> None:
    base, home, _ = mesh
    command = [sys.executable, "-m", "mesh.cli", "clients", "register", ASHA, "--name", "Asha", "--tier", "gold"]
    joined = environment(home) | META | {"PUBLIC_URL": "http://127.0.0.1"}
    ran = subprocess.run(command, cwd=ROOT, env=joined, check=False, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    async with Phone(base) as phone:
        await phone.post(ASHA, "", files=[NOTES])
        (confirmed, *_) = await phone.replies(ASHA, wait=60)
        assert "notes.txt" in confirmed.text
        await phone.say(ASHA, "How much is the fee of the gala?")
        answered = await phone.replies(ASHA, after=confirmed.seq, wait=60)
        assert "7,413" in answered[0].text
