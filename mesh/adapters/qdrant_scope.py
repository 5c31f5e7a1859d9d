"""Which passages a grant may see, count and change, as Qdrant is told it: each question is held to one of these."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from qdrant_client import models

from mesh.access import Grant
from mesh.envelope import pseudonym
from mesh.errors import Denied

log = logging.getLogger(__name__)

LIVE = "live"  # a word, because the embedded engine never matches a boolean
COMING = "coming"
TAGS = ("owner_identity", "visibility")
"""Who may see a chunk."""


def scope(grant: Grant) -> models.Filter:
    """What the grant may see, never empty. What says of itself neither whose it is nor who may see it is the system
    owner's alone. Raises `ValueError` for a client who is nobody."""
    owner = grant.limited_to()
    if owner is None:
        log.info("◦ read=passages sees_all=true client=%s", pseudonym(grant.client))
        return models.Filter(must=[models.Filter(should=[equals("state", LIVE), lacks("state")])])
    may_see = models.Filter(should=[equals("visibility", "global"), equals("owner_identity", owner)])
    return models.Filter(must=[equals("state", LIVE), may_see], must_not=[lacks(tag) for tag in TAGS])


def counted(grant: Grant) -> models.Filter | None:
    """Among what it counts how rare a word is: what the grant may see, by two conditions that cost nothing (the whole
    of `scope` doubles the time of a search at 40,000 passages). None is all."""
    owner = grant.limited_to()
    if owner is None:
        return None
    return models.Filter(should=[equals("visibility", "global"), equals("owner_identity", owner)])


def owned(grant: Grant, document_id: str) -> models.Filter:
    """Every passage of a document that the grant may change, live or not."""
    owner = grant.limited_to()
    owned = [] if owner is None else [equals("owner_identity", owner)]
    return models.Filter(must=[equals("document_id", document_id), *owned])


def held_to(allowed: models.Filter, within: str | Sequence[str] | None) -> models.Filter:
    if within is None:
        return allowed
    ids = [within] if isinstance(within, str) else list(within)
    return models.Filter(must=[allowed, models.FieldCondition(key="document_id", match=models.MatchAny(any=ids))])


def is_nothing(within: str | Sequence[str] | None) -> bool:
    return within is not None and not within


def without_tags(grant: Grant) -> models.Filter:
    if grant.limited_to() is not None:
        raise Denied(grant.refusal, detail="chunks without tags are the system owner's")
    return models.Filter(should=[lacks(tag) for tag in (*TAGS, "state", "document_id")])


def lacks(key: str) -> models.IsEmptyCondition:
    return models.IsEmptyCondition(is_empty=models.PayloadField(key=key))


def equals(key: str, value: str) -> models.FieldCondition:
    return models.FieldCondition(key=key, match=models.MatchValue(value=value))


def index_below(*, lt: int) -> models.FieldCondition:
    return models.FieldCondition(key="chunk_index", range=models.Range(lt=lt))
