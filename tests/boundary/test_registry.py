"""What can show somebody a document or a memory is found by looking, and each way has its test: see `registry.py`."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any, cast

import pytest
import typer
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import BaseRoute, Route
from typer.main import get_command

from mesh.cli.app import app as command_line
from mesh.commands import NAMES
from mesh.configuration import agents
from mesh.contracts.answers import Nothing
from mesh.contracts.documents import READ_PATHS
from mesh.contracts.notes import OWN_READ_PATHS
from mesh.dashboard.app import create_app as dashboard
from mesh.dispatch import Agent
from mesh.gateway.app import create_app as gateway
from mesh.gateway.files import Files
from mesh.gateway.meta import MetaWebhooks
from mesh.process import load_agent
from mesh.settings import ROOT
from mesh.skills import Skill
from tests.boundary.probes import EVERY_PATH
from tests.boundary.registry import MATRIX, NOTHING_TO_SEE, TESTED


def of_agents(found: Iterable[Agent[Any]]) -> set[str]:
    return {f"skill {name}" for agent in found for name in agent.handlers}


def of_routes(what: str, routes: Iterable[BaseRoute]) -> set[str]:
    return {name for route in routes for name in _names(what, route)}


def _names(what: str, route: BaseRoute) -> Iterator[str]:
    path = getattr(route, "path", None)
    if path is None:
        yield f"{what} {route!r}"  # what has no path is something new, and has no line
        return
    methods = getattr(route, "methods", None) or {""}
    yield from (f"{what} {method} {path}".replace("  ", " ") for method in methods - {"HEAD"})


def of_commands(found: typer.Typer) -> set[str]:
    def walk(command: Any, *names: str) -> Iterator[str]:
        if not hasattr(command, "commands"):
            yield f"command {' '.join(names)}"
        for name, each in getattr(command, "commands", {}).items():
            yield from walk(each, *names, name)

    return set(walk(get_command(found)))


def every_agent() -> list[Agent[Any]]:
    entries = agents(ROOT / "config")
    return [load_agent(str(entry["name"]), entries) for entry in entries]


def gateways() -> list[Starlette]:
    nobody = cast(Any, None)
    meta = MetaWebhooks(nobody, nobody, app_secret="s", verify_token="v", numbers={})
    files = Files(nobody)
    with_twilio = gateway(nobody, public_url="https://mesh.example.com", auth_token="t", files=files)
    return [with_twilio, gateway(nobody, files=files, meta=meta)]


def every_way() -> set[str]:
    return (
        of_agents(every_agent())
        | {name for each in gateways() for name in of_routes("gateway", each.routes)}
        | of_routes("dashboard", dashboard(cast(Any, None)).routes)
        | of_commands(command_line)
        | {f"chat {name}" for name in NAMES}
    )


def without_a_line(ways: Iterable[str]) -> set[str]:
    return set(ways) - TESTED.keys() - NOTHING_TO_SEE.keys()


def test_every_way_to_a_document_has_its_line() -> None:
    assert not without_a_line(every_way()), "add each to tests/boundary/registry.py, with the test of its isolation"


def test_no_line_is_left_of_what_is_gone() -> None:
    assert not (TESTED.keys() | NOTHING_TO_SEE.keys()) - every_way()
    assert not TESTED.keys() & NOTHING_TO_SEE.keys()
    assert all(NOTHING_TO_SEE.values())


@pytest.mark.parametrize("test", sorted(set(TESTED.values())))
def test_every_test_that_is_named_is_there(test: str) -> None:
    file, _, name = test.partition("::")
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    assert name.startswith("test_")
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_a_path_of_the_matrix_is_probed_by_it() -> None:
    by_matrix = {way.removeprefix("skill ") for way, test in TESTED.items() if test == MATRIX}
    assert by_matrix == EVERY_PATH.keys()
    assert {skill.name for skill in (*READ_PATHS, *OWN_READ_PATHS)} <= by_matrix


# ── what is new fails until it has its line ───────────────────────────────────────────────────────────────────────


def test_a_new_handler_has_none() -> None:
    agent: Agent[None] = Agent("knowledge", opens=cast(Any, None))
    thumbnail = Skill(
        name="knowledge.get_thumbnail",
        takes=Nothing,
        returns=Nothing,
        needs="knowledge:search",
        within=timedelta(seconds=1),
    )

    @agent.handles(thumbnail)
    async def get_thumbnail(_: Nothing, ctx: Any) -> Nothing:
        return Nothing()

    assert without_a_line(of_agents([*every_agent(), agent])) == {"skill knowledge.get_thumbnail"}


def test_a_new_route_has_none() -> None:
    async def preview(_: Any) -> PlainTextResponse:
        return PlainTextResponse("")

    more = [*gateways()[0].routes, Route("/previews/{document_id}", preview)]
    assert without_a_line(of_routes("gateway", more)) == {"gateway GET /previews/{document_id}"}
    page = dashboard(cast(Any, None))
    page.add_api_route("/documents", preview)
    page.mount("/raw", Starlette())
    assert without_a_line(of_routes("dashboard", page.routes)) == {"dashboard GET /documents", "dashboard /raw"}


def test_a_new_command_has_none() -> None:
    more = typer.Typer()
    more.command("export")(lambda: None)
    more.command("doctor")(lambda: None)
    assert without_a_line(of_commands(more)) == {"command export"}
