"""The chat page as somebody with a phone sees it: the simulated Twilio as a process, a small webhook, and a browser."""

from __future__ import annotations

import asyncio
import re
import time

import httpx
from playwright.async_api import expect

from mesh.adapters.twilio import TwilioChannel
from mesh.pages import HEADERS
from mesh.testing.phone import Phone
from tests.browser import PHONE, Open, open_page
from tests.journey.phone_page import NUMBER, SID, TOKEN, World, simulated, world, write
from tests.people import ASHA, BEN
from tests.redis.stage import until

__all__ = ["open_page", "world"]

SCRIPT = "<script>document.title = 'taken over'</script><img src=x onerror=alert(1)>"


async def test_what_is_typed_is_delivered_and_answered(world: World, open_page: Open) -> None:
    page = (await open_page(world.twilio)).page
    await page.get_by_label("Message", exact=True).press_sequentially("hello there")
    await page.get_by_role("button", name="Send").click()
    await expect(page.locator(".mine")).to_contain_text("hello there")
    await expect(page.locator(".mine footer span")).to_have_text("✓✓")
    await expect(page.locator("#log .theirs .text")).to_have_text("You said: hello there")
    await expect(page.get_by_label("Message", exact=True)).to_have_value("")
    await expect(page.get_by_label("Message", exact=True)).to_be_focused()


async def test_while_a_reply_is_owed_three_dots_say_so(world: World, open_page: Open) -> None:
    world.go.clear()
    page = (await open_page(world.twilio)).page
    await expect(page.locator("#owed")).to_be_hidden()
    await write(page, "one")
    await write(page, "two")
    await expect(page.locator("#owed")).to_be_visible()
    world.go.set()
    await expect(page.locator("#log .theirs")).to_have_count(2)
    await expect(page.locator("#owed")).to_be_hidden()


async def test_typing_is_told_until_the_reply_comes(world: World, open_page: Open) -> None:
    world.go.clear()
    asha, ben = (await open_page(world.twilio)).page, (await open_page(f"{world.twilio}/#{BEN}")).page
    await write(asha, "hello")
    await expect(asha.locator(".mine footer span")).to_have_text("✓✓")
    await expect(asha.locator("#state")).to_have_text("simulated WhatsApp")
    channel = TwilioChannel(SID, TOKEN, api_base=world.twilio)
    await channel.typing(sender=NUMBER, recipient=ASHA, message_id=world.taken[0])
    await channel.close()
    await expect(asha.locator("#state")).to_have_text("typing…")
    await expect(ben.locator("#state")).to_have_text("simulated WhatsApp")
    world.go.set()
    await expect(asha.locator("#log .theirs")).to_have_count(1)
    await expect(asha.locator("#state")).to_have_text("simulated WhatsApp")


async def test_a_reload_keeps_the_conversation_and_who_one_is(world: World, open_page: Open) -> None:
    page = (await open_page(f"{world.twilio}/#{BEN}")).page
    await write(page, "remember me")
    await expect(page.locator("#log .theirs .text")).to_have_text("You said: remember me")
    await page.reload()
    await expect(page.locator("#log .text")).to_have_text(["remember me", "You said: remember me"])
    await expect(page.locator("#who")).to_have_text("You: Ben")


async def test_what_the_mesh_did_not_take_says_so_and_is_sent_again_once(world: World, open_page: Open) -> None:
    world.down = True
    page = (await open_page(world.twilio)).page
    await write(page, "are you there?")
    again = page.get_by_role("button", name="Not delivered. Tap to send again.")
    await expect(again).to_be_visible()
    await expect(page.locator("#owed")).to_be_hidden()
    await page.reload()
    await expect(again).to_be_visible()
    world.down = False
    await again.click()
    await expect(page.locator("#log .theirs .text")).to_have_text("You said: are you there?")
    await expect(page.locator(".mine")).to_have_count(1)
    await expect(page.locator(".mine footer span")).to_have_text("✓✓")
    assert len(world.taken) == 1


async def test_another_person_sees_nothing_of_it(world: World, open_page: Open) -> None:
    asha, ben = (await open_page(world.twilio)).page, (await open_page(f"{world.twilio}/#{BEN}")).page
    await write(asha, "my secret")
    await expect(asha.locator("#log .text")).to_have_count(2)
    await world.say(BEN, "for Ben alone")
    await expect(ben.locator("#log .text")).to_have_text("for Ben alone")
    await expect(asha.locator("#log .text")).to_have_text(["my secret", "You said: my secret"])


async def test_one_can_become_somebody_else(world: World, open_page: Open) -> None:
    page = (await open_page(world.twilio)).page
    await write(page, "as Asha")
    await expect(page.locator("#log .text")).to_have_count(2)
    await page.locator("#who").click()
    await page.get_by_label("Somebody else").fill("0171 234")
    await page.get_by_role("button", name="Write as this").click()
    await expect(page.get_by_role("alert")).to_contain_text("with its country code")
    await page.get_by_label("Somebody else").fill("+15551239999")
    await page.get_by_role("button", name="Write as this").click()
    await expect(page.locator("#log .text")).to_have_count(0)
    await write(page, "as a newcomer")
    await expect(page.locator("#log .text")).to_have_text(["as a newcomer", "You said: as a newcomer"])
    await page.locator("#who").click()
    await page.get_by_role("button", name="Asha").click()
    await expect(page.locator("#log .text").first).to_have_text("as Asha")


async def test_a_message_from_elsewhere_appears_by_itself(world: World, open_page: Open) -> None:
    """For instance from `adiyan chat` as the same person."""
    page = (await open_page(world.twilio)).page
    async with Phone(world.twilio) as phone:
        await phone.say(ASHA, "from the terminal")
    await expect(page.locator("#log .text")).to_have_text(["from the terminal", "You said: from the terminal"])


async def test_a_broken_connection_is_said_and_heals_by_itself(world: World, open_page: Open) -> None:
    tab = await open_page(world.twilio)
    await tab.page.route("**/page/talk*", lambda route: route.abort())
    async with Phone(world.twilio) as phone:
        await phone.say(ASHA, "unseen")  # ends the open wait, so that the next one fails
    await expect(tab.page.locator("#state")).to_have_text("no connection: is the mesh still running?")
    await tab.page.unroute("**/page/talk*")
    await expect(tab.page.locator("#log .text")).to_have_text(["unseen", "You said: unseen"])
    await expect(tab.page.locator("#state")).to_have_text("simulated WhatsApp")


async def test_text_is_shown_as_text_with_whatsapps_own_marks(world: World, open_page: Open) -> None:
    tab = await open_page(world.twilio)
    log = tab.page.locator("#log")
    await world.say(
        ASHA, f"{SCRIPT} *bold _both_* and my_file_name.md ~gone~ 2*3*4 ```x = *1*```\n_Source: a_b.md › C_"
    )
    await expect(log.locator(".text")).to_contain_text(SCRIPT)
    await expect(log.locator("strong")).to_have_text("bold both")
    await expect(log.locator("em")).to_have_text(["both", "Source: a_b.md › C"])
    await expect(log.locator("s")).to_have_text("gone")
    await expect(log.locator("code")).to_have_text("x = *1*")
    await write(tab.page, "https://example.org/a?b=1. नमस्ते 👋 مرحبا")
    link = log.locator(".mine a")
    await expect(link).to_have_attribute("href", "https://example.org/a?b=1")
    await expect(link).to_have_attribute("rel", re.compile("noopener noreferrer"))
    await expect(log.locator(".theirs .text").last).to_contain_text("नमस्ते 👋 مرحبا")
    assert await tab.page.locator("#log script, #log img").count() == 0
    assert await tab.page.title() == "Adiyan · chat"
    assert (tab.strangers, tab.complaints) == ([], []), "a link is not fetched, and nothing complains"


async def test_it_fits_a_phone_and_stays_at_the_newest(world: World, open_page: Open) -> None:
    tab = await open_page(world.twilio, PHONE)
    page, box = tab.page, tab.page.get_by_label("Message", exact=True)
    for number in range(14):
        await world.say(ASHA, f"message {number}")
    await write(page, "Donaudampfschifffahrtsgesellschaftskapitän" * 8)
    await expect(page.locator("#log .theirs")).to_have_count(15)
    await expect(page.locator("#log .theirs").last).to_be_in_viewport()
    await expect(box).to_be_in_viewport(ratio=1)
    assert not await tab.is_wider_than_its_window()
    assert await page.evaluate("document.scrollingElement.scrollHeight <= innerHeight")
    assert await box.evaluate("it => parseFloat(getComputedStyle(it).fontSize)") >= 16, "a phone would zoom in"
    for button in await page.locator("button:visible").all():
        size = await button.bounding_box()
        assert size is not None
        assert min(size["width"], size["height"]) >= 44, await button.inner_text()
    await page.locator("#who").click()
    assert not await tab.is_wider_than_its_window()


async def test_who_reads_back_is_told_of_what_comes_and_not_moved(world: World, open_page: Open) -> None:
    page = (await open_page(world.twilio, PHONE)).page
    for number in range(25):
        await world.say(ASHA, f"message {number}")
    await expect(page.locator("#log .theirs")).to_have_count(25)
    await page.evaluate("view.scrollTop = 0")
    await world.say(ASHA, "the newest")
    await expect(page.get_by_role("button", name="New message")).to_be_visible()
    assert await page.evaluate("view.scrollTop") == 0
    await page.get_by_role("button", name="New message").click()
    await expect(page.get_by_text("the newest")).to_be_in_viewport()
    await expect(page.get_by_role("button", name="New message")).to_be_hidden()


async def test_shift_enter_makes_a_line_and_an_empty_message_is_not_sent(world: World, open_page: Open) -> None:
    page = (await open_page(world.twilio)).page
    await write(page, "   ")
    await page.get_by_label("Message", exact=True).fill("one")
    await page.keyboard.press("Shift+Enter")
    await page.keyboard.type("two")
    await page.keyboard.press("Enter")
    await expect(page.locator("#log .mine .text")).to_have_text(["one\ntwo"], use_inner_text=True)


# ── over the wire ─────────────────────────────────────────────────────────────────────────────────────────────────


async def test_other_names_and_other_sites_are_refused(world: World) -> None:
    async with httpx.AsyncClient(base_url=world.twilio) as client:
        for path in ("/", "/page/talk", "/page/chat.js", "/simulate/log"):
            assert (await client.get(path, headers={"Host": "evil.example"})).status_code == 400
        said = {"from": ASHA, "text": "not by me"}
        for site in ("cross-site", "same-site"):
            forged = await client.post("/simulate/inbound", json=said, headers={"Sec-Fetch-Site": site})
            assert forged.status_code == 403
        assert world.taken == []
        page = await client.get("/")
        assert {name: page.headers[name] for name in HEADERS} == HEADERS
        assert f"bring it to {NUMBER}" in page.text


async def test_a_conversation_is_told_from_where_one_was(world: World) -> None:
    async with httpx.AsyncClient(base_url=world.twilio) as client:

        async def talk(since: str = "", who: str = ASHA) -> httpx.Response:
            return await client.get("/page/talk", params={"who": who, "since": since})

        assert (await talk(who="Asha")).status_code == 400
        empty = (await talk()).json()
        assert (empty["messages"], empty["whole"]) == ([], True)
        world.go.clear()
        waiting = asyncio.create_task(talk(empty["since"]))
        async with Phone(world.twilio) as phone:
            await phone.say(ASHA, "hello")
        first = (await waiting).json()
        assert [each["text"] for each in first["messages"]] == ["hello"]
        assert first["whole"] is False
        world.go.set()
        await until(lambda: world.tasks and world.tasks[-1].done())
        rest = (await talk(first["since"])).json()["messages"]
        assert [(each["text"], each["mine"], each["state"]) for each in rest] == [
            ("hello", True, "taken"),
            ("You said: hello", False, ""),
        ]
        elsewhere = (await talk("0000.999999")).json()
        assert elsewhere["whole"] is True
        assert len(elsewhere["messages"]) == 2


async def test_a_page_that_waits_does_not_hold_up_the_end(world: World) -> None:
    async with httpx.AsyncClient() as client, simulated("http://127.0.0.1:9/x") as address:
        since = (await client.get(f"{address}/page/talk", params={"who": ASHA})).json()["since"]
        query = {"who": ASHA, "since": since}
        waiting = asyncio.create_task(client.get(f"{address}/page/talk", params=query, timeout=30))
        other = asyncio.create_task(client.get(f"{address}/page/talk", params={"who": BEN}))
        await other  # by now the first one waits
        began = time.monotonic()
    assert time.monotonic() - began < 5
    assert (await waiting).json()["messages"] == []
