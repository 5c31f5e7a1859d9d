"""One index and one model server for all tests of the boundary; each test gets a collection and a shelf of its own."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.boundary.stage import Stage, staged
from tests.processes import qdrant, serving


@pytest.fixture(scope="session")
def index_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if real := os.environ.get("QDRANT_URL"):
        yield real
    else:
        with qdrant(tmp_path_factory.mktemp("boundary-index")) as url:
            yield url


@pytest.fixture(scope="session")
def scripted_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    log = tmp_path_factory.mktemp("boundary-model") / "model.log"
    with serving("mesh.testing.model", ready="/api/version", log=log) as url:
        yield url


@pytest.fixture
async def stage(index_url: str, scripted_url: str, tmp_path: Path) -> AsyncIterator[Stage]:
    async with staged(index_url, scripted_url, tmp_path) as opened:
        yield opened
