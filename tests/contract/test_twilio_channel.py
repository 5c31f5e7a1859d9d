"""The channel against the simulated Twilio: a process of its own, behind a socket."""

from __future__ import annotations

import asyncio
import os
from datetime import timedelta
from email.utils import parsedate_to_datetime

import httpx
import pytest

from mesh.adapters.twilio import TwilioChannel
from mesh.errors import Misconfigured, Refused
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
    twilio,
)

__all__ = ["channel", "person", "phone", "twilio"]


async def test_an_rfc9457_problem_is_refused_by_its_code(person: str) -> None:
    problem = b'{"type":"https://x","title":"no","status":400,"code":21211,"detail":"+1555"}'
    async with serving(json_answer("400 Bad Request", problem)) as base, opened(base) as channel:
        with pytest.raises(Refused) as refused:
            await channel.send(sender=NUMBER, recipient=person, text="hello")
    assert refused.value.provider_code == "21211"


async def test_find_looks_beyond_the_first_page(channel: TwilioChannel, person: str) -> None:
    since = a_moment_ago()
    first = await channel.send(sender=NUMBER, recipient=person, text="first")
    for start in range(0, 120, 20):
        texts = [f"later {start + number}" for number in range(20)]
        await asyncio.gather(*(channel.send(sender=NUMBER, recipient=person, text=text) for text in texts))
    assert await channel.find(sender=NUMBER, recipient=person, text="first", since=since) == [first]


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


async def test_edge_and_region_of_the_environment_do_not_change_the_host(
    twilio: str, person: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(os.environ, "TWILIO_EDGE", "dublin")
    monkeypatch.setitem(os.environ, "TWILIO_REGION", "ie1")
    async with opened(twilio) as channel:
        assert await channel.send(sender=NUMBER, recipient=person, text="hello")


@pytest.mark.parametrize(("sid", "token", "base"), [("", "x", "https://a"), ("AC", "", "https://a"), ("AC", "x", "a")])
def test_a_channel_that_could_never_send_stops_start_up(sid: str, token: str, base: str) -> None:
    with pytest.raises(Misconfigured):
        TwilioChannel(sid, token, api_base=base)
