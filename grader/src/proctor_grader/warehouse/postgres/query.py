"""The SQL that reads what stands on a branch. Pure.

Every function, type and collation is qualified: with the branch's own search path in force (which
an honest view's functions may need) an agent's `public.count(integer)` would win over ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from psycopg import sql

from proctor_grader.warehouse.postgres import catalog

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from proctor_grader.warehouse.base import Relation
    from proctor_grader.warehouse.postgres.catalog import TypedColumn

STATS_AT_ONCE = 500
"""Columns in one query: a result has at most 1,664."""

_BY_BYTES = sql.SQL('{}::pg_catalog.text COLLATE pg_catalog."C"')
_ELEMENTS_BY_BYTES = sql.SQL('{} COLLATE pg_catalog."C"')


def row_count(relation: Relation) -> sql.Composed:
    """All rows of a relation."""
    return sql.SQL("SELECT pg_catalog.count(*) FROM {}").format(_table(relation))


def row_counts(names: Sequence[tuple[str, str]]) -> sql.Composed:
    """All rows of many tables, each with its index in `names`."""
    one = sql.SQL("SELECT {}, pg_catalog.count(*) FROM {}")
    parts = [
        one.format(sql.Literal(index), sql.Identifier(*name)) for index, name in enumerate(names)
    ]
    return sql.SQL(" UNION ALL ").join(parts)


def grain_counts(
    relation: Relation, columns: Sequence[str], by_text: Collection[str]
) -> sql.Composed:
    """Rows, distinct combinations and rows with a NULL, in one pass.

    IS NOT DISTINCT FROM NULL, since IS NULL is also true for a row value whose fields are NULL.
    """
    keys = [
        sql.SQL("{}::pg_catalog.text" if name in by_text else "{}").format(sql.Identifier(name))
        for name in columns
    ]
    has_null = sql.SQL(" OR ").join(
        sql.SQL("{} IS NOT DISTINCT FROM NULL").format(key) for key in keys
    )
    text = (
        "SELECT coalesce(pg_catalog.sum(n), 0), pg_catalog.count(*),"
        " coalesce(pg_catalog.sum(n) FILTER (WHERE has_null), 0)"
        " FROM (SELECT pg_catalog.count(*) AS n, {} AS has_null FROM {} GROUP BY {}) AS grain"
    )
    return sql.SQL(text).format(has_null, _table(relation), sql.SQL(", ").join(keys))


def column_stats(relation: Relation, columns: Sequence[tuple[str, int]]) -> sql.Composed:
    """NULLs and sum (as text) of each column, given by name and type."""
    asked: list[sql.Composable] = []
    for name, type_oid in columns:
        column = sql.Identifier(name)
        asked.append(sql.SQL("pg_catalog.count(*) - pg_catalog.count({})").format(column))
        asked.append(_sum(column, type_oid))
    selected = sql.SQL(", ").join(asked)
    return sql.SQL("SELECT {} FROM {}").format(selected, _table(relation))


def ordered_by(relation: Relation, column: str) -> sql.Composed:
    """No rows; refused if the column's type has no order."""
    text = "SELECT FROM {} ORDER BY {} LIMIT 0"
    return sql.SQL(text).format(_table(relation), sql.Identifier(column))


def explain(relation: Relation) -> sql.Composed:
    """The plan of reading all rows."""
    return sql.SQL("EXPLAIN (FORMAT JSON) SELECT * FROM {}").format(_table(relation))


def copy_rows(
    relation: Relation, columns: Sequence[TypedColumn], by_text: Collection[str], limit: int | None
) -> sql.Composed:
    """Rows as CSV in which only NULL is unquoted; with a limit the first ones in order.

    Ties are broken by text, since equal values may be written differently (1.0 and 1.00).
    """
    names = sql.SQL(", ").join(sql.Identifier(one.column.name) for one in columns)
    chosen = sql.SQL("SELECT {} FROM {}").format(names, _table(relation))
    if limit is not None:
        keys = [_order_key(one, by_text) for one in columns]
        keys += [
            _BY_BYTES.format(sql.Identifier(one.column.name))
            for one in columns
            if one.type_oid not in catalog.PLAIN_TYPES and one.column.name not in by_text
        ]
        order = sql.SQL(", ").join(sql.SQL("{} ASC NULLS LAST").format(key) for key in keys)
        chosen = sql.SQL("{} ORDER BY {} LIMIT {}").format(chosen, order, sql.Literal(limit))
    form = sql.SQL(r"COPY ({}) TO STDOUT (FORMAT csv, NULL '\N', FORCE_QUOTE *, ENCODING 'UTF8')")
    return form.format(chosen)


def _order_key(one: TypedColumn, by_text: Collection[str]) -> sql.Composable:
    column = sql.Identifier(one.column.name)
    if one.column.name in by_text:
        return _BY_BYTES.format(column)
    if one.is_text:
        # an array of text keeps its own order, element by element
        form = _ELEMENTS_BY_BYTES if one.column.type == "ARRAY" else _BY_BYTES
        return form.format(column)
    return column


def _sum(column: sql.Identifier, type_oid: int) -> sql.Composable:
    if type_oid not in catalog.NUMERIC_TYPES:
        return sql.SQL("NULL::pg_catalog.text")
    forms = {
        catalog.FLOAT4: "pg_catalog.sum({}::pg_catalog.text::pg_catalog.numeric)::pg_catalog.text",
        catalog.FLOAT8: "pg_catalog.sum({}::pg_catalog.text::pg_catalog.numeric)::pg_catalog.text",
        catalog.MONEY: "pg_catalog.sum({}::pg_catalog.numeric)::pg_catalog.text",
    }
    form = forms.get(type_oid, "pg_catalog.sum({})::pg_catalog.text")
    return sql.SQL(form).format(column)


def _table(relation: Relation) -> sql.Identifier:
    return sql.Identifier(relation.schema, relation.name)
