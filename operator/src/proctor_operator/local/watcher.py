"""Who tells a person how a run goes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from proctor_grader.model.unit import Unit
    from proctor_operator.plan.snapshot import RecordedResult


class Watcher(Protocol):
    """Who tells a person how a run goes."""

    def notice(self, text: str) -> None:
        """Tell something that a reader should know."""
        ...

    def phase(self, text: str) -> None:
        """Tell what the run does as a whole."""
        ...

    def begin(self, total: int, done: int = 0) -> None:
        """Start counting units."""
        ...

    def unit_done(self, unit: Unit, result: RecordedResult | None) -> None:
        """Tell how a unit ended."""
        ...

    def stop(self) -> None:
        """The units are done."""
        ...
