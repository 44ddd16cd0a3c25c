"""A session that asks: each question in a read-only transaction of its own that is rolled back.

What stands on the branch is not trusted: settings are made anew for every question, since an
agent's function may change them, and rolling back undoes what one did to the session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import psycopg
from psycopg import errors, pq, sql

from proctor_grader.errors import QueryError, WarehouseError
from proctor_grader.warehouse.postgres.faults import query_fault
from proctor_grader.warehouse.postgres.names import APPLICATION
from proctor_grader.warehouse.postgres.session import LIMITS, Session, connect, startup_options

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_Answer = TypeVar("_Answer")

# one spelling of every value, however role and database are set
_SETTINGS = {
    "row_security": "off",  # an error instead of rows that a policy hides
    "datestyle": "ISO, YMD",
    "intervalstyle": "postgres",
    "timezone": "UTC",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "lc_monetary": "C",
    "xmloption": "content",
    "quote_all_identifiers": "off",
}
_READ_ONLY = startup_options({"default_transaction_read_only": "on"})


class ReadOnlySession:
    """Asks a database questions, each bounded in time; opens a new connection if one is lost."""

    def __init__(self, parameters: Mapping[str, Any], timeout_seconds: float) -> None:
        """Connect.

        Args:
            parameters: what libpq connects with.
            timeout_seconds: for each statement of a question.

        Raises:
            psycopg.Error: of connecting; its text may quote parts of the parameters.
        """
        ours = {**LIMITS, "application_name": APPLICATION, "options": _READ_ONLY}
        self._parameters = {**parameters, **ours}
        self._timeout_seconds = timeout_seconds
        self._begin = _begin(timeout_seconds)
        self._is_closed = False
        self._session: Session | None = connect(self._parameters)

    def ask(self, answer: Callable[[Session], _Answer]) -> _Answer:
        """Answer a question in a transaction; once more if its session was ended meanwhile.

        Args:
            answer: asks on the session; may be called twice.

        Raises:
            QueryError: what is asked about is at fault.
            WarehouseError: connection, authorization or resources are, or the session is closed.
        """
        if self._is_closed:
            raise WarehouseError("the reader is closed")
        try:
            return self._ask_once(answer)
        except WarehouseError as error:
            if self._session is not None:
                raise
            first = error.__cause__
        try:
            return self._ask_once(answer)
        except WarehouseError as error:
            second = error.__cause__
            if not all(isinstance(cause, errors.AdminShutdown) for cause in (first, second)):
                raise
        # ended twice by the same question: if the server is well, then by what it calls
        self._ask_once(lambda session: session.execute("SELECT 1"))
        raise QueryError("reading it ends the session that reads it") from second

    def close(self) -> None:
        """Let go of the connection for good."""
        self._is_closed = True
        self._let_go()

    def _ask_once(self, answer: Callable[[Session], _Answer]) -> _Answer:
        try:
            if self._session is None:
                self._session = connect(self._parameters)
            self._session.execute(self._begin)
            return answer(self._session)
        except (psycopg.Error, UnicodeError) as error:
            if self._session is not None and self._session.pgconn.status != pq.ConnStatus.OK:
                self._let_go()
            raise query_fault(error, timeout_seconds=self._timeout_seconds) from error
        finally:
            self._roll_back()

    def _roll_back(self) -> None:
        if self._session is None:
            return
        try:
            self._session.execute("ROLLBACK")
        except psycopg.Error:
            self._let_go()

    def _let_go(self) -> None:
        if self._session is not None:
            self._session.close()
        self._session = None


def _begin(timeout_seconds: float) -> sql.Composed:
    begin = sql.SQL("BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
    settings = {"statement_timeout": f"{int(timeout_seconds * 1000)}ms", **_SETTINGS}
    to = sql.SQL("SET LOCAL {} TO {}")
    made = [to.format(sql.Identifier(name), sql.Literal(v)) for name, v in settings.items()]
    return sql.SQL("; ").join([begin, *made])
