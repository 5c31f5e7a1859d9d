"""Files by signed links: over a real socket and a real Redis, from a knowledge agent with a real shelf."""

from __future__ import annotations

import asyncio
import hashlib
import io
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote, urlsplit

import docx
import httpx
import pytest

from agents.knowledge import agent
from agents.knowledge.library import Library
from agents.knowledge.stores import Stores
from mesh import clock
from mesh.access import Gate, Grant
from mesh.adapters.shelf import DiskShelf
from mesh.bus import Bus
from mesh.connections import connect
from mesh.context import Context
from mesh.contracts.answers import Source
from mesh.contracts.orchestrator import ANSWER, CLEAR_TO_SEND, Reply, Standing
from mesh.dispatch import Agent, Dispatcher
from mesh.downloads import Downloads
from mesh.envelope import digest
from mesh.errors import Denied, NotFound
from mesh.files import GONE, Link
from mesh.gateway.app import create_app
from mesh.gateway.files import AT_ONCE, Files
from mesh.ledger import Ledger
from mesh.links import Links, links
from mesh.ports.channel import Inbound
from mesh.ports.documents import Document, Visibility
from mesh.worker import MeshWorker
from tests.contract.gateway_stage import PUBLIC, TOKEN, Recorder, connected, served
from tests.people import ASHA, BEN, OWNER, Directory

CANARY = b"The word for the cellar is KANARIENVOGEL."
FOR_S = 60.0


class Stage:
    def __init__(self, shelf: DiskShelf, signed: Links, people: Directory, http: httpx.AsyncClient) -> None:
        self.shelf, self.links, self.people, self.http = shelf, signed, people, http

    async def put(
        self,
        raw: bytes = CANARY,
        *,
        owner: str = ASHA,
        name: str = "Cellar.txt",
        media_type: str = "text/plain",
        visibility: Visibility = "private",
    ) -> str:
        document_id = digest(owner, name)
        document = Document(
            document_id=document_id,
            owner=owner,
            name=name,
            visibility=visibility,
            sha256=hashlib.sha256(raw).hexdigest(),
            size=len(raw),
            media_type=media_type,
            ingested_at=datetime(2026, 1, 2, tzinfo=UTC),
            chunks=1,
        )
        await self.shelf.put(Grant(owner, frozenset(), tier=""), document, raw, complete=True)
        return document_id

    async def get(self, document_id: str, client: str = ASHA, *, name: str = "Cellar.txt") -> httpx.Response:
        return await self.http.get(self.links.make(document_id, client, name, FOR_S))


@asynccontextmanager
async def knowing(redis_url: str, shelf: DiskShelf, people: Directory) -> AsyncIterator[None]:
    """The knowledge agent's worker. To hand out files it needs its shelf and nothing else."""
    library = Library(Stores(shelf, cast(Any, None), cast(Any, None)))
    async with Bus(redis_url) as bus:
        gate = Gate(people, system_owner=OWNER, unknown_tier="stranger", fresh_for=0)
        worker = MeshWorker("knowledge", Dispatcher(agent, library, gate, bus), redis_url)
        worker.grace_s = 0.1
        task = asyncio.create_task(worker.serve())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


@asynccontextmanager
async def gateway(redis_url: str, **limits: float) -> AsyncIterator[httpx.AsyncClient]:
    downloads = Downloads(redis_url)
    files = Files(downloads, **limits)
    app = create_app(Recorder(), public_url=PUBLIC, auth_token=TOKEN, files=files, refusal_seconds=0.05)
    async with served(app) as port, httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=30) as http:
        yield http
    await downloads.close()


@pytest.fixture
async def signed(redis_url: str) -> Links:
    redis = connect(redis_url)
    made = await links(redis)
    await redis.aclose()
    return made


@pytest.fixture
async def stage(redis_url: str, signed: Links, tmp_path: Path) -> AsyncIterator[Stage]:
    shelf, people = await DiskShelf.open(tmp_path / "shelf"), Directory()
    for who in (ASHA, BEN):
        people.allow(who, "knowledge:search", "documents:add")
    async with knowing(redis_url, shelf, people), gateway(redis_url) as http:
        yield Stage(shelf, signed, people, http)


def refused(answer: httpx.Response) -> bool:
    """As every other refusal is, whatever the reason."""
    return (answer.status_code, answer.text) == (404, f"{GONE}\n") and "content-disposition" not in answer.headers


async def test_a_file_comes_as_it_was_sent_with_its_type_and_name(stage: Stage) -> None:
    raw = b"%PDF-1.4 " + bytes(range(256)) * 2000
    document_id = await stage.put(raw, name="Prices 2026.pdf", media_type="application/pdf")
    answer = await stage.get(document_id, name="Prices 2026.pdf")
    assert answer.status_code == 200
    assert answer.content == raw
    assert answer.headers["content-type"] == "application/pdf"
    assert answer.headers["content-length"] == str(len(raw))
    disposition = "attachment; filename=\"Prices 2026.pdf\"; filename*=UTF-8''Prices%202026.pdf"
    assert answer.headers["content-disposition"] == disposition
    assert answer.headers["cache-control"] == "private, no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"


async def test_head_tells_the_same_without_the_file(stage: Stage) -> None:
    document_id = await stage.put()
    path = stage.links.make(document_id, ASHA, "Cellar.txt")
    got, head = await stage.http.get(path), await stage.http.head(path)
    assert head.status_code == 200
    assert head.content == b""
    assert {**head.headers, "date": ""} == {**got.headers, "date": ""}
    assert (await stage.http.head(path.replace("/files/", "/files/x"))).status_code == 404
    assert (await stage.http.post(path)).status_code == 405


async def test_a_link_for_another_person_shows_nothing_of_a_private_document(stage: Stage) -> None:
    mine = await stage.put()
    theirs = await stage.put(b"Nothing of interest.", owner=BEN)
    foreign, absent = await stage.get(mine, BEN), await stage.get("0" * 32, BEN)
    assert refused(foreign)
    assert refused(absent)
    assert {**foreign.headers, "date": ""} == {**absent.headers, "date": ""}
    assert CANARY in (await stage.get(mine)).content
    assert (await stage.get(theirs, BEN)).content == b"Nothing of interest."


async def test_what_is_shared_with_everyone_is_anyones(stage: Stage) -> None:
    document_id = await stage.put(visibility="global")
    assert (await stage.get(document_id, BEN)).content == CANARY
    await stage.shelf.set_visibility(Grant(ASHA, frozenset(), ""), document_id, "private")
    assert refused(await stage.get(document_id, BEN))


async def test_what_is_withdrawn_after_the_link_was_made_is_refused(stage: Stage) -> None:
    document_id = await stage.put()
    path = stage.links.make(document_id, ASHA, "Cellar.txt")
    assert (await stage.http.get(path)).content == CANARY
    stage.people.allow(ASHA, "chat:converse")
    assert refused(await stage.http.get(path))
    stage.people.allow(ASHA, "knowledge:search")
    assert (await stage.http.get(path)).content == CANARY
    stage.people.block(ASHA)
    assert refused(await stage.http.get(path))


async def test_a_deleted_document_is_gone_from_its_links(stage: Stage) -> None:
    document_id = await stage.put()
    path = stage.links.make(document_id, ASHA, "Cellar.txt")
    await stage.shelf.delete(Grant(ASHA, frozenset(), ""), document_id)
    assert refused(await stage.http.get(path))


async def test_a_forged_altered_or_expired_link_is_refused_before_anybody_is_asked(stage: Stage) -> None:
    document_id = await stage.put()
    path = stage.links.make(document_id, ASHA, "Cellar.txt")
    _, _, token, name = path.split("/")
    body, _, signature = token.partition(".")
    forged = Links(b"?" * 32).make(document_id, ASHA, "Cellar.txt")
    expired = stage.links.make(document_id, ASHA, "Cellar.txt", -1)
    altered = [f"{body}.{signature[:-2]}xx", f"{body}x.{signature}", body, f"{body}.", "x" * 2000]
    looked_up = stage.people.looked_up
    for wrong in (forged, expired, *(f"/files/{each}/{name}" for each in altered)):
        assert refused(await stage.http.get(wrong)), wrong
    assert stage.people.looked_up == looked_up
    assert (await stage.http.get(path)).content == CANARY


async def test_a_refusal_is_held_back(stage: Stage) -> None:
    began = clock.now()
    assert refused(await stage.http.get("/files/x/y"))
    assert clock.now() - began >= 0.02


@pytest.mark.parametrize(
    ("name", "plain", "true"),
    [
        ('the "best".txt', "the _best_.txt", 'the "best".txt'),
        ("Grüße aus Köln.txt", "Gr__e aus K_ln.txt", "Grüße aus Köln.txt"),
        ("two\r\nSet-Cookie: a=b.txt", "twoSet-Cookie: a=b.txt", "twoSet-Cookie: a=b.txt"),
        ("a\u202etxt.exe", "atxt.exe", "atxt.exe"),
        ("संविदा.pdf", "______.pdf", "संविदा.pdf"),
        ("100%25 \\ sure.txt", "100_25 _ sure.txt", "100%25 \\ sure.txt"),
        ("a/../b.txt", "a_.._b.txt", "a_.._b.txt"),
    ],
)
async def test_no_name_breaks_out_of_its_header(stage: Stage, name: str, plain: str, true: str) -> None:
    """Whatever an index of an older version holds: names are made harmless when documents come in, too."""
    document_id = await stage.put(name=name)
    answer = await stage.get(document_id, name=name)
    assert answer.status_code == 200
    assert "set-cookie" not in answer.headers
    given, _, exact = answer.headers["content-disposition"].partition("; filename*=UTF-8''")
    assert given == f'attachment; filename="{plain}"'
    assert unquote(exact) == true
    assert exact.isascii()
    assert '"' not in exact


@pytest.mark.parametrize("media_type", ["text/html", "image/svg+xml", "application/xhtml+xml", "TEXT/HTML; charset=x"])
async def test_nothing_that_a_browser_would_run_is_served_as_such(stage: Stage, media_type: str) -> None:
    document_id = await stage.put(b"<script>alert(1)</script>", name="page.html", media_type=media_type)
    answer = await stage.get(document_id, name="page.html")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["content-disposition"].startswith("attachment;")
    assert answer.headers["x-content-type-options"] == "nosniff"


async def test_text_in_another_encoding_is_not_called_utf_8(stage: Stage) -> None:
    document_id = await stage.put("Grüße".encode("latin-1"))
    assert (await stage.get(document_id)).headers["content-type"] == "text/plain"


async def test_sixteen_megabytes_come_through_and_more_do_not(stage: Stage) -> None:
    largest = await stage.put(bytes(16 << 20), name="large.bin", media_type="application/octet-stream")
    answer = await stage.get(largest, name="large.bin")
    assert hashlib.sha256(answer.content).digest() == hashlib.sha256(bytes(16 << 20)).digest()
    larger = await stage.put(bytes((16 << 20) + 1), name="larger.bin", media_type="application/octet-stream")
    assert refused(await stage.get(larger, name="larger.bin"))


async def test_without_anybody_who_knows_it_says_so_in_time(redis_url: str, signed: Links) -> None:
    async with gateway(redis_url, found_within=0.3) as http:
        answer = await http.get(signed.make("0" * 32, ASHA, "Cellar.txt"))
    assert answer.status_code == 503
    assert answer.headers["retry-after"]
    assert "can't look that up right now" in answer.text


async def test_a_reader_who_takes_too_long_is_let_go_and_takes_no_place_from_others(
    redis_url: str, signed: Links, tmp_path: Path
) -> None:
    shelf, people = await DiskShelf.open(tmp_path / "shelf"), Directory()
    people.allow(ASHA, "knowledge:search")
    async with knowing(redis_url, shelf, people), gateway(redis_url, sent_within=0.5) as http:
        stage = Stage(shelf, signed, people, http)
        large = await stage.put(bytes(12 << 20), name="large.bin", media_type="application/octet-stream")
        small = await stage.put()
        path = signed.make(large, ASHA, "large.bin")
        async with AsyncExitStack() as slow:
            for _ in range(AT_ONCE):
                reader, writer = await slow.enter_async_context(connected(http.base_url.port or 0))
                writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
                await reader.readuntil(b"\r\n\r\n")  # and then no more
                slow.callback(writer.transport.abort)
            async with asyncio.timeout(15):
                assert (await stage.get(small)).content == CANARY


async def test_the_log_has_neither_the_link_nor_the_number_nor_the_name(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    document_id = await stage.put()
    path = stage.links.make(document_id, ASHA, "Cellar.txt")
    await stage.http.get(path)
    stage.people.block(ASHA)
    await stage.http.get(path)
    ours = [record.getMessage() for record in caplog.records if record.name.startswith("mesh.")]
    assert any("file client=c_" in line for line in ours)
    assert any(line == "refused status=404 path='/files'" for line in ours)
    token = urlsplit(path).path.split("/")[2]
    assert not [line for line in ours if token[:20] in line or ASHA in line or "Cellar" in line]


# ── replies that were too long ────────────────────────────────────────────────────────────────────────────────────


@asynccontextmanager
async def letting_in(redis_url: str, people: Directory, gone: Sequence[Source] = ()) -> AsyncIterator[None]:
    """The orchestrator's worker, as far as it says whether somebody may be sent anything."""
    orchestrator: Agent[None] = Agent("orchestrator", opens=cast(Any, None))

    @orchestrator.handles(CLEAR_TO_SEND)
    async def clear(standing: Standing, ctx: Context[None]) -> Standing:
        return Standing(sources=tuple(each for each in standing.sources if each not in gone))

    async with Bus(redis_url) as bus:
        gate = Gate(people, system_owner=OWNER, unknown_tier="stranger", fresh_for=0)
        worker = MeshWorker("orchestrator", Dispatcher(orchestrator, None, gate, bus), redis_url)
        worker.grace_s = 0.1
        task = asyncio.create_task(worker.serve())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def replied(ledger: Ledger, reply: Reply) -> str:
    """To Asha. Returns what its file is known by."""
    chat = f"+14155238886|{ASHA}"
    await ledger.accept(Inbound("SM1", ASHA, "+14155238886", "a question", {}))
    async with ledger.lease(chat) as lease:
        assert lease is not None
        turn = await lease.next()
        assert turn is not None
        await lease.planned(turn, reply)
        return f"{ANSWER}{turn.turn_id}"


async def test_a_reply_as_a_file_is_for_whom_it_was_written_and_nobody_else(redis_url: str) -> None:
    people = Directory()
    for who in (ASHA, BEN):
        people.allow(who, "chat:converse")
    async with letting_in(redis_url, people), Bus(redis_url) as bus:
        ledger, downloads = Ledger(bus.redis), Downloads(redis_url)
        wanted = await replied(ledger, Reply(text=f"A long answer. {CANARY.decode()}"))
        file = await downloads.file(Link(wanted, ASHA, 0), within=5)
        (paragraph,) = docx.Document(io.BytesIO(file.raw)).paragraphs
        assert paragraph.text == f"A long answer. {CANARY.decode()}"
        assert file.document.name.endswith(".docx")
        for link in (Link(wanted, BEN, 0), Link(f"{ANSWER}SM2", ASHA, 0), Link(ANSWER, ASHA, 0)):
            with pytest.raises(NotFound, match="not valid"):
                await downloads.file(link, within=5)
        people.allow(ASHA, "knowledge:search")
        with pytest.raises(Denied):
            await downloads.file(Link(wanted, ASHA, 0), within=5)
        await downloads.close()
        await ledger.close()


async def test_a_reply_as_a_file_is_gone_with_what_it_stands_on(redis_url: str) -> None:
    people, gone = Directory(), list[Source]()
    people.allow(ASHA, "chat:converse")
    fee = Source(kind="document", name="contract.md", reference="0123#4")
    async with letting_in(redis_url, people, gone), Bus(redis_url) as bus:
        ledger, downloads = Ledger(bus.redis), Downloads(redis_url)
        wanted = Link(await replied(ledger, Reply(text=CANARY.decode(), sources=(fee,))), ASHA, 0)
        assert (await downloads.file(wanted, within=5)).raw
        gone.append(fee)
        with pytest.raises(NotFound, match="not valid"):
            await downloads.file(wanted, within=5)
        await downloads.close()
        await ledger.close()
