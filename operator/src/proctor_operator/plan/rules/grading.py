"""Grading again after the grader was lost, on the same evidence and branch, with no new agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proctor_grader.model.result import Cause, Verdict
from proctor_grader.model.unit import Stage
from proctor_operator.plan.decision import RecordResult, StartStage
from proctor_operator.plan.facts import UnitView, retry_at
from proctor_operator.plan.step import Step

if TYPE_CHECKING:
    from proctor_operator.plan.snapshot import StageObservation

GRADER_LOST = "GraderLost"


def grade_again(view: UnitView, seen: StageObservation) -> Step:
    """Start grading anew, or say that it can't be done.

    What the grader could not reach is the infrastructure's fault (ERROR); a grader that broke or
    vanished leaves the unit ungraded.
    """
    if seen.tries < view.spec.limits.grade_tries and seen.retryable:
        at = retry_at(view.spec, seen, seen.tries)
        if view.now < at:
            return Step(wake_at=at)
        return Step(
            StartStage(view.unit.id, view.attempt.number, Stage.GRADE, tries=seen.tries + 1)
        )
    is_unreachable = seen.cause is Cause.INFRA
    return Step(
        RecordResult(
            view.unit.id,
            view.attempt.number,
            Verdict.ERROR if is_unreachable else Verdict.UNGRADED,
            Cause.INFRA if is_unreachable else Cause.GRADER,
            reason=seen.reason or GRADER_LOST,
            message=f"grade: {seen.message or 'the grader vanished'}",
        )
    )
