"""The rules that always hold, on random histories with losses, delays, hangs and crashes."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proctor_grader.model.result import Cause, Outcome, Verdict
from proctor_grader.model.run import RunEnd
from proctor_grader.model.unit import Stage, Unit
from proctor_operator.plan.run import plan_run
from proctor_operator.plan.snapshot import (
    EVIDENCE_NOT_STORED,
    AgentEnd,
    AgentFacts,
    Cancel,
    RecordedResult,
    RunStage,
    StageState,
)
from proctor_operator.plan.spec import Limits, RunSpec, Timeouts
from tests.make.plan import FakeWorld, make_unit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MAX_STEPS = 6_000
RELAXED = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])

units = st.lists(
    st.tuples(st.booleans(), st.booleans(), st.booleans(), st.booleans()), min_size=1, max_size=6
).map(
    lambda rows: [
        make_unit(
            f"u{index}",
            write=write,
            setup=write and setup,
            teardown=write and teardown,
            grades_branch=write and grades,
        )
        for index, (write, setup, teardown, grades) in enumerate(rows)
    ]
)
randoms = st.integers(0, 2**32).map(Random)
specs = st.builds(
    RunSpec,
    parallelism=st.integers(1, 4),
    has_warehouse=st.just(True),
    timeouts=st.just(Timeouts()),
    limits=st.just(Limits()),
)


class History:
    """Drives a world with a planner until the run has ended, and checks the rules on the way."""

    def __init__(self, world: FakeWorld, random: Random, *, faults: float, crashes: float) -> None:
        self.world = world
        self.random = random
        self.faults = faults
        self.crashes = crashes
        self.drop_failures: dict[tuple[str, int], int] = {}
        self.faulty_units: set[str] = set()

    def run(self, happens: Mapping[int, Callable[[FakeWorld], None]] | None = None) -> None:
        """Go on to the end; at given steps, something is done to the world."""
        for step in range(MAX_STEPS):
            if happens and step in happens:
                happens[step](self.world)
            if self.plan():
                return
            self.happen()
        pytest.fail("the run does not end")

    def plan(self) -> bool:
        """Plan and apply; a crash loses the rest of the actions, a repeat does them twice."""
        snapshot = self.world.snapshot()
        decision = plan_run(snapshot)
        is_at_rest = self.world.suspended and not self.world.living
        assert plan_run(snapshot) == decision, "the same snapshot gives the same decision"
        if decision.end is not None:
            self.world.ended = decision.end
            return True
        if not decision.actions and not is_at_rest:
            assert decision.wake_at is not None, "every state has a deadline"
            assert decision.wake_at > snapshot.now, "nobody is woken to do nothing"
        for action in decision.actions:
            if self.random.random() < self.crashes:
                if self.random.random() < 0.5:
                    self.world.restart()
                return False
            self.world.apply(action)
            if self.random.random() < 0.1:
                self.world.apply(action)
        if not decision.actions and decision.wake_at is not None and not self.world.children:
            self.world.advance(decision.wake_at)
        if self.faults and decision.wake_at is not None and self.random.random() < 0.02:
            self.world.advance(decision.wake_at)
        return False

    def happen(self) -> None:
        """Let something happen in the world: a child ends somehow, or time passes."""
        world, random = self.world, self.random
        world.advance(world.now + timedelta(seconds=random.choice((0, 0.1, 1, 5))))
        if not world.children:
            return
        key = random.choice(list(world.children))
        if random.random() < 0.3:
            return
        if random.random() < self.faults:
            self.fault(key)
        else:
            self.succeed(key)

    def fault(self, key: object) -> None:
        world, random = self.world, self.random
        if not isinstance(key, RunStage):
            unit_id, number, stage = key  # type: ignore[misc]
            if stage is Stage.DROP:
                count = self.drop_failures.get((unit_id, number), 0)
                if count >= world.spec.limits.drop_tries - 1:
                    self.succeed(key)
                    return
                self.drop_failures[unit_id, number] = count + 1
            else:
                self.faulty_units.add(unit_id)
        kind = random.choice(("infra", "lost", "hang", "collect"))
        if kind == "infra":
            world.end(key, StageState.FAILED, cause=Cause.INFRA, reason="Broken")
        elif kind == "lost":
            world.end(key, StageState.LOST, zombie=random.random() < 0.5)
        elif kind == "hang":
            world.advance(world.now + timedelta(seconds=8_000))
        elif not isinstance(key, RunStage) and key[2] is Stage.AGENT:  # type: ignore[index]
            world.end(key, StageState.FAILED, cause=Cause.INFRA, reason=EVIDENCE_NOT_STORED)

    def succeed(self, key: object) -> None:
        world = self.world
        asked = world.children[key].asked_to_stop
        if isinstance(key, RunStage):
            world.end(key)
            return
        unit_id, _, stage = key  # type: ignore[misc]
        if stage is Stage.AGENT:
            end = AgentEnd.STOPPED if asked else agent_end(unit_id)
            world.end(key, agent=AgentFacts(end, has_answer=end is AgentEnd.NORMAL))
        elif stage is Stage.SETUP and asked:
            world.end(key, StageState.FAILED, cause=Cause.INFRA, reason="Stopped")
        elif stage is Stage.GRADE:
            world.end(key, result=true_result(unit_id))
        else:
            world.end(key)


def agent_end(unit_id: str) -> AgentEnd:
    """How the agent of a unit ends when nothing disturbs it."""
    return AgentEnd.CRASHED if unit_id.endswith("3") else AgentEnd.NORMAL


def true_result(unit_id: str) -> RecordedResult:
    """What a grader finds for a unit, whenever it is asked."""
    return RecordedResult(Verdict.OFF if unit_id.endswith("1") else Verdict.CORRECT, None)


def undisturbed(unit: Unit) -> RecordedResult:
    """The verdict a unit gets when nothing goes wrong around it."""
    if agent_end(unit.id) is AgentEnd.CRASHED and not unit.grades_branch:
        return RecordedResult(Verdict.ERROR, Cause.AGENT)
    return true_result(unit.id)


def assert_nothing_left(world: FakeWorld) -> None:
    assert world.left_without_reason() == [], "a branch is left"
    assert world.living == {}
    assert not world.agents - set(world.branches), "an agent is left"


@RELAXED
@given(units=units, spec=specs, random=randoms)
def test_undisturbed_run_gives_every_unit_its_own_verdict(
    units: list[Unit], spec: RunSpec, random: Random
) -> None:
    world = FakeWorld(spec, units)
    History(world, random, faults=0, crashes=0).run()
    assert_nothing_left(world)
    assert {one.id: world.retired[one.id].result for one in units} == {
        one.id: undisturbed(one) for one in units
    }
    assert all(count == 1 for count in world.agent_starts.values())
    assert world.ended is not None
    assert world.ended.end is RunEnd.COMPLETE


@RELAXED
@given(
    units=units,
    spec=specs,
    random=randoms,
    faults=st.sampled_from([0.05, 0.2, 0.5]),
    crashes=st.sampled_from([0, 0.05, 0.2]),
)
def test_faults_never_lose_a_unit_leave_a_branch_or_change_a_verdict(
    units: list[Unit], spec: RunSpec, random: Random, faults: float, crashes: float
) -> None:
    world = FakeWorld(spec, units)
    History(world, random, faults=faults, crashes=crashes).run()
    assert_nothing_left(world)
    prepared = world.run_stages[RunStage.PREPARE].state is StageState.SUCCEEDED
    if not prepared:
        assert world.ended is not None
        assert world.ended.end is RunEnd.FAILED
        return
    for unit in units:
        result = world.retired[unit.id].result
        assert result is not None, "a unit was lost"
        assert world.agent_starts.get(unit.id, 0) <= spec.limits.attempts
        if result != undisturbed(unit):
            assert result.outcome in (Outcome.ERROR, Outcome.UNGRADED), (
                "a fault of the platform became a wrong answer"
            )
            assert result.cause in (Cause.INFRA, Cause.GRADER)


@RELAXED
@given(
    units=units,
    spec=specs,
    random=randoms,
    faults=st.sampled_from([0, 0.2]),
    crashes=st.sampled_from([0, 0.1]),
    after=st.integers(0, 60),
    namespace_terminating=st.booleans(),
)
def test_cancelled_run_ends_with_nothing_left(
    units: list[Unit],
    spec: RunSpec,
    random: Random,
    faults: float,
    crashes: float,
    after: int,
    namespace_terminating: bool,
) -> None:
    def cancel(world: FakeWorld) -> None:
        world.cancel = Cancel(namespace_terminating=namespace_terminating)

    world = FakeWorld(spec, units)
    History(world, random, faults=faults, crashes=crashes).run({after: cancel})
    assert_nothing_left(world)
    assert world.ended is not None
    if world.cancel is not None and not world.run_stages.get(RunStage.PREPARE):
        assert world.ended.end is RunEnd.CANCELLED
    for unit in world.retired.values():
        assert unit.result is not None
        if unit.result.verdict is Verdict.CANCELLED:
            assert unit.result.cause is None


@RELAXED
@given(
    units=units,
    spec=specs,
    random=randoms,
    faults=st.sampled_from([0, 0.2]),
    at=st.tuples(st.integers(0, 30), st.integers(0, 60)).map(sorted),
)
def test_suspended_run_starts_nothing_new_and_goes_on_later(
    units: list[Unit], spec: RunSpec, random: Random, faults: float, at: list[int]
) -> None:
    def suspend(world: FakeWorld) -> None:
        world.suspended = True

    def go_on(world: FakeWorld) -> None:
        world.suspended = False

    world = FakeWorld(spec, units)
    History(world, random, faults=faults, crashes=0.05).run({at[0]: suspend, at[1] + 1: go_on})
    assert_nothing_left(world)
    if world.run_stages[RunStage.PREPARE].state is StageState.SUCCEEDED:
        assert all(world.retired[one.id].result is not None for one in units)


@RELAXED
@given(units=units, spec=specs, random=randoms, faults=st.sampled_from([0, 0.2]))
def test_run_with_a_time_of_its_own_ends_in_it_and_leaves_nothing(
    units: list[Unit], spec: RunSpec, random: Random, faults: float
) -> None:
    bound = random.choice((1.0, 10.0, 100.0))
    world = FakeWorld(replace(spec, timeouts=Timeouts(run=bound)), units)
    History(world, random, faults=faults, crashes=0.05).run()
    assert_nothing_left(world)
    assert world.ended is not None
    finish = world.run_stages.get(RunStage.FINISH)
    if world.cancel is not None and finish is not None and finish.state is StageState.SUCCEEDED:
        assert world.live_seconds >= bound
        assert (world.ended.end, world.ended.reason) == (RunEnd.CANCELLED, "RunDeadlineExceeded")


@RELAXED
@given(
    units=units,
    spec=specs,
    random=randoms,
    dies=st.integers(0, 40),
    crashes=st.sampled_from([0, 0.05]),
)
def test_dead_store_halts_the_run_without_using_attempts_or_verdicts(
    units: list[Unit], spec: RunSpec, random: Random, dies: int, crashes: float
) -> None:
    world = FakeWorld(spec, units)
    history = History(world, random, faults=0, crashes=crashes)
    step = 0

    def succeed(key: object) -> None:
        nonlocal step
        step += 1
        stages = (Stage.AGENT, Stage.GRADE)
        if step > dies and not isinstance(key, RunStage) and key[2] in stages:  # type: ignore[index]
            world.end(key, StageState.FAILED, cause=Cause.INFRA, reason="StoreUnavailable")
        else:
            History.succeed(history, key)

    history.succeed = succeed  # type: ignore[method-assign]
    history.run()
    assert_nothing_left(world)
    if world.halt is None:
        return
    assert world.ended is not None
    assert (world.ended.end, world.ended.reason) == (RunEnd.FAILED, "StoreUnavailable")
    for unit in world.retired.values():
        if unit.result in (None, undisturbed(unit.unit)):
            continue
        assert crashes, "the store's fault became a unit's"
        assert unit.result is not None
        assert unit.result.cause in (Cause.INFRA, Cause.GRADER)
