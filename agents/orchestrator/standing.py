"""What a reply stood on when it was written, and what of it its person may still see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mesh.context import Context
from mesh.contracts.answers import Nothing, Source
from mesh.contracts.documents import LIST_DOCUMENTS
from mesh.contracts.memory import EXPORT_MEMORY


async def still_there(sources: Sequence[Source], ctx: Context[Any]) -> list[Source]:
    """Without what was deleted, forgotten or made private since."""
    there: dict[str, set[str]] = {"tool": {each.reference.partition("#")[0] for each in sources if each.kind == "tool"}}
    kinds = {source.kind for source in sources}
    if "document" in kinds and ctx.grant.covers(LIST_DOCUMENTS.needs):
        there["document"] = {each.document_id for each in (await ctx.ask(LIST_DOCUMENTS, Nothing())).documents}
    if "memory" in kinds and ctx.grant.covers(EXPORT_MEMORY.needs):
        there["memory"] = {each.fact_id for each in (await ctx.ask(EXPORT_MEMORY, Nothing())).memories}
    return [source for source in sources if source.reference.partition("#")[0] in there.get(source.kind, ())]
