"""What the mesh itself says, in six languages: one YAML file each, beside this module."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from string import Formatter

import yaml

from mesh.errors import MeshError, Misconfigured

LANGUAGES = ("en", "es", "fr", "de", "pt", "hi")


def say(key: str, language: str | None, **values: object) -> str:
    """English where we don't have the language, or don't know it ("pt-BR" is Portuguese). Raises `KeyError` for a key
    or a value that is missing: a defect of ours."""
    every = _catalogue()
    spoken = (language or "")[:2].lower()
    return every.get(spoken, every["en"])[key].format_map(values)


def say_error(error_code: str, text: str, language: str | None) -> str:
    """An error's usual words in the person's language: the default of its kind, or any text that stands in `en.yaml`.
    Other words of its own as they are."""
    if text == _defaults().get(error_code):
        key = f"error_{error_code}"
        return say(key if key in _catalogue()["en"] else "error", language)
    for key, form in _told_by_others().items():
        if found := form.fullmatch(text):
            return say(key, language, **found.groupdict())
    return text


def placeholders(text: str) -> frozenset[str]:
    return frozenset(name for _, name, _, _ in Formatter().parse(text) if name is not None)


def checked(catalogue: Mapping[str, object]) -> dict[str, dict[str, str]]:
    """By language and key. Raises `Misconfigured`, naming the first text that is missing or that differs from the
    English one in its placeholders."""
    texts: dict[str, dict[str, str]] = {}
    for language, found in catalogue.items():
        if not isinstance(found, dict) or not all(isinstance(text, str) and text for text in found.values()):
            raise Misconfigured(detail=f"{language}.yaml is not a mapping of keys to texts")
        texts[language] = found
    english = texts["en"]
    for language, found in texts.items():
        if odd := sorted(english.keys() ^ found.keys()):
            raise Misconfigured(detail=f"{language}.yaml and en.yaml have not the same keys: {odd[0]}")
        for key, text in found.items():
            if placeholders(text) != placeholders(english[key]):
                raise Misconfigured(detail=f"{language}.yaml and en.yaml fill in different things: {key}")
    return texts


@cache
def _catalogue() -> dict[str, dict[str, str]]:
    here = Path(__file__).parent
    return checked({code: yaml.safe_load((here / f"{code}.yaml").read_text("utf-8")) for code in LANGUAGES})


@cache
def _told_by_others() -> dict[str, re.Pattern[str]]:
    """What adapters and agents raise in English."""
    texts = {key: text for key, text in _catalogue()["en"].items() if key.startswith(("media_", "voice_", "document_"))}
    return {key: re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>\\S+)", re.escape(text))) for key, text in texts.items()}


@cache
def _defaults() -> dict[str, str]:
    return {kind.code: kind.default for kind in _kinds(MeshError)}


def _kinds(kind: type[MeshError]) -> Iterator[type[MeshError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from _kinds(below)
