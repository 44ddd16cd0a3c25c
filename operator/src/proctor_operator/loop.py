"""Observe, plan, apply, until the run is over. The executor does the I/O, the planner decides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from proctor_operator.plan.run import plan_run

if TYPE_CHECKING:
    from datetime import datetime

    from proctor_operator.plan.decision import Action, RunVerdict
    from proctor_operator.plan.snapshot import Snapshot


class Executor(Protocol):
    """Turns actions into something that runs, and what runs into a snapshot."""

    def observe(self) -> Snapshot:
        """Return everything known now."""
        ...

    def apply(self, action: Action) -> bool:
        """Do what the plan asks; doing it twice is doing it once.

        Returns:
            Whether the next snapshot already differs, so that there is nothing to wait for.
        """
        ...

    def wait(self, until: datetime | None) -> None:
        """Return when something is reported, or at `until`."""
        ...


def carry_out(executor: Executor) -> RunVerdict:
    """Carry a run out to its end."""
    while True:
        decision = plan_run(executor.observe())
        changed = [executor.apply(action) for action in decision.actions]
        if decision.end is not None:
            return decision.end
        if not any(changed):
            executor.wait(decision.wake_at)
