"""E-books (EPUB): their chapters in the order of reading."""

from __future__ import annotations

import posixpath
from typing import Any
from urllib.parse import unquote

from lxml import etree  # type: ignore[import-untyped]  # it has no types

from . import LONGEST_TEXT, Parts, Unreadable
from .blocks import Block, written
from .package import Damaged, Element, Package
from .report import shortened
from .seen import Pictures, how
from .web import Page, page_of

MOST_CHAPTERS = 3_000
_FONTS = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")
"""Ways to garble fonts, which lock nobody out."""
_PAGES = ("application/xhtml+xml", "text/html", "text/x-oeb1-document", "application/x-dtbook+xml")
_PICTURE_SIZE = 5_000


def read(name: str, package: Package) -> Parts:
    damaged = Unreadable(f"{name} is damaged: it can't be opened as an e-book. Please send it again, or as PDF.")
    try:
        main = _main(package)
        root = _xml(package, main)
        if root is None:
            raise damaged
        places = _spine(root, posixpath.dirname(main))
        _refuse_locked(name, package, places)
    except Damaged as error:
        raise damaged from error
    if len(places) > MOST_CHAPTERS:
        raise Unreadable(f"{name} has {len(places):,} chapters; {MOST_CHAPTERS:,} are the most.", "limit")
    titles = _titles(package, root, posixpath.dirname(main))
    parts: Parts = []
    seen = Pictures()
    length = 0
    for at, place in enumerate(places, start=1):
        part = _chapter(package, place, titles.get(place, ""), at, seen)
        parts += [part] if part else []
        length += len(part[1]) if part else 0
        if length > LONGEST_TEXT:
            raise Unreadable(f"{name} holds too much text. Please split it.", "limit")
    if not length:
        raise Unreadable(f"{name} could not be read: there is no text in it. Please send it as PDF.", "nothing")
    return [*_about(root), *parts]


def _main(package: Package) -> str:
    root = _xml(package, "META-INF/container.xml")
    found = root.find(".//{*}rootfile[@full-path]") if root is not None else None
    return str(found.get("full-path")) if found is not None else "content.opf"


def _xml(package: Package, part: str) -> Element | None:
    content = package.content(part)
    return _parsed(content) if content is not None else None


def _parsed(content: bytes) -> Element | None:
    """Entities are never resolved; a small fault is passed over."""
    parser: Any = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, recover=True)
    try:
        root = etree.fromstring(content, parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise Damaged("package") from error
    return root


def _spine(root: Element, folder: str) -> list[str]:
    """The navigation is no chapter; what is said to be aside still is one."""
    items = {item.get("id"): item for item in root.iterfind("{*}manifest/{*}item")}
    found = []
    for reference in root.iterfind("{*}spine/{*}itemref"):
        item = items.get(reference.get("idref"))
        if item is None or "nav" in (item.get("properties") or "").split():
            continue
        if item.get("media-type", _PAGES[0]) in _PAGES:
            found.append(_place(folder, item.get("href", "")))
    return list(dict.fromkeys(found))


def _place(folder: str, address: str) -> str:
    return posixpath.normpath(posixpath.join(folder, unquote(address.partition("#")[0])))


def _refuse_locked(name: str, package: Package, places: list[str]) -> None:
    root = _xml(package, "META-INF/encryption.xml")
    for locked in root.iter("{*}EncryptedData") if root is not None else ():
        method, reference = locked.find("{*}EncryptionMethod"), locked.find(".//{*}CipherReference")
        garbled = method is not None and method.get("Algorithm") in _FONTS
        if not garbled and reference is not None and _place("", reference.get("URI", "")) in places:
            raise Unreadable(
                f"{name} is locked to a reader's account (DRM), so I can't read it. Please send a copy that is not.",
                "password",
            )


def _titles(package: Package, root: Element, folder: str) -> dict[str, str]:
    """Of the chapters, by the table of contents of older books; newer ones have headings."""
    found: dict[str, str] = {}
    for item in root.iterfind("{*}manifest/{*}item[@media-type='application/x-dtbncx+xml']"):
        place = _place(folder, item.get("href", ""))
        try:
            contents = _xml(package, place)
        except Damaged:
            continue
        for point in contents.iter("{*}navPoint") if contents is not None else ():
            source, label = point.find("{*}content"), point.find("{*}navLabel/{*}text")
            if source is not None and label is not None:
                target = _place(posixpath.dirname(place), source.get("src", ""))
                found.setdefault(target, " ".join("".join(label.itertext()).split()))
    return found


def _chapter(package: Package, place: str, title: str, at: int, seen: Pictures) -> tuple[str, ...] | None:
    """None when there is nothing in it."""
    try:
        raw = package.content(place)
        page = page_of(place, raw) if raw else Page("", [])
    except (Damaged, Unreadable):
        label = shortened(title) or f"section {at}"
        return label, "", f"{label}: it is damaged and could not be read"
    heading = next((block.text for block in page.blocks if block.level is not None and block.filled), "")
    label = shortened(heading or title) or f"section {at}"
    if raw is None:
        return label, "", f"{label}: it is missing from the file"
    blocks = [block for block in page.blocks if block.filled]
    unread, before = page.unread, seen.found
    for words in _pictures(package, place, raw, seen):
        unread += words is None
        blocks += [Block(words)] if words else []
    if blocks and title and not heading:
        blocks.insert(0, Block(title, level=1))
    if not blocks and not unread:
        return None
    what = "a picture" if unread == 1 else f"{unread} pictures"
    trouble = f"{label}: it holds {what} whose text could not be read" if unread else ""
    return label, written(blocks), trouble, *how(page.words + seen.found - before, alone=not page.blocks)


def _pictures(package: Package, place: str, raw: bytes, seen: Pictures) -> list[str | None]:
    """Of what each that is large enough says."""
    parser: Any = etree.HTMLParser(huge_tree=True, no_network=True)
    root = etree.fromstring(raw, parser) if b"<im" in raw else None
    found: list[str | None] = []
    for image in root.iter("img", "image") if root is not None else ():
        address = image.get("src") or image.get("xlink:href") or image.get("href") or ""
        content = package.content(_place(posixpath.dirname(place), address)) if ":" not in address else None
        if content is not None and len(content) > _PICTURE_SIZE:
            found.append(seen.words(hash(content), content))
    return found


def _about(root: Element) -> Parts:
    names = {"title": "Title", "creator": "Author", "publisher": "Publisher", "date": "Date", "description": "About"}
    lines = []
    for tag, name in names.items():
        texts = ("".join(each.itertext()) for each in root.iterfind(f"{{*}}metadata/{{*}}{tag}"))
        said = "; ".join(" ".join(text.split()) for text in texts if text.strip())
        lines += [f"{name}: {said}"] if said else []
    return [("about the book", "\n".join(lines), "")] if lines else []
