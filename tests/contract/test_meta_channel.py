"""What is Meta's alone: how a send is settled without a list, whom the token is shown, and how a message is addressed.
What it has in common with every channel is in `test_channel`."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any

import httpx
import pytest

from mesh.adapters.meta import MetaChannel
from mesh.adapters.meta_echoes import Echoes
from mesh.adapters.meta_webhooks import echo_of
from mesh.connections import connect
from mesh.errors import Ambiguous, Misconfigured, NotFound, Refused, Throttled, Unavailable, Unreadable
from mesh.ports.channel import Attachment
from mesh.testing.phone import Phone
from tests.contract.channel_stage import (
    ID,
    NUMBER,
    TOKEN,
    VERIFY,
    Provider,
    SimulatedMeta,
    meta_base,
    meta_provider,
    opened_meta,
    settled,
)
from tests.simulated import a_moment_ago, json_answer, person, serving, talking

__all__ = ["meta_base", "person"]

PDF = ("report.pdf", "application/pdf", b"%PDF-1.4 a report")


@pytest.fixture
async def provider(meta_base: SimulatedMeta, redis_url: str) -> AsyncIterator[Provider]:
    async with meta_provider(meta_base, redis_url) as provider:
        yield provider
        await provider.phone.media()


@pytest.fixture
async def channel(provider: Provider) -> AsyncIterator[MetaChannel]:
    async with provider.opened() as channel:
        assert isinstance(channel, MetaChannel)
        yield channel


@pytest.fixture
async def echoes(redis_url: str) -> AsyncIterator[Echoes]:
    redis = connect(redis_url)
    yield Echoes(redis)
    await redis.aclose()


@pytest.fixture
def phone(provider: Provider) -> Phone:
    return provider.phone


async def heard(redis_url: str, **sent: Any) -> dict[str, Any]:
    """What Meta was posted."""
    bodies: list[dict[str, Any]] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        bodies.append(json.loads(await reader.readexactly(int(head.split("content-length: ")[1].split("\r\n")[0]))))
        writer.write(json_answer("200 OK", b'{"messages": [{"id": "wamid.x"}]}'))
        await writer.drain()

    redis = connect(redis_url)
    async with talking(talk) as base, opened_meta(redis, base) as channel:
        await channel.send(**{"sender": NUMBER, "recipient": "+15551230001", "text": "hello", **sent})
    await redis.aclose()
    return bodies[0]


# ── what is posted ────────────────────────────────────────────────────────────────────────────────────────────────


async def test_somebody_without_a_number_is_never_addressed_as_a_number(redis_url: str) -> None:
    """Meta answers with success then, and drops the message."""
    asked = await heard(redis_url, recipient="whatsapp:US.13491208655302741918")
    assert (asked.get("to"), asked["recipient"]) == (None, "US.13491208655302741918")
    assert (await heard(redis_url))["to"] == "+15551230001"


@pytest.mark.parametrize(
    ("link", "text", "expected"),
    [
        ("https://m.example/files/t/a%20b.pdf", "here", {"document": ("here", "a b.pdf")}),
        ("https://m.example/files/t/notes.txt", "", {"document": (None, "notes.txt")}),
        ("https://m.example/files/t/plan.PNG", "here", {"image": ("here", None)}),
        ("https://m.example/files/t/tour.mp4", "here", {"video": ("here", None)}),
        ("https://m.example/files/t/note.ogg", "", {"audio": (None, None)}),
        ("https://m.example/files/t/note.ogg", "here", {"document": ("here", "note.ogg")}),
    ],
)
async def test_a_link_is_shown_as_what_it_is(redis_url: str, link: str, text: str, expected: dict[str, Any]) -> None:
    asked = await heard(redis_url, link=link, text=text)
    ((kind, parts),) = expected.items()
    found = asked[kind]
    assert (asked["type"], found["link"], found.get("caption"), found.get("filename")) == (kind, link, *parts)


async def test_a_template_has_its_language_and_one_line_as_its_variable(redis_url: str) -> None:
    asked = (await heard(redis_url, template="answer_waits/pt_BR", text="one\n  two"))["template"]
    assert (asked["name"], asked["language"]) == ("answer_waits", {"code": "pt_BR"})
    assert asked["components"][0]["parameters"] == [{"type": "text", "text": "one two"}]
    assert (await heard(redis_url, template="answer_waits"))["template"]["language"] == {"code": "en"}


async def test_what_goes_along_tells_neither_words_nor_numbers(redis_url: str) -> None:
    along = (await heard(redis_url))["biz_opaque_callback_data"]
    assert along == echo_of(NUMBER, "+15551230001", "hello")
    assert len(along) == 32


async def test_from_a_number_that_is_not_ours_nothing_is_sent(channel: MetaChannel, person: str) -> None:
    with pytest.raises(Refused) as refused:
        await channel.send(sender="+15550009999", recipient=person, text="hello")
    assert "META_NUMBERS" in refused.value.detail


# ── what Meta answers ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("status", "code", "ours"),
    [(400, 131047, "63016"), (400, 131050, "63049"), (400, 131030, "63015"), (403, 131031, "131031"), (404, 7, "7")],
)
async def test_a_refusal_has_the_code_that_the_mesh_reacts_to_and_keeps_metas_own(
    redis_url: str, status: int, code: int, ours: str
) -> None:
    error = await raised(redis_url, status, code, Refused)
    assert isinstance(error, Refused)
    assert (error.provider_code, error.detail) == (ours, f"meta status={status} code={code}")


@pytest.mark.parametrize(
    ("status", "code", "wait"), [(400, 131056, 6), (400, 130429, 1), (429, 131031, 1), (400, 4, 1)]
)
async def test_too_fast_is_tried_again_and_one_person_is_spared_longer(
    redis_url: str, status: int, code: int, wait: float
) -> None:
    error = await raised(redis_url, status, code, Throttled)
    assert isinstance(error, Throttled)
    assert error.retry_after == wait


@pytest.mark.parametrize(("status", "code"), [(400, 131000), (400, 2), (500, 131016), (503, 131047)])
async def test_a_fault_of_metas_own_proves_nothing(redis_url: str, status: int, code: int) -> None:
    await raised(redis_url, status, code, Ambiguous)


async def raised(redis_url: str, status: int, code: int, expected: type[Exception]) -> Exception:
    body = json.dumps({"error": {"message": "(#1) to +15551230001", "code": code}}).encode()
    redis = connect(redis_url)
    try:
        async with serving(json_answer(f"{status} Bad", body)) as base, opened_meta(redis, base) as channel:
            with pytest.raises(expected) as found:
                await channel.send(sender=NUMBER, recipient="+15551230001", text="hello")
    finally:
        await redis.aclose()
    return found.value


# ── settling without a list ───────────────────────────────────────────────────────────────────────────────────────


async def test_an_equal_message_before_does_not_pass_for_one_whose_status_is_late(
    channel: MetaChannel, phone: Phone, person: str
) -> None:
    since = a_moment_ago()
    first = await channel.send(sender=NUMBER, recipient=person, text="I don't know")
    await noted(phone, "callbacks", "message_sid", first)
    await phone.rules(callbacks="never")
    await phone.script({"do": "accept_then_fail"})
    with pytest.raises(Ambiguous):
        await channel.send(sender=NUMBER, recipient=person, text="I don't know")
    with pytest.raises(Ambiguous):
        await channel.find(sender=NUMBER, recipient=person, text="I don't know", since=since)


async def test_a_status_that_never_comes_is_waited_for_a_while_and_then_nothing_is_found(
    provider: Provider, person: str
) -> None:
    await provider.phone.rules(callbacks="never")
    await provider.phone.script({"do": "accept_then_fail"})
    since, asked = a_moment_ago(), {"sender": NUMBER, "recipient": person, "text": "hello"}
    async with provider.opened(wait_seconds=0.5) as channel:
        with pytest.raises(Ambiguous):
            await channel.send(**asked)
        began = time.monotonic()
        assert await settled(channel, **asked, since=since) == []
        assert time.monotonic() - began > 0.3


async def test_a_worker_that_died_while_it_sent_leaves_a_trace(provider: Provider, person: str) -> None:
    await provider.phone.script({"do": "hang"})
    since, asked = a_moment_ago(), {"sender": NUMBER, "recipient": person, "text": "hello"}
    async with provider.opened() as dying:
        task = asyncio.create_task(dying.send(**asked))
        await noted(provider.phone, "refused", "to", person)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    async with provider.opened() as next_one:
        with pytest.raises(Ambiguous):
            await next_one.find(**asked, since=since)


@pytest.mark.parametrize("doing", ["throttle", "refuse"])
async def test_what_was_certainly_not_taken_is_not_waited_for(
    channel: MetaChannel, phone: Phone, person: str, doing: str
) -> None:
    await phone.script({"do": doing})
    since = a_moment_ago()
    with pytest.raises((Throttled, Refused)):
        await channel.send(sender=NUMBER, recipient=person, text="hello")
    assert await channel.find(sender=NUMBER, recipient=person, text="hello", since=since) == []


async def test_a_message_that_failed_later_was_taken_all_the_same(
    channel: MetaChannel, phone: Phone, provider: Provider, person: str
) -> None:
    await phone.rules(window_s=0.0)
    await phone.script({"do": "accept_then_fail"})
    since = a_moment_ago()
    with pytest.raises(Ambiguous):
        await channel.send(sender=NUMBER, recipient=person, text="hello")
    (found,) = await settled(channel, sender=NUMBER, recipient=person, text="hello", since=since)
    await phone.settle()
    told = [each for each in provider.inbox.deliveries if each.provider_id == found]
    assert (told[-1].state, told[-1].error_code) == ("failed", "63016")


async def test_the_earliest_status_tells_when_it_was_sent(echoes: Echoes) -> None:
    for at in (2000.0, 1000.0, 3000.0):
        await echoes.note("e" * 32, "wamid.1", at)
    assert (await echoes.since("e" * 32, 1000.0)).ids == ("wamid.1",)
    assert (await echoes.since("e" * 32, 1000.1)).ids == ()


async def test_without_redis_nothing_is_sent_and_nothing_is_taken_for_absent(
    meta_base: SimulatedMeta, person: str
) -> None:
    gone = connect("redis://127.0.0.1:9/0")
    gone.connection_pool.connection_kwargs["retry"] = None
    async with opened_meta(gone, meta_base.base) as channel, Phone(meta_base.base) as phone:
        with pytest.raises(Throttled):
            await channel.send(sender=NUMBER, recipient=person, text="hello")
        with pytest.raises(Ambiguous):
            await channel.find(sender=NUMBER, recipient=person, text="hello", since=a_moment_ago())
        assert await phone.replies(person) == []
    await gone.aclose()


async def noted(phone: Phone, kind: str, field: str, value: str) -> None:
    """Once the simulated Meta's log has such an entry."""
    async with asyncio.timeout(10):
        while not any(each[field] == value for each in (await phone.log())[kind]):
            await asyncio.sleep(0.01)


# ── people's files, and typing ────────────────────────────────────────────────────────────────────────────────────


async def sent_file(provider: Provider, person: str) -> Attachment:
    await provider.phone.post(person, "", files=[PDF])
    (kept,) = [each for each in provider.inbox.messages if each.sender == person]
    assert (kept.kind, kept.text, kept.media) == ("document", "", 1)
    return kept.attachments[0]


async def test_a_persons_file_is_fetched_by_its_id(provider: Provider, channel: MetaChannel, person: str) -> None:
    attachment = await sent_file(provider, person)
    assert attachment.reference.startswith("meta:")
    media = await channel.fetch(attachment, most_bytes=1000)
    assert (media.name, media.media_type, media.raw) == PDF


async def test_the_token_is_not_shown_to_another_host(provider: Provider, channel: MetaChannel, person: str) -> None:
    attachment = await sent_file(provider, person)
    seen: list[str] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(json_answer("200 OK", PDF[2], b"Content-Type: application/pdf"))

    async with talking(talk) as elsewhere:
        await provider.phone.media({"do": "answer", "to": f"{elsewhere}/x"})
        with pytest.raises(Unreadable):
            await channel.fetch(attachment, most_bytes=1000)
    assert seen == []


async def test_a_file_that_is_gone_or_too_large_or_of_no_known_kind_is_said_so(
    provider: Provider, channel: MetaChannel, person: str
) -> None:
    attachment = await sent_file(provider, person)
    with pytest.raises(Unreadable):
        await channel.fetch(attachment, most_bytes=3)
    await provider.phone.media({"do": "wrong_type"})
    with pytest.raises(Unreadable):
        await channel.fetch(attachment, most_bytes=1000)
    with pytest.raises(NotFound):
        await channel.fetch(Attachment("meta:12345", "application/pdf"), most_bytes=1000)
    await provider.phone.media({"do": "fail"})
    with pytest.raises(Unavailable):
        await channel.fetch(attachment, most_bytes=1000)


@pytest.mark.parametrize("reference", ["", "meta:", "meta:../me", "https://lookaside.fbsbx.com/x", "12", "meta:1?a=b"])
async def test_what_is_no_id_of_metas_is_not_asked_for(channel: MetaChannel, reference: str) -> None:
    with pytest.raises(Unreadable):
        await channel.fetch(Attachment(reference, "application/pdf"), most_bytes=1000)


async def test_typing_is_shown_for_the_message_and_marks_it_as_read(
    provider: Provider, channel: MetaChannel, person: str
) -> None:
    posted = await provider.phone.post(person, "hello")
    await channel.typing(sender=NUMBER, recipient=person, message_id=posted.message_sid)
    entries = (await provider.phone.log())["typing"]
    assert [each["to"] for each in entries if each["message_sid"] == posted.message_sid] == [person]
    await channel.typing(sender=NUMBER, recipient=person, message_id="wamid.unknown")
    await channel.typing(sender="+15550009999", recipient=person, message_id="wamid.unknown")


async def test_there_is_no_list_to_catch_up_from(channel: MetaChannel, provider: Provider, person: str) -> None:
    await provider.phone.post(person, "hello", deliver=False)
    assert await channel.received(recipient=NUMBER, since=datetime.now().astimezone() - timedelta(days=1)) == []


# ── the simulated Meta itself ─────────────────────────────────────────────────────────────────────────────────────


async def test_the_simulated_meta_asks_the_webhook_who_it_is(provider: Provider) -> None:
    async with httpx.AsyncClient(base_url=provider.base, trust_env=False) as client:
        right = await client.post("/simulate/challenge", json={"verify_token": VERIFY})
        wrong = await client.post("/simulate/challenge", json={"verify_token": "wrong"})
    assert right.json() == {"status": 200, "echoed": True}
    assert wrong.json() == {"status": 403, "echoed": False}


async def test_the_simulated_meta_takes_a_file_and_gives_it_to_who_has_the_token(provider: Provider) -> None:
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    async with httpx.AsyncClient(base_url=provider.base, trust_env=False) as client:
        sent = {"files": {"file": (PDF[0], PDF[2], PDF[1])}, "data": {"messaging_product": "whatsapp"}}
        assert (await client.post(f"/v25.0/{ID}/media", **sent)).status_code == 401  # type: ignore[arg-type]  # as httpx
        uploaded = (await client.post(f"/v25.0/{ID}/media", headers=bearer, **sent)).json()["id"]  # type: ignore[arg-type]
        url = (await client.get(f"/v25.0/{uploaded}", headers=bearer)).json()["url"]
        assert (await client.get(url)).status_code == 401
        assert (await client.get(url, headers=bearer)).content == PDF[2]


# ── start-up ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("token", "numbers", "base"),
    [
        ("", {NUMBER: ID}, "https://a"),
        ("x", {}, "https://a"),
        ("x", {NUMBER: ""}, "https://a"),
        ("x", {NUMBER: "../me"}, "https://a"),
        ("x", {NUMBER: ID}, "a"),
    ],
)
def test_a_channel_that_could_never_send_stops_start_up(token: str, numbers: dict[str, str], base: str) -> None:
    with pytest.raises(Misconfigured):
        MetaChannel(token, numbers, Echoes(connect("redis://127.0.0.1:9/0")), api_base=base)
