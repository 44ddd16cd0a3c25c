"""Results as tables: `results.jsonl`, `results.parquet`, and the first rows of captures.

The only module of the report that imports duckdb.

`results.jsonl` holds one `result.json` document per line. `results.parquet` holds one row per
unit with the columns of `COLUMNS`, always all of them and in that order:

| column | type | meaning |
|---|---|---|
| run, set, format, commit | VARCHAR | of the run; commit is NULL when unknown |
| unit, task | VARCHAR | ids |
| title, class, kind, category, suite, row | VARCHAR | of the task; NULL when it is unknown |
| tags | VARCHAR[] | of the task |
| variant | VARCHAR | arm of a comparison |
| trial, attempt | INTEGER | counted from 1; attempt is the one that was graded |
| verdict, outcome | VARCHAR | the format's word and what it maps to |
| cause, reason, message | VARCHAR | NULL where an answer was judged |
| answer | VARCHAR | the final answer, cut to 20,000 characters; NULL without one |
| checks_total, checks_passed | INTEGER | items of the judgement |
| checks | JSON | the items: name, passed, detail and what their type adds |
| started_at, ended_at | TIMESTAMPTZ | first stage's start, last stage's end |
| seconds | DOUBLE | spent in stages, without the waiting between them |
| seconds_branch, _setup, _agent, _grade, _teardown, _drop | DOUBLE | NULL for a stage not run |
| tokens | BIGINT | used by the agent, as far as it told |
| usd | DECIMAL(18,6) | likewise |
| usage, details, captures | JSON | as in `result.json` |
"""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import duckdb

from proctor_grader.jsontext import dump_bytes, dump_json
from proctor_grader.model.unit import Stage
from proctor_grader.report.display import as_decimal
from proctor_grader.report.unit_text import seconds_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from proctor_grader.model.result import UnitResult
    from proctor_grader.model.run import RunRecord
    from proctor_grader.model.task import Task, TaskId

COLUMNS: Mapping[str, str] = {
    **dict.fromkeys(("run", "set", "format", "commit", "unit", "task", "title"), "VARCHAR"),
    **dict.fromkeys(("class", "kind", "category", "suite", "row"), "VARCHAR"),
    "tags": "VARCHAR[]",
    "variant": "VARCHAR",
    "trial": "INTEGER",
    "attempt": "INTEGER",
    **dict.fromkeys(("verdict", "outcome", "cause", "reason", "message", "answer"), "VARCHAR"),
    "checks_total": "INTEGER",
    "checks_passed": "INTEGER",
    "checks": "JSON",
    "started_at": "TIMESTAMPTZ",
    "ended_at": "TIMESTAMPTZ",
    "seconds": "DOUBLE",
    **{f"seconds_{stage.value}": "DOUBLE" for stage in Stage},
    "tokens": "BIGINT",
    "usd": "DECIMAL(18,6)",
    "usage": "JSON",
    "details": "JSON",
    "captures": "JSON",
}
_CLOSED: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "threads": 1,
}
_LARGEST_LINE = 16 * 1024 * 1024
_ROW_GROUP = 2_048
"""DuckDB holds a row group in memory until it is written, and an answer may be 20,000 long."""


def write_jsonl(results: Iterable[UnitResult], path: Path) -> None:
    """Write one result document per line, in the order given and in constant memory."""
    with path.open("wb") as file:
        for result in results:
            file.write(dump_bytes(result.to_json()))


def result_row(result: UnitResult, record: RunRecord, task: Task | None) -> dict[str, Any]:
    """Return a result's row for `write_parquet`; `task` is None when it is not known any more."""
    items = [item.to_json() for item in result.items]
    stages = list(result.stages.values())
    usd = as_decimal(result.usage.get("usd"))
    told = [as_decimal(value) for key, value in result.usage.items() if key.endswith("tokens")]
    tokens = [value for value in told if value is not None]
    return {
        "run": record.id,
        "set": record.set_name,
        "format": record.format,
        "commit": record.commit or None,
        "unit": result.unit,
        "task": result.task,
        **_task_columns(task),
        "variant": result.variant,
        "trial": result.trial,
        "attempt": result.attempt,
        "verdict": result.verdict.value,
        "outcome": result.outcome.value,
        "cause": None if result.cause is None else result.cause.value,
        "reason": result.reason or None,
        "message": result.message or None,
        "answer": result.answer,
        "checks_total": len(items),
        "checks_passed": sum(item.passed is True for item in result.items),
        "checks": dump_json(items),
        "started_at": min((each.started_at for each in stages if each.started_at), default=None),
        "ended_at": max((each.ended_at for each in stages if each.ended_at), default=None),
        "seconds": seconds_of(result),
        **{f"seconds_{name}": stage.seconds for name, stage in result.stages.items()},
        "tokens": int(sum(tokens)) if tokens else None,
        "usd": None if usd is None else str(usd),
        "usage": dump_json(dict(result.usage)),
        "details": dump_json(dict(result.details)),
        "captures": None if result.captures is None else dump_json(dict(result.captures)),
    }


def _task_columns(task: Task | None) -> dict[str, Any]:
    if task is None:
        return {}
    return {
        "title": task.title,
        "class": task.task_class.value,
        "kind": task.kind,
        "category": task.category or None,
        "suite": task.suite,
        "row": task.row,
        "tags": list(task.tags),
    }


def write_results_parquet(
    results: Iterable[UnitResult], path: Path, *, record: RunRecord, tasks: Mapping[TaskId, Task]
) -> None:
    """Write one row per unit; streams, so memory does not grow with the number of units."""
    write_parquet((result_row(each, record, tasks.get(each.task)) for each in results), path)


def write_parquet(rows: Iterable[Mapping[str, Any]], path: Path) -> None:
    """Write rows with the columns of `COLUMNS`; what a row leaves out is NULL, more is dropped.

    Values of JSON columns are JSON text. The file appears whole or not at all.
    """
    with TemporaryDirectory(prefix=".parquet-", dir=path.parent) as folder:
        lines, made = Path(folder) / "rows.jsonl", Path(folder) / "rows.parquet"
        longest = _write_lines(rows, lines)
        source = f"read_json({_literal(lines)}, format='newline_delimited', columns={_read_as()}, "
        source += f"maximum_object_size={max(longest + 1, _LARGEST_LINE)})"
        options = f"FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {_ROW_GROUP}"
        columns = ", ".join(f'"{name}"::{kind} AS "{name}"' for name, kind in COLUMNS.items())
        with duckdb.connect(":memory:", config=_CLOSED) as database:
            database.execute(  # COPY takes no parameters; names are ours, paths are quoted
                f"COPY (SELECT {columns} FROM {source}) TO {_literal(made)} ({options})"  # noqa: S608
            )
        made.replace(path)


def _write_lines(rows: Iterable[Mapping[str, Any]], path: Path) -> int:
    longest = 0
    with path.open("wb") as file:
        for row in rows:
            longest = max(longest, file.write(dump_bytes({n: row.get(n) for n in COLUMNS})))
    return longest


def _read_as() -> str:
    """The columns as they lie in the JSON lines: texts are converted by the query, not guessed."""
    kinds = {
        n: k if k in {"INTEGER", "BIGINT", "DOUBLE", "VARCHAR[]"} else "VARCHAR"
        for n, k in COLUMNS.items()
    }
    return "{" + ", ".join(f'"{name}": {_literal(kind)}' for name, kind in kinds.items()) + "}"


def _literal(text: str | Path) -> str:
    return "'" + str(text).replace("'", "''") + "'"


@dataclass(frozen=True, slots=True)
class CaptureRows:
    """The first rows of a captured table.

    Attributes:
        rows: every value is text, None for NULL.
        total: rows that the capture holds.
        note: why there are no rows; empty otherwise.
    """

    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str | None, ...], ...] = ()
    total: int = 0
    note: str = ""


class CaptureReader:
    """Reads capture files through one standing DuckDB instance that reaches its folder only.

    Opening an instance costs 20 to 40 ms, attaching a file to a standing one less than 2.
    Thread-safe: one file is read at a time.
    """

    def __init__(self) -> None:
        self._folder = TemporaryDirectory(prefix="proctor-captures-")
        self._lock = threading.Lock()
        self._database: duckdb.DuckDBPyConnection | None = None

    def read(self, fetch: Callable[[Path], None], limit: int, cut_at: int = 200) -> CaptureRows:
        """Return the first rows of the capture that `fetch` writes to the path it is given.

        Args:
            fetch: makes the file; its errors pass through.
            limit: rows at most.
            cut_at: characters of a value at most; one more is read, so that a cut can be seen.
        """
        with self._lock:
            path = Path(self._folder.name) / "capture.duckdb"
            fetch(path)
            try:
                return self._read(path, limit, cut_at + 1)
            except duckdb.Error as error:
                first = str(error).partition("\n")[0].replace(str(path), path.name)
                return CaptureRows(note=f"the capture can't be read: {first}")
            finally:
                path.unlink(missing_ok=True)

    def _read(self, path: Path, limit: int, cut_at: int) -> CaptureRows:
        database = self._instance()
        database.execute(f"ATTACH {_literal(path)} AS shot (READ_ONLY)")
        try:
            cursor = database.execute("SELECT * FROM shot.main.capture LIMIT ?", [limit])
            columns = tuple(column[0] for column in cursor.description)
            rows = tuple(
                tuple(None if value is None else str(value)[:cut_at] for value in row)
                for row in cursor.fetchall()
            )
            counted = database.execute("SELECT count(*) FROM shot.main.capture").fetchone()
        finally:
            with suppress(duckdb.Error):
                database.execute("DETACH shot")
        return CaptureRows(columns, rows, counted[0] if counted else 0)

    def _instance(self) -> duckdb.DuckDBPyConnection:
        if self._database is None:
            database = duckdb.connect(":memory:", config=_CLOSED)
            folder = _literal(self._folder.name)
            # in this order: the folder can't be named once access is off, nothing once it is locked
            database.execute(f"SET allowed_directories = [{folder}]")
            database.execute("SET temp_directory = ''")
            database.execute("SET memory_limit = '256MB'")
            database.execute("SET enable_external_access = false")
            database.execute("SET lock_configuration = true")
            self._database = database
        return self._database

    def close(self) -> None:
        """Let go of the instance and its folder; closing twice is fine."""
        if self._database is not None:
            self._database.close()
            self._database = None
        self._folder.cleanup()
