"""One policy after the other: what a living unit does next, from a built snapshot."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from proctor_grader.model.result import Cause, Verdict
from proctor_grader.model.unit import Stage, Unit
from proctor_operator.plan.decision import (
    Action,
    RecordResult,
    RetireUnit,
    StartStage,
    StopStage,
)
from proctor_operator.plan.facts import UnitView
from proctor_operator.plan.snapshot import (
    EVIDENCE_NOT_STORED,
    AgentEnd,
    AgentFacts,
    AttemptObservation,
    Cancel,
    Halt,
    RecordedResult,
    StageObservation,
)
from proctor_operator.plan.spec import RunSpec
from proctor_operator.plan.step import Step
from proctor_operator.plan.unit import plan_unit
from tests.make.plan import (
    START,
    SnapshotBuilder,
    failed,
    lost,
    make_snapshot,
    make_unit,
    running,
    succeeded,
)

READ = make_unit("a")
WRITE = make_unit("a", write=True, setup=True, teardown=True, grades_branch=True)
ANSWERED = AgentFacts(AgentEnd.NORMAL, has_answer=True)
SILENT = AgentFacts(AgentEnd.NORMAL, has_answer=False)
CRASHED = AgentFacts(AgentEnd.CRASHED, has_answer=False, message="ended with code 3")
TIMED_OUT_WITH_ANSWER = AgentFacts(AgentEnd.TIMED_OUT, has_answer=True)
STOPPED = AgentFacts(AgentEnd.STOPPED, has_answer=False)
CORRECT = RecordedResult(Verdict.CORRECT, None)
OK = succeeded()
RUN = make_snapshot()


def step_of(builder: SnapshotBuilder) -> Step:
    snapshot = builder.snapshot
    return plan_unit(UnitView(snapshot, snapshot.living[0]))


def start(stage: Stage, *, attempt: int = 1, tries: int = 1) -> StartStage:
    return StartStage(READ.id, attempt, stage, tries)


def verdict_of(action: Action | None) -> tuple[Verdict, Cause | None, str]:
    assert isinstance(action, RecordResult)
    return action.verdict, action.cause, action.reason


@pytest.mark.parametrize(
    ("builder", "stage"),
    [
        pytest.param(RUN.with_unit(READ, branch=OK), Stage.AGENT, id="read-unit-needs-no-setup"),
        pytest.param(RUN.with_unit(WRITE, branch=OK), Stage.SETUP, id="setup-follows-the-branch"),
        pytest.param(
            RUN.with_unit(WRITE, branch=OK, setup=OK), Stage.AGENT, id="agent-follows-setup"
        ),
    ],
)
def test_next_stage_of_a_unit_in_order(builder: SnapshotBuilder, stage: Stage) -> None:
    assert step_of(builder).action == start(stage)


def seen(facts: AgentFacts, unit: Unit = READ, **stages: StageObservation) -> SnapshotBuilder:
    """A unit whose agent stage has ended with these facts."""
    before = {"branch": OK, "agent": OK} | ({"setup": OK} if unit.has_setup else {})
    return RUN.with_unit(unit, facts=facts, **before, **stages)


@pytest.mark.parametrize(
    "builder",
    [
        pytest.param(seen(ANSWERED), id="an-answer"),
        pytest.param(seen(SILENT), id="a-normal-end-without-an-answer"),
        pytest.param(seen(TIMED_OUT_WITH_ANSWER), id="a-time-out-that-left-an-answer"),
        pytest.param(seen(CRASHED, WRITE), id="a-crash-of-a-unit-judged-by-its-branch"),
    ],
)
def test_what_is_graded(builder: SnapshotBuilder) -> None:
    assert step_of(builder).action == start(Stage.GRADE)


def test_crash_without_answer_is_the_agents_error_and_no_new_attempt() -> None:
    assert verdict_of(step_of(seen(CRASHED)).action) == (
        Verdict.ERROR,
        Cause.AGENT,
        "AgentCrashed",
    )


def test_agent_that_only_the_backstop_ended_is_tried_again_after_its_branch_is_gone() -> None:
    assert step_of(seen(STOPPED)).action == start(Stage.DROP)


@pytest.mark.parametrize(
    ("stages", "expected"),
    [
        pytest.param(
            {"branch": OK, "setup": failed("SetupFailed", cause=Cause.SET)},
            (Verdict.SETUP_FAILED, Cause.SET, "SetupFailed"),
            id="script-that-fails-is-the-sets-fault",
        ),
        pytest.param(
            {"branch": failed("BranchNotIsolated", retryable=False)},
            (Verdict.ERROR, Cause.INFRA, "BranchNotIsolated"),
            id="branch-that-can-never-be-made",
        ),
        pytest.param(
            {"branch": OK, "setup": failed("ScriptNotStarted", retryable=False)},
            (Verdict.SETUP_FAILED, Cause.INFRA, "ScriptNotStarted"),
            id="script-that-could-not-be-started",
        ),
    ],
)
def test_failures_that_end_a_unit(
    stages: dict[str, StageObservation], expected: tuple[Verdict, Cause, str]
) -> None:
    assert verdict_of(step_of(RUN.with_unit(WRITE, **stages)).action) == expected


def test_infrastructure_fault_closes_the_attempt_before_a_new_one() -> None:
    before = {"branch": OK, "setup": OK, "agent": lost()}
    assert step_of(RUN.with_unit(WRITE, **before)).action == start(Stage.TEARDOWN)
    torn_down = {**before, "teardown": OK}
    assert step_of(RUN.with_unit(WRITE, **torn_down)).action == start(Stage.DROP)
    closed = RUN.with_unit(WRITE, **torn_down, drop=OK)
    assert step_of(closed).wake_at == START + timedelta(seconds=1)
    assert step_of(closed.at(1)).action == start(Stage.BRANCH, attempt=2)


def after_lost_agents(count: int, reason: str = "", first_attempt: int = 1) -> SnapshotBuilder:
    """A unit whose last attempts all lost their agent and were closed."""
    stages = {Stage.BRANCH: OK, Stage.AGENT: failed(reason) if reason else lost(), Stage.DROP: OK}
    last = first_attempt + count - 1
    earlier = [AttemptObservation(number, stages) for number in range(first_attempt, last)]
    return RUN.with_unit(
        READ,
        attempt=last,
        earlier=earlier,
        first_attempt=first_attempt,
        **{stage.value: seen for stage, seen in stages.items()},
    ).at(60)


def test_third_lost_attempt_is_an_infrastructure_error() -> None:
    action = step_of(after_lost_agents(3)).action
    assert verdict_of(action) == (Verdict.ERROR, Cause.INFRA, "StageLost")


def test_attempts_of_a_run_that_was_resumed_do_not_count() -> None:
    resumed = after_lost_agents(1, first_attempt=3)
    assert step_of(resumed).action == start(Stage.BRANCH, attempt=4)


def test_evidence_that_twice_could_not_be_stored_gets_no_third_agent() -> None:
    action = step_of(after_lost_agents(2, EVIDENCE_NOT_STORED)).action
    assert verdict_of(action) == (Verdict.ERROR, Cause.INFRA, EVIDENCE_NOT_STORED)


@pytest.mark.parametrize(
    ("grade", "expected"),
    [
        pytest.param(
            failed("WarehouseUnavailable", tries=3),
            (Verdict.ERROR, Cause.INFRA, "WarehouseUnavailable"),
            id="what-it-judges-is-out-of-reach",
        ),
        pytest.param(
            failed("InternalError", cause=Cause.GRADER, tries=3),
            (Verdict.UNGRADED, Cause.GRADER, "InternalError"),
            id="the-grader-breaks",
        ),
        pytest.param(
            lost(tries=3), (Verdict.UNGRADED, Cause.GRADER, "GraderLost"), id="the-grader-is-lost"
        ),
    ],
)
def test_grading_is_given_up_after_three_tries(
    grade: StageObservation, expected: tuple[Verdict, Cause, str]
) -> None:
    assert verdict_of(step_of(seen(ANSWERED, grade=grade)).action) == expected


def test_lost_grader_is_repeated_on_the_same_attempt() -> None:
    builder = seen(ANSWERED, grade=lost(tries=2))
    assert step_of(builder).wake_at == START + timedelta(seconds=2)
    assert step_of(builder.at(2)).action == start(Stage.GRADE, tries=3)


def test_unit_with_a_verdict_is_torn_down_dropped_and_retired() -> None:
    done = {"branch": OK, "setup": OK, "grade": OK}

    def judged(**more: StageObservation) -> SnapshotBuilder:
        return RUN.with_unit(WRITE, result=CORRECT, **done, **more)

    assert step_of(judged()).action == start(Stage.TEARDOWN)
    assert step_of(judged(teardown=failed())).action == start(Stage.DROP)
    closed = judged(teardown=OK, drop=OK)
    assert step_of(closed).action == RetireUnit(WRITE.id)


def test_branch_that_can_not_be_dropped_is_tried_five_times_and_left_to_the_sweeper() -> None:
    def dropping(tries: int) -> SnapshotBuilder:
        return RUN.with_unit(READ, branch=OK, result=CORRECT, drop=failed(tries=tries)).at(600)

    assert step_of(dropping(4)).action == start(Stage.DROP, tries=5)
    assert step_of(dropping(5)).action == RetireUnit(READ.id)


def test_half_made_branch_is_dropped_without_a_teardown_script() -> None:
    builder = RUN.with_unit(WRITE, branch=failed(), result=CORRECT)
    assert step_of(builder).action == start(Stage.DROP)


@pytest.mark.parametrize(
    ("stage", "own_seconds"),
    [(Stage.BRANCH, 900), (Stage.SETUP, 1800), (Stage.AGENT, 600), (Stage.GRADE, 600)],
)
def test_stage_past_its_deadline_is_stopped_then_counted_as_lost(
    stage: Stage, own_seconds: int
) -> None:
    unit = make_unit("a", write=True, setup=True)

    def at(seconds: float, stop_reason: str = "") -> Step:
        stages = {"branch": OK, stage.value: running(stop_reason=stop_reason)}
        return step_of(RUN.with_unit(unit, **stages).at(seconds))

    bound = own_seconds + 300
    assert at(bound - 1) == Step(wake_at=START + timedelta(seconds=bound))
    assert at(bound).action == StopStage(unit.id, 1, stage, "DeadlineExceeded")
    asked = "DeadlineExceeded"
    assert at(59, asked) == Step(wake_at=START + timedelta(seconds=60))
    assert at(60, asked).action == StopStage(unit.id, 1, stage, "DeadlineExceeded", force=True)


CANCELLED = RUN.but(cancel=Cancel())
HALTED = RUN.but(halt=Halt("StoreFull", "no room"))


def agent_in(
    builder: SnapshotBuilder,
    agent: StageObservation,
    facts: AgentFacts | None = None,
    **more: StageObservation,
) -> SnapshotBuilder:
    """A write unit in its agent stage, or past it."""
    return builder.with_unit(WRITE, facts=facts, branch=OK, setup=OK, agent=agent, **more)


def test_cancel_stops_the_agent_once_and_then_waits() -> None:
    assert step_of(agent_in(CANCELLED, running())).action == StopStage(
        WRITE.id, 1, Stage.AGENT, "Cancelled"
    )
    assert step_of(agent_in(CANCELLED, running(stop_reason="Cancelled"))).action is None


def test_agent_stopped_by_a_cancel_is_cancelled_not_judged() -> None:
    asked = replace(OK, stop_requested_at=START, stop_reason="Cancelled")
    action = step_of(agent_in(CANCELLED, asked, STOPPED)).action
    assert verdict_of(action) == (Verdict.CANCELLED, None, "Cancelled")


def test_cancel_grades_an_agent_that_had_finished() -> None:
    assert step_of(agent_in(CANCELLED, OK, ANSWERED)).action == start(Stage.GRADE)


def test_cancel_before_the_agent_skips_grading_and_still_tears_down() -> None:
    assert verdict_of(step_of(CANCELLED.with_unit(WRITE, branch=OK)).action)[0] is (
        Verdict.CANCELLED
    )
    recorded = CANCELLED.with_unit(WRITE, branch=OK, result=RecordedResult(Verdict.CANCELLED, None))
    assert step_of(recorded).action == start(Stage.TEARDOWN)


def test_terminating_namespace_runs_no_teardown_script_and_grades_nothing() -> None:
    ending = RUN.but(cancel=Cancel("NamespaceTerminating", namespace_terminating=True))
    assert verdict_of(step_of(agent_in(ending, OK, ANSWERED)).action)[0] is Verdict.CANCELLED
    recorded = ending.with_unit(WRITE, branch=OK, result=CORRECT)
    assert step_of(recorded).action == start(Stage.DROP)


def test_halt_stops_the_agent_cleans_up_and_records_nothing() -> None:
    assert step_of(agent_in(HALTED, running())).action == StopStage(
        WRITE.id, 1, Stage.AGENT, "RunHalted"
    )
    assert step_of(agent_in(HALTED, OK, ANSWERED)).action == start(Stage.TEARDOWN)
    assert step_of(agent_in(HALTED, OK, ANSWERED, teardown=OK)).action == start(Stage.DROP)
    assert step_of(agent_in(HALTED, OK, ANSWERED, teardown=OK, drop=OK)).action == RetireUnit(
        WRITE.id
    )


def test_run_without_a_warehouse_starts_with_the_agent_and_drops_nothing() -> None:
    bare = make_snapshot(RunSpec(has_warehouse=False))
    assert step_of(bare.with_unit(READ)).action == start(Stage.AGENT)
    assert step_of(bare.with_unit(READ, result=CORRECT)).action == RetireUnit(READ.id)
