"""Doing again what rests on stored evidence alone: the report, and grading. No agent ever runs."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from proctor_grader import load_set
from proctor_grader.errors import UserError
from proctor_grader.grade import grade_task
from proctor_grader.jsontext import dump_bytes, load_json
from proctor_grader.model.criterion import ModelRebuiltCriterion
from proctor_grader.model.result import UnitResult, Verdict
from proctor_grader.pod.collect import load_evidence
from proctor_grader.report.page import write_report
from proctor_grader.report.source import StoreEvidence
from proctor_operator.local.finish import RunFacts, finish_run, history_before
from proctor_operator.local.runplan import RunPlan
from proctor_operator.local.session import RunOutcome, report_place
from proctor_operator.local.setcopy import unpack_set
from proctor_operator.plan.decision import RunVerdict

if TYPE_CHECKING:
    from proctor_grader.model.run import RunRecord
    from proctor_grader.model.task import EvalSet, Task, TaskId
    from proctor_grader.model.unit import Unit
    from proctor_operator.local.history import StoredRun


def report_again(run: StoredRun, target: Path) -> Path:
    """Write a finished run's report into a new or empty folder; returns its first page.

    Raises:
        UserError: the folder holds something, or the run has not finished.
    """
    record = run.finished()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UserError(
            "exists and is not empty", where=str(target), remedy="name another folder with --out"
        )
    with StoreEvidence(run.store, run.keys) as evidence:
        return write_report(
            target,
            record=record,
            tasks=_tasks(_set_of(run)),
            results=run.results,
            evidence=evidence,
            history=history_before(run.store, record),
        )


def grade_again(run: StoredRun, changed: EvalSet | None) -> RunOutcome:
    """Grade a finished run's evidence again, beside the first results; `run.json` names the new.

    Args:
        run: finished.
        changed: a set whose criteria count instead of the run's own.
    """
    record = run.finished()
    plan = RunPlan.from_bytes(run.store.get(run.keys.plan), run.id)
    eval_set = changed or _set_of(run)
    tasks = _tasks(eval_set)
    in_force: dict[str, int] = {}
    for unit in plan.units:
        number = record.results.get(unit.id, 1)
        if not run.store.exists(run.keys.result(unit.id, number)):
            continue
        fresh = _grade_unit(run, unit, number, tasks)
        in_force[unit.id] = _next_number(run, unit)
        run.store.put_new(run.keys.result(unit.id, in_force[unit.id]), dump_bytes(fresh.to_json()))
    facts = RunFacts(
        tasks=tasks,
        set_description=eval_set.description,
        fingerprint=record.fingerprint,
        notices=record.notices,
        sandbox=record.sandbox,
        coverage=record.coverage,
        in_force=in_force,
        ended_at=record.ended_at,
    )
    verdict = RunVerdict(record.end, record.reason, record.message)
    new_record: RunRecord = finish_run(run.store, run.keys, plan, facts, verdict)
    return RunOutcome(run, verdict, new_record, report_place(run.store, run.keys))


def _grade_unit(run: StoredRun, unit: Unit, number: int, tasks: dict[TaskId, Task]) -> UnitResult:
    """Return a fresh result; verdicts that rest on no answer or on a branch stay as they are."""
    stored = UnitResult.from_json(load_json(run.store.get(run.keys.result(unit.id, number))))
    task = tasks.get(unit.task_id)
    was_judged = stored.cause is None or stored.verdict is Verdict.UNGRADED
    needs_branch = task is not None and any(
        isinstance(criterion, ModelRebuiltCriterion) for criterion in task.criteria
    )
    if task is None or needs_branch or not was_judged or stored.verdict is Verdict.CANCELLED:
        return stored
    evidence = load_evidence(run.store, run.keys.attempt(unit.id, stored.attempt))
    judgement = grade_task(task, evidence.answer, None)
    return replace(
        stored,
        verdict=judgement.verdict,
        cause=judgement.cause,
        reason=judgement.reason,
        message=judgement.message,
        items=judgement.items,
        truncated=judgement.truncated,
        details=judgement.details,
    )


def _next_number(run: StoredRun, unit: Unit) -> int:
    number = 2
    while run.store.exists(run.keys.result(unit.id, number)):
        number += 1
    return number


def _set_of(run: StoredRun) -> EvalSet:
    with tempfile.TemporaryDirectory(prefix="proctor-set-") as folder:
        loaded = load_set(unpack_set(run, Path(folder)))
    if loaded.eval_set is None or loaded.errors:
        raise UserError(
            "the set kept with the run does not load", where=run.id, remedy="give one with --set"
        )
    return loaded.eval_set


def _tasks(eval_set: EvalSet) -> dict[TaskId, Task]:
    return {task.id: task for task in eval_set.tasks}
