"""What a run decides as a whole: slots, order, preparing, closing, its verdict."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from proctor_grader.model.result import Cause, Verdict
from proctor_grader.model.run import RunEnd
from proctor_grader.model.unit import Stage
from proctor_operator.plan.decision import (
    CancelRun,
    Decision,
    HaltRun,
    RunVerdict,
    StartRunStage,
    StartStage,
    StopRunStage,
)
from proctor_operator.plan.run import plan_run
from proctor_operator.plan.snapshot import (
    AgentEnd,
    AgentFacts,
    Cancel,
    Halt,
    RecordedResult,
    RunStage,
    StageObservation,
    StageState,
    Tally,
    WaitingUnit,
)
from proctor_operator.plan.spec import RunSpec, Timeouts
from tests.make.plan import (
    START,
    SnapshotBuilder,
    failed,
    make_snapshot,
    make_unit,
    running,
    succeeded,
)

OK = succeeded()
RUN = make_snapshot()
A, B, C = (make_unit(name) for name in "abc")
CLEAN = {RunStage.PREPARE: OK, RunStage.CLEANUP: OK}
COMPLETE = RunVerdict(RunEnd.COMPLETE)


def decide(builder: SnapshotBuilder) -> Decision:
    return plan_run(builder.snapshot)


def test_run_is_prepared_before_any_unit_starts() -> None:
    fresh = RUN.waiting(A).but(stages={})
    assert decide(fresh).actions == (StartRunStage(RunStage.PREPARE),)
    under_way = RUN.waiting(A).but(stages={RunStage.PREPARE: running()})
    assert decide(under_way) == Decision(wake_at=START + timedelta(seconds=1800 + 300))


def test_waiting_units_fill_the_free_slots_in_order() -> None:
    assert decide(RUN.waiting(A, B, C)).actions == (
        StartStage(A.id, 1, Stage.BRANCH),
        StartStage(B.id, 1, Stage.BRANCH),
    )
    one_lives = RUN.with_unit(A, branch=running()).waiting(B, C)
    assert decide(one_lives).actions == (StartStage(B.id, 1, Stage.BRANCH),)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"cancel": Cancel()}, id="cancelled"),
        pytest.param({"halt": Halt("StoreFull", "")}, id="halted"),
        pytest.param({"suspended": True}, id="suspended"),
    ],
)
def test_nothing_new_starts_when_the_run_is(change: dict[str, object]) -> None:
    builder = RUN.with_unit(A, branch=running()).waiting(B).but(**change)
    starts = [action for action in decide(builder).actions if isinstance(action, StartStage)]
    assert starts == []


def test_finished_run_cleans_up_then_writes_its_results_then_ends() -> None:
    done = RUN.but(tally=Tally(passed=2))
    assert decide(done).actions == (StartRunStage(RunStage.CLEANUP),)
    clean = done.but(stages=CLEAN)
    assert decide(clean).actions == (StartRunStage(RunStage.FINISH, 1, COMPLETE),)
    written = done.but(stages={**CLEAN, RunStage.FINISH: OK})
    assert decide(written).end == COMPLETE


def test_failed_preparation_is_tried_three_times_then_the_run_fails() -> None:
    def prepared(tries: int, *, retryable: bool = True) -> SnapshotBuilder:
        seen = failed("BaseBusy", tries=tries, retryable=retryable)
        return RUN.waiting(A).but(stages={RunStage.PREPARE: seen}).at(60)

    assert decide(prepared(2)).actions == (StartRunStage(RunStage.PREPARE, 3),)
    assert decide(prepared(3)).actions == (StartRunStage(RunStage.CLEANUP),)
    final = prepared(1, retryable=False)
    assert decide(final).actions == (StartRunStage(RunStage.CLEANUP),)
    cleaned = final.but(stages={**final.snapshot.stages, RunStage.CLEANUP: OK})
    assert decide(cleaned).end == RunVerdict(RunEnd.FAILED, "BaseBusy", "BaseBusy happened")


def test_stuck_preparation_is_stopped_and_then_counted_as_lost() -> None:
    late = RUN.but(stages={RunStage.PREPARE: running()}).at(2100)
    assert decide(late).actions == (StopRunStage(RunStage.PREPARE, "DeadlineExceeded"),)
    asked = replace(running(), stop_requested_at=START, stop_reason="DeadlineExceeded")
    ignored = RUN.but(stages={RunStage.PREPARE: asked}).at(60)
    assert decide(ignored).actions == (
        StopRunStage(RunStage.PREPARE, "DeadlineExceeded", force=True),
    )


def test_cancel_stops_a_preparation_under_way() -> None:
    builder = RUN.waiting(A).but(stages={RunStage.PREPARE: running()}, cancel=Cancel())
    assert decide(builder).actions == (StopRunStage(RunStage.PREPARE, "Cancelled"),)


def test_cancel_before_anything_was_done_ends_the_run() -> None:
    builder = RUN.waiting(A).but(stages={}, cancel=Cancel(message="stopped by SIGINT"))
    assert decide(builder).end == RunVerdict(RunEnd.CANCELLED, "Cancelled", "stopped by SIGINT")


def test_cancelled_run_still_writes_what_ran() -> None:
    builder = RUN.waiting(B).but(cancel=Cancel(), tally=Tally(passed=1), stages=CLEAN)
    verdict = RunVerdict(RunEnd.CANCELLED, "Cancelled")
    assert decide(builder).actions == (StartRunStage(RunStage.FINISH, 1, verdict),)


@pytest.mark.parametrize("reason", ["StoreFull", "StoreUnavailable"])
def test_store_failure_of_a_unit_halts_the_run(reason: str) -> None:
    builder = RUN.with_unit(A, branch=OK, agent=failed(reason))
    assert decide(builder).actions == (HaltRun(Halt(reason, f"{reason} happened")),)


def test_store_failure_of_a_teardown_log_does_not_halt_a_unit_that_has_its_verdict() -> None:
    builder = RUN.with_unit(
        make_unit("a", write=True, teardown=True),
        branch=OK,
        teardown=failed("StoreFull"),
        result=RecordedResult(Verdict.CORRECT, None),
    )
    assert decide(builder).actions == (StartStage(A.id, 1, Stage.DROP),)


def test_halted_run_writes_no_results_and_fails() -> None:
    builder = RUN.waiting(B).but(halt=Halt("StoreFull", "no room"), stages=CLEAN)
    assert decide(builder).end == RunVerdict(RunEnd.FAILED, "StoreFull", "no room")


def test_run_past_its_own_time_is_cancelled_with_that_reason() -> None:
    spec = RunSpec(has_warehouse=True, timeouts=Timeouts(run=100))
    builder = make_snapshot(spec).with_unit(A, branch=running())
    assert decide(builder.but(live_seconds=40.0)).wake_at == START + timedelta(seconds=60)
    (action,) = decide(builder.but(live_seconds=100.0)).actions
    assert isinstance(action, CancelRun)
    assert action.cancel.reason == "RunDeadlineExceeded"


def test_run_whose_every_unit_is_in_error_was_not_carried_out() -> None:
    builder = RUN.but(tally=Tally(error=2), stages=CLEAN)
    (action,) = decide(builder).actions
    assert isinstance(action, StartRunStage)
    assert action.verdict == RunVerdict(
        RunEnd.FAILED, "AllUnitsInError", "all 2 units ended in error, none was judged"
    )
    some = RUN.but(tally=Tally(error=2, failed=1), stages=CLEAN)
    assert decide(some).actions == (StartRunStage(RunStage.FINISH, 1, COMPLETE),)


def test_results_that_can_not_be_written_fail_the_run() -> None:
    lost = failed("StoreUnavailable", retryable=False)
    builder = RUN.but(tally=Tally(passed=1), stages={**CLEAN, RunStage.FINISH: lost})
    assert decide(builder).end == RunVerdict(
        RunEnd.FAILED, "StoreUnavailable", "StoreUnavailable happened"
    )


def test_units_wait_no_longer_than_the_earliest_deadline() -> None:
    facts = AgentFacts(AgentEnd.NORMAL, has_answer=True)
    builder = RUN.with_unit(A, branch=running()).with_unit(
        B, branch=OK, agent=OK, facts=facts, grade=running(10)
    )
    assert decide(builder).wake_at == START + timedelta(seconds=910)


def test_run_with_no_unit_to_judge_is_complete() -> None:
    assert decide(RUN.but(stages={**CLEAN, RunStage.FINISH: OK})).end == COMPLETE


def test_suspended_run_with_units_left_neither_ends_nor_cleans_up() -> None:
    assert decide(RUN.waiting(A).but(suspended=True, tally=Tally(passed=1))) == Decision()


def test_fewer_slots_than_living_units_start_nothing() -> None:
    spec = RunSpec(parallelism=1, has_warehouse=True)
    builder = make_snapshot(spec).with_unit(A, branch=running()).with_unit(B, branch=running())
    assert decide(builder.waiting(C, make_unit("d"), make_unit("e"))).actions == ()


def test_first_stage_and_attempt_of_a_waiting_unit() -> None:
    resumed = RUN.but(waiting=(WaitingUnit(A, first_attempt=4),))
    assert decide(resumed).actions == (StartStage(A.id, 4, Stage.BRANCH),)
    bare = make_snapshot(RunSpec(has_warehouse=False)).waiting(A)
    assert decide(bare).actions == (StartStage(A.id, 1, Stage.AGENT),)


def test_halted_run_is_halted_once_and_then_cleans_up() -> None:
    builder = RUN.with_unit(A, branch=OK, agent=failed("StoreFull", retryable=False))
    assert decide(builder.but(halt=Halt("StoreFull", ""))).actions == (
        StartStage(A.id, 1, Stage.DROP),
    )


def test_run_past_its_time_is_cancelled_once_and_then_waits_for_what_is_cleaned_up() -> None:
    spec = RunSpec(has_warehouse=True, timeouts=Timeouts(run=100))
    late = make_snapshot(spec).but(cancel=Cancel("RunDeadlineExceeded"), live_seconds=150.0)
    result = RecordedResult(Verdict.CANCELLED, None)
    dropping = late.with_unit(A, branch=OK, result=result, drop=running())
    assert decide(dropping) == Decision(wake_at=START + timedelta(seconds=300 + 300))


def test_units_that_live_are_planned_even_if_preparing_is_not_known_to_have_succeeded() -> None:
    builder = RUN.with_unit(A, branch=OK).but(stages={RunStage.PREPARE: failed()})
    assert decide(builder).actions == (StartStage(A.id, 1, Stage.AGENT),)


@pytest.mark.parametrize(
    ("stage", "before", "own_seconds"),
    [
        (RunStage.PREPARE, {}, 1800),
        (RunStage.CLEANUP, {RunStage.PREPARE: OK}, 300),
        (RunStage.FINISH, CLEAN, 1800),
    ],
)
def test_stage_of_the_run_has_a_deadline_of_its_own(
    stage: RunStage, before: dict[RunStage, StageObservation], own_seconds: int
) -> None:
    builder = RUN.but(stages={**before, stage: running()})
    assert decide(builder).wake_at == START + timedelta(seconds=own_seconds + 300)


@pytest.mark.parametrize("stage", [RunStage.CLEANUP, RunStage.FINISH])
def test_cancel_does_not_stop_the_end_of_a_run(stage: RunStage) -> None:
    stages = {**CLEAN, stage: running()}
    assert decide(RUN.but(stages=stages, cancel=Cancel())).actions == ()


def test_preparation_that_a_cancel_stops_is_asked_once_and_not_tried_again() -> None:
    asked = replace(running(), stop_requested_at=START, stop_reason="Cancelled")
    cancelled = RUN.waiting(A).but(cancel=Cancel())
    assert decide(cancelled.but(stages={RunStage.PREPARE: asked})) == Decision(
        wake_at=START + timedelta(seconds=60)
    )
    stopped = cancelled.but(stages={RunStage.PREPARE: failed()}).at(60)
    assert decide(stopped).actions == (StartRunStage(RunStage.CLEANUP),)


def test_stage_of_the_run_is_tried_again_later_with_the_same_verdict() -> None:
    broken = RUN.but(tally=Tally(passed=1), stages={**CLEAN, RunStage.FINISH: failed(tries=2)})
    assert decide(broken) == Decision(wake_at=START + timedelta(seconds=2))
    assert decide(broken.at(2)).actions == (StartRunStage(RunStage.FINISH, 3, COMPLETE),)


def test_preparation_lost_without_a_reason_still_gives_the_run_one() -> None:
    lost = replace(failed("", tries=3, state=StageState.LOST), message="")
    ended = RUN.waiting(A).but(stages={RunStage.PREPARE: lost, RunStage.CLEANUP: OK})
    assert decide(ended).end == RunVerdict(RunEnd.FAILED, "PrepareFailed")


def test_every_unit_with_a_verdict_counts_as_judged() -> None:
    assert Tally(1, 2, 3, 4, 5, 6).judged == 15


def test_succeeded_is_not_failed() -> None:
    assert not OK.has_failed
    assert failed(cause=Cause.SET).has_failed
    assert failed(state=StageState.LOST).has_failed
