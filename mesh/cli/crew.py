"""`adiyan agents`: who does the work. Imports as in `mesh.cli.kb`."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape

from mesh.cli.printing import print_sheet
from mesh.cli.terminal import console, finish

agents = typer.Typer(
    no_args_is_help=True,
    help="Who does the work, in how many processes.",
    epilog="Examples: [bold]adiyan agents list[/]   [bold]adiyan agents scale knowledge 3[/]",
)
AgentName = Annotated[str, typer.Argument(help="An agent, as MongoDB has it.", show_default=False)]


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
