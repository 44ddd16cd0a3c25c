"""One unit's judgement: the only place that orders criteria and combines verdicts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proctor_grader.criteria.number import grade_checks
from proctor_grader.criteria.rebuilt_table import grade_rebuilt_table
from proctor_grader.model.criterion import ModelRebuiltCriterion, NumberCriterion
from proctor_grader.model.result import Cause, ItemResult, Judgement, Verdict
from proctor_grader.numerals import render_decimal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from proctor_grader.model.task import Task
    from proctor_grader.numerals import Numeral
    from proctor_grader.warehouse.base import Warehouse

NO_BRANCH = "NoBranch"
NOTHING_TO_GRADE = "NothingToGrade"


def grade_task(task: Task, answer: str | None, warehouse: Warehouse | None) -> Judgement:
    """Judge what an agent left.

    Args:
        task: with its criteria, all of one family in the eval-json format.
        answer: the final answer as stored; None where the agent left none.
        warehouse: a reader of the unit's branch; None without one.

    Raises:
        WarehouseError: the branch could not be read for reasons that are not the agent's.
    """
    rebuilt = [c for c in task.criteria if isinstance(c, ModelRebuiltCriterion)]
    if rebuilt:
        if warehouse is None:
            return Judgement(
                Verdict.ERROR, Cause.INFRA, NO_BRANCH, "grade: there is no branch to look at"
            )
        return grade_rebuilt_table(rebuilt[0], warehouse)
    numbers = [c for c in task.criteria if isinstance(c, NumberCriterion)]
    return _grade_answer(numbers, answer or "")


def _grade_answer(criteria: Sequence[NumberCriterion], answer: str) -> Judgement:
    graded = grade_checks(answer, criteria)
    is_ungraded = graded.verdict is Verdict.UNGRADED
    return Judgement(
        verdict=graded.verdict,
        cause=Cause.SET if is_ungraded else None,
        reason=NOTHING_TO_GRADE if is_ungraded else "",
        message="the task has no checks" if is_ungraded else "",
        items=tuple(
            ItemResult(
                name=result.name,
                passed=result.passed,
                data={
                    "value": result.value,
                    "tolerance": result.tolerance,
                    "closest": None
                    if result.closest is None
                    else {
                        "value": result.closest.value,
                        "start": result.closest.start,
                        "end": result.closest.end,
                        "text": result.closest.text,
                    },
                },
                detail=_told(result.passed, result.closest),
            )
            for result in graded.results
        ),
        truncated=graded.truncated,
        details={"numbers_read": len(graded.numbers)},
    )


def _told(passed: bool, closest: Numeral | None) -> str:
    if closest is None:
        return "no number in the answer"
    value = render_decimal(closest.value)
    return f"{'matched by' if passed else 'closest is'} {value}"
