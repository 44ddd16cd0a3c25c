"""Closing an attempt: teardown script, then the branch, whatever happened before."""

from __future__ import annotations

from proctor_grader.model.unit import Stage
from proctor_operator.plan.decision import RetireUnit, StartStage
from proctor_operator.plan.facts import (
    UnitView,
    branch_may_exist,
    needs_teardown,
    retry_at,
    running_stage,
)
from proctor_operator.plan.step import Step


def close_attempt(view: UnitView) -> Step | None:
    """Take the attempt's next step towards leaving nothing behind; None once it is closed.

    A branch that can't be dropped after all tries is left to the sweeper, which its mark allows.
    """
    if running_stage(view) is not None:
        return None
    if needs_teardown(view):
        return Step(StartStage(view.unit.id, view.attempt.number, Stage.TEARDOWN))
    if not branch_may_exist(view):
        return None
    seen = view.stage(Stage.DROP)
    tries = 0 if seen is None else seen.tries
    if tries >= view.spec.limits.drop_tries:
        return None
    if seen is not None and view.now < retry_at(view.spec, seen, tries):
        return Step(wake_at=retry_at(view.spec, seen, tries))
    return Step(StartStage(view.unit.id, view.attempt.number, Stage.DROP, tries=tries + 1))


def close_finished(view: UnitView) -> Step | None:
    """Close and retire a unit that has its verdict, or that a halted run gives up."""
    is_over = view.observation.result is not None or view.snapshot.halt is not None
    if not is_over or running_stage(view) is not None:
        return None
    return close_attempt(view) or Step(RetireUnit(view.unit.id))
