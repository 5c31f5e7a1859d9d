"""What e-books yield, chapter by chapter."""

from __future__ import annotations

from agents.knowledge.chunking import chunk
from agents.knowledge.parsing import Parsed, parse
from tests.unit.office_files import refused, texts, zipped

CONTAINER = '<container><rootfiles><rootfile full-path="OEBPS/content.opf"/></rootfiles></container>'
PACKAGE = """<package xmlns="http://www.idpf.org/2007/opf"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/">
<dc:title>House rules</dc:title><dc:creator>Ada</dc:creator></metadata><manifest>
<item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>
<item id="ncx" href="toc.ncx" media-type="application/x-dtbncx+xml"/>
<item id="two" href="text/two%20b.xhtml" media-type="application/xhtml+xml"/>
<item id="one" href="text/one.xhtml" media-type="application/xhtml+xml"/>
<item id="gone" href="text/gone.xhtml" media-type="application/xhtml+xml"/>
<item id="pic" href="cover.jpg" media-type="image/jpeg"/></manifest>
<spine toc="ncx"><itemref idref="nav"/><itemref idref="one"/><itemref idref="two"/>{more}</spine></package>"""
CONTENTS = """<!DOCTYPE ncx PUBLIC "-//NISO//DTD ncx 2005-1//EN" "http://www.daisy.org/z3986/2005/ncx-2005-1.dtd">
<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/"><navMap><navPoint><navLabel><text>The garden</text></navLabel>
<content src="text/two%20b.xhtml#start"/></navPoint></navMap></ncx>"""
MEMBERS = {
    "mimetype": "application/epub+zip",
    "META-INF/container.xml": CONTAINER,
    "OEBPS/content.opf": PACKAGE.format(more=""),
    "OEBPS/toc.ncx": CONTENTS,
    "OEBPS/nav.xhtml": "<html><body><nav><ol><li>not a chapter</li></ol></nav></body></html>",
    "OEBPS/text/two b.xhtml": "<html><body><p>The gate&nbsp;stays shut.</p></body></html>",
    "OEBPS/text/one.xhtml": '<?xml version="1.0"?><!DOCTYPE html><html xmlns="http://www.w3.org/1999/xhtml"><head>'
    "<title>x</title></head><body><h1>Nights</h1><p>Quiet from ten.</p></body></html>",
}


async def read(members: dict[str, str]) -> Parsed:
    return await parse("rules.epub", zipped(members))


async def test_chapters_are_parts_in_the_order_of_reading_under_their_headings() -> None:
    parsed = await read(MEMBERS)
    assert parsed.media_type == "application/epub+zip"
    assert texts(parsed) == {
        "about the book": "Title: House rules\nAuthor: Ada",
        "Nights": "# Nights\n\nQuiet from ten.",
        "The garden": "# The garden\n\nThe gate stays shut.",
    }
    assert chunk(parsed.media_type, parsed.parts)[1].heading_path == ("Nights",)


async def test_a_chapter_that_is_missing_is_named() -> None:
    parsed = await read({**MEMBERS, "OEBPS/content.opf": PACKAGE.format(more='<itemref idref="gone"/>')})
    assert parsed.troubles == ("section 3: it is missing from the file",)


def locked(algorithm: str, part: str) -> dict[str, str]:
    data = (
        f'<encryption xmlns:enc="http://www.w3.org/2001/04/xmlenc#"><enc:EncryptedData><enc:EncryptionMethod '
        f'Algorithm="{algorithm}"/><enc:CipherData><enc:CipherReference URI="{part}"/></enc:CipherData>'
        "</enc:EncryptedData></encryption>"
    )
    return {**MEMBERS, "META-INF/encryption.xml": data}


async def test_a_locked_book_is_refused_and_one_with_garbled_letters_is_not() -> None:
    aes = "http://www.w3.org/2001/04/xmlenc#aes128-cbc"
    failed = await refused("rules.epub", zipped(locked(aes, "OEBPS/text/one.xhtml")))
    assert failed.kind == "password"
    assert "DRM" in failed.user_text
    assert texts(await read(locked("http://www.idpf.org/2008/embedding", "OEBPS/fonts/a.otf")))
    assert texts(await read(locked(aes, "OEBPS/fonts/a.otf")))


async def test_a_book_without_its_contents_is_refused() -> None:
    assert (await refused("rules.epub", zipped({"mimetype": "application/epub+zip", "a": "x"}))).kind == "corrupt"
    empty = {**MEMBERS, "OEBPS/text/one.xhtml": "<html/>", "OEBPS/text/two b.xhtml": "<html/>"}
    assert (await refused("rules.epub", zipped(empty))).kind == "nothing"


async def test_a_chapter_that_swells_is_refused() -> None:
    swollen = {**MEMBERS, "OEBPS/text/one.xhtml": f"<p>{' ' * 80_000_000}</p>"}
    parsed = await read(swollen)
    assert parsed.troubles == ("section 1: it is damaged and could not be read",)
