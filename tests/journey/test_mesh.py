"""A whole mesh in its own processes, written to as Twilio would, and looked at as a person would."""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import httpx
import psutil
import pytest
from rich.console import Console

from mesh.cli.following import watch
from mesh.settings import ROOT
from mesh.testing.phone import Phone, Received
from tests.people import ASHA, BEN, OWNER, STRANGER

PRICES = "# Prices\n\n## Rooms\n\nA double room costs 84 euros.\n\n## Parking\n\nParking costs 7 euros a night.\n"
SECRET = "# Contract\n\n## Fee\n\nThe fee of the gala is 7,413 zlotys.\n"

pytestmark = pytest.mark.timeout(120)


@dataclass(frozen=True)
class Running:
    """An `adiyan up`, and how to use it."""

    home: Path
    process: subprocess.Popen[str]
    gateway: str
    dashboard: str
    twilio: str
    said: str
    """What it printed until it was up."""

    def adiyan(self, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
        return adiyan(self.home, *arguments, given=given)

    def pid_of(self, agent: str) -> int:
        (found,) = [
            child.pid for child in psutil.Process(self.process.pid).children() if child.cmdline()[-2:] == ["run", agent]
        ]
        return int(found)


def environment(home: Path) -> dict[str, str]:
    ports = {"GATEWAY_PORT": "0", "DASHBOARD_PORT": "0"}
    return {**os.environ, "ADIYAN_HOME": str(home), "COLUMNS": "240", "QUIET_SECONDS": "0", **ports}


def adiyan(home: Path, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mesh.cli", *arguments],
        cwd=ROOT,
        env=environment(home),
        input=given,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )


def start(home: Path, **more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "mesh.cli", "up"],
        cwd=ROOT,
        env={**environment(home), **more},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def said_until(out: IO[str], word: str) -> str:
    lines = []
    for line in out:
        lines.append(line)
        if word in line:
            return "".join(lines)
    raise AssertionError(f"it ended without saying {word!r}: {''.join(lines)}")


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    home = tmp_path_factory.mktemp("home")
    (home / "shop").mkdir()
    (home / "shop" / "terrace.md").write_text("# Terrace\n\n## Seats\n\nThe terrace seats 41 guests.\n")
    process = start(home, FOLDERS=f"everyone {home / 'shop'}")
    assert process.stdout is not None
    said = said_until(process.stdout, "data ")
    record = json.loads((home / "mesh.json").read_text())
    running = Running(home, process, record["gateway"], record["dashboard"], record["phone"], said)
    (home / "prices.md").write_text(PRICES)
    (home / "contract.md").write_text(SECRET)
    for arguments in (
        ("clients", "register", ASHA, "--name", "Asha"),
        ("clients", "register", BEN, "--name", "Ben", "--tier", "gold"),
        ("kb", "add", str(home / "prices.md"), "--global"),
        ("kb", "add", str(home / "contract.md"), "--owner", BEN),
    ):
        ran = running.adiyan(*arguments)
        assert ran.returncode == 0, ran.stderr
    try:
        yield running
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)


@pytest.fixture
async def phone(mesh: Running) -> AsyncIterator[Phone]:
    async with Phone(mesh.twilio) as opened:
        yield opened


@asynccontextmanager
async def replies_to(phone: Phone, who: str) -> AsyncIterator[list[Received]]:
    """Collects what `who` receives inside the block, and the first reply after it."""
    before = await phone.replies(who)
    seq = before[-1].seq if before else 0
    got: list[Received] = []
    yield got
    got += await phone.replies(who, seq, 40.0)


async def ask(phone: Phone, who: str, text: str) -> str:
    async with replies_to(phone, who) as got:
        await phone.say(who, text)
    assert got, f"no reply to {text!r}"
    return got[0].text


async def test_a_question_is_answered_from_a_document(phone: Phone) -> None:
    assert "84 euros" in await ask(phone, ASHA, "How much is a double room?")


async def test_a_private_contract_is_there_for_its_owner_and_absent_for_another(phone: Phone) -> None:
    assert "7,413" in await ask(phone, BEN, "What is the fee of the gala?")
    await ask(phone, ASHA, "How much is a double room?")  # her first message is answered with a greeting, too
    foreign = await ask(phone, ASHA, "What is the fee of the gala?")
    absent = await ask(phone, ASHA, "What is the fee of the regatta?")
    assert foreign == absent


async def test_a_client_on_the_default_tier_always_gets_an_answer(phone: Phone) -> None:
    """Incident d: a permission gap between searching and the fallback once ended in silence."""
    for text in ("asdf qwer", "?", "Why is the sky blue", "I need help with my taxes", "\u202eright to left", "नमस्ते"):
        assert await ask(phone, ASHA, text)


async def test_a_replayed_webhook_is_answered_once(phone: Phone) -> None:
    async with replies_to(phone, ASHA) as got:
        first = await phone.post(ASHA, "How much is parking?")
        again = [await phone.post(ASHA, "How much is parking?", message_sid=first.message_sid) for _ in range(3)]
    assert {each.status for each in (first, *again)} == {200}
    # a later message is answered after everything that came before it
    last = await ask(phone, ASHA, "hello")
    texts = [each.text for each in await phone.replies(ASHA, got[0].seq)]
    assert "7 euros" in got[0].text
    assert texts == [last]


async def test_ten_messages_in_a_row_are_answered_in_order(phone: Phone) -> None:
    before = await phone.replies(ASHA)
    seq = before[-1].seq if before else 0
    texts = ["How much is parking?", "How much is a double room?"] * 5
    for text in texts:
        await phone.say(ASHA, text)
    got: list[Received] = []
    while len(got) < len(texts):
        more = await phone.replies(ASHA, got[-1].seq if got else seq, 40.0)
        assert more, f"{len(got)} replies to {len(texts)} messages"
        got += more
    wanted = ["7 euros", "84 euros"] * 5
    assert [word for word, each in zip(wanted, got, strict=True) if word in each.text] == wanted


async def test_a_forged_webhook_is_refused_and_costs_nothing(mesh: Running) -> None:
    form = {"MessageSid": "SM" + "f" * 32, "From": f"whatsapp:{ASHA}", "To": "whatsapp:+14155238886", "Body": "hello"}
    async with httpx.AsyncClient() as client:
        answer = await client.post(
            f"{mesh.gateway}/whatsapp/twilio", data=form, headers={"X-Twilio-Signature": "Zm9yZ2Vk"}
        )
    assert answer.status_code == 403
    assert "PUBLIC_URL" in answer.text


async def test_registering_takes_effect_at_once_and_blocking_too(mesh: Running, phone: Phone) -> None:
    newcomer = "+15557654321"
    assert "register" in await ask(phone, newcomer, "How much is a double room?")
    assert "registered on default" in mesh.adiyan("clients", "register", newcomer, "--name", "Noor").stdout
    assert "84 euros" in await ask(phone, newcomer, "How much is a double room?")
    assert "blocked" in mesh.adiyan("clients", "register", newcomer, "--name", "Noor", "--block").stdout
    assert "84" not in await ask(phone, newcomer, "How much is a double room?")
    renamed = mesh.adiyan("clients", "register", newcomer, "--name", "Noor K").stdout
    assert "was called Noor" in renamed
    assert "no longer blocked" not in renamed
    assert "84" not in await ask(phone, newcomer, "How much is a double room?")
    moved = mesh.adiyan("clients", "register", newcomer, "--tier", "gold", "--unblock").stdout
    assert "Noor K: default → gold" in moved
    assert "no longer blocked" in moved
    assert "unchanged" in mesh.adiyan("clients", "register", newcomer).stdout
    assert "84 euros" in await ask(phone, newcomer, "How much is a double room?")


async def test_a_killed_agent_costs_no_message(mesh: Running, phone: Phone) -> None:
    for agent in ("knowledge", "orchestrator", "gateway"):
        async with replies_to(phone, ASHA) as got:
            if agent == "gateway":
                os.kill(mesh.pid_of(agent), signal.SIGKILL)
                await accepted_again(mesh)
                await phone.say(ASHA, "How much is a double room?")
            else:
                await phone.say(ASHA, "How much is a double room?")
                os.kill(mesh.pid_of(agent), signal.SIGKILL)
        assert got, f"silence after {agent} was killed"


async def test_the_dashboard_and_the_chat_page_are_where_it_says(mesh: Running, phone: Phone) -> None:
    await ask(phone, BEN, "What is the fee of the gala?")
    assert f"dashboard  {mesh.dashboard}" in mesh.said
    assert f"chat page  {mesh.twilio}" in mesh.said
    async with httpx.AsyncClient() as client:
        shown = (await client.get(mesh.dashboard)).text
        assert f'href="{mesh.twilio}"' in shown
        for word in (
            "orchestrator",
            "knowledge",
            "memory",
            "What is the fee of the gala?",
            "knowledge.answer grounded",
        ):
            assert word in shown
        assert 'id="composer"' in (await client.get(mesh.twilio)).text


async def accepted_again(mesh: Running) -> None:
    async with asyncio.timeout(20), httpx.AsyncClient() as client:
        while True:
            try:
                if (await client.get(f"{mesh.gateway}/readyz")).is_success:
                    return
            except httpx.HTTPError:
                await asyncio.sleep(0.1)


async def test_a_human_takes_over_until_the_owner_hands_back(mesh: Running, phone: Phone) -> None:
    guest = "+15557654322"
    mesh.adiyan("clients", "register", guest, "--name", "Mia")
    async with replies_to(phone, OWNER) as told:
        assert "A person takes over" in await ask(phone, guest, "/human")
    assert guest in told[0].text
    assert guest in mesh.adiyan("clients", "waiting").stdout
    await phone.say(guest, "How much is a double room?")
    async with replies_to(phone, guest) as got:
        assert "answers again" in mesh.adiyan("clients", "hand-back", guest).stdout
    assert ["It's me again" in each.text for each in got] == [True], "the question in between was not for the mesh"
    assert "84 euros" in await ask(phone, guest, "How much is a double room?")
    assert "not in a human's hands" in mesh.adiyan("clients", "hand-back", guest).stdout
    assert "Nobody waits" in mesh.adiyan("clients", "waiting").stdout


def test_the_owners_lists_show_who_and_what(mesh: Running) -> None:
    people = mesh.adiyan("clients", "list").stdout
    assert "Asha" in people
    assert "gold" in people
    documents = mesh.adiyan("kb", "list").stdout
    assert "prices.md" in documents
    assert "contract.md" in documents
    seen_by_asha = mesh.adiyan("kb", "list", "--as", ASHA).stdout
    assert "prices.md" in seen_by_asha
    assert "contract.md" not in seen_by_asha


def test_a_document_is_shown_as_it_was_read_to_whoever_may_see_it(mesh: Running) -> None:
    shown = mesh.adiyan("kb", "show", "contract.md", "--passages").stdout
    assert "1 part(s), 0 with something that could not be read" in shown
    assert "7,413" in shown
    foreign, absent = (mesh.adiyan("kb", "show", name, "--as", ASHA) for name in ("contract.md", "nothing.md"))
    assert foreign.returncode == absent.returncode != 0
    assert foreign.stderr.replace("contract", "nothing") == absent.stderr
    assert "no document called" in foreign.stderr


def test_adding_a_document_twice_changes_nothing_and_says_so(mesh: Running) -> None:
    assert "unchanged" in mesh.adiyan("kb", "add", str(mesh.home / "prices.md"), "--global").stdout


def test_passages_are_made_again_from_the_files_while_the_mesh_runs(mesh: Running) -> None:
    before = mesh.adiyan("kb", "show", "contract.md", "--passages").stdout
    ran = mesh.adiyan("kb", "rebuild", "prices.md", f"{BEN}/contract.md")
    assert ran.returncode == 0, ran.stderr
    assert "contract.md: 1 passage(s)" in ran.stdout
    assert "2 of 2 document(s)" in ran.stdout
    assert mesh.adiyan("kb", "show", "contract.md", "--passages").stdout == before
    absent = mesh.adiyan("kb", "rebuild", "nothing.md")
    assert absent.returncode != 0
    assert "no document called" in absent.stderr


async def test_a_document_that_is_removed_is_quoted_no_more(mesh: Running, phone: Phone, tmp_path: Path) -> None:
    (tmp_path / "piano.md").write_text("# Piano\n\nThe piano was tuned for 77 euros.\n")
    assert mesh.adiyan("kb", "add", str(tmp_path / "piano.md"), "--global").returncode == 0
    assert "77" in await ask(phone, BEN, "What did the piano's tuning cost?")
    half = mesh.adiyan("kb", "remove", "piano.md", "nothing.md")
    assert half.returncode == 1
    assert "piano.md" in mesh.adiyan("kb", "list").stdout, "all of them, or none"
    ran = mesh.adiyan("kb", "remove", "piano.md")
    assert "piano.md of" in ran.stdout
    assert "piano.md" not in mesh.adiyan("kb", "list").stdout
    assert "77" not in await ask(phone, BEN, "What did the tuning of the piano cost?")


def test_a_number_is_understood_as_people_write_it(mesh: Running) -> None:
    spaced = f"{ASHA[:2]} ({ASHA[2:5]}) {ASHA[5:8]}-{ASHA[8:]}"
    assert "unchanged" in mesh.adiyan("clients", "register", spaced, "--name", "Asha").stdout


def test_an_unreadable_document_is_named_and_the_others_are_added(mesh: Running, tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(b"%PDF-1.4\n" + b"\x00" * 100)
    (tmp_path / "b.md").write_text("# Pool\n\nThe pool opens at 9:00.\n")
    ran = mesh.adiyan("kb", "add", str(tmp_path))
    assert ran.returncode == 1
    assert "a.pdf" in ran.stdout
    assert "b.md: added" in ran.stdout
    assert "Traceback" not in ran.stdout + ran.stderr


async def test_the_files_of_a_folder_in_the_settings_are_there_without_a_command(mesh: Running, phone: Phone) -> None:
    async with asyncio.timeout(60):
        while "terrace.md" not in await asyncio.to_thread(lambda: mesh.adiyan("kb", "list").stdout):
            await asyncio.sleep(0.5)
    assert "41" in await ask(phone, BEN, "How many guests does the terrace seat?")


async def test_a_watched_folder_is_followed_and_what_leaves_it_is_not_quoted_any_more(
    mesh: Running, phone: Phone, tmp_path: Path
) -> None:
    sauna, other = tmp_path / "sauna.md", tmp_path / "towels.md"
    sauna.write_text("# Sauna\n\n## Entry\n\nThe sauna costs 19 euros for an evening.\n")
    other.write_text("# Towels\n\nTowels are free.\n")
    watching = subprocess.Popen(
        [sys.executable, "-m", "mesh.cli", "kb", "watch", str(tmp_path), "--global", "--every", "0.5"],
        cwd=ROOT,
        env=environment(mesh.home),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert watching.stdout is not None
    try:
        said = await asyncio.to_thread(said_until, watching.stdout, "sauna.md: added")  # written two seconds ago by now
        assert "2 file(s), seen by everyone" in said
        assert "19 euros" in await ask(phone, BEN, "How much does the sauna cost?")
        sauna.unlink()
        await asyncio.to_thread(said_until, watching.stdout, "sauna.md: gone from the folder, withdrawn")
        assert "19 euros" not in await ask(phone, BEN, "What does the sauna cost?")
    finally:
        watching.send_signal(signal.SIGINT)
        assert watching.wait(20) == 130
        watching.stdout.close()
    again = mesh.adiyan("kb", "watch", str(tmp_path), "--global", "--once").stdout
    assert "1 file(s), seen by everyone" in again
    assert "towels.md" not in again, "it was taken in before"


async def test_watching_once_counts_what_was_refused_while_another_file_was_still_being_written(
    mesh: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment(mesh.home).items():
        monkeypatch.setenv(name, value)
    (tmp_path / "bad.pdf").write_bytes(b"%PDF-1.4\n" + b"\x00" * 100)
    os.utime(tmp_path / "bad.pdf", (0, 0))
    (tmp_path / "fresh.md").write_text("# Lockers\n\nLockers are free.\n")
    said = io.StringIO()
    trouble = await watch(tmp_path, BEN, Console(file=said, width=240), everyone=False, every_s=0.2, once=True)
    refused, looked, added = map(said.getvalue().index, ("bad.pdf", "Looked at", "fresh.md: added"))
    assert refused < looked < added, "they came in two rounds"
    assert trouble == 1


def test_a_watched_folder_leaves_the_names_of_a_folder_of_the_settings_to_it(
    mesh: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOLDERS", f"everyone {mesh.home / 'shop'}")
    (tmp_path / "terrace.md").write_text("# Terrace\n\nThe terrace is closed.\n")
    os.utime(tmp_path / "terrace.md", (0, 0))
    ran = mesh.adiyan("kb", "watch", str(tmp_path), "--global", "--once")
    assert ran.returncode == 1, ran.stderr
    assert "have one name: only the first is read" in ran.stdout
    assert "terrace.md: added" not in ran.stdout + ran.stderr
    assert "0 file(s), seen by everyone" in ran.stdout


def test_a_conversation_in_the_terminal(mesh: Running) -> None:
    ran = mesh.adiyan("chat", "--as", ASHA, given="How much is parking?\n\nhello\n")
    assert ran.returncode == 0, ran.stderr
    assert "7 euros" in ran.stdout
    assert ran.stdout.count("adiyan") == 2
    lines = ran.stdout.splitlines()
    assert f"{ASHA} How much is parking?" in lines, "who pipes questions sees which reply is to which"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("clients", "register", "5551230001"), "country code"),
        (("clients", "register", ASHA, "--tier", "platinum"), "gold"),
        (("kb", "add", "/nowhere/at/all.md"), "does not exist"),
        (("kb", "add", "README.md", "--global", "--owner", ASHA), "Choose one"),
        (("kb", "add", "README.md", "--owner", "+15551239999"), "is not registered"),
        (("kb", "watch", "/nowhere/at/all"), "no folder"),
        (("kb", "watch", ".", "--owner", "+15551239999"), "is not registered"),
        (("kb", "remove", "nothing.md"), "no document called"),
        (("up",), "already runs"),
        (("run", "astrologer"), "no agent called astrologer"),
    ],
)
def test_a_mistake_is_told_in_a_sentence(mesh: Running, arguments: tuple[str, ...], told: str) -> None:
    ran = mesh.adiyan(*arguments)
    assert ran.returncode == 1
    assert told in ran.stdout + ran.stderr
    assert "Traceback" not in ran.stdout + ran.stderr


async def test_no_log_holds_a_message_or_a_phone_number(mesh: Running, phone: Phone) -> None:
    before = await phone.replies(ASHA)
    await phone.say(ASHA, "How much is parking?")
    assert await phone.replies(ASHA, before[-1].seq if before else 0, 40.0)
    logs = "".join(file.read_text("utf-8", "replace") for file in (mesh.home / "logs").glob("*.log"))
    assert "skill=knowledge.answer" in logs
    for word in ("How much is", "7,413", *(who.removeprefix("+") for who in (ASHA, BEN, STRANGER, OWNER))):
        assert word not in logs


def test_without_a_mesh_a_command_says_how_to_start_one(tmp_path: Path) -> None:
    ran = adiyan(tmp_path, "clients", "list")
    assert ran.returncode == 1
    assert "./run up" in ran.stderr


def test_a_configured_redis_a_busy_port_and_ctrl_c(tmp_path: Path, redis_server: str) -> None:
    """What is configured is not started, a busy port is replaced, and nothing is left behind."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        process = start(tmp_path, GATEWAY_PORT=str(port), REDIS_URL=f"{redis_server}/14")
        assert process.stdout is not None
        said = said_until(process.stdout, "The mesh is up")
        assert f"Port {port} is busy" in said
        children = psutil.Process(process.pid).children(recursive=True)
        assert len(children) >= 7
        assert not [child for child in children if "valkey" in child.name()]
        assert (tmp_path / "qdrant").is_dir()
        assert not (tmp_path / "redis").exists()
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    assert "Stopped" in rest
    assert time.monotonic() - began < 15
    assert not [child for child in children if child.is_running() and child.status() != psutil.STATUS_ZOMBIE]
    assert not (tmp_path / "mesh.json").exists()


def test_ctrl_c_during_the_start_leaves_nothing_behind_either(tmp_path: Path) -> None:
    process = start(tmp_path)
    assert process.stdout is not None
    said_until(process.stdout, "Starting")
    until = time.monotonic() + 20
    while not (children := psutil.Process(process.pid).children(recursive=True)):
        assert time.monotonic() < until
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    assert "Traceback" not in rest
    assert not [child for child in children if child.is_running() and child.status() != psutil.STATUS_ZOMBIE]
