"""DuckDB files for tests, and processes that hold one open."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import duckdb

from proctor_grader.warehouse.base import Mark, Relation, RelationKind

MARK = Mark("inst-a", "run-1", datetime(2031, 2, 3, 4, 5, 6, tzinfo=UTC))


def write_database(path: Path, *statements: str) -> Path:
    """Run statements in a file, made if it is not there, and close it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with duckdb.connect(str(path)) as connection:
        for statement in statements:
            connection.execute(statement)
    return path


def table(name: str, schema: str = "main") -> Relation:
    return Relation(schema, name, RelationKind.TABLE)


def view(name: str, schema: str = "main") -> Relation:
    return Relation(schema, name, RelationKind.VIEW)


@contextmanager
def opened_elsewhere(path: Path, *statements: str) -> Iterator[subprocess.Popen[str]]:
    """Another process that has the file open for writing and has run statements, unclosed."""
    program = (
        "import sys, duckdb\n"
        "connection = duckdb.connect(sys.argv[1])\n"
        "for statement in sys.argv[2:]:\n"
        "    connection.execute(statement)\n"
        "print('ready', flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(path), *statements],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield process
        finally:
            process.kill()
