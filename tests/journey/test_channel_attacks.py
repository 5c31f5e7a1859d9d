"""What one person may do to another's files, and to their own by mistake, in a mesh of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from rich.console import Console

from mesh.bus import Bus
from mesh.cli.channel import Said, Show, _register
from mesh.cli.conversation import ASHA, BEN, OWNER
from mesh.cli.demo import fresh
from mesh.ledger import Ledger
from mesh.settings import load
from mesh.testing.paper import pdf
from mesh.testing.phone import Phone
from mesh.up import Mesh

PDF = "application/pdf"


@pytest.fixture
async def show(tmp_path: Path) -> AsyncIterator[Show]:
    settings = await fresh(load(adiyan_home=tmp_path), OWNER)
    async with Mesh(settings) as started:
        await _register(started)
        async with Phone(started.phone) as phone, Bus(started.settings.redis_url) as bus:
            ledger = Ledger(bus.redis)
            yield Show(phone, bus, ledger, started, Console(quiet=True))
            await ledger.close()


def heard(said: Said) -> str:
    return "\n".join(each.text for each in said.replies)


def files(said: Said) -> list[str]:
    return [shown.name for reply in said.replies for shown in reply.media]


@pytest.mark.timeout(180)
async def test_whose_files_they_are_and_which_one_is_meant(show: Show) -> None:
    # what was made private is quoted no more, also not by /why
    await show.file(BEN, "prices.pdf", PDF, pdf(["A single kayak costs 31 euros a day."]), "")
    await show.text(BEN, "share")
    assert "31 euros" in heard(await show.text(ASHA, "How much is a single kayak a day?"))
    assert "31 euros" in heard(await show.text(ASHA, "/why"))
    await show.text(BEN, "private prices.pdf")
    said = heard(await show.text(ASHA, "/why"))
    assert "31 euros" not in said
    assert "prices.pdf" not in said

    # a reply to a message about a file means that file, also by a button, and never another one
    one = await show.file(ASHA, "one.pdf", PDF, pdf(["The one file speaks of walnuts from Parma."]), "")
    await show.file(ASHA, "two.pdf", PDF, pdf(["The two file speaks of hazelnuts from Alba."]), "")
    sid = one.replies[-1].sid
    assert files(await show.text(ASHA, "send me that file", quoting=sid)) == ["one.pdf"]
    await show.file(ASHA, "three.pdf", PDF, pdf(["The three file speaks of almonds from Noto."]), "")
    said_ = await show.does(ASHA, "[button]", "", show.phone.press(ASHA, "Delete", "cmd:delete", sid))
    assert "*one.pdf* is deleted" in heard(said_)
    assert "Which file" in heard(await show.text(ASHA, "delete", quoting="SM" + "0" * 32))
    assert "walnuts" not in heard(await show.text(ASHA, "What does the file say of walnuts from Parma?"))

    # what was sent last is "that file", whatever was answered before
    assert "hazelnuts" in heard(await show.text(ASHA, "What does the file say of hazelnuts from Alba?"))
    await show.file(ASHA, "four.pdf", PDF, pdf(["Nothing to see here."]), "")
    assert files(await show.text(ASHA, "send me that file")) == ["four.pdf"]

    # nothing is deleted as "it" that was spoken of long ago
    await show.people.note(ASHA, document_at=1.0)
    assert "Which file" in heard(await show.text(ASHA, "delete it"))

    # of two files of one name, one's own comes
    await show.text(BEN, "share prices.pdf")
    mine = pdf(["A pedalo costs 12 euros."])
    await show.file(ASHA, "prices.pdf", PDF, mine, "")
    said_ = await show.text(ASHA, "send me prices.pdf")
    assert await show.phone.open(said_.replies[-1].media[0]) == mine

    # what is forgotten is quoted no more
    await show.text(ASHA, "My favourite harbour is Whitby.")
    await show.text(ASHA, "What is my favourite harbour?")
    assert "Whitby" in heard(await show.text(ASHA, "/why"))
    await show.text(ASHA, "/forget my favourite harbour")
    assert "Whitby" not in heard(await show.text(ASHA, "/why"))

    # HELP is a word of every language
    await show.text(ASHA, "Wie viel kostet ein Kajak am Tag?")
    assert "Dokumenten" in heard(await show.text(ASHA, "HELP"))
