"""`adiyan clients` and `adiyan tiers`: who may write, and what. Imports as in `mesh.cli.kb`."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape

from mesh.cli.printing import print_notes, print_sheet
from mesh.cli.terminal import Identity, as_identity, console, finish, print_table

clients = typer.Typer(no_args_is_help=True, help="Who may write, and on which tier.")
tiers = typer.Typer(
    no_args_is_help=True,
    help="What a client may do, by the tier that it is on.",
    epilog="Examples: [bold]adiyan tiers show gold[/]   [bold]adiyan tiers grant gold documents:publish[/]",
)
TierName = Annotated[str, typer.Argument(help="A tier, as MongoDB has it.", show_default=False)]
Permissions = Annotated[
    list[str], typer.Argument(help="Each area:verb, such as documents:publish.", show_default=False)
]


@clients.command(epilog="Example: [bold]adiyan clients register +15551230001 --name Asha --tier gold[/]")
def register(
    identity: Identity,
    name: Annotated[str, typer.Option(help="What to call them.")] = "",
    tier: Annotated[
        str, typer.Option(help="One of config/tiers.yaml, as MongoDB has it now; default for a new client.")
    ] = "",
    block: Annotated[
        bool | None, typer.Option("--block/--unblock", help="Let this number do nothing at all, or answer it again.")
    ] = None,
) -> None:
    """Adds a client, or changes what is named here of one; the rest stays as it is. Safe to run twice."""
    from mesh.cli.admin import register_client

    console.print(escape(finish(register_client(as_identity(identity), name, tier, blocked=block))))


@clients.command("list")
def list_clients() -> None:
    """Every client, with its tier and what that covers."""
    from mesh.cli.admin import all_clients

    rows = finish(all_clients())
    if not rows:
        console.print("No client yet. Add one: [bold]adiyan clients register +15551230001 --name Asha[/]")
        return
    print_table(("identity", "name", "tier", "may"), rows)


@clients.command("waiting", epilog="Example: [bold]adiyan clients waiting[/]")
def waiting_clients() -> None:
    """Who asked for a human: the mesh is silent to them until they are handed back."""
    from mesh.cli.handing import handed_over

    rows = finish(handed_over())
    if not rows:
        console.print("Nobody waits for a human.")
        return
    print_table(("identity", "since"), rows)


@clients.command("hand-back", epilog="Example: [bold]adiyan clients hand-back +15551230001[/]")
def hand_back(identity: Identity) -> None:
    """The mesh answers this person again, and tells them so. Safe to run twice."""
    from mesh.cli.handing import hand_back

    console.print(escape(finish(hand_back(as_identity(identity)))))


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
