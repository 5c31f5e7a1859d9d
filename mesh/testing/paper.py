"""A plain PDF, for showing and for tests: a page for each text, and a page with nothing on it for an empty one."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

_WIDE = 88
"""Characters of a line."""


def pdf(pages: Sequence[str]) -> bytes:
    """ASCII only, about 50 lines a page."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", "", "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    kids = []
    for text in pages:
        content = _content(text)
        objects.append(f"<< /Length {len(content)} >>\nstream\n{content}\nendstream")
        objects.append(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> "
            f"/Contents {len(objects)} 0 R >>"
        )
        kids.append(f"{len(objects)} 0 R")
    objects[1] = f"<< /Type /Pages /Count {len(kids)} /Kids [{' '.join(kids)}] >>"
    made, offsets = "%PDF-1.4\n", []
    for number, body in enumerate(objects, start=1):
        offsets.append(len(made))
        made += f"{number} 0 obj\n{body}\nendobj\n"
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    end = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}"
    return (
        made + end + f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(made)}\n%%EOF\n"
    ).encode("ascii")


def _content(text: str) -> str:
    if not text:
        return "0 0 m 10 10 l S"
    lines = [line for paragraph in text.splitlines() for line in textwrap.wrap(paragraph, _WIDE) or [""]]
    shown = (line.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)") for line in lines)
    return "BT /F1 11 Tf 14 TL 60 740 Td " + " ".join(f"({line}) Tj T*" for line in shown) + " ET"
