"""The promises of the port `ChatModel`, kept with the model that OLLAMA_HOST and CHAT_MODEL name, or with the scripted
one; and what becomes of every way in which a model or its server misbehaves, always with the scripted one."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field

from mesh.adapters.ollama_chat import OllamaChat, schema_of
from mesh.errors import Misconfigured, TimedOut, TooLong, Unavailable, Unfit
from mesh.ports.models import ChatModel
from mesh.settings import load
from mesh.testing.script import Heard, ModelScript, Step
from mesh.tokens import most_tokens
from mesh.wiring import Parts
from tests.processes import free_port, serving

WINDOW = 4_096
THINKING = "scripted-thinking"


class Hit(BaseModel):
    name: str
    page: int = Field(ge=1)


class Decision(BaseModel):
    """Nested twice, as an agent's decision is."""

    model_config = ConfigDict(extra="forbid")

    thought: str
    tool: Literal["search", "read", "answer"]
    hits: list[Hit] = Field(max_length=3)
    best: Hit | None


GOOD = {"thought": "I look.", "tool": "read", "hits": [{"name": "a.md", "page": 2}], "best": None}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("model")
    with serving("mesh.testing.model", ready="/api/version", log=folder / "model.log") as address:
        yield address


@pytest.fixture
async def script(url: str) -> AsyncIterator[ModelScript]:
    async with ModelScript(url) as opened:
        await opened.reset()
        yield opened


@pytest.fixture
async def chat(url: str, script: ModelScript) -> AsyncIterator[OllamaChat]:
    async with opened(url) as made:
        yield made


class opened:
    """An adapter that is closed afterwards."""

    def __init__(self, url: str, *, model: str = "scripted", window: int = WINDOW, timeout: float = 20, **more: Any):
        self.made = OllamaChat(url, model=model, window=window, timeout=timeout, **more)

    async def __aenter__(self) -> OllamaChat:
        return self.made

    async def __aexit__(self, *_: object) -> None:
        await self.made.close()


# ── with an honest model ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
async def honest(request: pytest.FixtureRequest) -> AsyncIterator[ChatModel]:
    host, model = os.environ.get("OLLAMA_HOST"), os.environ.get("CHAT_MODEL")
    if not (host and model):
        host, model = request.getfixturevalue("url"), "scripted"
        async with ModelScript(host) as script:
            await script.reset()
    async with opened(host, model=model, timeout=300) as made:
        yield made


async def test_an_answer_is_of_the_shape_that_was_asked_for(honest: ChatModel) -> None:
    said = await honest.answer("You plan searches in documents.", "How much is a double room?", Decision)
    assert isinstance(said, Decision)
    assert all(hit.page >= 1 for hit in said.hits)


async def test_a_model_that_chats_passes_the_probe(honest: ChatModel) -> None:
    await honest.probe()


async def test_a_model_that_the_server_does_not_have_is_named_with_its_setting(honest: ChatModel) -> None:
    honest.model = "no-such-model"
    with pytest.raises(Misconfigured, match=r"no-such-model.*CHAT_MODEL"):
        await honest.probe()
    with pytest.raises(Misconfigured, match=r"no-such-model.*CHAT_MODEL"):
        await honest.answer("", "hello", Decision)


@pytest.mark.parametrize("long", ["word " * 4_000, "कमरे का किराया " * 500, "٤" * 4_000, "🙂" * 1_000, "7" * 4_000])
async def test_a_prompt_without_room_in_the_window_is_refused_at_once(honest: ChatModel, long: str) -> None:
    with pytest.raises(TooLong):
        await honest.answer("You are brief.", long, Decision)
    with pytest.raises(TooLong):
        await honest.answer(long, "hello", Decision)


async def test_several_may_ask_at_once(honest: ChatModel) -> None:
    said = await asyncio.gather(*(honest.answer("Be brief.", f"Number {n}?", Hit) for n in range(4)))
    assert all(isinstance(each, Hit) for each in said)


# ── what is sent ──────────────────────────────────────────────────────────────────────────────────────────────────


async def test_the_model_is_told_the_schema_the_window_and_its_bounds(chat: OllamaChat, script: ModelScript) -> None:
    await script.next(Step(say=GOOD))
    said = await chat.answer("You look things up.", "How much?", Decision)
    assert said.model_dump() == GOOD
    (heard,) = await script.heard()
    assert (heard.system, heard.prompt) == ("You look things up.", "How much?")
    assert heard.options == {"num_ctx": WINDOW, "num_predict": WINDOW // 4, "temperature": 0}
    assert heard.format == schema_of(Decision)
    assert not heard.stream
    assert heard.think is None


async def test_a_model_that_thinks_is_told_not_to(url: str, script: ModelScript) -> None:
    async with opened(url, model=THINKING) as chat:
        await chat.answer("", "How much?", Decision)
    (heard,) = await script.heard()
    assert heard.think is False


def test_a_schema_is_sent_without_references() -> None:
    assert "$" not in str(schema_of(Decision))
    assert schema_of(Decision)["properties"]["hits"]["items"]["properties"]["page"] == {
        "minimum": 1,
        "title": "Page",
        "type": "integer",
    }


class Tree(BaseModel):
    name: str
    branches: list[Tree]


async def test_a_shape_that_holds_itself_is_asked_for_too(chat: OllamaChat, script: ModelScript) -> None:
    await script.next(Step(say={"name": "a", "branches": [{"name": "b", "branches": []}]}))
    said = await chat.answer("", "Draw.", Tree)
    assert said.branches[0].name == "b"


async def test_half_a_surrogate_in_a_prompt_does_no_harm(chat: OllamaChat, script: ModelScript) -> None:
    await chat.answer("\ud800", "How much? \ud83d", Decision)
    assert [heard.prompt for heard in await script.heard()] == ["How much? ?"]


# ── answers that do not fit ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("model", ["scripted", THINKING])
@pytest.mark.parametrize(
    "talk", ["Sure!\n```json\n{}\n```\nBye {{}}.", "```\n{}\n```", "{} and that is all", "Well: {}"]
)
async def test_an_answer_is_taken_out_of_its_fence_and_its_talk(
    url: str, script: ModelScript, model: str, talk: str
) -> None:
    answer = '{"name": "```{x}```", "page": 3}'
    await script.next(Step(say=talk.replace("{}", answer, 1)))
    async with opened(url, model=model) as chat:
        assert await chat.answer("", "Where?", Hit) == Hit(name="```{x}```", page=3)
    assert len(await script.heard()) == 1


async def test_thoughts_before_the_answer_are_left_out(chat: OllamaChat, script: ModelScript) -> None:
    await script.next(Step(say='<think>Perhaps {"name": "b", "page": 1}?</think>{"name": "a", "page": 3}'))
    assert await chat.answer("", "Where?", Hit) == Hit(name="a", page=3)


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (Step(do="malformed", say=GOOD), "Invalid JSON"),
        (Step(do="wrong_shape"), "should be an object"),
        (Step(do="empty"), "it was empty"),
        (Step(say="I would rather talk."), "Invalid JSON"),
        (Step(say={**GOOD, "tool": "dance"}), "tool: Input should be"),
        (Step(say={**GOOD, "mood": "fine"}), "mood: Extra inputs"),
        (Step(say={**GOOD, "hits": [{"name": "a", "page": 0}]}), "hits.0.page: "),
        (Step(say={"thought": "I"}), "tool: Field required"),
        (Step(say='{"hits":' * 300), "Invalid JSON"),
    ],
    ids=lambda value: f"{value.do}" if isinstance(value, Step) else None,
)
async def test_a_misfit_is_asked_for_once_more_and_the_model_is_told_why(
    chat: OllamaChat, script: ModelScript, bad: Step, told: str
) -> None:
    await script.next(bad, Step(say=GOOD))
    assert (await chat.answer("Look.", "How much?", Decision)).tool == "read"
    first, second = await script.heard()
    assert second.prompt.startswith(first.prompt)
    assert told in second.prompt
    assert '"thought"' in second.prompt, "the schema is in the second question"
    assert second.format == first.format


@pytest.mark.parametrize("bad", ["malformed", "wrong_shape", "empty"])
async def test_a_second_misfit_is_the_end(chat: OllamaChat, script: ModelScript, bad: Any) -> None:
    await script.next(Step(do=bad), Step(do=bad), Step(say=GOOD))
    with pytest.raises(Unfit) as caught:
        await chat.answer("", "How much?", Decision)
    assert "Decision" in caught.value.detail
    assert len(await script.left()) == 1


async def test_what_a_model_says_is_in_no_log_and_no_error(
    chat: OllamaChat, script: ModelScript, caplog: pytest.LogCaptureFixture
) -> None:
    canary = Step(say={**GOOD, "CANARY-1": "CANARY-2", "tool": "CANARY-3"})
    await script.next(canary, canary)
    with caplog.at_level("DEBUG"), pytest.raises(Unfit) as caught:
        await chat.answer("CANARY-4", "CANARY-5", Decision)
    ours = [record.getMessage() for record in caplog.records if record.name.startswith("mesh")]
    assert ours
    assert "CANARY" not in " ".join([*ours, caught.value.detail, caught.value.user_text])


@pytest.mark.parametrize("bad", [Step(do="truncated", say=GOOD), Step(do="repeat", say={"thought": "and so "})])
async def test_an_answer_that_grew_too_long_is_unfit_at_once(chat: OllamaChat, script: ModelScript, bad: Step) -> None:
    await script.next(bad, Step(say=GOOD))
    with pytest.raises(Unfit, match="another way") as caught:
        await chat.answer("", "How much?", Decision)
    assert "longer than 1024 tokens" in caught.value.detail
    assert len(await script.heard()) == 1, "a repetition is not paid for twice"


# ── servers that do not serve ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_a_failing_server_is_unavailable(chat: OllamaChat, script: ModelScript, status: int) -> None:
    await script.next(Step(do="fail", status=status))
    with pytest.raises(Unavailable) as caught:
        await chat.answer("", "How much?", Decision)
    assert f"HTTP {status}" in caught.value.detail
    assert len(await script.heard()) == 1


async def test_a_connection_that_breaks_in_the_middle_is_unavailable(chat: OllamaChat, script: ModelScript) -> None:
    await script.next(Step(do="drop"), Step(say=GOOD))
    with pytest.raises(Unavailable):
        await chat.answer("", "How much?", Decision)
    assert (await chat.answer("", "How much?", Decision)).tool == "read"


async def test_a_server_that_does_not_listen_is_unavailable() -> None:
    async with opened(f"http://127.0.0.1:{free_port()}") as chat:
        with pytest.raises(Unavailable):
            await chat.answer("", "hello", Decision)
        with pytest.raises(Unavailable):
            await chat.probe()


@asynccontextmanager
async def always(status: str, body: str) -> AsyncIterator[str]:
    """A server that answers everything alike."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}".encode())
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize("body", ["<html>hello</html>", "[]", "{}", '{"capabilities": 1}', ""])
@pytest.mark.parametrize("status", ["200 OK", "500 No"])
async def test_a_server_that_is_no_ollama_is_unavailable(body: str, status: str) -> None:
    async with always(status, body) as address, opened(address) as chat:
        with pytest.raises(Unavailable):
            await chat.answer("", "How much?", Decision)


async def test_a_server_that_counts_more_tokens_than_we_do_is_believed() -> None:
    said = {"error": {"code": 400, "message": "request (5000 tokens) exceeds the available context size (4096 tokens)"}}
    async with always("400 Bad Request", json.dumps(said)) as address, opened(address) as chat:
        with pytest.raises(TooLong):
            await chat.answer("", "How much?", Decision)


async def test_a_server_too_old_to_tell_what_a_model_can_do_is_given_the_benefit() -> None:
    async with always("200 OK", '{"model_info": {}}') as address, opened(address) as chat:
        await chat.probe()


async def test_a_model_that_went_away_is_named(chat: OllamaChat, script: ModelScript) -> None:
    await script.next(Step(do="missing"))
    with pytest.raises(Misconfigured, match=r"scripted.*CHAT_MODEL"):
        await chat.answer("", "How much?", Decision)


async def test_an_embedding_model_does_not_pass_the_probe(url: str) -> None:
    async with opened(url, model="multilingual-e5-small") as chat:
        with pytest.raises(Misconfigured, match=r"can't chat.*CHAT_MODEL"):
            await chat.probe()


async def test_a_window_that_the_model_does_not_have_is_named_at_start(url: str) -> None:
    async with opened(url, window=200_000) as chat:
        with pytest.raises(Misconfigured, match=r"CHAT_WINDOW.*200000.*131072"):
            await chat.probe()


@pytest.mark.parametrize("slow", [Step(do="hang"), Step(say=GOOD, seconds=600)])
async def test_a_server_that_does_not_answer_in_time_is_left(url: str, script: ModelScript, slow: Step) -> None:
    await script.next(slow)
    async with opened(url, timeout=0.5) as chat:
        began = time.monotonic()
        with pytest.raises(TimedOut):
            await chat.answer("", "How much?", Decision)
        assert time.monotonic() - began < 5
    assert (await hung_up(script)).ended == "gone"


async def test_the_two_tries_share_the_time(url: str, script: ModelScript) -> None:
    await script.next(Step(do="empty", seconds=0.5), Step(say=GOOD, seconds=0.5))
    async with opened(url, timeout=0.9) as chat:
        with pytest.raises(TimedOut):
            await chat.answer("", "How much?", Decision)


async def test_a_slow_answer_in_time_is_an_answer(chat: OllamaChat, script: ModelScript) -> None:
    await script.next(Step(say=GOOD, seconds=0.3))
    assert (await chat.answer("", "How much?", Decision)).tool == "read"


async def test_a_cancelled_call_hangs_up(chat: OllamaChat, script: ModelScript) -> None:
    await script.next(Step(do="hang"))
    working = asyncio.create_task(chat.answer("", "How much?", Decision))
    await heard(script)
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    assert (await hung_up(script)).ended == "gone"


async def heard(script: ModelScript) -> Heard:
    async with asyncio.timeout(10):
        while not (found := await script.heard()):
            await asyncio.sleep(0.01)
    return found[-1]


async def hung_up(script: ModelScript) -> Heard:
    async with asyncio.timeout(10):
        while not (last := await heard(script)).ended:
            await asyncio.sleep(0.01)
    return last


# ── the window ────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_nothing_is_sent_when_there_is_no_room(chat: OllamaChat, script: ModelScript) -> None:
    with pytest.raises(TooLong):
        await chat.answer("", "word " * 4_000, Decision)
    assert await script.heard() == []


async def test_the_longest_prompt_that_is_let_through_is_seen_whole(chat: OllamaChat, script: ModelScript) -> None:
    """The scripted server cuts from the front, as real ones do: the rule would not be met."""
    await script.rules(Step(when="FIRST-WORD", say=GOOD), Step(do="fail"))
    words = 4_000
    while True:
        try:
            await chat.answer("FIRST-WORD", "word " * words, Decision)
            break
        except TooLong:
            words -= 50
    assert words > 500


@pytest.mark.parametrize("evaluated", [WINDOW, WINDOW // 2 + 2, 150])
async def test_a_prompt_that_the_server_has_cut_is_told_in_the_log(
    url: str, script: ModelScript, caplog: pytest.LogCaptureFixture, evaluated: int
) -> None:
    prompt = "How much is a double room? " * 1_000
    await script.next(Step(say=GOOD), Step(say=GOOD, prompt_tokens=evaluated))
    async with opened(url, window=WINDOW * 8 if evaluated < WINDOW else WINDOW) as chat:
        await chat.answer("", prompt if evaluated < WINDOW else "How much?", Decision)
        assert "cut by the server" not in caplog.text
        await chat.answer("", prompt if evaluated < WINDOW else "How much?", Decision)
    assert "cut by the server" in caplog.text
    assert "double room" not in "".join(record.getMessage() for record in caplog.records)


@pytest.mark.parametrize(
    ("text", "real"),
    # what the worst of seven tokenizers makes of it: see `most_tokens`
    [
        ("All human beings are born free and equal in dignity and rights.", 13),
        ("Todos los seres humanos nacen libres e iguales en dignidad y derechos", 22),
        ("सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता", 70),
        ("يولد جميع الناس أحرارًا متساوين في الكرامة والحقوق", 45),
        ("Watu wote wamezaliwa huru, hadhi na haki zao ni sawa.", 23),
        ("1,234.56 98,765.43 12/31/2026", 30),
        ("👨‍👩‍👧 🧘🏻‍♀️ 🇮🇳", 34),
    ],
)
def test_a_text_is_never_taken_for_shorter_than_a_tokenizer_makes_it(text: str, real: int) -> None:
    assert real <= most_tokens(text) <= 2.5 * real


# ── the composition root ──────────────────────────────────────────────────────────────────────────────────────────


async def test_a_chat_model_is_there_when_it_is_configured(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Parts(load(ollama_host=url, chat_model=""), bus=None) as parts:  # type: ignore[arg-type]  # no bus is used
        assert parts.chat_model() is None
    async with Parts(load(ollama_host=url, chat_model="scripted", chat_window=5_000), bus=None) as parts:  # type: ignore[arg-type]  # no bus is used
        chat = parts.chat_model()
        assert chat is not None
        assert (chat.model, chat.window) == ("scripted", 5_000)
        assert (await chat.answer("", "Where?", Hit)).page == 1
    with pytest.raises(RuntimeError, match="closed"):
        await chat.answer("", "Where?", Hit)
