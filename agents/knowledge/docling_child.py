"""Reads one file with Docling, in a process of its own: it may crash, hang or swell, and our own reader's text remains.

In: the file, and its kind as the argument. Out: one JSON object, the Markdown of each part by its label, which is empty
for the whole of a file without pages.
"""

from __future__ import annotations

import json
import logging
import resource
import signal
import sys
import warnings
from io import BytesIO
from typing import Any

CPU_SECONDS = 60
SECONDS = 120
"""By the clock, however busy the machine is."""


def main(kind: str) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    signal.alarm(SECONDS)
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    document = _converted(kind, sys.stdin.buffer.read())
    written = {label: _markdown(document, number) for label, number in _labels(kind, document).items()}
    sys.stdout.buffer.write(json.dumps(written, ensure_ascii=False).encode("utf-8", "replace"))


def _converted(kind: str, raw: bytes) -> Any:
    from docling.datamodel.base_models import DocumentStream, InputFormat
    from docling.document_converter import DocumentConverter, PdfFormatOption
    from docling.pipeline.native_pdf_pipeline import NativePdfPipeline  # the others need torch, and its models

    options: Any = {InputFormat.PDF: PdfFormatOption(pipeline_cls=NativePdfPipeline)} if kind == "pdf" else None
    converter = DocumentConverter(allowed_formats=[InputFormat(kind)], format_options=options)
    return converter.convert(DocumentStream(name=f"document.{kind}", stream=BytesIO(raw))).document


def _labels(kind: str, document: Any) -> dict[str, int | None]:
    """As our own readers name their parts, and the number of the page."""
    match kind:
        case "xlsx":
            sheets = (group.name for group in document.groups if group.label == "sheet")
            return {f"sheet {title}": number for number, title in enumerate(sheets, start=1)}
        case "pdf" | "pptx":
            return {f"{'page' if kind == 'pdf' else 'slide'} {number}": number for number in document.pages}
        case _:
            return {"": None}


def _markdown(document: Any, page: int | None) -> str:
    return str(document.export_to_markdown(page_no=page, compact_tables=True, image_placeholder=""))


if __name__ == "__main__":
    main(sys.argv[1])
