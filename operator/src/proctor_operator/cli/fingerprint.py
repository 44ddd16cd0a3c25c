"""`proctor fingerprint`: the build fingerprint of a warehouse."""

from __future__ import annotations

from typing import Annotated

import typer

from proctor_operator.cli.options import Output, OutputOption


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("fingerprint")(fingerprint)


def fingerprint(
    url: Annotated[
        str,
        typer.Argument(
            metavar="URL",
            help="duckdb:///file.duckdb, a path to a .duckdb file, or postgresql://user@host/base.",
        ),
    ],
    output: OutputOption = Output.TEXT,
) -> None:
    """Print the build fingerprint to pin in eval.json: tables, exact row counts, columns."""
    from proctor_grader import build_fingerprint  # noqa: PLC0415 - only the verb needs it
    from proctor_operator.cli import render  # noqa: PLC0415 - likewise

    found = build_fingerprint(url)
    if output is Output.JSON:
        render.print_json({"fingerprint": found})
    else:
        typer.echo(found)
