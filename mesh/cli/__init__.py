"""`adiyan`: noun verb, safe to run twice, and it says what changed."""

from __future__ import annotations

import os
import sys


def main() -> None:
    from mesh.errors import MeshError

    try:
        _main(sys.argv[1:])
    except MeshError as error:
        from rich.console import Console
        from rich.markup import escape

        Console(stderr=True).print(f"[bold red]✗[/] {escape(error.user_text)}", highlight=False, soft_wrap=True)
        sys.exit(1)


def _main(arguments: list[str]) -> None:
    match arguments:
        case ["run", name] if not name.startswith("-"):  # what is started often, and by programs, waits for no typer
            from mesh.process import start

            sys.exit(start(name))
    from mesh.cli.app import app, called_by

    program = os.environ.get("ADIYAN_PROGRAM", "adiyan")
    called_by(program)
    app(prog_name=program)
