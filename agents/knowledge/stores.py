"""What the knowledge agent works with."""

from __future__ import annotations

from dataclasses import dataclass, field

from agents.knowledge.reranking import Light
from agents.knowledge.transforming import Transforming
from mesh.ingestions import Ingestions
from mesh.ports.documents import Shelf
from mesh.ports.models import Embedder
from mesh.ports.passages import Calibrations, EmbeddingCache, PassageIndex, Reranker
from mesh.settings import DocumentReader, SearchMode


@dataclass
class Stores:
    shelf: Shelf
    passages: PassageIndex
    embedder: Embedder
    cache: EmbeddingCache | None = None
    """None: every text is embedded anew."""
    ingestions: Ingestions | None = None
    """None: nobody looks on."""
    mode: SearchMode = "calibrated"
    reranker: Reranker | None = field(default_factory=Light)
    reader: DocumentReader = "light"
    transforming: Transforming = field(default_factory=Transforming)
    calibrations: Calibrations | None = None
    """None: the defaults hold."""
