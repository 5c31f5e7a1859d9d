"""A reply on its way: pieces, links, what the provider makes of it, and what becomes of it afterwards."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePosixPath

from agents.orchestrator import words
from agents.orchestrator.alerts import Alerts
from agents.orchestrator.formatting import for_whatsapp, split
from mesh.catalogue import say
from mesh.contracts.orchestrator import ANSWER, Piece, Reply
from mesh.errors import Ambiguous, MeshError, Refused, Throttled
from mesh.lease import Lease, TurnRecord, said_and_answered
from mesh.ledger import Ledger, Undelivered
from mesh.people import People
from mesh.ports.channel import Channel

log = logging.getLogger(__name__)

MOST_SENDS = 30
MOST_PIECES = 4
"""A reply of more is sent as a file."""
SETTLE_AFTER_S = 2.0
"""A provider may list a message a moment after it took it."""
CLOCKS_DIFFER_S = 120.0
"""How far the provider's clock may be from Redis's. A reply of an earlier turn in the same words is told by its id."""
BACK_OFF_S = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
WINDOW_CLOSED, OPTED_OUT, TOO_FAST = "63016", "21610", "63018"
LATER = {WINDOW_CLOSED: "outside the 24-hour window", "63049": "withheld by Meta", "63015": "not in the sandbox"}
"""What stands in the way until the person writes again."""
FOLLOW_UP_EVERY_S = 1.0
MOST_AGAIN = 8
"""How often what was too fast is sent again: each time, one piece of a reply comes through."""

LinkOf = Callable[[Piece, str], Awaitable[str]]
"""The public address of a piece's file, for this client, for a few minutes."""


@dataclass(frozen=True, slots=True)
class Sender:
    ledger: Ledger
    channel: Channel
    people: People
    alerts: Alerts
    link_of: LinkOf
    template: str = ""
    """Sent while the window is closed; empty: the reply waits without one."""

    async def pieced(self, turn: TurnRecord, reply: Reply, waited: Sequence[str], language: str) -> Reply:
        """The reply as it is sent, with what waited before it. From here on it stays as it is: a send whose outcome is
        not clear is looked for by its words."""
        text = "\n\n".join([*waited, reply.text])
        said = "\n\n".join(waited) if reply.pieces else text
        pieces = (*self._pieces(turn, said, language), *reply.pieces)
        pieces = tuple([await self._shown(piece, turn.recipient) for piece in pieces])
        return reply.model_copy(update={"text": text, "pieces": pieces})

    async def _shown(self, piece: Piece, client: str) -> Piece:
        """A file that the channel can't show becomes a text with its link."""
        if not piece.document_id or PurePosixPath(piece.name).suffix.casefold() in self.channel.files:
            return piece
        return Piece(text=f"{piece.name}\n{await self.link_of(piece, client)}")

    def _pieces(self, turn: TurnRecord, text: str, language: str) -> tuple[Piece, ...]:
        if not text:
            return ()
        if texts := split(for_whatsapp(text), self.channel.limit, MOST_PIECES):
            return tuple(Piece(text=each) for each in texts)
        file = Piece(document_id=f"{ANSWER}{turn.turn_id}", name="answer.docx")
        return Piece(text=say("too_long_as_file", language)), file

    async def send(self, lease: Lease, turn: TurnRecord, reply: Reply) -> None:
        lease.check()
        piece = _piece(turn, reply)
        try:
            provider_id = await self.channel.send(
                sender=turn.sender,
                recipient=turn.recipient,
                text=words.fit(piece.text, self.channel.limit),
                link=await self.link_of(piece, turn.recipient) if piece.document_id else "",
                template=piece.template,
            )
        except Throttled as error:
            log.info("~ turn=%s throttled detail=%s", turn.turn_id, error.detail)
            await asyncio.sleep(max(error.retry_after, back_off(turn.attempts)))
            await lease.not_sent(turn)
        except Ambiguous as error:
            log.warning("! turn=%s ambiguous send detail=%s", turn.turn_id, error.detail)
        except Refused as error:
            log.error("! turn=%s refused code=%s", turn.turn_id, error.provider_code)
            await self._refused(lease, turn, reply, error.provider_code)
        else:
            await self._sent(lease, turn, provider_id, reply)

    async def settle(self, lease: Lease, turn: TurnRecord) -> None:
        """It may have been taken before the line broke or the worker died: look before sending again."""
        await asyncio.sleep(max(0.0, turn.sending_at + SETTLE_AFTER_S - turn.claimed_at))
        reply = turn.reply or Reply(text=words.CRASHING)
        try:
            held = await self.channel.find(
                sender=turn.sender,
                recipient=turn.recipient,
                text=words.fit(_piece(turn, reply).text, self.channel.limit),
                since=datetime.fromtimestamp((turn.first_intent_at or turn.sending_at) - CLOCKS_DIFFER_S, UTC),
            )
        except (Throttled, Ambiguous) as error:
            log.warning("! turn=%s can't be settled yet: %s", turn.turn_id, error.code)
            await asyncio.sleep(back_off(turn.claims))
            return
        for provider_id in held:
            if not await self.ledger.is_known(provider_id):
                await self._sent(lease, turn, provider_id, reply)
                return
        await lease.not_sent(turn)

    async def _sent(self, lease: Lease, turn: TurnRecord, provider_id: str, reply: Reply) -> None:
        if turn.part + 1 < len(reply.pieces):
            await lease.part_sent(turn, provider_id)
            return
        said = "\n".join(message.text for message in await self.ledger.messages(turn))
        lines = said_and_answered(said, reply)
        await lease.sent(turn, provider_id, lines[1:] if turn.kind == "notice" else lines)

    async def _refused(self, lease: Lease, turn: TurnRecord, reply: Reply, code: str) -> None:
        if code == OPTED_OUT:
            await self.people.note(turn.recipient, opted_out_at=time.time())
            await lease.silenced(turn, "sending", "opted out at the provider")
        elif reason := LATER.get(code):
            if _is_template(turn):
                await lease.silenced(turn, "sending", reason)  # what it stands for waits
            else:
                await lease.waits(turn, reason, await self._to_wait(turn, reply))
                await self._ask_for_a_word(turn, code)
        elif turn.kind != "notice" and any(piece.template for piece in reply.pieces):
            log.error("! turn=%s goes without its template", turn.turn_id)
            plain = tuple(piece.model_copy(update={"template": ""}) for piece in reply.pieces)
            await lease.not_sent(turn)
            await lease.revised(turn, reply.model_copy(update={"pieces": plain}))
        else:
            await lease.died(turn, "sending", f"the provider refused it: {code}")
            await self._alert(turn, code)

    async def _to_wait(self, turn: TurnRecord, reply: Reply) -> str:
        """As it will stand before the next reply. Of what nobody asked for, it is not said that they did."""
        left = _left(turn, reply)
        if turn.kind == "notice":
            return left
        return say("earlier_reply", (await self.people.of(turn.recipient)).language, text=left)

    async def _ask_for_a_word(self, turn: TurnRecord, code: str) -> None:
        """A reply waits for it. They are asked once a day, where there is a template for that."""
        if code == WINDOW_CLOSED and self.template:
            text = say("window_closed", (await self.people.of(turn.recipient)).language)
            day = int(time.time() // 86400)
            await self.ledger.notify(turn.chat, text, f"template {day}", template=self.template)
        await self._alert(turn, code)

    async def _alert(self, turn: TurnRecord, code: str = "") -> None:
        if turn.recipient == self.alerts.owner:
            return  # of what does not come to the owner the owner can't be told
        if code:
            await self.alerts.refused(turn.chat, code)
        else:
            await self.alerts.dead_letter(turn.chat)

    async def gave_up(self, turn: TurnRecord) -> None:
        await self._alert(turn)

    # ── afterwards ────────────────────────────────────────────────────────────────────────────────────────────────

    async def keep_following_up(self) -> None:
        """What the provider took and then could not deliver. All orchestrators do; each case is one's."""
        while True:
            try:
                while what := await self.ledger.undelivered():
                    await self._follow_up(what)
                    await self.ledger.followed_up(what)
            except MeshError as error:
                log.warning("! nothing was followed up code=%s detail=%s", error.code, error.detail)
            await asyncio.sleep(FOLLOW_UP_EVERY_S)

    async def _follow_up(self, what: Undelivered) -> None:
        turn = await self.ledger.turn(what.turn_id)
        if turn is None or turn.reply is None:
            return
        log.error("! turn=%s was not delivered code=%s", turn.turn_id, what.code)
        if what.code == OPTED_OUT:
            await self.people.note(turn.recipient, opted_out_at=time.time())
        elif what.code in LATER and not _is_template(turn):
            if await self.ledger.wait(turn, await self._to_wait(turn, turn.reply)):
                await self._ask_for_a_word(turn, what.code)
        elif what.code == TOO_FAST and (times := await self._times(turn)) < MOST_AGAIN:
            number = turn.pieces.get(what.provider_id, 0)
            pieces = turn.reply.pieces
            piece = pieces[number] if number < len(pieces) else Piece(text=turn.reply.text)
            await self.ledger.notify(turn.chat, piece.text, f"again {what.provider_id}", piece=piece, times=times + 1)
        else:
            await self.ledger.bury(turn, f"the provider could not deliver it: {what.code}")
            await self._alert(turn, what.code)

    async def _times(self, turn: TurnRecord) -> int:
        """How often it was sent again, since it was too fast."""
        messages = await self.ledger.messages(turn) if turn.kind == "notice" else []
        return int(messages[0].fields.get("Times", "0")) if messages else 0


def _is_template(turn: TurnRecord) -> bool:
    pieces = turn.reply.pieces if turn.reply else ()
    return turn.kind == "notice" and any(each.template for each in pieces)


def _piece(turn: TurnRecord, reply: Reply) -> Piece:
    return reply.pieces[turn.part] if turn.part < len(reply.pieces) else Piece(text=reply.text)


def _left(turn: TurnRecord, reply: Reply) -> str:
    """What of the reply is still to be said: the texts, and the names of files."""
    pieces = reply.pieces[turn.part if turn.state == "sending" else 0 :]
    if any(piece.document_id.startswith(ANSWER) for piece in pieces):
        return reply.text
    return "\n\n".join(piece.text or piece.name for piece in pieces) or reply.text


def back_off(times: int) -> float:
    return BACK_OFF_S[min(times, len(BACK_OFF_S) - 1)]
