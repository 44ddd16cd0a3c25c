"""Everything known at one moment: living units in full, finished ones as a tally."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from proctor_grader.model.result import Cause, Outcome, Verdict, outcome_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from proctor_grader.model.unit import Stage, Unit
    from proctor_operator.plan.spec import RunSpec

STORE_REASONS = frozenset({"StoreUnavailable", "StoreFull"})
"""Reasons of a stage's failure that stop the whole run and use no attempt."""

EVIDENCE_NOT_STORED = "EvidenceNotStored"


class StageState(StrEnum):
    """Where a stage that was started stands."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    LOST = "lost"


class RunStage(StrEnum):
    """What is done once for a run."""

    PREPARE = "prepare"
    CLEANUP = "cleanup"
    FINISH = "finish"


@dataclass(frozen=True, slots=True)
class StageObservation:
    """One stage of one attempt, or of the run.

    An agent stage has succeeded once its evidence is stored, however the agent ended.

    Attributes:
        tries: how often it was started in this attempt.
        stop_reason: why it was asked to stop; empty when it was not.
        cause: of a failure; `set` for a script's own failure, `grader` for a broken grader.
        retryable: a failure that may pass by itself.
    """

    state: StageState
    started_at: datetime
    ended_at: datetime | None = None
    tries: int = 1
    stop_requested_at: datetime | None = None
    stop_reason: str = ""
    cause: Cause | None = None
    reason: str = ""
    message: str = ""
    retryable: bool = True

    @property
    def is_running(self) -> bool:
        """Whether it was started and its end was not seen."""
        return self.state is StageState.RUNNING

    @property
    def has_failed(self) -> bool:
        """Whether it ended without doing what it is for, or vanished."""
        return self.state in (StageState.FAILED, StageState.LOST)


class AgentEnd(StrEnum):
    """How an agent ended, whatever it left; the value is the reason shown beside a verdict."""

    NORMAL = ""
    CRASHED = "AgentCrashed"
    TIMED_OUT = "AgentTimeout"
    OUT_OF_MEMORY = "AgentOutOfMemory"
    DISK_EXCEEDED = "AgentDiskExceeded"
    STOPPED = "AgentStopped"


@dataclass(frozen=True, slots=True)
class AgentFacts:
    """What an agent stage's evidence says, as far as the plan depends on it."""

    end: AgentEnd
    has_answer: bool
    message: str = ""


@dataclass(frozen=True, slots=True)
class AttemptObservation:
    """One try at a unit, counted from 1 over the unit's whole life."""

    number: int
    stages: Mapping[Stage, StageObservation] = field(default_factory=dict)
    agent: AgentFacts | None = None


@dataclass(frozen=True, slots=True)
class RecordedResult:
    """A verdict that is stored."""

    verdict: Verdict
    cause: Cause | None

    @property
    def outcome(self) -> Outcome:
        """What the verdict maps to."""
        return outcome_of(self.verdict, self.cause)


@dataclass(frozen=True, slots=True)
class UnitObservation:
    """A living unit.

    Attributes:
        attempts: oldest first, not empty.
        first_attempt: number of the first attempt that counts; earlier ones belong to a run that
            was resumed.
    """

    unit: Unit
    attempts: tuple[AttemptObservation, ...]
    first_attempt: int = 1
    result: RecordedResult | None = None

    @property
    def attempt(self) -> AttemptObservation:
        """The attempt in progress."""
        return self.attempts[-1]


@dataclass(frozen=True, slots=True)
class WaitingUnit:
    """A unit that was not started yet."""

    unit: Unit
    first_attempt: int = 1


@dataclass(frozen=True, slots=True)
class Halt:
    """The run can't go on: nothing new starts, nothing is recorded, all is cleaned up."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Cancel:
    """Somebody wants the run to end; one-way.

    Attributes:
        namespace_terminating: no teardown scripts, branches are dropped at once.
    """

    reason: str = "Cancelled"
    message: str = ""
    namespace_terminating: bool = False


@dataclass(frozen=True, slots=True)
class Tally:
    """Units that are over, by outcome.

    Attributes:
        unfinished: given up without a verdict when the run was halted.
    """

    passed: int = 0
    failed: int = 0
    ungraded: int = 0
    error: int = 0
    cancelled: int = 0
    unfinished: int = 0

    @property
    def judged(self) -> int:
        """Units with a verdict."""
        return self.passed + self.failed + self.ungraded + self.error + self.cancelled


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A run at one moment.

    Attributes:
        living: units that were started and not retired, oldest first.
        waiting: the next units in order; at least `parallelism` of them while there are as many.
        live_seconds: how long the run has had living units so far.
    """

    now: datetime
    spec: RunSpec
    living: tuple[UnitObservation, ...] = ()
    waiting: tuple[WaitingUnit, ...] = ()
    tally: Tally = field(default_factory=Tally)
    stages: Mapping[RunStage, StageObservation] = field(default_factory=dict)
    cancel: Cancel | None = None
    halt: Halt | None = None
    suspended: bool = False
    live_seconds: float = 0.0
