"""A whole turn: from the moment at which the simulated Twilio posts a signed webhook to the moment at which it has the
reply, both on its own clock. Everything is a real process, but the model: its vectors come at once, so that what is
measured is the mesh. No chat model is configured: answers are quotations.

One person at a time, with nothing else to do (what is remembered after a reply is awaited before the next question);
then sixteen people, each of whom asks again as soon as the reply is there.
"""

from __future__ import annotations

import asyncio
import re
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from pathlib import Path

from redis.asyncio import Redis

from mesh.adapters.ollama import OllamaEmbedder
from mesh.bus import Bus
from mesh.cli.admin import add_document
from mesh.contracts.memory import REMEMBER
from mesh.contracts.orchestrator import TAKE_TURNS
from mesh.embedded.parts import http_says_ok
from mesh.embedded.supervisor import Part, Supervisor, free_port
from mesh.ledger import Ledger
from mesh.ports.people import Client
from mesh.settings import ROOT, Settings, load
from mesh.testing.phone import Phone
from mesh.up import Mesh, Started
from mesh.wiring import open_roster

TURNS = 200
WARM_UP = 20
PEOPLE = 16
EACH = 12
REPLY_WITHIN_S = 60.0
SOMEBODY = "+15551230001"
CROWD = [f"+1555400{number:04d}" for number in range(PEOPLE)]
QUESTIONS = (
    "How much is the deluxe double room per night?",
    "When is the reception open on Sunday?",
    "Until when can I cancel my room free of charge?",
    "How much does parking cost?",
    "When does breakfast start at the weekend?",
    "How much is an airport transfer?",
    "Until when does the garden close?",
    "Is the non-refundable rate refunded?",
    "When is the pool open?",
    "What does an extra bed cost?",
)
STAGES = ("webhook", "queue", "plan", "recheck", "send")
_HANDLED = re.compile(r"← skill=(\S+) .*trace=(\w+) took_ms=([\d.]+)")
_STEP = re.compile(r"(\S+) .* (\d+) ms$")


@dataclass(frozen=True)
class Timed:
    """One turn, in milliseconds. `skills` is what the orchestrator waited for, within `plan`."""

    whole: float
    stages: dict[str, float]
    skills: dict[str, float]
    grounded: bool


@dataclass
class Person:
    """`asked` holds a message's id and when its reply was there, by the provider's clock."""

    identity: str
    seq: int = 0
    asked: list[tuple[str, float]] = field(default_factory=list)


async def run() -> dict[str, object]:
    with tempfile.TemporaryDirectory(prefix="adiyan-bench-") as home:
        return await _run(Path(home))


async def _run(home: Path) -> dict[str, object]:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = (sys.executable, "-m", "mesh.testing.model", "--port", str(port))
    async with Supervisor(home / "model") as supervisor:
        await supervisor.start(Part("model-scripted", command, http_says_ok(url)))
        settings = load(adiyan_home=home / "mesh", gateway_port=0, dashboard_port=0, ollama_host=url, quiet_seconds=0)
        async with Mesh(settings) as started, Phone(started.phone) as phone, Bus(started.settings.redis_url) as bus:
            await _prepare(started, bus)
            one, crowd = Person(SOMEBODY), [Person(who) for who in CROWD]
            async with References(started.settings) as bare:
                await _asks_alone(phone, bus, bare, one, WARM_UP + TURNS)
            await asyncio.gather(*(_asks(phone, person, 1) for person in crowd))
            began = time.perf_counter()
            await asyncio.gather(*(_asks(phone, person, EACH) for person in crowd))
            took = time.perf_counter() - began
            posted = {each["message_sid"]: each["at"] for each in (await phone.log())["inbound"]}
            alone = [await _timed(bus, posted, *asked) for asked in one.asked[WARM_UP:]]
            together = [await _timed(bus, posted, *asked) for person in crowd for asked in person.asked[1:]]
    handlers = _handlers(home / "mesh" / "logs")
    p50 = _p50(turn.whole for turn in alone)
    redis, embedding = _p50(bare.redis[WARM_UP:]) * 1000, _p50(bare.embedding[WARM_UP:]) * 1000
    return {
        "p50_ms": round(p50, 1),
        "p95_ms": round(_p95([turn.whole for turn in alone]), 1),
        "by_stage": _means([turn.stages for turn in alone]),
        "plan_waits_for": _means([turn.skills for turn in alone]),
        "handlers_ms": _means([handlers[message_id[-16:]] for message_id, _ in one.asked[WARM_UP:]]),
        "at_once_p50_ms": round(_p50(turn.whole for turn in together), 1),
        "at_once_p95_ms": round(_p95([turn.whole for turn in together]), 1),
        "at_once_by_stage": _means([turn.stages for turn in together]),
        "at_once_turns_per_s": round(len(together) / took, 1),
        "redis_p50_ms": round(redis, 3),
        "embedding_p50_ms": round(embedding, 2),
        "turn_to_redis": round(p50 / redis),
        "grounded": f"{sum(turn.grounded for turn in [*alone, *together])} of {len(alone) + len(together)}",
        "quiet_window_ms": 0,
    }


async def _prepare(started: Started, bus: Bus) -> None:
    roster = await open_roster(started.settings)
    for who in (SOMEBODY, *CROWD):
        await roster.register(Client(who, who, "default"))
    await roster.close()
    for path in sorted((ROOT / "config" / "demo" / "global").iterdir()):
        await add_document(bus, started.settings, path, "", everyone=True)


async def _asks(phone: Phone, person: Person, times: int) -> None:
    for _ in range(times):
        message_id = await phone.say(person.identity, QUESTIONS[len(person.asked) % len(QUESTIONS)])
        (reply,) = await phone.replies(person.identity, person.seq, REPLY_WITHIN_S)
        person.seq = reply.seq
        person.asked.append((message_id, reply.at.timestamp()))


async def _asks_alone(phone: Phone, bus: Bus, bare: References, person: Person, times: int) -> None:
    for _ in range(times):
        await _asks(phone, person, 1)
        async with asyncio.timeout(REPLY_WITHIN_S):
            while await bus.redis.zcard(TAKE_TURNS.queue) or await bus.redis.zcard(REMEMBER.queue):
                await asyncio.sleep(0.002)
        await bare.measure()


async def _timed(bus: Bus, posted: dict[str, str], message_id: str, received_at: float) -> Timed:
    turn = await Ledger(bus.redis).turn(message_id)
    assert turn is not None
    assert turn.reply is not None
    posted_at = datetime.fromisoformat(posted[message_id]).timestamp()
    # the ledger cuts its marks to milliseconds: half of one is what it cuts on average
    marked = [at + 0.0005 for at in (turn.accepted_at, turn.planned_at, turn.ready_at, turn.sending_at)]
    spans = [(end - start) * 1000 for start, end in pairwise((posted_at, *marked, received_at))]
    steps = [_STEP.match(step) for step in turn.reply.steps]
    return Timed(
        whole=(received_at - posted_at) * 1000,
        stages=dict(zip(STAGES, spans, strict=True)),
        skills={found[1]: float(found[2]) for found in steps if found},
        grounded=bool(turn.reply.skill),
    )


def _handlers(logs: Path) -> dict[str, dict[str, float]]:
    """For each trace, what each skill's handler took in its own process."""
    found: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for file in logs.glob("*.log"):
        for skill, trace, ms in _HANDLED.findall(file.read_text("utf-8", "replace")):
            found[trace][skill] = found[trace].get(skill, 0) + float(ms)
    return found


class References:
    """A bare Redis round trip and a bare embedding call, one of each after every turn; in seconds."""

    def __init__(self, settings: Settings) -> None:
        self.redis: list[float] = []
        self.embedding: list[float] = []
        self._redis = Redis.from_url(settings.redis_url)
        self._embedder = OllamaEmbedder(
            settings.ollama_host,
            model=settings.embedding_model,
            dims=settings.embedding_dims,
            query_prefix=settings.embedding_query_prefix,
            document_prefix=settings.embedding_document_prefix,
        )

    async def __aenter__(self) -> References:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._redis.aclose()
        await self._embedder.close()

    async def measure(self) -> None:
        began = time.perf_counter()
        await self._redis.get("bench")
        middle = time.perf_counter()
        await self._embedder.queries([f"question {len(self.redis)}"])
        self.redis.append(middle - began)
        self.embedding.append(time.perf_counter() - middle)


def _means(turns: Sequence[dict[str, float]]) -> dict[str, float]:
    """Means, since they add up; in milliseconds, over all turns."""
    sums: defaultdict[str, float] = defaultdict(float)
    for turn in turns:
        for name, ms in turn.items():
            sums[name] += ms
    return {name: round(total / len(turns), 1) for name, total in sums.items()}


def _p50(numbers: Iterable[float]) -> float:
    return statistics.median(numbers)


def _p95(numbers: Sequence[float]) -> float:
    return statistics.quantiles(numbers, n=20)[-1]
