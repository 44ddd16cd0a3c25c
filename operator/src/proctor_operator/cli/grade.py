"""`proctor grade`: grade stored evidence again; never runs an agent."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from proctor_operator.cli.options import (
    FormatOption,
    Output,
    OutputOption,
    RunArgument,
    StoreOption,
)


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("grade")(grade)


def grade(
    run: RunArgument,
    eval_set: Annotated[
        Optional[Path],  # noqa: UP045 - typer reads it
        typer.Option("--set", metavar="DIR", help="A set with changed criteria; default: its own."),
    ] = None,
    store: StoreOption = ".proctor",
    set_format: FormatOption = "auto",
    output: OutputOption = Output.TEXT,
) -> None:
    """Grade a finished run's evidence again and write the new results beside the old ones.

    Criteria that need the warehouse branch keep their stored result. Exits as `run` does.
    """
    from proctor_operator.cli.loading import load_valid_set  # noqa: PLC0415 - only here
    from proctor_operator.cli.run_output import print_outcome  # noqa: PLC0415 - likewise
    from proctor_operator.local.again import grade_again  # noqa: PLC0415 - likewise
    from proctor_operator.local.history import find_run  # noqa: PLC0415 - likewise

    found = find_run(run, store)
    changed = None if eval_set is None else load_valid_set(eval_set, set_format=set_format)
    raise typer.Exit(print_outcome(grade_again(found, changed), output))
