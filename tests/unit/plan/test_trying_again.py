"""Another try of a stage, a new attempt, or giving up: how often, how late, with what words."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from proctor_grader.model.result import Cause, Verdict
from proctor_grader.model.unit import Stage
from proctor_operator.plan.decision import RecordResult, StartStage
from proctor_operator.plan.facts import UnitView, retry_at
from proctor_operator.plan.snapshot import (
    EVIDENCE_NOT_STORED,
    AgentEnd,
    AgentFacts,
    AttemptObservation,
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

UNIT = make_unit("a")
OK = succeeded()
RUN = make_snapshot()
ANSWERED = AgentFacts(AgentEnd.NORMAL, has_answer=True)


def step_of(builder: SnapshotBuilder) -> Step:
    snapshot = builder.snapshot
    return plan_unit(UnitView(snapshot, snapshot.living[0]))


def recorded(builder: SnapshotBuilder) -> RecordResult:
    action = step_of(builder).action
    assert isinstance(action, RecordResult)
    return action


def after(*agents: StageObservation, first_attempt: int = 1) -> SnapshotBuilder:
    """A unit whose attempts so far ended like this and were closed."""
    attempts = [
        AttemptObservation(number, {Stage.BRANCH: OK, Stage.AGENT: agent, Stage.DROP: OK})
        for number, agent in enumerate(agents, first_attempt)
    ]
    stages = {stage.value: seen for stage, seen in attempts[-1].stages.items()}
    return RUN.with_unit(
        UNIT,
        attempt=attempts[-1].number,
        earlier=attempts[:-1],
        first_attempt=first_attempt,
        **stages,
    )


@pytest.mark.parametrize(("tries", "seconds"), [(1, 1), (2, 2), (4, 8), (5, 16), (6, 30), (60, 30)])
def test_delay_doubles_up_to_a_bound_and_counts_from_the_end(tries: int, seconds: int) -> None:
    ended = replace(failed(), ended_at=START + timedelta(seconds=100))
    assert retry_at(RunSpec(), ended, tries) == START + timedelta(seconds=100 + seconds)


def test_second_new_attempt_waits_longer_than_the_first() -> None:
    assert step_of(after(lost())).wake_at == START + timedelta(seconds=1)
    assert step_of(after(lost(), lost())).wake_at == START + timedelta(seconds=2)


def test_evidence_lost_once_and_another_fault_leave_a_third_attempt() -> None:
    builder = after(failed(EVIDENCE_NOT_STORED), lost()).at(60)
    assert step_of(builder).action == StartStage(UNIT.id, 3, Stage.BRANCH)


def test_new_attempt_without_a_warehouse_begins_with_the_agent() -> None:
    bare = make_snapshot(RunSpec(has_warehouse=False)).with_unit(UNIT, agent=lost()).at(60)
    assert step_of(bare).action == StartStage(UNIT.id, 2, Stage.AGENT)


@pytest.mark.parametrize(
    ("agent", "reason", "message"),
    [
        pytest.param(
            lost(), "StageLost", "agent: it vanished while it ran (attempt 3 of 3)", id="lost"
        ),
        pytest.param(
            replace(failed(""), message=""),
            "StageLost",
            "agent: it failed (attempt 3 of 3)",
            id="no-reason-given",
        ),
        pytest.param(
            replace(lost(), stop_reason="DeadlineExceeded"),
            "DeadlineExceeded",
            "agent: it vanished while it ran (attempt 3 of 3)",
            id="stopped-by-the-plan",
        ),
        pytest.param(
            failed("HostGone"), "HostGone", "agent: HostGone happened (attempt 3 of 3)", id="told"
        ),
    ],
)
def test_last_fault_tells_what_happened_and_how_often_it_was_tried(
    agent: StageObservation, reason: str, message: str
) -> None:
    for first_attempt in (1, 5):
        action = recorded(after(lost(), lost(), agent, first_attempt=first_attempt))
        assert (action.verdict, action.cause) == (Verdict.ERROR, Cause.INFRA)
        assert (action.attempt, action.reason, action.message) == (
            first_attempt + 2,
            reason,
            message,
        )


def test_fault_of_the_set_does_not_tell_of_attempts() -> None:
    unit = make_unit("a", write=True, setup=True)
    builder = RUN.with_unit(unit, branch=OK, setup=failed("SetupCrashed", cause=Cause.SET))
    assert recorded(builder).message == "setup: SetupCrashed happened"


def test_agents_own_fault_tells_how_it_ended() -> None:
    facts = AgentFacts(AgentEnd.CRASHED, has_answer=False, message="it ended with exit code 3")
    action = recorded(RUN.with_unit(UNIT, branch=OK, agent=OK, facts=facts))
    assert action.message == "agent: it ended with exit code 3"


def test_agent_that_only_the_backstop_ended_is_graded_if_it_left_an_answer() -> None:
    facts = AgentFacts(AgentEnd.STOPPED, has_answer=True)
    builder = RUN.with_unit(UNIT, branch=OK, agent=OK, facts=facts)
    assert step_of(builder).action == StartStage(UNIT.id, 1, Stage.GRADE)


def test_grading_that_can_never_succeed_is_not_repeated() -> None:
    grade = failed("InternalError", cause=Cause.GRADER, retryable=False)
    action = recorded(RUN.with_unit(UNIT, branch=OK, agent=OK, facts=ANSWERED, grade=grade))
    assert (action.verdict, action.cause) == (Verdict.UNGRADED, Cause.GRADER)


def test_branch_that_could_not_be_dropped_is_tried_again_later() -> None:
    result = RecordedResult(Verdict.CORRECT, None)
    builder = RUN.with_unit(UNIT, branch=OK, result=result, drop=failed(tries=3))
    assert step_of(builder) == Step(wake_at=START + timedelta(seconds=4))
    assert step_of(builder.at(4)).action == StartStage(UNIT.id, 1, Stage.DROP, tries=4)


def test_no_teardown_script_runs_on_a_branch_that_may_be_half_dropped() -> None:
    unit = make_unit("a", write=True, teardown=True)
    result = RecordedResult(Verdict.CORRECT, None)
    builder = RUN.with_unit(unit, branch=OK, result=result, drop=failed()).at(60)
    assert step_of(builder).action == StartStage(unit.id, 1, Stage.DROP, tries=2)


@pytest.mark.parametrize("stage", ["branch", "setup", "agent", "grade"])
def test_unit_with_a_verdict_gets_no_new_attempt_whatever_failed(stage: str) -> None:
    unit = make_unit("a", write=True, setup=True)
    stages = {"branch": OK} | {stage: lost()}
    result = RecordedResult(Verdict.CANCELLED, None)
    assert step_of(RUN.with_unit(unit, result=result, **stages).at(60)).action == StartStage(
        unit.id, 1, Stage.DROP
    )
    dropping = RUN.with_unit(unit, result=result, **stages, drop=running())
    assert step_of(dropping).action is None
