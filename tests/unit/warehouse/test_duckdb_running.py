from __future__ import annotations

from pathlib import Path

import pytest

from proctor_grader.errors import WarehouseError
from proctor_grader.warehouse.base import StatementResult
from proctor_grader.warehouse.duckdb import execute
from tests.unit.warehouse.duckdbfile import opened_elsewhere, write_database


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_database(tmp_path / "shop.duckdb", "CREATE TABLE t (a INTEGER)")


@pytest.mark.parametrize(
    ("statement", "result"),
    [
        ("INSERT INTO t VALUES (1), (2)", StatementResult(row_count=2)),
        ("CREATE TABLE u AS SELECT range FROM range(3)", StatementResult(row_count=3)),
        ("CREATE SCHEMA s", StatementResult()),
        ("BEGIN", StatementResult()),
        ("", StatementResult()),
        ("-- nothing", StatementResult()),
        ("SELECT a FROM t", StatementResult(("a",))),
        ("INSERT INTO t VALUES (7) RETURNING a", StatementResult(("a",), (("7",),), 1)),
        ("SELECT 1 AS a; SELECT 2 AS b;", StatementResult(("b",), (("2",),), 1)),
        ("SHOW TABLES", StatementResult(("name",), (("t",),), 1)),
    ],
)
def test_results(path: Path, statement: str, result: StatementResult) -> None:
    assert list(execute(str(path), [statement])) == [result]


def test_values_are_text_as_the_engine_writes_them(path: Path) -> None:
    row = (
        "SELECT true, 1.50, 1e300, 0.1::DOUBLE, 'x', NULL, DATE '2020-02-03', [1, 2], {'a': 'b'},"
        " TIMESTAMP '2020-02-03 04:05:06.7', '\\x00a'::BLOB, INTERVAL 3 DAY, 12::HUGEINT,"
        " '00000000-0000-0000-0000-000000000001'::UUID"
    )
    (result,) = execute(str(path), [row])
    assert result.rows == (
        (
            *("true", "1.50", "1e+300", "0.1", "x", None, "2020-02-03", "[1, 2]", "{'a': b}"),
            *("2020-02-03 04:05:06.7", "\\x00a", "3 days", "12"),
            "00000000-0000-0000-0000-000000000001",
        ),
    )


def test_statements_run_when_asked_for(path: Path) -> None:
    results = execute(str(path), ["SELECT nope", "DROP TABLE t"])
    assert "nope" in next(results).error
    del results
    (left,) = execute(str(path), ["SELECT count(*) FROM t"])
    assert left.error == ""


def test_one_session_has_one_transaction(path: Path) -> None:
    list(execute(str(path), ["BEGIN", "INSERT INTO t VALUES (1)", "ROLLBACK"]))
    list(execute(str(path), ["INSERT INTO t VALUES (2)"]))
    (result,) = execute(str(path), ["SELECT a FROM t"])
    assert result.rows == (("2",),)
    assert [each.name for each in path.parent.iterdir()] == ["shop.duckdb"]


@pytest.mark.parametrize(
    "statement",
    [
        "COPY t TO '{folder}/out.csv'",
        "SELECT * FROM read_text('/etc/passwd')",
        "ATTACH '{folder}/other.duckdb' AS other",
        "INSTALL httpfs",
        "SET enable_external_access = true",
        "EXPORT DATABASE '{folder}/export'",
    ],
)
def test_nothing_but_the_file_is_in_reach(path: Path, statement: str) -> None:
    (result,) = execute(str(path), [statement.format(folder=path.parent)])
    assert result.error != ""
    assert [each.name for each in path.parent.iterdir()] == ["shop.duckdb"]


def test_a_file_that_another_process_writes_to_is_told(path: Path) -> None:
    with opened_elsewhere(path), pytest.raises(WarehouseError, match="Could not set lock"):
        list(execute(str(path), ["SELECT 1"]))


def test_a_file_that_is_no_database_is_told(tmp_path: Path) -> None:
    (tmp_path / "shop.duckdb").write_text("nothing of the kind" * 500)
    with pytest.raises(WarehouseError, match="not a valid DuckDB database"):
        list(execute(str(tmp_path / "shop.duckdb"), ["SELECT 1"]))
