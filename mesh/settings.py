"""Settings: the environment over `config/mesh.yaml`. A wrong one stops start-up with a sentence that names it."""

from __future__ import annotations

import difflib
import os
import re
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any, ClassVar, Literal
from urllib.parse import urlsplit

import yaml
from pydantic import Field, HttpUrl, ValidationError, field_validator, model_validator
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    YamlConfigSettingsSource,
)

from mesh.errors import Misconfigured

ROOT = Path(__file__).resolve().parent.parent
SIMULATED_SID = "AC" + "0" * 32
"""The account of the simulated Twilio."""
EVERYONE = "everyone"
IDENTITY = re.compile(r"\+[1-9][0-9]{6,14}|whatsapp:[A-Za-z0-9._-]{3,128}")

SearchMode = Literal["calibrated", "rrf", "five_signal"]
DocumentReader = Literal["light", "docling"]
QUESTION_TRANSFORMS = ("follow_ups", "parts", "acronyms")
"""What is done to questions unless it is said otherwise; `hyde` can be added where there is a chat model."""
META_SETTINGS = ("meta_access_token", "meta_app_secret", "meta_verify_token", "meta_phone_number_id", "meta_number")
META_ID = re.compile(r"[0-9]{5,32}")


@dataclass(frozen=True, slots=True)
class Watched:
    """A folder whose files are documents of `owner`'s, seen by `owner` alone or by everyone."""

    path: Path
    owner: str
    visibility: Literal["private", "global"]


class Settings(BaseSettings):
    """Each name below may be set in `config/mesh.yaml`, or in upper case in the environment."""

    model_config = SettingsConfigDict(extra="forbid", frozen=True, env_ignore_empty=True)

    # where things are
    adiyan_home: Path = Field(default=ROOT / ".adiyan", description="All data of the embedded parts and the agents.")
    adiyan_config: Path = Field(default=ROOT / "config", description="mesh.yaml, tiers.yaml and agents/*.yaml.")

    # addresses: each one that is empty is started as an embedded part
    redis_url: str = ""
    mongodb_uri: str = ""
    mongodb_database: str = "adiyan"
    qdrant_url: str = ""
    ollama_host: str = ""
    production: bool = Field(default=False, description="Refuses embedded parts and the simulated provider.")

    # models
    embedding_model: str = "multilingual-e5-small"
    embedding_dims: int = Field(default=384, ge=8, le=8192)
    embedding_query_prefix: str = "query: "
    embedding_document_prefix: str = "passage: "
    chat_model: str = Field(default="", description="A chat model of the server's. Empty: answers are quotations.")
    chat_seconds: float = Field(
        default=60, gt=0, le=600, description="The longest that one answer of the chat model may take."
    )
    chat_window: int = Field(default=16_000, ge=2_000, le=1_000_000, description="In tokens, asked for with each call.")
    search_mode: SearchMode = Field(
        default="calibrated", description="How meaning and words become one order. Measured best: calibrated."
    )
    question_transforms: str = Field(
        default=" ".join(QUESTION_TRANSFORMS),
        description="What is done to a question before it is searched for, with spaces between: follow_ups (made to "
        "stand alone), parts (asked one by one), acronyms (written out, as the documents do), hyde (a made-up answer "
        "is searched for, too: one call of the chat model for each search).",
    )
    search_reranker: str = Field(
        default="agents.knowledge.reranking:Light",
        description="What looks again at the first passages found: module:name of a class like "
        "mesh.ports.passages.Reranker. Empty: nothing does.",
    )
    speech_url: str = Field(default="", description="What transcribes voice notes, in OpenAI's HTTP form.")
    speech_model: str = "whisper-base"
    speech_seconds: float = Field(default=120, ge=1, le=900, description="The longest voice note that is listened to.")

    # the channel
    twilio_account_sid: str = Field(default="", description="Empty: the simulated Twilio is started.")
    twilio_auth_token: str = ""
    twilio_number: str = "+14155238886"
    twilio_numbers: str = Field(default="", description="Further numbers of ours, with spaces between.")
    twilio_shared_key: str = Field(
        default="",
        description="The secret that signs webhooks where a rule at Twilio says so; two, with a space between, while "
        "one replaces the other.",
    )
    twilio_api_base: str = "https://api.twilio.com"
    meta_access_token: str = Field(default="", description="Set, with those below: Meta's Cloud API, and no Twilio.")
    meta_app_secret: str = Field(default="", description="Of the app; it signs the webhooks.")
    meta_verify_token: str = Field(
        default="", description="A word of your own, told to Meta together with the address."
    )
    meta_phone_number_id: str = Field(default="", description="Meta's id of meta_number.")
    meta_number: str = ""
    meta_numbers: str = Field(
        default="", description="Further numbers of ours, each as +15551230001=106540352242922, with spaces between."
    )
    meta_api_base: str = "https://graph.facebook.com/v25.0"
    public_url: str = Field(default="", description="The address that the provider calls, exactly as configured there.")
    gateway_host: str = "127.0.0.1"
    gateway_port: int = Field(default=8080, ge=0, le=65535, description="0, or a busy one: another is picked.")

    # the dashboard
    dashboard_host: str = "127.0.0.1"
    dashboard_port: int = Field(default=8090, ge=0, le=65535, description="0, or a busy one: another is picked.")
    dashboard_open: bool = Field(
        default=False,
        description="Serve the dashboard beyond this machine, without a sign-in: only behind a proxy that has one.",
    )
    dashboard_names: str = Field(
        default="",
        description="Names under which a proxy serves it, with spaces between; loopback's are always served.",
    )

    # documents
    document_reader: DocumentReader = Field(
        default="light",
        description="docling: what Docling reads of a document comes in the place of what our own readers do, where it "
        "is as complete. It is an extra of its own (docs/decisions/0013).",
    )
    folders: str = Field(
        default="",
        description="Folders whose files are taken in every hour, one in each line: `everyone /srv/prices`, or "
        "`+15551230001 /srv/asha` for one client's own.",
    )

    # who
    system_owner: str = "+15550000000"
    unknown_tier: str = Field(default="stranger", description="The tier of senders who are not registered.")

    # behaviour
    turn_seconds: float = Field(default=60, gt=1, le=600, description="The longest that one turn may take.")
    quiet_seconds: float = Field(
        default=1.0, ge=0, le=5, description="Messages that follow one another so quickly are answered once. 0: never."
    )
    still_working_seconds: float = Field(
        default=20, ge=0, le=300, description="When a person is told, once, that it takes longer. 0: never."
    )
    catch_up_seconds: float = Field(
        default=15, ge=0, le=3600, description="How often the provider's list is looked at for lost webhooks. 0: never."
    )
    most_waiting: int = Field(default=50, ge=1, le=1000, description="Messages that may wait in one chat.")
    greet: bool = Field(
        default=True, description="Tell each person once what this is, what is kept, and how to stop it."
    )
    window_template: str = Field(
        default="",
        description="The provider's id (ContentSid) of a text that may be sent when somebody wrote more than 24 hours "
        "ago: {{1}} says that an answer waits. Empty: it waits for their next message without one.",
    )
    document_buttons: str = Field(
        default="",
        description="The provider's id (ContentSid) of a text with quick replies, whose payloads are commands such as "
        "cmd:private: {{1}} is the confirmation of a document. Empty: it comes without buttons.",
    )
    log_level: str = "INFO"

    _yaml: ClassVar[Path | None] = None

    @field_validator("system_owner", "twilio_number")
    @classmethod
    def _is_identity(cls, value: str) -> str:
        if not IDENTITY.fullmatch(value):
            raise ValueError("is not an identity such as +15551230001")
        return value

    @field_validator("twilio_numbers")
    @classmethod
    def _are_identities(cls, value: str) -> str:
        for number in value.split():
            if not IDENTITY.fullmatch(number):
                raise ValueError(f"{number!r} is not a number such as +15551230001: write them with spaces between")
        return value

    @property
    def numbers(self) -> tuple[str, ...]:
        """All of ours, the first one first."""
        if self.meta_access_token:
            return tuple(self.meta_ids)
        return tuple(dict.fromkeys((self.twilio_number, *self.twilio_numbers.split())))

    @property
    def number(self) -> str:
        """The one of ours from which the mesh writes first."""
        return self.numbers[0]

    @property
    def meta_ids(self) -> dict[str, str]:
        """Our numbers at Meta, and its ids of them."""
        further = (each.partition("=") for each in self.meta_numbers.split())
        return {self.meta_number: self.meta_phone_number_id, **{number: its for number, _, its in further}}

    @field_validator("meta_number")
    @classmethod
    def _is_number(cls, value: str) -> str:
        if value and not IDENTITY.fullmatch(value):
            raise ValueError("is not a number such as +15551230001")
        return value

    @field_validator("meta_phone_number_id")
    @classmethod
    def _is_id(cls, value: str) -> str:
        if value and not META_ID.fullmatch(value):
            raise ValueError("is not an id of Meta's such as 106540352242922: it is not the number itself")
        return value

    @field_validator("meta_numbers")
    @classmethod
    def _are_numbers_with_ids(cls, value: str) -> str:
        for each in value.split():
            number, _, its = each.partition("=")
            if not IDENTITY.fullmatch(number) or not META_ID.fullmatch(its):
                raise ValueError(f"{each!r} is not a number and its id, such as +15551230001=106540352242922")
        return value

    @field_validator("question_transforms")
    @classmethod
    def _are_transforms(cls, value: str) -> str:
        for word in value.split():
            if word not in (*QUESTION_TRANSFORMS, "hyde"):
                raise ValueError(f"{word!r} is none of {', '.join(QUESTION_TRANSFORMS)} and hyde")
        return value

    @field_validator("folders")
    @classmethod
    def _are_folders(cls, value: str) -> str:
        for line in filter(None, map(str.strip, value.splitlines())):
            who, _, path = line.partition(" ")
            if who != EVERYONE and not IDENTITY.fullmatch(who):
                raise ValueError(f"{line!r} must begin with `everyone` or a number such as +15551230001")
            if not Path(path.strip()).is_absolute():
                raise ValueError(f"{line!r} must name a folder by its whole path, such as /srv/prices")
        return value

    @property
    def watched(self) -> tuple[Watched, ...]:
        lines = (line.strip().partition(" ") for line in self.folders.splitlines() if line.strip())
        return tuple(
            Watched(
                Path(path.strip()),
                self.system_owner if who == EVERYONE else who,
                "global" if who == EVERYONE else "private",
            )
            for who, _, path in lines
        )

    @field_validator("log_level")
    @classmethod
    def _is_level(cls, value: str) -> str:
        if value.upper() not in ("DEBUG", "INFO", "WARNING", "ERROR"):
            raise ValueError("must be DEBUG, INFO, WARNING or ERROR")
        return value.upper()

    @field_validator("redis_url")
    @classmethod
    def _is_redis(cls, value: str) -> str:
        _scheme(value, "redis://", "rediss://", "unix://")
        if value and urlsplit(value).port == 0:  # reading a port that is none raises
            raise ValueError("has no usable port")
        return value

    @field_validator("mongodb_uri")
    @classmethod
    def _is_mongodb(cls, value: str) -> str:
        _scheme(value, "mongodb://", "mongodb+srv://")
        if value and not urlsplit(value).netloc:
            raise ValueError("names no host")
        return value

    @field_validator("qdrant_url", "ollama_host", "speech_url", "public_url", "twilio_api_base", "meta_api_base")
    @classmethod
    def _is_http(cls, value: str) -> str:
        if value:
            HttpUrl(_scheme(value, "http://", "https://"))
        return value.rstrip("/")

    @model_validator(mode="after")
    def _production_is_complete(self) -> Settings:
        if self.production:
            for name in (
                "redis_url",
                "mongodb_uri",
                "qdrant_url",
                "ollama_host",
                *(() if self.meta_access_token else ("twilio_account_sid",)),
                "public_url",
            ):
                if not getattr(self, name):
                    raise ValueError(f"{name} ({name.upper()}) must be set when production is true")
        if self.twilio_account_sid and not self.twilio_auth_token:
            raise ValueError("twilio_auth_token (TWILIO_AUTH_TOKEN) must be set together with twilio_account_sid")
        if self.twilio_account_sid and not self.public_url:
            raise ValueError("public_url (PUBLIC_URL) must be set together with twilio_account_sid")
        return self

    @model_validator(mode="after")
    def _meta_is_complete(self) -> Settings:
        given = [name for name in META_SETTINGS if getattr(self, name)]
        if given and self.twilio_account_sid:
            raise ValueError(
                f"{given[0]} ({given[0].upper()}) and twilio_account_sid (TWILIO_ACCOUNT_SID) are both set: a mesh "
                "writes through one provider, so clear those of the other"
            )
        for name in (*META_SETTINGS, "public_url") if given else ():
            if not getattr(self, name):
                raise ValueError(f"{name} ({name.upper()}) must be set together with {given[0]}")
        return self

    @model_validator(mode="after")
    def _dashboard_stays_here(self) -> Settings:
        if not (self.dashboard_open or is_loopback(self.dashboard_host)):
            raise ValueError(
                f"dashboard_host (DASHBOARD_HOST) {self.dashboard_host} can be reached from other machines, and the "
                "dashboard has no sign-in: use 127.0.0.1, or set dashboard_open (DASHBOARD_OPEN) behind a proxy "
                "that has one"
            )
        return self

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        sources: list[PydanticBaseSettingsSource] = [init_settings, env_settings]
        if cls._yaml is not None:
            sources.append(YamlConfigSettingsSource(settings_cls, yaml_file=cls._yaml))
        return tuple(sources)


def load(**given: Any) -> Settings:
    """Raises `Misconfigured`, whose text names the setting, where it was read, and what is wrong with it."""
    config = Path(given.get("adiyan_config") or os.environ.get("ADIYAN_CONFIG") or ROOT / "config")
    file = config / "mesh.yaml"
    if not file.is_file():
        raise Misconfigured(f"{file} does not exist: set ADIYAN_CONFIG to the folder that holds mesh.yaml.")
    if not isinstance(read_yaml(file) or {}, dict):
        raise Misconfigured(f"{file} must be a mapping of settings to values, such as `gateway_port: 8080`.")
    chosen = type("Settings", (Settings,), {"_yaml": file, "__doc__": Settings.__doc__})
    try:
        settings: Settings = chosen(**{"adiyan_config": config, **given})
    except ValidationError as error:
        raise Misconfigured(_sentence(error, file)) from error
    return settings


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def read_yaml(file: Path) -> Any:
    try:
        return yaml.safe_load(file.read_text("utf-8"))
    except yaml.YAMLError as error:
        raise Misconfigured(f"{file} is not valid YAML: {_one_line(str(error))}") from error
    except UnicodeDecodeError as error:
        raise Misconfigured(f"{file} is not text in UTF-8.") from error
    except OSError as error:
        raise Misconfigured(f"{file} can't be read: {error.strerror}") from error


def _scheme(value: str, *allowed: str) -> str:
    if value and not value.startswith(allowed):
        raise ValueError(f"must begin with {' or '.join(allowed)}")
    return value


def _sentence(error: ValidationError, file: Path) -> str:
    first = error.errors()[0]
    name = str(first["loc"][0]) if first["loc"] else ""
    if first["type"] == "extra_forbidden":
        close = difflib.get_close_matches(name, Settings.model_fields, n=1)
        hint = f" Did you mean {close[0]}?" if close else ""
        return f"{file}: there is no setting called {name}.{hint}"
    message = _one_line(first["msg"].removeprefix("Value error, "))
    if not name:
        return f"{message} (in the environment or in {file})."
    place = f"environment variable {name.upper()}" if name.upper() in os.environ else str(file)
    return f"Setting {name} ({place}): {message}; it is {first['input']!r}."


def _one_line(text: str) -> str:
    return " ".join(text.split())
