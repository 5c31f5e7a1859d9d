"""`adiyan kb`: the documents. What a command needs is imported when it runs, so that `--help` is quick."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from mesh.cli.printing import print_sheet
from mesh.cli.terminal import Identity, as_identity, console, finish, print_table
from mesh.errors import Malformed

kb = typer.Typer(no_args_is_help=True, help="The documents that answers stand on.")


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

    owner = as_identity(owner) if _one_of(owner, everyone) else ""
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

    owner = as_identity(owner) if _one_of(owner, everyone) else ""
    trouble = finish(follow(folder.absolute(), owner, console, everyone=everyone, every_s=every, once=once))
    raise SystemExit(1 if trouble else 0)


@kb.command(
    epilog="Examples: [bold]adiyan kb remove old-prices.md[/]   [bold]adiyan kb remove +15551230002/contract.pdf[/]"
)
def remove(
    names: Annotated[list[str], typer.Argument(help="As `kb list` has them, or owner/name.", show_default=False)],
) -> None:
    """Takes documents away: they are found and quoted no more, and their files are erased from the mesh's data.

    All of them or none, where a name is not known.
    """
    from mesh.cli.admin import remove_documents

    for line in finish(remove_documents(names)):
        console.print(f"[green]✓[/] {escape(line)}", soft_wrap=True)


@kb.command("list")
def list_documents(
    as_: Annotated[str, typer.Option("--as", help="As this client sees it; everything if not given.")] = "",
) -> None:
    """The documents, who owns them, who can see them, and what could not be read in them."""
    from mesh.cli.admin import all_documents

    rows = finish(all_documents(as_identity(as_) if as_ else ""))
    if not rows:
        console.print("No document yet. Add one: [bold]adiyan kb add FILE --global[/]")
        return
    print_table(("name", "owner", "visible to", "chunks", "size", "added", "not read"), rows)


@kb.command("show", epilog="Examples: [bold]adiyan kb show prices.md[/]   [bold]adiyan kb show prices.md --passages[/]")
def show_document(
    name: Annotated[str, typer.Argument(help="As `kb list` has it, or owner/name.", show_default=False)],
    as_: Annotated[str, typer.Option("--as", help="As this client sees it; as the owner if not given.")] = "",
    passages: Annotated[bool, typer.Option("--passages", help="Also the passages, with their headings.")] = False,
) -> None:
    """One document: what was read of each page, slide or sheet, how, and what could not be."""
    from mesh.cli.documents import shown

    parts, kept = finish(shown(name, as_identity(as_) if as_ else ""))
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

    print_sheet(console, finish(why(as_identity(client), question)))


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
