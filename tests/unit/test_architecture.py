"""Rules that no reviewer should have to remember."""

from __future__ import annotations

import ast
import inspect
import pkgutil
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from mesh import contracts, ports
from mesh.contracts.answers import Nothing
from mesh.contracts.documents import READ_PATHS
from mesh.contracts.memory import RECALL
from mesh.settings import ROOT
from mesh.skills import Skill


def defined_in(package: ModuleType) -> dict[str, object]:
    """What the modules of a package define, by name."""
    modules = [import_module(f"{package.__name__}.{each.name}") for each in pkgutil.iter_modules(package.__path__)]
    return {name: value for module in modules for name, value in vars(module).items()}


HOLD_NOBODYS = {"Directory", "Roster", "Embedder", "ChatModel", "Transcriber", "Reranker", "Channel"}
"""Ports that are no stores of what people own. Every other one is held to the rule, a new one too."""
STORES = [
    value
    for name, value in sorted(defined_in(ports).items())
    if isinstance(value, type) and getattr(value, "_is_protocol", False) and name not in HOLD_NOBODYS | {"Protocol"}
]
SKILLS = [value for value in defined_in(contracts).values() if isinstance(value, Skill)]
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


def test_the_stores_are_those_that_hold_what_people_own() -> None:
    known = {"Calibrations", "EmbeddingCache", "FactStore", "Notes", "PassageIndex", "Shelf"}
    assert known <= {store.__name__ for store in STORES}


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
    assert len(READ_PATHS) == 7
    assert {skill.needs for skill in READ_PATHS} == {"knowledge:search"}


def test_every_skill_is_guarded_and_bounded() -> None:
    assert len(SKILLS) >= 12
    for skill in SKILLS:
        assert skill.needs
        assert 0 < skill.within.total_seconds() <= 600


def test_an_unguarded_skill_cannot_be_written() -> None:
    with pytest.raises(TypeError, match="needs"):
        Skill(name="a.b", takes=Nothing, returns=Nothing, within=RECALL.within)  # type: ignore[call-arg]  # the point


def test_no_registry_host_is_named_in_the_lock() -> None:
    lock = (ROOT / "requirements.lock").read_text("utf-8")
    assert "://" not in lock
    assert "--hash=sha256:" in lock
