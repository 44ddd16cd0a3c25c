"""A run's plan: its units in order, and the same plan read back."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from proctor_grader.errors import UserError
from proctor_grader.gates import GateSpec
from proctor_grader.model.criterion import ModelExpectation, ModelRebuiltCriterion
from proctor_grader.model.task import EvalSet, ScriptSettings, Task, TaskClass, TaskId
from proctor_operator.local.runplan import (
    RunOptions,
    RunPlan,
    for_set,
    new_run_id,
    refuse_writes_without_warehouse,
    units_of,
)
from proctor_operator.plan.spec import Timeouts

READ = Task(TaskId("asks"), "asks", "query", TaskClass.READ, "?", ())
WRITE = Task(
    TaskId("builds"),
    "builds",
    "query",
    TaskClass.WRITE,
    "!",
    (ModelRebuiltCriterion("m", ModelExpectation()),),
    setup="a.sh",
    teardown="b.sh",
)
PLAN = RunPlan(
    id=new_run_id(),
    set_name="s",
    format="eval-json",
    commit="",
    started_at="2026-01-01T00:00:00+00:00",
    options=RunOptions(
        agent="oracle",
        select=("tag:x",),
        agent_env=("KEY",),
        timeouts=Timeouts(agent=1.5, run=60.0),
        gates=GateSpec(min_accuracy=Decimal("80.5")),
    ),
    units=units_of([READ, WRITE], trials=2),
    versions={"proctor": "0.1.0"},
)


def test_run_id_has_its_time_and_six_hex_digits() -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert re.fullmatch(r"run-20260102-030405-[0-9a-f]{6}", new_run_id(moment))


def test_units_are_interleaved_by_trial_and_know_what_their_task_declares() -> None:
    assert [(unit.task_id, unit.trial) for unit in PLAN.units] == [
        ("asks", 1),
        ("builds", 1),
        ("asks", 2),
        ("builds", 2),
    ]
    asks, builds = PLAN.units[:2]
    assert (asks.has_setup, asks.has_teardown, asks.grades_branch) == (False, False, False)
    assert (builds.has_setup, builds.has_teardown, builds.grades_branch) == (True, True, True)
    assert len({unit.id for unit in PLAN.units}) == 4


def test_plan_is_the_same_when_read_back() -> None:
    assert RunPlan.from_bytes(PLAN.to_bytes(), "plan") == PLAN


def test_plan_never_holds_a_variables_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", "a-secret-value")
    assert b"a-secret-value" not in PLAN.to_bytes()


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"{", id="cut-off"),
        pytest.param(b"{}", id="empty"),
        pytest.param(PLAN.to_bytes().replace(b'"version": 1', b'"version": 9'), id="newer"),
    ],
)
def test_plan_that_can_not_be_read_is_told_as_such(data: bytes) -> None:
    with pytest.raises(UserError, match="run-x"):
        RunPlan.from_bytes(data, "run-x")


def test_write_task_without_warehouse_is_refused_with_both_ways_out() -> None:
    eval_set = EvalSet("eval-json", "s", "", (READ, WRITE))
    with pytest.raises(UserError) as refused:
        refuse_writes_without_warehouse(eval_set, PLAN.units)
    assert "'builds' and 1 more" in str(refused.value)
    assert "--exclude class:write" in str(refused.value)
    refuse_writes_without_warehouse(eval_set, units_of([READ]))


def test_run_without_warehouse_has_no_branches() -> None:
    assert not PLAN.spec().has_warehouse
    named = replace(PLAN, options=replace(PLAN.options, warehouse="/w.duckdb"))
    assert named.spec().has_warehouse


@pytest.mark.parametrize(
    ("of_set", "expected"),
    [
        pytest.param(7200, 7200, id="the-set-names-one"),
        pytest.param(None, 60, id="the-set-names-none"),
    ],
)
def test_plan_waits_for_scripts_as_long_as_they_may_take_where(
    of_set: int | None, expected: float
) -> None:
    settings = ScriptSettings(timeout_seconds=of_set)
    eval_set = EvalSet("eval-json", "s", "", (WRITE,), setup=settings)
    options = RunOptions(agent="oracle", timeouts=Timeouts(agent=5, setup=60, teardown=60))
    spec = replace(PLAN, options=for_set(options, eval_set)).spec()
    assert (spec.timeouts.setup, spec.timeouts.teardown) == (expected, expected)
    assert spec.timeouts.agent == 5
