"""Embeddings from an Ollama server, through its own client."""

from __future__ import annotations

import math
from collections.abc import Sequence

import httpx
import ollama

from mesh.errors import Misconfigured, Unavailable
from mesh.ports.models import Vector

TIMEOUT_S = 60.0
BATCH = 16
LONGEST_QUERY = 1_000
LONGEST_DOCUMENT = 4_000
"""In characters; the rest of a longer text is left out. A model reads its window (512 tokens for E5), and time grows
with length: a message of 27,000 characters took half a minute."""


class OllamaEmbedder:
    """`prefixes` are what the model was trained with: `query: ` and `passage: ` for E5, `search_query: ` for nomic."""

    def __init__(
        self,
        host: str,
        *,
        model: str,
        dims: int,
        query_prefix: str,
        document_prefix: str,
        timeout: float = TIMEOUT_S,
    ) -> None:
        self.model = model
        self.dims = dims
        self._query_prefix = query_prefix
        self._document_prefix = document_prefix
        self._client = ollama.AsyncClient(host=host, timeout=httpx.Timeout(timeout, connect=5))

    async def documents(self, texts: Sequence[str]) -> list[Vector]:
        return await self._embed([self._document_prefix + text[:LONGEST_DOCUMENT] for text in texts])

    async def queries(self, texts: Sequence[str]) -> list[Vector]:
        return await self._embed([self._query_prefix + text[:LONGEST_QUERY] for text in texts])

    async def alike(self, texts: Sequence[str]) -> list[Vector]:
        return await self.queries(texts)

    async def close(self) -> None:
        await self._client.close()  # type: ignore[no-untyped-call]  # ollama's annotation is missing

    async def probe(self) -> None:
        """Raises `Misconfigured` when the model's vectors are not of the configured size."""
        (vector,) = await self.queries(["probe"])
        if len(vector) != self.dims:
            raise Misconfigured(
                f"Setting embedding_dims (EMBEDDING_DIMS) is {self.dims}, but {self.model} makes vectors of "
                f"{len(vector)} numbers: set it to {len(vector)}."
            )

    async def _embed(self, texts: Sequence[str]) -> list[Vector]:
        vectors: list[Vector] = []
        for start in range(0, len(texts), BATCH):
            vectors += await self._batch(texts[start : start + BATCH])
        return vectors

    async def _batch(self, texts: Sequence[str]) -> list[Vector]:
        try:
            answer = await self._client.embed(model=self.model, input=texts)
        except ollama.ResponseError as error:
            if error.status_code == 404:
                raise Misconfigured(
                    f"The model server has no model {self.model}: pull it, or set embedding_model (EMBEDDING_MODEL)."
                ) from error
            raise Unavailable(detail=f"embedding: HTTP {error.status_code}") from error
        except (httpx.HTTPError, ConnectionError) as error:
            raise Unavailable(detail=f"embedding: {type(error).__name__}") from error
        if len(answer.embeddings) != len(texts):
            raise Unavailable(detail=f"embedding: {len(answer.embeddings)} vectors for {len(texts)} texts")
        return [_unit(vector) for vector in answer.embeddings]


def _unit(vector: Sequence[float]) -> list[float]:
    length = math.sqrt(sum(x * x for x in vector))
    return [x / length for x in vector] if length else list(vector)
