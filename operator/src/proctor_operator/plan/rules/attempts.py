"""What a failed stage means: a verdict, another try of the stage, or a new attempt.

A new attempt follows a fault of the infrastructure only and gets a branch of its own; the old
attempt is closed first, so that no two agents ever share one.
"""

from __future__ import annotations

from proctor_grader.model.result import Cause, Verdict
from proctor_grader.model.unit import Stage
from proctor_operator.plan.decision import RecordResult, StartStage
from proctor_operator.plan.facts import (
    UnitView,
    attempts_used,
    collect_failures,
    failed_stage,
    retry_at,
)
from proctor_operator.plan.rules.grading import grade_again
from proctor_operator.plan.rules.teardown import close_attempt
from proctor_operator.plan.snapshot import StageObservation, StageState
from proctor_operator.plan.step import Step

STAGE_LOST = "StageLost"


def after_failure(view: UnitView) -> Step | None:
    """Answer for a unit whose attempt in progress has a failed stage."""
    failed = failed_stage(view)
    if failed is None:
        return None
    stage, seen = failed
    if stage is Stage.GRADE:
        return grade_again(view, seen)
    if stage is Stage.SETUP and seen.state is StageState.FAILED and seen.cause is Cause.SET:
        return _record(view, stage, seen, Verdict.SETUP_FAILED, Cause.SET)
    if _is_final(view, seen):
        verdict = Verdict.SETUP_FAILED if stage is Stage.SETUP else Verdict.ERROR
        return _record(view, stage, seen, verdict, Cause.INFRA)
    return close_attempt(view) or _new_attempt(view, seen)


def _is_final(view: UnitView, seen: StageObservation) -> bool:
    limits = view.spec.limits
    return (
        not seen.retryable
        or attempts_used(view) >= limits.attempts
        or collect_failures(view) >= limits.collect_attempts
    )


def _record(
    view: UnitView, stage: Stage, seen: StageObservation, verdict: Verdict, cause: Cause
) -> Step:
    lost = seen.state is StageState.LOST
    message = seen.message or ("it vanished while it ran" if lost else "it failed")
    tries = attempts_used(view)
    told = f" (attempt {tries} of {view.spec.limits.attempts})" if cause is Cause.INFRA else ""
    return Step(
        RecordResult(
            view.unit.id,
            view.attempt.number,
            verdict,
            cause,
            reason=seen.reason or seen.stop_reason or STAGE_LOST,
            message=f"{stage.value}: {message}{told}",
        )
    )


def _new_attempt(view: UnitView, seen: StageObservation) -> Step:
    at = retry_at(view.spec, seen, attempts_used(view))
    if view.now < at:
        return Step(wake_at=at)
    first = Stage.BRANCH if view.spec.has_warehouse else Stage.AGENT
    return Step(StartStage(view.unit.id, view.attempt.number + 1, first))
