"""`proctor diff`: what changed between two runs, task by task."""

from __future__ import annotations

from typing import Annotated

import typer

from proctor_operator.cli.options import Output, OutputOption, StoreOption


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("diff")(diff)


def diff(
    run_a: Annotated[str, typer.Argument(metavar="RUN_A", help="The earlier run.")],
    run_b: Annotated[str, typer.Argument(metavar="RUN_B", help="The later run, or 'last'.")],
    store: StoreOption = ".proctor",
    output: OutputOption = Output.TEXT,
) -> None:
    """Show which tasks were fixed or broken from one run to another, with a significance test."""
    from proctor_grader.report.diff import Change, conditions_changed, diff_runs  # noqa: PLC0415
    from proctor_operator.cli import render  # noqa: PLC0415 - only the verb needs it
    from proctor_operator.local.history import find_run  # noqa: PLC0415 - likewise

    before, after = find_run(run_a, store), find_run(run_b, store)
    records = before.finished(), after.finished()
    found = diff_runs(before.results(), after.results())
    conditions = conditions_changed(*records)
    if output is Output.JSON:
        render.print_json(
            {"a": before.id, "b": after.id, "conditions": list(conditions), **found.to_json()}
        )
        return
    out = render.console()
    for note in conditions:
        render.error_console().print(f"note: {note}", markup=False)
    changed = [task for task in found.tasks if task.change is not Change.SAME]
    if changed:
        rows = [
            (
                task.task,
                task.change.value,
                task.a.told() if task.a else "-",
                task.b.told() if task.b else "-",
            )
            for task in changed
        ]
        out.print(render.table(("TASK", "CHANGE", before.id, after.id), rows))
    out.print(", ".join(f"{found.count(change)} {change.value}" for change in Change), markup=False)
    out.print(found.conclusion, markup=False)
