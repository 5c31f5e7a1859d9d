"""The index of passages, and what is derived with it: all of it can be made again from the shelf."""

from __future__ import annotations

from collections.abc import AsyncIterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from mesh.ports.documents import Chunk, Document, Visibility
from mesh.ports.models import Vector

if TYPE_CHECKING:
    from mesh.access import Grant


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk that a search found. `dense` is a cosine, `sparse` a BM25 score; None where it is not known."""

    document_id: str
    source_filename: str
    """`<owner>/<name>`."""
    chunk: Chunk
    dense: float | None
    sparse: float | None
    ingested_at: datetime
    owner: str = ""
    """As the index has it: empty for a chunk without tags, which an earlier version wrote."""
    point: int | str = ""
    """Its id in the index; empty for what was not found there."""


@dataclass(frozen=True, slots=True)
class Untagged:
    """A chunk of which the index does not say who may see it."""

    point: int | str
    document_id: str
    source_filename: str
    owner: str
    """Where that is said after all; else empty."""


class Reranker(Protocol):
    """A second look at the first passages of a search, such as a cross-encoder takes."""

    most: int
    """So many passages are looked at again."""

    async def rerank(self, question: str, passages: Sequence[Passage]) -> Sequence[float]:
        """One number for each passage, the higher the better, in any scale. Raises `Unavailable`: the search then keeps
        its own order."""
        ...


class PassageIndex(Protocol):
    """Vectors: derived from the shelf, and made again from it."""

    async def prepare(self) -> None:
        """Makes an empty index where there is none. Raises `Misconfigured` when it was made for another model."""
        ...

    async def put(
        self,
        grant: Grant,
        document: Document,
        chunks: Sequence[Chunk],
        vectors: Sequence[Vector] | AsyncIterable[Vector],
    ) -> None:
        """Swaps: the old version answers until the new one is complete. Safe to repeat. Vectors that come one by one
        are written meanwhile, batch by batch."""
        ...

    async def search(
        self, grant: Grant, text: str, vector: Vector, *, limit: int, within: str | Sequence[str] | None = None
    ) -> list[Passage]:
        """The union of both legs, each `limit` long, unfused. `within` is a document's id, or several (or none)."""
        ...

    async def by_words(
        self, grant: Grant, text: str, *, limit: int, within: str | Sequence[str] | None = None
    ) -> list[Passage]:
        """One leg of a search, which needs no vector: nothing for a text without words."""
        ...

    async def by_meaning(
        self,
        grant: Grant,
        vector: Vector,
        *,
        limit: int,
        within: str | Sequence[str] | None = None,
        besides: Sequence[Passage] = (),
    ) -> list[Passage]:
        """The other leg, and the passages `besides` with their cosines; those that the grant may not see have none."""
        ...

    async def called(
        self, grant: Grant, names: Sequence[str], text: str, vector: Vector, *, limit: int
    ) -> list[Passage]:
        """A search among the passages that have one of the names (`mesh.names`)."""
        ...

    async def indexed(self, grant: Grant, *, visibility: Visibility | None = None) -> set[str]:
        """Ids of the documents that have passages (of that visibility)."""
        ...

    async def set_visibility(self, grant: Grant, document_id: str, visibility: Visibility) -> None: ...
    async def delete(self, grant: Grant, document_id: str) -> None: ...

    async def untagged(
        self, grant: Grant, *, after: int | str | None = None
    ) -> tuple[int, list[Untagged], int | str | None]:
        """How many there are, a page of them, and after which the next one begins. Raises `Denied` for anybody but the
        system owner."""
        ...

    async def tag(self, grant: Grant, chunks: Sequence[Untagged], *, document_id: str, owner: str, name: str) -> None:
        """Private from then on: these are of that document. Raises `Denied` as `untagged`."""
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Calibration:
    """How strict to be with what somebody sees, as its own sentences told."""

    model: str
    """Whose vectors told it: it holds for no other's."""
    corpus: str
    """Fingerprint of the documents that told it."""
    asked: int
    stricter: float
    """Logits that an answer must have more than by default; below 0, fewer."""


class Calibrations(Protocol):
    async def of(self, grant: Grant) -> Calibration | None:
        """Learnt from the grant's own documents, else from those that everybody sees; never from another's."""
        ...

    async def keep(self, grant: Grant, learnt: Mapping[str, Calibration]) -> dict[str, Calibration]:
        """By the identity of who sees it, "" for what everybody sees. All that was kept before goes, and what was of
        the same viewers is returned. Raises `Denied` for all but the system owner."""
        ...


class EmbeddingCache(Protocol):
    """Vectors that were made before. Each is of one document, and found for no other, whatever its words. Derived: it
    may lack anything at any time, and never fails but where it must forget."""

    async def known(self, grant: Grant, document: Document, texts: Sequence[str]) -> dict[str, Vector]:
        """By text; only those that it has."""
        ...

    async def keep(self, grant: Grant, document: Document, vectors: Mapping[str, Vector]) -> None:
        """By text."""
        ...

    async def forget(self, grant: Grant, document_id: str, *, unused_since: float | None = None) -> None:
        """All of a document, or what was neither asked for nor kept since then (seconds since the epoch). Raises
        `Unavailable`."""
        ...

    async def close(self) -> None: ...
