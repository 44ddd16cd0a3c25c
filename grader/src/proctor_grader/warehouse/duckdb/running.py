"""Runs statements on a branch the way an agent's own client would, locked to that file."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from proctor_grader.errors import ProctorError, QueryError, WarehouseError
from proctor_grader.warehouse.base import (
    MAX_STATEMENT_ROWS,
    QUERY_TIMEOUT_SECONDS,
    StatementResult,
)
from proctor_grader.warehouse.duckdb.faults import ENGINE_ERRORS, fault_of, faults_told
from proctor_grader.warehouse.duckdb.instance import CONFIG
from proctor_grader.warehouse.duckdb.watchdog import Deadline

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_FETCHED_ROWS = 10_000
_COUNT = ["Count"]


def execute(dsn: str, statements: Iterable[str]) -> Iterator[StatementResult]:
    """Run statements one after the other in one session; each when its result is asked for.

    The session reaches the branch's file and nothing else: no other file, no extension.

    Args:
        dsn: absolute path of the branch's file.
        statements: of one statement each; of several in one text, the last one's result counts.

    Raises:
        WarehouseError: the file can't be opened.
    """
    connection = _connect(Path(dsn))
    try:
        for statement in statements:
            try:
                with faults_told(Deadline(connection, QUERY_TIMEOUT_SECONDS)):
                    result = _run(connection, statement)
            except (QueryError, WarehouseError) as fault:
                result = StatementResult(error=fault.message)
            yield result
    finally:
        connection.close()


def _connect(path: Path) -> duckdb.DuckDBPyConnection:
    if not path.is_file():
        # the engine would make a new one
        raise WarehouseError("there is no such database", where=str(path))
    try:
        return duckdb.connect(
            str(path), config=CONFIG | {"enable_external_access": False, "lock_configuration": True}
        )
    except ENGINE_ERRORS as error:
        fault: ProctorError = fault_of(error)
        raise WarehouseError(fault.message, where=str(path), reason=fault.reason) from error


def _run(connection: duckdb.DuckDBPyConnection, text: str) -> StatementResult:
    result = StatementResult()
    for statement in connection.extract_statements(text):
        cursor = connection.execute(statement)
        columns = [column[0] for column in cursor.description or ()]
        kinds = statement.expected_result_type
        if duckdb.ExpectedResultType.CHANGED_ROWS in kinds and columns == _COUNT:
            changed = cursor.fetchone()
            result = StatementResult(row_count=int(changed[0]) if changed else 0)
        elif duckdb.ExpectedResultType.NOTHING in kinds:
            result = StatementResult()
        else:
            result = _fetched(cursor, columns)
    return result


def _fetched(cursor: duckdb.DuckDBPyConnection, columns: Sequence[str]) -> StatementResult:
    first: list[tuple[Any, ...]] = []
    count = 0
    while fetched := cursor.fetchmany(_FETCHED_ROWS):
        first.extend(fetched[: MAX_STATEMENT_ROWS - len(first)])
        count += len(fetched)
    rows = tuple(tuple(_text(cursor, value) for value in row) for row in first)
    return StatementResult(tuple(columns), rows, count)


def _text(connection: duckdb.DuckDBPyConnection, value: object) -> str | None:
    match value:
        case None | str():
            return value
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case Decimal():
            return format(value, "f")
    told = connection.execute("SELECT CAST(? AS VARCHAR)", [value]).fetchone()
    return str(told[0]) if told else None
