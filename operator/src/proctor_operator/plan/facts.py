"""Questions about a snapshot, each answered in a few lines."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from proctor_grader.model.unit import Stage, Unit
from proctor_operator.plan.snapshot import (
    EVIDENCE_NOT_STORED,
    STORE_REASONS,
    AgentEnd,
    AgentFacts,
    AttemptObservation,
    RunStage,
    Snapshot,
    StageObservation,
    StageState,
    UnitObservation,
)

if TYPE_CHECKING:
    from proctor_operator.plan.spec import RunSpec


@dataclass(frozen=True, slots=True)
class UnitView:
    """A living unit together with what its next step depends on."""

    snapshot: Snapshot
    observation: UnitObservation

    @property
    def now(self) -> datetime:
        """The snapshot's clock."""
        return self.snapshot.now

    @property
    def spec(self) -> RunSpec:
        """The run's spec."""
        return self.snapshot.spec

    @property
    def unit(self) -> Unit:
        """The unit itself."""
        return self.observation.unit

    @property
    def attempt(self) -> AttemptObservation:
        """The attempt in progress."""
        return self.observation.attempt

    def stage(self, stage: Stage) -> StageObservation | None:
        """What is known of a stage of the attempt in progress; None if it was not started."""
        return self.attempt.stages.get(stage)

    def has_succeeded(self, stage: Stage) -> bool:
        """Whether the stage of the attempt in progress did what it is for."""
        seen = self.stage(stage)
        return seen is not None and seen.state is StageState.SUCCEEDED


def running_stage(view: UnitView) -> tuple[Stage, StageObservation] | None:
    """The stage of the attempt in progress that runs; at most one does."""
    for stage, seen in view.attempt.stages.items():
        if seen.is_running:
            return stage, seen
    return None


def failed_stage(view: UnitView) -> tuple[Stage, StageObservation] | None:
    """The stage up to grading that failed or vanished in the attempt in progress.

    An agent that only the planner's own backstop could end counts too, if it left nothing to
    judge: its own clock should have ended it long before, so the harness is at fault.
    """
    for stage in (Stage.BRANCH, Stage.SETUP, Stage.AGENT, Stage.GRADE):
        seen = view.stage(stage)
        if seen is not None and seen.has_failed:
            return stage, seen
    agent = view.attempt.agent
    seen = view.stage(Stage.AGENT)
    if agent is not None and seen is not None and agent.end is AgentEnd.STOPPED:
        return None if needs_grading(view, agent) else (Stage.AGENT, seen)
    return None


def branch_may_exist(view: UnitView) -> bool:
    """Whether something may have to be dropped: making it was started, dropping it not done."""
    return view.stage(Stage.BRANCH) is not None and not view.has_succeeded(Stage.DROP)


def needs_teardown(view: UnitView) -> bool:
    """Whether the teardown script is still to be run; it is tried once."""
    cancel = view.snapshot.cancel
    return (
        view.unit.has_teardown
        and view.has_succeeded(Stage.BRANCH)
        and view.stage(Stage.TEARDOWN) is None
        and view.stage(Stage.DROP) is None
        and not (cancel is not None and cancel.namespace_terminating)
    )


def attempts_used(view: UnitView) -> int:
    """Attempts of this run so far, the one in progress included."""
    return view.attempt.number - view.observation.first_attempt + 1


def collect_failures(view: UnitView) -> int:
    """Attempts whose evidence could not be stored."""
    agents = (attempt.stages.get(Stage.AGENT) for attempt in view.observation.attempts)
    return sum(seen is not None and seen.reason == EVIDENCE_NOT_STORED for seen in agents)


def needs_grading(view: UnitView, agent: AgentFacts) -> bool:
    """Whether the grader has something to look at, or an agent's silence to judge."""
    return agent.has_answer or agent.end is AgentEnd.NORMAL or view.unit.grades_branch


def stage_deadline(view: UnitView, stage: Stage, seen: StageObservation) -> datetime:
    """When the planner stops a stage that should have ended by itself long before."""
    seconds = getattr(view.spec.timeouts, stage.value) + view.spec.limits.margin_seconds
    return seen.started_at + timedelta(seconds=seconds)


def run_stage_deadline(snapshot: Snapshot, stage: RunStage, seen: StageObservation) -> datetime:
    """When a run's stage is stopped; cleaning up may take what dropping may take."""
    timeouts = snapshot.spec.timeouts
    own = {
        RunStage.PREPARE: timeouts.prepare,
        RunStage.FINISH: timeouts.finish,
        RunStage.CLEANUP: timeouts.drop,
    }[stage]
    return seen.started_at + timedelta(seconds=own + snapshot.spec.limits.margin_seconds)


def retry_at(spec: RunSpec, seen: StageObservation, tries: int) -> datetime:
    """When the next try may start after the `tries`-th failed one, doubling up to a bound."""
    delay = min(spec.limits.backoff_seconds * 2 ** (tries - 1), spec.limits.backoff_max_seconds)
    return (seen.ended_at or seen.started_at) + timedelta(seconds=delay)


def is_store_failure(seen: StageObservation) -> bool:
    """Whether the stage failed because the store or the disk is gone."""
    return seen.has_failed and seen.reason in STORE_REASONS


def slots_free(snapshot: Snapshot) -> int:
    """How many units may be started now, counted from those that live."""
    return max(0, snapshot.spec.parallelism - len(snapshot.living))
