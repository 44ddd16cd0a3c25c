"""Runs statements on a branch through its own DSN, as an agent would."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
from psycopg import pq

from proctor_grader.errors import WarehouseError
from proctor_grader.warehouse.base import MAX_STATEMENT_ROWS, StatementResult
from proctor_grader.warehouse.postgres.faults import first_line
from proctor_grader.warehouse.postgres.names import APPLICATION
from proctor_grader.warehouse.postgres.session import LIMITS, connect

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from psycopg.pq.abc import PGconn, PGresult

_ROWS = {pq.ExecStatus.SINGLE_TUPLE, pq.ExecStatus.TUPLES_OK}
_COPY = {pq.ExecStatus.COPY_IN, pq.ExecStatus.COPY_OUT, pq.ExecStatus.COPY_BOTH}
_NO_COPY = "COPY from or to the client is not supported here"


def execute(dsn: str, statements: Iterable[str]) -> Iterator[StatementResult]:
    """Run statements one after the other in one session; each is committed by itself.

    A statement runs when its result is asked for. However large a result is, no more than its
    first rows are held.

    Raises:
        WarehouseError: the branch can't be reached, or the connection is lost.
    """
    try:
        session = connect({"conninfo": dsn, **LIMITS, "application_name": APPLICATION})
    except psycopg.Error as error:
        raise WarehouseError(first_line(str(error), _passwords(dsn))) from None
    try:
        for statement in statements:
            yield _run(session.pgconn, statement)
    finally:
        session.close()


def _run(connection: PGconn, statement: str) -> StatementResult:
    text = statement.encode(errors="replace")
    if b"\x00" in text:
        return StatementResult(error="a statement can't hold a NUL character")
    # below psycopg's cursors: they would hold all rows of a result
    connection.send_query(text)
    connection.set_single_row_mode()
    result, error = StatementResult(), ""
    rows: list[tuple[str | None, ...]] = []
    count = 0
    while (part := connection.get_result()) is not None:
        if part.status == pq.ExecStatus.FATAL_ERROR:
            error = error or _message(part)
        elif part.status in _COPY:
            error = error or _NO_COPY
            _refuse_copy(connection, part)
        elif part.status in _ROWS:
            count += part.ntuples
            if len(rows) < MAX_STATEMENT_ROWS:
                rows += _texts(part)
            if part.status == pq.ExecStatus.TUPLES_OK:
                result = StatementResult(_columns(part), tuple(rows), count)
                rows, count = [], 0
        else:
            result = StatementResult(row_count=part.command_tuples or 0)
    if connection.status != pq.ConnStatus.OK:
        raise WarehouseError(error or "the connection to the branch was lost")
    return StatementResult(error=error) if error else result


def _refuse_copy(connection: PGconn, part: PGresult) -> None:
    if part.status == pq.ExecStatus.COPY_IN:
        connection.put_copy_end(_NO_COPY.encode())
        return
    while connection.get_copy_data(0)[0] > 0:
        pass


def _columns(part: PGresult) -> tuple[str, ...]:
    return tuple((part.fname(i) or b"").decode(errors="replace") for i in range(part.nfields))


def _texts(part: PGresult) -> list[tuple[str | None, ...]]:
    return [
        tuple(
            None
            if (value := part.get_value(row, column)) is None
            else value.decode(errors="replace")
            for column in range(part.nfields)
        )
        for row in range(part.ntuples)
    ]


def _message(part: PGresult) -> str:
    text = (
        part.error_message.decode(errors="replace")
        if isinstance(part.error_message, bytes)
        else part.error_message
    )
    return text.strip().removeprefix("ERROR:").strip()


def _passwords(dsn: str) -> tuple[str, ...]:
    try:
        password = psycopg.conninfo.conninfo_to_dict(dsn).get("password")
    except psycopg.Error:
        return ()
    return (str(password),) if password else ()
