"""What to do next. Actions have deterministic names, and doing one twice is doing it once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from proctor_grader.model.result import Cause, Verdict
    from proctor_grader.model.run import RunEnd
    from proctor_grader.model.unit import Stage, UnitId
    from proctor_operator.plan.snapshot import Cancel, Halt, RunStage


@dataclass(frozen=True, slots=True)
class StartStage:
    """Start a stage of an attempt; the first one of a waiting unit makes it live."""

    unit: UnitId
    attempt: int
    stage: Stage
    tries: int = 1


@dataclass(frozen=True, slots=True)
class StopStage:
    """End what runs; with `force` count it as lost without waiting for it any longer."""

    unit: UnitId
    attempt: int
    stage: Stage
    reason: str
    force: bool = False


@dataclass(frozen=True, slots=True)
class RecordResult:
    """Store a verdict that needs no grading; a result that is there already stays."""

    unit: UnitId
    attempt: int
    verdict: Verdict
    cause: Cause | None
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class RetireUnit:
    """Count a unit as over: its facts are recorded and nothing of it is left."""

    unit: UnitId


@dataclass(frozen=True, slots=True)
class HaltRun:
    """Remember that the run can't go on."""

    halt: Halt


@dataclass(frozen=True, slots=True)
class CancelRun:
    """Remember that the run is to end."""

    cancel: Cancel


@dataclass(frozen=True, slots=True)
class RunVerdict:
    """How the run ends as a whole."""

    end: RunEnd
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class StartRunStage:
    """Start what is done once for the run; `verdict` goes with `finish`."""

    stage: RunStage
    tries: int = 1
    verdict: RunVerdict | None = None


@dataclass(frozen=True, slots=True)
class StopRunStage:
    """End a run's stage; with `force` count it as lost."""

    stage: RunStage
    reason: str
    force: bool = False


Action = (
    StartStage
    | StopStage
    | RecordResult
    | RetireUnit
    | HaltRun
    | CancelRun
    | StartRunStage
    | StopRunStage
)


@dataclass(frozen=True, slots=True)
class Decision:
    """The plan's answer to one snapshot.

    Attributes:
        wake_at: when to look again even if nothing is reported; None when only a report matters.
        end: the run is over.
    """

    actions: tuple[Action, ...] = ()
    wake_at: datetime | None = None
    end: RunVerdict | None = None
