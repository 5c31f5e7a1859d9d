"""Pictures with words on them, and PDFs that are made of such pictures."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw, ImageFont

from agents.knowledge import parse_child

WITHOUT_OCR = (
    sys.executable,
    "-I",
    "-c",
    "import runpy, sys; sys.modules['rapidocr'] = None; "
    f"runpy.run_path({str(Path(parse_child.__file__))!r}, run_name='__main__')",
)
"""The child, as where rapidocr is not installed."""

LETTER = (
    "The office opens at eight in the morning.",
    "Please bring the contract and your passport.",
    "Parking costs 12 euros for a whole day.",
    "Ask for Harriet Blackwood at the front desk.",
)


def drawn(*lines: str, size: int = 32, paper: str = "white", ink: str = "black", mode: str = "RGB") -> Image.Image:
    """Each line under the other."""
    font = ImageFont.load_default(size)
    width = max(int(font.getlength(line)) for line in lines) + 4 * size
    image = Image.new(mode, (width, (2 * len(lines) + 2) * size), paper)
    for number, line in enumerate(lines):
        ImageDraw.Draw(image).text((2 * size, (1.5 + 2 * number) * size), line, fill=ink, font=font)
    return image


def placed(size: tuple[int, int], *words: tuple[int, int, str], letters: int = 26) -> Image.Image:
    image = Image.new("RGB", size, "white")
    for across, down, text in words:
        ImageDraw.Draw(image).text((across, down), text, fill="black", font=ImageFont.load_default(letters))
    return image


def saved(image: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    kept = io.BytesIO()
    image.save(kept, kind, **options)
    return kept.getvalue()


def scan(*pages: Image.Image, **options: Any) -> bytes:
    """A PDF with a picture on each page, and nothing else."""
    first, *others = pages
    return saved(first, "PDF", save_all=True, append_images=others, resolution=150.0, **options)
