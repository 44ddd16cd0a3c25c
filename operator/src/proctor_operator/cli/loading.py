"""Loading a set for a verb, with its problems told and its errors final."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from proctor_grader import load_set
from proctor_operator.cli.render import counted, error_console, print_problems

if TYPE_CHECKING:
    from pathlib import Path

    from proctor_grader.model.task import EvalSet


def load_valid_set(path: Path, *, set_format: str = "auto", strict: bool = False) -> EvalSet:
    """Load a set; with errors, print them all and exit with 1.

    Raises:
        UserError: there is nothing at the path that could be a set.
    """
    loaded = load_set(path, format=set_format, strict=strict)
    print_problems(loaded.errors, loaded.warnings)
    if loaded.errors or loaded.eval_set is None:
        error_console().print(
            f"the set has {counted(len(loaded.errors), 'error')}: nothing was started"
        )
        raise typer.Exit(1)
    return loaded.eval_set
