"""What is judged: a criterion's settings. How it is graded lies in `criteria`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from decimal import Decimal


@dataclass(frozen=True, slots=True)
class NumberCriterion:
    """A number that the answer must hold.

    Attributes:
        tolerance: relative to `value`, inclusive, at least 0; 0.15 is 15 percent.
    """

    type: ClassVar[str] = "number"
    name: str
    value: Decimal
    tolerance: Decimal

    def to_json(self) -> dict[str, Any]:
        """Return the normalised form."""
        return {
            "type": self.type,
            "name": self.name,
            "value": self.value,
            "tolerance": self.tolerance,
        }


@dataclass(frozen=True, slots=True)
class ModelExpectation:
    """What a rebuilt table must look like; what is None or empty is not asked.

    Attributes:
        row_count_tolerance: relative to `row_count`; None where the author gave none (0.01 counts).
        grain: columns that identify a row.
        columns: names that must be there; others may be too.
    """

    row_count: int | None = None
    row_count_tolerance: Decimal | None = None
    grain: tuple[str, ...] | None = None
    columns: tuple[str, ...] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return only the keys that the author gave."""
        given: dict[str, Any] = {
            "row_count": self.row_count,
            "row_count_tolerance": self.row_count_tolerance,
            "grain": None if self.grain is None else list(self.grain),
            "columns": None if self.columns is None else list(self.columns),
        }
        return {key: value for key, value in given.items() if value is not None}


@dataclass(frozen=True, slots=True)
class ModelRebuiltCriterion:
    """A table that must stand on the branch.

    Attributes:
        model: one to three plain identifiers joined by dots.
    """

    type: ClassVar[str] = "model_rebuilt"
    model: str
    expect: ModelExpectation

    def to_json(self) -> dict[str, Any]:
        """Return the normalised form."""
        return {"type": self.type, "model": self.model, "expect": self.expect.to_json()}


Criterion = NumberCriterion | ModelRebuiltCriterion
