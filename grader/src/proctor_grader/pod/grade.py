"""Grading one unit: judge what is stored, take captures, write `result.json` last."""

from __future__ import annotations

import tempfile
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proctor_grader.contract import GRADE_TIMEOUT_SECONDS
from proctor_grader.errors import AlreadyExists
from proctor_grader.grade import grade_task
from proctor_grader.jsontext import dump_bytes, load_json
from proctor_grader.model.criterion import ModelRebuiltCriterion
from proctor_grader.model.result import (
    ANSWER_SHOWN,
    Cause,
    Judgement,
    StageRecord,
    UnitResult,
    Verdict,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from proctor_grader.model.task import Task
    from proctor_grader.model.unit import Unit
    from proctor_grader.pod.evidence import Evidence
    from proctor_grader.store.base import Store
    from proctor_grader.store.layout import RunKeys
    from proctor_grader.warehouse.base import Warehouse

FULL_MAX_BYTES = 268_435_456
FILE_MAX_BYTES = 134_217_728
__all__ = ["GRADE_TIMEOUT_SECONDS", "GradeJob", "grade_unit"]


@dataclass(frozen=True, slots=True)
class GradeJob:
    """What grading one attempt needs.

    Attributes:
        agent_reason: how the agent ended when that was not normal; empty otherwise. Stands beside
            the verdict, and is the verdict's reason when there is no answer to judge.
        open_warehouse: opens the grader's view of the unit's branch; None without a branch.
        budget: what is left for captures of the run, asked and told in bytes.
    """

    unit: Unit
    task: Task
    attempt: int
    evidence: Evidence
    stages: Mapping[str, StageRecord]
    agent_reason: str = ""
    agent_message: str = ""
    open_warehouse: Callable[[], AbstractContextManager[Warehouse]] | None = None
    budget: Callable[[int], int] = field(default=lambda spent: FULL_MAX_BYTES)


def grade_unit(job: GradeJob, store: Store, keys: RunKeys) -> UnitResult:
    """Judge a unit and store its result; a result that is there already is returned instead.

    Raises:
        WarehouseError: the branch could not be reached.
        StoreError: the store is gone.
    """
    captures: Mapping[str, Any] | None = None
    needs_branch = job.task.capture is not None or _looks_at_branch(job.task)
    opened = job.open_warehouse() if needs_branch and job.open_warehouse else nullcontext()
    with opened as warehouse:
        judgement = _judge(job, warehouse)
        if warehouse is not None and job.task.capture is not None:
            captures = _capture(job, warehouse, store, keys)
    answer = job.evidence.answer
    result = UnitResult(
        unit=job.unit.id,
        task=job.task.id,
        variant=job.unit.variant,
        trial=job.unit.trial,
        attempt=job.attempt,
        verdict=judgement.verdict,
        cause=judgement.cause,
        reason=judgement.reason or job.agent_reason,
        message=judgement.message or job.agent_message,
        answer=None if answer is None else answer[:ANSWER_SHOWN],
        items=judgement.items,
        truncated=judgement.truncated,
        details=judgement.details,
        stages=job.stages,
        captures=captures,
        usage=job.evidence.usage,
        evidence=job.evidence.files,
    )
    return store_result(result, store, keys)


def store_result(result: UnitResult, store: Store, keys: RunKeys) -> UnitResult:
    """Store a result unless there is one: the first counts, and is returned."""
    key = keys.result(result.unit)
    try:
        store.put_new(key, dump_bytes(result.to_json()))
    except AlreadyExists:
        return UnitResult.from_json(load_json(store.get(key)))
    return result


def _looks_at_branch(task: Task) -> bool:
    return any(isinstance(criterion, ModelRebuiltCriterion) for criterion in task.criteria)


def _judge(job: GradeJob, warehouse: Warehouse | None) -> Judgement:
    if job.evidence.answer is None and job.agent_reason and not _looks_at_branch(job.task):
        return Judgement(
            Verdict.ERROR, Cause.AGENT, job.agent_reason, f"agent: {job.agent_message}"
        )
    return grade_task(job.task, job.evidence.answer, warehouse)


def _capture(job: GradeJob, warehouse: Warehouse, store: Store, keys: RunKeys) -> Mapping[str, Any]:
    """Take the task's captures and store them; what fails is told in the summary."""
    from proctor_grader.captures import take_captures  # noqa: PLC0415 - most units take none

    assert job.task.capture is not None  # noqa: S101 - checked by the caller
    grains = [c.expect.grain for c in job.task.criteria if isinstance(c, ModelRebuiltCriterion)]
    attempt = keys.attempt(job.unit.id, job.attempt)
    with tempfile.TemporaryDirectory(prefix="proctor-capture-") as folder:
        summary = take_captures(
            warehouse,
            job.task.capture,
            grains[0] if grains else None,
            Path(folder),
            full_max_bytes=FULL_MAX_BYTES,
            file_max_bytes=FILE_MAX_BYTES,
            budget_bytes=job.budget(0),
        )
        for path in summary.files:
            job.budget(path.stat().st_size)
            store.put_file(attempt.capture(path.name), path)
        tables = summary.to_json()
        store.put(attempt.capture("summary.json"), dump_bytes(tables, indent=2))
    return tables
