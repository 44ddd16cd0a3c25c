"""`proctor show`: one run or one unit in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from proctor_operator.cli.options import Output, OutputOption, RunArgument, StoreOption

if TYPE_CHECKING:
    from proctor_grader.model.result import UnitResult
    from proctor_operator.local.history import StoredRun

SHOWN_BYTES = 20_000


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("show")(show)


def show(
    run: RunArgument = "last",
    task: Annotated[
        str, typer.Argument(metavar="[TASK]", help="A task's id, for all that is kept of it.")
    ] = "",
    store: StoreOption = ".proctor",
    output: OutputOption = Output.TEXT,
) -> None:
    """Show a run's verdicts, or one task's prompt, answer, checks, evidence and logs."""
    from proctor_grader.errors import UserError  # noqa: PLC0415 - only the verb needs it
    from proctor_grader.problems import suggestion  # noqa: PLC0415 - likewise
    from proctor_operator.cli import render  # noqa: PLC0415 - likewise
    from proctor_operator.cli.run_output import print_record  # noqa: PLC0415 - likewise
    from proctor_operator.local.history import find_run  # noqa: PLC0415 - likewise

    found = find_run(run, store)
    record = found.finished()
    if not task:
        results = list(found.results())
        if output is Output.JSON:
            render.print_json(
                {"run": record.to_json(), "results": [result.to_json() for result in results]}
            )
        else:
            print_record(record, results, every=True)
        return
    results = [result for result in found.results() if task in (result.task, result.unit)]
    if not results:
        known = {result.task for result in found.results()}
        raise UserError(
            f"run {found.id} has no task '{task}'{suggestion(task, known)}",
            where="TASK",
            remedy=f"proctor show {found.id} lists them",
        )
    if output is Output.JSON:
        render.print_json([result.to_json() for result in results])
        return
    for result in results:
        _print_unit(found, result)


def _print_unit(run: StoredRun, result: UnitResult) -> None:
    from proctor_grader.report import source  # noqa: PLC0415 - only the verb needs it
    from proctor_grader.report.unit_text import explanation, item_line  # noqa: PLC0415
    from proctor_operator.cli import render  # noqa: PLC0415 - likewise

    out = render.console()
    out.rule(f"{result.task} · {result.unit}", align="left")
    out.print(render.outcome_text(result.outcome.value, result.verdict.value))
    told = explanation(result)
    if told:
        out.print(render.visible(told), markup=False)
    for item in result.items:
        out.print(f"  {item_line(item)}", markup=False)
    for name, stage in result.stages.items():
        how = "ok" if stage.ok else stage.reason
        out.print(f"  {name}: {how}, {stage.seconds:.1f} s", markup=False)
    with source.StoreEvidence(run.store, run.keys) as evidence:
        attempt = evidence.open(result.unit, result.attempt)
        for title, name in (
            ("prompt", source.PROMPT),
            ("answer", source.ANSWER),
            ("setup log", source.SETUP_LOG),
            ("stdout", source.STDOUT),
            ("stderr", source.STDERR),
            ("teardown log", source.TEARDOWN_LOG),
        ):
            excerpt = attempt.text(name, SHOWN_BYTES)
            if excerpt is None:
                continue
            out.rule(title, align="left", style="dim")
            out.print(render.visible(excerpt.head), markup=False)
            if excerpt.tail:
                out.print(f"[{excerpt.left_out_bytes} bytes left out]", markup=False)
                out.print(render.visible(excerpt.tail), markup=False)
        kept = attempt.files()
        if kept:
            out.rule("evidence", align="left", style="dim")
            for name, size in kept.items():
                out.print(f"  {attempt.place(name)}  {size} bytes", markup=False)
