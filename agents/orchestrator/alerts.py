"""The system's owner is told on WhatsApp of what needs them; of each thing once an hour, and never in a flood."""

from __future__ import annotations

import logging
import time

from mesh.catalogue import say
from mesh.counters import Counters
from mesh.errors import MeshError
from mesh.ledger import Ledger
from mesh.people import People

log = logging.getLogger(__name__)

HOUR_S = 3600
MOST_AN_HOUR = 10
UNANSWERED = 5
"""So many questions without an answer in an hour are worth a word."""


class Alerts:
    """Goes the way of a reply, through the ledger. What can't be told is logged: it must not hold up a chat."""

    def __init__(self, ledger: Ledger, counters: Counters, people: People, *, number: str, owner: str) -> None:
        self._ledger = ledger
        self._counters = counters
        self._people = people
        self._chat = f"{number}|{owner}"
        self.owner = owner

    async def dead_letter(self, chat: str) -> None:
        await self._tell("owner_dead_letter", chat, chat=_person(chat))

    async def refused(self, chat: str, code: str) -> None:
        await self._tell("owner_refused", code, code=code, what=_person(chat))

    async def wants_human(self, client: str, turn: str) -> None:
        """Never held back: they were told that a person comes."""
        await self._tell("owner_human", turn, held_back=False, chat=client)

    async def unanswered(self) -> None:
        """Counts one; tells when there are many."""
        try:
            count = await self._counters.count("unanswered", HOUR_S)
        except MeshError:
            return
        if count >= UNANSWERED:
            await self._tell("owner_unanswered", "", count=count)

    async def _tell(self, key: str, about: str, *, held_back: bool = True, **values: object) -> None:
        try:
            if not await self._counters.first(f"told {key} {about}", HOUR_S):
                return
            told = await self._counters.count("told", HOUR_S)
            if told > MOST_AN_HOUR and held_back:
                log.warning("! the owner is not told any more in this hour: %s", key)
                return
            language = (await self._people.of(self.owner)).language
            await self._ledger.notify(self._chat, say(key, language, **values), f"{key} {about} {time.time()}")
        except MeshError as error:
            log.warning("! the owner can't be told what=%s code=%s detail=%s", key, error.code, error.detail)


def _person(chat: str) -> str:
    return chat.partition("|")[2]
