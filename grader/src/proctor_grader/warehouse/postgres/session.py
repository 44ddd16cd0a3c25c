"""Connections of the admin, with limits on everything that could hang."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from proctor_grader.errors import UserError
from proctor_grader.warehouse.postgres.faults import admin_fault, connect_fault
from proctor_grader.warehouse.postgres.names import APPLICATION

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from proctor_grader.warehouse.postgres.url import Target

Session: TypeAlias = psycopg.Connection[tuple[Any, ...]]

ADMIN_TIMEOUT_SECONDS = 60
LOCK_TIMEOUT_SECONDS = 10
MAINTENANCE_DATABASES = ("postgres", "template1")
"""Where the admin works: cloning and dropping need a session outside the base and the branch."""

LIMITS: Final[Mapping[str, Any]] = {
    "connect_timeout": 10,
    "keepalives": 1,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
    "client_encoding": "UTF8",
}


def startup_options(settings: Mapping[str, str]) -> str:
    """Write server settings for libpq's `options`: they win over those of role and database."""
    escaped = {
        name: value.replace("\\", r"\\").replace(" ", r"\ ") for name, value in settings.items()
    }
    return " ".join(f"-c {name}={value}" for name, value in escaped.items())


_ADMIN_OPTIONS = startup_options(
    {
        "search_path": "pg_catalog",
        "statement_timeout": f"{ADMIN_TIMEOUT_SECONDS}s",
        "lock_timeout": f"{LOCK_TIMEOUT_SECONDS}s",
        "default_transaction_read_only": "off",
        "default_transaction_isolation": "read committed",
        "quote_all_identifiers": "off",
    }
)


def connect(parameters: Mapping[str, Any]) -> Session:
    """Open a session that commits every statement by itself.

    Raises:
        psycopg.Error: its text may quote parts of the parameters.
    """
    # no statement is ever prepared: nothing of it could outlive a rolled back transaction
    return psycopg.connect(make_conninfo(**parameters), autocommit=True, prepare_threshold=None)


class Server:
    """The admin's way into the server on which a base lies. Thread-safe: it holds no connection.

    A connection costs some milliseconds and a branch needs two: a pool would gain little, and a
    restart of the server would leave it full of stale ones.
    """

    def __init__(self, target: Target) -> None:
        self.target = target
        self._outside = [name for name in MAINTENANCE_DATABASES if name != target.base]

    @contextmanager
    def admin(self, application: str = APPLICATION) -> Iterator[Session]:
        """Open a session of the admin outside the base and all branches.

        Raises:
            UserError: the credentials are refused.
            WarehouseError: the server can't be reached, or fails.
            BranchError: the server refuses a statement for good.
        """
        with self._opened(self._outside, application) as session:
            yield session

    @contextmanager
    def admin_in(self, database: str, application: str = APPLICATION) -> Iterator[Session]:
        """Open a session of the admin in one database; raises as `admin` does."""
        with self._opened([database], application) as session:
            yield session

    @contextmanager
    def _opened(self, databases: Sequence[str], application: str) -> Iterator[Session]:
        session = self._connect(databases, application)
        try:
            yield session
        except psycopg.Error as error:
            raise admin_fault(error, where=self.target.location) from error
        finally:
            session.close()

    def _connect(self, databases: Sequence[str], application: str) -> Session:
        ours = {"application_name": application, "options": _ADMIN_OPTIONS}
        parameters = {**self.target.parameters, **LIMITS, **ours}
        for last, database in zip([False] * (len(databases) - 1) + [True], databases, strict=True):
            try:
                return connect({**parameters, "dbname": database})
            except psycopg.Error as error:
                fault = connect_fault(
                    error, where=self.target.location, secrets=self.target.secrets
                )
                elsewhere = isinstance(fault, UserError) and "database" in fault.message
                if last or not elsewhere:
                    raise fault from None  # the cause may quote a secret
        raise AssertionError("no database to connect to")


def run_script(session: Session, statements: Sequence[sql.Composable]) -> None:
    """Run statements in one round trip and one transaction."""
    session.execute(sql.SQL(";\n").join(statements))


def first_value(session: Session, query: str, values: Mapping[str, object] | None = None) -> Any:
    """Return the first column of a query's first row; None without a row."""
    row = session.execute(query.encode(), values).fetchone()
    return None if row is None else row[0]
