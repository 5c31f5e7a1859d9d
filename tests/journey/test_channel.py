"""`adiyan demo --channel`: everything that the channel promises, in one conversation."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.journey.test_demo import demo


@pytest.mark.timeout(240)
def test_every_scene_of_the_channel_ends_as_expected(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    ran = demo(tmp_path / "home", "--channel", "--json", str(out))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    report = json.loads(out.read_text())
    assert report["troubles"] == []
    assert report["as_expected"] == report["done"] >= 50
    (document,) = [line for line in report["lines"] if line["shows"].startswith("ten pages")]
    assert document["ms"] < 30_000
    voices = [line for line in report["lines"] if line["does"].endswith(".ogg]")]
    assert len(voices) == 2
    if find_spec("faster_whisper"):
        assert all("breakfast" in line["replies"][0].casefold() for line in voices)


def test_the_channels_scenes_take_no_documents_of_ones_own(tmp_path: Path) -> None:
    ran = demo(tmp_path / "home", "--channel", "--keep")
    assert ran.returncode != 0
    assert "--channel plays its own scenes" in ran.stdout + ran.stderr
