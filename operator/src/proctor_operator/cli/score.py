"""`proctor score`: grade one answer offline and say why."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from proctor_operator.cli.options import (
    FormatOption,
    Output,
    OutputOption,
    SetArgument,
    WarehouseOption,
)

if TYPE_CHECKING:
    from proctor_grader.model.result import Judgement
    from proctor_grader.model.task import Task
    from proctor_grader.numerals import Numbers


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("score")(score)


def score(
    directory: SetArgument,
    task_id: Annotated[str, typer.Argument(metavar="TASK", help="The task's id.")],
    answer: Annotated[
        str, typer.Option("--answer", metavar="FILE|-", help="The answer; - reads standard input.")
    ] = "",
    warehouse: WarehouseOption = "",
    set_format: FormatOption = "auto",
    output: OutputOption = Output.TEXT,
) -> None:
    """Grade one answer offline and say why: numbers read and skipped, the closest to each gold.

    Exit 0 passed, 1 failed or ungraded, 3 error. What is not given leaves its criterion ungraded.
    """
    from proctor_grader.errors import UserError  # noqa: PLC0415 - only the verb needs it
    from proctor_grader.numerals import extract_numbers  # noqa: PLC0415 - likewise
    from proctor_grader.problems import suggestion  # noqa: PLC0415 - likewise
    from proctor_operator.cli.loading import load_valid_set  # noqa: PLC0415 - likewise

    eval_set = load_valid_set(directory, set_format=set_format)
    task = next((one for one in eval_set.tasks if one.id == task_id), None)
    if task is None:
        known = [one.id for one in eval_set.tasks]
        raise UserError(
            f"set '{eval_set.name}' has no task '{task_id}'{suggestion(task_id, known)}",
            where="TASK",
            remedy="proctor ls lists them",
        )
    text = _read_answer(answer)
    judgement, missing = _judge(task, text, warehouse)
    numbers = extract_numbers(text or "")
    if output is Output.JSON:
        _print_json(task, judgement, numbers, missing)
    else:
        _print_text(judgement, numbers, missing)
    raise typer.Exit(_exit_code(judgement))


def _read_answer(answer: str) -> str | None:
    from proctor_grader.errors import UserError  # noqa: PLC0415 - only the verb needs it

    if not answer:
        return None
    try:
        data = sys.stdin.buffer.read() if answer == "-" else Path(answer).read_bytes()
    except OSError as error:
        raise UserError(
            f"'{answer}' can't be read ({error.strerror})",
            where="--answer",
            remedy="name a file, or - for standard input",
        ) from error
    return data.decode("utf-8", "replace")


def _judge(task: Task, text: str | None, warehouse: str) -> tuple[Judgement, str]:
    """Judge as a run would; what is missing leaves the task ungraded and names the option."""
    from proctor_grader.grade import grade_task  # noqa: PLC0415 - only the verb needs it
    from proctor_grader.model.criterion import ModelRebuiltCriterion  # noqa: PLC0415
    from proctor_grader.model.result import Cause, Judgement, Verdict  # noqa: PLC0415
    from proctor_grader.warehouse.table import open_base_reader  # noqa: PLC0415

    needs_branch = any(isinstance(one, ModelRebuiltCriterion) for one in task.criteria)
    if needs_branch and not warehouse:
        missing = "--warehouse: the criterion looks at a table"
    elif not needs_branch and text is None:
        missing = "--answer: the criterion looks at the answer"
    elif needs_branch:
        with open_base_reader(warehouse) as reader:
            return grade_task(task, text, reader), ""
    else:
        return grade_task(task, text, None), ""
    return Judgement(Verdict.UNGRADED, Cause.SET, "InputMissing", missing), missing


def _exit_code(judgement: Judgement) -> int:
    from proctor_grader.model.result import Outcome, outcome_of  # noqa: PLC0415

    outcome = outcome_of(judgement.verdict, judgement.cause)
    return {Outcome.PASSED: 0, Outcome.ERROR: 3}.get(outcome, 1)


def _print_json(task: Task, judgement: Judgement, numbers: Numbers, missing: str) -> None:
    from proctor_grader.model.result import outcome_of  # noqa: PLC0415 - only the verb needs it
    from proctor_operator.cli import render  # noqa: PLC0415 - likewise

    render.print_json(
        {
            "task": task.id,
            "verdict": judgement.verdict.value,
            "outcome": outcome_of(judgement.verdict, judgement.cause).value,
            "cause": None if judgement.cause is None else judgement.cause.value,
            "reason": judgement.reason,
            "message": judgement.message,
            "items": [item.to_json() for item in judgement.items],
            "truncated": judgement.truncated,
            "details": dict(judgement.details),
            "missing": missing,
            "numbers": [
                {"value": one.value, "start": one.start, "end": one.end, "text": one.text}
                for one in numbers.numbers
            ],
            "skipped": [
                {"kind": one.kind, "start": one.start, "end": one.end, "text": one.text}
                for one in numbers.skipped
            ],
        }
    )


def _print_text(judgement: Judgement, numbers: Numbers, missing: str) -> None:
    from proctor_grader.model.result import outcome_of  # noqa: PLC0415 - only the verb needs it
    from proctor_grader.numerals import render_decimal  # noqa: PLC0415 - likewise
    from proctor_grader.problems import listed  # noqa: PLC0415 - likewise
    from proctor_grader.report.unit_text import item_line  # noqa: PLC0415 - likewise
    from proctor_operator.cli import render  # noqa: PLC0415 - likewise

    out = render.console()
    outcome = outcome_of(judgement.verdict, judgement.cause)
    out.print(render.outcome_text(outcome.value, judgement.verdict.value))
    if judgement.message:
        out.print(judgement.message, markup=False)
    for item in judgement.items:
        sign = "pass" if item.passed else "fail"
        out.print(f"  {sign}  {item_line(item)}", markup=False)
    if missing:
        return
    read = [f"{one.text!r} = {render_decimal(one.value)}" for one in numbers.numbers]
    skipped = [f"{one.text!r} ({one.kind})" for one in numbers.skipped]
    out.print(f"numbers read: {render.visible(listed(read, 20)) or 'none'}", markup=False)
    if skipped:
        out.print(f"skipped: {render.visible(listed(skipped, 20))}", markup=False)
    if numbers.truncated:
        out.print("the answer is longer than what is read of it", markup=False)
