"""A unit's answer: what to do now, and when to look again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from proctor_operator.plan.decision import Action
    from proctor_operator.plan.facts import UnitView


@dataclass(frozen=True, slots=True)
class Step:
    """At most one action for a unit; without one it waits for a report or for `wake_at`."""

    action: Action | None = None
    wake_at: datetime | None = None


if TYPE_CHECKING:
    Rule = Callable[[UnitView], Step | None]
