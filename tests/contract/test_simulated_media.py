"""Files that people send, at the simulated Twilio: what the webhook says of them, and how fetching them goes, well and
badly."""

from __future__ import annotations

import asyncio
import gzip
import time
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import httpx
import pytest

from mesh.testing.phone import Phone, Shown
from tests.simulated import NUMBER, SID, TOKEN, Hook, a_moment_ago, hook, logged, person, phone, twilio

__all__ = ["hook", "person", "phone", "twilio"]

PDF = ("Price list 2026.pdf", "application/pdf", b"%PDF-1.4 " + bytes(range(256)) * 40)
OGG = ("voice.ogg", "audio/ogg", b"OggS" + bytes(60))


@pytest.fixture
async def fetcher() -> AsyncIterator[httpx.AsyncClient]:
    """Follows no redirect by itself."""
    async with httpx.AsyncClient(auth=(SID, TOKEN), trust_env=False) as client:
        yield client


async def test_a_document_comes_as_a_link_with_its_name_as_the_text(hook: Hook, person: str) -> None:
    posted = await hook.phone.post(person, "", files=[PDF])
    await hook.texts(1)
    (form,) = hook.taken
    assert (form["Body"], form["NumMedia"], form["MessageType"]) == ("Price list 2026.pdf", "1", "document")
    assert form["MediaContentType0"] == "application/pdf"
    assert form["MessageSid"] == posted.message_sid
    assert form["MessageSid"].startswith("MM")
    address, _, medium = form["MediaUrl0"].rpartition("/")
    assert address == f"{hook.address}/2010-04-01/Accounts/{SID}/Messages/{posted.message_sid}/Media"
    assert medium.startswith("ME")


async def test_a_text_beside_a_file_takes_the_place_of_its_name(hook: Hook, person: str) -> None:
    await hook.phone.post(person, "our prices", files=[PDF])
    await hook.phone.post(person, "", files=[("photo.jpg", "image/jpeg", b"\xff\xd8")])
    await hook.texts(2)
    assert [form["Body"] for form in hook.taken] == ["our prices", ""]


async def test_several_files_are_several_messages_and_the_text_goes_with_the_first(hook: Hook, person: str) -> None:
    posted = await hook.phone.post(person, "both", files=[PDF, OGG], copies=1)
    assert await hook.texts(2) == ["both", ""]
    assert [form["MessageType"] for form in hook.taken] == ["document", "audio"]
    assert len({form["MessageSid"] for form in hook.taken}) == 2
    assert hook.taken[1]["MessageSid"] == posted.message_sid
    with pytest.raises(ValueError, match="a message of its own"):
        await hook.phone.post(person, "", files=[PDF, OGG], message_sid="MM1")


@pytest.mark.parametrize(
    ("media_type", "kind"),
    [
        ("image/png", "image"),
        ("image/webp", "sticker"),
        ("audio/ogg; codecs=opus", "audio"),
        ("video/mp4", "video"),
        ("text/vcard", "contacts"),
        ("text/plain", "document"),
        ("", "document"),
    ],
)
async def test_the_kind_of_a_message_follows_from_its_file(hook: Hook, person: str, media_type: str, kind: str) -> None:
    await hook.phone.post(person, "", files=[("name", media_type, b"x")])
    await hook.texts(1)
    assert hook.taken[0]["MessageType"] == kind


async def test_what_is_more_than_a_text_is_replayed_as_it_was(hook: Hook, person: str) -> None:
    hook.refused = 1
    posted = await hook.phone.post(person, "", files=[PDF])
    assert posted.status == 503
    again = await hook.phone.post(person, "something else", message_sid=posted.message_sid)
    assert again.status == 200
    assert await hook.texts(1) == ["Price list 2026.pdf"]
    assert hook.taken[0]["MediaUrl0"]
    assert len((await hook.phone.log())["said"]) == 1


async def test_places_contacts_stickers_reactions_and_buttons_come_as_twilio_has_them(hook: Hook, person: str) -> None:
    sid = await hook.channel.send(sender=NUMBER, recipient=person, text="Which one?")
    await hook.phone.locate(person, 48.2, 16.37, label="Workshop", address="Dove Lane 4")
    await hook.phone.share(person, "BEGIN:VCARD\nFN:Ben\nEND:VCARD")
    await hook.phone.sticker(person, b"RIFF")
    await hook.phone.react(person, "👍", sid)
    await hook.phone.press(person, "Yes", "yes-1", sid, fields={"ProfileName": "Asha"})
    await hook.phone.post(person, "this one", quoting=sid)
    await hook.texts(6)
    place, contact, sticker, reaction, button, quote = hook.taken
    assert {name: place[name] for name in ("MessageType", "Latitude", "Longitude", "Label", "Address", "Body")} == {
        "MessageType": "location",
        "Latitude": "48.2",
        "Longitude": "16.37",
        "Label": "Workshop",
        "Address": "Dove Lane 4",
        "Body": "",
    }
    assert (contact["MessageType"], contact["MediaContentType0"]) == ("contacts", "text/vcard")
    assert (sticker["MessageType"], sticker["MediaContentType0"]) == ("sticker", "image/webp")
    assert (reaction["MessageType"], reaction["Body"], reaction["NumMedia"]) == ("reaction", "👍", "0")
    assert (button["MessageType"], button["ButtonText"], button["ButtonPayload"]) == ("button", "Yes", "yes-1")
    assert (button["Body"], button["ProfileName"]) == ("Yes", "Asha")
    assert (quote["MessageType"], quote["Body"]) == ("text", "this one")
    for form in (reaction, button, quote):
        assert form["OriginalRepliedMessageSid"] == sid
        assert form["OriginalRepliedMessageSender"] == f"whatsapp:{NUMBER}"
    assert [each["kind"] for each in (await hook.phone.log())["said"]] == [form["MessageType"] for form in hook.taken]


async def test_a_file_needs_credentials_and_is_then_on_another_host_without(
    hook: Hook, person: str, fetcher: httpx.AsyncClient
) -> None:
    await hook.phone.post(person, "", files=[PDF])
    await hook.texts(1)
    url = hook.taken[0]["MediaUrl0"]
    assert (await fetcher.get(url, auth=("", ""))).status_code == 401
    led = await fetcher.get(url)
    assert led.status_code == 307
    assert (urlsplit(url).hostname, urlsplit(led.headers["location"]).hostname) == ("127.0.0.1", "localhost")
    async with httpx.AsyncClient(trust_env=False) as anybody:
        given = await anybody.get(led.headers["location"])
        guessed = await anybody.get(led.headers["location"] + "x")
    assert (given.status_code, given.content, given.headers["content-type"]) == (200, PDF[2], "application/pdf")
    assert guessed.status_code == 404
    leaked = await fetcher.get(led.headers["location"])
    assert leaked.status_code == 400
    assert leaked.content != PDF[2]
    fetched = (await hook.phone.log())["fetched"]
    assert [(each["host"], each["status"], each["credentials"]) for each in fetched] == [
        ("api", 401, True),
        ("api", 307, True),
        ("cdn", 200, False),
        ("cdn", 404, False),
        ("cdn", 400, True),
    ]


async def test_files_are_listed_told_and_deleted_as_twilio_does(
    hook: Hook, person: str, fetcher: httpx.AsyncClient
) -> None:
    posted = await hook.phone.post(person, "", files=[OGG])
    await hook.texts(1)
    url = hook.taken[0]["MediaUrl0"]
    told = (await fetcher.get(f"{url}.json")).json()
    assert (told["content_type"], told["parent_sid"]) == ("audio/ogg", posted.message_sid)
    messages = f"{hook.address}/2010-04-01/Accounts/{SID}/Messages"
    message = (await fetcher.get(f"{messages}/{posted.message_sid}.json")).json()
    assert message["num_media"] == "1"
    listed = (await fetcher.get(hook.address + message["subresource_uris"]["media"])).json()
    assert listed["media_list"] == [told]
    assert (await fetcher.get(f"{messages}/MM0/Media/{told['sid']}")).status_code == 404
    assert (await fetcher.delete(f"{url}.json", auth=("", ""))).status_code == 401
    assert (await fetcher.delete(f"{url}.json")).status_code == 204
    assert (await fetcher.get(url)).status_code == 404
    assert (await fetcher.get(hook.address + message["subresource_uris"]["media"])).json()["media_list"] == []


async def test_the_catch_up_lists_a_file_whose_webhook_was_lost(hook: Hook, person: str) -> None:
    since = a_moment_ago()
    await hook.phone.post(person, "", files=[PDF], deliver=False)
    (found,) = await hook.channel.received(recipient=NUMBER, since=since)
    assert (found.media, found.fields["Body"]) == (1, "Price list 2026.pdf")


# ── fetches that go wrong ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
async def url(hook: Hook, person: str) -> str:
    await hook.phone.post(person, "", files=[PDF])
    await hook.texts(1)
    return hook.taken[0]["MediaUrl0"]


async def test_fetches_go_wrong_in_the_order_told(hook: Hook, url: str, fetcher: httpx.AsyncClient) -> None:
    await hook.phone.media({"do": "missing"}, {"do": "fail"}, {"do": "throttle", "retry_after": 2}, {"do": "redirect"})
    missing, failed, throttled, elsewhere, well = [await fetcher.get(url) for _ in range(5)]
    assert (missing.status_code, missing.json()["code"]) == (404, 20404)
    assert failed.status_code == 500
    assert (throttled.status_code, throttled.headers["retry-after"]) == (429, "2")
    assert (elsewhere.status_code, urlsplit(elsewhere.headers["location"]).hostname) == (307, "169.254.169.254")
    assert urlsplit(well.headers["location"]).hostname == "localhost"
    with pytest.raises(ValueError, match="explode"):
        await hook.phone.media({"do": "explode"})


async def test_a_fetch_hangs_until_its_caller_gives_up(hook: Hook, url: str, fetcher: httpx.AsyncClient) -> None:
    await hook.phone.media({"do": "hang"})
    with pytest.raises(httpx.ReadTimeout):
        await fetcher.get(url, timeout=0.3)


async def test_a_redirect_loops_without_end(hook: Hook, url: str) -> None:
    await hook.phone.media({"do": "loop"})
    async with httpx.AsyncClient(auth=(SID, TOKEN), follow_redirects=True, max_redirects=5, trust_env=False) as client:
        with pytest.raises(httpx.TooManyRedirects):
            await client.get(url)
    assert not any(each["credentials"] for each in (await hook.phone.log())["fetched"] if each["host"] == "cdn")


async def given(fetcher: httpx.AsyncClient, url: str) -> str:
    return str((await fetcher.get(url)).headers["location"])


async def test_a_file_drips(hook: Hook, url: str, fetcher: httpx.AsyncClient) -> None:
    await hook.phone.media({"do": "drip", "bytes": len(PDF[2]) // 3 + 1, "every": 0.15})
    link, began = await given(fetcher, url), time.monotonic()
    async with httpx.AsyncClient(trust_env=False) as client:
        answer = await client.get(link)
    assert answer.content == PDF[2]
    assert time.monotonic() - began >= 0.3


async def test_a_file_never_ends_and_tells_no_length(hook: Hook, url: str, fetcher: httpx.AsyncClient) -> None:
    await hook.phone.media({"do": "endless"})
    link, seen = await given(fetcher, url), 0
    async with httpx.AsyncClient(trust_env=False) as client, client.stream("GET", link) as answer:
        assert "content-length" not in answer.headers
        async for part in answer.aiter_bytes():
            seen += len(part)
            if seen > 3_000_000:
                break
    async with asyncio.timeout(5):
        assert await hook.phone.replies("+1") == [], "it still serves others"


async def test_a_small_body_becomes_a_large_one(hook: Hook, url: str, fetcher: httpx.AsyncClient) -> None:
    await hook.phone.media({"do": "bomb", "bytes": 20_000_000})
    link = await given(fetcher, url)
    async with httpx.AsyncClient(trust_env=False) as client, client.stream("GET", link) as answer:
        packed = b"".join([part async for part in answer.aiter_raw()])
    assert answer.headers["content-encoding"] == "gzip"
    assert len(packed) < 200_000
    assert len(gzip.decompress(packed)) > 19_000_000


async def test_a_file_is_told_to_be_something_else(hook: Hook, url: str, fetcher: httpx.AsyncClient) -> None:
    await hook.phone.media({"do": "wrong_type"}, {"do": "wrong_type", "type": "image/png"})
    async with httpx.AsyncClient(trust_env=False) as client:
        kinds = [(await client.get(await given(fetcher, url))).headers["content-type"] for _ in range(2)]
    assert kinds == ["text/html; charset=utf-8", "image/png"]


# ── on the person's own phone ─────────────────────────────────────────────────────────────────────────────────────


async def test_nothing_that_could_hold_a_script_is_shown_as_a_page(phone: Phone, twilio: str, person: str) -> None:
    files = [("a.html", "text/html", b"<script src='/x'>"), ("b.svg", "image/svg+xml", b"<svg/>"), OGG]
    shown: list[str] = []
    for file in files:
        posted = await phone.post(person, "", files=[file], deliver=False)
        said = [each for each in (await logged(phone, "said", 1))["said"] if each["sid"] == posted.message_sid]
        one = Shown(**said[0]["media"][0])
        assert await phone.open(one) == file[2]
        async with httpx.AsyncClient(base_url=twilio, trust_env=False) as client:
            shown.append((await client.get(one.url)).headers["content-disposition"].partition(";")[0])
    assert shown == ["attachment", "attachment", "inline"]
