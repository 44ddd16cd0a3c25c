"""A run's decision: prepare, units within the free slots, clean up, finish."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from proctor_grader.model.run import RunEnd
from proctor_grader.model.unit import Stage
from proctor_operator.plan.decision import (
    Action,
    CancelRun,
    Decision,
    HaltRun,
    RunVerdict,
    StartRunStage,
    StartStage,
    StopRunStage,
)
from proctor_operator.plan.facts import (
    UnitView,
    is_store_failure,
    retry_at,
    run_stage_deadline,
    slots_free,
)
from proctor_operator.plan.rules.deadlines import DEADLINE_EXCEEDED
from proctor_operator.plan.snapshot import (
    Cancel,
    Halt,
    RunStage,
    Snapshot,
    StageObservation,
    StageState,
)
from proctor_operator.plan.unit import plan_unit

if TYPE_CHECKING:
    from datetime import datetime

RUN_DEADLINE_EXCEEDED = "RunDeadlineExceeded"
ALL_UNITS_IN_ERROR = "AllUnitsInError"


def plan_run(snapshot: Snapshot) -> Decision:
    """Decide what a run does next. Pure: the same snapshot gives the same decision.

    Args:
        snapshot: everything known now.

    Returns:
        Actions in the order in which they are to be applied, and when to look again.
    """
    told = _new_facts(snapshot)
    if told is not None:
        return Decision((told,))
    prepare = snapshot.stages.get(RunStage.PREPARE)
    if prepare is None:
        if _is_stopping(snapshot):
            return _close(snapshot)
        return Decision((StartRunStage(RunStage.PREPARE),))
    if prepare.state is not StageState.SUCCEEDED and not snapshot.living:
        step = _run_stage(snapshot, RunStage.PREPARE, prepare)
        return step or _close(snapshot)
    units = _plan_units(snapshot)
    if snapshot.living or units.actions:
        return units
    if snapshot.waiting and not _is_stopping(snapshot):
        return units
    return _close(snapshot)


def _new_facts(snapshot: Snapshot) -> Action | None:
    """A fact about the whole run that must be remembered before anything else is done."""
    if snapshot.halt is None:
        for observation in snapshot.living:
            if observation.result is not None:
                continue
            for seen in observation.attempt.stages.values():
                if is_store_failure(seen):
                    return HaltRun(Halt(seen.reason, seen.message))
    bound = snapshot.spec.timeouts.run
    if snapshot.cancel is None and bound is not None and snapshot.live_seconds >= bound:
        message = f"the run has been at work for longer than its {bound:g} seconds"
        return CancelRun(Cancel(RUN_DEADLINE_EXCEEDED, message))
    return None


def _is_stopping(snapshot: Snapshot) -> bool:
    return snapshot.cancel is not None or snapshot.halt is not None


def _plan_units(snapshot: Snapshot) -> Decision:
    actions: list[Action] = []
    wakes: list[datetime] = []
    for observation in snapshot.living:
        step = plan_unit(UnitView(snapshot, observation))
        if step.action is not None:
            actions.append(step.action)
        if step.wake_at is not None:
            wakes.append(step.wake_at)
    if not _is_stopping(snapshot) and not snapshot.suspended:
        first = Stage.BRANCH if snapshot.spec.has_warehouse else Stage.AGENT
        actions += [
            StartStage(waiting.unit.id, waiting.first_attempt, first)
            for waiting in snapshot.waiting[: slots_free(snapshot)]
        ]
    bound = snapshot.spec.timeouts.run
    if bound is not None and snapshot.living and snapshot.cancel is None:
        wakes.append(snapshot.now + timedelta(seconds=bound - snapshot.live_seconds))
    return Decision(tuple(actions), wake_at=min(wakes, default=None))


def _run_stage(snapshot: Snapshot, stage: RunStage, seen: StageObservation) -> Decision | None:
    """Wait for a run's stage, stop it or start it anew; None once it has ended for good."""
    limits = snapshot.spec.limits
    if seen.is_running:
        if seen.stop_requested_at is not None:
            bound = seen.stop_requested_at + timedelta(seconds=limits.stop_grace_seconds)
        else:
            bound = run_stage_deadline(snapshot, stage, seen)
        if snapshot.now >= bound:
            asked = seen.stop_requested_at is not None
            return Decision((StopRunStage(stage, DEADLINE_EXCEEDED, force=asked),))
        if stage is RunStage.PREPARE and _is_stopping(snapshot) and not seen.stop_requested_at:
            return Decision((StopRunStage(stage, "Cancelled"),))
        return Decision(wake_at=bound)
    may_retry = seen.retryable and seen.tries < limits.run_stage_tries
    if seen.state is StageState.SUCCEEDED or not may_retry:
        return None
    if stage is RunStage.PREPARE and _is_stopping(snapshot):
        return None
    at = retry_at(snapshot.spec, seen, seen.tries)
    if snapshot.now < at:
        return Decision(wake_at=at)
    verdict = run_verdict(snapshot) if stage is RunStage.FINISH else None
    return Decision((StartRunStage(stage, seen.tries + 1, verdict),))


def _close(snapshot: Snapshot) -> Decision:
    """Drop what the run shared, write its results, and end."""
    verdict = run_verdict(snapshot)
    prepare = snapshot.stages.get(RunStage.PREPARE)
    due: list[RunStage] = []
    if prepare is not None:
        due.append(RunStage.CLEANUP)
    if _was_carried_out(snapshot):
        due.append(RunStage.FINISH)
    for stage in due:
        seen = snapshot.stages.get(stage)
        if seen is None:
            told = verdict if stage is RunStage.FINISH else None
            return Decision((StartRunStage(stage, 1, told),))
        step = _run_stage(snapshot, stage, seen)
        if step is not None:
            return step
    finish = snapshot.stages.get(RunStage.FINISH)
    if finish is not None and finish.has_failed:
        return Decision(end=RunVerdict(RunEnd.FAILED, finish.reason, finish.message))
    return Decision(end=verdict)


def _was_carried_out(snapshot: Snapshot) -> bool:
    prepare = snapshot.stages.get(RunStage.PREPARE)
    prepared = prepare is not None and prepare.state is StageState.SUCCEEDED
    return prepared and snapshot.halt is None


def run_verdict(snapshot: Snapshot) -> RunVerdict:
    """How the run ends, seen from what is known when nothing lives any more.

    Source: design.md, section 6: a run fails when it could not be carried out; wrong answers are
    a complete run.
    """
    if snapshot.halt is not None:
        return RunVerdict(RunEnd.FAILED, snapshot.halt.reason, snapshot.halt.message)
    if snapshot.cancel is not None:
        return RunVerdict(RunEnd.CANCELLED, snapshot.cancel.reason, snapshot.cancel.message)
    prepare = snapshot.stages.get(RunStage.PREPARE)
    if prepare is not None and prepare.has_failed:
        return RunVerdict(RunEnd.FAILED, prepare.reason or "PrepareFailed", prepare.message)
    tally = snapshot.tally
    if tally.judged and tally.error == tally.judged:
        message = f"all {tally.judged} units ended in error, none was judged"
        return RunVerdict(RunEnd.FAILED, ALL_UNITS_IN_ERROR, message)
    return RunVerdict(RunEnd.COMPLETE)
