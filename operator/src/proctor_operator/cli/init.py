"""`proctor init`: write a small working set, and a replay file, to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from proctor_operator.cli.options import Output, OutputOption


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("init")(init)


def init(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A new or empty folder.")],
    set_format: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help="eval-json is what is there so far.")
    ] = "eval-json",
    output: OutputOption = Output.TEXT,
) -> None:
    """Write a small working eval set with comments, and a replay file, to start from."""
    from proctor_operator.cli import render  # noqa: PLC0415 - only the verb needs it
    from proctor_operator.cli.starter import write_starter  # noqa: PLC0415 - likewise

    written = write_starter(directory, set_format)
    if output is Output.JSON:
        render.print_json({"directory": str(directory), "files": written})
        return
    for name in written:
        typer.echo(f"wrote {directory / name}")
    typer.echo(f"next: proctor check {directory}")
    typer.echo(f"then: proctor run {directory} --agent replay:{directory / 'replay.yaml'}")
