"""The commands. What they need is imported when they run, so that `--help` is quick."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.markup import escape

from mesh.cli.printing import print_notes, print_sheet, show, table
from mesh.errors import Malformed, MeshError

T = TypeVar("T")

app = typer.Typer(
    name="adiyan",
    help="A mesh of chat agents behind WhatsApp that answers from a person's own documents and memory.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
clients = typer.Typer(no_args_is_help=True, help="Who may write, and on which tier.")
kb = typer.Typer(no_args_is_help=True, help="The documents that answers stand on.")
tiers = typer.Typer(
    no_args_is_help=True,
    help="What a client may do, by the tier that it is on.",
    epilog="Examples: [bold]adiyan tiers show gold[/]   [bold]adiyan tiers grant gold documents:publish[/]",
)
agents = typer.Typer(
    no_args_is_help=True,
    help="Who does the work, in how many processes.",
    epilog="Examples: [bold]adiyan agents list[/]   [bold]adiyan agents scale knowledge 3[/]",
)
app.add_typer(clients, name="clients")
app.add_typer(tiers, name="tiers")
app.add_typer(agents, name="agents")
app.add_typer(kb, name="kb")
console = Console(highlight=False)

TierName = Annotated[str, typer.Argument(help="A tier, as MongoDB has it.", show_default=False)]
AgentName = Annotated[str, typer.Argument(help="An agent, as MongoDB has it.", show_default=False)]
Permissions = Annotated[
    list[str], typer.Argument(help="Each area:verb, such as documents:publish.", show_default=False)
]
Identity = Annotated[str, typer.Argument(help="A number such as +15551230001, or whatsapp:<id>.", show_default=False)]


def finish(work: Coroutine[Any, Any, T]) -> T:
    """Runs to the end; Ctrl-C ends it quietly with 130."""
    try:
        return asyncio.run(work)
    except KeyboardInterrupt:
        raise SystemExit(130) from None


@app.command(epilog="Example: [bold]adiyan up[/]")
def up() -> None:
    """Starts the whole mesh on this machine, and keeps it running until Ctrl-C.

    What has no address in the environment or in config/mesh.yaml is started as an embedded part.
    """
    from mesh import logs
    from mesh.settings import load

    settings = load()
    logs.set_up("up", "WARNING")

    async def run() -> None:
        from mesh.up import Mesh

        async with Mesh(settings, console.print) as started:
            console.print(f"[bold green]●[/] The mesh is up in {started.seconds:.1f} s. Ctrl-C ends it.")
            provider = "meta" if started.settings.meta_access_token else "twilio"
            console.print(f"  webhook    {started.settings.public_url}/whatsapp/{provider}")
            console.print(f"  dashboard  [bold]{started.dashboard}[/]")
            if started.phone:
                console.print(f"  chat page  [bold]{started.phone}[/]   or: ./run chat --as +15551230001")
            console.print(f"  data       {settings.adiyan_home}   logs {settings.adiyan_home / 'logs'}")
            try:
                await asyncio.Event().wait()
            finally:
                console.print("Stopping …")

    from mesh.process import until_signalled

    finish(until_signalled(run()))
    console.print("Stopped. Nothing is running.")


@app.command(epilog="Example: [bold]adiyan run knowledge[/]")
def run(name: Annotated[str, typer.Argument(help="gateway, dashboard, or an agent of config/agents.")]) -> None:
    """Runs one process: the gateway, the dashboard, or one agent.

    It joins a running mesh, or the configured addresses.
    """
    from mesh.process import start

    raise SystemExit(start(name))


@app.command(
    epilog="Examples: [bold]adiyan demo[/]   [bold]adiyan demo --docs FOLDER --ask QUESTIONS.jsonl --json OUT.json[/]"
)
def demo(
    docs: Annotated[
        Path | None,
        typer.Option(help="FOLDER/global/ is for everyone, FOLDER/+15551230002/ for that client.", show_default=False),
    ] = None,
    ask: Annotated[
        Path | None,
        typer.Option(help='Lines of {"as", "text", "expect": […], "forbid": […]}, sent in order.', show_default=False),
    ] = None,
    json_out: Annotated[Path | None, typer.Option("--json", help="Where the report goes.", show_default=False)] = None,
    keep: Annotated[bool, typer.Option(help="Leave the mesh running afterwards, until Ctrl-C.")] = False,
    channel: Annotated[
        bool, typer.Option("--channel", help="Files, voice notes, commands, silence, and a provider that misbehaves.")
    ] = False,
) -> None:
    """Starts a mesh with its own data, plays a conversation as signed webhooks, and shows every reply.

    Exits 0 only when every expectation held.
    """
    from mesh import logs
    from mesh.cli.demo import play
    from mesh.process import until_signalled
    from mesh.settings import load

    if (docs is None) != (ask is None):
        raise Malformed("--docs and --ask go together: a folder of documents, and a file of questions.")
    logs.set_up("demo", "ERROR")
    if channel and (docs or keep):
        raise Malformed("--channel plays its own scenes: it takes no --docs, --ask or --keep.")
    if channel:
        from mesh.cli.channel import play as play_channel

        playing = play_channel(load(), console, json_out=json_out)
    else:
        playing = play(load(), console, docs=docs, ask=ask, json_out=json_out, keep=keep)
    code = finish(until_signalled(playing))
    raise SystemExit(130 if code is None else code)


@app.command(epilog="Example: [bold]adiyan chat --as +15551230001[/]")
def chat(
    as_: Annotated[str, typer.Option("--as", help="Whose phone this is.")] = "+15551230001",
) -> None:
    """A WhatsApp conversation in the terminal, with a running mesh whose provider is the simulated Twilio."""
    from mesh.cli.chat import converse
    from mesh.up import running_settings

    _, phone = running_settings()
    if not phone:
        raise MeshError(
            "This mesh sends through a real Twilio account: write to it from WhatsApp. "
            "`adiyan chat` needs a mesh that was started without TWILIO_ACCOUNT_SID."
        )
    finish(converse(phone, _identity(as_), console))


@clients.command(epilog="Example: [bold]adiyan clients register +15551230001 --name Asha --tier gold[/]")
def register(
    identity: Identity,
    name: Annotated[str, typer.Option(help="What to call them.")] = "",
    tier: Annotated[str, typer.Option(help="One of config/tiers.yaml, as MongoDB has it now.")] = "default",
    block: Annotated[bool, typer.Option("--block", help="Let this number do nothing at all.")] = False,
) -> None:
    """Adds a client, or changes its name and tier. Safe to run twice."""
    from mesh.cli.admin import register_client

    console.print(escape(finish(register_client(_identity(identity), name, tier, blocked=block))))


@clients.command("list")
def list_clients() -> None:
    """Every client, with its tier and what that covers."""
    from mesh.cli.admin import all_clients

    rows = finish(all_clients())
    if not rows:
        console.print("No client yet. Add one: [bold]adiyan clients register +15551230001 --name Asha[/]")
        return
    _table(("identity", "name", "tier", "may"), rows)


@clients.command("waiting", epilog="Example: [bold]adiyan clients waiting[/]")
def waiting_clients() -> None:
    """Who asked for a human: the mesh is silent to them until they are handed back."""
    from mesh.cli.handing import handed_over

    rows = finish(handed_over())
    if not rows:
        console.print("Nobody waits for a human.")
        return
    _table(("identity", "since"), rows)


@clients.command("hand-back", epilog="Example: [bold]adiyan clients hand-back +15551230001[/]")
def hand_back(identity: Identity) -> None:
    """The mesh answers this person again, and tells them so. Safe to run twice."""
    from mesh.cli.handing import hand_back

    console.print(escape(finish(hand_back(_identity(identity)))))


@tiers.command("list", epilog="Example: [bold]adiyan tiers list[/]")
def list_tiers() -> None:
    """Every tier: how many clients are on it, what it permits, and how it refuses."""
    from mesh.cli.listing import all_tiers

    print_sheet(console, finish(all_tiers()))


@tiers.command("show", epilog="Example: [bold]adiyan tiers show gold[/]")
def show_tier(name: TierName) -> None:
    """What a tier permits in words, which skills that opens, who is on it; and how config/tiers.yaml differs."""
    from mesh.cli.listing import one_tier

    print_sheet(console, finish(one_tier(name)))


@tiers.command(epilog="Example: [bold]adiyan tiers grant gold documents:publish[/]")
def grant(name: TierName, permissions: Permissions) -> None:
    """Adds permissions to a tier. Its clients have them within two seconds."""
    _permit(name, permissions, granted=True)


@tiers.command(epilog="Example: [bold]adiyan tiers revoke gold documents:publish[/]")
def revoke(name: TierName, permissions: Permissions) -> None:
    """Takes permissions from a tier. Its clients lose them within two seconds."""
    _permit(name, permissions, granted=False)


def _permit(name: str, permissions: list[str], *, granted: bool) -> None:
    from mesh.cli.listing import permit

    changed, notes = finish(permit(name, permissions, grant=granted))
    console.print(escape(changed), soft_wrap=True)
    print_notes(notes)


@agents.command("list", epilog="Example: [bold]adiyan agents list[/]")
def list_agents() -> None:
    """Every agent: its module and copies, the workers that live, and what they have done since they began."""
    from mesh.cli.listing import all_agents

    print_sheet(console, finish(all_agents()))


@agents.command("show", epilog="Example: [bold]adiyan agents show knowledge[/]")
def show_agent(name: AgentName) -> None:
    """An agent's workers, its queue, and its skills: what each needs, and which tiers have that."""
    from mesh.cli.listing import one_agent

    print_sheet(console, finish(one_agent(name)))


@agents.command(
    "scale", epilog="Examples: [bold]adiyan agents scale knowledge 3[/]   [bold]adiyan agents scale memory 0[/]"
)
def scale_agent(
    name: AgentName,
    copies: Annotated[int, typer.Argument(help="How many processes; 0 switches it off.", show_default=False)],
) -> None:
    """Sets how many processes an agent has. A running mesh starts and stops them within two seconds."""
    from mesh.cli.listing import scale

    console.print(escape(finish(scale(name, copies))), soft_wrap=True)


@app.command(
    epilog="Examples: [bold]adiyan queues[/]   [bold]adiyan queues --watch[/]   [bold]adiyan queues --json | jq[/]"
)
def queues(
    watch: Annotated[bool, typer.Option("--watch", help="Look again every second, until Ctrl-C.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="For a program: a list of objects.")] = False,
) -> None:
    """What waits and runs for each agent, how long the oldest job has waited, and how many workers live."""
    from mesh.cli import watching
    from mesh.process import until_signalled

    if watch and as_json:
        raise Malformed("--watch is for a person, --json for a program. Choose one.")

    async def look() -> None:
        async with watching.open_queues() as opened:
            if watch:
                await watching.watch(opened, console)
            elif as_json:
                print(json.dumps(await watching.as_json(opened), indent=2))
            else:
                show(console, await opened.shown())

    finish(until_signalled(look()))


@kb.command(
    epilog="Examples: [bold]adiyan kb add prices.md --global[/]   "
    "[bold]adiyan kb add contract.pdf --owner +15551230002[/]"
)
def add(
    files: Annotated[list[Path], typer.Argument(help="Files, or folders whose files are added.", show_default=False)],
    owner: Annotated[str, typer.Option(help="Whose document it is; the system owner's if not given.")] = "",
    everyone: Annotated[bool, typer.Option("--global", help="Visible to every client.")] = False,
) -> None:
    """Adds documents, pictures and scans, or replaces changed ones. Says what could not be read, and why."""
    from mesh.cli.admin import add_documents

    owner = _identity(owner) if _one_of(owner, everyone) else ""
    if finish(add_documents(files, owner, everyone=everyone, console=console)):
        sys.exit(1)


@kb.command(
    epilog="Examples: [bold]adiyan kb watch ~/prices --global[/]   "
    "[bold]adiyan kb watch ~/asha --owner +15551230001 --once[/]"
)
def watch(
    folder: Annotated[Path, typer.Argument(help="Whose files become documents, and stay so.", show_default=False)],
    owner: Annotated[str, typer.Option(help="Whose documents they are; the system owner's if not given.")] = "",
    everyone: Annotated[bool, typer.Option("--global", help="Visible to every client.")] = False,
    every: Annotated[float, typer.Option(min=0.5, max=3600, help="Seconds between two looks.")] = 2.0,
    once: Annotated[bool, typer.Option("--once", help="One look, for a cron of your own.")] = False,
) -> None:
    """Takes in a folder's files, and then whatever changes in it. A file that goes is withdrawn: an old price list is
    not quoted any more.

    Folders in the setting `folders` are looked at every hour without this.
    """
    from mesh.cli.following import watch as follow

    owner = _identity(owner) if _one_of(owner, everyone) else ""
    trouble = finish(follow(folder.absolute(), owner, console, everyone=everyone, every_s=every, once=once))
    raise SystemExit(1 if trouble else 0)


@kb.command("list")
def list_documents(
    as_: Annotated[str, typer.Option("--as", help="As this client sees it; everything if not given.")] = "",
) -> None:
    """The documents, who owns them, who can see them, and what could not be read in them."""
    from mesh.cli.admin import all_documents

    rows = finish(all_documents(_identity(as_) if as_ else ""))
    if not rows:
        console.print("No document yet. Add one: [bold]adiyan kb add FILE --global[/]")
        return
    _table(("name", "owner", "visible to", "chunks", "size", "added", "not read"), rows)


@kb.command("show", epilog="Examples: [bold]adiyan kb show prices.md[/]   [bold]adiyan kb show prices.md --passages[/]")
def show_document(
    name: Annotated[str, typer.Argument(help="As `kb list` has it, or owner/name.", show_default=False)],
    as_: Annotated[str, typer.Option("--as", help="As this client sees it; as the owner if not given.")] = "",
    passages: Annotated[bool, typer.Option("--passages", help="Also the passages, with their headings.")] = False,
) -> None:
    """One document: what was read of each page, slide or sheet, how, and what could not be."""
    from mesh.cli.documents import shown

    parts, kept = finish(shown(name, _identity(as_) if as_ else ""))
    print_sheet(console, parts)
    if passages:
        console.print()
        print_sheet(console, kept)


@kb.command("withheld", epilog='Example: [bold]adiyan kb withheld +15551230002 "What is the fee?"[/]')
def withheld_from(
    client: Identity,
    question: Annotated[str, typer.Argument(help="As the client asked it.", show_default=False)],
) -> None:
    """Why a client was not told something: by read path, the rule, how much matched, and why it was held back.

    Counts alone, no content and no names.
    """
    from mesh.cli.withheld import why

    print_sheet(console, finish(why(_identity(client), question)))


@kb.command("migrate", epilog="Examples: [bold]adiyan kb migrate --dry-run[/]   [bold]adiyan kb migrate[/]")
def migrate_chunks(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")] = False,
) -> None:
    """Makes private what does not say who may see it: passages that an earlier version wrote. Safe to run twice.

    Until then they are the system owner's alone. They become their document's owner's, or the system owner's.
    """
    from mesh.cli.migrating import tag_chunks

    count, sheet = finish(tag_chunks(console, dry_run=dry_run))
    if not count:
        console.print("Nothing to do: every passage says who may see it.")
        return
    print_sheet(console, sheet)
    console.print(f"{count} passage(s) {'would become' if dry_run else 'became'} private.")


@app.command(epilog="Examples: [bold]adiyan migrate --dry-run[/]   [bold]adiyan migrate[/]")
def migrate(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")] = False,
) -> None:
    """Brings every store up to the version of this release, as starting it does. Safe to run twice.

    Exits 1 when something was written by a newer release, or can't be looked at.
    """
    from mesh.cli.migrating import stores

    sheet, well = finish(stores(dry_run=dry_run))
    print_sheet(console, sheet)
    if not well:
        raise SystemExit(1)


@kb.command(
    "rebuild", epilog="Examples: [bold]adiyan kb rebuild[/]   [bold]adiyan kb rebuild prices.md contract.pdf --anew[/]"
)
def rebuild_documents(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="As `kb list` has them, or owner/name; every document if not given.", show_default=False),
    ] = None,
    anew: Annotated[bool, typer.Option("--anew", help="Take no vector from what was embedded before.")] = False,
) -> None:
    """Makes the passages again from the files, as they are read today. Old ones answer meanwhile; safe to run twice.

    Exits 1 when a file could not be read again: it keeps its old passages, and is named.
    """
    from mesh.cli.rebuilding import rebuild

    if finish(rebuild(names or [], anew=anew, console=console)):
        sys.exit(1)


@kb.command(epilog="Example: [bold]adiyan kb calibrate[/]")
def calibrate() -> None:
    """Learns from the documents themselves how clearly a question must be answered. Safe to run twice.

    Sentences of theirs are asked for, with the passage that they are from and without; no answer is shown or kept.
    """
    from mesh.cli.calibrating import calibrate as learn

    print_sheet(console, finish(learn(console)))


def _one_of(owner: str, everyone: bool) -> bool:
    """Whether an owner is named."""
    if owner and everyone:
        raise Malformed("--owner makes a document private to one client; --global shows it to all. Choose one.")
    return bool(owner)


def _identity(text: str) -> str:
    from mesh.settings import IDENTITY

    if not IDENTITY.fullmatch(text):
        raise Malformed(f"{text!r} is not an identity: write a number with its country code, such as +15551230001.")
    return text


def _table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    show(console, table(heads, rows))


@app.command(epilog="Examples: [bold]adiyan doctor[/]   [bold]adiyan doctor --json[/]")
def doctor(as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False) -> None:
    """Looks at settings, stores, models, processes and Twilio, and says what is wrong and what to do. Changes nothing.

    Exits 1 when something that is needed is broken.
    """
    from mesh.cli.doctor import examine

    raise SystemExit(finish(examine(console, as_json=as_json)))


@app.command(epilog="Example: [bold]adiyan health knowledge[/]")
def health(name: Annotated[str, typer.Argument(help="gateway, dashboard, or an agent of config/agents.")]) -> None:
    """Is this process well on this host? For a container's health check: one line, and 0 or 1."""
    from mesh.cli.health import health as look

    console.print(escape(look(name)), soft_wrap=True)
