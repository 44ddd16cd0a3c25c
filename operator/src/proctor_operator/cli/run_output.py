"""What a run prints when it is over: summary, one line for each failure, where the report is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text

from proctor_grader.model.result import Outcome
from proctor_grader.model.run import RunEnd
from proctor_grader.report.unit_text import explanation
from proctor_operator.cli import render
from proctor_operator.cli.options import Output

if TYPE_CHECKING:
    from collections.abc import Iterable

    from proctor_grader.model.result import UnitResult
    from proctor_grader.model.run import RunRecord
    from proctor_operator.local.ready import Ready
    from proctor_operator.local.session import RunOutcome

FAILURES_SHOWN = 20
EXIT_CODES = {RunEnd.FAILED: 3, RunEnd.CANCELLED: 130}


def print_outcome(outcome: RunOutcome, output: Output) -> int:
    """Print how a run ended and return the exit code that says the same."""
    record = outcome.record
    code = EXIT_CODES.get(outcome.verdict.end, 0)
    if record is not None and code == 0:
        code = 0 if record.passed else 1
    if output is Output.JSON:
        render.print_json(_as_json(outcome, code))
        return code
    if record is not None:
        print_record(record, outcome.results(), every=False)
    errors = render.error_console()
    if outcome.verdict.end is RunEnd.FAILED:
        errors.print(
            Text.assemble(
                ("not carried out", "bold red"),
                f" ({outcome.verdict.reason}): {outcome.verdict.message}",
            )
        )
        if outcome.resume:
            errors.print(f"go on with: {outcome.resume}", markup=False)
    if outcome.report:
        render.console().print(f"report: {outcome.report}", markup=False)
    return code


def print_record(record: RunRecord, results: Iterable[UnitResult], *, every: bool) -> None:
    """Print a finished run: with `every` all its units, else only those that did not pass."""
    out = render.console()
    rows: list[tuple[str | Text, ...]] = []
    left_out = 0
    for result in results:
        if not every and result.outcome is Outcome.PASSED:
            continue
        if not every and len(rows) == FAILURES_SHOWN:
            left_out += 1
            continue
        rows.append(
            (
                render.one_line(result.task, 60),
                render.outcome_text(result.outcome.value, result.verdict.value),
                render.one_line(explanation(result), 120),
            )
        )
    if rows:
        out.print(render.table(("TASK", "VERDICT", "WHY"), rows))
        if left_out:
            out.print(f"and {left_out} more: proctor show {record.id}", markup=False)
        out.print()
    for name, totals in record.totals.items():
        accuracy = record.accuracy[name].value
        shown = "-" if accuracy is None else f"{accuracy} %"
        counts = ", ".join(
            f"{number} {outcome}" for outcome, number in totals.outcomes().items() if number
        )
        arm = "" if len(record.totals) == 1 else f"{name}: "
        units = render.counted(totals.total, "unit")
        out.print(f"{arm}{units}: {counts}; accuracy {shown}", markup=False)
    for gate in record.gates:
        sign = Text("holds", "green") if gate.passed else Text("fails", "bold red")
        out.print(Text.assemble("gate ", gate.name, " ", sign, f": {gate.got} ({gate.want})"))
    out.print(f"run {record.id} {record.end.value.lower()} in {record.seconds:.1f} s", markup=False)


def print_dry_run(ready: Ready, output: Output) -> None:
    """Print what a run would do."""
    document = ready.to_json()
    if output is Output.JSON:
        render.print_json(document)
        return
    out = render.console()
    for key, value in document.items():
        if key not in ("units", "notices"):
            out.print(f"{key}: {value}", markup=False)
    out.print(f"units: {len(document['units'])}", markup=False)
    for notice in document["notices"]:
        render.error_console().print(f"notice {notice}", markup=False)
    out.print("nothing was started", markup=False)


def _as_json(outcome: RunOutcome, code: int) -> dict[str, Any]:
    return {
        "run": outcome.run_id,
        "end": outcome.verdict.end.value,
        "reason": outcome.verdict.reason,
        "message": outcome.verdict.message,
        "exit_code": code,
        "report": outcome.report,
        "resume": outcome.resume,
        "record": None if outcome.record is None else outcome.record.to_json(),
    }
