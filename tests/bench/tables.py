"""Capturing a large table, and the fingerprint of many."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb

from proctor_grader import build_fingerprint
from proctor_grader.captures import take_captures
from proctor_grader.model.task import Capture, CaptureMode
from proctor_grader.warehouse.base import AdapterOptions, Mark
from proctor_grader.warehouse.table import open_adapter
from tests.bench.clock import timed
from tests.bench.figures import Findings
from tests.bench.sets import bench_folder

ROWS = 1_000_000
TABLES = 200


def measure() -> Findings:
    """Time both on DuckDB, beside the engine's own scan of the same rows."""
    with bench_folder() as folder:
        base = folder / "large.duckdb"
        with duckdb.connect(str(base)) as connection:
            columns = ", ".join(f"hash(i + {n}) AS c{n}" for n in range(1, 8))
            connection.execute(
                f"CREATE TABLE facts AS SELECT i AS c0, {columns} FROM range({ROWS}) t(i)"
            )
        capture, _ = timed(lambda: _capture(base, folder))
        copy, _ = timed(lambda: _copy_as_text(base, folder / "plain.duckdb"))
        many = folder / "many.duckdb"
        with duckdb.connect(str(many)) as connection:
            for number in range(TABLES):
                connection.execute(f"CREATE TABLE t{number} AS SELECT range AS i FROM range(1000)")
        fingerprint, _ = timed(lambda: build_fingerprint(str(many)))
    return Findings(
        figures={
            "capture_1m_rows_seconds": capture.wall,
            "capture_1m_rows_cpu_seconds": capture.cpu,
            "engine_copy_1m_rows_cpu_seconds": copy.cpu,
            "fingerprint_200_tables_seconds": fingerprint.wall,
        },
        ratios={"capture_to_engine_copy": capture.cpu / copy.cpu},
    )


def _capture(base: Path, folder: Path) -> None:
    adapter = open_adapter(str(base), AdapterOptions("bench", folder / "branches"))
    mark = Mark("bench", "run-bench", datetime.now(UTC) + timedelta(days=1))
    with contextlib.closing(adapter):
        branch = adapter.create("eval-bench", mark)
        with adapter.open_reader(branch) as reader:
            taken = take_captures(
                reader,
                Capture(("facts",), CaptureMode.FULL),
                None,
                folder,
                full_max_bytes=2**40,
                file_max_bytes=2**40,
                budget_bytes=None,
            )
        adapter.drop("eval-bench")
    assert taken.files, taken.tables


def _copy_as_text(base: Path, target: Path) -> None:
    with duckdb.connect(str(target)) as connection:
        connection.execute(f"ATTACH '{base}' AS base (READ_ONLY)")
        connection.execute("CREATE TABLE copied AS SELECT COLUMNS(*)::VARCHAR FROM base.facts")
