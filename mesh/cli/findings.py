"""What `adiyan doctor` has to say: one finding, one line, and what to do about it. No finding names a secret."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import urlsplit

from mesh.settings import Settings

_USERINFO = re.compile(r"//[^/@\s]*@")


class Level(StrEnum):
    FINE = "✓"
    NOTE = "!"
    BROKEN = "✗"


@dataclass(frozen=True, slots=True)
class Finding:
    about: str
    level: Level
    text: str
    todo: str = ""
    """What to do about it; empty when it is fine, or when the text says so."""


@dataclass(frozen=True, slots=True)
class Scene:
    """What is looked at: the settings in force, and what is known about a mesh on this machine."""

    settings: Settings
    running: bool
    """`adiyan up` runs in this home."""
    simulated: str
    """The simulated Twilio's address, when that mesh has one."""


def fine(about: str, text: str) -> Finding:
    return Finding(about, Level.FINE, text)


def note(about: str, text: str, todo: str = "") -> Finding:
    return Finding(about, Level.NOTE, text, todo)


def broken(about: str, text: str, todo: str = "") -> Finding:
    return Finding(about, Level.BROKEN, text, todo)


def place(url: str) -> str:
    """Where it is, without who asks: no user, no password, no options."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}"


def without_secrets(text: str, settings: Settings | None) -> str:
    """A net below the rule that no finding names one."""
    if settings is not None:
        urls = (settings.redis_url, settings.mongodb_uri, settings.qdrant_url, settings.ollama_host)
        tokens = (settings.twilio_auth_token, settings.meta_access_token, settings.meta_app_secret)
        for secret in (*tokens, settings.meta_verify_token, *(urlsplit(url).password for url in urls)):
            text = text.replace(secret, "…") if secret else text
    return _USERINFO.sub("//…@", text)
