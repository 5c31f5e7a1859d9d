"""Pictures: what is written on them, read by OCR."""

from __future__ import annotations

import io
import warnings
from typing import Any

from . import Parts, Unreadable, mending, ocr
from .layout import arranged
from .pages import DAMAGED, NO_WORDS, Page, told

MOST_PIXELS = 120_000_000
MOST_FRAMES = 5_000
HEIC = "Please send it as JPEG (on an iPhone: Settings, Camera, Formats, Most Compatible), or as a screenshot."
_BROKEN = (OSError, ValueError, SyntaxError, EOFError, MemoryError)
"""What Pillow raises for a damaged file."""
_FORMATS = ("PNG", "JPEG", "TIFF", "WEBP", "BMP", "GIF")


def read(name: str, raw: bytes) -> Parts:
    if raw[4:8] == b"ftyp":
        raise Unreadable(f"{name} is a HEIC picture, which I can't read. {HEIC}", "unsupported")
    reader = ocr.reader()
    if reader is None:
        raise Unreadable(
            f"{name} is a picture, and the reader of pictures is not installed here. Please send its text.",
            "unsupported",
        )
    image, count = _opened(name, raw)
    pages = [_page(name, image, number, count, reader) for number in range(count)]
    if not any(page.text for page in pages):
        raise Unreadable(
            f"{name} is a picture, and I found no words on it. Please write me what it is about.", "nothing"
        )
    for page, text in zip(pages, mending.mended([page.text for page in pages]), strict=True):
        page.text = text
    if len(pages) > 1:
        return told(pages)
    (page,) = pages
    return [("", page.text, f"the picture: {page.trouble}" if page.trouble else "", page.how)]


def words(raw: bytes) -> str | None:
    """Of a picture within a document: empty when there are none; None when they could not be read."""
    reader = ocr.reader()
    if reader is None:
        return None
    try:
        image, _ = _opened("", raw)
        page = _page("", image, 0, 1, reader)
    except Unreadable:
        return None
    return page.text if page.text or page.trouble == NO_WORDS else None


def _page(name: str, image: Any, number: int, count: int, reader: ocr.Reader) -> Page:
    if reader.spent:
        return Page(trouble=ocr.TOO_MANY)
    try:
        image.seek(number)
        if image.width * image.height > MOST_PIXELS:
            raise Unreadable(
                f"{name} is too large ({image.width:,} × {image.height:,} pixels). Please send a smaller picture.",
                "limit",
            )
        pixels = _pixels(image)
    except _BROKEN as error:
        if count == 1:
            raise _damaged(name) from error
        return Page(trouble=DAMAGED)
    found = reader.read(pixels)
    if not found.lines:
        return Page(trouble=found.trouble or NO_WORDS)
    return Page(mending.hyphens_marked(arranged(found.lines)), found.trouble, "ocr")


def _opened(name: str, raw: bytes) -> tuple[Any, int]:
    """And how many pages it has: of a TIFF all, of a GIF or another moving picture the first."""
    from PIL import Image

    Image.MAX_IMAGE_PIXELS = None  # measured when its turn comes, and told
    warnings.simplefilter("ignore")
    try:
        image = Image.open(io.BytesIO(raw), formats=_FORMATS)
        count = getattr(image, "n_frames", 1) if image.format == "TIFF" else 1
    except _BROKEN as error:
        raise _damaged(name) from error
    if count > MOST_FRAMES:
        raise Unreadable(
            f"{name} has {count:,} pages; {MOST_FRAMES:,} are the most that I can take. Please split it.", "limit"
        )
    return image, count


def _damaged(name: str) -> Unreadable:
    return Unreadable(f"{name} is damaged: it can't be opened as a picture. Please send it again.")


def _pixels(image: Any) -> Any:
    """As it is meant to be seen: upright, on paper, and no larger than it has to be."""
    import numpy
    from PIL import Image, ImageOps

    fits = max(1, int((image.width * image.height / ocr.MOST_PIXELS) ** 0.5))
    image.draft("RGB", (image.width // fits, image.height // fits))  # a JPEG is decoded smaller
    ImageOps.exif_transpose(image, in_place=True)  # a copy would be as large again
    if image.mode in ("P", "PA", "LA", "La", "RGBa") or "transparency" in image.info:
        image = image.convert("RGBA")
    elif image.mode == "1":
        image = image.convert("L")
    fits = int((image.width * image.height / ocr.MOST_PIXELS) ** 0.5)
    if fits > 1:
        image = image.reduce(fits)
    if image.mode.startswith("I;16") or image.mode in ("I", "F"):
        image = _scaled(image)
    if image.mode == "RGBA":
        paper = Image.new("RGBA", image.size, _paper(image))
        image = Image.alpha_composite(paper, image)
    return numpy.ascontiguousarray(numpy.asarray(image.convert("RGB"))[:, :, ::-1])


def _scaled(image: Any) -> Any:
    """Sixteen bits, or more, to eight."""
    import numpy
    from PIL import Image

    values = numpy.asarray(image).astype("float32")
    low, high = float(values.min()), float(values.max())
    return Image.fromarray(((values - low) * (255 / ((high - low) or 1))).astype("uint8"))


def _paper(image: Any) -> str:
    """White, unless what is drawn on it is."""
    import numpy

    pixels = numpy.asarray(image)
    drawn = pixels[pixels[:, :, 3] > 128]
    return "black" if len(drawn) and drawn[:, :3].mean() > 200 else "white"
