"""What the knowledge agent works with."""

from __future__ import annotations

from dataclasses import dataclass

from mesh.ports import Embedder, PassageIndex, Shelf


@dataclass
class Stores:
    shelf: Shelf
    passages: PassageIndex
    embedder: Embedder
