"""The README's first command, and the same with documents and questions of one's own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mesh.settings import ROOT

PRICES = """# Bicycle repair

## Tyres

Changing a tyre takes 20 minutes and costs 14 euros.

## Brakes

Adjusting the brakes costs 9 euros.

## Opening hours

The workshop is open from Tuesday to Saturday, 10:00 to 18:00.
"""
LEASE = "# Lease\n\n## Rent\n\nThe monthly rent of the storeroom is 4,321 euros.\n"


def demo(home: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mesh.cli", "demo", *arguments],
        cwd=ROOT,
        env={**os.environ, "ADIYAN_HOME": str(home), "COLUMNS": "200", **environment},
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )


def report(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text())
    return found


@pytest.mark.timeout(180)
def test_the_demo_holds_every_expectation(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    ran = demo(tmp_path / "home", "--json", str(out))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    figures = report(out)
    assert figures["asked"] == figures["answered"] >= 10
    assert (figures["expected_found"], figures["leaks"]) == (1.0, 0)
    assert "price-list.md" in ran.stdout


@pytest.mark.timeout(180)
def test_documents_and_questions_of_ones_own(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    (docs / "global").mkdir(parents=True)
    (docs / "+15551230002").mkdir()
    (docs / "global" / "repair.md").write_text(PRICES)
    (docs / "global" / "broken.pdf").write_bytes(b"%PDF-1.7 and then nothing")
    (docs / "+15551230002" / "lease.md").write_text(LEASE)
    lines: list[dict[str, Any]] = [
        {"as": "+15551230001", "text": "What does it cost to change a tyre?", "expect": ["14 EUROS"]},
        {"as": "+15551230002", "text": "How much is the rent of the storeroom?", "expect": ["4,321"]},
        {"as": "+15551230001", "text": "How much is the rent of the storeroom?", "forbid": ["4,321"]},
        {"as": "+15551230001", "text": "My bicycle is a red Peugeot."},
        {"as": "+15551230001", "text": "What bicycle do I have?", "expect": ["Peugeot"]},
        {"as": "+15551230002", "text": "What bicycle do I have?", "forbid": ["Peugeot"]},
        {"as": "+15551230001", "text": "tell me something false", "expect": ["a string that no reply has"]},
    ]
    ask, out = tmp_path / "ask.jsonl", tmp_path / "out.json"
    ask.write_text("\n".join(json.dumps(line) for line in lines))
    ran = demo(tmp_path / "home", "--docs", str(docs), "--ask", str(ask), "--json", str(out))
    figures = report(out)
    assert ran.returncode == 1, "an expectation that did not hold must be felt by scripts"
    assert set(figures) >= {"asked", "answered", "expected_found", "leaks", "first_reply_s", "p50_ms", "lines"}
    assert (figures["asked"], figures["answered"], figures["leaks"]) == (7, 7, 0)
    assert figures["expected_found"] == 0.75
    assert figures["lines"][0]["sources"] == ["repair.md › Bicycle repair › Tyres"]
    assert any("broken.pdf" in trouble for trouble in figures["troubles"])


def test_a_broken_line_of_questions_is_named_with_its_number(tmp_path: Path) -> None:
    ask = tmp_path / "ask.jsonl"
    ask.write_text('{"as": "+15551230001", "text": "fine"}\n{"as": "me", "text": "x"}\n')
    ran = demo(tmp_path / "home", "--docs", str(tmp_path), "--ask", str(ask))
    assert ran.returncode == 1
    assert "line 2: as" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_wrong_setting_stops_the_start_with_one_sentence_that_names_it(tmp_path: Path) -> None:
    ran = demo(tmp_path / "home", REDIS_URL="localhost")
    assert ran.returncode == 1
    assert "REDIS_URL" in ran.stderr
    assert len(ran.stderr.strip().splitlines()) == 1
