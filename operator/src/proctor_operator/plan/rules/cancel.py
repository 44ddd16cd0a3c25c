"""Cancelling and halting: agents are stopped, finished ones are graded unless nothing can be."""

from __future__ import annotations

from proctor_grader.model.result import Verdict
from proctor_grader.model.unit import Stage
from proctor_operator.plan.decision import RecordResult, StopStage
from proctor_operator.plan.facts import UnitView, running_stage
from proctor_operator.plan.snapshot import StageState
from proctor_operator.plan.step import Step

HALTED = "RunHalted"


def stop_when_halted(view: UnitView) -> Step | None:
    """Stop what runs of a unit without a verdict when the run can't go on."""
    if view.snapshot.halt is None or view.observation.result is not None:
        return None
    return _stop(view, HALTED, (Stage.SETUP, Stage.AGENT, Stage.GRADE))


def stop_when_cancelled(view: UnitView) -> Step | None:
    """Stop agents and scripts of a cancelled run; give units that were not done their verdict.

    An agent that had ended by itself is graded: the rules of progress go on with it.
    """
    cancel = view.snapshot.cancel
    if cancel is None or view.observation.result is not None or view.snapshot.halt is not None:
        return None
    running = running_stage(view)
    if running is not None:
        return _stop(view, cancel.reason, (Stage.SETUP, Stage.AGENT))
    if _is_worth_grading(view) and not cancel.namespace_terminating:
        return None
    return Step(
        RecordResult(
            view.unit.id,
            view.attempt.number,
            Verdict.CANCELLED,
            cause=None,
            reason=cancel.reason,
            message=cancel.message,
        )
    )


def _stop(view: UnitView, reason: str, stages: tuple[Stage, ...]) -> Step | None:
    running = running_stage(view)
    if running is None:
        return None
    stage, seen = running
    if stage not in stages or seen.stop_requested_at is not None:
        return None
    return Step(StopStage(view.unit.id, view.attempt.number, stage, reason=reason))


def _is_worth_grading(view: UnitView) -> bool:
    seen = view.stage(Stage.AGENT)
    return seen is not None and seen.state is StageState.SUCCEEDED and not seen.stop_reason
