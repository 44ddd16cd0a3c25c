"""`proctor check`: load a set and print everything that is wrong with it."""

from __future__ import annotations

import typer

from proctor_operator.cli.options import (
    FormatOption,
    Output,
    OutputOption,
    SetArgument,
    StrictOption,
)


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("check")(check)


def check(
    directory: SetArgument,
    set_format: FormatOption = "auto",
    strict: StrictOption = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """Load an eval set; print every error and warning with its place. Exit 1 with errors."""
    from proctor_grader import load_set  # noqa: PLC0415 - only the verb needs it
    from proctor_operator.cli import render  # noqa: PLC0415 - only the verb needs it

    loaded = load_set(directory, format=set_format, strict=strict)
    if output is Output.JSON:
        render.print_json(loaded.to_json())
    else:
        render.print_problems(loaded.errors, loaded.warnings)
        eval_set = loaded.eval_set
        if eval_set is not None and not loaded.errors:
            reads = sum(task.task_class == "read" for task in eval_set.tasks)
            render.console().print(
                f"{render.one_line(eval_set.name)}: {render.counted(len(eval_set.tasks), 'task')} "
                f"({reads} read, {len(eval_set.tasks) - reads} write), "
                f"format {eval_set.format}, {render.counted(len(loaded.warnings), 'warning')}",
                markup=False,
            )
        elif loaded.errors:
            render.error_console().print(
                f"{render.counted(len(loaded.errors), 'error')}, "
                f"{render.counted(len(loaded.warnings), 'warning')}"
            )
    raise typer.Exit(1 if loaded.errors else 0)
