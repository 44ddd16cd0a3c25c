"""Load the warehouse into PostgreSQL: python load_postgres.py FILE URL, with Proctor's Python.

FILE comes from build.py. URL is an existing database that its role owns; in it the tables of the
benchmark and the schema marts are dropped and made anew.
"""

import sys
import tempfile
from pathlib import Path

import duckdb
import psycopg
from psycopg import sql

KEYS = {
    "region": ("r_regionkey",),
    "nation": ("n_nationkey",),
    "supplier": ("s_suppkey",),
    "customer": ("c_custkey",),
    "part": ("p_partkey",),
    "partsupp": ("ps_partkey", "ps_suppkey"),
    "orders": ("o_orderkey",),
    "lineitem": ("l_orderkey", "l_linenumber"),
}


def load(source: Path, url: str) -> None:
    """Copy every table; the database has all of them afterwards, or is as it was."""
    with (
        tempfile.TemporaryDirectory() as scratch,
        duckdb.connect(str(source), read_only=True) as warehouse,
        psycopg.connect(url) as base,
    ):
        base.execute("drop schema if exists marts cascade")
        base.execute("create schema marts")
        for table, key in KEYS.items():
            rows = Path(scratch, f"{table}.csv")
            warehouse.execute(f"copy {table} to '{rows}' (format csv, header false)")
            base.execute(f"drop table if exists {table} cascade")
            base.execute(create_statement(warehouse, table, key))
            into = sql.SQL("copy {} from stdin (format csv)").format(sql.Identifier(table))
            with base.cursor().copy(into) as copy, rows.open("rb") as content:
                while chunk := content.read(1 << 20):
                    copy.write(chunk)
    with psycopg.connect(url, autocommit=True) as base:
        base.execute("analyze")


def create_statement(
    warehouse: duckdb.DuckDBPyConnection, table: str, key: tuple[str, ...]
) -> sql.Composed:
    """Write the table's definition: both engines spell these types alike."""
    columns = warehouse.execute(
        "select column_name, data_type from information_schema.columns "
        "where table_schema = 'main' and table_name = ? order by ordinal_position",
        [table],
    ).fetchall()
    defined = [
        sql.SQL("{} {} not null").format(sql.Identifier(name), sql.SQL(kind))
        for name, kind in columns
    ]
    primary = sql.SQL("primary key ({})").format(sql.SQL(", ").join(map(sql.Identifier, key)))
    body = sql.SQL(", ").join([*defined, primary])
    return sql.SQL("create table {} ({})").format(sql.Identifier(table), body)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python load_postgres.py FILE URL")
    load(Path(sys.argv[1]), sys.argv[2])
