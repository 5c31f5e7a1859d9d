"""What every provider's adapter does behind `mesh.ports.channel.Channel`, against its simulated provider: a process
of its own, behind a socket."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime, timedelta, timezone

import pytest

from mesh.errors import Ambiguous, Refused, Throttled
from mesh.ports.channel import Channel
from tests.contract.channel_stage import Provider, channel, meta_base, provider, settled, twilio_base
from tests.simulated import a_moment_ago, json_answer, person, serving, talking

__all__ = ["channel", "meta_base", "person", "provider", "twilio_base"]


async def test_what_is_sent_arrives_on_the_persons_phone(channel: Channel, provider: Provider, person: str) -> None:
    sid = await channel.send(sender=provider.number, recipient=person, text="नमस्ते, we open at 9 👋")
    (reply,) = await provider.phone.replies(person, wait=5)
    assert (reply.sid, reply.text, reply.sender, reply.recipient) == (
        sid,
        "नमस्ते, we open at 9 👋",
        provider.number,
        person,
    )


async def test_a_person_without_a_number_is_reached_by_the_whole_id(
    channel: Channel, provider: Provider, person: str
) -> None:
    somebody = "whatsapp:US." + person.removeprefix("+")
    await channel.send(sender=provider.number, recipient=somebody, text="hello")
    assert [reply.recipient for reply in await provider.phone.replies(somebody, wait=5)] == [somebody]


async def test_the_longest_text_is_taken_and_one_more_character_is_refused(
    channel: Channel, provider: Provider, person: str
) -> None:
    await channel.send(sender=provider.number, recipient=person, text="x" * channel.limit)
    with pytest.raises(Refused) as refused:
        await channel.send(sender=provider.number, recipient=person, text="x" * (channel.limit + 1))
    assert refused.value.provider_code == provider.codes["too long"]


async def test_too_many_requests_are_throttled_for_as_long_as_the_provider_says(
    channel: Channel, provider: Provider, person: str
) -> None:
    await provider.phone.script({"do": "throttle", "retry_after": 7})
    with pytest.raises(Throttled) as throttled:
        await channel.send(sender=provider.number, recipient=person, text="hello")
    assert throttled.value.retry_after == 7
    assert await provider.phone.replies(person) == []


async def test_a_rate_error_of_whatsapp_is_throttled_and_not_refused(
    channel: Channel, provider: Provider, person: str
) -> None:
    await provider.phone.script({"do": "refuse", "code": 63018})
    with pytest.raises(Throttled) as throttled:
        await channel.send(sender=provider.number, recipient=person, text="hello")
    assert throttled.value.retry_after == 1


async def test_a_503_is_ambiguous_and_nothing_is_found_when_nothing_was_taken(provider: Provider, person: str) -> None:
    await provider.phone.script({"do": "fail", "status": 503})
    since = a_moment_ago()
    async with provider.opened(wait_seconds=0.3) as channel:
        with pytest.raises(Ambiguous):
            await channel.send(sender=provider.number, recipient=person, text="hello")
        assert await settled(channel, sender=provider.number, recipient=person, text="hello", since=since) == []


async def test_a_503_after_the_message_was_taken_is_settled_by_find(
    channel: Channel, provider: Provider, person: str
) -> None:
    await provider.phone.script({"do": "accept_then_fail"})
    since = a_moment_ago()
    with pytest.raises(Ambiguous):
        await channel.send(sender=provider.number, recipient=person, text="hello")
    (reply,) = await provider.phone.replies(person, wait=5)
    assert await settled(channel, sender=provider.number, recipient=person, text="hello", since=since) == [reply.sid]


async def test_a_message_that_was_taken_without_an_answer_is_ambiguous_then_found(
    provider: Provider, person: str
) -> None:
    await provider.phone.script({"do": "accept_then_hang", "seconds": 30})
    since = a_moment_ago()
    async with provider.opened(read_timeout=0.3) as hasty:
        with pytest.raises(Ambiguous):
            await hasty.send(sender=provider.number, recipient=person, text=" hello\r\nthere ")
    (reply,) = await provider.phone.replies(person, wait=5)
    async with provider.opened() as patient:
        found = await settled(patient, sender=provider.number, recipient=person, text=" hello\r\nthere ", since=since)
    assert found == [reply.sid]


async def test_a_request_that_hangs_is_ambiguous_after_the_time_out(provider: Provider, person: str) -> None:
    await provider.phone.script({"do": "hang"})
    async with provider.opened(read_timeout=0.3) as hasty:
        with pytest.raises(Ambiguous):
            await hasty.send(sender=provider.number, recipient=person, text="hello")
    assert await provider.phone.replies(person) == []


async def test_an_invalid_recipient_is_refused_with_the_providers_code(
    channel: Channel, provider: Provider, person: str
) -> None:
    await provider.phone.script({"do": "refuse", "code": 63024})
    with pytest.raises(Refused) as refused:
        await channel.send(sender=provider.number, recipient=person, text="hello")
    assert refused.value.provider_code == "63024"
    assert person not in refused.value.detail


async def test_an_empty_text_is_refused(channel: Channel, provider: Provider, person: str) -> None:
    with pytest.raises(Refused) as refused:
        await channel.send(sender=provider.number, recipient=person, text="")
    assert refused.value.provider_code == provider.codes["empty"]


async def test_half_a_character_is_replaced_and_does_not_stop_the_message(
    channel: Channel, provider: Provider, person: str
) -> None:
    since = a_moment_ago()
    sid = await channel.send(sender=provider.number, recipient=person, text="hi \ud83d")
    assert (await provider.phone.replies(person, wait=5))[0].text == "hi ?"
    assert await settled(channel, sender=provider.number, recipient=person, text="hi \ud83d", since=since) == [sid]


async def test_a_wrong_token_is_refused_and_the_log_is_told_what_to_check(provider: Provider, person: str) -> None:
    async with provider.opened(token="wrong") as stranger:
        with pytest.raises(Refused) as refused:
            await stranger.send(sender=provider.number, recipient=person, text="hello")
    assert refused.value.provider_code == provider.codes["token"]
    assert provider.token_setting in refused.value.detail


async def test_a_refused_connection_was_never_sent_and_may_be_sent_again_in_a_second(
    provider: Provider, person: str
) -> None:
    async with provider.opened(base="http://127.0.0.1:9") as nobody:
        with pytest.raises(Throttled) as throttled:
            await nobody.send(sender=provider.number, recipient=person, text="hello")
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
async def test_an_answer_that_proves_nothing_is_ambiguous(answer: bytes, provider: Provider, person: str) -> None:
    async with serving(answer) as base, provider.opened(base=base) as channel:
        with pytest.raises(Ambiguous):
            await channel.send(sender=provider.number, recipient=person, text="hello")


async def test_an_answer_that_drips_is_ambiguous_in_the_end(provider: Provider, person: str) -> None:
    async def drip(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 201 Created\r\nContent-Length: 100000\r\n\r\n")
        while not writer.is_closing():
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.05)

    async with talking(drip) as base, provider.opened(base=base, connect_timeout=0.2, read_timeout=0.2) as channel:
        with pytest.raises(Ambiguous):
            async with asyncio.timeout(10):
                await channel.send(sender=provider.number, recipient=person, text="hello")


@pytest.mark.parametrize("header", [b"Retry-After: Wed, 21 Oct 2026 07:28:00 GMT", b"Retry-After: nan", b"X: y"])
async def test_a_retry_after_that_is_no_number_waits_a_second(header: bytes, provider: Provider, person: str) -> None:
    async with serving(json_answer("429 Too Many", b"busy", header)) as base, provider.opened(base=base) as channel:
        with pytest.raises(Throttled) as throttled:
            await channel.send(sender=provider.number, recipient=person, text="hello")
    assert throttled.value.retry_after == 1


async def test_find_returns_all_equal_messages_oldest_first(channel: Channel, provider: Provider, person: str) -> None:
    since = a_moment_ago()
    first = await channel.send(sender=provider.number, recipient=person, text="again")
    await channel.send(sender=provider.number, recipient=person, text="other")
    second = await channel.send(sender=provider.number, recipient=person, text="again")
    assert await settled(channel, sender=provider.number, recipient=person, text="again", since=since) == [
        first,
        second,
    ]


async def test_find_ignores_other_chats_other_texts_and_older_messages(
    channel: Channel, provider: Provider, person: str
) -> None:
    await channel.send(sender=provider.number, recipient=person, text="hello")
    since, later = a_moment_ago(), datetime.now(UTC) + timedelta(seconds=2)
    stranger = person.replace("+1555", "+1556")
    assert await settled(channel, sender=provider.number, recipient=stranger, text="hello", since=since) == []
    assert await settled(channel, sender=provider.number, recipient=person, text="Hello", since=since) == []
    assert await settled(channel, sender=provider.number, recipient=person, text="hello", since=later) == []


async def test_find_understands_a_time_of_another_zone(channel: Channel, provider: Provider, person: str) -> None:
    since = a_moment_ago().astimezone(timezone(timedelta(hours=8)))
    sid = await channel.send(sender=provider.number, recipient=person, text="hello")
    assert await settled(channel, sender=provider.number, recipient=person, text="hello", since=since) == [sid]


async def test_find_does_not_take_the_persons_own_words_for_ours(
    channel: Channel, provider: Provider, person: str
) -> None:
    since = a_moment_ago()
    await provider.phone.post(person, "hello")
    assert await settled(channel, sender=provider.number, recipient=person, text="hello", since=since) == []


async def test_many_messages_at_once_share_a_few_connections(channel: Channel, provider: Provider, person: str) -> None:
    sends = (channel.send(sender=provider.number, recipient=person, text=f"{number}") for number in range(40))
    sids = await asyncio.gather(*sends)
    assert len(set(sids)) == 40
    assert {reply.sid for reply in await provider.phone.replies(person, wait=5)} == set(sids)


async def test_the_channel_itself_logs_no_phone_number(
    channel: Channel, provider: Provider, person: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "twilio")
    caplog.set_level(logging.DEBUG, "mesh")
    await channel.send(sender=provider.number, recipient=person, text="hello")
    await provider.phone.settle()
    ours = [record for record in caplog.records if record.name.startswith(("twilio", "mesh"))]
    assert [record for record in ours if not record.name.startswith("mesh.gateway")] == []
    assert not any(person.lstrip("+") in record.getMessage() for record in ours)
