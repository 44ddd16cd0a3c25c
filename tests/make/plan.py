"""Builders of snapshots, valid by default, and a world in which plans are carried out.

`FakeWorld` keeps what a real executor's world keeps (stages, branches, agents, results) and lets a
test decide, event by event, what is lost, late, repeated or hung.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from proctor_grader.model.result import Cause, Verdict
from proctor_grader.model.task import TaskClass, TaskId
from proctor_grader.model.unit import Stage, Unit, UnitId
from proctor_operator.plan.decision import (
    Action,
    CancelRun,
    HaltRun,
    RecordResult,
    RetireUnit,
    RunVerdict,
    StartRunStage,
    StartStage,
    StopRunStage,
    StopStage,
)
from proctor_operator.plan.snapshot import (
    AgentEnd,
    AgentFacts,
    AttemptObservation,
    Cancel,
    Halt,
    RecordedResult,
    RunStage,
    Snapshot,
    StageObservation,
    StageState,
    Tally,
    UnitObservation,
    WaitingUnit,
)
from proctor_operator.plan.spec import RunSpec

if TYPE_CHECKING:
    from collections.abc import Sequence

START = datetime(2026, 1, 1, tzinfo=UTC)


def make_unit(
    name: str = "a",
    *,
    write: bool = False,
    setup: bool = False,
    teardown: bool = False,
    grades_branch: bool = False,
) -> Unit:
    """Build a unit; a read unit unless said otherwise."""
    return Unit(
        id=UnitId(name),
        task_id=TaskId(name),
        task_class=TaskClass.WRITE if write else TaskClass.READ,
        has_setup=setup,
        has_teardown=teardown,
        grades_branch=grades_branch,
    )


def succeeded(seconds: float = 0) -> StageObservation:
    """Build a stage that did what it is for."""
    at = START + timedelta(seconds=seconds)
    return StageObservation(StageState.SUCCEEDED, at, ended_at=at)


def running(seconds: float = 0, *, stop_reason: str = "", tries: int = 1) -> StageObservation:
    """Build a stage that was started `seconds` after START."""
    at = START + timedelta(seconds=seconds)
    asked = at if stop_reason else None
    return StageObservation(
        StageState.RUNNING, at, stop_requested_at=asked, stop_reason=stop_reason, tries=tries
    )


def failed(
    reason: str = "Broken",
    *,
    cause: Cause = Cause.INFRA,
    tries: int = 1,
    retryable: bool = True,
    state: StageState = StageState.FAILED,
) -> StageObservation:
    """Build a stage that failed at START."""
    return StageObservation(
        state,
        START,
        ended_at=START,
        tries=tries,
        cause=cause,
        reason=reason,
        message=f"{reason} happened",
        retryable=retryable,
    )


def lost(*, tries: int = 1) -> StageObservation:
    """Build a stage that vanished."""
    return StageObservation(StageState.LOST, START, ended_at=START, tries=tries)


@dataclass(frozen=True)
class SnapshotBuilder:
    """Builds a run in progress: prepared, with a warehouse, nothing alive."""

    snapshot: Snapshot

    def with_unit(
        self,
        unit: Unit,
        *,
        attempt: int = 1,
        facts: AgentFacts | None = None,
        result: RecordedResult | None = None,
        first_attempt: int = 1,
        earlier: Sequence[AttemptObservation] = (),
        **stages: StageObservation,
    ) -> SnapshotBuilder:
        """Add a living unit whose last attempt has these stages, by lower-case name."""
        seen = {Stage(name): stage for name, stage in stages.items()}
        observation = UnitObservation(
            unit,
            (*earlier, AttemptObservation(attempt, seen, facts)),
            first_attempt=first_attempt,
            result=result,
        )
        return SnapshotBuilder(replace(self.snapshot, living=(*self.snapshot.living, observation)))

    def waiting(self, *units: Unit) -> SnapshotBuilder:
        """Add units that were not started."""
        added = tuple(WaitingUnit(unit) for unit in units)
        return SnapshotBuilder(replace(self.snapshot, waiting=self.snapshot.waiting + added))

    def at(self, seconds: float) -> SnapshotBuilder:
        """Set the clock to `seconds` after START."""
        return SnapshotBuilder(replace(self.snapshot, now=START + timedelta(seconds=seconds)))

    def but(self, **changes: object) -> SnapshotBuilder:
        """Change fields of the snapshot."""
        return SnapshotBuilder(replace(self.snapshot, **changes))  # type: ignore[arg-type]


def make_snapshot(spec: RunSpec | None = None) -> SnapshotBuilder:
    """Build a prepared run without units at START."""
    return SnapshotBuilder(
        Snapshot(
            now=START,
            spec=spec or RunSpec(parallelism=2, has_warehouse=True),
            stages={RunStage.PREPARE: succeeded()},
        )
    )


@dataclass
class Child:
    """A running stage of the fake world."""

    key: tuple[UnitId, int, Stage] | RunStage
    asked_to_stop: bool = False


@dataclass
class FakeAttempt:
    """What the fake world remembers of an attempt."""

    stages: dict[Stage, StageObservation] = field(default_factory=dict)
    agent: AgentFacts | None = None


@dataclass
class FakeUnit:
    """What the fake world remembers of a unit that was started."""

    unit: Unit
    attempts: dict[int, FakeAttempt] = field(default_factory=dict)
    result: RecordedResult | None = None


@dataclass
class FakeWorld:
    """A world that carries out actions at once and ends children when the test says so."""

    spec: RunSpec
    units: Sequence[Unit]
    now: datetime = START
    living: dict[UnitId, FakeUnit] = field(default_factory=dict)
    retired: dict[UnitId, FakeUnit] = field(default_factory=dict)
    run_stages: dict[RunStage, StageObservation] = field(default_factory=dict)
    branches: dict[tuple[UnitId, int], str] = field(default_factory=dict)
    agents: set[tuple[UnitId, int]] = field(default_factory=set)
    children: dict[object, Child] = field(default_factory=dict)
    cancel: Cancel | None = None
    halt: Halt | None = None
    suspended: bool = False
    live_seconds: float = 0.0
    ended: RunVerdict | None = None
    agent_starts: dict[UnitId, int] = field(default_factory=dict)
    finish_verdict: RunVerdict | None = None

    def snapshot(self) -> Snapshot:
        """Observe the world."""
        known = {*self.living, *self.retired}
        tally = Tally()
        for unit in self.retired.values():
            name = "unfinished" if unit.result is None else unit.result.outcome.value
            tally = replace(tally, **{name: getattr(tally, name) + 1})
        return Snapshot(
            now=self.now,
            spec=self.spec,
            living=tuple(
                UnitObservation(
                    one.unit,
                    tuple(
                        AttemptObservation(number, dict(attempt.stages), attempt.agent)
                        for number, attempt in sorted(one.attempts.items())
                    ),
                    result=one.result,
                )
                for one in self.living.values()
            ),
            waiting=tuple(WaitingUnit(unit) for unit in self.units if unit.id not in known),
            tally=tally,
            stages=dict(self.run_stages),
            cancel=self.cancel,
            halt=self.halt,
            suspended=self.suspended,
            live_seconds=self.live_seconds,
        )

    def advance(self, to: datetime) -> None:
        """Let time pass; the run's own clock ticks only while a unit lives."""
        passed = max(0.0, (to - self.now).total_seconds())
        self.now += timedelta(seconds=passed)
        if self.living:
            self.live_seconds += passed

    def apply(self, action: Action) -> None:
        """Carry out one action; every assertion here is a rule that always holds."""
        match action:
            case StartStage():
                self._start(action)
            case StopStage(unit=unit, attempt=attempt, stage=stage):
                self._stop((unit, attempt, stage), action.reason, action.force)
            case RecordResult():
                one = self.living[action.unit]
                one.result = one.result or RecordedResult(action.verdict, action.cause)
            case RetireUnit(unit=unit):
                if unit in self.living:
                    self._assert_over(unit)
                    self.retired[unit] = self.living.pop(unit)
            case HaltRun(halt=halt):
                self.halt = self.halt or halt
            case CancelRun(cancel=cancel):
                self.cancel = self.cancel or cancel
            case StartRunStage(stage=stage, tries=tries, verdict=verdict):
                seen = self.run_stages.get(stage)
                if seen is None or (not seen.is_running and seen.tries < tries):
                    self.run_stages[stage] = StageObservation(
                        StageState.RUNNING, self.now, tries=tries
                    )
                    self.children[stage] = Child(stage)
                    self.finish_verdict = verdict or self.finish_verdict
            case StopRunStage(stage=stage):
                self._stop(stage, action.reason, action.force)

    def _assert_over(self, unit: UnitId) -> None:
        left = [key for key in self.branches if key[0] == unit]
        assert all(self._was_given_up(key) for key in left), "a retired unit left a branch"
        running = [key for key in self.children if isinstance(key, tuple) and key[0] == unit]
        assert not running, "a retired unit left something running"
        assert self.living[unit].result is not None or self.halt is not None

    def _start(self, action: StartStage) -> None:
        assert action.unit not in self.retired, "a finished unit stays finished"
        others = [key for key in self.children if isinstance(key, tuple) and key[0] == action.unit]
        assert not set(others) - {(action.unit, action.attempt, action.stage)}, "one at a time"
        if self.cancel is not None:
            assert action.unit in self.living, "nothing new starts in a cancelled run"
            assert action.stage not in (Stage.BRANCH, Stage.SETUP, Stage.AGENT)
            if self.cancel.namespace_terminating:
                assert action.stage is Stage.DROP, "a namespace that goes is only cleaned up"
        if self.halt is not None:
            assert action.stage in (Stage.TEARDOWN, Stage.DROP), "a halted run only cleans up"
        if self.suspended:
            assert action.unit in self.living, "nothing new starts in a suspended run"
        if action.unit not in self.living:
            unit = next(one for one in self.units if one.id == action.unit)
            self.living[action.unit] = FakeUnit(unit)
            assert len(self.living) <= self.spec.parallelism, "slots are kept"
        one = self.living[action.unit]
        attempt = one.attempts.setdefault(action.attempt, FakeAttempt())
        seen = attempt.stages.get(action.stage)
        if seen is not None and (seen.is_running or seen.tries >= action.tries):
            return
        key = (action.unit, action.attempt)
        if action.stage is Stage.AGENT:
            assert key not in self.agents, "never two agents on one branch"
            others = [k for k in self.branches if k[0] == action.unit and k != key]
            assert all(self._was_given_up(k) for k in others), "an old attempt's branch is left"
            assert one.result is None
            self.agents.add(key)
            self.agent_starts[action.unit] = self.agent_starts.get(action.unit, 0) + 1
        if action.stage is Stage.BRANCH:
            self.branches[key] = "half"
        attempt.stages[action.stage] = StageObservation(
            StageState.RUNNING, self.now, tries=action.tries
        )
        self.children[(*key, action.stage)] = Child((*key, action.stage))

    def _was_given_up(self, key: tuple[UnitId, int]) -> bool:
        unit = self.living.get(key[0]) or self.retired[key[0]]
        drop = unit.attempts[key[1]].stages.get(Stage.DROP)
        return drop is not None and drop.tries >= self.spec.limits.drop_tries

    def left_without_reason(self) -> list[tuple[UnitId, int]]:
        """Branches of the ended run for which not everything was tried before the sweeper."""
        cleanup = self.run_stages.get(RunStage.CLEANUP)
        was_tried = cleanup is not None and cleanup.tries >= self.spec.limits.run_stage_tries
        return [key for key in self.branches if not was_tried or not self._was_given_up(key)]

    def _stop(self, key: object, reason: str, force: bool) -> None:
        seen = self.observed(key)
        if seen is None or not seen.is_running:
            return
        child = self.children.get(key)
        if force:
            self.children.pop(key, None)
            self.put(key, replace(seen, state=StageState.LOST, ended_at=self.now, reason=reason))
            return
        if child is not None:
            child.asked_to_stop = True
        self.put(
            key,
            replace(
                seen,
                stop_requested_at=seen.stop_requested_at or self.now,
                stop_reason=seen.stop_reason or reason,
            ),
        )

    def observed(self, key: object) -> StageObservation | None:
        """Return what is known of a unit's or the run's stage."""
        if isinstance(key, RunStage):
            return self.run_stages.get(key)
        unit_id, number, stage = key  # type: ignore[misc]
        unit = self.living.get(unit_id)
        return None if unit is None else unit.attempts[number].stages.get(stage)

    def put(self, key: object, seen: StageObservation) -> None:
        """Replace what is known of a stage."""
        if isinstance(key, RunStage):
            self.run_stages[key] = seen
            return
        unit_id, number, stage = key  # type: ignore[misc]
        self.living[unit_id].attempts[number].stages[stage] = seen

    def end(
        self,
        key: object,
        state: StageState = StageState.SUCCEEDED,
        *,
        cause: Cause | None = None,
        reason: str = "",
        agent: AgentFacts | None = None,
        result: RecordedResult | None = None,
        zombie: bool = False,
    ) -> None:
        """End a child; a zombie agent goes on running on its branch until that is dropped."""
        self.children.pop(key, None)
        seen = self.observed(key)
        if seen is None or not seen.is_running:
            return
        self.put(key, replace(seen, state=state, ended_at=self.now, cause=cause, reason=reason))
        if isinstance(key, RunStage):
            if key is RunStage.CLEANUP and state is StageState.SUCCEEDED:
                self.branches.clear()
                self.agents.clear()
            return
        unit_id, number, stage = key  # type: ignore[misc]
        unit = self.living[unit_id]
        if stage is Stage.AGENT and not zombie:
            self.agents.discard((unit_id, number))
        if state is not StageState.SUCCEEDED:
            return
        if stage is Stage.BRANCH:
            self.branches[unit_id, number] = "ready"
        if stage is Stage.DROP:
            self.branches.pop((unit_id, number), None)
            self.agents.discard((unit_id, number))
        if stage is Stage.AGENT:
            unit.attempts[number].agent = agent or AgentFacts(AgentEnd.NORMAL, has_answer=True)
        if stage is Stage.GRADE:
            unit.result = unit.result or result or RecordedResult(Verdict.CORRECT, None)

    def restart(self) -> None:
        """Lose every child, as when the process that held them all was killed."""
        for key in list(self.children):
            self.end(key, StageState.LOST, zombie=True)
