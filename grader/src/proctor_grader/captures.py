"""Table evidence taken from a branch before it is dropped: what is kept, and within which limits.

Source: eval-json format, section 10.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from proctor_grader.errors import ProctorError
from proctor_grader.model.task import CaptureMode
from proctor_grader.problems import listed
from proctor_grader.warehouse.base import CaptureTooLarge
from proctor_grader.warehouse.resolve import resolve_columns, resolve_relation

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from proctor_grader.model.task import Capture
    from proctor_grader.warehouse.base import Relation, Warehouse

FULL_MAX_BYTES = 268_435_456
FILE_MAX_BYTES = 134_217_728
SAMPLE_MAX_ROWS = 50_000


@dataclass(frozen=True, slots=True)
class TablePlan:
    """What is taken of one table.

    Attributes:
        table: as declared.
        file: name of the file with its rows; None for the fingerprint alone.
        limit: rows of the file at most; None for all.
        is_clamped: more were asked for than a sample may have.
    """

    table: str
    file: str | None = None
    limit: int | None = None
    is_clamped: bool = False


def plan_captures(capture: Capture) -> tuple[TablePlan, ...]:
    """Decide what is taken of each declared table, in their order. Pure."""
    if capture.mode is CaptureMode.FINGERPRINT:
        return tuple(TablePlan(table) for table in capture.tables)
    is_sample = capture.mode is CaptureMode.SAMPLE
    return tuple(
        TablePlan(
            table,
            file=f"{table}.duckdb",
            limit=min(capture.sample_rows, SAMPLE_MAX_ROWS) if is_sample else None,
            is_clamped=is_sample and capture.sample_rows > SAMPLE_MAX_ROWS,
        )
        for table in capture.tables
    )


@dataclass(frozen=True, slots=True)
class CaptureSummary:
    """What was taken.

    Attributes:
        tables: table as declared -> entry of JSON values.
        files: named `<table as declared>.duckdb`; those that had to be dropped left out.
        size_bytes: what the files take of the run's budget.
    """

    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    files: tuple[Path, ...] = ()
    size_bytes: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the document that is stored as `summary.json`, and in the unit's result."""
        return {table: dict(entry) for table, entry in self.tables.items()}


def take_captures(
    warehouse: Warehouse,
    capture: Capture,
    grain: tuple[str, ...] | None,
    out_dir: Path,
    *,
    full_max_bytes: int = FULL_MAX_BYTES,
    file_max_bytes: int = FILE_MAX_BYTES,
    budget_bytes: int | None = None,
) -> CaptureSummary:
    """Take a task's captures. What goes wrong stands in that table's entry as `error`.

    Args:
        warehouse: a reader of the unit's branch.
        capture: what the task declares.
        grain: columns of the task's `expect.grain`; None or empty without one.
        out_dir: existing folder for the files.
        full_max_bytes: no full capture of a table estimated to be larger.
        file_max_bytes: no file may be larger.
        budget_bytes: what is left of the run's budget for files; None for no bound.
    """
    taking = _Taking(warehouse, tuple(grain or ()), out_dir, full_max_bytes, file_max_bytes)
    entries: dict[str, dict[str, Any]] = {}
    files: list[Path] = []
    spent = 0
    for plan in plan_captures(capture):
        left = None if budget_bytes is None else budget_bytes - spent
        entry: dict[str, Any] = {}
        entries[plan.table] = entry
        try:
            path = taking.take(plan, entry, left)
        except ProctorError as error:
            entry["error"] = str(error)
        except OSError as error:
            entry["error"] = f"the capture's file can't be written: {error.strerror}"
        else:
            files += [path] if path else []
            spent += entry.get("file_bytes", 0)
    return CaptureSummary(entries, tuple(files), spent)


@dataclass(slots=True)
class _Taking:
    """Everything that taking one table's capture needs; fills the entry as far as it gets."""

    warehouse: Warehouse
    grain: tuple[str, ...]
    out_dir: Path
    full_max_bytes: int
    file_max_bytes: int
    relations: tuple[Relation, ...] | None = None

    def take(self, plan: TablePlan, entry: dict[str, Any], budget_left: int | None) -> Path | None:
        if self.relations is None:
            self.relations = self.warehouse.relations()
        resolved = resolve_relation(self.relations, plan.table)
        entry["exists"] = resolved.relation is not None
        if resolved.candidates:
            entry["error"] = f"ambiguous: {listed(map(str, resolved.candidates))}"
        if resolved.relation is None:
            return None
        self._fingerprint(resolved.relation, entry)
        if plan.file is None or self._is_refused(plan, resolved.relation, entry):
            return None
        return self._dumped(plan, plan.file, resolved.relation, entry, budget_left)

    def _fingerprint(self, relation: Relation, entry: dict[str, Any]) -> None:
        entry["relation"], entry["kind"] = str(relation), relation.kind.value
        entry["row_count"] = self.warehouse.row_count(relation)
        columns = self.warehouse.columns(relation)
        stats = self.warehouse.column_stats(relation, columns)
        entry["columns"] = {
            column.name: {"type": column.type, "nulls": stats[column.name].nulls}
            | ({"sum": stats[column.name].sum} if column.is_numeric else {})
            for column in columns
        }
        key = resolve_columns(columns, self.grain)
        if self.grain and key.is_complete:
            counts = self.warehouse.grain_counts(relation, key.found)
            entry["grain"] = {
                "key": list(key.found),
                "distinct": counts.distinct,
                "unique": counts.unique,
            }

    def _is_refused(self, plan: TablePlan, relation: Relation, entry: dict[str, Any]) -> bool:
        if plan.is_clamped:
            entry["sample_clamped"] = True
        if plan.limit is not None:
            return False
        estimate = self.warehouse.estimated_bytes(relation)
        if estimate <= self.full_max_bytes:
            return False
        entry["refused"] = (
            f"full capture refused: ~{estimate} bytes exceeds"
            f" the {self.full_max_bytes}-byte ceiling"
        )
        return True

    def _dumped(
        self,
        plan: TablePlan,
        name: str,
        relation: Relation,
        entry: dict[str, Any],
        budget_left: int | None,
    ) -> Path | None:
        limit, reason = _room(self.file_max_bytes, budget_left)
        path = self.out_dir / name
        try:
            if limit <= 0:
                raise CaptureTooLarge(0)
            rows = self.warehouse.dump(relation, path, limit=plan.limit, max_bytes=limit)
        except CaptureTooLarge:
            entry["truncated"] = reason
            return None
        entry |= {"file": name, "file_rows": rows, "file_bytes": path.stat().st_size}
        return path


def _room(file_max_bytes: int, budget_left: int | None) -> tuple[int, str]:
    """Return how large a file may get, and what to say of one that would get larger."""
    if budget_left is None or budget_left >= file_max_bytes:
        return file_max_bytes, f"the file would exceed the {file_max_bytes}-byte ceiling of a file"
    left = max(0, budget_left)
    return left, f"the file would exceed the {left} bytes left of the run's capture budget"
