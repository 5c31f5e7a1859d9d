"""The composition root: which adapter stands behind which port. Adapters are imported when they are asked for."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from mesh.settings import Settings

if TYPE_CHECKING:
    from mesh.adapters.mongo import MongoRoster
    from mesh.adapters.ollama import OllamaEmbedder
    from mesh.bus import Bus
    from mesh.counters import Counters
    from mesh.ingestions import Ingestions
    from mesh.ledger import Ledger
    from mesh.links import Addresses
    from mesh.people import People
    from mesh.ports.channel import Channel
    from mesh.ports.documents import Shelf
    from mesh.ports.memory import FactStore
    from mesh.ports.models import ChatModel, Transcriber
    from mesh.ports.passages import Calibrations, EmbeddingCache, PassageIndex


async def open_roster(settings: Settings) -> MongoRoster:
    from mesh.adapters.mongo import MongoRoster
    from mesh.configuration import agents, tiers

    roster = await MongoRoster.open(settings.mongodb_uri, settings.mongodb_database)
    await roster.seed(tiers(settings.adiyan_config), agents(settings.adiyan_config))
    return roster


class Parts:
    """What an agent may ask for at start. `async with` it: what was opened is closed."""

    def __init__(self, settings: Settings, bus: Bus) -> None:
        self.settings = settings
        self.bus = bus
        self._open = AsyncExitStack()

    async def __aenter__(self) -> Parts:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._open.aclose()

    def embedder(self) -> OllamaEmbedder:
        from mesh.adapters.ollama import OllamaEmbedder

        chosen = self.settings
        embedder = OllamaEmbedder(
            chosen.ollama_host,
            model=chosen.embedding_model,
            dims=chosen.embedding_dims,
            query_prefix=chosen.embedding_query_prefix,
            document_prefix=chosen.embedding_document_prefix,
        )
        self._open.push_async_callback(embedder.close)
        return embedder

    def chat_model(self) -> ChatModel | None:
        """None: no chat model is configured."""
        if not self.settings.chat_model:
            return None
        from mesh.adapters.ollama_chat import OllamaChat

        chosen = self.settings
        chat = OllamaChat(
            chosen.ollama_host, model=chosen.chat_model, window=chosen.chat_window, timeout=chosen.chat_seconds
        )
        self._open.push_async_callback(chat.close)
        return chat

    def transcriber(self) -> Transcriber | None:
        """None: voice notes can't be heard here. Nothing is configured, and `adiyan up` started nothing for it."""
        if not self.settings.speech_url:
            return None
        from mesh.adapters.speech import HttpTranscriber

        chosen = self.settings
        transcriber = HttpTranscriber(chosen.speech_url, model=chosen.speech_model, longest_s=chosen.speech_seconds)
        self._open.push_async_callback(transcriber.close)
        return transcriber

    async def roster(self) -> MongoRoster:
        """Seeded from `config/` with what it does not have yet."""
        roster = await open_roster(self.settings)
        self._open.push_async_callback(roster.close)
        return roster

    async def passages(self) -> PassageIndex:
        from mesh.adapters.qdrant import QdrantPassages

        passages = await QdrantPassages.open(
            self.settings.qdrant_url, model=self.settings.embedding_model, dims=self.settings.embedding_dims
        )
        self._open.push_async_callback(passages.close)
        return passages

    async def shelf(self) -> Shelf:
        from mesh.adapters.shelf import DiskShelf

        shelf = await DiskShelf.open(self.settings.adiyan_home / "knowledge")
        self._open.push_async_callback(shelf.close)
        return shelf

    def embedding_cache(self) -> EmbeddingCache:
        from mesh.adapters.vectors import SqliteVectors

        chosen = self.settings
        return SqliteVectors(
            chosen.adiyan_home / "knowledge" / "vectors.sqlite",
            model=chosen.embedding_model,
            dims=chosen.embedding_dims,
            prefix=chosen.embedding_document_prefix,
        )

    def calibrations(self) -> Calibrations:
        from mesh.adapters.calibrations import CalibrationFile

        return CalibrationFile(self.settings.adiyan_home / "knowledge" / "calibration.json")

    async def facts(self) -> FactStore:
        from mesh.adapters.mem0 import Mem0Facts

        return await Mem0Facts.open(
            qdrant_url=self.settings.qdrant_url,
            ollama_host=self.settings.ollama_host,
            model=self.settings.embedding_model,
            dims=self.settings.embedding_dims,
            folder=self.settings.adiyan_home / "memory",
        )

    def channel(self) -> Channel:
        """Meta's when it is configured, Twilio's otherwise: `Settings` takes no more than one of them."""
        return self._meta() if self.settings.meta_access_token else self._twilio()

    def _meta(self) -> Channel:
        from mesh.adapters.meta import MetaChannel
        from mesh.adapters.meta_echoes import Echoes

        chosen = self.settings
        channel = MetaChannel(
            chosen.meta_access_token, chosen.meta_ids, Echoes(self.bus.redis), api_base=chosen.meta_api_base
        )
        self._open.push_async_callback(channel.close)
        return channel

    def _twilio(self) -> Channel:
        from mesh.adapters.twilio import TwilioChannel

        chosen = self.settings
        channel = TwilioChannel(
            account_sid=chosen.twilio_account_sid,
            auth_token=chosen.twilio_auth_token,
            api_base=chosen.twilio_api_base,
            status_callback=f"{chosen.public_url}/whatsapp/twilio/status",
        )
        self._open.push_async_callback(channel.close)
        return channel

    def people(self) -> People:
        from mesh.people import People

        return People(self.bus.redis)

    def counters(self) -> Counters:
        from mesh.counters import Counters

        return Counters(self.bus.redis)

    def ingestions(self) -> Ingestions:
        from mesh.ingestions import Ingestions

        return Ingestions(self.bus.redis)

    def links(self) -> Addresses:
        from mesh.links import Addresses

        return Addresses(self.bus.redis, self.settings.public_url)

    def ledger(self) -> Ledger:
        from mesh.lease import Quiet
        from mesh.ledger import Caps, Ledger

        ledger = Ledger(
            self.bus.redis, quiet=Quiet(self.settings.quiet_seconds), caps=Caps(chat=self.settings.most_waiting)
        )
        self._open.push_async_callback(ledger.close)
        return ledger
