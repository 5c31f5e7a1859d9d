"""The dashboard as its reader sees it: the real process, a real Redis, real workers, and a browser."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.async_api import expect
from pymongo import MongoClient

from mesh.bus import Bus
from mesh.contracts.answers import Source
from mesh.contracts.orchestrator import Reply
from mesh.embedded import parts
from mesh.ingestions import Ingestions, Progress
from mesh.lease import said_and_answered
from mesh.ledger import Ledger
from mesh.pages import HEADERS
from mesh.ports.channel import Delivery, Inbound
from mesh.settings import ROOT
from tests.browser import PHONE, Open, open_page
from tests.conftest import wait_for_redis
from tests.people import ASHA, BEN
from tests.processes import free_port
from tests.redis.stage import SLOW, Stage, request, until, working
from tests.stores import QUIET, mongodb

__all__ = ["open_page"]

NUMBER = "+14155238886"
SCRIPT = "<script>document.title = 'taken over'</script><img src=x onerror=alert(1)>"
STEPS = ("memory.answer nothing found 31 ms", "knowledge.answer grounded 120 ms")
ANSWER = Reply(
    text="A double room costs 84 euros.",
    skill="knowledge.answer",
    sources=(Source(kind="document", name="price-list.md", section="Rooms"),),
    steps=STEPS,
)


@contextmanager
def dashboard(redis_url: str, folder: Path, **more: str) -> Iterator[str]:
    """`adiyan run dashboard`, configured for the agents `orchestrator` and `plain`."""
    agents = folder / "config" / "agents"
    agents.mkdir(parents=True)
    (agents.parent / "mesh.yaml").write_text("")
    for name in ("orchestrator", "plain"):
        (agents / f"{name}.yaml").write_text(f"{{name: {name}, module: no.such.module}}")
    port = free_port()
    settings = {"ADIYAN_HOME": str(folder), "ADIYAN_CONFIG": str(agents.parent), "DASHBOARD_PORT": str(port)}
    environment = {**os.environ, "REDIS_URL": redis_url, "MONGODB_URI": "", **settings, **more}
    command = [sys.executable, "-m", "mesh.cli", "run", "dashboard"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)
    try:
        url = f"http://127.0.0.1:{port}"
        until_it_answers(url, process, folder / "log")
        yield url
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(10)


def until_it_answers(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + 30
    while time.monotonic() < until and process.poll() is None:
        try:
            if httpx.get(f"{url}/healthz", timeout=1).is_success:
                return
        except httpx.TransportError:
            time.sleep(0.05)
    raise AssertionError(f"the dashboard did not start: {log.read_text()}")


@pytest.fixture(scope="module")
def address(redis_server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with dashboard(f"{redis_server}/15", tmp_path_factory.mktemp("dashboard")) as url:
        yield url


@pytest.fixture
async def bus(redis_url: str) -> AsyncIterator[Bus]:
    async with Bus(redis_url) as opened:
        yield opened


@pytest.fixture
async def ledger(bus: Bus) -> AsyncIterator[Ledger]:
    made = Ledger(bus.redis)
    yield made
    await made.close()


async def accept(ledger: Ledger, message_id: str, text: str, sender: str = ASHA) -> Inbound:
    message = Inbound(message_id, sender, NUMBER, text, {"Body": text})
    await ledger.accept(message)
    return message


async def answered(ledger: Ledger, message_id: str, text: str, reply: Reply = ANSWER, sender: str = ASHA) -> None:
    message = await accept(ledger, message_id, text, sender)
    async with ledger.lease(message.chat) as lease:
        assert lease is not None
        turn = await lease.next()
        assert turn is not None
        await lease.planned(turn, reply)
        await lease.sending(turn)
        await lease.sent(turn, f"SM out {message_id}", said_and_answered(text, reply))


async def died(ledger: Ledger, message_id: str, reason: str) -> None:
    message = await accept(ledger, message_id, "Will you answer this?")
    async with ledger.lease(message.chat) as lease:
        assert lease is not None
        turn = await lease.next()
        assert turn is not None
        await lease.planned(turn, ANSWER)
        await lease.died(turn, "ready", reason)


def cells(agent: str) -> Callable[[str], str]:
    """A selector for a queue's cell by its name."""
    return lambda name: f'tr[data-key="queue {agent}"] [data-name="{name}"]'


# ── what it shows ─────────────────────────────────────────────────────────────────────────────────────────────────


async def test_an_empty_mesh_is_told_in_words(address: str, bus: Bus, open_page: Open) -> None:
    page = (await open_page(address)).page
    await expect(page.locator("h1")).to_have_text("No worker for orchestrator and plain. Nothing waits for them yet.")
    await expect(page.get_by_text("No message yet.")).to_be_visible()
    await expect(page.get_by_text("No worker is alive.")).to_be_visible()


async def test_a_stuck_queue_shows_what_waits_what_runs_and_since_when(
    address: str, bus: Bus, redis_url: str, open_page: Open
) -> None:
    stage, stage_cell = Stage(), cells("stage")
    await bus.redis.set("arq:job:broken", b"this is no job")
    await bus.redis.zadd("mesh:stage", {"broken": 1})
    async with working(stage.worker(bus, redis_url, max_jobs=1)) as worker:
        await until(lambda: worker.jobs_failed == 1)
        page = (await open_page(address)).page
        for text in ("a", "b", "c"):
            await bus.tell(request(SLOW, text))
        await expect(page.locator(stage_cell("waiting"))).to_have_text("2")
        await expect(page.locator(stage_cell("running"))).to_have_text("1")
        await expect(page.locator(stage_cell("failed"))).to_have_text("1")
        await expect(page.locator(stage_cell("workers"))).to_have_text("1")
        await expect(page.locator(stage_cell("oldest"))).to_have_text(re.compile(r"[2-9] s"))
        row = page.locator(f'tr[data-key="worker {worker.id}"]')
        await expect(row).to_contain_text(str(os.getpid()))
        stage.go.set()
        await expect(page.locator(stage_cell("waiting"))).to_have_text("0")
        await expect(page.locator(stage_cell("oldest"))).to_have_text("–")


async def test_a_worker_that_is_killed_is_gone_within_seconds_and_its_queue_stands_out(
    address: str, bus: Bus, redis_url: str, open_page: Open
) -> None:
    plain = cells("plain")
    worker = subprocess.Popen([sys.executable, "-m", "tests.bench.worker", "plain", redis_url, ""], cwd=ROOT)
    try:
        page = (await open_page(address)).page
        await expect(page.locator(plain("workers"))).to_have_text("1")
        await expect(page.locator('tr[data-key^="worker "]')).to_contain_text(str(worker.pid))
    finally:
        worker.kill()
        worker.wait()
    await bus.redis.zadd("mesh:plain", {"job": time.time() * 1000})
    await expect(page.locator(plain("workers"))).to_have_text("no worker", timeout=12_000)
    await expect(page.locator('tr[data-key="queue plain"]')).to_have_class("bad")
    await expect(page.locator("h1")).to_have_text("No worker for plain: 1 job can't be done.")
    await expect(page.get_by_text("No worker is alive.")).to_be_visible()


async def test_a_conversation_is_shown_with_its_steps(address: str, ledger: Ledger, open_page: Open) -> None:
    await answered(ledger, "m1", "How much is a double room?")
    await ledger.delivered(Delivery("SM out m1", "delivered"))
    page = (await open_page(address)).page
    shown = page.locator('[data-key="message m1"]')
    for text in ("How much is a double room?", "84 euros", "sent · delivered", "knowledge.answer", "price-list.md"):
        await expect(shown).to_contain_text(text)
    await expect(shown.get_by_text(STEPS[1])).to_be_hidden()
    await shown.get_by_text("2 steps").click()
    for step in STEPS:
        await expect(shown.get_by_text(step)).to_be_visible()


async def test_a_document_that_is_read_in_is_shown_while_it_is(address: str, bus: Bus, open_page: Open) -> None:
    async with Ingestions(bus.redis).noted("d1", ASHA, f"prices {SCRIPT}.pdf") as report:
        page = (await open_page(address)).page
        row = page.locator('tr[data-key="ingestion d1"]')
        await expect(row).to_contain_text(f"prices {SCRIPT}.pdf")
        await expect(row.locator('[data-name="stage"]')).to_have_text("reading")
        report(Progress("embedding", 3, 9))
        await expect(row.locator('[data-name="passages"]')).to_contain_text("3 of 9")
        await expect(row.locator("progress")).to_have_attribute("value", "3")
    await expect(row).to_have_count(0)


async def test_the_newest_is_first_by_chat_and_within_it(address: str, ledger: Ledger, open_page: Open) -> None:
    await answered(ledger, "m1", "first")
    await answered(ledger, "m2", "of somebody else", sender=BEN)
    await answered(ledger, "m3", "last")
    page = (await open_page(address)).page
    keys = await page.locator("[data-key^=message]").evaluate_all("all => all.map((each) => each.dataset.key)")
    assert keys == ["message m3", "message m1", "message m2"]
    await expect(page.locator("h3 span")).to_have_text([ASHA, BEN])


@pytest.mark.parametrize(
    ("state", "told"),
    [
        ("undelivered", "could not deliver it (error 63016)"),
        ("dead", "No reply was sent: the provider refused it: 63024"),
    ],
)
async def test_a_failure_stands_out_and_says_why(
    address: str, ledger: Ledger, open_page: Open, state: str, told: str
) -> None:
    if state == "dead":
        await died(ledger, "m1", "the provider refused it: 63024")
    else:
        await answered(ledger, "m1", "hello")
        await ledger.delivered(Delivery("SM out m1", state, "63016"))
    page = (await open_page(address)).page
    shown = page.locator('[data-key="message m1"]')
    await expect(shown).to_contain_text(told)
    await expect(shown).to_have_class("exchange bad")
    await expect(page.locator("h2 small")).to_have_text("1 dead letter." if state == "dead" else "No dead letter.")


async def test_what_comes_appears_while_what_is_open_stays_open(address: str, ledger: Ledger, open_page: Open) -> None:
    await answered(ledger, "m1", "first")
    page = (await open_page(address)).page
    opened = page.locator('[data-key="message m1"] details')
    await opened.locator("summary").click()
    await accept(ledger, "m2", "second")
    waiting = page.locator('[data-key="message m2"]')
    await expect(waiting).to_contain_text("second")
    await expect(waiting).to_contain_text("accepted")
    await expect(opened).to_have_attribute("open", "")
    await expect(opened.get_by_text(STEPS[0])).to_be_visible()


async def test_a_page_that_is_scrolled_stays_where_it_is(address: str, ledger: Ledger, open_page: Open) -> None:
    for number in range(12):
        await answered(ledger, f"m{number}", f"message {number}")
    page = (await open_page(address, PHONE)).page
    await page.evaluate("scrollTo(0, 900)")
    async with page.expect_response("**/board"):
        pass
    async with page.expect_response("**/board"):
        assert await page.evaluate("scrollY") == 900


async def test_redis_going_away_is_said_and_coming_back_heals_it(tmp_path: Path, open_page: Open) -> None:
    port = free_port()
    command = parts.redis(port, tmp_path / "redis").command
    with dashboard(f"redis://127.0.0.1:{port}", tmp_path) as url:
        page = (await open_page(url)).page
        notice = page.get_by_role("alert")
        await expect(notice).to_contain_text("Redis can't be reached")
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            wait_for_redis(port)
            await expect(notice).to_be_hidden()
            await expect(page.get_by_text("No message yet.")).to_be_visible()
        finally:
            process.kill()
            process.wait()
        await expect(notice).to_contain_text("Redis can't be reached")
        await expect(page.get_by_text("No message yet.")).to_be_visible()


@QUIET
async def test_agents_come_and_go_with_mongodb_and_stay_when_it_does_not_answer(
    tmp_path: Path, redis_url: str, open_page: Open
) -> None:
    with ExitStack() as stack:
        uri = stack.enter_context(mongodb(tmp_path / "mongodb"))
        client = stack.enter_context(MongoClient[dict[str, Any]](uri))
        agents = client["adiyan"]["agents"]
        agents.insert_many([{"_id": name, "module": "a"} for name in ("guest", "orchestrator")])
        with dashboard(redis_url, tmp_path, MONGODB_URI=uri) as url:
            page = (await open_page(url)).page
            queues = page.locator("section:has(#queues) tbody th")
            await expect(queues).to_have_text(["guest", "orchestrator"])
            agents.update_one({"_id": "guest"}, {"$set": {"copies": 0}})
            await expect(queues).to_have_text(["orchestrator"], timeout=15_000)
            stack.close()
            await until(lambda: "agents can't be read" in (tmp_path / "log").read_text(), within_s=20)
            await expect(queues).to_have_text(["orchestrator"])
            assert await page.get_by_role("alert").is_hidden()


# ── what it keeps to itself ───────────────────────────────────────────────────────────────────────────────────────


async def test_text_is_shown_as_text_wherever_it_comes_from(address: str, ledger: Ledger, open_page: Open) -> None:
    hostile = Reply(text=SCRIPT, skill=SCRIPT, sources=(Source(kind="document", name=SCRIPT),), steps=(SCRIPT,))
    await answered(ledger, "m1", SCRIPT, hostile)
    tab = await open_page(address)
    await accept(ledger, "m2", SCRIPT)  # this one comes by the script
    await expect(tab.page.locator('[data-key="message m2"] .said span')).to_have_text(SCRIPT)
    await expect(tab.page.locator('[data-key="message m1"] .reply')).to_have_text(SCRIPT)
    assert await tab.page.title() == "Adiyan · dashboard"
    assert await tab.page.locator("main script, main img").count() == 0
    assert tab.complaints == []


async def test_nothing_beyond_this_machine_is_asked_for_and_nothing_complains(
    address: str, ledger: Ledger, open_page: Open
) -> None:
    await answered(ledger, "m1", "See https://example.org/picture.png")
    tab = await open_page(address)
    async with tab.page.expect_response("**/board"):
        pass
    assert len(tab.requested) >= 4
    assert (tab.strangers, tab.complaints) == ([], [])


async def test_it_fits_a_phone(address: str, bus: Bus, ledger: Ledger, open_page: Open) -> None:
    since = time.time() * 1000 - 12 * 60_000
    await bus.redis.zadd("mesh:orchestrator", {f"job {number}": since for number in range(12_345)})
    await answered(ledger, "m1", "Donaudampfschifffahrtsgesellschaftskapitän" * 5, ANSWER)
    await answered(ledger, "m2", "hi", Reply(text="x" * 1500, steps=("y" * 300,)), sender="whatsapp:" + "U" * 120)
    tab = await open_page(address, PHONE)
    for summary in await tab.page.locator("summary").all():
        await summary.click()
    assert not await tab.is_wider_than_its_window()
    table = tab.page.locator("section:has(#queues)")
    assert await table.evaluate("it => it.scrollWidth <= it.clientWidth"), "a column of the queues is out of sight"


@pytest.mark.parametrize("name", ["evil.example", "127.0.0.1.evil.example", "localhost.", ""])
async def test_another_host_name_is_refused(address: str, name: str) -> None:
    async with httpx.AsyncClient() as client:
        for path in ("/", "/board", "/static/page.js"):
            assert (await client.get(address + path, headers={"Host": name})).status_code == 400
        assert (await client.get(address, headers={"Host": "localhost"})).status_code == 200


async def test_every_answer_carries_the_headers_that_protect_it(address: str) -> None:
    async with httpx.AsyncClient() as client:
        for path in ("/", "/board", "/static/page.js", "/absent"):
            headers = (await client.get(address + path)).headers
            assert {name: headers[name] for name in HEADERS} == HEADERS
        assert (await client.post(address)).status_code == 405


def test_it_is_not_served_beyond_this_machine_unless_that_is_asked_for(tmp_path: Path) -> None:
    environment = {**os.environ, "ADIYAN_HOME": str(tmp_path), "REDIS_URL": "redis://127.0.0.1:9"}
    ran = subprocess.run(
        [sys.executable, "-m", "mesh.cli", "run", "dashboard"],
        cwd=ROOT,
        env={**environment, "DASHBOARD_HOST": "0.0.0.0"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 1
    assert "DASHBOARD_HOST" in ran.stderr
    assert "DASHBOARD_OPEN" in ran.stderr
    assert "Traceback" not in ran.stderr


async def test_behind_a_proxy_it_answers_to_its_name_and_to_no_other(redis_url: str, tmp_path: Path) -> None:
    proxied = {"DASHBOARD_HOST": "0.0.0.0", "DASHBOARD_OPEN": "true", "DASHBOARD_NAMES": "mesh.example.org"}
    with dashboard(redis_url, tmp_path, **proxied) as url:
        async with httpx.AsyncClient() as client:
            for name, status in (("mesh.example.org", 200), ("localhost", 200), ("rebound.example.com", 400)):
                assert (await client.get(url, headers={"Host": name})).status_code == status, name
