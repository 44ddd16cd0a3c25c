"""Pure: one line of words about a unit's result, the same in table, page, JUnit and diff."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from proctor_grader.model.result import Outcome
from proctor_grader.report.display import CAUSE_TEXTS, as_decimal, legible, short

if TYPE_CHECKING:
    from proctor_grader.model.result import ItemResult, UnitResult

_ITEMS_NAMED = 2
_HUNDRED = Decimal(100)


def seconds_of(result: UnitResult) -> float:
    """Return the seconds spent in the unit's stages; waiting between them is left out."""
    return sum(record.seconds for record in result.stages.values())


def tolerance_text(value: Decimal, tolerance: Decimal) -> str:
    """Return what a check allows: `±15 %`, `exact` for a tolerance of 0; a gold of 0 takes none.

    Source: numbers.md, section 9.
    """
    if value == 0:
        return "±0.000000001"
    return "exact" if tolerance == 0 else f"±{short(tolerance * _HUNDRED)} %"


def closest_value(data: Mapping[str, Any]) -> Decimal | None:
    """Return the number that came closest to a check's value; None when none was read."""
    closest = data.get("closest")
    return as_decimal(closest.get("value")) if isinstance(closest, Mapping) else None


def item_line(item: ItemResult) -> str:
    """Return what was asked and found, on one line: `total: got 120, expected 100 (±15 %)`."""
    name = f"{item.name}: " if item.name else ""
    value, tolerance = as_decimal(item.data.get("value")), as_decimal(item.data.get("tolerance"))
    if value is None or tolerance is None:
        word = {True: "passed", False: "failed", None: "not judged"}[item.passed]
        return f"{name}{item.detail or word}"
    got = closest_value(item.data)
    found = "no number" if got is None else legible(got)
    return f"{name}got {found}, expected {legible(value)} ({tolerance_text(value, tolerance)})"


def explanation(result: UnitResult) -> str:
    """Return why a unit did not pass; empty for one that passed.

    A message of the harness comes first; else the first items that failed or could not be judged.
    """
    if result.outcome is Outcome.PASSED:
        return ""
    if result.message:
        return result.message
    wrong = [item for item in result.items if not item.passed]
    parts = [item_line(item) for item in wrong[:_ITEMS_NAMED]]
    if len(wrong) > _ITEMS_NAMED:
        parts.append(f"and {len(wrong) - _ITEMS_NAMED} more")
    if not parts and result.cause is not None:
        parts.append(CAUSE_TEXTS[result.cause])
    return "; ".join(parts)
