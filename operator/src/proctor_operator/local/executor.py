"""Turns actions into calls on worker threads, and reports into a snapshot. Knows no policy.

Only the thread that calls `carry_out` changes the observations; workers send reports. Workers
live as long as the run, because a sandbox dies with the thread that started it.
"""

from __future__ import annotations

import queue
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Protocol

from proctor_operator.local.outcome import StageOutcome, outcome_of_error
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
from proctor_operator.sandbox.base import Stop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from proctor_grader.model.unit import Stage, Unit, UnitId
    from proctor_operator.local.work import AttemptWork
    from proctor_operator.plan.spec import RunSpec


_NOT_ENDED = "it did not end when it was stopped"


class UnitStages(Protocol):
    """What the executor calls; every function runs on a worker thread and is bounded in time."""

    def open_attempt(self, unit: Unit, number: int) -> AttemptWork:
        """Return the attempt's own working state; no I/O."""
        ...

    def run(self, stage: Stage, work: AttemptWork, stop: Stop) -> StageOutcome:
        """Carry out one stage."""
        ...

    def record_verdict(self, work: AttemptWork, action: RecordResult) -> RecordedResult:
        """Store a verdict of the planner's, or return the one that is stored already."""
        ...

    def discard(self, work: AttemptWork) -> None:
        """Remove the attempt's working folder."""
        ...

    def run_stage(self, stage: RunStage, verdict: RunVerdict | None, stop: Stop) -> StageOutcome:
        """Carry out what is done once for the run."""
        ...


@dataclass(slots=True)
class _Attempt:
    number: int
    work: AttemptWork
    stages: dict[Stage, StageObservation] = field(default_factory=dict)
    stops: dict[Stage, Stop] = field(default_factory=dict)
    agent: AgentFacts | None = None


@dataclass(slots=True)
class _Unit:
    unit: Unit
    first_attempt: int
    attempts: list[_Attempt] = field(default_factory=list)
    result: RecordedResult | None = None
    recording: bool = False


@dataclass(frozen=True, slots=True)
class _Report:
    """A worker's word: a stage of a unit (`stage`) or of the run (`run_stage`) has ended."""

    outcome: StageOutcome
    tries: int
    unit: UnitId | None = None
    attempt: int = 0
    stage: Stage | None = None
    run_stage: RunStage | None = None


class LocalExecutor:
    """Carries a run out on this machine's threads and processes."""

    def __init__(
        self,
        spec: RunSpec,
        waiting: Iterable[WaitingUnit],
        stages: UnitStages,
        *,
        tally: Tally | None = None,
        on_retire: Callable[[Unit, RecordedResult | None], None] = lambda unit, result: None,
        on_start: Callable[[Unit], None] = lambda unit: None,
    ) -> None:
        self._spec = spec
        self._waiting = deque(waiting)
        self._stages = stages
        self._living: dict[UnitId, _Unit] = {}
        self._run_stages: dict[RunStage, StageObservation] = {}
        self._run_stops: dict[RunStage, Stop] = {}
        self._tally = tally or Tally()
        self._cancel: Cancel | None = None
        self._halt: Halt | None = None
        self._on_retire = on_retire
        self._on_start = on_start
        self._reports: queue.SimpleQueue[_Report | None] = queue.SimpleQueue()
        self._pool = ThreadPoolExecutor(spec.parallelism + 2, thread_name_prefix="proctor")
        self._started = datetime.now(UTC)
        self._zero = time.monotonic()
        self._live_since: float | None = None
        self._live_seconds = 0.0
        self._has_stuck_worker = False

    # -- what the loop needs ------------------------------------------------------------------

    def observe(self) -> Snapshot:
        """Return everything known now."""
        return Snapshot(
            now=self._now(),
            spec=self._spec,
            living=tuple(_observed(unit) for unit in self._living.values()),
            waiting=tuple(islice(self._waiting, self._spec.parallelism)),
            tally=self._tally,
            stages=dict(self._run_stages),
            cancel=self._cancel,
            halt=self._halt,
            live_seconds=self._live_seconds_now(),
        )

    def apply(self, action: Action) -> bool:
        """Do what the plan asks; True where the next snapshot already differs for good."""
        match action:
            case StartStage():
                self._start(action)
                return True  # planned again, so that the wait ends at its deadline at the latest
            case StopStage():
                return self._stop(action)
            case RecordResult():
                self._record(action)
            case RetireUnit():
                self._retire(action.unit)
                return True
            case HaltRun():
                self._halt = action.halt
                return True
            case CancelRun():
                self._cancel = self._cancel or action.cancel
                return True
            case StartRunStage():
                self._start_run_stage(action)
                return True
            case StopRunStage():
                return self._stop_run_stage(action)
        return False

    def wait(self, until: datetime | None) -> None:
        """Take in the next report and all that came with it, or return at `until`."""
        timeout = None if until is None else max(0.0, (until - self._now()).total_seconds())
        try:
            report = self._reports.get(timeout=timeout)
            while True:
                if report is not None:
                    self._take(report)
                report = self._reports.get_nowait()
        except queue.Empty:
            return

    # -- what a signal handler or a caller may do ----------------------------------------------

    def cancel(self, cancel: Cancel) -> None:
        """Ask for the run's end; safe in a signal handler."""
        self._cancel = self._cancel or cancel
        self._reports.put(None)

    def close(self) -> bool:
        """Let the workers go; call it when the run is over and its processes have ended.

        Returns:
            Whether all of them went: one that was counted as lost may be stuck for ever.
        """
        self._pool.shutdown(wait=not self._has_stuck_worker, cancel_futures=True)
        return not self._has_stuck_worker

    # -- units ---------------------------------------------------------------------------------

    def _start(self, action: StartStage) -> None:
        unit = self._living.get(action.unit) or self._admit(action)
        attempt = unit.attempts[-1] if unit.attempts else None
        if attempt is None or attempt.number < action.attempt:
            work = self._stages.open_attempt(unit.unit, action.attempt)
            attempt = _Attempt(action.attempt, work)
            unit.attempts.append(attempt)
        seen = attempt.stages.get(action.stage)
        if seen is not None and (seen.is_running or seen.tries >= action.tries):
            return
        stop = Stop()
        attempt.stops[action.stage] = stop
        attempt.stages[action.stage] = StageObservation(
            StageState.RUNNING, self._now(), tries=action.tries
        )
        self._pool.submit(self._run_unit_stage, action, attempt.work, stop)

    def _admit(self, action: StartStage) -> _Unit:
        for index, waiting in enumerate(self._waiting):
            if waiting.unit.id == action.unit:
                del self._waiting[index]
                unit = _Unit(waiting.unit, waiting.first_attempt)
                self._living[action.unit] = unit
                self._live_since = self._live_since or time.monotonic()
                self._on_start(waiting.unit)
                return unit
        raise LookupError(action.unit)

    def _run_unit_stage(self, action: StartStage, work: AttemptWork, stop: Stop) -> None:
        try:
            outcome = self._stages.run(action.stage, work, stop)
        except BaseException as error:
            outcome = outcome_of_error(error, action.stage)
        self._reports.put(
            _Report(
                outcome,
                action.tries,
                unit=action.unit,
                attempt=action.attempt,
                stage=action.stage,
            )
        )

    def _stop(self, action: StopStage) -> bool:
        attempt = self._attempt(action.unit, action.attempt)
        seen = None if attempt is None else attempt.stages.get(action.stage)
        if attempt is None or seen is None or not seen.is_running:
            return True
        stop = attempt.stops[action.stage]
        if action.force:
            stop.kill()
            self._has_stuck_worker = True
            attempt.stages[action.stage] = replace(
                seen,
                state=StageState.LOST,
                ended_at=self._now(),
                reason=action.reason,
                message=_NOT_ENDED,
            )
            return True
        stop.cancel()
        attempt.stages[action.stage] = replace(
            seen,
            stop_requested_at=seen.stop_requested_at or self._now(),
            stop_reason=seen.stop_reason or action.reason,
        )
        return True

    def _record(self, action: RecordResult) -> None:
        unit = self._living[action.unit]
        if unit.result is None and not unit.recording:
            unit.recording = True
            self._pool.submit(self._record_result, action, unit.attempts[-1].work)

    def _record_result(self, action: RecordResult, work: AttemptWork) -> None:
        try:
            outcome = StageOutcome(result=self._stages.record_verdict(work, action))
        except BaseException as error:
            outcome = outcome_of_error(error, None)
        self._reports.put(_Report(outcome, 1, unit=action.unit, attempt=action.attempt))

    def _retire(self, unit_id: UnitId) -> None:
        unit = self._living.pop(unit_id, None)
        if unit is None:
            return
        name = "unfinished" if unit.result is None else unit.result.outcome.value
        self._tally = replace(self._tally, **{name: getattr(self._tally, name) + 1})
        for attempt in unit.attempts:
            self._pool.submit(self._stages.discard, attempt.work)
        if not self._living:
            self._live_seconds = self._live_seconds_now()
            self._live_since = None
        self._on_retire(unit.unit, unit.result)

    # -- the run -------------------------------------------------------------------------------

    def _start_run_stage(self, action: StartRunStage) -> None:
        seen = self._run_stages.get(action.stage)
        if seen is not None and (seen.is_running or seen.tries >= action.tries):
            return
        stop = Stop()
        self._run_stops[action.stage] = stop
        self._run_stages[action.stage] = StageObservation(
            StageState.RUNNING, self._now(), tries=action.tries
        )
        self._pool.submit(self._run_run_stage, action, stop)

    def _run_run_stage(self, action: StartRunStage, stop: Stop) -> None:
        try:
            outcome = self._stages.run_stage(action.stage, action.verdict, stop)
        except BaseException as error:
            outcome = outcome_of_error(error, None)
        self._reports.put(_Report(outcome, action.tries, run_stage=action.stage))

    def _stop_run_stage(self, action: StopRunStage) -> bool:
        seen = self._run_stages.get(action.stage)
        if seen is None or not seen.is_running:
            return True
        stop = self._run_stops[action.stage]
        if action.force:
            stop.kill()
            self._has_stuck_worker = True
            self._run_stages[action.stage] = replace(
                seen,
                state=StageState.LOST,
                ended_at=self._now(),
                reason=action.reason,
                message=f"{action.stage.value}: {_NOT_ENDED}",
            )
            return True
        stop.cancel()
        self._run_stages[action.stage] = replace(
            seen,
            stop_requested_at=seen.stop_requested_at or self._now(),
            stop_reason=seen.stop_reason or action.reason,
        )
        return True

    # -- reports -------------------------------------------------------------------------------

    def _take(self, report: _Report) -> None:
        if report.run_stage is not None:
            seen = self._run_stages.get(report.run_stage)
            if seen is not None and seen.is_running and seen.tries == report.tries:
                self._run_stages[report.run_stage] = _ended(seen, report.outcome, self._now())
            return
        attempt = None if report.unit is None else self._attempt(report.unit, report.attempt)
        if attempt is None or report.unit is None:
            return
        unit = self._living[report.unit]
        if report.stage is None:
            self._take_record(unit, report.outcome)
            return
        seen = attempt.stages.get(report.stage)
        if seen is None or not seen.is_running or seen.tries != report.tries:
            return
        attempt.stages[report.stage] = _ended(seen, report.outcome, self._now())
        attempt.agent = report.outcome.agent or attempt.agent
        unit.result = unit.result or report.outcome.result

    def _take_record(self, unit: _Unit, outcome: StageOutcome) -> None:
        unit.recording = False
        if outcome.result is not None:
            unit.result = unit.result or outcome.result
        else:
            self._halt = self._halt or Halt(outcome.reason, outcome.message)

    # -- small things --------------------------------------------------------------------------

    def _attempt(self, unit_id: UnitId, number: int) -> _Attempt | None:
        unit = self._living.get(unit_id)
        if unit is None:
            return None
        return next((one for one in unit.attempts if one.number == number), None)

    def _now(self) -> datetime:
        return self._started + timedelta(seconds=time.monotonic() - self._zero)

    def _live_seconds_now(self) -> float:
        if self._live_since is None:
            return self._live_seconds
        return self._live_seconds + time.monotonic() - self._live_since


def _observed(unit: _Unit) -> UnitObservation:
    return UnitObservation(
        unit=unit.unit,
        attempts=tuple(
            AttemptObservation(attempt.number, dict(attempt.stages), attempt.agent)
            for attempt in unit.attempts
        ),
        first_attempt=unit.first_attempt,
        result=unit.result,
    )


def _ended(seen: StageObservation, outcome: StageOutcome, now: datetime) -> StageObservation:
    return replace(
        seen,
        state=StageState.FAILED if outcome.reason else StageState.SUCCEEDED,
        ended_at=now,
        cause=outcome.cause,
        reason=outcome.reason,
        message=outcome.message,
        retryable=outcome.retryable,
    )
