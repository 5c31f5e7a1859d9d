"""`adiyan doctor` says where the embedded Qdrant stops serving."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from mesh.adapters.qdrant import QdrantPassages
from mesh.cli import probes
from mesh.cli.findings import Finding, Level, Scene
from mesh.settings import load
from tests.contract.test_passages import ASHA, put
from tests.processes import qdrant

MODEL = "multilingual-e5-small"


async def asked(url: str) -> Finding:
    settings = load(qdrant_url=url, embedding_model=MODEL, embedding_dims=16)
    (finding,) = await probes.qdrant(Scene(settings, running=False, simulated=""))
    return finding


async def test_more_passages_than_the_embedded_one_serves_are_told_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probes, "MOST_EMBEDDED", 3)
    with qdrant(tmp_path) as url:
        passages = await QdrantPassages.open(url, model=MODEL, dims=16)
        await put(passages, ASHA, ["one", "two"])
        few = await asked(url)
        await put(passages, ASHA, ["three", "four"], name="more.md")
        many = await asked(url)
        await passages.close()
    assert (few.level, few.text.endswith("2 passages")) == (Level.FINE, True)
    assert many.level is Level.NOTE
    assert "holds 4 passages" in many.text
    assert "QDRANT_URL" in many.todo
    assert "adiyan kb rebuild" in many.todo


async def test_a_server_may_hold_as_many_as_it_likes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "MOST_EMBEDDED", 3)
    with real_one(points=5) as url:
        assert (await asked(url)).level is Level.FINE


@contextmanager
def real_one(points: int) -> Iterator[str]:
    """As much of a Qdrant server as the probe asks for; the embedded one calls itself that."""
    metadata = {"embedding_model": MODEL, "embedding_dims": 16}
    held = {"result": {"points_count": points, "config": {"metadata": metadata}}}

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            about = {"title": "qdrant - vector search engine", "version": "1.19.1"}
            body = json.dumps(about if self.path == "/" else held).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
