"""`adiyan`: noun verb, safe to run twice, and it says what changed."""

from __future__ import annotations

import sys


def main() -> None:
    from rich.console import Console
    from rich.markup import escape

    from mesh.cli.app import app
    from mesh.errors import MeshError

    try:
        app()
    except MeshError as error:
        Console(stderr=True).print(f"[bold red]✗[/] {escape(error.user_text)}", highlight=False, soft_wrap=True)
        sys.exit(1)
