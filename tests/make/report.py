"""A finished run to report on: a record, its tasks and results, and evidence in a store."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb

from proctor_grader.gates import GateSpec, accuracy_of, count, evaluate_gates, passed
from proctor_grader.model.criterion import NumberCriterion
from proctor_grader.model.result import ItemResult, StageRecord, UnitResult, Verdict
from proctor_grader.model.run import Fingerprint, RunEnd, RunRecord
from proctor_grader.model.task import Task, TaskClass, TaskId
from proctor_grader.model.unit import DEFAULT_VARIANT, RunId, Stage, unit_id
from proctor_grader.report.page import write_report
from proctor_grader.report.source import StoreEvidence
from proctor_grader.report.summary import HistoryPoint
from proctor_grader.store.directory import DirectoryStore
from proctor_grader.store.layout import RunKeys

RUN = RunId("run-20261130-090000-abc123")


def make_task(name: str, **settings: Any) -> Task:
    """A read task with one number to find; settings override."""
    given: dict[str, Any] = {
        "id": TaskId(name),
        "title": name,
        "kind": "query",
        "task_class": TaskClass.READ,
        "prompt": f"How large is {name}?",
        "criteria": (NumberCriterion("answer", Decimal(100), Decimal("0.15")),),
    }
    return Task(**(given | settings))


def number_item(
    answer: str,
    found: str | None,
    *,
    value: str = "100",
    tolerance: str = "0.15",
    name: str = "answer",
    got: Decimal | None = None,
) -> ItemResult:
    """A judged number check whose closest number is written in the answer as `found`."""
    wanted, within = Decimal(value), Decimal(tolerance)
    if found is None:
        return ItemResult(name, False, "", {"value": wanted, "tolerance": within, "closest": None})
    if got is None:
        got = Decimal(found.replace(",", "").strip("$€ "))
    start = answer.index(found)
    closest = {"value": got, "start": start, "end": start + len(found), "text": found}
    reach = within * abs(wanted) if wanted else Decimal("1e-9")
    return ItemResult(
        name,
        abs(got - wanted) <= reach,
        "",
        {"value": wanted, "tolerance": within, "closest": closest},
    )


def stage(seconds: float, *, at: float = 0.0, **settings: Any) -> StageRecord:
    """A stage that began `at` seconds after nine o'clock."""
    given: dict[str, Any] = {"ok": True, "seconds": seconds}
    given |= {"started_at": _clock(at), "ended_at": _clock(at + seconds)}
    return StageRecord(**(given | settings))


def _clock(seconds: float) -> str:
    whole = int(seconds)
    parts = f"{9 + whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"
    return f"2026-11-30T{parts}.{int(seconds % 1 * 1000):03d}+00:00"


def make_result(task: str, verdict: Verdict = Verdict.CORRECT, **settings: Any) -> UnitResult:
    """A unit's result; `answer` and `items` fit each other unless given."""
    variant = settings.pop("variant", DEFAULT_VARIANT)
    trial = settings.pop("trial", 1)
    given: dict[str, Any] = {
        "unit": unit_id(TaskId(task), variant, trial),
        "task": TaskId(task),
        "variant": variant,
        "trial": trial,
        "attempt": 1,
        "verdict": verdict,
        "answer": "It is 101.",
        "stages": {
            Stage.BRANCH.value: stage(0.21),
            Stage.AGENT.value: stage(12.5, at=0.3),
            Stage.GRADE.value: stage(0.004, at=12.9),
        },
    }
    merged = given | settings
    if "items" not in merged and merged["answer"] and "101" in merged["answer"]:
        merged["items"] = (number_item(merged["answer"], "101"),)
    return UnitResult(**merged)


def make_record(
    results: Sequence[UnitResult], spec: GateSpec | None = None, **settings: Any
) -> RunRecord:
    """A finished run of these results, judged by `spec`."""
    totals = count(results)
    gates = evaluate_gates(spec or GateSpec(), totals)
    given: dict[str, Any] = {
        "id": RUN,
        "set_name": "northwind",
        "set_description": "Questions about the Northwind warehouse that finance asks every month.",
        "format": "eval-json",
        "commit": "3f1c9e2ab07d4c55b1f0a9d7e6c8b2a4d5e6f708",
        "end": RunEnd.COMPLETE,
        "started_at": "2026-11-30T09:00:00.120000+00:00",
        "ended_at": "2026-11-30T09:06:41.480000+00:00",
        "seconds": 401.36,
        "totals": totals,
        "accuracy": {name: accuracy_of(each) for name, each in totals.items()},
        "gates": gates,
        "passed": passed(gates),
        "agent": dict.fromkeys(totals, "command: ./agent.sh"),
        "warehouse": "postgresql://db.example.com:5432/northwind",
        "store": "/srv/proctor",
        "parallel": 4,
        "sandbox": "bubblewrap",
        "fingerprint": Fingerprint("fp-c29371ab86fb181d9de1d3e5b96932f8"),
        "versions": {"proctor": "0.1.0", "duckdb": "1.5.5"},
    }
    return RunRecord(**(given | settings))


@dataclass(slots=True)
class ReportedRun:
    """A run with its evidence in a store below `root`; `write` makes the report."""

    root: Path
    tasks: dict[TaskId, Task] = field(default_factory=dict)
    results: list[UnitResult] = field(default_factory=list)

    @property
    def store(self) -> DirectoryStore:
        """Where the evidence lies."""
        return DirectoryStore(self.root / "store")

    @property
    def keys(self) -> RunKeys:
        """Where in the store."""
        return RunKeys.local(RUN)

    def add(
        self,
        task: Task,
        result: UnitResult,
        files: dict[str, str | bytes] | None = None,
        logs: dict[Stage, str] | None = None,
    ) -> None:
        """Add a unit with what its agent left under `agent/` and its scripts' logs."""
        self.tasks[task.id] = task
        attempt = self.keys.attempt(result.unit, result.attempt)
        left: dict[str, str | bytes] = {"prompt.txt": task.prompt}
        if result.answer is not None:
            left["answer.txt"] = result.answer
        for name, content in (left | (files or {})).items():
            data = content if isinstance(content, bytes) else content.encode("utf-8", "replace")
            self.store.put(attempt.agent_file(name), data)
        for name, text in (logs or {}).items():
            self.store.put(attempt.log(name), text.encode())
        self.results.append(result)

    def capture(self, result: UnitResult, table: str, sql: str) -> None:
        """Keep the rows that `sql` gives as a capture of `table`."""
        path = self.root / "capture.duckdb"
        with duckdb.connect(path) as database:
            database.execute(f"CREATE TABLE capture AS {sql}")
        attempt = self.keys.attempt(result.unit, result.attempt)
        self.store.put_file(attempt.capture(f"{table}.duckdb"), path)
        path.unlink()

    def write(
        self,
        spec: GateSpec | None = None,
        history: Sequence[HistoryPoint] = (),
        **settings: Any,
    ) -> Path:
        """Write the report; returns its first page."""
        with StoreEvidence(self.store, self.keys) as evidence:
            return write_report(
                self.root / "report",
                record=make_record(self.results, spec, **settings),
                tasks=self.tasks,
                results=lambda: iter(self.results),
                evidence=evidence,
                history=history,
            )


def json_lines(documents: Sequence[Any]) -> str:
    """Documents as JSON lines."""
    return "".join(f"{json.dumps(document)}\n" for document in documents)


def usual_stages(seconds: float, **agent: Any) -> dict[str, StageRecord]:
    """Stages of a read unit whose agent took so many seconds."""
    return {
        Stage.BRANCH.value: stage(0.2),
        Stage.AGENT.value: stage(seconds, at=0.3, **agent),
        Stage.GRADE.value: stage(0.004, at=0.4 + seconds),
        Stage.DROP.value: stage(0.11, at=0.6 + seconds),
    }


def many_results(number: int) -> Iterator[UnitResult]:
    """Results of a large run, one at a time."""
    for index in range(number):
        name = f"task_{index:05d}"
        right = index % 5 != 0
        answer = f"Total: {'101' if right else '250'} units"
        yield make_result(
            name,
            Verdict.CORRECT if right else Verdict.OFF,
            answer=answer,
            items=(number_item(answer, "101" if right else "250"),),
            stages=usual_stages(1.0 + index % 37),
        )
