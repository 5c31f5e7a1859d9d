"""What `adiyan doctor` and `adiyan health` say of a mesh that is well, and of what may be wrong with one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import psutil
import pytest

from mesh.cli import doctor, probes
from mesh.cli.findings import Level, Scene, place
from mesh.contracts.documents import DocumentCard, Ingested
from mesh.embedded import parts
from mesh.errors import Unreadable
from mesh.folders import File, Folder
from mesh.settings import ROOT, Settings, Watched, load
from tests.conftest import wait_for_redis
from tests.processes import free_port

TOKEN = "t0k3n-that-nobody-may-see"
PASSWORD = "pa55word"
SID = "AC" + "1" * 32
OWNER = "+15551230000"

pytestmark = pytest.mark.timeout(180)


@dataclass(frozen=True)
class Said:
    code: int
    text: str
    """All that was printed."""

    @property
    def findings(self) -> list[dict[str, str]]:
        return list(json.loads(self.text)["findings"])

    def about(self, about: str) -> str:
        """The findings about it, each with its level and what to do."""
        rows = [row for row in self.findings if row["about"] == about]
        return "\n".join(f"{row['level']}: {row['text']} {row['todo']}" for row in rows)


def bare() -> dict[str, str]:
    """The environment without settings of whoever runs the tests."""
    own = {name.upper() for name in Settings.model_fields}
    return {name: value for name, value in os.environ.items() if name not in own}


def adiyan(home: Path, *arguments: str, **settings: str) -> Said:
    ran = subprocess.run(
        [sys.executable, "-m", "mesh.cli", *arguments],
        cwd=ROOT,
        env={**bare(), "ADIYAN_HOME": str(home), "COLUMNS": "240", **settings},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert "Traceback" not in ran.stdout + ran.stderr
    for secret in (TOKEN, PASSWORD):
        assert secret not in ran.stdout + ran.stderr
    return Said(ran.returncode, ran.stdout + ran.stderr)


def examined(home: Path, **settings: str) -> Said:
    """On ports that nothing listens on, unless told otherwise."""
    ports = {"GATEWAY_PORT": str(free_port()), "DASHBOARD_PORT": str(free_port())}
    return adiyan(home, "doctor", "--json", **{**ports, **settings})


# ── a mesh that runs ──────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Mesh:
    home: Path
    process: subprocess.Popen[str]
    addresses: dict[str, str]
    gateway: str

    def worker(self, agent: str) -> psutil.Process:
        children = psutil.Process(self.process.pid).children(recursive=True)
        return next(child for child in children if child.cmdline()[-2:] == ["run", agent])


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mesh]:
    home = tmp_path_factory.mktemp("home")
    process = subprocess.Popen(
        [sys.executable, "-m", "mesh.cli", "up"],
        cwd=ROOT,
        env={**bare(), "ADIYAN_HOME": str(home), "GATEWAY_PORT": "0", "DASHBOARD_PORT": "0"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    try:
        lines = []
        for line in process.stdout:
            lines.append(line)
            if "The mesh is up" in line:
                break
        assert (home / "mesh.json").exists(), "".join(lines)
        record = json.loads((home / "mesh.json").read_text())
        wanted = ("REDIS_URL", "MONGODB_URI", "QDRANT_URL", "OLLAMA_HOST")
        addresses = {name: record["environment"][name] for name in wanted}
        yield Mesh(home, process, addresses, record["gateway"])
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)


def test_a_mesh_that_is_well_has_nothing_wrong(mesh: Mesh) -> None:
    said = adiyan(mesh.home, "doctor", "--json")
    assert said.code == 0, said.text
    assert json.loads(said.text)["ok"] is True
    assert {row["level"] for row in said.findings if row["about"] != "Data"} == {"fine"}  # a disk may be small
    assert {row["about"] for row in said.findings} >= {
        *("Python", "Settings", "Parts", "Data", "Redis", "MongoDB", "Qdrant", "Models"),
        *("Agents", "Gateway", "Dashboard", "Twilio", "Webhook"),
    }
    assert "knowledge 1" in said.about("Agents")
    assert "simulated" in said.about("Twilio")
    assert "refuses what is not signed" in said.about("Webhook")


def test_a_person_reads_a_line_a_finding(mesh: Mesh) -> None:
    said = adiyan(mesh.home, "doctor")
    assert said.code == 0
    assert "✓ Redis" in said.text
    assert "✓ Webhook" in said.text
    assert "Nothing is wrong." in said.text


def test_every_process_of_it_is_well_and_says_so_in_one_line(mesh: Mesh) -> None:
    for name in ("gateway", "dashboard", "orchestrator", "knowledge", "memory"):
        said = adiyan(mesh.home, "health", name)
        assert (said.code, len(said.text.splitlines())) == (0, 1), said.text
        assert name in said.text


def test_a_worker_that_hangs_is_told_and_is_well_again_afterwards(mesh: Mesh) -> None:
    worker = mesh.worker("memory")
    worker.suspend()
    try:
        said = until(lambda: adiyan(mesh.home, "health", "memory"), lambda said: said.code == 1)
        assert "No worker of memory is alive" in said.text
        whole = adiyan(mesh.home, "doctor", "--json")
        assert whole.code == 1
        assert "broken: Not alive: memory." in whole.about("Agents")
    finally:
        worker.resume()
    until(lambda: adiyan(mesh.home, "health", "memory"), lambda said: said.code == 0)


def until(look: Callable[[], Said], good: Callable[[Said], bool], within_s: float = 30.0) -> Said:
    end = time.monotonic() + within_s
    while not good(said := look()):
        assert time.monotonic() < end, said.text
    return said


def test_a_wrong_vector_size_is_told_with_the_right_one(mesh: Mesh, tmp_path: Path) -> None:
    said = examined(tmp_path, **mesh.addresses, EMBEDDING_DIMS="512")
    assert said.code == 1
    assert "broken: Setting embedding_dims (EMBEDDING_DIMS) is 512" in said.about("Models")
    assert "set it to 384" in said.about("Models")
    assert "was made for multilingual-e5-small (384 numbers a text)" in said.about("Qdrant")


def test_models_that_are_not_there_are_told(mesh: Mesh, tmp_path: Path) -> None:
    host = mesh.addresses["OLLAMA_HOST"]
    said = examined(tmp_path, OLLAMA_HOST=host, EMBEDDING_MODEL="nomic-embed-text", CHAT_MODEL="some-chat")
    assert said.code == 1
    assert "no model nomic-embed-text: pull it" in said.about("Models")
    assert "ollama pull some-chat" in said.about("Models")


# ── nothing runs ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_with_nothing_running_it_says_so_and_that_nothing_is_wrong(tmp_path: Path) -> None:
    said = examined(tmp_path / "none")
    assert said.code == 0, said.text
    assert "embedded: Redis, MongoDB, Qdrant, Models" in said.about("Parts")
    assert "does not run here" in said.about("Gateway")
    assert "simulate" in said.about("Twilio")
    assert not (tmp_path / "none").exists()


def test_an_unreachable_mongodb_is_told_with_what_to_do(tmp_path: Path) -> None:
    said = examined(tmp_path, MONGODB_URI=f"mongodb://adiyan:{PASSWORD}@127.0.0.1:{free_port()}/?authSource=admin")
    assert said.code == 1
    assert "can't be reached" in said.about("MongoDB")
    assert "correct MONGODB_URI" in said.about("MongoDB")


def test_an_address_is_shown_without_who_asks() -> None:
    assert place(f"mongodb://adiyan:{PASSWORD}@db:27017/?authSource=admin") == "mongodb://db:27017"
    assert place(f"redis://:{PASSWORD}@[::1]:6379/0") == "redis://[::1]:6379/0"


def test_what_does_not_answer_is_told_for_each_address(tmp_path: Path) -> None:
    nowhere = f"http://127.0.0.1:{free_port()}"
    said = examined(tmp_path, REDIS_URL=f"redis://:{PASSWORD}@127.0.0.1:{free_port()}/0", QDRANT_URL=nowhere,
                    OLLAMA_HOST=nowhere)  # fmt: skip
    for about, setting in (("Redis", "REDIS_URL"), ("Qdrant", "QDRANT_URL"), ("Models", "OLLAMA_HOST")):
        assert "can't be reached" in said.about(about)
        assert setting in said.about(about)


def test_a_process_that_does_not_run_is_not_well(tmp_path: Path, redis_url: str) -> None:
    for name in ("gateway", "dashboard"):
        said = adiyan(tmp_path, "health", name, REDIS_URL=redis_url, **{f"{name.upper()}_PORT": str(free_port())})
        assert said.code == 1
        assert "does not answer" in said.text
    said = adiyan(tmp_path, "health", "knowledge", REDIS_URL=redis_url)
    assert said.code == 1
    assert "No worker of knowledge" in said.text
    said = adiyan(tmp_path, "health", "knowledge", REDIS_URL=f"redis://127.0.0.1:{free_port()}/0")
    assert said.code == 1
    assert "Redis can't be asked" in said.text


def test_wrong_settings_are_told_in_a_sentence(tmp_path: Path) -> None:
    said = examined(tmp_path, REDIS_URL=f"http://:{PASSWORD}@127.0.0.1")
    assert said.code == 1
    assert "REDIS_URL" in said.about("Settings")


def test_a_home_that_cant_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    said = examined(tmp_path / "file" / "home")
    assert said.code == 1
    assert "Set ADIYAN_HOME" in said.about("Data")


def test_an_embedded_part_that_is_not_installed_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("QDRANT_URL", raising=False)
    about, _, probe = doctor.PARTS["qdrant_url"]
    monkeypatch.setitem(doctor.PARTS, "qdrant_url", (about, "no_such_package", probe))
    first = doctor._parts(load())[0]
    assert first.level is Level.BROKEN
    assert "Set QDRANT_URL" in first.todo


# ── stores that are set up wrongly ────────────────────────────────────────────────────────────────────────────────


async def refused(shop: Path, home: Path, why: str) -> None:
    """As the knowledge agent leaves it: one file was taken in, the others were not."""
    folder = Folder(Watched(shop, OWNER, "global"), home)

    async def add(file: File) -> Ingested:
        if file.name != "hours.txt":
            raise Unreadable(f"{file.name} {why}")
        about = {"document_id": "d", "owner": OWNER, "visibility": "global", "size": 1, "chunks": 1}
        card = DocumentCard.model_validate({**about, "name": file.name, "ingested_at": datetime.now(UTC)})
        return Ingested(document=card, outcome="added", parts=1)

    async def withdraw(document_id: str) -> None:
        raise AssertionError(document_id)

    await folder.follow(folder.look(), add, withdraw)


async def test_a_file_of_a_folder_that_was_not_taken_in_is_named_with_the_reason(tmp_path: Path) -> None:
    shop, home = tmp_path / "shop", tmp_path / "home"
    shop.mkdir()
    for name in ("hours.txt", *(f"scan {number}.pdf" for number in range(7))):
        (shop / name).write_text(name)
        os.utime(shop / name, (0, 0))
    await refused(shop, home, "is damaged.")
    said = examined(home, FOLDERS=f"everyone {shop}\neveryone {tmp_path / 'away'}", SYSTEM_OWNER=OWNER)
    told = said.about("Folder")
    assert f"note: {shop}: 7 file(s) not taken in. scan 0.pdf is damaged. " in told
    assert "And 2 more." in told
    assert f"note: {tmp_path / 'away'} is no folder that can be read here." in told


def test_what_of_a_folder_could_not_be_looked_at_is_told(tmp_path: Path) -> None:
    shop, home = tmp_path / "shop", tmp_path / "home"
    shop.mkdir()
    Folder(Watched(shop, OWNER, "global"), home).note(["2026 can't be looked at."])
    told = examined(home, FOLDERS=f"everyone {shop}", SYSTEM_OWNER=OWNER).about("Folder")
    assert "note: 2026 can't be looked at." in told
    assert "taken in" not in told


@contextmanager
def valkey(folder: Path, **changed: str) -> Iterator[str]:
    """The embedded one, with other flags."""
    port = free_port()
    command = list(parts.redis(port, folder / "redis").command)
    for flag, value in changed.items():
        command += [f"--{flag.replace('_', '-')}", value]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        yield f"127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def test_a_redis_that_may_lose_messages_is_told(tmp_path: Path) -> None:
    with valkey(tmp_path, appendonly="no", maxmemory_policy="allkeys-lru") as where:
        wait_for_redis(int(where.rpartition(":")[2]))
        said = examined(tmp_path, REDIS_URL=f"redis://{where}/0")
    assert said.code == 1
    assert "--appendonly yes" in said.about("Redis")
    assert "--maxmemory-policy noeviction" in said.about("Redis")


def test_a_redis_that_refuses_the_password_is_told(redis_server: str, tmp_path: Path) -> None:
    said = examined(tmp_path, REDIS_URL=redis_server.replace("redis://", f"redis://:{PASSWORD}@") + "/0")
    assert said.code == 1
    assert "refuses the password" in said.about("Redis")


# ── Twilio and the webhook ────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def answering(status: int, body: str = "", **headers: str) -> Iterator[str]:
    """A server that says the same to everybody."""

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body.encode())

        do_GET = do_POST = _answer

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def real(api: str, public: str) -> dict[str, str]:
    return {
        "TWILIO_ACCOUNT_SID": SID,
        "TWILIO_AUTH_TOKEN": TOKEN,
        "TWILIO_API_BASE": api,
        "PUBLIC_URL": public,
    }


async def probed(probe: probes.Probe, api: str, public: str) -> str:
    """Without the net that hides secrets: a probe names none."""
    settings = load(**{name.lower(): value for name, value in real(api, public).items()})
    found = await probe(Scene(settings, running=False, simulated=""))
    said = "\n".join(f"{finding.level.name.lower()}: {finding.text} {finding.todo}" for finding in found)
    assert TOKEN not in said
    return said


@pytest.mark.parametrize(
    ("status", "account", "told"),
    [
        (401, {"code": 20003}, "broken: It refuses the credentials (error 20003)."),
        (200, {"status": "active", "type": "Full"}, "fine: The credentials are accepted"),
        (200, {"status": "active", "type": "Trial", "auth_token": TOKEN}, "note: The credentials are accepted."),
        (200, {"status": "suspended"}, "broken: The account is suspended."),
        (200, {"status": "active", "auth_token": PASSWORD}, "secondary token"),
        (503, {}, "broken: It says 503"),
    ],
)
async def test_what_twilio_says_of_the_account_is_told(status: int, account: dict[str, str], told: str) -> None:
    with answering(status, json.dumps(account)) as api:
        assert told in await probed(probes.twilio, api, "https://mesh.example.com")


def test_a_refused_account_and_an_unreachable_webhook_are_told(tmp_path: Path) -> None:
    with answering(401, '{"code": 20003}') as api:
        said = examined(tmp_path, **real(api, f"http://127.0.0.1:{free_port()}"))
    assert said.code == 1
    assert "Copy TWILIO_ACCOUNT_SID and TWILIO_AUTH_TOKEN anew" in said.about("Twilio")
    assert "can't be reached" in said.about("Webhook")


def test_the_gateway_is_recognised_behind_the_public_address(mesh: Mesh, tmp_path: Path) -> None:
    with answering(200, "{}") as api:
        said = examined(tmp_path, **real(api, mesh.gateway)).about("Webhook")
    assert "note: " in said
    assert "without encryption" in said


@pytest.mark.parametrize(
    ("status", "headers", "told"),
    [
        (200, {}, "it is not the gateway"),
        (404, {}, "says 404"),
        (403, {}, "says 403, and not the gateway's refusal"),
        (308, {"Location": "https://mesh.example.com/"}, "redirects"),
        (502, {}, "says 502"),
    ],
)
async def test_another_answer_at_the_public_address_is_told(status: int, headers: dict[str, str], told: str) -> None:
    with answering(status, "no", **headers) as public:
        said = await probed(probes.webhook, public, public)
    assert said.startswith("broken: ")
    assert told in said
