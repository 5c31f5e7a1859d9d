"""How strict to be with a corpus, in a file beside the shelf. It holds numbers alone, and names nobody."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from mesh.access import Grant
from mesh.envelope import digest
from mesh.errors import Denied, Unavailable
from mesh.ports.passages import Calibration

log = logging.getLogger(__name__)

SCHEMA = 1


class _File(BaseModel):
    model_config = ConfigDict(allow_inf_nan=False)

    version: Literal[1] = Field(alias="schema")
    learnt: dict[str, Calibration]


class CalibrationFile:
    """Read again when it was written; what can't be read is as if nothing was ever learnt."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._written: tuple[int, int] | None = None
        self._known: dict[str, Calibration] = {}

    async def of(self, grant: Grant) -> Calibration | None:
        grant.limited_to()  # raises for a grant of nobody; whoever sees all has something of their own, too
        known = await asyncio.to_thread(self._read)
        return known.get(_key(grant.client)) or known.get(_key(""))

    async def keep(self, grant: Grant, learnt: Mapping[str, Calibration]) -> dict[str, Calibration]:
        if not grant.sees_all:
            raise Denied(grant.refusal, detail="a corpus is calibrated by the system owner alone")
        before = await asyncio.to_thread(self._read)
        try:
            await asyncio.to_thread(self._write, {_key(viewer): each for viewer, each in learnt.items()})
        except OSError as error:
            raise Unavailable(
                f"What was learnt could not be written to {self._path}. What was there before holds.",
                detail=type(error).__name__,
            ) from error
        return {viewer: before[_key(viewer)] for viewer in learnt if _key(viewer) in before}

    def _read(self) -> dict[str, Calibration]:
        try:
            found = self._path.stat()
            written = (found.st_mtime_ns, found.st_size)
            if written != self._written:
                self._known, self._written = _File.model_validate_json(self._path.read_bytes()).learnt, written
        except FileNotFoundError:
            self._known, self._written = {}, None
        except (OSError, ValueError) as error:
            log.warning("! calibration=unreadable error=%s", type(error).__name__)
            self._known, self._written = {}, None
        return self._known

    def _write(self, learnt: Mapping[str, Calibration]) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        content = {"schema": SCHEMA, "learnt": {key: asdict(each) for key, each in learnt.items()}}
        new = self._path.with_suffix(f".{os.getpid()}.new")
        new.write_text(json.dumps(content, indent=1), "utf-8")
        new.replace(self._path)


def _key(viewer: str) -> str:
    return digest("calibration", viewer, length=16) if viewer else "everybody"
