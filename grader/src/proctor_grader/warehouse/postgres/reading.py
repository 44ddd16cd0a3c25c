"""The grader's view of a branch: every question in a read-only transaction that is rolled back.

What stands on the branch is not trusted: settings are made anew for every question (an agent's
function may change them), every name in our SQL is qualified, and a role's or server's fault is
told apart from the branch's.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import psycopg
from psycopg import errors, sql

from proctor_grader.errors import QueryError, WarehouseError
from proctor_grader.warehouse.base import (
    QUERY_TIMEOUT_SECONDS,
    Column,
    ColumnStats,
    GrainCounts,
    Relation,
    RelationKind,
    TableShape,
)
from proctor_grader.warehouse.postgres import catalog, query
from proctor_grader.warehouse.postgres.catalog import TypedColumn
from proctor_grader.warehouse.postgres.faults import connect_fault, first_line, query_fault
from proctor_grader.warehouse.postgres.names import APPLICATION
from proctor_grader.warehouse.postgres.session import LIMITS, Session, connect, startup_options
from proctor_grader.warehouse.postgres.url import parse_url

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from proctor_grader.warehouse.base import Warehouse

ENGINE = "postgres"
_COUNTS_AT_ONCE = 200
_SHOWN = 5
# however role and database are set: one spelling of every value
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
_Answer = TypeVar("_Answer")


class PostgresWarehouse:
    """Read-only questions to a database, by a role that may read it."""

    def __init__(
        self, parameters: Mapping[str, Any], *, timeout_seconds: float = QUERY_TIMEOUT_SECONDS
    ) -> None:
        """Connect.

        Args:
            parameters: what libpq connects with.
            timeout_seconds: for each question.

        Raises:
            psycopg.Error: of connecting.
        """
        options = startup_options({"default_transaction_read_only": "on"})
        ours = {**LIMITS, "application_name": APPLICATION, "options": options}
        self._parameters = {**parameters, **ours}
        self._timeout_seconds = timeout_seconds
        self._session: Session | None = connect(self._parameters)
        self._is_closed = False

    @property
    def engine(self) -> str:
        """Name of the engine."""
        return ENGINE

    def relations(self) -> tuple[Relation, ...]:
        """All user tables and views, by schema then name."""

        def answer(session: Session) -> tuple[list[Any], list[Any]]:
            path = session.execute(catalog.SEARCH_PATH).fetchall()
            session.execute("SET LOCAL search_path = pg_catalog")
            return path, session.execute(catalog.RELATIONS).fetchall()

        ((path,),), rows = self._ask(answer)
        visible: dict[str, str] = {}
        for schema in reversed(path):
            visible |= {row[1]: schema for row in rows if row[0] == schema}
        found = (
            Relation(schema, name, catalog.KINDS[kind], owner, visible.get(name) == schema)
            for schema, name, kind, owner in rows
        )
        return tuple(sorted(found, key=lambda one: (one.schema.encode(), one.name.encode())))

    def columns(self, relation: Relation) -> tuple[Column, ...]:
        """The relation's columns by ordinal."""
        return tuple(typed.column for typed in self._typed_columns(relation))

    def row_count(self, relation: Relation) -> int:
        """Exact number of rows."""
        return int(self._rows(query.row_count(relation))[0][0])

    def grain_counts(self, relation: Relation, columns: Sequence[str]) -> GrainCounts:
        """Counts for the given columns; values of a type without equality count by their text."""
        typed = {one.column.name: one for one in self._typed_columns(relation)}
        by_text = {
            name for name in columns if name in typed and not self._has_order(relation, typed[name])
        }
        row = self._rows(query.grain_counts(relation, columns, by_text))[0]
        return GrainCounts(*map(int, row))

    def column_stats(self, relation: Relation, columns: Sequence[Column]) -> dict[str, ColumnStats]:
        """NULLs and exact sums by column name.

        Floating numbers are added as the decimals they are written as, so that the sum does not
        depend on the order of rows.
        """
        known = {one.column.name: one.type_oid for one in self._typed_columns(relation)}
        stats: dict[str, ColumnStats] = {}
        for start in range(0, len(columns), query.STATS_AT_ONCE):
            part = columns[start : start + query.STATS_AT_ONCE]
            typed = [(one.name, known.get(one.name, 0)) for one in part]
            row = self._rows(query.column_stats(relation, typed))[0]
            for index, column in enumerate(part):
                nulls, total = row[2 * index : 2 * index + 2]
                stats[column.name] = ColumnStats(int(nulls), total)
        return stats

    def dump(self, relation: Relation, path: Path, *, limit: int | None, max_bytes: int) -> int:
        """Write rows to a new DuckDB file as text; the file is whole or not there."""
        typed = self._typed_columns(relation)
        by_text = {
            one.column.name
            for one in typed
            if limit is not None and not self._has_order(relation, one)
        }
        copy = query.copy_rows(relation, typed, by_text, limit)
        names = [one.column.name for one in typed]

        from proctor_grader.warehouse.postgres.capture import write_capture  # noqa: PLC0415 - duckdb

        return self._ask(lambda session: write_capture(session, copy, path, names, max_bytes))

    def estimated_bytes(self, relation: Relation) -> int:
        """The size on disk of a table, the planner's guess for a view."""
        stored = {RelationKind.TABLE, RelationKind.MATERIALIZED_VIEW}
        if relation.kind in stored:
            given = {"relation": self._relation_id(relation)}
            return int(self._rows(catalog.TABLE_BYTES, given)[0][0])
        plan = self._rows(query.explain(relation))[0][0][0]["Plan"]
        return int(plan["Plan Rows"] * plan["Plan Width"])

    def shapes(self) -> tuple[TableShape, ...]:
        """All base tables with exact counts and columns, as of one moment.

        Raises:
            WarehouseError: the role may not read some table, which it would else not see.
        """

        def answer(session: Session) -> list[TableShape]:
            session.execute("SET LOCAL search_path = pg_catalog")
            tables = session.execute(catalog.TABLES).fetchall()
            _check_readable(session, tables)
            columns = _columns_of(session, [oid for oid, *_ in tables])
            names = [(schema, name) for _, schema, name, _ in tables]
            counts: list[int] = []
            for start in range(0, len(names), _COUNTS_AT_ONCE):
                part = query.row_counts(names[start : start + _COUNTS_AT_ONCE])
                counts += [count for _, count in sorted(session.execute(part).fetchall())]
            return [
                TableShape(schema, name, count, tuple(one.column for one in columns[oid]))
                for (oid, schema, name, _), count in zip(tables, counts, strict=True)
            ]

        found = self._ask(answer)
        return tuple(sorted(found, key=lambda one: (one.schema.encode(), one.name.encode())))

    def behind(self, relation: Relation) -> tuple[str, ...]:
        """Views, foreign tables and functions that what a relation shows depends on.

        Such things may answer differently to whoever asks, so a grade over them rests on trust.
        Empty for a plain table. Functions that are only named in another function's body are not
        found: the catalog does not know them.
        """
        rows = self._rows(catalog.BEHIND, {"relation": self._relation_id(relation)})
        return tuple(text for (text,) in rows)

    def close(self) -> None:
        """Let go of the connection."""
        self._is_closed = True
        self._let_go()

    def _relation_id(self, relation: Relation) -> int:
        given = {"schema": relation.schema, "name": relation.name}
        rows = self._rows(catalog.RELATION_ID, given)
        if not rows:
            raise QueryError(f'relation "{relation}" does not exist')
        return int(rows[0][0])

    def _typed_columns(self, relation: Relation) -> list[TypedColumn]:
        oid = self._relation_id(relation)

        def answer(session: Session) -> list[TypedColumn]:
            session.execute("SET LOCAL search_path = pg_catalog")
            return _columns_of(session, [oid])[oid]

        return self._ask(answer)

    def _has_order(self, relation: Relation, typed: TypedColumn) -> bool:
        if typed.type_oid in catalog.PLAIN_TYPES:
            return True
        try:
            self._rows(query.ordered_by(relation, typed.column.name))
        except QueryError as error:
            if isinstance(error.__cause__, errors.UndefinedFunction):
                return False
            raise
        return True

    def _rows(
        self, text: sql.Composed | str, values: Mapping[str, object] | None = None
    ) -> list[tuple[Any, ...]]:
        def answer(session: Session) -> list[tuple[Any, ...]]:
            if isinstance(text, str):
                session.execute("SET LOCAL search_path = pg_catalog")
                return session.execute(text.encode(), values).fetchall()
            return session.execute(text).fetchall()

        return self._ask(answer)

    def _ask(self, answer: Callable[[Session], _Answer]) -> _Answer:
        """Answer in a transaction of its own; once more if the session was ended meanwhile."""
        if self._is_closed:
            raise WarehouseError("the reader is closed")
        try:
            return self._answer_once(answer)
        except WarehouseError as error:
            if self._session is not None:
                raise
            lost = error.__cause__
        return self._answer_again(answer, lost)

    def _answer_again(
        self, answer: Callable[[Session], _Answer], lost: BaseException | None
    ) -> _Answer:
        try:
            return self._answer_once(answer)
        except WarehouseError as error:
            ended = errors.AdminShutdown
            if not (isinstance(lost, ended) and isinstance(error.__cause__, ended)):
                raise
            again = error
        # ended twice by the same question while the server is well: what it calls ends sessions
        self._answer_once(lambda session: session.execute("SELECT 1"))
        raise QueryError("reading it ends the session that reads it") from again

    def _answer_once(self, answer: Callable[[Session], _Answer]) -> _Answer:
        try:
            if self._session is None:
                self._session = connect(self._parameters)
            self._session.execute(self._preamble())
            return answer(self._session)
        except (psycopg.Error, UnicodeError) as error:
            if (
                self._session is not None
                and self._session.pgconn.status != psycopg.pq.ConnStatus.OK
            ):
                self._let_go()
            raise query_fault(error, timeout_seconds=self._timeout_seconds) from error
        finally:
            self._roll_back()

    def _preamble(self) -> sql.Composed:
        begin = sql.SQL("BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        settings = {"statement_timeout": f"{int(self._timeout_seconds * 1000)}ms", **_SETTINGS}
        to = sql.SQL("SET LOCAL {} TO {}")
        made = [to.format(sql.Identifier(n), sql.Literal(v)) for n, v in settings.items()]
        return sql.SQL("; ").join([begin, *made])

    def _roll_back(self) -> None:
        """Undo whatever a function on the branch did to the session's settings."""
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


@contextmanager
def open_reader(dsn: str) -> Iterator[Warehouse]:
    """Open the grader's read-only view of a branch by its `grader_dsn`; closes on exit.

    Raises:
        WarehouseError: the branch can't be reached, or refuses the grader's role.
    """
    secrets = parse_url(dsn).secrets
    try:
        reader = PostgresWarehouse({"conninfo": dsn})
    except psycopg.Error as error:
        raise WarehouseError(first_line(str(error), secrets)) from None
    try:
        yield reader
    finally:
        reader.close()


@contextmanager
def open_base_reader(url: str) -> Iterator[Warehouse]:
    """Open a read-only view of a base itself, as its admin; closes on exit.

    Raises:
        UserError: the URL is malformed, the credentials are refused or there is no such base.
        WarehouseError: the server can't be reached.
    """
    target = parse_url(url)
    try:
        reader = PostgresWarehouse({**target.parameters, "dbname": target.base})
    except psycopg.Error as error:
        raise connect_fault(error, where=target.location, secrets=target.secrets) from None
    try:
        yield reader
    finally:
        reader.close()


def _columns_of(session: Session, relations: Sequence[int]) -> dict[int, list[TypedColumn]]:
    rows = session.execute(catalog.COLUMNS, {"relations": list(relations)}).fetchall()
    domains = sorted({row[5] for row in rows if row[6] == "d"})
    under: dict[int, int] = {}  # type of each domain, through all levels
    if domains:
        rows_under = session.execute(catalog.DOMAINS, {"domains": domains}).fetchall()
        under = {int(domain): int(type_oid) for domain, type_oid in rows_under}
    found: dict[int, list[TypedColumn]] = {oid: [] for oid in relations}
    for oid, ordinal, name, spelled, nullable, declared, _, is_text in rows:
        type_oid = under.get(declared, int(declared))
        column = Column(ordinal, name, spelled, nullable, type_oid in catalog.NUMERIC_TYPES)
        found[oid].append(TypedColumn(column, type_oid, is_text))
    return found


def _check_readable(session: Session, tables: Sequence[tuple[Any, ...]]) -> None:
    hidden = [f'"{schema}"."{name}"' for _, schema, name, readable in tables if not readable]
    if hidden:
        more = len(hidden) - _SHOWN
        shown = ", ".join(hidden[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
        raise WarehouseError(
            f"role '{session.info.user}' may not read {shown}",
            remedy="grant it USAGE on the schema and SELECT on the table",
            reason="PermissionDenied",
        )
