"""`proctor ls`: the tasks of a set, as selection sees them."""

from __future__ import annotations

import typer

from proctor_operator.cli.options import (
    ExcludeOption,
    FormatOption,
    Output,
    OutputOption,
    SelectOption,
    SetArgument,
    StoreOption,
)


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("ls")(ls)


def ls(
    directory: SetArgument,
    select: SelectOption = [],  # noqa: B006 - typer copies it
    exclude: ExcludeOption = [],  # noqa: B006 - typer copies it
    set_format: FormatOption = "auto",
    store: StoreOption = ".proctor",
    output: OutputOption = Output.TEXT,
) -> None:
    """List tasks with class, kind, tags and criteria."""
    from proctor_operator.cli import render  # noqa: PLC0415 - only the verb needs it
    from proctor_operator.cli.loading import load_valid_set  # noqa: PLC0415 - likewise
    from proctor_operator.local.choose import choose_tasks  # noqa: PLC0415 - likewise

    eval_set = load_valid_set(directory, set_format=set_format)
    tasks = choose_tasks(eval_set, select, exclude, store_url=store)
    if output is Output.JSON:
        render.print_json([task.to_json() for task in tasks])
        return
    rows = [
        (
            task.id,
            task.task_class.value,
            task.kind,
            " ".join(task.tags),
            ", ".join(sorted({criterion.type for criterion in task.criteria})) or "nothing",
            render.one_line(task.title, 60),
        )
        for task in tasks
    ]
    render.console().print(
        render.table(("TASK", "CLASS", "KIND", "TAGS", "GRADED BY", "TITLE"), rows)
    )
