"""Results as tables: the documented columns, exact values, any text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest

from proctor_grader.model.result import Cause, UnitResult, Verdict
from proctor_grader.report import table
from proctor_grader.report.table import (
    COLUMNS,
    write_jsonl,
    write_parquet,
    write_results_parquet,
)
from tests.make.example_run import small_run
from tests.make.report import make_record, make_result, make_task, number_item, stage

HOSTILE = "a\x00b \u202e 🙂 '\"\\ \r\n\t </script> \ud800"


def rows_of(path: Path, sql: str = "SELECT * FROM results") -> list[dict[str, Any]]:
    with duckdb.connect(":memory:") as database:
        database.execute("SET TimeZone = 'UTC'")
        cursor = database.execute(sql.replace("results", f"'{path}'"))
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def written(tmp_path: Path, *results: UnitResult, **tasks: Any) -> list[dict[str, Any]]:
    path = tmp_path / "it's results.parquet"
    known = {task.id: task for task in tasks.values()}
    write_results_parquet(iter(results), path, record=make_record(results), tasks=known)
    with duckdb.connect(":memory:") as database:
        database.execute("SET TimeZone = 'UTC'")
        moments = "started_at::VARCHAR AS started_at, ended_at::VARCHAR AS ended_at"
        sql = f"SELECT * REPLACE ({moments}) FROM read_parquet(?)"
        cursor = database.execute(sql, [str(path)])
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def test_a_row_holds_a_result_with_its_task(tmp_path: Path) -> None:
    answer = "It is 101."
    result = make_result(
        "t",
        answer=answer,
        items=(number_item(answer, "101"), number_item(answer, "101", value="7")),
        usage={"tokens": 5120, "usd": Decimal("0.031200"), "steps": 3},
        captures={"a.b": {"exists": False}},
        details={"numbers_read": 1},
        variant="sonnet",
        trial=2,
    )
    task = make_task("t", title="Title", tags=("x", "y"), category="c", suite="s", row="1")
    (row,) = written(tmp_path, result, t=task)
    assert row["run"] == "run-20261130-090000-abc123"
    assert (row["set"], row["format"]) == ("northwind", "eval-json")
    assert (row["unit"], row["task"], row["variant"], row["trial"]) == (
        result.unit,
        "t",
        "sonnet",
        2,
    )
    assert (row["title"], row["class"], row["kind"], row["category"]) == (
        "Title",
        "read",
        "query",
        "c",
    )
    assert (row["tags"], row["suite"], row["row"]) == (["x", "y"], "s", "1")
    assert (row["verdict"], row["outcome"], row["cause"]) == ("CORRECT", "passed", None)
    assert (row["reason"], row["message"], row["answer"]) == (None, None, answer)
    assert (row["checks_total"], row["checks_passed"]) == (2, 1)
    assert json.loads(row["checks"])[0]["closest"]["text"] == "101"
    assert (row["started_at"], row["ended_at"]) == (
        "2026-11-30 09:00:00+00",
        "2026-11-30 09:00:12.903+00",
    )
    assert row["seconds"] == pytest.approx(12.714)
    assert row["seconds_agent"] == 12.5
    assert row["seconds_setup"] is None
    assert (row["tokens"], row["usd"]) == (5120, Decimal("0.0312"))
    assert json.loads(row["usage"])["steps"] == 3
    assert json.loads(row["captures"]) == {"a.b": {"exists": False}}


def test_what_is_not_known_is_null(tmp_path: Path) -> None:
    result = make_result("t", Verdict.CANCELLED, answer=None, items=(), stages={}, attempt=0)
    (row,) = written(tmp_path, result)
    for name in ("title", "class", "tags", "answer", "started_at", "ended_at", "tokens", "usd"):
        assert row[name] is None, name
    assert row["captures"] is None
    assert row["seconds"] == 0
    assert row["checks"] == "[]"


def test_columns_are_those_documented(tmp_path: Path) -> None:
    path = tmp_path / "none.parquet"
    write_parquet([], path)
    with duckdb.connect(":memory:") as database:
        found = database.execute(f"DESCRIBE SELECT * FROM '{path}'").fetchall()
    kinds = {
        name: kind.replace("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ") for name, kind, *_ in found
    }
    assert kinds == COLUMNS
    documented = re.findall(r"^\| ([a-z_, ]+) \| ([A-Z(),\[\]0-9]+) \|", table.__doc__ or "", re.M)
    names = [
        f"seconds{name}" if name.startswith("_") else name
        for group, _ in documented
        for name in group.split(", ")
    ]
    assert names == list(COLUMNS)
    for group, kind in documented:
        for name in group.split(", "):
            assert COLUMNS[f"seconds{name}" if name.startswith("_") else name] == kind


def test_any_text_survives(tmp_path: Path) -> None:
    result = make_result("t", Verdict.OFF, answer=HOSTILE, message=HOSTILE, details={"x": HOSTILE})
    (row,) = written(tmp_path, result)
    expected = HOSTILE.replace("\ud800", "?")
    assert row["answer"] == row["message"] == expected
    assert json.loads(row["details"]) == {"x": expected}


def test_numbers_keep_their_digits(tmp_path: Path) -> None:
    value = "123456789012345678901234567890.123456789"
    result = make_result("t", Verdict.OFF, items=(number_item("", None, value=value),))
    (row,) = written(tmp_path, result)
    assert f'"value": {value}' in row["checks"]


def test_a_huge_row_is_written(tmp_path: Path) -> None:
    result = make_result("t", details={"log": "y" * 20_000_000})
    (row,) = written(tmp_path, result)
    assert len(row["details"]) > 20_000_000


def test_order_is_kept_and_the_file_is_whole(tmp_path: Path) -> None:
    results = [make_result(f"t{number}") for number in range(5_000)]
    path = tmp_path / "r.parquet"
    write_results_parquet(iter(results), path, record=make_record([]), tasks={})
    found = rows_of(path, "SELECT task FROM results")
    assert [row["task"] for row in found] == [result.task for result in results]
    assert [each.name for each in tmp_path.iterdir()] == ["r.parquet"]


def test_a_failure_leaves_no_file(tmp_path: Path) -> None:
    def broken() -> Iterator[dict[str, Any]]:
        yield {"run": "x"}
        raise RuntimeError("store is away")

    with pytest.raises(RuntimeError, match="store is away"):
        write_parquet(broken(), tmp_path / "r.parquet")
    assert list(tmp_path.iterdir()) == []


def test_lines_read_back_as_the_results(tmp_path: Path) -> None:
    results = small_run(tmp_path / "run").results
    results.append(make_result("late", stages={"teardown": stage(1, ok=False, exit_code=1)}))
    path = tmp_path / "results.jsonl"
    write_jsonl(iter(results), path)
    lines = path.read_text(encoding="utf-8").split("\n")
    assert lines.pop() == ""
    back = [UnitResult.from_json(json.loads(line, parse_float=Decimal)) for line in lines]
    assert [each.to_json() for each in back] == [each.to_json() for each in results]


def test_lines_hold_any_text(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    write_jsonl([make_result("t", Verdict.ERROR, cause=Cause.INFRA, message=HOSTILE)], path)
    (line,) = path.read_bytes().splitlines()
    assert json.loads(line)["message"] == HOSTILE.replace("\ud800", "?")
