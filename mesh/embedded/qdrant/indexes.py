"""Payload indexes: the schema that a caller asks for, in the engine's form."""

from __future__ import annotations

import qdrant_edge as edge

from mesh.embedded.qdrant.fields import Fields, malformed

_SIMPLE = {
    "keyword": edge.PayloadSchemaType.Keyword,
    "integer": edge.PayloadSchemaType.Integer,
    "float": edge.PayloadSchemaType.Float,
    "geo": edge.PayloadSchemaType.Geo,
    "text": edge.PayloadSchemaType.Text,
    "bool": edge.PayloadSchemaType.Bool,
    "datetime": edge.PayloadSchemaType.Datetime,
    "uuid": edge.PayloadSchemaType.Uuid,
}
_TOKENIZERS = {
    None: None,
    "prefix": edge.TokenizerType.Prefix,
    "whitespace": edge.TokenizerType.Whitespace,
    "word": edge.TokenizerType.Word,
    "multilingual": edge.TokenizerType.Multilingual,
}
_PLACEMENT = ("type", "on_disk", "memory", "enable_hnsw", "is_tenant", "is_principal")
"""Known, and without effect here: they change speed and placement, never a result."""


def index_schema(asked: object) -> edge.PayloadSchemaType | edge.PayloadSchemaParams:
    if isinstance(asked, str):
        return _simple(asked)
    kind = asked.get("type") if isinstance(asked, dict) else None
    if kind == "text":
        return _text(asked)
    if kind == "keyword":
        return edge.KeywordIndexParams(prefix=Fields(asked, "index", *_PLACEMENT, "prefix").some_flag("prefix"))
    if kind == "integer":
        fields = Fields(asked, "index", *_PLACEMENT, "lookup", "range")
        return edge.IntegerIndexParams(lookup=fields.some_flag("lookup"), range=fields.some_flag("range"))
    return _simple(Fields(asked, "index", *_PLACEMENT).text("type"))


def _simple(name: str) -> edge.PayloadSchemaType:
    if name not in _SIMPLE:
        raise malformed(f"unknown index type `{name}`, expected one of {', '.join(_SIMPLE)}")
    return _SIMPLE[name]


def _text(asked: object) -> edge.TextIndexParams:
    own = ("tokenizer", "min_token_len", "max_token_len", "lowercase", "ascii_folding", "phrase_matching")
    fields = Fields(asked, "index", *_PLACEMENT, *own)
    tokenizer = fields.some_text("tokenizer")
    if tokenizer not in _TOKENIZERS:
        raise malformed(f"unknown tokenizer `{tokenizer}`")
    return edge.TextIndexParams(
        tokenizer=_TOKENIZERS[tokenizer],
        min_token_len=fields.some_whole("min_token_len"),
        max_token_len=fields.some_whole("max_token_len"),
        lowercase=fields.some_flag("lowercase"),
        ascii_folding=fields.some_flag("ascii_folding"),
        phrase_matching=fields.some_flag("phrase_matching"),
    )
