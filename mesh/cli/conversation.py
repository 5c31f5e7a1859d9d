"""What the demo says, and to whom: its own conversation, or one from a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mesh.errors import Malformed
from mesh.settings import IDENTITY

ASHA, BEN, STRANGER, OWNER = "+15551230001", "+15551230002", "+15559990000", "+15550000000"


class Asked(BaseModel):
    """One line of the script."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True)

    who: str = Field(alias="as", pattern=IDENTITY.pattern)
    text: str = Field(min_length=1)
    expect: list[str] = []
    forbid: list[str] = []
    shows: str = ""


def _line(who: str, text: str, shows: str, expect: Sequence[str] = (), forbid: Sequence[str] = ()) -> Asked:
    return Asked.model_validate(
        {"as": who, "text": text, "shows": shows, "expect": list(expect), "forbid": list(forbid)}
    )


SECRETS = ("7,413", "2,224")
"""Two figures of Ben's contract: nobody else may ever read them."""

CONVERSATION = (
    _line(ASHA, "How much is the deluxe double room per night?", "a table row, with its source", ["112 euros"]),
    _line(ASHA, "Until when can I cancel my room free of charge?", "one section of a policy", ["7 days before"]),
    _line(BEN, "When does breakfast start at the weekend?", "another document", ["8:00"]),
    _line(BEN, "What deposit was paid under the contract?", "his own private contract", ["2,224"]),
    _line(
        ASHA,
        "What deposit was paid under the contract of Rivera and Okafor?",
        "somebody else's contract: as if it did not exist",
        ["couldn't find"],
        SECRETS,
    ),
    _line(ASHA, "My favourite colour is teal.", "a fact, told", ["teal"]),
    _line(ASHA, "Actually, my favourite colour is green.", "and corrected", ["green"]),
    _line(ASHA, "What is my favourite colour?", "recalled as corrected", ["green"], ["teal"]),
    _line(
        BEN,
        "What is my favourite colour?",
        "another person's memory is not his",
        ["couldn't find"],
        ["green", "teal"],
    ),
    _line(
        ASHA,
        "Do you have a helicopter landing pad?",
        "no document says: so it is not known",
        ["couldn't find"],
    ),
    _line(
        STRANGER,
        "How much is a double room?",
        "not registered: the configured refusal",
        ["register"],
        ["84 euros"],
    ),
    _line(
        ASHA,
        "How much would 3 nights in the deluxe double room cost, with parking?",
        "takes several look-ups and a sum: the analysis agent",
        ["357 euros", "10% cheaper"],
    ),
    _line(
        ASHA,
        "Which is cheaper, the single room or the garden suite?",
        "a comparison",
        ["106 euros"],
    ),
    _line(BEN, "How much is left to pay after the deposit?", "from his private contract alone", ["5,189"]),
    _line(OWNER, "What is the total fee of the contract?", "the system owner sees everything", ["7,413"]),
)
NAMES = {ASHA: "Asha (default)", BEN: "Ben (gold)", STRANGER: "a stranger", OWNER: "the owner"}


def read_lines(file: Path) -> list[Asked]:
    lines = []
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Malformed(f"{file} can't be read: {error}.") from error
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            lines.append(Asked.model_validate_json(line))
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"])) or "the line"
            raise Malformed(f"{file}, line {number}: {place}: {first['msg']}.") from error
    if not lines:
        raise Malformed(f"{file} holds no question.")
    return lines
