"""Files and templates through the channel: as they are sent, settled when nobody knows, and caught up."""

from __future__ import annotations

import asyncio
import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs

import pytest

from mesh.adapters import twilio as module
from mesh.adapters.twilio import TwilioChannel
from mesh.adapters.twilio_signature import parse_inbound
from mesh.errors import MeshError, NotFound, Refused, Throttled, Unavailable, Unreadable
from mesh.ports.channel import Attachment, Channel, Inbound
from mesh.testing.phone import Phone
from tests.contract.test_twilio_inbound import item, listed
from tests.simulated import (
    NUMBER,
    SID,
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

PDF = b"%PDF-1.7 a page"
PERSON = "+15551230001"
LINK = "https://mesh.example.com/files/abc/contract.pdf"
YESTERDAY = datetime.now(UTC) - timedelta(days=1)
MEDIA = re.compile(rf"/2010-04-01/Accounts/{SID}/Messages/(\w+)/Media\.json")


async def asked_to_send(**given: Any) -> dict[str, list[str]]:
    """The form that Twilio gets."""
    forms: list[dict[str, list[str]]] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = int(re.search(r"(?i)content-length: (\d+)", head)[1])  # type: ignore[index]  # httpx always states it
        forms.append(parse_qs((await reader.readexactly(length)).decode(), keep_blank_values=True))
        writer.write(json_answer("201 Created", b'{"sid": "SM1"}'))
        await writer.drain()

    async with talking(talk) as base, opened(base) as channel:
        as_port: Channel = channel
        assert await as_port.send(sender=NUMBER, recipient=PERSON, **given) == "SM1"
    return forms[0]


# ── sending ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_file_is_sent_by_its_address_with_a_text_or_without() -> None:
    with_text = await asked_to_send(text="Here it is", link=LINK)
    assert (with_text["MediaUrl"], with_text["Body"]) == ([LINK], ["Here it is"])
    alone = await asked_to_send(text="", link=LINK)
    assert (alone["MediaUrl"], alone.get("Body")) == ([LINK], None)
    assert (alone["From"], alone["To"]) == ([f"whatsapp:{NUMBER}"], [f"whatsapp:{PERSON}"])


async def test_a_template_is_sent_by_its_id_and_the_text_is_its_first_variable_on_one_line() -> None:
    form = await asked_to_send(text='An "answer"\n\n waits\ud83d 👋', template="HX1")
    assert form["ContentSid"] == ["HX1"]
    assert json.loads(form["ContentVariables"][0]) == {"1": 'An "answer" waits? 👋'}
    assert not {"Body", "MediaUrl"} & set(form)


async def test_a_plain_text_names_neither_file_nor_template() -> None:
    form = await asked_to_send(text="hello")
    assert form["Body"] == ["hello"]
    assert not {"MediaUrl", "ContentSid", "ContentVariables"} & set(form)


@pytest.mark.parametrize("code", ["63016", "63015", "63024", "63049", "21610"])
async def test_what_is_refused_for_good_is_refused_by_its_code(code: str) -> None:
    body = json.dumps({"code": int(code), "message": PERSON, "status": 400}).encode()
    async with serving(json_answer("400 Bad Request", body)) as base, opened(base) as channel:
        with pytest.raises(Refused) as refused:
            await channel.send(sender=NUMBER, recipient=PERSON, text="hello")
    assert refused.value.provider_code == code
    assert PERSON not in refused.value.detail


@pytest.mark.parametrize(("status", "code"), [("400 Bad Request", 63018), ("429 Too Many", 20429), ("400 Bad", 20429)])
async def test_what_came_too_fast_is_throttled(status: str, code: int) -> None:
    body = json.dumps({"code": code}).encode()
    async with serving(json_answer(status, body, b"Retry-After: 3")) as base, opened(base) as channel:
        with pytest.raises(Throttled) as throttled:
            await channel.send(sender=NUMBER, recipient=PERSON, text="hello")
    assert throttled.value.retry_after == 3


# ── settling ──────────────────────────────────────────────────────────────────────────────────────────────────────


def ours(sid: str, body: str | None, files: str = "0") -> dict[str, Any]:
    people = {"from": f"whatsapp:{NUMBER}", "to": f"whatsapp:{PERSON}"}
    return item(sid, direction="outbound-api", body=body, num_media=files, **people)


async def found(text: str, *messages: dict[str, Any]) -> list[str]:
    async with serving(listed(*messages)) as base, opened(base) as channel:
        return await channel.find(sender=NUMBER, recipient=PERSON, text=text, since=a_moment_ago())


async def test_a_file_without_a_text_is_found_among_files_and_not_among_empty_texts() -> None:
    messages = (ours("SM4", None, "1"), ours("SM3", "hi", "1"), ours("SM2", "", "0"), ours("SM1", "", "1"))
    assert await found("", *messages) == ["SM1", "SM4"]
    assert await found("hi", *messages) == ["SM3"]


async def test_a_template_is_found_by_the_text_within_it() -> None:
    sent = ours("SM2", "Hello from Adiyan: an answer\n waits. Write to us to read it.")
    assert await found("an  answer waits", sent, ours("SM1", "another one")) == ["SM2"]


async def test_a_text_within_another_is_not_taken_for_it_when_just_that_text_is_there() -> None:
    messages = (ours("SM3", "We open at 9, and on Sundays at 10"), ours("SM2", "We open at 9"), ours("SM1", ""))
    assert await found("We open at 9", *messages) == ["SM2"]
    assert await found("We open at 10", *messages) == []


# ── catching up ───────────────────────────────────────────────────────────────────────────────────────────────────


class Twilio:
    """A list of messages, and of the files of each."""

    def __init__(self, *messages: dict[str, Any]) -> None:
        self.messages = messages
        self.files: dict[str, list[str]] = {}
        """By message, their types."""
        self.failing: set[str] = set()
        self.asked: list[str] = []

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = (await reader.readuntil(b"\r\n\r\n")).decode().split(" ")[1].partition("?")[0]
        writer.write(self._answer(path))
        await writer.drain()

    def _answer(self, path: str) -> bytes:
        if not (media := MEDIA.fullmatch(path)):
            return listed(*self.messages)
        self.asked.append(media[1])
        if media[1] in self.failing:
            return json_answer("503 Busy", b"")
        base = path.removesuffix(".json")
        files = [
            {"sid": f"ME{number}", "content_type": media_type, "uri": f"{base}/ME{number}.json", "parent_sid": media[1]}
            for number, media_type in enumerate(self.files.get(media[1], ()))
        ]
        return json_answer("200 OK", json.dumps({"media_list": files}).encode())


async def test_a_caught_up_file_is_the_same_as_the_webhook_would_have_given() -> None:
    twilio = Twilio(item("SM1", num_media="1", body="contract.pdf"))
    twilio.files["SM1"] = ["application/pdf"]
    async with talking(twilio.talk) as base, opened(base) as channel:
        (caught,) = await channel.received(recipient=NUMBER, since=YESTERDAY)
        url = f"{base}/2010-04-01/Accounts/{SID}/Messages/SM1/Media/ME0"
    form = {"MessageSid": "SM1", "From": f"whatsapp:{PERSON}", "To": f"whatsapp:{NUMBER}", "Body": "contract.pdf"}
    form |= {"NumMedia": "1", "MediaUrl0": url, "MediaContentType0": "application/pdf", "MessageType": "document"}
    posted = parse_inbound([*form.items()])
    for name in ("message_id", "sender", "recipient", "text", "media", "kind", "attachments", "quoted", "button"):
        assert getattr(caught, name) == getattr(posted, name), name
    assert caught.attachments == (Attachment(url, "application/pdf", "contract.pdf"),)
    assert caught.fields["CaughtUp"] == "1"


async def test_files_are_asked_about_once_in_many_looks_and_only_of_messages_that_have_some() -> None:
    twilio = Twilio(item("SM3", num_media="2"), item("SM2"), item("SM1", num_media="1"))
    twilio.files = {"SM1": ["audio/ogg"], "SM3": ["image/jpeg", "image/png"]}
    async with talking(twilio.talk) as base, opened(base) as channel:
        for _ in range(3):
            received = await channel.received(recipient=NUMBER, since=YESTERDAY)
    assert [(each.message_id, each.kind, len(each.attachments)) for each in received] == [
        ("SM1", "audio", 1),
        ("SM2", "text", 0),
        ("SM3", "image", 2),
    ]
    assert sorted(twilio.asked) == ["SM1", "SM3"]


async def test_files_that_can_not_be_asked_about_hide_no_message_and_are_asked_about_at_the_next_look() -> None:
    twilio = Twilio(item("SM3", num_media="1"), item("SM2", num_media="1"), item("SM1", num_media="1"))
    twilio.files = {"SM1": ["application/pdf"], "SM2": ["application/pdf"]}
    twilio.failing.add("SM2")
    async with talking(twilio.talk) as base, opened(base) as channel:
        first = await channel.received(recipient=NUMBER, since=YESTERDAY)
        twilio.failing.clear()
        twilio.files["SM3"] = ["application/pdf"]  # a moment late
        second = await channel.received(recipient=NUMBER, since=YESTERDAY)
    assert [(each.message_id, each.media, len(each.attachments)) for each in first] == [
        ("SM1", 1, 1),
        ("SM2", 1, 0),
        ("SM3", 1, 0),
    ]
    assert [len(each.attachments) for each in second] == [1, 1, 1]
    assert sorted(twilio.asked) == ["SM1", "SM2", "SM2", "SM3", "SM3"]


async def test_more_files_than_one_look_asks_about_are_left_for_the_next_one(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "MAX_FILES_ASKED", 2)
    twilio = Twilio(*(item(f"SM{number}", num_media="1") for number in (4, 3, 2, 1)), item("SM0"))
    twilio.files = {f"SM{number}": ["image/png"] for number in (1, 2, 3, 4)}
    async with talking(twilio.talk) as base, opened(base) as channel:
        first = await channel.received(recipient=NUMBER, since=YESTERDAY)
        second = await channel.received(recipient=NUMBER, since=YESTERDAY)
    assert [each.message_id for each in first] == ["SM0", "SM1", "SM2"], "the oldest have waited longest"
    assert [each.message_id for each in second] == ["SM0", "SM1", "SM2", "SM3", "SM4"]
    told = [record.getMessage() for record in caplog.records if record.name == "mesh.adapters.twilio"]
    assert told == ["! listed messages with files that are left for the next look count=2"]


# ── against the simulated Twilio ──────────────────────────────────────────────────────────────────────────────────


async def sent_in(channel: TwilioChannel, phone: Phone, person: str, name: str, media_type: str) -> Inbound:
    """A document whose webhook was lost, as it is caught up."""
    await phone.post(person, "", files=[(name, media_type, PDF)], deliver=False)
    received = await channel.received(recipient=NUMBER, since=YESTERDAY)
    return next(each for each in reversed(received) if each.sender == person)


async def test_a_document_that_a_person_sent_is_fetched_with_its_name(
    channel: TwilioChannel, phone: Phone, person: str
) -> None:
    inbound = await sent_in(channel, phone, person, "our contract.pdf", "application/pdf")
    assert (inbound.kind, inbound.text) == ("document", "")
    media = await channel.fetch(inbound.attachments[0], most_bytes=1000)
    assert (media.raw, media.media_type, media.name) == (PDF, "application/pdf", "our contract.pdf")


async def test_a_file_that_twilio_misses_for_a_moment_is_fetched(
    channel: TwilioChannel, phone: Phone, person: str
) -> None:
    inbound = await sent_in(channel, phone, person, "a.pdf", "application/pdf")
    await phone.media({"do": "missing"})
    assert (await channel.fetch(inbound.attachments[0], most_bytes=1000)).raw == PDF


@pytest.mark.parametrize(
    ("misbehaviour", "error"),
    [
        ({"do": "redirect"}, Unreadable),
        ({"do": "redirect", "to": "https://evil.example/a.pdf"}, Unreadable),
        ({"do": "loop"}, Unreadable),
        ({"do": "endless"}, Unreadable),
        ({"do": "bomb"}, Unreadable),
        ({"do": "wrong_type"}, Unreadable),
        ({"do": "fail"}, Unavailable),
        ({"do": "throttle"}, Unavailable),
    ],
)
async def test_however_a_fetch_goes_wrong_the_person_can_be_told(
    channel: TwilioChannel, phone: Phone, person: str, misbehaviour: dict[str, str], error: type[MeshError]
) -> None:
    inbound = await sent_in(channel, phone, person, "a.pdf", "application/pdf")
    await phone.media(misbehaviour)
    with pytest.raises(error) as caught:
        await channel.fetch(inbound.attachments[0], most_bytes=100_000)
    assert "send" in caught.value.user_text


async def test_a_file_that_was_never_there_is_not_found(twilio: str, channel: TwilioChannel) -> None:
    gone = Attachment(f"{twilio}/2010-04-01/Accounts/{SID}/Messages/MM1/Media/ME1", "application/pdf")
    with pytest.raises(NotFound):
        await channel.fetch(gone, most_bytes=1000)
