"""A unit's next step: an ordered tuple of rules, the first that answers wins. Constant work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proctor_operator.plan.rules.attempts import after_failure
from proctor_operator.plan.rules.cancel import stop_when_cancelled, stop_when_halted
from proctor_operator.plan.rules.deadlines import stop_overdue, wait_for_stage
from proctor_operator.plan.rules.progress import next_stage
from proctor_operator.plan.rules.teardown import close_finished
from proctor_operator.plan.step import Step

if TYPE_CHECKING:
    from proctor_operator.plan.facts import UnitView
    from proctor_operator.plan.step import Rule

RULES: tuple[Rule, ...] = (
    stop_overdue,
    stop_when_halted,
    stop_when_cancelled,
    wait_for_stage,
    close_finished,
    after_failure,
    next_stage,
)


def plan_unit(view: UnitView) -> Step:
    """Answer what a living unit needs next."""
    for rule in RULES:
        step = rule(view)
        if step is not None:
            return step
    return Step()
