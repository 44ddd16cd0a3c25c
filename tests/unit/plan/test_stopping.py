"""Cancelling, halting and deadlines: what is stopped, and what is left to end by itself."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from proctor_grader.model.result import Verdict
from proctor_grader.model.unit import Stage
from proctor_operator.plan.decision import Action, RecordResult, StartStage, StopStage
from proctor_operator.plan.facts import UnitView
from proctor_operator.plan.snapshot import (
    AgentEnd,
    AgentFacts,
    Cancel,
    Halt,
    RecordedResult,
    StageObservation,
)
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

UNIT = make_unit("a", write=True, setup=True, teardown=True, grades_branch=True)
ANSWERED = AgentFacts(AgentEnd.NORMAL, has_answer=True)
CORRECT = RecordedResult(Verdict.CORRECT, None)
OK = succeeded()
RUN = make_snapshot()
CANCELLED = RUN.but(cancel=Cancel("Stopped", "stopped by SIGINT"))
HALTED = RUN.but(halt=Halt("StoreFull", "no room"))
BEFORE = {
    Stage.BRANCH: {},
    Stage.SETUP: {"branch": OK},
    Stage.AGENT: {"branch": OK, "setup": OK},
    Stage.GRADE: {"branch": OK, "setup": OK, "agent": OK},
    Stage.TEARDOWN: {"branch": OK, "setup": OK, "agent": OK, "grade": OK},
    Stage.DROP: {"branch": OK, "setup": OK, "agent": OK, "grade": OK, "teardown": OK},
}


def action_of(builder: SnapshotBuilder) -> Action | None:
    snapshot = builder.snapshot
    return plan_unit(UnitView(snapshot, snapshot.living[0])).action


def in_stage(
    builder: SnapshotBuilder, stage: Stage, seen: StageObservation | None = None
) -> SnapshotBuilder:
    """The unit with this stage as its last one; it runs if nothing else is said."""
    is_judged = stage in (Stage.TEARDOWN, Stage.DROP) and builder.snapshot.halt is None
    has_ended = stage in (Stage.GRADE, Stage.TEARDOWN, Stage.DROP)
    return builder.with_unit(
        UNIT,
        facts=ANSWERED if has_ended else None,
        result=CORRECT if is_judged else None,
        **BEFORE[stage],
        **{stage.value: seen or running()},
    )


@pytest.mark.parametrize("stage", [Stage.SETUP, Stage.AGENT])
def test_cancel_stops(stage: Stage) -> None:
    assert action_of(in_stage(CANCELLED, stage)) == StopStage(UNIT.id, 1, stage, "Stopped")


@pytest.mark.parametrize("stage", [Stage.BRANCH, Stage.GRADE, Stage.TEARDOWN, Stage.DROP])
def test_cancel_waits_for(stage: Stage) -> None:
    assert action_of(in_stage(CANCELLED, stage)) is None


@pytest.mark.parametrize("stage", [Stage.SETUP, Stage.AGENT, Stage.GRADE])
def test_halt_stops(stage: Stage) -> None:
    assert action_of(in_stage(HALTED, stage)) == StopStage(UNIT.id, 1, stage, "RunHalted")


@pytest.mark.parametrize("stage", [Stage.BRANCH, Stage.TEARDOWN, Stage.DROP])
def test_halt_waits_for(stage: Stage) -> None:
    assert action_of(in_stage(HALTED, stage)) is None


@pytest.mark.parametrize(
    "builder",
    [
        pytest.param(in_stage(CANCELLED, Stage.BRANCH, failed()), id="branch-could-not-be-made"),
        pytest.param(in_stage(CANCELLED, Stage.BRANCH, OK), id="setup-had-not-begun"),
        pytest.param(in_stage(CANCELLED, Stage.SETUP, failed()), id="setup-was-stopped"),
        pytest.param(in_stage(CANCELLED, Stage.AGENT, lost()), id="agent-was-lost"),
    ],
)
def test_unit_of_a_cancelled_run_is_cancelled_and_gets_no_new_attempt_where(
    builder: SnapshotBuilder,
) -> None:
    assert action_of(builder) == RecordResult(
        UNIT.id, 1, Verdict.CANCELLED, None, reason="Stopped", message="stopped by SIGINT"
    )


def test_grading_that_failed_is_repeated_in_a_cancelled_run() -> None:
    builder = CANCELLED.with_unit(UNIT, facts=ANSWERED, **BEFORE[Stage.GRADE], grade=lost())
    assert action_of(builder.at(10)) == StartStage(UNIT.id, 1, Stage.GRADE, tries=2)


def test_halted_run_records_no_cancelled_verdicts() -> None:
    both = HALTED.but(cancel=Cancel())
    stopped = replace(OK, stop_requested_at=START, stop_reason="RunHalted")
    assert action_of(in_stage(both, Stage.AGENT, stopped)) == StartStage(UNIT.id, 1, Stage.TEARDOWN)


def test_what_ignores_a_stop_is_given_up_with_the_reason_of_that_stop() -> None:
    ignored = in_stage(CANCELLED, Stage.AGENT, running(stop_reason="Stopped")).at(60)
    assert action_of(ignored) == StopStage(UNIT.id, 1, Stage.AGENT, "Stopped", force=True)


@pytest.mark.parametrize(("stage", "own_seconds"), [(Stage.TEARDOWN, 1800), (Stage.DROP, 300)])
def test_cleaning_up_has_a_time_of_its_own(stage: Stage, own_seconds: int) -> None:
    builder = in_stage(RUN, stage, running(seconds=5_000))
    snapshot = builder.at(5_000).snapshot
    bound = START + timedelta(seconds=5_000 + own_seconds + 300)
    assert plan_unit(UnitView(snapshot, snapshot.living[0])).wake_at == bound
