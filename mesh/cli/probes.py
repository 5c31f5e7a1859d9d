"""What `adiyan doctor` asks over the network. Each probe is bounded in time, changes nothing, and tells no secret."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx

from mesh.cli.findings import Finding, Level, Scene, broken, fine, note, place
from mesh.errors import MeshError

WITHIN_S = 4.0
MODEL_WITHIN_S = 30.0
"""A model server may have to load the model first."""
NEARLY_FULL = 0.9
MOST_EMBEDDED = 100_000
"""Passages, up to which the embedded Qdrant serves (docs/benchmarks.md)."""
TWILIO_ACCOUNTS = "/2010-04-01/Accounts"
ALIVE = "alive\n"
"""What the gateway and the dashboard say, and another program on their port hardly does."""
VOICE_TODO = "Install the extra `voice` (its packages are in pyproject.toml), or set SPEECH_URL."
UNSIGNED = {"MessageSid": "SMdoctor", "From": "whatsapp:+15550000000", "To": "whatsapp:+15550000000", "Body": ""}

OLDEST_QDRANT = (1, 19)

Probe = Callable[[Scene], Coroutine[Any, Any, list[Finding]]]


# ── stores ────────────────────────────────────────────────────────────────────────────────────────────────────────


async def redis(scene: Scene) -> list[Finding]:
    from redis.asyncio import Redis
    from redis.exceptions import AuthenticationError, RedisError

    url, where = scene.settings.redis_url, place(scene.settings.redis_url)
    client = Redis.from_url(url, socket_connect_timeout=WITHIN_S, socket_timeout=WITHIN_S)
    try:
        info = await client.info()
    except AuthenticationError:
        return [broken("Redis", f"{where} refuses the password.", "Correct the password in REDIS_URL.")]
    except (RedisError, OSError) as error:
        return [_absent("Redis", where, error, "REDIS_URL", "without it nothing is taken and nothing is answered")]
    finally:
        await client.aclose()
    return _redis_findings(info, where)


def _redis_findings(info: Mapping[str, Any], where: str) -> list[Finding]:
    if "valkey_version" in info:
        what = f"Valkey {info['valkey_version']}"
    else:
        what = f"Redis {info.get('redis_version', '?')}"
    found = []
    if not int(info.get("aof_enabled", 0)):
        found.append(
            broken(
                "Redis",
                f"{what} at {where} keeps no append-only file: what it took is lost when it restarts.",
                "Start it with --appendonly yes --appendfsync everysec.",
            )
        )
    elif info.get("aof_last_write_status", "ok") != "ok":
        found.append(broken("Redis", f"{what} at {where} can't write its append-only file.", "Look at its disk."))
    policy = info.get("maxmemory_policy")
    if policy is None:
        found.append(note("Redis", f"{what} at {where} does not say whether it evicts.", "It must be noeviction."))
    elif policy != "noeviction":
        found.append(
            broken(
                "Redis",
                f"{what} at {where} has maxmemory-policy {policy}: when it is full it may throw messages away.",
                "Start it with --maxmemory-policy noeviction.",
            )
        )
    used, most = int(info.get("used_memory", 0)), int(info.get("maxmemory", 0))
    if most and used > NEARLY_FULL * most:
        found.append(
            note("Redis", f"It is {used / most:.0%} full, and refuses messages when it is.", "Raise maxmemory.")
        )
    return found or [fine("Redis", f"{what} at {where}: appends every write, evicts nothing")]


async def mongodb(scene: Scene) -> list[Finding]:
    from pymongo import AsyncMongoClient
    from pymongo.errors import ConfigurationError, InvalidURI, OperationFailure, PyMongoError

    uri, where = scene.settings.mongodb_uri, place(scene.settings.mongodb_uri)
    milliseconds = int(WITHIN_S * 1000)
    try:
        client: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(
            uri, serverSelectionTimeoutMS=milliseconds, timeoutMS=milliseconds, appname="adiyan-doctor"
        )
    except (InvalidURI, ConfigurationError, ValueError):
        return [broken("MongoDB", f"{where} is not a MongoDB address.", "Correct MONGODB_URI.")]
    try:
        built = await client.admin.command("buildInfo")
        registered = await client[scene.settings.mongodb_database]["clients"].estimated_document_count()
    except OperationFailure as error:
        if error.code not in (13, 18):
            return [broken("MongoDB", f"{where} answers with error {error.code}.", "Look at MongoDB's log.")]
        return [
            broken("MongoDB", f"{where} refuses the user.", "Correct user, password and authSource in MONGODB_URI.")
        ]
    except (PyMongoError, OSError) as error:
        return [_absent("MongoDB", where, error, "MONGODB_URI", "without it nobody is let in")]
    finally:
        await client.close()
    return [fine("MongoDB", f"{_mongodb_name(built)} at {where}, {registered} client(s) registered")]


def _mongodb_name(built: Mapping[str, Any]) -> str:
    if "secantusVersion" in built:
        return f"SecantusDB {built['secantusVersion']}"
    return f"MongoDB {built.get('version', '?')}"


async def qdrant(scene: Scene) -> list[Finding]:
    chosen, where = scene.settings, place(scene.settings.qdrant_url)
    try:
        async with _asking(chosen.qdrant_url) as client:
            about = (await client.get("/")).json()
            version, embedded = about["version"], "embedded" in about.get("title", "")
            answer = await client.get("/collections/knowledge")
            held = answer.json()["result"] if answer.is_success else {}
            made_for = held["config"].get("metadata") or {} if held else None
    except (httpx.HTTPError, ValueError, KeyError, TypeError, AttributeError) as error:
        return [_absent("Qdrant", where, error, "QDRANT_URL", "without it nothing is found")]
    if not embedded and (told := re.match(r"(\d+)\.(\d+)", version)) and (int(told[1]), int(told[2])) < OLDEST_QDRANT:
        return [
            broken(
                "Qdrant",
                f"version {version} at {where} can't count how rare a word is among what a person may see.",
                "Update it to 1.19 or later.",
            )
        ]
    if made_for is None:
        return [fine("Qdrant", f"version {version} at {where}, no collection yet")]
    model, dims = made_for.get("embedding_model"), made_for.get("embedding_dims")
    if (model, dims) != (chosen.embedding_model, chosen.embedding_dims):
        return [
            broken(
                "Qdrant",
                f"The collection at {where} was made for {model} ({dims} numbers a text), and the settings name "
                f"{chosen.embedding_model} ({chosen.embedding_dims}).",
                "Set EMBEDDING_MODEL and EMBEDDING_DIMS back, or delete the collection: the next start makes it again.",
            )
        ]
    passages = int(held.get("points_count") or 0)
    if embedded and passages >= MOST_EMBEDDED:
        return [
            note(
                "Qdrant",
                f"The embedded one holds {passages:,} passages; it is made for up to {MOST_EMBEDDED:,}: searches and "
                "the work on its index get slow.",
                "Run a Qdrant server, set QDRANT_URL to it, and fill it from the files: `adiyan kb rebuild`.",
            )
        ]
    return [fine("Qdrant", f"version {version} at {where}, made for {model}, {passages:,} passages")]


async def models(scene: Scene) -> list[Finding]:
    from mesh.adapters.ollama import OllamaEmbedder

    chosen, where = scene.settings, place(scene.settings.ollama_host)
    try:
        async with _asking(chosen.ollama_host) as client:
            version = (await client.get("/api/version")).json().get("version", "?")
            chats = (
                not chosen.chat_model or (await client.post("/api/show", json={"model": chosen.chat_model})).is_success
            )
    except (httpx.HTTPError, ValueError, AttributeError) as error:
        return [_absent("Models", where, error, "OLLAMA_HOST", "without it nothing can be looked up")]
    found = (
        []
        if chats
        else [
            broken("Models", f"{where} has no chat model {chosen.chat_model}.", f"Run: ollama pull {chosen.chat_model}")
        ]
    )
    embedder = OllamaEmbedder(
        chosen.ollama_host,
        model=chosen.embedding_model,
        dims=chosen.embedding_dims,
        query_prefix=chosen.embedding_query_prefix,
        document_prefix=chosen.embedding_document_prefix,
        timeout=MODEL_WITHIN_S,
    )
    try:
        await embedder.probe()
    except MeshError as error:
        if error.code == "misconfigured":
            return [*found, broken("Models", error.user_text)]
        return [*found, broken("Models", f"{where} can't embed ({error.detail}).", "Look at the model server's log.")]
    finally:
        await embedder.close()
    chat = f", chat by {chosen.chat_model}" if chosen.chat_model and chats else ""
    kept = f"version {version} at {where}: {chosen.embedding_model}, {chosen.embedding_dims} numbers a text{chat}"
    return [*found, fine("Models", kept)]


async def voice(scene: Scene) -> list[Finding]:
    """Nothing is wrong without it: people are asked to write instead."""
    from mesh.adapters.speech import HttpTranscriber, spoken
    from mesh.embedded.parts import speech_installed

    chosen, where = scene.settings, place(scene.settings.speech_url)
    longest = f"{chosen.speech_model}, up to {spoken(chosen.speech_seconds)}"
    if not chosen.speech_url:
        if speech_installed() and not (chosen.production or scene.running):
            return [fine("Voice", f"`adiyan up` will hear voice notes: {longest}")]
        todo = "Set SPEECH_URL, or start the mesh again." if speech_installed() else VOICE_TODO
        return [Finding("Voice", Level.FINE, "Voice notes are not heard: people are asked to write instead.", todo)]
    transcriber = HttpTranscriber(chosen.speech_url, model=chosen.speech_model, longest_s=chosen.speech_seconds)
    try:
        await transcriber.probe()
    except MeshError as error:
        if error.code == "misconfigured":
            return [broken("Voice", error.user_text)]
        said = f"{where} can't be used ({error.detail}); voice notes are answered with a request to write instead."
        return [broken("Voice", said, "Start it, or correct SPEECH_URL.")]
    finally:
        await transcriber.close()
    return [fine("Voice", f"voice notes are heard at {where}: {longest}")]


# ── processes ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def workers(scene: Scene) -> list[Finding]:
    """By the signs of life in Redis, from every host."""
    from redis.asyncio import Redis
    from redis.exceptions import RedisError

    from mesh.configuration import agents

    client = Redis.from_url(scene.settings.redis_url, socket_connect_timeout=WITHIN_S, socket_timeout=WITHIN_S)
    try:
        alive = [key.decode().split(":")[2] async for key in client.scan_iter("mesh:worker:*", count=10_000)]
    except (RedisError, OSError):
        return []  # which is said of Redis
    finally:
        await client.aclose()
    wanted = [str(entry["name"]) for entry in agents(scene.settings.adiyan_config) if entry["copies"]]
    missing = [name for name in wanted if name not in alive]
    if not alive and not scene.running:
        return [note("Agents", "None is alive: no mesh is running.", "Start it with ./run up, or docker compose up.")]
    found = []
    if missing:
        logs = scene.settings.adiyan_home / "logs"
        found.append(
            broken(
                "Agents", f"Not alive: {', '.join(missing)}.", f"Look at their logs: {logs}, or docker compose logs."
            )
        )
    counts = ", ".join(f"{name} {alive.count(name)}" for name in sorted(set(alive)))
    return [*found, *([fine("Agents", f"alive: {counts}")] if counts else [])]


def server(name: str, path: str) -> Probe:
    """The gateway or the dashboard, as this machine reaches it."""

    async def ask(scene: Scene) -> list[Finding]:
        about = name.capitalize()
        host = getattr(scene.settings, f"{name}_host")
        here = "127.0.0.1" if host in ("0.0.0.0", "::") else host  # noqa: S104 - it is not bound here
        port = getattr(scene.settings, f"{name}_port")
        where = f"http://{here}:{port}"
        try:
            async with _asking(where) as client:
                ours = (await client.get("/healthz")).text == ALIVE
                answer = await client.get(path)
        except httpx.ConnectError:
            if scene.running:
                return [broken(about, f"It does not answer at {where}.", f"Look at {name}.log in the logs.")]
            return [note(about, f"It does not run here; port {port} is free.")]
        except httpx.HTTPError as error:
            return [_busy(about, port, type(error).__name__)]
        if not ours:
            return [_busy(about, port, f"HTTP {answer.status_code}")]
        if not answer.is_success:
            return [broken(about, f"It answers at {where}, but is not ready.", "See what is said of Redis.")]
        return [fine(about, f"ready at {where}")]

    return ask


def _busy(about: str, port: int, said: str) -> Finding:
    return note(about, f"Port {port} is taken by another program ({said}).", "`adiyan up` will pick another port.")


# ── the channel ───────────────────────────────────────────────────────────────────────────────────────────────────


async def twilio(scene: Scene) -> list[Finding]:
    chosen = scene.settings
    if scene.simulated:
        async with _asking(scene.simulated) as client:
            up = await _succeeds(client, "/healthz")
        if up:
            return [fine("Twilio", f"simulated, at {scene.simulated}")]
        return [broken("Twilio", f"The simulated one does not answer at {scene.simulated}.", "Start the mesh again.")]
    if not chosen.twilio_account_sid:
        return [
            note("Twilio", "No account is configured: `adiyan up` will simulate it.", "See docs/twilio-sandbox.md.")
        ]
    path = f"{TWILIO_ACCOUNTS}/{chosen.twilio_account_sid}.json"
    try:
        async with _asking(chosen.twilio_api_base) as client:
            answer = await client.get(path, auth=(chosen.twilio_account_sid, chosen.twilio_auth_token))
            account = answer.json() if answer.is_success else {}
    except (httpx.HTTPError, ValueError) as error:
        said = f"{place(chosen.twilio_api_base)} can't be reached ({type(error).__name__}); replies wait until it is."
        return [broken("Twilio", said, "Check this machine's way to the internet, and TWILIO_API_BASE.")]
    if not isinstance(account, dict) or not answer.is_success:
        refuses = f"It says {answer.status_code} where the account should be."
        return [
            broken(
                "Twilio",
                "It refuses the credentials (error 20003)." if answer.status_code == 401 else refuses,
                "Copy TWILIO_ACCOUNT_SID and TWILIO_AUTH_TOKEN anew from the first page of the Twilio Console.",
            )
        ]
    return _account_findings(account, chosen.twilio_auth_token)


def _account_findings(account: Mapping[str, Any], token: str) -> list[Finding]:
    found = []
    if account.get("status", "active") != "active":
        found.append(broken("Twilio", f"The account is {account['status']}.", "Ask Twilio's support."))
    primary = account.get("auth_token")
    if primary and primary != token:  # a secondary one may send, but webhooks are signed by the primary one
        found.append(
            broken(
                "Twilio",
                "TWILIO_AUTH_TOKEN is the account's secondary token: every webhook would be refused with 403.",
                "Set it to the primary one, or promote it in the Twilio Console.",
            )
        )
    if found:
        return found
    if account.get("type") == "Trial":
        return [note("Twilio", "The credentials are accepted. It is a trial account: 50 messages a day at most.")]
    return [fine("Twilio", "The credentials are accepted, the account is active")]


async def webhook(scene: Scene) -> list[Finding]:
    """Can the address that the provider calls be reached, and does it refuse what the provider did not sign?"""
    from mesh.gateway import app, meta

    base = scene.settings.public_url
    if not base:
        return []
    provider, path, forged = "Twilio", app.TWILIO_MESSAGES, app.FORGED
    if scene.settings.meta_access_token:
        provider, path, forged = "Meta", meta.META, meta.FORGED
    url = f"{base}{path}"
    try:
        async with _asking(base) as client:
            answer = await client.post(url, data=UNSIGNED)
    except httpx.HTTPError as error:
        return [_absent("Webhook", url, error, "PUBLIC_URL and the tunnel", f"{provider} can't deliver a message")]
    if answer.status_code == 403 and answer.text == forged:
        if base.startswith("http://") and not scene.simulated:
            return [note("Webhook", f"{url} is reached, but without encryption.", "Give PUBLIC_URL an https address.")]
        return [fine("Webhook", f"{url} is reached, and refuses what is not signed")]
    if answer.is_redirect:
        return [broken("Webhook", f"{url} redirects.", "Set PUBLIC_URL to where it leads.")]
    if answer.is_success:
        return [broken("Webhook", f"{url} accepts what nobody signed: it is not the gateway.", "Correct PUBLIC_URL.")]
    said = f"{url} says {answer.status_code}, and not the gateway's refusal of an unsigned message."
    return [broken("Webhook", said, "Let the tunnel or the proxy lead to the gateway's port, the path unchanged.")]


# ── asking ────────────────────────────────────────────────────────────────────────────────────────────────────────


@asynccontextmanager
async def _asking(base: str) -> AsyncIterator[httpx.AsyncClient]:
    local = urlsplit(base).hostname in ("localhost", "127.0.0.1", "::1")
    async with httpx.AsyncClient(base_url=base, timeout=WITHIN_S, trust_env=not local) as client:
        yield client


async def _succeeds(client: httpx.AsyncClient, path: str) -> bool:
    try:
        return (await client.get(path)).is_success
    except httpx.HTTPError:
        return False


def _absent(about: str, where: str, error: Exception, setting: str, else_: str) -> Finding:
    return broken(
        about,
        f"{where} can't be reached ({type(error).__name__}); {else_}.",
        f"Start it, or correct {setting}.",
    )


async def bounded(probe: Probe, scene: Scene, about: str) -> list[Finding]:
    """None may hang, whatever it is asked."""
    try:
        async with asyncio.timeout(MODEL_WITHIN_S + 2 * WITHIN_S):
            return await probe(scene)
    except TimeoutError:
        return [broken(about, "It took too long to answer.", "Look at its load and its log.")]
