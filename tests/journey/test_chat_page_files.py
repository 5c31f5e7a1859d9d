"""Files, voice notes, quotations, reactions and buttons on the chat page, in a browser."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.async_api import FilePayload, Locator, Page, Route, expect

from mesh.testing.phone import Phone
from tests.browser import PHONE, Open, Tab, open_page
from tests.journey.phone_page import SID, TOKEN, World, world, write
from tests.people import ASHA
from tests.redis.stage import until
from tests.simulated import json_answer, serving

__all__ = ["open_page", "world"]

PDF = FilePayload(name="Price list <b>2026</b>.pdf", mimeType="application/pdf", buffer=b"%PDF-1.4 " + bytes(2_400))
NOTE = FilePayload(name="note.ogg", mimeType="audio/ogg", buffer=b"OggS" + bytes(400))
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360f8ffbf1e000580027f"
    "3fd9c1950000000049454e44ae426082"
)
HELLO = "HX" + "1" * 32
DROP = """([name, text]) => {
  const data = new DataTransfer();
  data.items.add(new File([text], name, { type: "text/markdown" }));
  for (const kind of ["dragover", "drop"])
    document.body.dispatchEvent(new DragEvent(kind, { dataTransfer: data, bubbles: true, cancelable: true }));
}"""
MICROPHONE = """() => {
  navigator.mediaDevices.getUserMedia = async () => {
    const context = new AudioContext(), tone = context.createOscillator(), out = context.createMediaStreamDestination();
    tone.connect(out);
    tone.start();
    return out.stream;
  };
}"""


async def attach(page: Page, *files: FilePayload) -> None:
    async with page.expect_file_chooser() as chosen:
        await page.get_by_role("button", name="Attach a file").click()
    await (await chosen.value).set_files(files)


async def content(form: dict[str, str]) -> bytes:
    """As the mesh fetches it: credentials for the first host alone."""
    async with httpx.AsyncClient(trust_env=False) as client:
        led = await client.get(form["MediaUrl0"], auth=(SID, TOKEN))
        return (await client.get(led.headers["location"])).content


@asynccontextmanager
async def linked(raw: bytes, media_type: str, name: str) -> AsyncIterator[str]:
    answer = json_answer("200 OK", raw, b"Content-Type: " + media_type.encode())
    async with serving(answer) as base:
        yield f"{base}/l/{name}"


def bubble(page: Page, text: str) -> Locator:
    return page.locator("#log .bubble", has_text=text)


async def test_a_document_is_attached_and_shown_with_name_type_and_size(world: World, open_page: Open) -> None:
    tab = await open_page(world.twilio, PHONE)
    page = tab.page
    await attach(page, PDF)
    await expect(page.locator("#tray li")).to_contain_text("2 kB")
    await page.get_by_label("Message", exact=True).fill("our prices")
    await page.get_by_role("button", name="Send", exact=True).click()
    chip = page.locator("#log .mine a.chip")
    await expect(chip).to_contain_text("Price list <b>2026</b>.pdf")
    await expect(chip).to_contain_text("PDF · 2 kB")
    await expect(page.locator("#log .mine .text")).to_have_text("our prices")
    await expect(page.locator(".mine footer span")).to_have_text("✓✓")
    await expect(page.locator("#tray li")).to_have_count(0)
    (form,) = world.forms
    assert (form["MessageType"], form["MediaContentType0"], form["Body"]) == ("document", PDF["mimeType"], "our prices")
    assert await content(form) == PDF["buffer"]
    assert not await tab.is_wider_than_its_window()
    assert (tab.strangers, tab.complaints) == ([], [])


async def test_a_document_without_a_text_is_named_once(world: World, open_page: Open) -> None:
    page = (await open_page(world.twilio)).page
    await attach(page, PDF)
    await page.get_by_role("button", name="Send", exact=True).click()
    await expect(page.locator("#log .mine a.chip")).to_have_count(1)
    await expect(page.locator("#log .mine .text")).to_have_count(0)
    await until(lambda: world.forms)
    assert world.forms[0]["Body"] == PDF["name"]


async def test_several_files_go_one_by_one_and_one_can_be_left_out(world: World, open_page: Open) -> None:
    page = (await open_page(world.twilio)).page
    picture = FilePayload(name="dot.png", mimeType="image/png", buffer=PNG)
    await attach(page, PDF, NOTE, picture)
    await page.get_by_role("button", name="Don't send note.ogg").click()
    await page.get_by_role("button", name="Send", exact=True).click()
    await until(lambda: len(world.forms) == 2)
    assert [form["MessageType"] for form in world.forms] == ["document", "image"]
    image = page.locator("#log .mine img")
    await expect(image).to_have_js_property("naturalWidth", 1)
    await expect(image).to_have_attribute("alt", "dot.png")


async def test_a_file_is_dropped_into_the_window(world: World, open_page: Open) -> None:
    page = (await open_page(world.twilio)).page
    await page.evaluate(DROP, ["notes.md", "# Opening hours"])
    await expect(page.locator("#tray li")).to_contain_text("notes.md")
    await expect(page.locator("#drop")).to_be_hidden()
    await page.get_by_role("button", name="Send", exact=True).click()
    await until(lambda: world.forms)
    assert await content(world.forms[0]) == b"# Opening hours"


async def test_a_file_that_is_too_large_is_told_and_not_sent(world: World, open_page: Open) -> None:
    page = (await open_page(world.twilio)).page
    await page.locator("#files").evaluate(
        """(it) => {
          const data = new DataTransfer();
          data.items.add(new File([new Uint8Array(16 * 1024 * 1024 + 1)], "film.mp4", { type: "video/mp4" }));
          it.files = data.files;
          it.dispatchEvent(new Event("change"));
        }"""
    )
    await expect(page.get_by_role("alert").first).to_have_text(re.compile("film.mp4 is larger than 16 MB"))
    await expect(page.locator("#tray li")).to_have_count(0)


async def test_a_voice_note_is_chosen_where_there_is_no_microphone(world: World, open_page: Open) -> None:
    page = (await open_page(world.twilio, PHONE)).page
    await page.evaluate("delete globalThis.MediaRecorder")
    assert await page.locator("#audio").get_attribute("accept") == "audio/*"
    async with page.expect_file_chooser() as chosen:
        await page.get_by_role("button", name="Record a voice note").click()
    await (await chosen.value).set_files(NOTE)
    await until(lambda: world.forms)
    (form,) = world.forms
    assert (form["MessageType"], form["MediaContentType0"], form["Body"]) == ("audio", "audio/ogg", "")
    await expect(page.locator("#log .mine audio")).to_have_attribute("src", re.compile("^/simulate/media/ME"))


async def test_a_voice_note_is_recorded_heard_and_can_be_discarded(world: World, open_page: Open) -> None:
    tab = await open_page(world.twilio, PHONE)
    page = tab.page
    await page.evaluate(MICROPHONE)
    voice = page.get_by_role("button", name="Record a voice note")
    await voice.click()
    await expect(page.get_by_role("timer")).to_contain_text("Recording 0:0")
    await page.get_by_role("button", name="Discard the voice note").click()
    await expect(page.get_by_role("timer")).to_be_hidden()
    await voice.click()
    await expect(page.get_by_role("timer")).to_contain_text("0:01")
    await page.get_by_role("button", name="Send the voice note").click()
    player = page.locator("#log .mine audio")
    await expect(player).to_have_count(1)
    await until(lambda: len(world.forms) == 1)
    assert world.forms[0]["MessageType"] == "audio"
    assert len(await content(world.forms[0])) > 1_000
    await player.evaluate("it => it.play()")
    await expect(player).to_have_js_property("error", None)
    assert tab.complaints == []


async def test_what_was_not_taken_is_sent_again_with_its_file(world: World, open_page: Open) -> None:
    world.down = True
    page = (await open_page(world.twilio)).page
    await attach(page, PDF)
    await page.get_by_role("button", name="Send", exact=True).click()
    again = page.get_by_role("button", name="Not delivered. Tap to send again.")
    await expect(again).to_be_visible()
    await page.reload()
    world.down = False
    await again.click()
    await until(lambda: world.forms)
    assert await content(world.forms[0]) == PDF["buffer"]
    await expect(page.locator(".mine")).to_have_count(1)


async def test_a_file_that_never_reached_the_simulator_is_sent_again_with_its_file(
    world: World, open_page: Open
) -> None:
    page = (await open_page(world.twilio)).page
    await page.route("**/simulate/inbound", lambda route: route.abort())
    await attach(page, PDF)
    await page.get_by_role("button", name="Send", exact=True).click()
    again = page.get_by_role("button", name="Not delivered. Tap to send again.")
    await expect(again).to_be_visible()
    await page.unroute("**/simulate/inbound")
    await again.click()
    await until(lambda: world.forms)
    assert await content(world.forms[0]) == PDF["buffer"]


async def test_a_tap_on_a_message_replies_to_it(world: World, open_page: Open) -> None:
    page = (await open_page(world.twilio, PHONE)).page
    await write(page, "first")
    await bubble(page, "You said: first").click()
    await page.get_by_role("button", name="Reply", exact=True).click()
    await expect(page.locator("#quote")).to_contain_text("You said: first")
    await write(page, "what do you mean?")
    quote = page.locator("#log .mine blockquote")
    await expect(quote).to_have_text("AdiyanYou said: first")
    await expect(page.locator("#quote")).to_be_hidden()
    await until(lambda: len(world.forms) == 2)
    async with Phone(world.twilio) as phone:
        assert world.forms[1]["OriginalRepliedMessageSid"] == (await phone.replies(ASHA))[0].sid
    await bubble(page, "You said: first").first.click()
    await page.get_by_role("button", name="Reply", exact=True).click()
    await page.get_by_role("button", name="Don't reply to this").click()
    await write(page, "never mind")
    await until(lambda: len(world.forms) == 3)
    assert "OriginalRepliedMessageSid" not in world.forms[2]


async def test_a_reaction_stands_on_its_message_and_is_taken_back(world: World, open_page: Open) -> None:
    page = (await open_page(world.twilio, PHONE)).page
    await world.say(ASHA, "We open at nine.")
    await bubble(page, "We open").click()
    await page.get_by_role("button", name="React with 👍").click()
    await expect(page.locator("#log .theirs .reaction")).to_have_text("👍")
    await expect(page.locator("#log .mine")).to_have_count(0)
    await until(lambda: world.forms)
    assert (world.forms[0]["MessageType"], world.forms[0]["Body"]) == ("reaction", "👍")
    await page.reload()
    await expect(page.locator("#log .reaction")).to_have_text("👍")
    await bubble(page, "We open").click()
    await page.get_by_role("button", name="React with 👍").click()
    await expect(page.locator("#log .reaction")).to_have_count(0)


async def test_actions_are_reached_and_left_by_the_keyboard(world: World, open_page: Open) -> None:
    page = (await open_page(world.twilio)).page
    await world.say(ASHA, "We open at nine.")
    await bubble(page, "We open").focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("button", name="Reply", exact=True)).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.locator(".actions")).to_have_count(0)


async def test_a_button_of_the_mesh_is_pressed(world: World, open_page: Open) -> None:
    page = (await open_page(world.twilio, PHONE)).page
    async with Phone(world.twilio) as phone:
        await phone.templates({HELLO: {"text": "Shall I stop, {{1}}?", "buttons": [{"title": "Stop", "id": "STOP"}]}})
    await world.send(ASHA, ContentSid=HELLO, ContentVariables=json.dumps({"1": "Asha"}))
    await expect(bubble(page, "Shall I stop, Asha?")).to_be_visible()
    await page.get_by_role("button", name="Stop", exact=True).click()
    await until(lambda: world.forms)
    (form,) = world.forms
    assert (form["MessageType"], form["ButtonText"], form["ButtonPayload"]) == ("button", "Stop", "STOP")
    await expect(page.locator("#log .mine blockquote")).to_contain_text("Shall I stop")


async def test_a_received_document_is_downloaded_with_its_name_and_type(
    world: World, open_page: Open, tmp_path: Path
) -> None:
    tab = await open_page(world.twilio, PHONE)
    async with linked(b"%PDF-1.7 prices", "application/pdf", "Price%20list.pdf") as link:
        await world.send(ASHA, MediaUrl=link)
        chip = tab.page.locator("#log .theirs a.chip")
        await expect(chip).to_contain_text("Price list.pdf")
    await expect(chip).to_contain_text("PDF · 15 bytes")
    async with tab.page.expect_download() as downloading:
        await chip.click()
    file = await downloading.value
    await file.save_as(tmp_path / "it")
    assert file.suggested_filename == "Price list.pdf"
    assert (tmp_path / "it").read_bytes() == b"%PDF-1.7 prices"
    async with httpx.AsyncClient(base_url=world.twilio, trust_env=False) as client:
        answer = await client.get(await chip.get_attribute("href") or "")
    assert answer.headers["content-type"] == "application/pdf"


@pytest.mark.parametrize(
    ("media_type", "name", "tag"), [("image/png", "a.png", "img"), ("audio/ogg", "a.ogg", "audio")]
)
async def test_a_received_picture_or_sound_is_there_at_once(
    world: World, open_page: Open, media_type: str, name: str, tag: str
) -> None:
    page = (await open_page(world.twilio)).page
    async with linked(PNG, media_type, name) as link:
        await world.send(ASHA, MediaUrl=link, Body="Here.")
        await expect(page.locator(f"#log .theirs {tag}")).to_be_visible()
    await expect(page.locator("#log .theirs .text")).to_have_text("Here.")


async def test_a_picture_does_not_push_the_newest_out_of_sight(world: World, open_page: Open) -> None:
    page = (await open_page(world.twilio, PHONE)).page
    tall = "<svg xmlns='http://www.w3.org/2000/svg' width='300' height='600'/>"
    held = asyncio.Event()

    async def late(route: Route) -> None:
        await held.wait()
        await route.fulfill(content_type="image/svg+xml", body=tall)

    await page.route("**/simulate/media/*", late)
    async with Phone(world.twilio) as phone:
        await phone.post(ASHA, "", files=[("tall.png", "image/png", PNG)])
    await write(page, "the newest")
    await expect(page.locator("#log .theirs", has_text="the newest")).to_be_in_viewport()
    held.set()
    await expect(page.locator("#log img")).to_have_js_property("naturalHeight", 600)
    await expect(page.locator("#log .theirs", has_text="the newest")).to_be_in_viewport()


async def test_what_others_send_for_a_person_is_shown_too(world: World, open_page: Open) -> None:
    page = (await open_page(world.twilio)).page
    async with Phone(world.twilio) as phone:
        await phone.locate(ASHA, 48.2, 16.37, label="Workshop", address="Dove Lane 4")
        await phone.share(ASHA, "BEGIN:VCARD\nFN:Ben\nEND:VCARD")
        await phone.sticker(ASHA, b"RIFF")
    await expect(page.locator("#log .place")).to_have_text("📍 WorkshopDove Lane 448.2, 16.37")
    await expect(page.locator("#log .place a")).to_have_attribute("href", "geo:48.2,16.37")
    await expect(page.locator("#log .is-contacts a.chip")).to_contain_text("contact.vcf")
    await expect(page.locator("#log .is-sticker img")).to_have_count(1)


async def test_a_page_in_a_file_is_never_run(world: World, open_page: Open) -> None:
    tab = await open_page(world.twilio)
    html = FilePayload(name="x.html", mimeType="text/html", buffer=b"<script>document.title = 'taken over'</script>")
    await attach(tab.page, html)
    await tab.page.get_by_role("button", name="Send", exact=True).click()
    chip = tab.page.locator("#log .mine a.chip")
    async with tab.page.expect_download():
        await chip.click()
    assert await tab.page.title() == "Adiyan · chat"


async def test_everything_fits_a_phone_and_is_large_enough_for_a_thumb(world: World, open_page: Open) -> None:
    tab = await open_page(world.twilio, PHONE)
    page = tab.page
    long = FilePayload(name="Donaudampfschifffahrtsgesellschaft" * 3 + ".pdf", mimeType="", buffer=b"x")
    await attach(page, long, NOTE)
    await page.get_by_role("button", name="Send", exact=True).click()
    await expect(page.locator("#log .mine")).to_have_count(2)
    await attach(page, long)
    await bubble(page, "Donau").first.click(position={"x": 5, "y": 5})
    await page.get_by_role("button", name="Reply", exact=True).click()
    await bubble(page, "You said").first.click()
    await enough(tab)


async def enough(tab: Tab) -> None:
    assert not await tab.is_wider_than_its_window()
    for button in await tab.page.locator("button:visible, a.chip:visible").all():
        size: Any = await button.bounding_box()
        assert min(size["width"], size["height"]) >= 44, await button.inner_text()


async def test_what_waits_to_be_sent_does_not_follow_to_another_person(world: World, open_page: Open) -> None:
    page = (await open_page(world.twilio)).page
    await attach(page, PDF)
    await page.locator("#who").click()
    await page.get_by_role("button", name="Ben").click()
    await expect(page.locator("#tray li")).to_have_count(0)
    await asyncio.sleep(0)
    assert world.forms == []
