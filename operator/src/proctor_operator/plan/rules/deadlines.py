"""Every state has a deadline: what runs too long is stopped, what won't stop counts as lost."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from proctor_operator.plan.decision import StopStage
from proctor_operator.plan.facts import UnitView, running_stage, stage_deadline
from proctor_operator.plan.step import Step

if TYPE_CHECKING:
    from datetime import datetime

    from proctor_grader.model.unit import Stage
    from proctor_operator.plan.snapshot import StageObservation

DEADLINE_EXCEEDED = "DeadlineExceeded"


def stop_overdue(view: UnitView) -> Step | None:
    """Stop a stage past its deadline, and give up on one that ignored the request."""
    running = running_stage(view)
    if running is None:
        return None
    stage, seen = running
    if view.now < _next_bound(view, stage, seen):
        return None
    was_asked = seen.stop_requested_at is not None
    reason = seen.stop_reason if was_asked else DEADLINE_EXCEEDED
    return Step(StopStage(view.unit.id, view.attempt.number, stage, reason=reason, force=was_asked))


def wait_for_stage(view: UnitView) -> Step | None:
    """Wait for the stage that runs, until its next bound at the latest."""
    running = running_stage(view)
    if running is None:
        return None
    stage, seen = running
    return Step(wake_at=_next_bound(view, stage, seen))


def _next_bound(view: UnitView, stage: Stage, seen: StageObservation) -> datetime:
    if seen.stop_requested_at is None:
        return stage_deadline(view, stage, seen)
    return seen.stop_requested_at + timedelta(seconds=view.spec.limits.stop_grace_seconds)
