"""The commands. What they need is imported when they run, so that `--help` is quick."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from mesh.cli.crew import agents
from mesh.cli.kb import kb
from mesh.cli.people import clients, tiers
from mesh.cli.printing import print_sheet, show
from mesh.cli.terminal import as_identity, console, finish
from mesh.errors import Malformed, MeshError

app = typer.Typer(
    name="adiyan",
    help="A mesh of chat agents behind WhatsApp that answers from a person's own documents and memory.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
app.add_typer(clients, name="clients")
app.add_typer(tiers, name="tiers")
app.add_typer(agents, name="agents")
app.add_typer(kb, name="kb")


def called_by(program: str) -> None:
    """Examples in the help name the program as it was called: `./run` on a fresh clone."""
    for group in (app, *(each.typer_instance for each in app.registered_groups if each.typer_instance)):
        for command in group.registered_commands:
            command.epilog = (command.epilog or "").replace("[bold]adiyan ", f"[bold]{program} ") or None
        if isinstance(group.info.epilog, str):
            group.info.epilog = group.info.epilog.replace("[bold]adiyan ", f"[bold]{program} ")


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
    finish(converse(phone, as_identity(as_), console))


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
