"""Whether a table stands on the branch as it was asked for.

Source: eval-json format, section 7.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from proctor_grader.errors import QueryError
from proctor_grader.model.result import ItemResult, Judgement, Verdict
from proctor_grader.problems import listed
from proctor_grader.warehouse.base import RelationKind
from proctor_grader.warehouse.resolve import resolve_columns, resolve_relation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from proctor_grader.model.criterion import ModelExpectation, ModelRebuiltCriterion
    from proctor_grader.warehouse.base import Relation, Warehouse
    from proctor_grader.warehouse.resolve import Resolved, ResolvedColumns

DEFAULT_TOLERANCE = Decimal("0.01")
_COMPUTED = {RelationKind.VIEW, RelationKind.FOREIGN_TABLE}


def grade_rebuilt_table(criterion: ModelRebuiltCriterion, warehouse: Warehouse) -> Judgement:
    """Judge a table by what is asked of it; later items only where the table exists.

    A query that fails because of what is on the branch ends it with a failed item `query`.
    `details` says what kind of relation was judged and whose it is: rows that are computed when
    they are asked for may be others for whoever asks next.

    Raises:
        WarehouseError: the branch could not be read for reasons that are not the agent's.
    """
    items: list[ItemResult] = []
    details: dict[str, Any] = {"model": criterion.model}
    try:
        resolved = resolve_relation(warehouse.relations(), criterion.model)
        items.append(_exists(criterion.model, resolved))
        if resolved.relation is not None:
            details["relation"] = _described(resolved.relation)
            # into the list one by one: those before a query that fails stay
            items += _asked(resolved.relation, criterion.expect, warehouse)
    except QueryError as error:
        items.append(ItemResult("query", False, error.message, {"reason": error.reason}))
    passed = all(item.passed for item in items)
    return Judgement(
        Verdict.CORRECT if passed else Verdict.OFF, items=tuple(items), details=details
    )


def _exists(model: str, resolved: Resolved) -> ItemResult:
    if resolved.relation is not None:
        described = _described(resolved.relation)
        return ItemResult("exists", True, _told(resolved.relation), {"relation": described})
    candidates = [str(each) for each in resolved.candidates]
    if candidates:
        detail = f"'{model}' is ambiguous: it could be {listed(candidates)}"
        return ItemResult("exists", False, detail, {"candidates": candidates})
    return ItemResult("exists", False, f"there is no table or view '{model}'")


def _described(relation: Relation) -> dict[str, Any]:
    return {
        "schema": relation.schema,
        "name": relation.name,
        "kind": relation.kind.value,
        "owner": relation.owner,
        "is_computed": relation.kind in _COMPUTED,
    }


def _told(relation: Relation) -> str:
    kind = relation.kind.value.replace("_", " ")
    owner = f" owned by {relation.owner}" if relation.owner else ""
    note = "; its rows are computed whenever they are asked for"
    return f"{relation} is a {kind}{owner}{note if relation.kind in _COMPUTED else ''}"


def _asked(
    relation: Relation, expect: ModelExpectation, warehouse: Warehouse
) -> Iterator[ItemResult]:
    if expect.row_count is not None:
        count = warehouse.row_count(relation)
        yield _row_count(count, expect.row_count, expect.row_count_tolerance)
    if not expect.grain and not expect.columns:
        return
    columns = warehouse.columns(relation)
    if expect.grain:
        yield _grain(relation, resolve_columns(columns, expect.grain), warehouse)
    if expect.columns:
        resolved = resolve_columns(columns, expect.columns)
        yield ItemResult("columns", resolved.is_complete, _columns_told(resolved))


def _row_count(actual: int, expected: int, tolerance: Decimal | None) -> ItemResult:
    allowed = DEFAULT_TOLERANCE if tolerance is None else tolerance
    return ItemResult(
        "row_count",
        row_count_passes(actual, expected, tolerance),
        f"{actual} rows (expected {expected}, tolerance {allowed:f})",
        {"actual": actual, "expected": expected, "tolerance": allowed},
    )


def row_count_passes(actual: int, expected: int, tolerance: Decimal | None) -> bool:
    """Whether a count is near enough: relative, inclusive, exact; an expected 0 must be 0.

    Args:
        actual: rows found.
        expected: rows asked for.
        tolerance: share of `expected` it may be off by; None for the default of 0.01.
    """
    allowed = DEFAULT_TOLERANCE if tolerance is None else tolerance
    return abs(actual - expected) <= Fraction(allowed) * expected


def _grain(relation: Relation, key: ResolvedColumns, warehouse: Warehouse) -> ItemResult:
    if not key.is_complete:
        return ItemResult("grain", False, _columns_told(key))
    counts = warehouse.grain_counts(relation, key.found)
    nulls = f", {counts.with_null} rows with a NULL in it" if counts.with_null else ""
    return ItemResult(
        "grain",
        counts.unique,
        f"{counts.rows} rows, {counts.distinct} distinct by {listed(key.found)}{nulls}",
        {"rows": counts.rows, "distinct": counts.distinct, "with_null": counts.with_null},
    )


def _columns_told(columns: ResolvedColumns) -> str:
    parts = [
        f"{what}: {listed(names)}"
        for what, names in (("missing", columns.missing), ("ambiguous", columns.ambiguous))
        if names
    ]
    return "; ".join(parts) or "all there"
