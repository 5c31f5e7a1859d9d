"""The simulated Twilio itself: as Twilio where it must be, as bad as Twilio can be where told to, and a witness."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from mesh.adapters.twilio import TwilioChannel
from mesh.errors import Ambiguous, Refused, Throttled
from mesh.testing.journal import MOST, Journal, Kind
from mesh.testing.phone import Phone
from tests.simulated import (
    NUMBER,
    SID,
    TOKEN,
    Hook,
    a_moment_ago,
    channel,
    hook,
    logged,
    opened,
    person,
    phone,
    twilio,
)

__all__ = ["channel", "hook", "person", "phone", "twilio"]


async def test_the_simulated_twilio_answers_as_twilio_does(twilio: str, phone: Phone, person: str) -> None:
    base = f"{twilio}/2010-04-01/Accounts/{SID}/Messages"
    form = {"To": f"whatsapp:{person}", "From": f"whatsapp:{NUMBER}", "Body": "hello"}
    async with httpx.AsyncClient(auth=(SID, TOKEN), trust_env=False) as client:
        made = (await client.post(f"{base}.json", data=form)).json()
        fetched = (await client.get(f"{base}/{made['sid']}.json")).json()
        listed = (await client.get(f"{base}.json", params={"To": form["To"], "DateSent>": "2020-01-01"})).json()
        tomorrow = (await client.get(f"{base}.json", params={"To": form["To"], "DateSent>": "2999-01-01"})).json()
        absent = await client.get(f"{base}/SM0.json")
        no_recipient = await client.post(f"{base}.json", data={**form, "To": ""})
        wrong_number = await client.post(f"{base}.json", data={**form, "From": "whatsapp:+1"})
    assert (made["status"], made["error_code"], made["direction"]) == ("queued", None, "outbound-api")
    assert made["uri"] == f"/2010-04-01/Accounts/{SID}/Messages/{made['sid']}.json"
    assert fetched["sid"] == made["sid"]
    assert ([each["sid"] for each in listed["messages"]], listed["next_page_uri"]) == ([made["sid"]], None)
    assert tomorrow["messages"] == []
    assert (absent.status_code, absent.json()["code"]) == (404, 20404)
    assert (no_recipient.status_code, no_recipient.json()["code"]) == (400, 21604)
    assert wrong_number.json()["code"] == 63007


async def test_waiting_for_a_reply_ends_when_it_is_sent(channel: TwilioChannel, phone: Phone, person: str) -> None:
    async with asyncio.timeout(10):
        waiting = asyncio.create_task(phone.replies(person, wait=60))
        await channel.send(sender=NUMBER, recipient=person, text="one")
        (one,) = await waiting
    await channel.send(sender=NUMBER, recipient=person, text="two")
    assert [reply.text for reply in await phone.replies(person, after=one.seq, wait=5)] == ["two"]


async def test_an_unknown_behaviour_is_named(phone: Phone) -> None:
    with pytest.raises(ValueError, match="explode"):
        await phone.script({"do": "explode"})


async def test_a_webhook_that_nobody_serves_is_told_and_logged(phone: Phone, person: str) -> None:
    posted = await phone.post(person, "hello", message_sid="SMnobody")
    assert (posted.status, posted.error) == (0, "ConnectError")
    assert [post["status"] for post in (await phone.log())["inbound"] if post["message_sid"] == "SMnobody"] == [0]


# ── webhooks ──────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_lost_webhook_is_posted_nowhere_and_its_message_is_kept(hook: Hook, person: str) -> None:
    since = a_moment_ago()
    lost = await hook.phone.post(person, "lost", deliver=False)
    assert (lost.status, lost.error) == (0, "not posted")
    assert await hook.phone.say(person, "heard")
    assert await hook.texts(1) == ["heard"]
    assert [each.text for each in await hook.channel.received(recipient=NUMBER, since=since)] == ["lost", "heard"]
    log = await hook.phone.log()
    assert [each["body"] for each in log["said"]] == ["lost", "heard"]
    assert lost.message_sid not in {each["message_sid"] for each in log["inbound"]}


async def test_copies_of_a_webhook_are_one_message_with_one_sid(hook: Hook, person: str) -> None:
    posted = await hook.phone.post(person, "twice", copies=2)
    assert posted.status == 200
    assert await hook.texts(2) == ["twice", "twice"]
    assert {form["MessageSid"] for form in hook.taken} == {posted.message_sid}
    log = await hook.phone.log()
    assert len(log["said"]) == 1
    assert [each["status"] for each in log["inbound"]] == [200, 200]
    assert len(await hook.channel.received(recipient=NUMBER, since=a_moment_ago() - timedelta(seconds=9))) == 1


async def test_a_delayed_webhook_is_overtaken_and_its_message_is_kept_at_once(hook: Hook, person: str) -> None:
    since = a_moment_ago()
    first = await hook.phone.post(person, "first", delay=0.4)
    assert (first.status, first.error) == (0, "posted later")
    assert [each.text for each in await hook.channel.received(recipient=NUMBER, since=since)] == ["first"]
    await hook.phone.say(person, "second")
    assert await hook.texts(2) == ["second", "first"]
    log = await logged(hook.phone, "inbound", 2)
    assert [each["body"] for each in log["said"]] == ["first", "second"]
    assert [each["message_sid"] == first.message_sid for each in log["inbound"]] == [False, True]
    assert log["inbound"][1]["mono"] - log["said"][0]["mono"] >= 0.4


async def test_a_webhook_that_fails_is_not_posted_again_and_its_message_is_kept(phone: Phone, person: str) -> None:
    """By the address nobody listens at."""
    posted = await phone.post(person, "anybody?")
    assert (posted.status, posted.error) == (0, "ConnectError")
    log = await phone.log()
    assert [each["body"] for each in log["said"] if each["from"] == person] == ["anybody?"]
    assert [each["error"] for each in log["inbound"] if each["message_sid"] == posted.message_sid] == ["ConnectError"]


# ── the list ──────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_list_that_is_late_shows_a_message_after_that_time(
    channel: TwilioChannel, phone: Phone, person: str
) -> None:
    await phone.listing(late=0.4)
    since, started = a_moment_ago(), time.monotonic()
    sid = await channel.send(sender=NUMBER, recipient=person, text="hello")
    await phone.post(person, "hi", deliver=False)

    async def found() -> list[str]:
        return await channel.find(sender=NUMBER, recipient=person, text="hello", since=since)

    assert await found() == []
    assert person not in {each.sender for each in await channel.received(recipient=NUMBER, since=since)}
    async with asyncio.timeout(10):
        while not await found():
            await asyncio.sleep(0.02)
    assert time.monotonic() - started >= 0.4
    await phone.listing(late=60)
    assert await found() == []
    await phone.listing()
    assert await found() == [sid]


async def test_lists_fail_hang_and_throttle_in_the_order_told(twilio: str, phone: Phone, person: str) -> None:
    await phone.listing({"do": "fail", "status": 500}, {"do": "hang"}, {"do": "answer"}, {"do": "throttle"})
    async with opened(twilio, read_timeout=0.3) as hasty:

        async def find() -> list[str]:
            return await hasty.find(sender=NUMBER, recipient=person, text="hello", since=a_moment_ago())

        with pytest.raises(Ambiguous) as failed:
            await find()
        assert "500" in failed.value.detail
        with pytest.raises(Ambiguous):
            await find()
        assert await find() == []
        with pytest.raises(Throttled):
            await find()
        assert await find() == []


async def test_an_unknown_behaviour_of_the_list_is_named(phone: Phone) -> None:
    with pytest.raises(ValueError, match="explode"):
        await phone.listing({"do": "explode"})


async def test_what_people_sent_is_listed_as_twilio_lists_it(twilio: str, phone: Phone, person: str) -> None:
    lost = await phone.post(person, "hello", fields={"NumMedia": "1"}, deliver=False)
    told = await phone.post(person, "there")
    async with httpx.AsyncClient(auth=(SID, TOKEN), base_url=twilio, trust_env=False) as client:
        path = f"/2010-04-01/Accounts/{SID}/Messages"
        query = {"To": f"whatsapp:{NUMBER}", "From": f"whatsapp:{person}", "PageSize": "1"}
        first = (await client.get(f"{path}.json", params=query)).json()
        second = (await client.get(first["next_page_uri"])).json()
        today = (
            await client.get(f"{path}.json", params={**query, "DateSent>": f"{datetime.now(UTC):%Y-%m-%d}"})
        ).json()
    (newest,), (oldest,) = first["messages"], second["messages"]
    assert second["next_page_uri"] is None
    assert (newest["sid"], oldest["sid"]) == (told.message_sid, lost.message_sid)
    assert (oldest["direction"], oldest["status"], oldest["num_media"]) == ("inbound", "received", "1")
    assert (oldest["from"], oldest["to"]) == (f"whatsapp:{person}", f"whatsapp:{NUMBER}")
    assert oldest["subresource_uris"] == {"media": f"{path}/{lost.message_sid}/Media.json"}
    assert (newest["date_sent"] is None, oldest["date_sent"]) == (False, None)
    assert [each["sid"] for each in today["messages"]] == [told.message_sid]


# ── typing ────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_typing_is_refused_as_twilio_refuses_it(
    twilio: str, channel: TwilioChannel, phone: Phone, person: str
) -> None:
    ours = await channel.send(sender=NUMBER, recipient=person, text="hello")
    sid = (await phone.post(person, "hello")).message_sid
    form = {"messageId": sid, "channel": "whatsapp"}
    async with httpx.AsyncClient(base_url=twilio, trust_env=False) as client:
        url, auth = "/v2/Indicators/Typing.json", (SID, TOKEN)
        assert (await client.post(url, data=form)).status_code == 401
        assert (await client.post(url, data=form, auth=(SID, "wrong"))).status_code == 401
        assert (await client.post(url, data={**form, "channel": "sms"}, auth=auth)).status_code == 400
        for other in ("SM0", ours):
            assert (await client.post(url, data={**form, "messageId": other}, auth=auth)).status_code == 400
        assert [each for each in (await phone.log())["typing"] if each["to"] == person] == []
        shown = await client.post(url, data=form, auth=auth)
    assert (shown.status_code, shown.json()) == (200, {"success": True})


# ── the witness ───────────────────────────────────────────────────────────────────────────────────────────────────


async def test_the_log_tells_what_became_of_each_send(twilio: str, phone: Phone, person: str) -> None:
    fates = ["accept", "accept_then_fail", "accept_then_hang", "fail", "throttle", "refuse", "hang"]
    before = time.monotonic()
    await phone.script(*({"do": fate} for fate in fates))
    async with opened(twilio, read_timeout=0.3) as hasty:
        for fate in fates:
            try:
                await hasty.send(sender=NUMBER, recipient=person, text=fate)
            except (Ambiguous, Throttled, Refused):
                continue
    log = await phone.log()
    taken = [each for each in log["outbound"] if each["to"] == person]
    assert [(each["body"], each["answer"]) for each in taken] == [
        ("accept", "success"),
        ("accept_then_fail", "failed"),
        ("accept_then_hang", "hung"),
    ]
    assert [each["sid"] for each in taken] == [each.sid for each in await phone.replies(person)]
    assert before <= taken[0]["mono"] <= taken[1]["mono"] <= taken[2]["mono"] <= time.monotonic()
    assert all(abs(datetime.now(UTC) - datetime.fromisoformat(each["at"])) < timedelta(minutes=1) for each in taken)
    refused = [(each["status"], each["code"]) for each in log["refused"] if each["to"] == person]
    assert refused == [(503, 20500), (429, 20429), (400, 63024), (0, 0)]


async def test_the_log_tells_when_a_webhook_was_posted_and_what_it_answered(hook: Hook, person: str) -> None:
    before = time.monotonic()
    posted = await hook.phone.post(person, "hello")
    (said,), (post,) = (await logged(hook.phone, "inbound", 1))["said"], (await hook.phone.log())["inbound"]
    assert (said["sid"], said["from"], said["to"], said["body"]) == (posted.message_sid, person, NUMBER, "hello")
    assert (post["message_sid"], post["status"], post["ms"]) == (posted.message_sid, 200, posted.ms)
    assert before <= said["mono"] <= post["mono"] <= time.monotonic()
    assert datetime.fromisoformat(said["at"]) <= datetime.fromisoformat(post["at"])


async def test_the_log_is_continued_after_a_number(phone: Phone, channel: TwilioChannel, person: str) -> None:
    await phone.post(person, "before")
    last = max(each["n"] for entries in (await phone.log()).values() for each in entries)
    await channel.send(sender=NUMBER, recipient=person, text="after")
    log = await phone.log(after=last)
    assert [each["body"] for each in log["outbound"]] == ["after"]
    assert (log["said"], log["inbound"]) == ([], [])
    nothing = await phone.log(after=10**9)
    assert not any(nothing.values())


async def test_a_long_log_is_told_whole_and_by_pages(hook: Hook) -> None:
    for start in range(0, 1_200, 20):
        people = [f"+1556{start + number:07d}" for number in range(20)]
        await asyncio.gather(*(hook.phone.post(each, "hello", deliver=False) for each in people))
    log = await hook.phone.log()
    assert [each["n"] for each in log["said"]] == [*range(1, 1_201)]
    async with httpx.AsyncClient(base_url=hook.address, trust_env=False) as client:
        first = (await client.get("/simulate/log")).json()
        page = (await client.get("/simulate/log", params={"after": 500, "limit": 10})).json()
    assert (len(first["said"]), first["last"], first["more"]) == (1_000, 1_000, True)
    assert ([each["n"] for each in page["said"]], page["last"], page["more"]) == ([*range(501, 511)], 510, True)


def test_the_journal_keeps_what_many_messages_leave_and_tells_only_so_much_at_once() -> None:
    journal = Journal()
    for number in range(50_000):
        journal.write("said", {"number": number})
    assert len(journal.after(0, 10**9)["said"]) == MOST
    assert journal.after(49_999, 10)["said"] == [{"n": 50_000, "number": 49_999}]


def test_the_journal_forgets_the_oldest_and_tells_no_more_than_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mesh.testing.journal.KEPT", 5)
    journal = Journal()
    kinds: list[Kind] = ["said", "inbound", "outbound"]
    for number in range(12):
        journal.write(kinds[number % 3], {"number": number})
    told, seen = 0, []
    while True:
        page = journal.after(told, 2)
        seen.append(sorted(each["n"] for kind in kinds for each in page[kind]))
        told = page["last"]
        if not page["more"]:
            break
    assert seen == [[8, 9], [10, 11], [12]]
    assert journal.after(12, MOST)["last"] == 12
    assert journal.after(99, MOST)["last"] == 12
