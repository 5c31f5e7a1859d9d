"""The analysis agent as it runs: its worker and the knowledge agent's on a real bus, with a real index and real
embeddings. The chat model is the scripted one: told what to say, and how to misbehave."""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agents.analysis import Study
from agents.analysis import agent as analysis
from agents.analysis.investigating import MOST_STEPS
from agents.knowledge import agent as knowledge
from agents.knowledge.library import Library
from agents.knowledge.stores import Stores
from mesh.access import Gate
from mesh.adapters.ollama import OllamaEmbedder
from mesh.adapters.ollama_chat import OllamaChat
from mesh.adapters.qdrant import QdrantPassages
from mesh.adapters.shelf import DiskShelf
from mesh.bus import Bus
from mesh.cards import Cards, announce
from mesh.context import Context, unwrap
from mesh.contracts.analysis import ANALYSE
from mesh.contracts.answers import Answer, Ask, Source
from mesh.contracts.documents import INGEST, Ingest
from mesh.dispatch import Agent, Dispatcher
from mesh.envelope import Request, Wire
from mesh.ports.models import ChatModel
from mesh.settings import load
from mesh.skills import Card, Skill
from mesh.testing.script import ModelScript, Step
from mesh.wiring import Parts
from mesh.worker import MeshWorker
from tests.people import ASHA, BEN, OWNER, STRANGER, Directory
from tests.processes import models, qdrant, serving
from tests.redis.stage import working

WINDOW = 16_000
PRICES = b"""# Prices

## Rooms

| Room | Price per night |
|---|---|
| Single room | 58 euros |
| Double room | 84 euros |
| Garden suite | 164 euros |

Stays of seven nights or more are 10% cheaper.
"""
SECRET = b"# Contract KANARIENVOGEL\n\nThe total fee is 7,413 euros.\n\nA deposit of 2,224 euros was paid.\n"
CANARIES = ("7,413", "7413", "2,224", "5,189", "KANARIENVOGEL", "contract.md")


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    folder = tmp_path_factory.mktemp("servers")
    scripted = serving("mesh.testing.model", ready="/api/version", log=folder / "scripted.log")
    with qdrant(folder / "qdrant") as index, models(folder / "models") as embeddings, scripted as chat:
        yield {"qdrant": index, "models": embeddings, "chat": chat}


@dataclass
class Mesh:
    bus: Bus
    redis_url: str
    directory: Directory
    gate: Gate
    stack: AsyncExitStack
    off: list[str] = field(default_factory=list)

    async def work(self, agent: Agent[Any], own: Any) -> None:
        worker = MeshWorker(agent.name, Dispatcher(agent, own, self.gate, self.bus), self.redis_url)
        await self.stack.enter_async_context(working(worker))

    async def study(self, model: ChatModel | None = None) -> None:
        """Starts the analysis agent's worker."""
        await self.work(analysis, Study(model, Cards(self.bus.redis, self.agents)))

    async def agents(self) -> list[dict[str, object]]:
        on = [name for name in ("knowledge", "elsewhere") if name not in self.off]
        return [{"name": name, "module": name, "copies": 1} for name in on]

    async def ask(self, client: str, skill: Skill[Any, Any], payload: Wire, *, seconds: float = 60) -> Any:
        request = Request(
            client=client,
            skill=skill.name,
            payload=payload.model_dump(mode="json"),
            trace="t",
            key=uuid.uuid4().hex,
            deadline=time.time() + seconds,
        )
        return unwrap(skill, await self.bus.ask(request))

    async def analyse(self, client: str, text: str, *, seconds: float = 60) -> Answer:
        answer = await self.ask(client, ANALYSE, Ask(text=text), seconds=seconds)
        assert isinstance(answer, Answer)
        return answer


@pytest.fixture
async def mesh(servers: dict[str, str], redis_url: str, tmp_path: Path) -> AsyncIterator[Mesh]:
    directory = Directory()
    for person in (ASHA, BEN):
        directory.allow(person, "knowledge:search", "analysis:ask", "documents:add")
    gate = Gate(directory, system_owner=OWNER, unknown_tier="none", fresh_for=0)
    chosen = load()
    embedder = OllamaEmbedder(
        servers["models"],
        model=chosen.embedding_model,
        dims=chosen.embedding_dims,
        query_prefix=chosen.embedding_query_prefix,
        document_prefix=chosen.embedding_document_prefix,
    )
    collection = f"test-{uuid.uuid4().hex[:12]}"
    async with AsyncExitStack() as stack, Bus(redis_url) as bus:
        stack.push_async_callback(embedder.close)
        passages = await QdrantPassages.open(servers["qdrant"], model=embedder.model, dims=384, collection=collection)
        stack.push_async_callback(passages.close)
        made = Mesh(bus, redis_url, directory, gate, stack)
        await made.work(knowledge, Library(Stores(await DiskShelf.open(tmp_path / "shelf"), passages, embedder)))
        await made.ask(OWNER, INGEST, Ingest(name="prices.md", raw=PRICES, visibility="global"))
        await made.ask(OWNER, INGEST, Ingest(name="contract.md", raw=SECRET, owner=BEN))
        yield made


@pytest.fixture
async def script(servers: dict[str, str]) -> AsyncIterator[ModelScript]:
    async with ModelScript(servers["chat"]) as opened:
        await opened.reset()
        yield opened


@pytest.fixture
async def model(servers: dict[str, str]) -> AsyncIterator[OllamaChat]:
    chat = OllamaChat(servers["chat"], model="scripted", window=WINDOW)
    yield chat
    await chat.close()


# ── by rules ──────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_sum_is_worked_out_from_a_price_that_a_document_gives(mesh: Mesh) -> None:
    await mesh.study()
    answer = await mesh.analyse(ASHA, "How much would 3 nights in the double room cost?")
    assert "3 nights × 84 euros = 252 euros" in answer.text
    assert "seven nights or more are 10% cheaper" in answer.text, "what may change the price is said"
    assert [source.name for source in answer.sources] == ["prices.md"]
    assert answer.grounded


async def test_two_rooms_are_compared_and_the_cheapest_is_picked(mesh: Mesh) -> None:
    await mesh.study()
    compared = await mesh.analyse(ASHA, "Which is cheaper, the single room or the garden suite?")
    assert "Single room is cheaper, by 106 euros" in compared.text
    cheapest = await mesh.analyse(ASHA, "What is your cheapest room?")
    assert "Single room: 58 euros per night" in cheapest.text


async def test_a_question_for_one_look_up_is_passed_on_at_once(mesh: Mesh) -> None:
    await mesh.study()
    answer = await mesh.analyse(ASHA, "How much is the double room?")
    assert (answer.grounded, answer.steps) == (False, ())


async def test_what_no_document_prices_is_not_worked_out(mesh: Mesh) -> None:
    await mesh.study()
    answer = await mesh.analyse(ASHA, "How much would 3 nights on the helicopter pad cost?")
    assert (answer.grounded, answer.text) == (False, "")


async def test_an_agent_that_is_switched_off_is_not_waited_for(mesh: Mesh) -> None:
    mesh.off.append("knowledge")
    await mesh.study()
    began = time.monotonic()
    answer = await mesh.analyse(ASHA, "How much would 3 nights in the double room cost?")
    assert not answer.grounded
    assert time.monotonic() - began < 2


# ── whose grant ───────────────────────────────────────────────────────────────────────────────────────────────────

PROBES = (
    "How much is left to pay after the deposit?",
    "How much more is the total fee than the deposit?",
    "What is the difference between the total fee and the deposit?",
    "What is the highest fee?",
    "What do 2 KANARIENVOGEL contracts come to in total?",
)


def shown(answer: Answer) -> str:
    return answer.model_dump_json()


async def test_another_persons_contract_is_in_no_investigation(mesh: Mesh) -> None:
    await mesh.study()
    assert "= *5,189 euros*" in (await mesh.analyse(BEN, PROBES[0])).text, "the probe must find it for its owner"
    for probe in PROBES:
        theirs = shown(await mesh.analyse(ASHA, probe))
        assert not [canary for canary in CANARIES if canary in theirs], probe


async def test_a_model_that_asks_for_it_gets_nothing_either(mesh: Mesh, script: ModelScript, model: OllamaChat) -> None:
    await mesh.study(model)
    tools = ("ask_documents", "search", "search_in")
    looking = ("What is the total fee of the contract KANARIENVOGEL?", "KANARIENVOGEL deposit", "contract.md")
    await script.next(*(decision(tool, text) for tool, text in zip(tools, looking, strict=True)), FINISH)
    await script.rules(Step(when="Passages:", say={"findings": [], "still_open": []}))
    answer = await mesh.analyse(ASHA, "What is in Ben's contract?")
    assert not [canary for canary in CANARIES if canary in shown(answer)]
    prompts = "".join(heard.prompt for heard in await script.heard())
    for text in (*looking, "What is in Ben's contract?"):
        prompts = prompts.replace(text, "")
    assert not [canary for canary in CANARIES if canary in prompts], "nor does the model read it"


async def test_a_client_without_the_permission_is_refused_and_one_without_documents_finds_nothing(mesh: Mesh) -> None:
    await mesh.study()
    with pytest.raises(Exception, match="isn't part of your plan"):
        await mesh.analyse(STRANGER, PROBES[0])
    mesh.directory.allow(STRANGER, "analysis:ask")
    answer = await mesh.analyse(STRANGER, "How much would 3 nights in the double room cost?")
    assert (answer.grounded, answer.steps) == (False, ("finished",)), "no tool is covered, so none is used"


# ── by a model ────────────────────────────────────────────────────────────────────────────────────────────────────


def decision(tool: str, text: str) -> Step:
    return Step(when="Tools:", say={"thought": "…", "tool": tool, "input": text})


FINISH = decision("finish", "")
SINGLE = {"claim": "The single room costs 58 euros per night.", "passage": 1, "quote": "Single room"}
NOTE = Step(when="Passages:", say={"findings": [SINGLE | {"quote": "58 euros"}], "still_open": ["and the suite?"]})


def told(answer: str, *uses: int) -> Step:
    return Step(when="Findings:", say={"answer": answer, "uses": list(uses)})


async def test_a_model_decides_notes_and_answers(mesh: Mesh, script: ModelScript, model: OllamaChat) -> None:
    await mesh.study(model)
    await script.next(
        decision("ask_documents", "How much is the single room?"),
        NOTE,
        decision("calculate", "58 * 4"),
        FINISH,
        told("Four nights cost 232 euros (4 × 58 euros).", 1, 2),
    )
    answer = await mesh.analyse(ASHA, "What would four nights, 4, in the single room come to?")
    assert answer.text == "Four nights cost 232 euros (4 × 58 euros)."
    assert {source.name for source in answer.sources} == {"prices.md", "calculation"}
    heard = await script.heard()
    assert "58 euros" not in heard[0].prompt
    assert "The single room costs 58 euros per night." in heard[2].prompt, "the next decision sees the finding"
    assert "Sleeps" not in heard[2].prompt
    assert "Price per night" not in heard[2].prompt, "and not the passage"
    assert "and the suite?" in heard[2].prompt, "and what is open"
    assert await script.left() == []


@pytest.mark.parametrize(
    "claim", ["The single room costs 49 euros.", "The single room costs 58 euros, breakfast 9 euros."]
)
async def test_an_answer_that_invents_is_replaced_by_the_quotation(
    mesh: Mesh, script: ModelScript, model: OllamaChat, claim: str
) -> None:
    await mesh.study(model)
    await script.next(decision("ask_documents", "How much is the single room?"), NOTE, FINISH, told(claim, 1))
    answer = await mesh.analyse(ASHA, "What about the single room?")
    assert answer.text == "58 euros"
    assert "49 euros" not in shown(answer)


async def test_a_quotation_that_no_passage_holds_is_no_finding(
    mesh: Mesh, script: ModelScript, model: OllamaChat
) -> None:
    await mesh.study(model)
    invented = Step(
        when="Passages:",
        say={"findings": [{"claim": "It costs 49 euros.", "passage": 1, "quote": "49 euros"}], "still_open": []},
    )
    await script.next(decision("ask_documents", "How much is the single room?"), invented, FINISH)
    answer = await mesh.analyse(ASHA, "What about the single room?")
    assert (answer.grounded, answer.text) == (False, "")


async def test_a_calculation_with_numbers_of_its_own_is_no_finding(
    mesh: Mesh, script: ModelScript, model: OllamaChat
) -> None:
    await mesh.study(model)
    await script.next(decision("calculate", "99 * 3"), FINISH, told("It costs 297 euros.", 1))
    assert not (await mesh.analyse(ASHA, "What about the single room?")).grounded


async def test_a_model_that_never_ends_is_ended(mesh: Mesh, script: ModelScript, model: OllamaChat) -> None:
    await mesh.study(model)
    endless = [decision("search", f"single room {number}") for number in range(MOST_STEPS + 5)]
    findings = [
        Step(
            when="Passages:",
            say={"findings": [{"claim": f"{n}", "passage": 1, "quote": "58 euros"}], "still_open": [f"{n}?"]},
        )
        for n in range(58, 58 + MOST_STEPS + 5)
    ]
    steps = [step for pair in zip(endless, findings, strict=True) for step in pair]
    await script.next(*steps, told("58 euros.", 1))
    answer = await mesh.analyse(ASHA, "What about the single room, 58 59 60 61 62 63 64 65 66 67 68 69?")
    assert answer.grounded
    assert len(answer.steps) == MOST_STEPS + 1
    assert answer.steps[-1] == "step cap"
    assert answer.unanswered, "what stays open is said"
    longest = max(len(heard.prompt) for heard in await script.heard())
    assert longest < 16_000, "a decision never sees what was read, so that its prompt does not grow with it"


async def test_a_call_made_twice_ends_it(mesh: Mesh, script: ModelScript, model: OllamaChat) -> None:
    await mesh.study(model)
    again = decision("ask_documents", "How much is the single room?")
    await script.next(again, NOTE, again, told("58 euros.", 1))
    answer = await mesh.analyse(ASHA, "What about the single room?")
    assert answer.text == "58 euros."
    assert answer.steps[-1] == "repeated"


@pytest.mark.parametrize("do", ["malformed", "wrong_shape", "empty", "truncated", "fail", "missing", "drop"])
async def test_where_the_model_misbehaves_the_rules_answer(
    mesh: Mesh, script: ModelScript, model: OllamaChat, do: Any
) -> None:
    await mesh.study(model)
    await script.rules(Step(do=do))
    answer = await mesh.analyse(ASHA, "How much would 3 nights in the double room cost?")
    assert "3 nights × 84 euros = 252 euros" in answer.text


async def test_a_model_that_hangs_costs_its_time_and_not_the_answer(
    mesh: Mesh, script: ModelScript, servers: Any
) -> None:
    chat = OllamaChat(servers["chat"], model="scripted", window=WINDOW, timeout=1.0)
    mesh.stack.push_async_callback(chat.close)
    await mesh.study(chat)
    await script.rules(Step(do="hang"))
    answer = await mesh.analyse(ASHA, "How much would 3 nights in the double room cost?", seconds=20)
    assert "252 euros" in answer.text


@asynccontextmanager
async def _nothing(_: Parts) -> AsyncIterator[None]:
    yield None


async def test_another_agents_skill_is_a_tool_of_the_model(mesh: Mesh, script: ModelScript, model: OllamaChat) -> None:
    card = Card(summary="tells tomorrow's weather", examples=("Will it rain?",), hears="question")
    weather = Skill(
        name="elsewhere.ask", takes=Ask, returns=Answer, needs="analysis:ask", within=timedelta(seconds=5), card=card
    )
    elsewhere: Agent[None] = Agent("elsewhere", opens=_nothing)

    @elsewhere.handles(weather)
    async def tell(ask: Ask, ctx: Context[None]) -> Answer:
        return Answer(text="Rain, 12 degrees.", sources=(Source(kind="tool", name="station"),), grounded=True)

    await announce(mesh.bus.redis, elsewhere.skills)
    await mesh.work(elsewhere, None)
    await mesh.study(model)
    noted = {"claim": "Rain, 12 degrees.", "passage": 1, "quote": "Rain, 12 degrees."}
    await script.next(
        decision("elsewhere_ask", "tomorrow"),
        Step(when="Passages:", say={"findings": [noted], "still_open": []}),
        FINISH,
        told("It rains, 12 degrees.", 1),
    )
    answer = await mesh.analyse(ASHA, "Do I need an umbrella?")
    assert answer.text == "It rains, 12 degrees."
    assert "tells tomorrow's weather" in (await script.heard())[0].prompt
