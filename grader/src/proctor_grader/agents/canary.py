"""`oracle` and `none`: agents that check the eval set itself.

They run with the grader, since the oracle reads golds: no sandbox ever sees them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from proctor_grader.criteria.number import grade_checks
from proctor_grader.model.criterion import ModelRebuiltCriterion, NumberCriterion
from proctor_grader.model.result import Verdict
from proctor_grader.numerals import render_decimal

if TYPE_CHECKING:
    from proctor_grader.model.task import Task

NOT_APPLICABLE = "not applicable"


def oracle_answer(task: Task) -> str:
    """Write the golds, one a line; `not applicable` where none can be derived or written down."""
    golds = [c for c in task.criteria if isinstance(c, NumberCriterion)]
    if golds:
        answer = "\n".join(render_decimal(gold.value) for gold in golds)
        readable = grade_checks(answer, golds).verdict is Verdict.CORRECT
        return answer if readable else NOT_APPLICABLE
    return "done" if oracle_statements(task) else NOT_APPLICABLE


def oracle_statements(task: Task) -> tuple[str, ...]:
    """SQL that builds what the task asks for, with the expected grain, columns and row count.

    It is run one statement at a time; dropping what is not there, or is of another kind, may fail.
    """
    return tuple(
        statement
        for criterion in task.criteria
        if isinstance(criterion, ModelRebuiltCriterion)
        for statement in _build(criterion)
    )


def _build(criterion: ModelRebuiltCriterion) -> tuple[str, ...]:
    parts = criterion.model.split(".")[-2:]
    name = ".".join(f'"{part}"' for part in parts)
    expect = criterion.expect
    columns = list(dict.fromkeys([*(expect.grain or ()), *(expect.columns or ())])) or ["id"]
    rows = 1 if expect.row_count is None else expect.row_count
    selected = ", ".join(f'i AS "{column.replace(chr(34), chr(34) * 2)}"' for column in columns)
    return (
        *([f'CREATE SCHEMA IF NOT EXISTS "{parts[0]}"'] if len(parts) == 2 else []),
        f"DROP TABLE IF EXISTS {name} CASCADE",
        f"DROP VIEW IF EXISTS {name} CASCADE",
        f"DROP MATERIALIZED VIEW IF EXISTS {name} CASCADE",
        f"CREATE TABLE {name} AS SELECT {selected} FROM generate_series(1, {rows}) AS t(i)",  # noqa: S608 - names are quoted, rows is an integer
    )
