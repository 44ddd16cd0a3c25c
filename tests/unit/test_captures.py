from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from proctor_grader.captures import TablePlan, plan_captures, take_captures
from proctor_grader.errors import QueryError
from proctor_grader.jsontext import dump_json
from proctor_grader.model.task import Capture, CaptureMode
from proctor_grader.warehouse.duckdb import DuckDBWarehouse

ORDERS = (
    "CREATE SCHEMA marts",
    "CREATE TABLE marts.orders (id INTEGER, amount DECIMAL(12,2), note VARCHAR)",
    "INSERT INTO marts.orders VALUES (2, 0.20, 'b'), (1, 0.10, NULL), (3, NULL, 'a')",
)
FINGERPRINT = {
    "exists": True,
    "relation": "marts.orders",
    "kind": "table",
    "row_count": 3,
    "columns": {
        "id": {"type": "INTEGER", "nulls": 0, "sum": "6"},
        "amount": {"type": "DECIMAL(12,2)", "nulls": 1, "sum": "0.30"},
        "note": {"type": "VARCHAR", "nulls": 1},
    },
}


class Branch:
    def __init__(self, connection: duckdb.DuckDBPyConnection, out_dir: Path) -> None:
        self.connection = connection
        self.reader = DuckDBWarehouse(connection, "memory")
        self.out_dir = out_dir

    def take(
        self,
        *tables: str,
        mode: str = "fingerprint",
        sample_rows: int = 10_000,
        grain: tuple[str, ...] | None = None,
        **limits: int,
    ) -> dict[str, Any]:
        capture = Capture(tables, CaptureMode(mode), sample_rows)
        summary = take_captures(self.reader, capture, grain, self.out_dir, **limits)
        document = summary.to_json()
        dump_json(document)
        written = {path.name: path for path in summary.files}
        assert sorted(os.listdir(self.out_dir)) == sorted(written)
        assert summary.size_bytes == sum(path.stat().st_size for path in summary.files)
        assert set(written) == {entry["file"] for entry in document.values() if "file" in entry}
        return document

    def run(self, *statements: str) -> None:
        for statement in statements:
            self.connection.execute(statement)


@pytest.fixture
def branch(tmp_path: Path) -> Iterator[Branch]:
    (tmp_path / "out").mkdir()
    with duckdb.connect() as connection:
        made = Branch(connection, tmp_path / "out")
        made.run(*ORDERS)
        yield made


def rows_of(path: Path) -> list[tuple[Any, ...]]:
    with duckdb.connect(str(path), read_only=True) as file:
        return file.execute("FROM capture").fetchall()


@pytest.mark.parametrize(
    ("mode", "sample_rows", "plan"),
    [
        ("fingerprint", 9, TablePlan("a.t")),
        ("fingerprint+sample", 9, TablePlan("a.t", "a.t.duckdb", 9)),
        ("fingerprint+sample", 50_000, TablePlan("a.t", "a.t.duckdb", 50_000)),
        ("fingerprint+sample", 50_001, TablePlan("a.t", "a.t.duckdb", 50_000, True)),
        ("full", 60_000, TablePlan("a.t", "a.t.duckdb")),
    ],
)
def test_plan(mode: str, sample_rows: int, plan: TablePlan) -> None:
    assert plan_captures(Capture(("a.t",), CaptureMode(mode), sample_rows)) == (plan,)


def test_fingerprint_of_a_table(branch: Branch) -> None:
    assert branch.take("marts.orders") == {"marts.orders": FINGERPRINT}


def test_entries_are_called_as_declared_and_missing_ones_say_so(branch: Branch) -> None:
    document = branch.take("Prod.Marts.ORDERS", "marts.gone")
    assert document == {"Prod.Marts.ORDERS": FINGERPRINT, "marts.gone": {"exists": False}}
    assert list(document) == ["Prod.Marts.ORDERS", "marts.gone"]


def test_an_ambiguous_name_is_told(branch: Branch) -> None:
    branch.run("CREATE SCHEMA raw", "CREATE TABLE raw.orders (id INTEGER)")
    entry = branch.take("orders")["orders"]
    assert entry == {"exists": False, "error": "ambiguous: marts.orders, raw.orders"}


@pytest.mark.parametrize(
    ("grain", "expected"),
    [
        (("id",), {"key": ["id"], "distinct": 3, "unique": True}),
        (("ID",), {"key": ["id"], "distinct": 3, "unique": True}),
        (("note",), {"key": ["note"], "distinct": 3, "unique": False}),
        (("id", "note"), {"key": ["id", "note"], "distinct": 3, "unique": False}),
        (("id", "nope"), None),
        ((), None),
        (None, None),
    ],
)
def test_grain(
    branch: Branch, grain: tuple[str, ...] | None, expected: dict[str, Any] | None
) -> None:
    assert branch.take("marts.orders", grain=grain)["marts.orders"].get("grain") == expected


def test_a_sample_holds_the_first_rows_as_text(branch: Branch) -> None:
    entry = branch.take("marts.orders", mode="fingerprint+sample", sample_rows=2)["marts.orders"]
    path = branch.out_dir / "marts.orders.duckdb"
    assert rows_of(path) == [("1", "0.10", None), ("2", "0.20", "b")]
    size = path.stat().st_size
    file = {"file": "marts.orders.duckdb", "file_rows": 2, "file_bytes": size}
    assert entry == FINGERPRINT | file


def test_a_clamped_sample_says_so(branch: Branch) -> None:
    branch.run("CREATE TABLE big AS SELECT 50010 - range AS a FROM range(50010)")
    taken = branch.take("big", "gone", mode="fingerprint+sample", sample_rows=60_000)
    assert taken["big"]["sample_clamped"] is True
    assert taken["big"]["file_rows"] == 50_000
    assert rows_of(branch.out_dir / "big.duckdb")[-1] == ("50000",)
    assert taken["gone"] == {"exists": False}


def test_a_full_capture_holds_all_rows(branch: Branch) -> None:
    entry = branch.take("marts.orders", mode="full")["marts.orders"]
    assert entry["file_rows"] == 3
    assert len(rows_of(branch.out_dir / "marts.orders.duckdb")) == 3


def test_a_full_capture_over_the_ceiling_is_refused_and_the_fingerprint_kept(
    branch: Branch,
) -> None:
    entry = branch.take("marts.orders", mode="full", full_max_bytes=9)["marts.orders"]
    estimate = branch.reader.estimated_bytes(branch.reader.relations()[0])
    assert entry == FINGERPRINT | {
        "refused": f"full capture refused: ~{estimate} bytes exceeds the 9-byte ceiling"
    }
    assert "refused" not in branch.take("marts.orders", full_max_bytes=9)["marts.orders"]


@pytest.mark.parametrize("mode", ["fingerprint+sample", "full"])
def test_a_file_over_its_ceiling_is_dropped_and_the_fingerprint_kept(
    branch: Branch, mode: str
) -> None:
    entry = branch.take("marts.orders", mode=mode, file_max_bytes=1000)["marts.orders"]
    reason = "the file would exceed the 1000-byte ceiling of a file"
    assert entry == FINGERPRINT | {"truncated": reason}


def test_what_is_left_of_the_budget_is_shared_by_the_tables(branch: Branch) -> None:
    branch.run("CREATE TABLE a AS SELECT 1 AS x", "CREATE TABLE b AS SELECT 1 AS x")
    size = branch.take("a", mode="full")["a"]["file_bytes"]
    (branch.out_dir / "a.duckdb").unlink()
    budget = size + size // 2
    taken = branch.take("a", "b", mode="full", budget_bytes=budget)
    left = budget - taken["a"]["file_bytes"]
    assert taken["b"]["truncated"] == (
        f"the file would exceed the {left} bytes left of the run's capture budget"
    )
    assert taken["b"]["row_count"] == 1


@pytest.mark.parametrize("budget", [0, -7])
def test_nothing_is_left_of_the_budget(branch: Branch, budget: int) -> None:
    entry = branch.take("marts.orders", mode="full", budget_bytes=budget)["marts.orders"]
    assert entry["truncated"].startswith("the file would exceed the 0 bytes left")
    assert entry["row_count"] == 3


def test_a_failure_stays_in_its_tables_entry(branch: Branch) -> None:
    branch.run(
        "CREATE VIEW broken AS SELECT * FROM marts.orders",
        "CREATE VIEW late AS SELECT CAST(note AS INTEGER) AS n FROM marts.orders",
        "ALTER TABLE marts.orders RENAME TO kept",
    )
    taken = branch.take("broken", "marts.kept", mode="full")
    assert taken["broken"]["exists"] is True
    assert taken["broken"]["kind"] == "view"
    assert "orders does not exist" in taken["broken"]["error"]
    assert "file" not in taken["broken"]
    assert taken["marts.kept"]["file_rows"] == 3


def test_a_failure_keeps_what_was_found_before_it(branch: Branch) -> None:
    branch.run("CREATE VIEW late AS SELECT CAST(note AS INTEGER) AS n FROM marts.orders")
    entry = branch.take("late")["late"]
    assert entry["row_count"] == 3
    assert "Could not convert" in entry["error"]
    assert "columns" not in entry


def test_a_branch_that_cannot_be_read_gives_an_error_for_every_table(tmp_path: Path) -> None:
    with duckdb.connect() as connection:
        reader = DuckDBWarehouse(connection, "", fault=QueryError("the file is gone"))
        taken = take_captures(reader, Capture(("a", "b")), None, tmp_path)
        reader.close()
        closed = take_captures(reader, Capture(("a",)), None, tmp_path)
    assert taken.to_json() == {
        "a": {"error": "the file is gone"},
        "b": {"error": "the file is gone"},
    }
    assert closed.to_json() == {"a": {"error": "the reader is closed"}}


def test_a_folder_that_cannot_be_written_is_told(branch: Branch, tmp_path: Path) -> None:
    (branch.out_dir / "marts.orders.duckdb").mkdir()
    capture = Capture(("marts.orders",), CaptureMode.FULL)
    summary = take_captures(branch.reader, capture, None, branch.out_dir)
    assert summary.tables["marts.orders"]["error"].startswith("the capture's file can't be written")
    assert summary.files == ()
