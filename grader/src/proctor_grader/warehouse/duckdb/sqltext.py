"""SQL texts of the reader. Pure.

Functions are named with their full path, since a macro of the branch could bear the same name,
and columns with their table's alias, since a struct column could hold a field of that name.
"""

# ruff: noqa: S608 - SQL is made here of quoted names, literals and integers only
from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from proctor_grader.warehouse.base import Column

ALIAS = "r"
COUNT = "system.main.count(*)"
ATTACHED_CATALOG = "SELECT database_name FROM system.main.duckdb_databases() WHERE path IS NOT NULL"
"""The one attached file; its path is not compared, since some versions follow links in it."""
# ordered by the bytes of their text: text, whatever its collation, and types without an order
_BY_TEXT = {"VARCHAR", "JSON", "GEOMETRY", "VARIANT"}
# understood by every DuckDB from 1.2 on; small blocks, since most captures are small
_CAPTURE_OPTIONS = "BLOCK_SIZE 16384, STORAGE_VERSION 'v1.0.0'"


def quoted(name: str) -> str:
    """Return an identifier, quoted."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: object) -> str:
    """Return a text literal."""
    return "'" + str(text).replace("'", "''") + "'"


def column_of(name: str) -> str:
    """Return a column of the relation that is called `ALIAS`."""
    return f"{ALIAS}.{quoted(name)}"


def list_relations(catalog: str) -> str:
    """Return SQL for `(schema, name, whether it is a view)` of all user tables and views."""
    # literals, here and below: a statement with parameters is planned twice, a millisecond each
    own = f"database_name = {literal(catalog)} AND NOT internal AND NOT temporary"
    return (
        f"SELECT schema_name, table_name, FALSE FROM system.main.duckdb_tables() WHERE {own}"
        " UNION ALL "
        f"SELECT schema_name, view_name, TRUE FROM system.main.duckdb_views() WHERE {own}"
    )


def list_columns(catalog: str) -> str:
    """Return SQL for `(schema, relation, ordinal, name, type, nullable)` of all columns."""
    return (
        "SELECT schema_name, table_name, column_index, column_name, data_type, is_nullable"
        f" FROM system.main.duckdb_columns() WHERE database_name = {literal(catalog)}"
        " AND NOT internal ORDER BY column_index"
    )


def describe(source: str) -> str:
    """Return SQL for a relation's columns, `(name, type, 'YES' or 'NO', ...)`.

    Four times as fast as the catalog's list, and it binds a view, so that a broken one fails.
    """
    return f"DESCRIBE {source}"


def count_rows(source: str) -> str:
    """Return SQL for the number of rows."""
    return f"SELECT {COUNT} FROM {source}"


def count_all(sources: Sequence[str]) -> str:
    """Return SQL for one row `(position, number of rows)` for each source."""
    return " UNION ALL ".join(
        f"SELECT {place}, {COUNT} FROM {source}" for place, source in enumerate(sources)
    )


def count_grain(source: str, columns: Sequence[str]) -> str:
    """Return SQL for rows in all, distinct combinations, rows with a NULL; in one pass."""
    keys = ", ".join(column_of(name) for name in columns)
    has_null = " OR ".join(f"{column_of(name)} IS NULL" for name in columns)
    return (
        "SELECT coalesce(system.main.sum(g.n), 0), system.main.count(*),"
        " coalesce(system.main.sum(g.n) FILTER (g.h), 0)"
        f" FROM (SELECT {COUNT}, {has_null} FROM {source} AS {ALIAS} GROUP BY {keys}) AS g(n, h)"
    )


def aggregates(source: str, expressions: Iterable[str]) -> str:
    """Return SQL for one row of aggregates."""
    return f"SELECT {', '.join(expressions)} FROM {source} AS {ALIAS}"


def values_where(source: str, column: str, condition: str) -> str:
    """Return SQL for a column's values in some rows."""
    return f"SELECT {column} FROM {source} AS {ALIAS} WHERE {condition}"


def attach_capture(path: object, name: str) -> str:
    """Return SQL that makes a new file to dump into."""
    return f"ATTACH {literal(path)} AS {quoted(name)} ({_CAPTURE_OPTIONS})"


def dump_rows(source: str, columns: Sequence[Column], into: str, limit: int | None) -> str:
    """Return SQL that writes rows as text into the table `capture` of an attached file."""
    texts = ", ".join(
        f"CAST({column_of(column.name)} AS VARCHAR) AS {quoted(column.name)}" for column in columns
    )
    ordered = ""
    if limit is not None:
        keys = ", ".join(f"{_order_key(column)} ASC NULLS LAST" for column in columns)
        ordered = f" ORDER BY {keys} LIMIT {limit}"
    return (
        f"CREATE TABLE {quoted(into)}.main.capture AS"
        f" SELECT {texts} FROM {source} AS {ALIAS}{ordered}"
    )


def _order_key(column: Column) -> str:
    value = column_of(column.name)
    if column.type in _BY_TEXT:
        return f"system.main.encode(CAST({value} AS VARCHAR))"
    return value


def average_bytes(source: str, columns: Sequence[Column], rows: int) -> str:
    """Return SQL for the number of the first rows and the bytes of their values as text."""
    lengths = " + ".join(
        f"coalesce(system.main.strlen(CAST({column_of(column.name)} AS VARCHAR)), 0)"
        for column in columns
    )
    return (
        f"SELECT {COUNT}, coalesce(system.main.sum({lengths}), 0)"
        f" FROM (SELECT * FROM {source} LIMIT {rows}) AS {ALIAS}"
    )
