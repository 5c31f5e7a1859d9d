"""The passages of documents made again from their files, one document after the other."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.markup import escape

from mesh.bus import Bus
from mesh.cli.admin import ask_as_owner, called, needs
from mesh.cli.progressing import bars, documents_shown, side_by_side
from mesh.contracts.answers import Nothing
from mesh.contracts.documents import LIST_DOCUMENTS, DocumentCard
from mesh.contracts.upkeep import REBUILD, Rebuild, Rebuilt
from mesh.errors import MeshError, TimedOut
from mesh.settings import Settings
from mesh.up import running_settings


@dataclass
class Rebuilding:
    bus: Bus
    settings: Settings
    console: Console
    anew: bool
    passages: int = 0
    troubled: int = 0

    async def one(self, card: DocumentCard) -> None:
        wanted = Rebuild(document_id=card.document_id, anew=self.anew)
        try:
            rebuilt = await ask_as_owner(self.bus, self.settings, REBUILD, wanted)
        except TimedOut:
            self._trouble(card, "[yellow]![/]", "takes longer: it goes on in the background")
        except MeshError as error:
            self._trouble(card, "[red]✗[/]", escape(error.user_text))
        else:
            self.passages += rebuilt.document.chunks
            self._tell(card, rebuilt)

    def _tell(self, card: DocumentCard, rebuilt: Rebuilt) -> None:
        if rebuilt.kept:
            self._trouble(card, "[yellow]![/]", f"keeps the text that was read earlier. {escape(rebuilt.kept)}")
            return
        count, had = rebuilt.document.chunks, card.chunks
        self._say(f"[green]✓[/] {escape(card.name)}: {count} passage(s)" + ("" if count == had else f" (it had {had})"))
        for trouble in rebuilt.document.troubles:
            if trouble not in card.troubles:
                self._say(f"  [yellow]![/] {escape(trouble)}")

    def _trouble(self, card: DocumentCard, mark: str, what: str) -> None:
        self.troubled += 1
        self._say(f"{mark} {escape(card.name)}: {what}")

    def _say(self, line: str) -> None:
        self.console.print(line, soft_wrap=True)


async def rebuild(names: Sequence[str], *, anew: bool, console: Console) -> int:
    """Returns how many were not made again from their file; each of them is named."""
    settings, _ = running_settings()
    await needs(settings, "knowledge")
    async with Bus(settings.redis_url) as bus:
        known = (await ask_as_owner(bus, settings, LIST_DOCUMENTS, Nothing())).documents
        cards = [called(name, known) for name in names] if names else known
        began = time.monotonic()
        with bars(console) as progress:
            task = progress.add_task("documents", total=len(cards))
            rebuilding = Rebuilding(bus, settings, progress.console, anew)

            async def one(card: DocumentCard) -> None:
                await rebuilding.one(card)
                progress.advance(task)

            async with documents_shown(bus.redis, progress):
                await side_by_side(cards, one)
    took = max(time.monotonic() - began, 0.001)
    done, passages = len(cards) - rebuilding.troubled, rebuilding.passages
    console.print(
        f"{done} of {len(cards)} document(s), {passages} passage(s) in {took:.0f} s ({passages / took:.1f}/s)."
    )
    return rebuilding.troubled
