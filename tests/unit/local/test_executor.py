"""The executor under races: late and lost reports, exceptions in workers, stops nobody heeds."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from proctor_grader.errors import StoreError, WarehouseError
from proctor_grader.model.result import Verdict
from proctor_grader.model.run import RunEnd
from proctor_grader.model.unit import RunId, Stage, Unit
from proctor_grader.store.layout import RunKeys
from proctor_operator.local.executor import LocalExecutor
from proctor_operator.local.outcome import StageOutcome
from proctor_operator.local.work import AttemptWork
from proctor_operator.loop import carry_out
from proctor_operator.plan.decision import RecordResult, RunVerdict
from proctor_operator.plan.snapshot import (
    AgentEnd,
    AgentFacts,
    Cancel,
    RecordedResult,
    RunStage,
    WaitingUnit,
)
from proctor_operator.plan.spec import Limits, RunSpec, Timeouts
from proctor_operator.sandbox.base import Stop, StopLevel
from tests.make.plan import make_unit

PATIENCE = 30.0
CORRECT = RecordedResult(Verdict.CORRECT, None)
AT_ONCE = Limits(backoff_seconds=0)
IMPATIENT = Limits(backoff_seconds=0, margin_seconds=0, stop_grace_seconds=0)
Call = tuple[str, int, Stage]
Act = Callable[[AttemptWork, Stop], StageOutcome]


def wait(event: threading.Event) -> None:
    assert event.wait(PATIENCE), "it did not happen"


@dataclass
class FakeStages:
    """Stages that succeed at once, unless a test says otherwise for a stage."""

    acts: dict[Stage | RunStage, Act] = field(default_factory=dict)
    record: Callable[[RecordResult], RecordedResult] | None = None
    calls: list[Call] = field(default_factory=list)
    run_stages: list[tuple[RunStage, RunVerdict | None]] = field(default_factory=list)
    stops: list[Stop] = field(default_factory=list)
    discarded: list[tuple[str, int]] = field(default_factory=list)

    def open_attempt(self, unit: Unit, number: int) -> AttemptWork:
        keys = RunKeys.local(RunId("run")).attempt(unit.id, number)
        return AttemptWork(unit, number, keys, Path("/nowhere"), f"b-{number}")

    def run(self, stage: Stage, work: AttemptWork, stop: Stop) -> StageOutcome:
        self.calls.append((work.unit.id, work.number, stage))
        self.stops.append(stop)
        if stage in self.acts:
            return self.acts[stage](work, stop)
        if stage is Stage.AGENT:
            return answered()
        return StageOutcome(result=CORRECT if stage is Stage.GRADE else None)

    def record_verdict(self, work: AttemptWork, action: RecordResult) -> RecordedResult:
        if self.record is not None:
            return self.record(action)
        return RecordedResult(action.verdict, action.cause)

    def discard(self, work: AttemptWork) -> None:
        self.discarded.append((work.unit.id, work.number))

    def run_stage(self, stage: RunStage, verdict: RunVerdict | None, stop: Stop) -> StageOutcome:
        self.run_stages.append((stage, verdict))
        if stage in self.acts:
            return self.acts[stage](self.open_attempt(make_unit("none"), 1), stop)
        return StageOutcome()

    def count(self, stage: Stage) -> int:
        return sum(call[2] is stage for call in self.calls)


def answered() -> StageOutcome:
    return StageOutcome(agent=AgentFacts(AgentEnd.NORMAL, has_answer=True))


def once(first: Act, then: Act) -> Act:
    """Do one thing the first time and another later."""
    acts: Iterator[Act] = iter([first])
    lock = threading.Lock()

    def act(work: AttemptWork, stop: Stop) -> StageOutcome:
        with lock:
            chosen = next(acts, then)
        return chosen(work, stop)

    return act


def raising(error: BaseException) -> Act:
    def act(work: AttemptWork, stop: Stop) -> StageOutcome:
        raise error

    return act


@contextmanager
def executor_of(
    stages: FakeStages,
    *units: Unit,
    limits: Limits = AT_ONCE,
    timeouts: Timeouts | None = None,
    on_retire: Callable[[Unit, RecordedResult | None], None] = lambda unit, result: None,
) -> Iterator[LocalExecutor]:
    spec = RunSpec(
        parallelism=2, has_warehouse=True, limits=limits, timeouts=timeouts or Timeouts()
    )
    waiting = [WaitingUnit(unit) for unit in units or (make_unit("a"),)]
    executor = LocalExecutor(spec, waiting, stages, on_retire=on_retire)
    yield executor
    executor.close()


def results_of(executor: LocalExecutor) -> dict[str, int]:
    tally = executor.observe().tally
    return {name: getattr(tally, name) for name in tally.__slots__ if getattr(tally, name)}


def test_run_goes_through_its_stages_and_cleans_up() -> None:
    stages = FakeStages()
    unit = make_unit("a", write=True, setup=True, teardown=True)
    with executor_of(stages, unit) as executor:
        assert carry_out(executor) == RunVerdict(RunEnd.COMPLETE)
        assert results_of(executor) == {"passed": 1}
        assert executor.close()
    assert [call[2] for call in stages.calls] == [
        *(Stage.BRANCH, Stage.SETUP, Stage.AGENT, Stage.GRADE, Stage.TEARDOWN, Stage.DROP)
    ]
    assert [stage for stage, _ in stages.run_stages] == [
        *(RunStage.PREPARE, RunStage.CLEANUP, RunStage.FINISH)
    ]


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(RuntimeError("a bug"), id="a-bug"),
        pytest.param(SystemExit(1), id="an-exit"),
        pytest.param(KeyboardInterrupt(), id="an-interrupt"),
        pytest.param(WarehouseError("is away"), id="a-warehouse-that-is-away"),
    ],
)
def test_whatever_a_worker_raises_costs_an_attempt_and_not_the_run(error: BaseException) -> None:
    stages = FakeStages({Stage.AGENT: once(raising(error), lambda work, stop: answered())})
    with executor_of(stages) as executor:
        assert carry_out(executor).end is RunEnd.COMPLETE
        assert results_of(executor) == {"passed": 1}
    assert [call[1] for call in stages.calls if call[2] is Stage.DROP] == [1, 2]


def test_grader_that_breaks_for_good_leaves_the_unit_ungraded_with_one_agent() -> None:
    stages = FakeStages({Stage.GRADE: raising(RuntimeError("a bug"))})
    with executor_of(stages) as executor:
        carry_out(executor)
        assert results_of(executor) == {"ungraded": 1}
    assert (stages.count(Stage.AGENT), stages.count(Stage.GRADE)) == (1, 3)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        pytest.param(StoreError("is away"), "StoreUnavailable", id="the-store-is-away"),
        pytest.param(RuntimeError("a bug"), "InternalError", id="a-bug"),
    ],
)
def test_verdict_that_can_not_be_stored_halts_the_run_and_all_is_dropped(
    error: Exception, reason: str
) -> None:
    def refuse(action: RecordResult) -> RecordedResult:
        raise error

    silent = StageOutcome(agent=AgentFacts(AgentEnd.CRASHED, has_answer=False))
    stages = FakeStages({Stage.AGENT: lambda work, stop: silent}, record=refuse)
    with executor_of(stages) as executor:
        verdict = carry_out(executor)
        assert (verdict.end, verdict.reason) == (RunEnd.FAILED, reason)
        assert results_of(executor) == {"unfinished": 1}
    assert stages.count(Stage.DROP) == 1
    assert RunStage.FINISH not in [stage for stage, _ in stages.run_stages]


def test_verdict_that_is_stored_already_counts_instead_of_the_plans() -> None:
    silent = StageOutcome(agent=AgentFacts(AgentEnd.CRASHED, has_answer=False))
    stages = FakeStages({Stage.AGENT: lambda work, stop: silent}, record=lambda action: CORRECT)
    with executor_of(stages) as executor:
        carry_out(executor)
        assert results_of(executor) == {"passed": 1}


def test_late_report_of_a_stage_counted_as_lost_is_ignored() -> None:
    second_has_begun, first_has_ended = threading.Event(), threading.Event()

    def hang(work: AttemptWork, stop: Stop) -> StageOutcome:
        wait(second_has_begun)
        first_has_ended.set()
        return StageOutcome(agent=AgentFacts(AgentEnd.CRASHED, has_answer=False))

    def second(work: AttemptWork, stop: Stop) -> StageOutcome:
        second_has_begun.set()
        wait(first_has_ended)
        return answered()

    stages = FakeStages({Stage.AGENT: once(hang, second)})
    # Only an agent that hangs takes longer than nothing and is given up.
    with executor_of(stages, limits=IMPATIENT, timeouts=Timeouts(agent=1)) as executor:
        assert carry_out(executor).end is RunEnd.COMPLETE
        assert results_of(executor) == {"passed": 1}
        assert not executor.close(), "a worker was given up"
    assert [call[1] for call in stages.calls if call[2] is Stage.AGENT] == [1, 2]
    assert StopLevel.KILL in [stop.level for stop in stages.stops]


def test_late_report_of_an_earlier_try_does_not_end_the_later_one() -> None:
    second_has_begun, first_has_ended = threading.Event(), threading.Event()
    ended_late: list[bool] = []

    def hang(work: AttemptWork, stop: Stop) -> StageOutcome:
        wait(second_has_begun)
        first_has_ended.set()
        return StageOutcome(result=RecordedResult(Verdict.OFF, None))

    def second(work: AttemptWork, stop: Stop) -> StageOutcome:
        second_has_begun.set()
        wait(first_has_ended)
        ended_late.append(True)
        return StageOutcome(result=CORRECT)

    stages = FakeStages({Stage.GRADE: once(hang, second)})
    with executor_of(stages, limits=IMPATIENT, timeouts=Timeouts(grade=1)) as executor:
        carry_out(executor)
        assert results_of(executor) == {"passed": 1}
    assert ended_late == [True]
    assert stages.count(Stage.AGENT) == 1


def test_cancel_reaches_what_runs_and_what_has_not_begun() -> None:
    both_run = threading.Barrier(3, timeout=PATIENCE)

    def obey(work: AttemptWork, stop: Stop) -> StageOutcome:
        both_run.wait()
        with stopped(stop) as heard:
            wait(heard)
        return StageOutcome(agent=AgentFacts(AgentEnd.STOPPED, has_answer=False))

    stages = FakeStages({Stage.AGENT: obey})

    def cancel() -> None:
        both_run.wait()
        executor.cancel(Cancel(message="stopped by SIGINT"))

    units = [make_unit(name) for name in "abcd"]
    with executor_of(stages, *units) as executor:
        canceller = threading.Thread(target=cancel)
        canceller.start()
        verdict = carry_out(executor)
        canceller.join()
        assert verdict == RunVerdict(RunEnd.CANCELLED, "Cancelled", "stopped by SIGINT")
        assert results_of(executor) == {"cancelled": 2}
        assert executor.close()
    assert stages.count(Stage.DROP) == stages.count(Stage.BRANCH) == 2
    assert stages.run_stages[-1] == (RunStage.FINISH, verdict)


@contextmanager
def stopped(stop: Stop) -> Iterator[threading.Event]:
    """An event that is set once the stop is asked for, as a sandbox hears of it."""
    heard = threading.Event()
    wake = os.eventfd(0)

    def listen() -> None:
        os.eventfd_read(wake)
        heard.set()

    listener = threading.Thread(target=listen)
    listener.start()
    stop.attach(wake)
    if stop.level is not StopLevel.NONE:
        os.eventfd_write(wake, 1)
    try:
        yield heard
    finally:
        stop.detach()
        os.eventfd_write(wake, 1)
        listener.join()
        os.close(wake)


def test_cancel_before_anything_began_ends_the_run() -> None:
    stages = FakeStages()
    with executor_of(stages) as executor:
        executor.cancel(Cancel())
        assert carry_out(executor).end is RunEnd.CANCELLED
    assert stages.calls == []


def test_listener_that_raises_ends_the_run_with_its_error_and_no_worker_is_left() -> None:
    def refuse(unit: Unit, result: RecordedResult | None) -> None:
        raise OSError("nobody listens")

    stages = FakeStages()
    with executor_of(stages, on_retire=refuse) as executor:
        with pytest.raises(OSError, match="nobody listens"):
            carry_out(executor)
        assert executor.close()


@pytest.mark.parametrize("stage", [RunStage.PREPARE, RunStage.FINISH])
def test_stage_of_the_run_that_hangs_is_given_up_and_the_run_tells_why(stage: RunStage) -> None:
    is_over = threading.Event()

    def hang(work: AttemptWork, stop: Stop) -> StageOutcome:
        wait(is_over)
        return StageOutcome()

    stages = FakeStages({stage: hang})
    limits = Limits(backoff_seconds=0, margin_seconds=0, stop_grace_seconds=0, run_stage_tries=1)
    timeouts = Timeouts(prepare=1, finish=1)
    with executor_of(stages, limits=limits, timeouts=timeouts) as executor:
        verdict = carry_out(executor)
        is_over.set()
    assert (verdict.end, verdict.reason) == (RunEnd.FAILED, "DeadlineExceeded")
    assert verdict.message


def test_discarding_that_fails_does_not_touch_the_run() -> None:
    class Clinging(FakeStages):
        def discard(self, work: AttemptWork) -> None:
            super().discard(work)
            raise OSError("it clings")

    stages = Clinging()
    with executor_of(stages) as executor:
        assert carry_out(executor).end is RunEnd.COMPLETE
        assert executor.close()
