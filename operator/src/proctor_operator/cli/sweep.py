"""`proctor sweep`: drop branches and leftovers whose run is gone."""

from __future__ import annotations

from typing import Annotated

import typer

from proctor_operator.cli.options import Output, OutputOption


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("sweep")(sweep)


def sweep(
    warehouse: Annotated[
        list[str],
        typer.Option(
            "--warehouse",
            metavar="URL",
            envvar="PROCTOR_WAREHOUSE",
            help="A server that may hold leftovers; DuckDB branches are found without. Repeatable.",
        ),
    ] = [],  # noqa: B006 - typer copies it
    output: OutputOption = Output.TEXT,
) -> None:
    """Drop branches and leftovers of runs that were killed; never those of a living run."""
    from proctor_operator.cli import render  # noqa: PLC0415 - only the verb needs it
    from proctor_operator.local.session import sweep_all  # noqa: PLC0415 - likewise

    result = sweep_all(warehouse)
    if output is Output.JSON:
        render.print_json(
            {
                "dropped": result.dropped,
                "runs": result.runs,
                "elsewhere": result.elsewhere,
                "problems": result.problems,
            }
        )
    else:
        for name in result.dropped:
            typer.echo(f"dropped {name}")
        dropped = len(result.dropped)
        typer.echo(
            f"{dropped} branch{'' if dropped == 1 else 'es'} dropped, "
            f"{render.counted(len(result.runs), 'run')} cleaned up"
        )
    errors = render.error_console()
    for place in result.elsewhere:
        errors.print(
            f"{place} still holds leftovers: proctor sweep --warehouse {place} "
            "(with user and password)",
            markup=False,
        )
    for problem in result.problems:
        errors.print(f"not dropped: {problem}", markup=False)
    raise typer.Exit(3 if result.problems else 0)
