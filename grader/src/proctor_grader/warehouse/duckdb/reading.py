"""Read-only questions to one attached DuckDB database."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

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
from proctor_grader.warehouse.duckdb import sqltext
from proctor_grader.warehouse.duckdb.dumping import Dump
from proctor_grader.warehouse.duckdb.faults import faults_told
from proctor_grader.warehouse.duckdb.sums import ColumnSum, sum_of
from proctor_grader.warehouse.duckdb.watchdog import Deadline

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import duckdb

ENGINE = "duckdb"
DEFAULT_SCHEMA = "main"
_COUNTS_PER_QUERY = 200
_SAMPLED_ROWS = 4096
_FETCHED_ROWS = 10_000


class DuckDBWarehouse:
    """Reads one catalog of an open connection; `Warehouse` says what each method means.

    Args:
        connection: stays the caller's, closing the reader leaves it open. A macro of the branch
            can't stand for a function of ours, whatever the connection's search path.
        catalog: the database's name in the connection.
        scratch: the only folder the connection may make files in; None if it may anywhere.
        fault: what every question is answered with, for a file that could not be attached.
    """

    engine = ENGINE

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        catalog: str,
        *,
        scratch: Path | None = None,
        fault: QueryError | None = None,
        timeout_seconds: float = QUERY_TIMEOUT_SECONDS,
    ) -> None:
        self._connection: duckdb.DuckDBPyConnection | None = connection
        self._catalog = catalog
        self._scratch = scratch
        self._fault = fault
        self._timeout_seconds = timeout_seconds
        self.has_failed = False

    def close(self) -> None:
        """Let go of the connection, which stays open."""
        self._connection = None

    def relations(self) -> tuple[Relation, ...]:
        """All user tables and views, by schema then name in bytes."""
        found = [
            Relation(
                schema=schema,
                name=name,
                kind=RelationKind.VIEW if is_view else RelationKind.TABLE,
                is_default_schema=schema == DEFAULT_SCHEMA,
            )
            for schema, name, is_view in self._rows(sqltext.list_relations(self._catalog))
        ]
        return tuple(sorted(found, key=_byte_order))

    def columns(self, relation: Relation) -> tuple[Column, ...]:
        """The relation's columns; those of a view as it stands now, so a broken one fails."""
        described = self._rows(sqltext.describe(self._source(relation)))
        return tuple(
            _column(place, name, kind, nullable != "NO")
            for place, (name, kind, nullable, *_) in enumerate(described, start=1)
        )

    def row_count(self, relation: Relation) -> int:
        """Exact number of rows."""
        return int(self._row(sqltext.count_rows(self._source(relation)))[0])

    def grain_counts(self, relation: Relation, columns: Sequence[str]) -> GrainCounts:
        """Counts for the given columns; two NULLs make the same combination."""
        rows, distinct, with_null = self._row(sqltext.count_grain(self._source(relation), columns))
        return GrainCounts(int(rows), int(distinct), int(with_null))

    def column_stats(self, relation: Relation, columns: Sequence[Column]) -> dict[str, ColumnStats]:
        """NULLs and exact sums by column name; one pass, unless values fit no usual magnitude."""
        source = self._source(relation)
        plans = [
            (column, sqltext.column_of(column.name), sum_of(column.type)) for column in columns
        ]
        expressions = [sqltext.COUNT]
        for _, name, plan in plans:
            expressions.append(f"system.main.count({name})")
            expressions.extend(plan.expressions(name) if plan else ())
        rows, *values = self._row(sqltext.aggregates(source, expressions))
        stats: dict[str, ColumnStats] = {}
        for column, name, plan in plans:
            filled, *values = values
            taken = len(plan.expressions(name)) if plan else 0
            own, values = values[:taken], values[taken:]
            total = self._total(source, name, plan, own) if plan and filled else None
            stats[column.name] = ColumnStats(nulls=int(rows) - int(filled), sum=total)
        return stats

    def _total(self, source: str, name: str, plan: ColumnSum, values: Sequence[Any]) -> str:
        condition = plan.leftover(name, values)
        if condition is None:
            return plan.total(values, ())
        with self._asking() as connection:
            cursor = connection.execute(sqltext.values_where(source, name, condition))
            return plan.total(values, _first_values(cursor))

    def dump(self, relation: Relation, path: Path, *, limit: int | None, max_bytes: int) -> int:
        """Write rows as text to a new DuckDB file that every DuckDB since 1.2 can read."""
        columns = self.columns(relation)
        with (
            self._asking() as connection,
            Dump(connection, path, scratch=self._scratch, max_bytes=max_bytes) as dump,
        ):
            written = dump.write(
                sqltext.dump_rows(self._source(relation), columns, dump.name, limit)
            )
        return written

    def estimated_bytes(self, relation: Relation) -> int:
        """The average size of the first rows' text times the number of rows."""
        source, columns = self._source(relation), self.columns(relation)
        sampled, size = self._row(sqltext.average_bytes(source, columns, _SAMPLED_ROWS))
        if sampled < _SAMPLED_ROWS:
            return int(size)
        return int(size) * self.row_count(relation) // int(sampled)

    def shapes(self) -> tuple[TableShape, ...]:
        """All base tables with exact counts and columns, sorted by schema then name in bytes."""
        tables = [each for each in self.relations() if each.kind is RelationKind.TABLE]
        columns: dict[tuple[str, str], list[Column]] = {}
        for schema, name, *column in self._rows(sqltext.list_columns(self._catalog)):
            columns.setdefault((schema, name), []).append(_column(*column))
        return tuple(
            TableShape(table.schema, table.name, count, tuple(columns[table.schema, table.name]))
            for table, count in zip(tables, self._counts(tables), strict=True)
        )

    def _counts(self, tables: Sequence[Relation]) -> list[int]:
        counts: list[int] = []
        for start in range(0, len(tables), _COUNTS_PER_QUERY):
            sources = [self._source(each) for each in tables[start : start + _COUNTS_PER_QUERY]]
            counts.extend(int(count) for _, count in sorted(self._rows(sqltext.count_all(sources))))
        return counts

    def _source(self, relation: Relation) -> str:
        return ".".join(map(sqltext.quoted, (self._catalog, relation.schema, relation.name)))

    def _row(self, sql: str) -> tuple[Any, ...]:
        return self._rows(sql)[0]

    def _rows(self, sql: str) -> list[tuple[Any, ...]]:
        with self._asking() as connection:
            return connection.execute(sql).fetchall()

    @contextmanager
    def _asking(self) -> Iterator[duckdb.DuckDBPyConnection]:
        if self._connection is None:
            raise WarehouseError("the reader is closed")
        if self._fault is not None:
            raise QueryError(self._fault.message, reason=self._fault.reason)
        folder = str(self._scratch) if self._scratch else ""
        try:
            with faults_told(Deadline(self._connection, self._timeout_seconds), folder=folder):
                yield self._connection
        except (QueryError, WarehouseError):
            self.has_failed = True
            raise


def _column(ordinal: int, name: str, kind: str, nullable: bool) -> Column:
    return Column(ordinal, name, kind, nullable, is_numeric=sum_of(kind) is not None)


def _byte_order(relation: Relation) -> tuple[bytes, bytes]:
    return relation.schema.encode(), relation.name.encode()


def _first_values(cursor: duckdb.DuckDBPyConnection) -> Iterator[Any]:
    while rows := cursor.fetchmany(_FETCHED_ROWS):
        for (value,) in rows:
            yield value
