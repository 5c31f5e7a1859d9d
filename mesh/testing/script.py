"""What the scripted model (`mesh.testing.model`) is told to say, and what it has heard."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

import httpx
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue

Do = Literal[
    "say",
    "prose",
    "malformed",
    "wrong_shape",
    "empty",
    "truncated",
    "repeat",
    "fail",
    "missing",
    "drop",
    "hang",
]


def _one_or_more(value: object) -> object:
    return (value,) if isinstance(value, str) else value


class Step(BaseModel):
    """What becomes of one chat call.

    `say`, and what is done to it: `prose` wraps it in a fence and talk, `malformed` cuts its JSON, `truncated` cuts it
    because the answer grew too long, `repeat` says it over and over until `num_predict` tokens are reached. Said by
    itself: `wrong_shape` is valid JSON of no schema for an object, `empty` nothing. Not said at all: `fail` with
    `status`, `missing` as for a model that was never pulled, `drop` closes the connection in the middle of the body,
    `hang` never answers.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    do: Do = "say"
    say: JsonValue = None
    """A text as it is; anything else as JSON. None: the smallest answer that fits the schema of the call."""
    when: Annotated[tuple[str, ...], BeforeValidator(_one_or_more)] = ()
    """Only for a call that holds all of these texts, in whatever message of it."""
    seconds: float = Field(default=0, ge=0, le=3600)
    """It waits so long first."""
    status: int = Field(default=503, ge=400, le=599)
    prompt_tokens: int | None = None
    """What it reports as `prompt_eval_count`, in place of a guess."""

    def fits(self, heard: str) -> bool:
        return all(text in heard for text in self.when)


class Heard(BaseModel):
    """One chat call."""

    number: int
    model: str
    system: str
    prompt: str
    """All other messages."""
    format: JsonValue
    options: dict[str, JsonValue]
    think: JsonValue
    stream: bool
    done: str = ""
    """What the step does; `default` when none was told."""
    ended: Literal["", "answered", "gone"] = ""
    """`gone`: the caller hung up first. Empty while it works."""
    ms: float = 0


class ModelScript:
    """Drives a scripted model server. A call takes the first rule that fits; what no rule fits takes the first step of
    the script that fits; what neither fits is answered by the smallest answer of the right shape."""

    def __init__(self, base_url: str) -> None:
        # plain HTTP: a TLS context would take 70 ms to make, and never be used
        self._http = httpx.AsyncClient(base_url=base_url, timeout=30.0, trust_env=False, verify=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    async def next(self, *steps: Step) -> None:
        """Each is taken once. They take the place of what was left of the script."""
        await self._json("POST", "/simulate/script", {"next": _plain(steps)})

    async def rules(self, *steps: Step) -> None:
        """They hold for every call that they fit, and take the place of the rules before."""
        await self._json("POST", "/simulate/rules", {"rules": _plain(steps)})

    async def left(self) -> list[Step]:
        """Steps of the script that no call has taken."""
        return [Step.model_validate(each) for each in (await self._json("GET", "/simulate/script"))["next"]]

    async def heard(self) -> list[Heard]:
        """Oldest first; the newest 1,000."""
        return [Heard.model_validate(each) for each in (await self._json("GET", "/simulate/log"))["chats"]]

    async def reset(self) -> None:
        """No script, no rules, nothing heard."""
        for path in ("script", "rules", "log"):
            await self._json("DELETE", f"/simulate/{path}")

    async def _json(self, method: str, path: str, body: object = None) -> Any:
        answer = await self._http.request(method, path, json=body)
        if answer.is_error:
            raise ValueError(f"the scripted model refused: {answer.text}")
        return answer.json()


def _plain(steps: Sequence[Step]) -> list[Any]:
    return [step.model_dump(mode="json") for step in steps]
