"""Drills on what another version left in Redis: records of 0.1.0, and records with fields that nobody knows."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

from mesh.contracts.orchestrator import TAKE_TURNS
from tests.drills.drill import Drill
from tests.drills.echo import token_of
from tests.drills.play import Play
from tests.drills.verdict import Said

RECORDS = Path(__file__).parent / "records-0.1.0.json"
"""Of four chats, as version 0.1.0 wrote them: a message that is accepted, one whose turn is planned, one that is ready,
and one that was being sent. Their persons end in 1 to 4, and so do their tokens and ids."""
CHATS = 4
NUMBERED = 90_000
UNKNOWN = {"mood": "calm"}

Records = dict[str, Any]


async def mixed_version(play: Play) -> None:
    """None of it came by a webhook of this mesh; all of it was acknowledged once, so all of it is owed an outcome. Its
    webhooks come once more, and must not be taken for new messages."""
    owed: set[str] = set()
    for unknown in (False, True):
        said = [play.message(person) for person in await play.stage.people(CHATS)]
        owed |= {each.sid for each in said}
        records = _made_for(said)
        await _put(play, _with_unknown_fields(records) if unknown else records)
        play.owed = owed
        await play.drain(30, 0)
        for each in said:
            await play.post(each)
    after = [await play.say(said.person) for said in list(play.said)]
    play.owed = owed | {each.sid for each in after}


def _made_for(said: list[Said]) -> Records:
    """With these persons, tokens and ids, and as if written a second ago."""
    text = RECORDS.read_text()
    for number, each in enumerate(said, 1):
        for old, new in (
            (f"1555900000{number}", each.person.removeprefix("+")),
            (token_of(NUMBERED + number), each.token),
            (f"SM{number:032x}", each.sid),
        ):
            text = text.replace(old, new)
    jobs = dict.fromkeys(re.findall(rf"{re.escape(TAKE_TURNS.name)}:([0-9a-f]+)", text))
    for number, job in enumerate(jobs):
        text = text.replace(job, f"{said[number].sid[2:]}")
    written = max(int(at) for at in re.findall(r"\b[0-9]{13}\b", text))
    later = int(time.time() * 1000) - 1000 - written
    text = re.sub(r"\b[0-9]{13}\b", lambda at: str(int(at[0]) + later), text)
    records: Records = json.loads(re.sub(r"\b[0-9]{10}\.[0-9]+", lambda at: str(float(at[0]) + later / 1000), text))
    return records


def _with_unknown_fields(records: Records) -> Records:
    """In each record, and in each JSON that it holds."""

    def more(raw: str) -> str:
        return json.dumps({**json.loads(raw), **UNKNOWN})

    changed: Records = {}
    for key, record in records.items():
        if key.startswith(("mesh:in:", "mesh:turn:")):
            inside = {name: more(value) for name, value in record.items() if name in ("body", "reply")}
            changed[key] = {**record, **inside, **UNKNOWN}
        elif key.startswith("arq:job:"):
            job = json.loads(record)
            changed[key] = json.dumps({**job, "a": [{**job["a"][0], **UNKNOWN}], **UNKNOWN})
        else:
            changed[key] = record
    return changed


async def _put(play: Play, records: Records) -> None:
    async with play.stage.redis.pipeline(transaction=True) as change:
        for key, record in records.items():
            match record:
                case str():
                    change.set(key, record)
                case [*items]:
                    change.rpush(key, *items)
                case {"zset": scores}:
                    change.zadd(key, scores)
                case _:
                    change.hset(key, mapping=record)
        await change.execute()


DRILLS = (
    Drill(
        "mixed-version",
        "records in Redis of an older version, and records with unknown fields",
        mixed_version,
        messages=16,
        short=16,
        drain_s=45,
    ),
)
