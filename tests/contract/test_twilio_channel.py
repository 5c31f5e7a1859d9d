"""The channel against the simulated Twilio: a process of its own, behind a socket."""

from __future__ import annotations

import asyncio
import logging
import os
from datetime import UTC, datetime, timedelta, timezone
from email.utils import parsedate_to_datetime

import httpx
import pytest

from mesh.adapters.twilio import TwilioChannel
from mesh.errors import Ambiguous, Misconfigured, Refused, Throttled
from mesh.ports import Channel
from mesh.testing.phone import NotTaken, Phone
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


async def test_what_is_sent_arrives_on_the_persons_phone(channel: TwilioChannel, phone: Phone, person: str) -> None:
    as_port: Channel = channel
    sid = await as_port.send(sender=NUMBER, recipient=person, text="नमस्ते, we open at 9 👋")
    (reply,) = await phone.replies(person, wait=5)
    assert (reply.sid, reply.text, reply.sender, reply.recipient) == (
        sid,
        "नमस्ते, we open at 9 👋",
        NUMBER,
        person,
    )


async def test_a_person_without_a_number_is_reached_by_the_whole_id(
    channel: TwilioChannel, phone: Phone, person: str
) -> None:
    somebody = "whatsapp:US." + person.removeprefix("+")
    await channel.send(sender=NUMBER, recipient=somebody, text="hello")
    assert [reply.recipient for reply in await phone.replies(somebody, wait=5)] == [somebody]


async def test_the_longest_text_is_taken_and_one_more_character_is_refused(channel: TwilioChannel, person: str) -> None:
    await channel.send(sender=NUMBER, recipient=person, text="x" * channel.limit)
    with pytest.raises(Refused) as refused:
        await channel.send(sender=NUMBER, recipient=person, text="x" * (channel.limit + 1))
    assert refused.value.provider_code == "21617"


async def test_too_many_requests_are_throttled_for_as_long_as_twilio_says(
    channel: TwilioChannel, phone: Phone, person: str
) -> None:
    await phone.script({"do": "throttle", "retry_after": 7})
    with pytest.raises(Throttled) as throttled:
        await channel.send(sender=NUMBER, recipient=person, text="hello")
    assert throttled.value.retry_after == 7
    assert await phone.replies(person) == []


async def test_a_rate_error_of_whatsapp_is_throttled_and_not_refused(
    channel: TwilioChannel, phone: Phone, person: str
) -> None:
    await phone.script({"do": "refuse", "code": 63018})
    with pytest.raises(Throttled) as throttled:
        await channel.send(sender=NUMBER, recipient=person, text="hello")
    assert throttled.value.retry_after == 1


async def test_a_503_is_ambiguous_and_nothing_is_found_when_nothing_was_taken(
    channel: TwilioChannel, phone: Phone, person: str
) -> None:
    await phone.script({"do": "fail", "status": 503})
    since = a_moment_ago()
    with pytest.raises(Ambiguous):
        await channel.send(sender=NUMBER, recipient=person, text="hello")
    assert await channel.find(sender=NUMBER, recipient=person, text="hello", since=since) == []


async def test_a_503_after_the_message_was_taken_is_settled_by_find(
    channel: TwilioChannel, phone: Phone, person: str
) -> None:
    await phone.script({"do": "accept_then_fail"})
    since = a_moment_ago()
    with pytest.raises(Ambiguous):
        await channel.send(sender=NUMBER, recipient=person, text="hello")
    (reply,) = await phone.replies(person, wait=5)
    assert await channel.find(sender=NUMBER, recipient=person, text="hello", since=since) == [reply.sid]


async def test_a_message_that_was_taken_without_an_answer_is_ambiguous_then_found(
    twilio: str, phone: Phone, person: str
) -> None:
    await phone.script({"do": "accept_then_hang", "seconds": 30})
    since = a_moment_ago()
    async with opened(twilio, read_timeout=0.3) as hasty:
        with pytest.raises(Ambiguous):
            await hasty.send(sender=NUMBER, recipient=person, text=" hello\r\nthere ")
    (reply,) = await phone.replies(person, wait=5)
    async with opened(twilio) as patient:
        found = await patient.find(sender=NUMBER, recipient=person, text=" hello\r\nthere ", since=since)
    assert found == [reply.sid]


async def test_a_request_that_hangs_is_ambiguous_after_the_time_out(twilio: str, phone: Phone, person: str) -> None:
    await phone.script({"do": "hang"})
    async with opened(twilio, read_timeout=0.3) as hasty:
        with pytest.raises(Ambiguous):
            await hasty.send(sender=NUMBER, recipient=person, text="hello")
    assert await phone.replies(person) == []


async def test_an_invalid_recipient_is_refused_with_the_providers_code(
    channel: TwilioChannel, phone: Phone, person: str
) -> None:
    await phone.script({"do": "refuse", "code": 63024})
    with pytest.raises(Refused) as refused:
        await channel.send(sender=NUMBER, recipient=person, text="hello")
    assert refused.value.provider_code == "63024"
    assert person not in refused.value.detail


async def test_an_empty_text_is_refused(channel: TwilioChannel, person: str) -> None:
    with pytest.raises(Refused) as refused:
        await channel.send(sender=NUMBER, recipient=person, text="")
    assert refused.value.provider_code == "21602"


async def test_half_a_character_is_replaced_and_does_not_stop_the_message(
    channel: TwilioChannel, phone: Phone, person: str
) -> None:
    since = a_moment_ago()
    sid = await channel.send(sender=NUMBER, recipient=person, text="hi \ud83d")
    assert (await phone.replies(person, wait=5))[0].text == "hi ?"
    assert await channel.find(sender=NUMBER, recipient=person, text="hi \ud83d", since=since) == [sid]


async def test_a_wrong_token_is_refused_and_the_log_is_told_what_to_check(twilio: str, person: str) -> None:
    async with opened(twilio, token="wrong") as stranger:
        with pytest.raises(Refused) as refused:
            await stranger.send(sender=NUMBER, recipient=person, text="hello")
    assert refused.value.provider_code == "20003"
    assert "TWILIO_AUTH_TOKEN" in refused.value.detail


async def test_a_refused_connection_was_never_sent_and_may_be_sent_again_in_a_second(person: str) -> None:
    async with opened("http://127.0.0.1:9") as nobody:
        with pytest.raises(Throttled) as throttled:
            await nobody.send(sender=NUMBER, recipient=person, text="hello")
    assert throttled.value.retry_after == 1


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 201 Created\r\nContent-Length: 500\r\n\r\n{",
        b"not http at all\r\n\r\n",
        json_answer("201 Created", b"<html>a proxy's page</html>"),
        json_answer("201 Created", b"[]"),
        json_answer("201 Created", b"{}"),
        json_answer("201 Created", b""),
        json_answer("408 Request Timeout", b""),
        json_answer("502 Bad Gateway", b"<html>"),
    ],
)
async def test_an_answer_that_proves_nothing_is_ambiguous(answer: bytes, person: str) -> None:
    async with serving(answer) as base, opened(base) as channel:
        with pytest.raises(Ambiguous):
            await channel.send(sender=NUMBER, recipient=person, text="hello")


async def test_an_answer_that_drips_is_ambiguous_in_the_end(person: str) -> None:
    async def drip(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 201 Created\r\nContent-Length: 100000\r\n\r\n")
        while not writer.is_closing():
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.05)

    async with talking(drip) as base, opened(base, connect_timeout=0.2, read_timeout=0.2) as channel:
        with pytest.raises(Ambiguous):
            async with asyncio.timeout(10):
                await channel.send(sender=NUMBER, recipient=person, text="hello")


@pytest.mark.parametrize("header", [b"Retry-After: Wed, 21 Oct 2026 07:28:00 GMT", b"Retry-After: nan", b"X: y"])
async def test_a_retry_after_that_is_no_number_waits_a_second(header: bytes, person: str) -> None:
    async with serving(json_answer("429 Too Many", b"busy", header)) as base, opened(base) as channel:
        with pytest.raises(Throttled) as throttled:
            await channel.send(sender=NUMBER, recipient=person, text="hello")
    assert throttled.value.retry_after == 1


async def test_an_rfc9457_problem_is_refused_by_its_code(person: str) -> None:
    problem = b'{"type":"https://x","title":"no","status":400,"code":21211,"detail":"+1555"}'
    async with serving(json_answer("400 Bad Request", problem)) as base, opened(base) as channel:
        with pytest.raises(Refused) as refused:
            await channel.send(sender=NUMBER, recipient=person, text="hello")
    assert refused.value.provider_code == "21211"


async def test_find_returns_all_equal_messages_oldest_first(channel: TwilioChannel, person: str) -> None:
    since = a_moment_ago()
    first = await channel.send(sender=NUMBER, recipient=person, text="again")
    await channel.send(sender=NUMBER, recipient=person, text="other")
    second = await channel.send(sender=NUMBER, recipient=person, text="again")
    assert await channel.find(sender=NUMBER, recipient=person, text="again", since=since) == [first, second]


async def test_find_looks_beyond_the_first_page(channel: TwilioChannel, person: str) -> None:
    since = a_moment_ago()
    first = await channel.send(sender=NUMBER, recipient=person, text="first")
    for start in range(0, 120, 20):
        texts = [f"later {start + number}" for number in range(20)]
        await asyncio.gather(*(channel.send(sender=NUMBER, recipient=person, text=text) for text in texts))
    assert await channel.find(sender=NUMBER, recipient=person, text="first", since=since) == [first]


async def test_find_ignores_other_chats_other_texts_and_older_messages(channel: TwilioChannel, person: str) -> None:
    await channel.send(sender=NUMBER, recipient=person, text="hello")
    since, later = a_moment_ago(), datetime.now(UTC) + timedelta(seconds=2)
    stranger = person.replace("+1555", "+1556")
    assert await channel.find(sender=NUMBER, recipient=stranger, text="hello", since=since) == []
    assert await channel.find(sender=NUMBER, recipient=person, text="Hello", since=since) == []
    assert await channel.find(sender=NUMBER, recipient=person, text="hello", since=later) == []


async def test_find_compares_to_the_second_as_twilios_dates_have_no_fractions(
    twilio: str, channel: TwilioChannel, person: str
) -> None:
    sid = await channel.send(sender=NUMBER, recipient=person, text="hello")
    async with httpx.AsyncClient(auth=(SID, TOKEN), trust_env=False) as client:
        made = (await client.get(f"{twilio}/2010-04-01/Accounts/{SID}/Messages/{sid}.json")).json()
    second = parsedate_to_datetime(made["date_created"])
    late, next_second = second.replace(microsecond=999_999), second + timedelta(seconds=1)
    assert await channel.find(sender=NUMBER, recipient=person, text="hello", since=late) == [sid]
    assert await channel.find(sender=NUMBER, recipient=person, text="hello", since=next_second) == []


async def test_find_understands_a_time_of_another_zone(channel: TwilioChannel, person: str) -> None:
    since = a_moment_ago().astimezone(timezone(timedelta(hours=8)))
    sid = await channel.send(sender=NUMBER, recipient=person, text="hello")
    assert await channel.find(sender=NUMBER, recipient=person, text="hello", since=since) == [sid]


async def test_find_does_not_take_the_persons_own_words_for_ours(
    channel: TwilioChannel, phone: Phone, person: str
) -> None:
    since = a_moment_ago()
    with pytest.raises(NotTaken):
        await phone.say(person, "hello")
    assert await channel.find(sender=NUMBER, recipient=person, text="hello", since=since) == []


async def test_many_messages_at_once_share_a_few_connections(channel: TwilioChannel, phone: Phone, person: str) -> None:
    sends = (channel.send(sender=NUMBER, recipient=person, text=f"{number}") for number in range(40))
    sids = await asyncio.gather(*sends)
    assert len(set(sids)) == 40
    assert {reply.sid for reply in await phone.replies(person, wait=5)} == set(sids)


async def test_edge_and_region_of_the_environment_do_not_change_the_host(
    twilio: str, person: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(os.environ, "TWILIO_EDGE", "dublin")
    monkeypatch.setitem(os.environ, "TWILIO_REGION", "ie1")
    async with opened(twilio) as channel:
        assert await channel.send(sender=NUMBER, recipient=person, text="hello")


async def test_the_channel_itself_logs_no_phone_number(
    channel: TwilioChannel, person: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "twilio")
    caplog.set_level(logging.DEBUG, "mesh")
    await channel.send(sender=NUMBER, recipient=person, text="hello")
    ours = [record.getMessage() for record in caplog.records if record.name.startswith(("twilio", "mesh"))]
    assert ours == []


@pytest.mark.parametrize(("sid", "token", "base"), [("", "x", "https://a"), ("AC", "", "https://a"), ("AC", "x", "a")])
def test_a_channel_that_could_never_send_stops_start_up(sid: str, token: str, base: str) -> None:
    with pytest.raises(Misconfigured):
        TwilioChannel(sid, token, api_base=base)
