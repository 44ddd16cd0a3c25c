"""Putting a run together once nothing lives any more: results, gates, report, `run.json` last.

Everything is streamed unit by unit, so that memory does not grow with the run, and can be done
again from what is stored.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proctor_grader.coverage import coverage_of
from proctor_grader.errors import NotStored
from proctor_grader.gates import TallyBuilder, accuracy_of, evaluate_gates, passed
from proctor_grader.jsontext import dump_bytes, load_json
from proctor_grader.model.result import StageRecord, UnitResult, Verdict
from proctor_grader.model.run import Fingerprint, RunEnd, RunRecord
from proctor_grader.model.unit import Stage
from proctor_grader.report.junit import write_junit
from proctor_grader.report.page import write_report
from proctor_grader.report.source import StoreEvidence
from proctor_grader.report.summary import HistoryPoint
from proctor_grader.report.table import write_results_parquet
from proctor_operator.local.history import finished_runs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from proctor_grader.model.run import GateResult
    from proctor_grader.model.task import Task, TaskId
    from proctor_grader.model.unit import Unit
    from proctor_grader.store.base import Store
    from proctor_grader.store.layout import RunKeys
    from proctor_operator.local.runplan import RunPlan
    from proctor_operator.plan.decision import RunVerdict

RESULTS_JSONL = "results.jsonl"
RESULTS_PARQUET = "results.parquet"
JUNIT = "junit.xml"
REPORT = "report/"
HISTORY_LENGTH = 30
_NOT_STARTED = "NotStarted"


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What is known of a run beside its plan and results.

    Attributes:
        models: paths of the project's models, None without a project.
        coverage: figures that stand already; None to work them out.
        in_force: unit id -> number of the result that counts, where it is not the first.
        ended_at: of a run that ended before; empty for now.
    """

    tasks: Mapping[TaskId, Task]
    set_description: str = ""
    fingerprint: Fingerprint = field(default_factory=lambda: Fingerprint(None))
    notices: tuple[str, ...] = ()
    sandbox: str = ""
    models: Sequence[str] | None = None
    coverage: Mapping[str, Any] | None = None
    in_force: Mapping[str, int] | None = None
    ended_at: str = ""


def finish_run(
    store: Store, keys: RunKeys, plan: RunPlan, facts: RunFacts, verdict: RunVerdict
) -> RunRecord:
    """Write results, report and `run.json` of a run; doing it twice is doing it once.

    Raises:
        StoreError: the store is gone.
    """
    with tempfile.TemporaryDirectory(prefix="proctor-finish-") as folder:
        out = Path(folder)
        tally = TallyBuilder()
        executed: dict[TaskId, Task] = {}
        with (out / RESULTS_JSONL).open("wb") as lines:
            for unit in plan.units:
                result = _result_of(store, keys, unit, facts, verdict)
                tally.add(result.variant, result.verdict, result.cause)
                if unit.task_id in facts.tasks:
                    executed[unit.task_id] = facts.tasks[unit.task_id]
                lines.write(dump_bytes(_line(store, keys, result)))
        record = _record(store, plan, facts, verdict, tally=tally, executed=executed)
        _write_outputs(out, store, keys, record, facts)
    store.put(keys.run, dump_bytes(record.to_json(), indent=2), durable=True)
    return record


def _result_of(
    store: Store, keys: RunKeys, unit: Unit, facts: RunFacts, verdict: RunVerdict
) -> UnitResult:
    number = (facts.in_force or {}).get(unit.id, 1)
    try:
        return UnitResult.from_json(load_json(store.get(keys.result(unit.id, number))))
    except NotStored:
        return UnitResult(
            unit=unit.id,
            task=unit.task_id,
            variant=unit.variant,
            trial=unit.trial,
            attempt=0,
            verdict=Verdict.CANCELLED,
            reason=verdict.reason if verdict.end is RunEnd.CANCELLED else _NOT_STARTED,
            message="the run ended before the unit was started",
        )


def _line(store: Store, keys: RunKeys, result: UnitResult) -> dict[str, Any]:
    """One line of results.jsonl: the result with what happened after it was written."""
    later: dict[str, StageRecord] = {}
    if Stage.BRANCH.value in result.stages:
        attempt = keys.attempt(result.unit, result.attempt)
        for stage in (Stage.TEARDOWN, Stage.DROP):
            try:
                document = load_json(store.get(attempt.marker(stage)))
            except NotStored:
                continue
            later[stage.value] = StageRecord.from_json(document)
    return replace(result, stages={**result.stages, **later}).to_json()


def _read_lines(path: Path) -> Iterator[UnitResult]:
    with path.open("rb") as lines:
        for line in lines:
            yield UnitResult.from_json(load_json(line))


def _record(
    store: Store,
    plan: RunPlan,
    facts: RunFacts,
    verdict: RunVerdict,
    *,
    tally: TallyBuilder,
    executed: Mapping[TaskId, Task],
) -> RunRecord:
    totals = tally.totals()
    gates = evaluate_gates(plan.options.gates, totals)
    started = datetime.fromisoformat(plan.started_at)
    ended = datetime.fromisoformat(facts.ended_at) if facts.ended_at else datetime.now(UTC)
    return RunRecord(
        id=plan.id,
        set_name=plan.set_name,
        set_description=facts.set_description,
        format=plan.format,
        commit=plan.commit,
        end=verdict.end,
        reason=verdict.reason,
        message=verdict.message,
        started_at=plan.started_at,
        ended_at=ended.isoformat(),
        seconds=round((ended - started).total_seconds(), 3),
        totals=totals,
        accuracy={name: accuracy_of(total) for name, total in totals.items()},
        gates=gates,
        passed=None if verdict.end is RunEnd.FAILED else _is_passed(gates, verdict),
        agent=dict.fromkeys(totals, plan.options.agent),
        warehouse=plan.options.warehouse,
        store=store.url,
        parallel=plan.options.parallel,
        sandbox=facts.sandbox,
        fingerprint=facts.fingerprint,
        notices=facts.notices,
        coverage=facts.coverage or coverage_of(list(executed.values()), facts.models),
        versions=plan.versions,
        results=dict(facts.in_force or {}),
    )


def _write_outputs(
    out: Path, store: Store, keys: RunKeys, record: RunRecord, facts: RunFacts
) -> None:
    lines = out / RESULTS_JSONL
    write_junit(out / JUNIT, record, _read_lines(lines))
    write_results_parquet(
        _read_lines(lines), out / RESULTS_PARQUET, record=record, tasks=facts.tasks
    )
    for name in (RESULTS_JSONL, RESULTS_PARQUET, JUNIT):
        store.put_file(keys.output(name), out / name)
    report = out / "report"
    with StoreEvidence(store, keys) as evidence:
        write_report(
            report,
            record=record,
            tasks=facts.tasks,
            results=lambda: _read_lines(lines),
            evidence=evidence,
            history=history_before(store, record),
            put_page=lambda name, page: store.put(keys.output(REPORT + name), page),
        )
    for path in sorted(report.rglob("*")):
        if path.is_file():
            store.put_file(keys.output(REPORT + path.relative_to(report).as_posix()), path)


def history_before(store: Store, record: RunRecord) -> list[HistoryPoint]:
    """Return the set's runs that started before this one, oldest first, a bounded number."""
    points: list[HistoryPoint] = []
    for _run, earlier in finished_runs(store, record.set_name):
        if earlier.started_at < record.started_at:
            accuracy = {name: one.value for name, one in earlier.accuracy.items()}
            points.append(HistoryPoint(earlier.id, earlier.started_at, accuracy, earlier.passed))
        if len(points) == HISTORY_LENGTH:
            break
    return points[::-1]


def _is_passed(gates: Sequence[GateResult], verdict: RunVerdict) -> bool:
    return passed(gates) and verdict.end is RunEnd.COMPLETE
