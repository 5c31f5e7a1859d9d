"""The words in a picture, read on this machine by rapidocr's models. Without the package, nothing is loaded or read.

The models (PP-OCRv6 small, Apache-2.0, Baidu's, converted by RapidOCR) come in rapidocr's wheel, and are taken by their
SHA-256 alone: rapidocr would fetch a missing one from the network.
"""

from __future__ import annotations

import hashlib
import os
import resource
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from time import monotonic
from typing import Any

from .layout import Line, arranged, levelled

MODELS = {
    "Det": ("PP-OCRv6_det_small.onnx", "090f04abcd9d9a7498bc4ebf677e4cb9bdce1fe4197ddb7e529f1ef44e1ff94f"),
    "Rec": ("PP-OCRv6_rec_small.onnx", "6f327246b50388f3c176ae304bd95767ea6dc0c9ae92153ef8cbe210b3c14884"),
}
THREADS = 2
AT_ONCE = 2
"""Lines. Six were no faster, and took 250 MB more."""

MOST_PIXELS = 4_000_000
"""A page of A4 at 200 dots an inch."""
FIND_PIXELS = 1_300_000
"""Lines are looked for in a smaller picture, and read in the larger one: half the time, the same text."""
FEWEST_PIXELS = 500_000
LARGEST_GROWTH = 3.0
EDGE = 16
"""Pixels around the picture: lines that touch its edge are missed."""

MOST_PICTURES = 40
SECONDS = 270.0
PICTURE_SECONDS = 60.0
"""Limits for a document, and for one picture or page of it."""

UNSURE = 0.5
"""A word below is left out."""
DOUBTFUL = 0.8
"""A picture whose characters are below on average is said to be doubtful."""
UPRIGHT = 0.85
"""Below, it is tried whether the picture stands on its head."""
GAP = 0.05
"""Share of words left out that is told."""
HARDLY_ANY = 3
"""Words, all of them unsure: it is a picture of something else."""
FEWEST = 2
"""Letters or digits. A single one is more often seen where there is none."""
TRIED = 6
"""Lines by which that is decided."""

TOO_MANY = "not read, too many scanned pages"
FAILED = "its picture could not be read"
CUT_SHORT = "reading it by OCR took too long: a part of its text is missing"
HARD_TO_READ = "it was hard to read by OCR, and some of its text may be wrong"
GAPS = "some of its words could not be made out"


@dataclass(frozen=True, slots=True)
class Found:
    lines: tuple[Line, ...] = ()
    trouble: str = ""

    @property
    def text(self) -> str:
        return arranged(self.lines)


@dataclass
class Reader:
    """Reads for one document, within its limits."""

    engine: Any
    left: int = MOST_PICTURES
    until: float = field(default_factory=lambda: monotonic() + SECONDS)

    @property
    def spent(self) -> bool:
        return self.left <= 0 or monotonic() > self.until

    def read(self, pixels: Any) -> Found:
        """Of rows, columns, and blue, green and red. Unless it was turned, lines lie where they do in it."""
        if self.spent:
            return Found(trouble=TOO_MANY)
        self.left -= 1
        try:
            return self._read(pixels, min(self.until, monotonic() + PICTURE_SECONDS))
        except (_engine_error(), MemoryError, ValueError):
            return Found(trouble=FAILED)

    def _read(self, pixels: Any, until: float) -> Found:
        image, scale = _sized(pixels)
        crops, boxes = self._look(image)
        if not len(crops):
            return Found()
        order = sorted(range(len(crops)), key=lambda i: -max(crops[i].shape[:2]))
        tried = [crops[i] for i in order[:TRIED]]
        read = list(self._recognised(tried, until))
        if turn := self._turn(tried, read, boxes, until):
            image, scale = _turned(image, turn), 0.0
            crops, boxes = self._look(image)
            order, read = sorted(range(len(crops)), key=lambda i: -max(crops[i].shape[:2])), []
        read += self._recognised([crops[i] for i in order[len(read) :]], until)
        found = [
            (_shown(boxes[i], scale), text, sure) for i, (text, sure) in zip(order, read, strict=False) if text.strip()
        ]
        return _told(found, cut_short=len(read) < len(order))

    def _look(self, image: Any) -> tuple[Sequence[Any], Any]:
        height, width = image.shape[:2]
        share = min(
            1.0, (FIND_PIXELS * (2 if max(height, width) > 3 * min(height, width) else 1) / height / width) ** 0.5
        )
        self.engine.text_det.limit_side_len = int(max(height, width) * share)
        found = self.engine.text_det(image)
        if found.boxes is None:
            return [], []
        return self.engine.crop_text_regions(image, found.boxes), found.boxes

    def _recognised(self, crops: Sequence[Any], until: float) -> Iterator[tuple[str, Sequence[float]]]:
        """Text and how sure each character is, as long as there is time."""
        for start in range(0, len(crops), AT_ONCE):
            if monotonic() > until:
                return
            found = self.engine.recognize_txt(list(crops[start : start + AT_ONCE]))
            yield from zip(found.txts, (each.confs for each in found.word_results), strict=True)

    def _turn(self, tried: Sequence[Any], read: Sequence[tuple[str, Sequence[float]]], boxes: Any, until: float) -> int:
        """How many quarters to the left the picture must be turned. A line that stands upright was laid to the left."""
        sideways = sum(_tall(box) for box in boxes) * 2 > len(boxes)
        upright = _mean(read)
        on_its_head = 0.0
        if upright < UPRIGHT:
            on_its_head = _mean(list(self._recognised([_turned(crop, 2) for crop in tried], until)))
        flipped = on_its_head > upright
        return (3 if flipped else 1) if sideways else (2 if flipped else 0)


@cache
def reader() -> Reader | None:
    """None when rapidocr is not installed, or its models are not those that are known."""
    os.environ.update(OMP_NUM_THREADS=str(THREADS), OPENBLAS_NUM_THREADS=str(THREADS))
    try:
        import cv2
        import rapidocr
    except ImportError:
        return None
    _take_room()
    cv2.setNumThreads(THREADS)
    folder = Path(rapidocr.__file__).parent / "models"
    models = {part: folder / name for part, (name, _) in MODELS.items()}
    if any(not path.exists() or _sha256(path) != MODELS[part][1] for part, path in models.items()):
        return None
    engine: Any = rapidocr.RapidOCR(
        params={
            "Global.log_level": "critical",
            "Global.use_cls": False,  # it garbles lines
            "Global.return_word_box": True,
            "EngineConfig.onnxruntime.intra_op_num_threads": min(THREADS, os.cpu_count() or 1),
            "EngineConfig.onnxruntime.inter_op_num_threads": 1,
            "Det.limit_type": "max",
            "Rec.rec_batch_num": AT_ONCE,
            **{f"{part}.model_path": str(path) for part, path in models.items()},
        }
    )
    engine._load_det_model()  # otherwise `text_det` is None until the first picture
    return Reader(engine)


def _take_room() -> None:
    """The models need more than a text does: what `parse_child` holds back."""
    for limit in (resource.RLIMIT_AS, resource.RLIMIT_CPU):
        most = resource.getrlimit(limit)[1]
        resource.setrlimit(limit, (most, most))


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@cache
def _engine_error() -> type[Exception]:
    from rapidocr.inference_engine.onnxruntime.main import ONNXRuntimeError

    return ONNXRuntimeError


# ── pictures ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _sized(pixels: Any) -> tuple[Any, float]:
    """Not too large, not too small, and with an edge; and by what it was scaled."""
    import cv2

    height, width = pixels.shape[:2]
    scale = min(1.0, (MOST_PIXELS / height / width) ** 0.5)
    if height * width < FEWEST_PIXELS:
        scale = min(LARGEST_GROWTH, (FEWEST_PIXELS / height / width) ** 0.5)
    if scale != 1:
        size = max(1, round(width * scale)), max(1, round(height * scale))
        pixels = cv2.resize(pixels, size, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC)
    return cv2.copyMakeBorder(pixels, EDGE, EDGE, EDGE, EDGE, cv2.BORDER_REPLICATE), scale


def _turned(image: Any, quarters: int) -> Any:
    import numpy

    return numpy.ascontiguousarray(numpy.rot90(image, quarters))


def _tall(box: Any) -> bool:
    across, down = box.max(axis=0) - box.min(axis=0)
    return bool(down > 1.5 * across)


def _shown(box: Any, scale: float) -> Any:
    return (box - EDGE) / scale if scale else box


# ── words ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _mean(read: Sequence[tuple[str, Sequence[float]]]) -> float:
    sure = [each for text, characters in read if text for each in characters]
    return sum(sure) / len(sure) if sure else 0.0


def _told(found: Sequence[tuple[Any, str, Sequence[float]]], *, cut_short: bool) -> Found:
    kept, words, lost = [], 0, 0
    for box, text, sure in found:
        clear = _clear(text, sure)
        words += len(text.split())
        lost += len(text.split()) - len(clear)
        if clear:
            kept.append((box, " ".join(clear)))
    if sum(c.isalnum() for _, text in kept for c in text) < FEWEST:
        kept = []
        if words <= HARDLY_ANY and not cut_short:
            return Found()
    trouble = ""
    if cut_short:
        trouble = CUT_SHORT
    elif found and _mean([(text, sure) for _, text, sure in found]) < DOUBTFUL:
        trouble = HARD_TO_READ
    elif lost > GAP * words:
        trouble = GAPS
    return Found(tuple(levelled(kept)), trouble)


def _clear(text: str, sure: Sequence[float]) -> list[str]:
    words, start = [], 0
    for word in text.split(" "):
        characters = sure[start : start + len(word)]
        start += len(word) + 1
        if word and sum(characters) >= UNSURE * len(word):
            words.append(word)
    return words
