"""`proctor report`: the HTML report of a run, copied or written anew."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated, Optional

import typer

from proctor_operator.cli.options import Output, OutputOption, RunArgument, StoreOption


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("report")(report)


def report(
    run: RunArgument = "last",
    out: Annotated[
        Optional[Path],  # noqa: UP045 - typer reads it
        typer.Option("--out", metavar="DIR", help="Folder to write to; default report-<run>."),
    ] = None,
    store: StoreOption = ".proctor",
    output: OutputOption = Output.TEXT,
) -> None:
    """Write a run's HTML report to a folder that opens from disk, from what is stored."""
    from proctor_grader.errors import UserError  # noqa: PLC0415 - only the verb needs it
    from proctor_operator.cli import render  # noqa: PLC0415 - likewise
    from proctor_operator.local.again import report_again  # noqa: PLC0415 - likewise
    from proctor_operator.local.history import find_run  # noqa: PLC0415 - likewise

    found = find_run(run, store)
    target = out or Path(f"report-{found.id}")
    is_fresh = not target.exists()
    try:
        index = report_again(found, target)
    except BaseException as error:
        if is_fresh:
            shutil.rmtree(target, ignore_errors=True)
        if isinstance(error, OSError):
            raise UserError(
                f"can't be written ({error.strerror})",
                where=str(target),
                remedy="name a folder that you may write with --out",
            ) from error
        raise
    if output is Output.JSON:
        render.print_json({"run": found.id, "report": str(index)})
    else:
        typer.echo(str(index))
