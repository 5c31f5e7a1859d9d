"""What e-mails yield, and what is attached to them."""

from __future__ import annotations

import email.policy
from email.message import EmailMessage
from typing import Any

import pytest

from agents.knowledge.chunking import chunk
from agents.knowledge.parsing import Parsed, parse
from tests.unit.office_files import refused, texts, zipped
from tests.unit.test_parsing import ENCRYPTED, pdf


def mail(text: str = "The cut costs 25 €.", subject: str = "Prices") -> EmailMessage:
    made = EmailMessage(policy=email.policy.SMTP)
    made["From"], made["To"], made["Subject"] = "Ada Ünal <ada@example.org>", "bo@example.org", subject
    made["Date"] = "Fri, 23 Dec 2022 12:08:48 -0600"
    made.set_content(text)
    return made


async def read(made: EmailMessage | bytes) -> Parsed:
    return await parse("mail.eml", made if isinstance(made, bytes) else made.as_bytes())


HEAD = "From: Ada Ünal <ada@example.org>\nTo: bo@example.org\nDate: Fri, 23 Dec 2022 12:08:48 -0600\nSubject: {}\n\n"


async def test_a_mail_is_its_head_and_its_words() -> None:
    parsed = await read(mail("# Hello\n\nThe cut costs 25 €.", subject="Prices ☸ and „more“"))
    assert parsed.media_type == "message/rfc822"
    assert texts(parsed) == {"message": HEAD.format("Prices ☸ and „more“") + "\\# Hello\n\nThe cut costs 25 €."}


async def test_what_is_said_in_two_forms_is_read_once() -> None:
    made = mail("The cut costs 25 €.")
    made.add_alternative("<h1>Prices</h1><p>The <b>cut</b> costs 25 €.</p>", subtype="html")
    assert texts(await read(made)) == {"message": HEAD.format("Prices") + "The cut costs 25 €."}


async def test_a_plain_form_that_says_next_to_nothing_gives_way() -> None:
    made = mail("Your program does not show HTML.")
    made.add_alternative(f"<h1>Prices</h1><p>{'A cut costs 25 €. ' * 20}</p>", subtype="html")
    text = texts(await read(made))["message"]
    assert "# Prices\n\nA cut costs 25 €." in text
    assert "Your program" not in text


async def test_each_attachment_is_read_by_its_own_reader() -> None:
    made = mail()
    made.add_attachment(pdf("One.", "Two."), maintype="application", subtype="pdf", filename="Liste für Mai.pdf")
    made.add_attachment("# not a heading\nplain", filename="notes.txt")
    made.add_attachment("# no heading either\n", subtype="csv", filename="notes.csv")
    made.add_attachment(b"<h1>Rooms</h1><p>Blue", maintype="text", subtype="html", filename="rooms.html")
    parsed = await read(made)
    assert texts(parsed) == {
        "message": HEAD.format("Prices") + "The cut costs 25 €.",
        "attachment Liste für Mai.pdf › page 1": "One.",
        "attachment Liste für Mai.pdf › page 2": "Two.",
        "attachment notes.txt": "\\# not a heading\nplain\n",
        "attachment notes.csv": "\\# no heading either\n",
        "attachment rooms.html": "# Rooms\n\nBlue",
    }
    assert chunk(parsed.media_type, parsed.parts)[-1].heading_path == ("Rooms",)


async def test_what_is_attached_and_cannot_be_read_is_named() -> None:
    made = mail()
    made.add_attachment(ENCRYPTED, maintype="application", subtype="pdf", filename="contract.pdf")
    made.add_attachment(zipped({"a.txt": "x"}), maintype="application", subtype="zip", filename="all.zip")
    made.add_attachment(pdf("One.", ""), maintype="application", subtype="pdf", filename="scan.pdf")
    made.add_attachment(b"\x78\x9f\x3e\x22", maintype="application", subtype="ms-tnef", filename="winmail.dat")
    troubles = (await read(made)).troubles
    assert troubles[0].startswith("attachment contract.pdf is protected by a password.")
    assert troubles[1] == "attachment all.zip is a compressed file, which I can't read yet."
    assert troubles[2].startswith("attachment scan.pdf › page 2: ")
    assert troubles[3] == "attachment winmail.dat: it is packed in Outlook's own way, which I can't read"


def within(text: str, times: int) -> EmailMessage:
    made = mail(text, subject=text)
    for depth in range(times, 0, -1):
        outer = mail(f"depth {depth}", subject=f"Fwd {depth}")
        outer.add_attachment(made)
        made = outer
    return made


async def test_messages_within_messages_are_read_to_a_depth_and_named_beyond_it() -> None:
    parsed = await read(within("innermost", 3))
    assert "attachment Fwd 2.eml › attachment Fwd 3.eml › attachment innermost.eml › message" in texts(parsed)
    parsed = await read(within("innermost", 5))
    assert not [text for text in texts(parsed).values() if "innermost" in text.split("Subject")[0]]
    (trouble,) = parsed.troubles
    assert trouble.endswith("it lies too deep within other messages, so it was not read")


async def test_more_attachments_than_fifty_are_named() -> None:
    made = mail()
    for number in range(55):
        made.add_attachment(f"number {number}", filename=f"{number}.txt")
    parsed = await read(made)
    assert len(texts(parsed)) == 51
    assert len(parsed.troubles) == 5


async def test_pictures_in_the_text_are_no_attachments_and_small_ones_are_nothing() -> None:
    made = mail()
    made.add_alternative('<p>The cut costs 25 €.<img src="cid:logo">', subtype="html")
    page: Any = list(made.iter_parts())[1]
    page.add_related(b"\x89PNG\r\n\x1a\n" + bytes(500), maintype="image", subtype="png", cid="<logo>")
    page.add_related(b"\x89PNG\r\n\x1a\n" + bytes(9_000), maintype="image", subtype="png", cid="<large>")
    parsed = await read(made)
    assert list(texts(parsed)) == ["message"]
    assert parsed.troubles == ("message: it holds a picture whose text could not be read",)


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"Subject: =?koi8-r?B?8NLJ18XU?=\nFrom: a\n\nx", "Subject: Привет"),
        (b"Subject: =?utf-8?B?!!!!?=\nFrom: a\n\nbroken subject", "broken subject"),
        (b"Subject: =?no-such?Q?a=20b?=\nFrom: a\n\nx", "Subject: a b"),
        ("Subject: Grüße\nFrom: a\n\nx".encode("cp1252"), "Subject: Grüße"),
        ("Subject: Grüße\nFrom: a\n\nx".encode(), "Subject: Grüße"),
        (b"From: a\nContent-Type: text/plain; charset=koi8-r\n\n" + "Цена".encode("koi8-r"), "Цена"),
        (b"From: a\nContent-Type: text/plain; charset=no-such\n\n" + "Größe 5".encode("cp1252"), "Größe 5"),
        (b"From: a\nContent-Type: text/plain; format=flowed\n\none \nline\n", "one line"),
        (b"From: a\nContent-Transfer-Encoding: base64\n\n!!not base64!!", "not base64"),
        ("From: a\nSubject: Grüße\n\nx".encode("utf-16"), "Subject: Grüße"),
        ("From: a\nSubject: s\n\nGrüße".encode("utf-32-le"), "Grüße"),
        (b"From a@b Fri Dec 23 12:08:48 2022\nFrom: a\n\nmbox", "mbox"),
        (b"From: a\nContent-Type: multipart/mixed; boundary=x\n\n--x\n\ncut off", "cut off"),
        (b"From: a\nContent-Type: multipart/mixed\n\nno boundary", "no boundary"),
    ],
)
async def test_a_mail_that_is_malformed_is_read_as_far_as_it_goes(raw: bytes, said: str) -> None:
    assert said in (await read(raw)).parts[0].text


async def test_a_page_that_is_kept_as_a_mail_is_read() -> None:
    raw = (
        b"From: <Saved by a browser>\nSubject: Prices\nMIME-Version: 1.0\n"
        b'Content-Type: multipart/related; type="text/html"; boundary=b\n\n--b\nContent-Type: text/html\n\n'
        b"<h1>Prices</h1><p>A cut costs 25.</p>\n--b\nContent-Type: text/css\n\np { color: red }\n--b--\n"
    )
    parsed = await parse("page.mhtml", raw)
    assert "# Prices\n\nA cut costs 25." in parsed.parts[0].text
    assert "color" not in parsed.parts[0].text


@pytest.mark.parametrize("kind", ["multipart/encrypted; boundary=x", "application/pkcs7-mime; name=smime.p7m"])
async def test_an_encrypted_mail_is_refused(kind: str) -> None:
    raw = f"From: a\nSubject: s\nContent-Type: {kind}\n\n--x\n\nVersion: 1\n--x--\n".encode()
    assert (await refused("mail.eml", raw)).kind == "password"


async def test_parts_within_parts_without_end_are_refused() -> None:
    raw = b"From: a\n" + b"".join(
        b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (n, n) for n in range(5_000)
    )
    failed = await refused("mail.eml", raw)
    assert failed.kind in ("limit", "nothing")
