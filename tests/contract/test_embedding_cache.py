"""The promises of the port `EmbeddingCache`: what was kept is found, by its own document, until it is forgotten."""

from __future__ import annotations

import asyncio
import math
import random
import sqlite3
import sys
import time
from array import array
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from mesh.access import Grant
from mesh.adapters.vectors import SqliteVectors
from mesh.envelope import digest
from mesh.errors import Unavailable
from mesh.ports.documents import Document
from mesh.ports.models import Vector

DIMS = 16
ASHA = Grant("+15551230001", frozenset(), tier="default")
BELA = Grant("+15551230002", frozenset(), tier="default")
OWNER = Grant("+15550000000", frozenset(), tier="system_owner", sees_all=True)
CANARY = "The fee of the gala is 7,413 zlotys (KANARIENVOGEL)."


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "vectors.sqlite"


@pytest.fixture
def cache(file: Path) -> SqliteVectors:
    return SqliteVectors(file, model="m", dims=DIMS)


def document(grant: Grant = ASHA, name: str = "notes.md") -> Document:
    at = datetime(2026, 1, 2, tzinfo=UTC)
    return Document(digest(grant.client, name), grant.client, name, "private", "0" * 64, 1, "text/markdown", at, 1)


def vector(text: str, dims: int = DIMS) -> Vector:
    numbers = random.Random(text)
    drawn = [numbers.gauss(0, 1) for _ in range(dims)]
    length = math.hypot(*drawn)
    return array("f", [each / length for each in drawn])


def of(texts: Sequence[str]) -> dict[str, Vector]:
    return {text: vector(text) for text in texts}


async def test_a_vector_is_found_again_exactly_as_it_was_made(cache: SqliteVectors) -> None:
    texts = [f"text {number}" for number in range(1_200)]
    await cache.keep(ASHA, document(), of(texts))
    assert await cache.known(ASHA, document(), [*texts, "another"]) == of(texts)


async def test_it_is_found_after_a_restart(cache: SqliteVectors, file: Path) -> None:
    await cache.keep(ASHA, document(), of(["a"]))
    assert await SqliteVectors(file, model="m", dims=DIMS).known(ASHA, document(), ["a"]) == of(["a"])


@pytest.mark.parametrize(
    "other",
    [{"model": "n", "dims": DIMS}, {"model": "m", "dims": 8}, {"model": "m", "dims": DIMS, "prefix": "passage: "}],
    ids=["model", "dims", "prefix"],
)
async def test_what_another_model_made_is_not_taken_for_its_own(
    cache: SqliteVectors, file: Path, other: dict[str, Any]
) -> None:
    await cache.keep(ASHA, document(), of(["a"]))
    assert await SqliteVectors(file, **other).known(ASHA, document(), ["a"]) == {}


async def test_the_same_words_in_anothers_document_are_not_known(cache: SqliteVectors) -> None:
    """Or the time that an ingestion takes would tell what others have."""
    await cache.keep(ASHA, document(), of([CANARY]))
    assert await cache.known(BELA, document(BELA), [CANARY]) == {}
    assert await cache.known(BELA, document(ASHA), [CANARY]) == {}, "nor when its document is named"
    assert await cache.known(OWNER, document(BELA), [CANARY]) == {}, "nor when the system owner sends it for them"
    assert await cache.known(ASHA, document(ASHA), [CANARY]) == of([CANARY])


async def test_nobody_writes_or_forgets_for_another(cache: SqliteVectors) -> None:
    await cache.keep(ASHA, document(), of(["a"]))
    with pytest.raises(ValueError, match="another owner"):
        await cache.keep(BELA, document(ASHA), of(["b"]))
    await cache.forget(BELA, document(ASHA).document_id)
    assert await cache.known(ASHA, document(), ["a", "b"]) == of(["a"])


async def test_for_nobody_there_is_nothing(cache: SqliteVectors) -> None:
    with pytest.raises(ValueError, match="nobody"):
        await cache.known(Grant("*", frozenset(), tier="default"), document(), ["a"])


async def test_what_is_forgotten_is_in_no_file_and_the_rest_stays(file: Path, tmp_path: Path) -> None:
    """Also where SQLite has moved it about in between, which leaves pieces."""
    cache = SqliteVectors(file, model="m", dims=64)

    def some(name: str, count: int) -> dict[str, Vector]:
        return {f"{name} {number}": vector(f"{name} {number}", 64) for number in range(count)}

    secret = {CANARY: vector(CANARY, 64)}
    for number in range(60):
        await cache.keep(ASHA, document(name=f"{number}.md"), some(f"{number}", 7))
        await cache.keep(ASHA, document(name="secret.md"), some(f"secret {number}", 1) | secret)
    await cache.keep(BELA, document(BELA), some("hers", 20))
    for number in range(0, 60, 2):
        await cache.forget(ASHA, document(name=f"{number}.md").document_id)
    pieces = [
        array("f", each[start : start + 4]).tobytes()
        for number in range(60)
        for each in (vector(f"secret {number} 0", 64), secret[CANARY])
        for start in range(0, 64, 4)
    ]
    assert holds(tmp_path, pieces)
    await cache.forget(ASHA, document(name="secret.md").document_id)
    assert not holds(tmp_path, pieces)
    assert await cache.known(ASHA, document(name="secret.md"), [CANARY]) == {}
    assert await cache.known(ASHA, document(name="1.md"), list(some("1", 7))) == some("1", 7)
    assert await cache.known(BELA, document(BELA), list(some("hers", 20))) == some("hers", 20)


def holds(folder: Path, pieces: Sequence[bytes]) -> bool:
    raw = b"".join(file.read_bytes() for file in folder.iterdir())
    return any(piece in raw for piece in pieces)


async def test_what_a_document_holds_no_more_is_forgotten(cache: SqliteVectors, file: Path) -> None:
    await cache.keep(ASHA, document(), of(["a", "b"]))
    await cache.keep(ASHA, document(name="other.md"), of(["a"]))
    began = time.time()
    assert await cache.known(ASHA, document(), ["a"]) == of(["a"])
    await cache.keep(ASHA, document(), of(["c"]))
    await cache.forget(ASHA, document().document_id, unused_since=began)
    assert await cache.known(ASHA, document(), ["a", "b", "c"]) == of(["a", "c"])
    assert await cache.known(ASHA, document(name="other.md"), ["a"]) == of(["a"])


async def test_what_was_used_least_lately_goes_first_and_the_file_stays_small(file: Path, tmp_path: Path) -> None:
    most = 1 << 20
    cache = SqliteVectors(file, model="m", dims=384, most_bytes=most)
    first = {"first": vector("first", 384)}
    await cache.keep(ASHA, document(name="used.md"), first)
    for number in range(40):
        batch = {f"{number}/{each}": vector(f"{number}/{each}", 384) for each in range(50)}
        await cache.keep(ASHA, document(), batch)
        assert await cache.known(ASHA, document(name="used.md"), ["first"]) == first
    assert await cache.known(ASHA, document(), ["0/0"]) == {}
    assert len(await cache.known(ASHA, document(), list(batch))) == 50
    assert file.stat().st_size < 1.5 * most


def overwrite(file: Path) -> None:
    file.write_bytes(b"not a database" * 500)


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:5_000])


def flip(file: Path) -> None:
    """One bit of one vector."""
    raw, blob = bytearray(file.read_bytes()), array("f", vector("text 7")).tobytes()
    raw[raw.index(blob) + 5] ^= 1
    file.write_bytes(raw)


def of_another_version(file: Path) -> None:
    with closing(sqlite3.connect(file)) as database:
        database.execute("PRAGMA user_version = 99")


def of_something_else(file: Path) -> None:
    file.unlink()
    with closing(sqlite3.connect(file)) as database:
        database.execute("CREATE TABLE vectors (x)")


@pytest.mark.parametrize("damage", [overwrite, cut, flip, of_another_version, of_something_else])
async def test_a_damaged_file_is_dropped_and_made_anew(
    cache: SqliteVectors, file: Path, damage: Callable[[Path], None]
) -> None:
    texts = [f"text {number}" for number in range(100)]
    await cache.keep(ASHA, document(), of(texts))
    with closing(sqlite3.connect(file)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    damage(file)
    assert await cache.known(ASHA, document(), texts) == {}
    await cache.keep(ASHA, document(), of(texts))
    assert await cache.known(ASHA, document(), texts) == of(texts)


async def test_a_damaged_file_is_forgotten_whole(cache: SqliteVectors, file: Path) -> None:
    await cache.keep(ASHA, document(), of(["a"]))
    overwrite(file)
    await cache.forget(ASHA, document().document_id)
    assert await cache.known(ASHA, document(), ["a"]) == {}


async def test_a_cache_that_cannot_be_used_costs_time_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "vectors.sqlite").mkdir()
    cache = SqliteVectors(tmp_path / "vectors.sqlite", model="m", dims=DIMS)
    await cache.keep(ASHA, document(), of(["a"]))
    assert await cache.known(ASHA, document(), ["a"]) == {}
    with pytest.raises(Unavailable):
        await cache.forget(ASHA, document().document_id)


WRITER = """
import asyncio, sys
from tests.contract.test_embedding_cache import ASHA, DIMS, Path, SqliteVectors, document, of

async def write() -> None:
    cache = SqliteVectors(Path(sys.argv[1]), model="m", dims=DIMS)
    mine = document(name=sys.argv[2])
    for number in range(40):
        await cache.keep(ASHA, mine, of([f"{number}"]))
        assert await cache.known(ASHA, mine, [f"{number}"]) == of([f"{number}"])

asyncio.run(write())
"""


async def test_several_processes_write_at_once_from_the_first_moment_and_lose_nothing(
    cache: SqliteVectors, file: Path
) -> None:
    names = ["a.md", "b.md", "c.md"]
    writers = [await asyncio.create_subprocess_exec(sys.executable, "-c", WRITER, str(file), name) for name in names]
    assert [await writer.wait() for writer in writers] == [0, 0, 0]
    texts = [f"{number}" for number in range(40)]
    for name in names:
        assert await cache.known(ASHA, document(name=name), texts) == of(texts)
