"""What `adiyan demo --channel` plays, in order. Expectations are in the words of the English and Spanish catalogue."""

from __future__ import annotations

import io
from collections.abc import Awaitable, Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING

from mesh.catalogue import say
from mesh.cli.conversation import ASHA, BEN, OWNER, STRANGER
from mesh.settings import ROOT
from mesh.testing.paper import pdf

if TYPE_CHECKING:
    from mesh.cli.channel import Show

CARLA = "+15551230003"
UNKNOWN = "couldn't find"
DEPOSIT = "6,172"
"""Of Asha's own contract: nobody else may ever read it."""
FILLER = (
    "The boat is kept at the northern pier and is inspected every spring by the harbour office. "
    "The hirer looks after the ropes, the fenders and the sails, and reports damage on the same day. "
) * 15
CONTRACT = [f"Page {number} of the boat hire contract.\n{FILLER}" for number in range(1, 11)]
CONTRACT[3] += f"\nThe deposit for the boat Marigold is {DEPOSIT} euros, paid before the first trip."
CONTRACT[6] = ""
PRICES = b"# Kayak prices\n\n## Single kayak\n\nA single kayak costs 31 euros a day.\n"
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360000000000600"
    "0557bfabd40000000049454e44ae426082"
)
VOICE = ROOT / "config" / "demo" / "voice"
CARD = "BEGIN:VCARD\nVERSION:3.0\nFN:Dora Example\nTEL:+15557770000\nEND:VCARD\n"
THINGS = ("bicycle", "kettle", "lamp", "sofa", "umbrella", "guitar", "suitcase", "tent", "scarf", "clock", "mug", "rug")
COLOURS = ("dark green with white stripes", "light blue with a golden rim", "brown, and scratched on the left side")


async def first_contact(show: Show) -> None:
    said = await show.text(ASHA, "Hello", "what it is, what it keeps, how to stop: once")
    show.says(said, "automated assistant", "7 days", "STOP")
    said = await show.text(ASHA, "thank you")
    show.never(said, "automated assistant")


async def a_document(show: Show) -> None:
    said = await show.file(ASHA, "boat.pdf", "application/pdf", pdf(CONTRACT), "ten pages, one of them empty")
    show.says(said, "boat.pdf", "pages: 9", "page 7", "you alone", "delete")
    show.expect(said, said.ms < 30_000, "searchable and confirmed within 30 seconds")
    said = await show.text(ASHA, "What is the deposit for the boat Marigold?", "from the file, with its source")
    show.says(said, DEPOSIT, "boat.pdf")
    said = await show.text(ASHA, "/why", "what the answer stands on")
    show.says(said, "boat.pdf", DEPOSIT)
    said = await show.text(BEN, "What is the deposit for the boat Marigold?", "not his file")
    show.says(said, UNKNOWN)
    show.never(said, DEPOSIT, "boat.pdf")
    said = await show.file(ASHA, "boat.pdf", "application/pdf", pdf(CONTRACT), "the same again")
    show.says(said, "nothing in it has changed")


async def whose_it_is(show: Show) -> None:
    said = await show.text(ASHA, "share", "she may not publish")
    show.says(said, "isn't part of your plan")
    said = await show.file(BEN, "kayaks.md", "text/markdown", PRICES, "who may publish is offered it")
    show.says(said, "kayaks.md", "share")
    question = "How much is a single kayak a day?"
    said = await show.text(ASHA, question, "still his own")
    show.never(said, "31 euros")
    said = await show.text(BEN, "share")
    show.says(said, "everyone here")
    said = await show.text(ASHA, question, "now for everyone")
    show.says(said, "31 euros")
    said = await show.text(BEN, "private")
    show.says(said, "you alone")
    said = await show.text(ASHA, question, "and not any more")
    show.never(said, "31 euros")


async def files_back(show: Show) -> None:
    said = await show.text(ASHA, "/files")
    show.says(said, "boat.pdf")
    show.never(said, "kayaks.md")
    said = await show.text(ASHA, "send me that file", "the original, through a short-lived link")
    shown = [each for reply in said.replies for each in reply.media]
    show.expect(said, [(each.name, each.media_type) for each in shown] == [("boat.pdf", "application/pdf")], "boat.pdf")
    if shown:
        show.expect(said, await show.phone.open(shown[0]) == pdf(CONTRACT), "the same bytes")
    said = await show.text(BEN, "send me kayaks.md", "WhatsApp shows no Markdown: a link that is good for a while")
    link = next((word for reply in said.replies for word in reply.text.split() if "/files/" in word), "")
    show.expect(said, bool(link) and await show.download(link) == PRICES, "the original behind the link")
    said = await show.text(ASHA, "send me kayaks.md", "somebody else's: as if it did not exist")
    show.says(said, "no such file")
    said = await show.text(ASHA, "delete")
    show.says(said, "boat.pdf", "deleted")
    said = await show.text(ASHA, "What is the deposit for the boat Marigold?", "gone is gone")
    show.never(said, DEPOSIT)


async def what_cannot_be_read(show: Show) -> None:
    said = await show.file(ASHA, "broken.pdf", "application/pdf", pdf(["A page."])[:-90], "a damaged file")
    show.says(said, "couldn't read", "broken.pdf")
    said = await show.file(ASHA, "scan.pdf", "application/pdf", pdf([""]), "pages without text")
    show.says(said, "scan.pdf")
    await show.phone.media({"do": "missing"})
    said = await show.file(ASHA, "late.md", "text/markdown", b"# Late\n\nA late file.\n", "the provider has it late")
    show.says(said, "late.md", "you alone")


async def everything_else(show: Show) -> None:
    said = await show.does(ASHA, "[picture]", "", show.phone.post(ASHA, "", files=[("cat.png", "image/png", PIXEL)]))
    show.says(said, say("image_not_read", "en"))
    said = await show.does(ASHA, "[video]", "", show.phone.post(ASHA, "", files=[("trip.mp4", "video/mp4", bytes(64))]))
    show.says(said, say("video_not_read", "en"))
    said = await show.does(ASHA, "[sticker]", "", show.phone.sticker(ASHA, b"RIFF\x0c\x00\x00\x00WEBPVP8 "))
    show.says(said, say("sticker", "en"))
    said = await show.does(ASHA, "[place]", "", show.phone.locate(ASHA, 51.5, -0.12, label="The pier"))
    show.says(said, "The pier")
    said = await show.does(ASHA, "[contact]", "", show.phone.share(ASHA, CARD))
    show.says(said, say("contact_noted", "en"))
    sid = said.replies[0].sid if said.replies else ""
    said = await show.does(ASHA, "[👍]", "a mere reaction needs no answer", show.phone.react(ASHA, "👍", sid))
    show.silent(said, "a reaction")
    said = await show.does(ASHA, "[button: Files]", "", show.phone.press(ASHA, "My documents", "cmd:files"))
    show.says(said, "late.md")


async def voice_notes(show: Show) -> None:
    for who, name, heard in ((ASHA, "english", ("breakfast", "9 euros")), (CARLA, "spanish", ("desayuno",))):
        raw = (VOICE / f"{name}.ogg").read_bytes()
        said = await show.file(who, f"{name}.ogg", "audio/ogg", raw, "ten seconds: heard, quoted and answered")
        if not show.hears_voice:
            show.expect(said, len(said.replies) == 1, "a polite word")
            continue
        show.says(said, *heard)
        show.expect(said, said.ms < 15_000, "within 15 seconds")


async def a_picture(show: Show) -> None:
    picture = _drawn("Opening of the boathouse: Lantern Night, 14 August, entrance 8 euros.")
    if not picture:
        return
    said = await show.file(BEN, "poster.png", "image/png", picture, "a picture with words in it is read")
    show.says(said, "pages: 1", "you alone")
    said = await show.text(BEN, "How much is the entrance on Lantern Night?", "and answered from")
    show.says(said, "8 euros")


def _drawn(text: str) -> bytes:
    """A picture of a page; empty where nothing reads pictures."""
    if not (find_spec("rapidocr") and find_spec("PIL")):
        return b""
    import pypdfium2  # type: ignore[import-untyped]  # it has no types

    page = pypdfium2.PdfDocument(pdf([text]))[0]
    held = io.BytesIO()
    page.render(scale=2).to_pil().crop((0, 0, 1224, 300)).save(held, "PNG")
    return held.getvalue()


async def notes(show: Show) -> None:
    said = await show.text(ASHA, "note: Winter storage for Marigold is in shed 9 #boat", "a document of its own")
    show.says(said, "Winter storage for Marigold", "#boat", "you alone", "delete")
    sid = said.replies[-1].sid if said.replies else ""
    said = await show.text(ASHA, "note: Marta has the second key", "as a reply to the first one", quoting=sid)
    show.says(said, "Marta has the second key")
    said = await show.text(ASHA, "What did I save this week about storage?", "by time, and by what it is about")
    show.says(said, "shed 9")
    show.never(said, "second key")
    said = await show.text(BEN, "What did I save this week?", "his own: none")
    show.never(said, "shed 9", "second key")
    said = await show.text(BEN, "Where is the winter storage for Marigold?", "not his")
    show.never(said, "shed 9")
    said = await show.text(ASHA, "delete", "as a reply to the first one's message: undone", quoting=sid)
    show.says(said, "Winter storage for Marigold", "deleted")
    said = await show.text(ASHA, "my notes from today")
    show.says(said, "second key")
    show.never(said, "shed 9")
    shed = [("shed.md", "text/markdown", b"# Shed\n\nThe shed is dry.\n")]
    said = await show.does(
        ASHA, "[shed.md] save this", "is kept anyway", show.phone.post(ASHA, "save this", files=shed)
    )
    show.says(said, "I've read", "you alone")
    show.never(said, UNKNOWN, "as a note")
    await show.text(ASHA, "My spare sail is light grey.")
    said = await show.text(ASHA, "save this", "no answer to save: what she told")
    show.says(said, "your message", "My spare sail is light grey")
    said = await show.text(ASHA, "Is the shed dry?")
    show.says(said, "The shed is dry.")
    said = await show.text(ASHA, "save this", "the answer, with its question")
    show.says(said, "my answer", "Is the shed dry")
    said = await show.text(ASHA, "/notes dry")
    show.says(said, "The shed is dry.")


async def in_spanish(show: Show) -> None:
    said = await show.text(CARLA, "Hola, buenos días", "greeted in her language")
    show.says(said, say("first_contact", "es", days=7).splitlines()[0])
    said = await show.text(CARLA, "ayuda")
    show.says(said, say("help", "es").splitlines()[0])
    said = await show.text(CARLA, "¿Quién ganó el mundial de fútbol de 1998?", "not known, and not invented")
    show.says(said, say("unknown", "es"))


async def what_is_kept(show: Show) -> None:
    for kind, colour in zip(("", "old ", "spare "), COLOURS, strict=True):
        for thing in THINGS:
            await show.phone.post(ASHA, f"My {kind}{thing} is {colour}.")
    said = await show.text(ASHA, "My favourite harbour is Whitby.")
    show.says(said, "Whitby")
    said = await show.text(ASHA, "/mydata", "everything that is kept of her, in several messages")
    show.says(said, "Whitby", "late.md")
    show.expect(
        said, len(said.replies) > 1 and all(len(each.text) <= 1600 for each in said.replies), "several messages"
    )
    said = await show.text(ASHA, "/forget my favourite harbour")
    said = await show.text(ASHA, "What is my favourite harbour?", "forgotten")
    show.never(said, "Whitby")
    said = await show.text(ASHA, "/forget", "asks first")
    show.says(said, "/forget all")
    said = await show.text(ASHA, "/forget all")
    said = await show.text(ASHA, "/mydata")
    show.never(said, "Whitby", "kettle")


async def stop_and_start(show: Show) -> None:
    said = await show.text(BEN, "STOP")
    show.says(said, say("opted_out", "en"))
    said = await show.text(BEN, "How much is a single kayak a day?")
    show.silent(said, "opted out")
    said = await show.text(BEN, "START")
    show.says(said, say("opted_in", "en"))
    said = await show.text(BEN, "How much is a single kayak a day?")
    show.says(said, "31 euros")
    said = await show.text(STRANGER, "Stop", "somebody who is not even registered")
    show.says(said, say("opted_out", "en"))


async def a_human(show: Show) -> None:
    before = await show.received(OWNER)
    said = await show.text(BEN, "/human")
    show.says(said, say("handed_over", "en"))
    told = await show.phone.replies(OWNER, before[-1].seq if before else 0, 20)
    show.expect(said, any(BEN in each.text for each in told), "the owner is told on WhatsApp")
    said = await show.text(BEN, "How much is a single kayak a day?")
    show.silent(said, "handed over")
    said = await show.hears(BEN, "[handed back by the owner]", "", show.hand_back(BEN))
    show.says(said, say("handed_back", "en"))
    said = await show.text(BEN, "How much is a single kayak a day?")
    show.says(said, "31 euros")


async def the_window(show: Show) -> None:
    await show.phone.rules(window_s=0.0)
    question = "How much is a single kayak a day?"
    said = await show.hears(BEN, question, "24 hours are over, as a callback tells", show.phone.post(BEN, question))
    show.says(said, say("window_closed", "en"))
    await show.phone.rules()
    said = await show.text(BEN, "thanks", "the answer waited, and comes with the next reply")
    show.says(said, say("earlier_reply", "en", text="").splitlines()[0], "31 euros")


async def never_delivered(show: Show) -> None:
    last = (await show.received(OWNER))[-1:]
    await show.phone.script({"do": "refuse", "code": 63024})
    said = await show.text(BEN, "How much is a single kayak a day?", "refused for good: a dead letter")
    show.expect(said, said.outcome.startswith("dead"), "a dead letter")
    told = await show.phone.replies(OWNER, last[0].seq if last else 0, 20)
    show.expect(said, any("63024" in each.text for each in told), "the owner is told on WhatsApp")


async def a_quotation(show: Show) -> None:
    one = await show.file(BEN, "one.md", "text/markdown", b"# One\n\nThe first file.\n", "")
    await show.file(BEN, "two.md", "text/markdown", b"# Two\n\nThe second file.\n", "")
    sid = one.replies[-1].sid if one.replies else ""
    said = await show.text(BEN, "delete", "as a reply to the first one's message", quoting=sid)
    show.says(said, "one.md", "deleted")


async def trouble(show: Show) -> None:
    await show.phone.rules(callbacks="reversed", callback_copies=2, retries=2)
    said = await show.text(BEN, "How much is a single kayak a day?", "three webhooks at once", copies=3)
    show.says(said, "31 euros")
    show.expect(said, len(said.replies) == 1, "one reply")
    await show.phone.script({"do": "throttle", "retry_after": 1}, {"do": "accept_then_fail", "status": 503})
    said = await show.text(BEN, "Is a single kayak cheaper than a boat?", "throttled, then taken and denied")
    show.expect(said, len(said.replies) == 1, "one reply")
    said = await show.text(BEN, "/cancel")
    show.says(said, say("nothing_to_cancel", "en"))


Scene = tuple[str, Callable[["Show"], Awaitable[None]]]

SCENES: tuple[Scene, ...] = (
    ("First contact", first_contact),
    ("A document sent in chat", a_document),
    ("Whose it is", whose_it_is),
    ("Files out, and gone", files_back),
    ("What can't be read", what_cannot_be_read),
    ("Pictures, places, buttons and the rest", everything_else),
    ("A picture with words", a_picture),
    ("Notes", notes),
    ("In Spanish", in_spanish),
    ("Voice notes", voice_notes),
    ("What is kept, and erased", what_is_kept),
    ("STOP and START", stop_and_start),
    ("A human takes over", a_human),
    ("The 24-hour window", the_window),
    ("What can't be delivered", never_delivered),
    ("A reply to a message", a_quotation),
    ("A provider that misbehaves", trouble),
)
