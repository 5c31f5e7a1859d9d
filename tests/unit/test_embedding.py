"""Passages into vectors without a wait in between: the model server is always asked for more than it can do at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from agents.knowledge.embedding import AT_ONCE, Embedding
from agents.knowledge.stores import Stores
from mesh.access import Grant
from mesh.errors import Unavailable
from mesh.ports.documents import Chunk, Document
from mesh.ports.models import Vector

ASHA = Grant("+15551230001", frozenset(), tier="default")
NOTES = Document(
    "d", ASHA.client, "notes.md", "private", "0" * 64, 1, "text/plain", datetime(2026, 1, 2, tzinfo=UTC), 0
)


class Server:
    """Answers when it is told to. A text's vector is its number."""

    model, dims = "m", 1

    def __init__(self) -> None:
        self.open: list[tuple[list[str], asyncio.Future[list[Vector]]]] = []
        self.asked: list[str] = []

    async def documents(self, texts: Sequence[str]) -> list[Vector]:
        answer: asyncio.Future[list[Vector]] = asyncio.get_running_loop().create_future()
        self.asked += texts
        self.open.append((list(texts), answer))
        return await answer

    def answer(self) -> None:
        texts, answer = self.open.pop(0)
        answer.set_result([[float(text.split()[-1])] for text in texts])


def chunks(count: int) -> list[Chunk]:
    return [Chunk(number, f"text {number}") for number in range(count)]


def embedding(server: Server) -> Embedding:
    return Embedding(Stores(cast(Any, None), cast(Any, None), cast(Any, server)))


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0)


async def collect(embedding: Embedding, wanted: Sequence[Chunk], into: list[float]) -> None:
    async with aclosing(embedding.vectors(ASHA, NOTES, wanted)) as vectors:
        async for vector in vectors:
            into += vector


async def test_while_one_batch_is_worked_on_the_next_one_waits_at_the_server() -> None:
    server, got = Server(), list[float]()
    batches = 6
    work = asyncio.create_task(collect(embedding(server), chunks(batches * AT_ONCE), got))
    for left in range(batches, 0, -1):
        await until(lambda left=left: len(server.open) == min(2, left))  # type: ignore[misc]  # a default binds it
        server.answer()
    await work
    assert got == [float(number) for number in range(batches * AT_ONCE)], "and in order"


async def test_all_documents_together_have_no_more_calls_open_than_one() -> None:
    server, ours = Server(), embedding(Server())
    ours._stores.embedder = cast(Any, server)
    works = [asyncio.create_task(collect(ours, chunks(2 * AT_ONCE), [])) for _ in range(5)]
    for _ in range(10):
        await until(lambda: len(server.open) > 0)
        await asyncio.sleep(0.01)
        assert len(server.open) <= 2
        server.answer()
    await asyncio.gather(*works)


async def test_a_slow_writer_has_only_a_few_batches_in_memory() -> None:
    server = Server()
    async with aclosing(embedding(server).vectors(ASHA, NOTES, chunks(50 * AT_ONCE))) as vectors:
        first = asyncio.ensure_future(anext(vectors))
        for _ in range(3):
            await until(lambda: len(server.open) > 0)
            server.answer()
        await first  # the writer has one vector, and writes
        for _ in range(100):
            await asyncio.sleep(0)
        assert len(server.asked) == 3 * AT_ONCE


async def test_a_text_that_comes_twice_in_a_batch_is_embedded_once() -> None:
    server, got = Server(), list[float]()
    same = [Chunk(number, "text 7") for number in range(3)]
    work = asyncio.create_task(collect(embedding(server), same, got))
    await until(lambda: len(server.open) == 1)
    server.answer()
    await work
    assert (got, len(server.asked)) == ([7.0, 7.0, 7.0], 1)


async def test_when_one_batch_fails_nothing_is_left_behind() -> None:
    server = Server()
    work = asyncio.create_task(collect(embedding(server), chunks(10 * AT_ONCE), []))
    await until(lambda: len(server.open) == 2)
    server.open[0][1].set_exception(Unavailable(detail="embedding: broken"))
    with pytest.raises(Unavailable):
        await work
    assert all(answer.done() for _, answer in server.open)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_what_is_cancelled_leaves_nothing_behind_and_its_turn_is_free() -> None:
    server = Server()
    ours = embedding(server)
    work = asyncio.create_task(collect(ours, chunks(10 * AT_ONCE), []))
    await until(lambda: len(server.open) == 2)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert asyncio.all_tasks() == {asyncio.current_task()}
    server.open.clear()
    got: list[float] = []
    again = asyncio.create_task(collect(ours, chunks(1), got))
    await until(lambda: len(server.open) == 1)
    server.answer()
    await again
    assert got == [0.0]
