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
    from collections.abc import Iterator, Sequence

    from proctor_grader.model.criterion import ModelExpectation, ModelRebuiltCriterion
    from proctor_grader.warehouse.base import Relation, Warehouse
    from proctor_grader.warehouse.resolve import Resolved

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
        items.append(_exists(resolved, criterion.model))
        if resolved.relation is not None:
            details["relation"] = _described(resolved.relation)
            items.extend(_asked(resolved.relation, criterion.expect, warehouse, items))
    except QueryError as error:
        items.append(ItemResult("query", False, error.message, {"reason": error.reason}))
    passed = all(item.passed for item in items)
    return Judgement(
        Verdict.CORRECT if passed else Verdict.OFF, items=tuple(items), details=details
    )
