"""Rules that no reviewer should have to remember."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

from mesh import contracts, ports
from mesh.settings import ROOT
from mesh.skills import Skill

STORES = (ports.Shelf, ports.Notes, ports.PassageIndex, ports.FactStore)
READ_NOTHING = {"close", "hold", "prepare"}
"""`hold` is a lock on a document's id; `prepare` makes an empty collection."""
SOURCES = sorted((ROOT / "mesh").rglob("*.py")) + sorted((ROOT / "agents").rglob("*.py"))


def calls_of(name: str, source: Path) -> list[int]:
    tree = ast.parse(source.read_text("utf-8"))
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
    ]


@pytest.mark.parametrize("store", STORES, ids=lambda store: store.__name__)
def test_every_store_method_takes_a_grant(store: type) -> None:
    for name, method in inspect.getmembers(store, inspect.isfunction):
        if name.startswith("_") or name in READ_NOTHING:
            continue
        assert list(inspect.signature(method).parameters)[:2] == ["self", "grant"], f"{store.__name__}.{name}"


def test_grants_are_made_by_the_gate_alone() -> None:
    makers = {str(path.relative_to(ROOT)) for path in SOURCES if calls_of("Grant", path)}
    assert makers == {"mesh/access.py"}


def test_the_grant_that_sees_every_document_is_taken_for_upkeep_and_to_show_what_is_read_in() -> None:
    takers = {str(path.relative_to(ROOT)) for path in SOURCES if calls_of("upkeep", path)}
    assert takers == {"agents/knowledge/ingesting.py", "mesh/cli/progressing.py", "mesh/process.py"}


def test_what_another_may_see_is_looked_up_to_tell_why_and_to_calibrate() -> None:
    takers = {str(path.relative_to(ROOT)) for path in SOURCES if calls_of("as_seen_by", path)}
    assert takers == {"agents/knowledge/__init__.py", "agents/knowledge/calibrating.py"}


def test_nothing_is_pickled() -> None:
    guilty = [path for path in SOURCES if "pickle" in path.read_text("utf-8").replace("never pickle", "")]
    assert guilty == []


def test_every_read_path_needs_a_permission_to_read() -> None:
    assert len(contracts.READ_PATHS) == 7
    assert {skill.needs for skill in contracts.READ_PATHS} == {"knowledge:search"}


def test_every_skill_is_guarded_and_bounded() -> None:
    skills = [value for value in vars(contracts).values() if isinstance(value, Skill)]
    assert len(skills) >= 12
    for skill in skills:
        assert skill.needs
        assert 0 < skill.within.total_seconds() <= 600


def test_an_unguarded_skill_cannot_be_written() -> None:
    with pytest.raises(TypeError, match="needs"):
        Skill(name="a.b", takes=contracts.Nothing, returns=contracts.Nothing, within=contracts.RECALL.within)  # type: ignore[call-arg]  # the point


def test_no_registry_host_is_named_in_the_lock() -> None:
    lock = (ROOT / "requirements.lock").read_text("utf-8")
    assert "://" not in lock
    assert "--hash=sha256:" in lock
