"""The way of a unit when nothing goes wrong: branch, setup, agent, grade."""

from __future__ import annotations

from proctor_grader.model.result import Cause, Verdict
from proctor_grader.model.unit import Stage
from proctor_operator.plan.decision import RecordResult, StartStage
from proctor_operator.plan.facts import UnitView, needs_grading
from proctor_operator.plan.step import Step


def next_stage(view: UnitView) -> Step | None:
    """Start the first stage that is due and was not started; never called while one runs."""
    due = (
        (Stage.BRANCH, view.spec.has_warehouse),
        (Stage.SETUP, view.unit.has_setup),
        (Stage.AGENT, True),
    )
    for stage, is_due in due:
        if is_due and view.stage(stage) is None:
            return Step(StartStage(view.unit.id, view.attempt.number, stage))
    return _judge(view)


def _judge(view: UnitView) -> Step | None:
    agent = view.attempt.agent
    if agent is None or view.stage(Stage.GRADE) is not None:
        return None
    if needs_grading(view, agent):
        return Step(StartStage(view.unit.id, view.attempt.number, Stage.GRADE))
    return Step(
        RecordResult(
            view.unit.id,
            view.attempt.number,
            Verdict.ERROR,
            Cause.AGENT,
            reason=agent.end.value,
            message=f"agent: {agent.message}",
        )
    )
