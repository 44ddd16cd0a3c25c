"""The grader's view of a branch.

Every name in the SQL is qualified, and the fault of a role or the server is told apart from that
of what stands on the branch.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

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
from proctor_grader.warehouse.postgres.asking import ReadOnlySession
from proctor_grader.warehouse.postgres.catalog import TypedColumn
from proctor_grader.warehouse.postgres.faults import connect_fault, first_line
from proctor_grader.warehouse.postgres.url import parse_url

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from proctor_grader.warehouse.base import Warehouse
    from proctor_grader.warehouse.postgres.session import Session

ENGINE = "postgres"
_COUNTS_AT_ONCE = 200
_SHOWN = 5


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
        self._asking = ReadOnlySession(parameters, timeout_seconds)

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

        ((path,),), rows = self._asking.ask(answer)
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
        # late: it needs duckdb, which no other question does
        from proctor_grader.warehouse.postgres.capture import write_capture  # noqa: PLC0415

        typed = self._typed_columns(relation)
        by_text = {
            one.column.name
            for one in typed
            if limit is not None and not self._has_order(relation, one)
        }
        copy = query.copy_rows(relation, typed, by_text, limit)
        names = [one.column.name for one in typed]

        return self._asking.ask(
            lambda session: write_capture(session, copy, path, names, max_bytes)
        )

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

        found = self._asking.ask(answer)
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
        self._asking.close()

    def end_agents_sessions(self) -> None:
        """End what the branch's agent left running in the database: its time is over.

        A statement of a killed agent goes on in the server, and may change what is read, or hold
        a lock that would keep the reader waiting.
        """
        self._rows(catalog.END_AGENTS_SESSIONS, {})

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

        return self._asking.ask(answer)

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

        return self._asking.ask(answer)


@contextmanager
def open_reader(dsn: str) -> Iterator[Warehouse]:
    """Open the grader's read-only view of a branch by its `grader_dsn`; closes on exit.

    Sessions that the branch's agent left behind are ended first.

    Raises:
        WarehouseError: the branch can't be reached, or refuses the grader's role.
    """
    secrets = parse_url(dsn).secrets
    try:
        reader = PostgresWarehouse({"conninfo": dsn})
    except psycopg.Error as error:
        raise WarehouseError(first_line(str(error), secrets)) from None
    try:
        reader.end_agents_sessions()
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
