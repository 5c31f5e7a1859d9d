"""The channel's other direction, against the simulated Twilio: catching up on webhooks that never came, and typing."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime
from typing import Any

import pytest

from mesh.adapters import twilio as module
from mesh.adapters.twilio import TwilioChannel
from mesh.adapters.twilio_signature import parse_inbound
from mesh.errors import Ambiguous, Throttled
from mesh.ports.channel import Channel
from mesh.testing.phone import Phone
from tests.simulated import (
    NUMBER,
    SID,
    TOKEN,
    a_moment_ago,
    channel,
    json_answer,
    opened,
    person,
    phone,
    serving,
    talking,
    twilio,
)

__all__ = ["channel", "person", "phone", "twilio"]

YESTERDAY = datetime.now(UTC) - timedelta(days=1)


async def texts_of(channel: Channel, person: str, since: datetime) -> list[str]:
    return [each.text for each in await channel.received(recipient=NUMBER, since=since) if each.sender == person]


def listed(*messages: object, **more: object) -> bytes:
    return json_answer("200 OK", json.dumps({"messages": messages, **more}).encode())


def item(sid: str, **other: Any) -> dict[str, Any]:
    return {
        "sid": sid,
        "account_sid": SID,
        "direction": "inbound",
        "from": "whatsapp:+15551230001",
        "to": f"whatsapp:{NUMBER}",
        "body": "hello",
        "num_media": "0",
        "date_created": format_datetime(datetime.now(UTC)),
        "date_sent": None,
        "status": "received",
        **other,
    }


# ── what people sent ──────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_message_whose_webhook_was_lost_is_received_as_the_webhook_would_have_given_it(
    channel: TwilioChannel, phone: Phone, person: str
) -> None:
    since = a_moment_ago()
    posted = await phone.post(person, " नमस्ते 👋\nthere ", fields={"NumMedia": "1"}, deliver=False)
    assert (posted.status, posted.error) == (0, "not posted")
    (inbound,) = [each for each in await channel.received(recipient=NUMBER, since=since) if each.sender == person]
    form = {"MessageSid": posted.message_sid, "From": f"whatsapp:{person}", "To": f"whatsapp:{NUMBER}"}
    form |= {"Body": " नमस्ते 👋\nthere ", "NumMedia": "1"}
    given = parse_inbound([*form.items()])
    assert (inbound.message_id, inbound.sender, inbound.recipient) == (given.message_id, person, NUMBER)
    assert (inbound.text, inbound.media, inbound.chat) == (given.text, 1, given.chat)
    assert inbound.fields.items() >= {**form, "CaughtUp": "1"}.items()


async def test_a_person_without_a_number_is_received_by_the_whole_id(channel: TwilioChannel, phone: Phone) -> None:
    since = a_moment_ago()
    await phone.post("whatsapp:US.13491", "hi", deliver=False)
    assert await texts_of(channel, "whatsapp:US.13491", since) == ["hi"]


async def test_control_characters_are_left_out_of_what_was_listed_too(
    channel: TwilioChannel, phone: Phone, person: str
) -> None:
    since = a_moment_ago()
    await phone.post(person, "one\x00\x1b two\r\nthree", deliver=False)
    assert await texts_of(channel, person, since) == ["one two\nthree"]


async def test_what_people_sent_is_received_oldest_first_and_without_our_own_words(
    channel: TwilioChannel, phone: Phone, person: str
) -> None:
    since = a_moment_ago()
    for text in ("one", "two", "three"):
        await phone.post(person, text, deliver=text == "two")
    await channel.send(sender=NUMBER, recipient=person, text="an answer")
    assert await texts_of(channel, person, since) == ["one", "two", "three"]
    everything = await channel.received(recipient=NUMBER, since=since)
    assert NUMBER not in {each.sender for each in everything}


async def test_what_people_sent_to_another_number_is_not_received(
    channel: TwilioChannel, phone: Phone, person: str
) -> None:
    since = a_moment_ago()
    await phone.post(person, "to the other shop", to="+14150000000", deliver=False)
    assert await texts_of(channel, person, since) == []


async def test_older_messages_are_not_received(channel: TwilioChannel, phone: Phone, person: str) -> None:
    await phone.post(person, "hello", deliver=False)
    later = datetime.now(UTC) + timedelta(seconds=2)
    assert await channel.received(recipient=NUMBER, since=later) == []


async def test_receiving_compares_to_the_second_in_any_zone() -> None:
    second = datetime(2026, 11, 30, 23, 59, 59, tzinfo=UTC)
    dated = listed(item("SM1", date_created=format_datetime(second)))
    elsewhere = second.replace(microsecond=999_999).astimezone(timezone(timedelta(hours=8)))
    for since, found in ((elsewhere, 1), (second + timedelta(seconds=1), 0)):
        async with serving(dated) as base, opened(base) as channel:
            assert len(await channel.received(recipient=NUMBER, since=since)) == found


async def test_receiving_looks_beyond_the_first_page_and_says_when_there_is_more_than_it_looks_at(
    channel: TwilioChannel, phone: Phone, person: str, caplog: pytest.LogCaptureFixture
) -> None:
    since = a_moment_ago()
    for start in range(0, 120, 20):
        told = [phone.post(person, f"{start + number}", deliver=False) for number in range(20)]
        await asyncio.gather(*told)
    assert sorted(map(int, await texts_of(channel, person, since))) == [*range(120)]
    assert caplog.records == [] or all(record.name != "mesh.adapters.twilio" for record in caplog.records)
    for start in range(0, 400, 20):
        await asyncio.gather(*(phone.post(person, f"{start + number} more", deliver=False) for number in range(20)))
    newest = await channel.received(recipient=NUMBER, since=since)
    assert len(newest) == 500
    assert sum(each.text.endswith("more") for each in newest) == 400
    assert [record.levelname for record in caplog.records if "newest 500" in record.getMessage()] == ["WARNING"]


@pytest.mark.parametrize(
    "broken",
    [
        None,
        7,
        "x",
        [],
        {},
        item(""),
        item("SM 1"),
        item("SM1") | {"sid": None},
        item("SM1", **{"from": None}),
        item("SM1", **{"from": "+15551230001"}),
        item("SM1", **{"from": "whatsapp:+1|2"}),
        item("SM1", to=None),
        item("SM1", date_created=7),
    ],
)
async def test_an_unreadable_message_does_not_hide_the_others(broken: object, caplog: pytest.LogCaptureFixture) -> None:
    async with serving(listed(item("SM3"), broken, item("SM2"))) as base, opened(base) as channel:
        found = await channel.received(recipient=NUMBER, since=YESTERDAY)
    assert [each.message_id for each in found] == ["SM2", "SM3"]
    told = [record.getMessage() for record in caplog.records if record.name == "mesh.adapters.twilio"]
    assert told == ["! listed messages that can't be read count=1"]


@pytest.mark.parametrize(
    ("other", "text", "media"),
    [
        ({"body": None}, "", 0),
        ({"num_media": None}, "hello", 0),
        ({"num_media": 2}, "hello", 2),
        ({"num_media": "many"}, "hello", 0),
        ({"date_created": None}, "hello", 0),
        ({"date_created": "yesterday"}, "hello", 0),
        ({"body": "\ud83d"}, "?", 0),
        ({"new_field": {"a": 1}}, "hello", 0),
    ],
)
async def test_a_message_that_lacks_something_is_received(other: dict[str, Any], text: str, media: int) -> None:
    async with serving(listed(item("SM1", **other))) as base, opened(base) as channel:
        (found,) = await channel.received(recipient=NUMBER, since=YESTERDAY)
    assert (found.message_id, found.text, found.media) == ("SM1", text, media)


async def test_a_list_that_ignores_what_was_asked_gives_only_what_people_sent_to_us() -> None:
    ours = item("SM1", direction="outbound-api", to="whatsapp:+15551230001", **{"from": f"whatsapp:{NUMBER}"})
    page = listed(item("SM2", to="whatsapp:+14150000000"), ours, item("SM3", direction="outbound-reply"), item("SM4"))
    async with serving(page) as base, opened(base) as channel:
        found = await channel.received(recipient=NUMBER, since=YESTERDAY)
    assert [each.message_id for each in found] == ["SM4"]


async def test_a_message_on_two_pages_is_received_once() -> None:
    """A page shifts when somebody writes meanwhile."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1]
        second = b"Page=1" in asked
        more = {} if second else {"next_page_uri": "/2010-04-01/Messages.json?Page=1"}
        shown = ("SM2", "SM1") if second else ("SM3", "SM2")
        writer.write(listed(*map(item, shown), **more))
        await writer.drain()

    async with talking(talk) as base, opened(base) as channel:
        found = await channel.received(recipient=NUMBER, since=YESTERDAY)
    assert [each.message_id for each in found] == ["SM1", "SM2", "SM3"]


async def test_a_list_that_fails_or_hangs_raises_as_finding_does(twilio: str, phone: Phone) -> None:
    async with opened(twilio, read_timeout=0.3) as hasty:
        await phone.listing({"do": "fail", "status": 503}, {"do": "throttle", "retry_after": 7}, {"do": "hang"})
        with pytest.raises(Ambiguous):
            await hasty.received(recipient=NUMBER, since=a_moment_ago())
        with pytest.raises(Throttled) as throttled:
            await hasty.received(recipient=NUMBER, since=a_moment_ago())
        assert throttled.value.retry_after == 7
        with pytest.raises(Ambiguous):
            await hasty.received(recipient=NUMBER, since=a_moment_ago())
        assert await hasty.received(recipient=NUMBER, since=datetime.now(UTC) + timedelta(seconds=2)) == []


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"messages": 7}', b"<html>"])
async def test_a_list_that_is_none_is_ambiguous(body: bytes) -> None:
    async with serving(json_answer("200 OK", body)) as base, opened(base) as channel:
        with pytest.raises(Ambiguous):
            await channel.received(recipient=NUMBER, since=a_moment_ago())


# ── typing ────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_typing_is_shown_to_the_person_whose_message_it_is_about(
    channel: TwilioChannel, phone: Phone, person: str
) -> None:
    as_port: Channel = channel
    sid = (await phone.post(person, "hello")).message_sid
    await as_port.typing(sender=NUMBER, recipient=person, message_id=sid)
    (shown,) = [each for each in (await phone.log())["typing"] if each["to"] == person]
    assert shown["message_sid"] == sid


async def test_typing_is_asked_for_in_twilios_form() -> None:
    asked: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(
            await reader.readuntil(b"\r\n\r\n") + await reader.readexactly(len("messageId=SM1&channel=whatsapp"))
        )
        writer.write(json_answer("200 OK", b'{"success": true}'))
        await writer.drain()

    async with talking(talk) as base, opened(base) as channel:
        await channel.typing(sender=NUMBER, recipient="+15551230001", message_id="SM1")
    head, body = asked[0].split(b"\r\n\r\n")
    assert head.startswith(b"POST /v2/Indicators/Typing.json HTTP/1.1\r\n")
    assert b"content-type: application/x-www-form-urlencoded" in head.lower()
    assert b"authorization: basic " in head.lower()
    assert body == b"messageId=SM1&channel=whatsapp"


@pytest.mark.parametrize(
    ("api", "asked"),
    [
        ("https://api.twilio.com", "https://messaging.twilio.com"),
        ("https://api.twilio.com/", "https://messaging.twilio.com"),
        ("https://api.dublin.ie1.twilio.com", "https://messaging.dublin.ie1.twilio.com"),
        ("http://127.0.0.1:9010", "http://127.0.0.1:9010"),
        ("https://api.twilio.com.example", "https://api.twilio.com.example"),
        ("https://api.mytwilio.com", "https://api.mytwilio.com"),
    ],
)
def test_typing_has_a_host_of_its_own_at_twilio_alone(api: str, asked: str) -> None:
    assert TwilioChannel(SID, TOKEN, api_base=api).typing_url == f"{asked}/v2/Indicators/Typing.json"


@pytest.mark.parametrize(
    "answer",
    [b"", json_answer("401 Unauthorized", b"{}"), json_answer("429 Too Many", b""), json_answer("500 Oops", b"")],
)
async def test_typing_that_fails_is_nobodys_trouble(
    answer: bytes, person: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "mesh")
    async with serving(answer) as base, opened(base) as channel:
        await channel.typing(sender=NUMBER, recipient=person, message_id="SM1")
    (told,) = [record.getMessage() for record in caplog.records if record.name.startswith("mesh")]
    assert "message=SM1" in told
    assert person not in told


async def test_typing_that_nobody_hears_is_nobodys_trouble(person: str) -> None:
    async with opened("http://127.0.0.1:9") as channel:
        await channel.typing(sender=NUMBER, recipient=person, message_id="SM1")
        await channel.typing(sender=NUMBER, recipient=person, message_id="\ud83d")
    await channel.typing(sender=NUMBER, recipient=person, message_id="SM1")


async def test_typing_takes_three_seconds_at_most(person: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert module.TYPING_S == 3
    monkeypatch.setattr(module, "TYPING_S", 0.2)
    done = asyncio.Event()

    async def silence(_: asyncio.StreamReader, __: asyncio.StreamWriter) -> None:
        await done.wait()

    async with talking(silence) as base, opened(base) as channel:
        started = time.monotonic()
        await channel.typing(sender=NUMBER, recipient=person, message_id="SM1")
        assert time.monotonic() - started < 2
        done.set()


async def test_typing_that_is_interrupted_says_so(person: str) -> None:
    done = asyncio.Event()

    async def hang(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        done.set()
        await reader.read()

    async with talking(hang) as base, opened(base) as channel:
        task = asyncio.create_task(channel.typing(sender=NUMBER, recipient=person, message_id="SM1"))
        await done.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
