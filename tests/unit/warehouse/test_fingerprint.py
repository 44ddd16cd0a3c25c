from __future__ import annotations

from hashlib import sha256
from itertools import permutations
from pathlib import Path

import pytest

from proctor_grader.errors import UserError
from proctor_grader.warehouse.base import Column, TableShape
from proctor_grader.warehouse.fingerprint import build_fingerprint, fingerprint_of
from tests.unit.warehouse.duckdbfile import opened_elsewhere, write_database

TWO_TABLES = (
    "CREATE SCHEMA raw",
    "CREATE SCHEMA marts",
    "CREATE TABLE raw.orders (order_id INTEGER NOT NULL, amount DECIMAL(12,2) NOT NULL)",
    "INSERT INTO raw.orders SELECT i, i FROM range(100) AS t(i)",
    "CREATE TABLE marts.fct_orders (order_id INTEGER, amount DECIMAL(12,2))",
    "INSERT INTO marts.fct_orders SELECT i, i FROM range(100) AS t(i)",
)


def shape(schema: str, name: str, types: tuple[str, str], nullable: bool) -> TableShape:
    columns = (
        Column(1, "order_id", types[0], nullable, True),
        Column(2, "amount", types[1], nullable, True),
    )
    return TableShape(schema, name, 100, columns)


def two_tables(integer: str, decimal: str) -> list[TableShape]:
    return [
        shape("raw", "orders", (integer, decimal), False),
        shape("marts", "fct_orders", (integer, decimal), True),
    ]


@pytest.mark.parametrize(
    ("engine", "shapes", "digest"),
    [
        ("postgres", [], "fp-f33af32593c9b8fd6c9cd9011a69eb58"),
        ("postgres", two_tables("integer", "numeric"), "fp-c29371ab86fb181d9de1d3e5b96932f8"),
        ("duckdb", [], "fp-5b698d0e9753dcb7064ef673dec2de0d"),
        ("duckdb", two_tables("INTEGER", "DECIMAL(12,2)"), "fp-366947d455eb3ce7f3fe868bea67c47c"),
    ],
    ids=["postgres-empty", "postgres-two-tables", "duckdb-empty", "duckdb-two-tables"],
)
def test_the_digests_that_the_format_gives(
    engine: str, shapes: list[TableShape], digest: str
) -> None:
    assert {fingerprint_of(order, engine) for order in permutations(shapes)} == {digest}


def test_tables_are_ordered_by_bytes_and_ordinals_are_kept() -> None:
    columns = (Column(3, "b", "X", True), Column(1, "a", "X", True))
    swapped = TableShape("s", "é", 0, columns[::-1])
    assert fingerprint_of([TableShape("s", "é", 0, columns)], "duckdb") == fingerprint_of(
        [swapped], "duckdb"
    )
    keys = [("a", "z"), ("b", "Z"), ("b", "a"), ("b", "\ue000"), ("b", "\U0001f600")]
    text = "proctor-fingerprint-duckdb-v1\n" + "".join(f"{s}.{name}:0\n" for s, name in keys)
    expected = f"fp-{sha256(text.encode()).hexdigest()[:32]}"
    tables = [TableShape(schema, name, 0, ()) for schema, name in keys]
    assert {fingerprint_of(order, "duckdb") for order in permutations(tables)} == {expected}


@pytest.mark.parametrize(
    "change",
    [
        pytest.param("INSERT INTO raw.orders VALUES (1, 1)", id="one-row-more"),
        pytest.param("ALTER TABLE marts.fct_orders ADD COLUMN x INTEGER", id="a-column-more"),
        pytest.param("ALTER TABLE marts.fct_orders ALTER amount TYPE DECIMAL(13,2)", id="type"),
        pytest.param("ALTER TABLE raw.orders ALTER amount DROP NOT NULL", id="nullable"),
        pytest.param("ALTER TABLE raw.orders RENAME TO Orders2", id="name"),
        pytest.param("CREATE TABLE empty (a INTEGER)", id="an-empty-table-more"),
    ],
)
def test_what_changes_a_fingerprint(tmp_path: Path, change: str) -> None:
    path = write_database(tmp_path / "shop.duckdb", *TWO_TABLES)
    before = build_fingerprint(str(path))
    write_database(path, change)
    assert before == "fp-366947d455eb3ce7f3fe868bea67c47c"
    assert build_fingerprint(f"duckdb:///{path}") != before


def test_what_does_not_change_a_fingerprint(tmp_path: Path) -> None:
    path = write_database(
        tmp_path / "memory.duckdb",
        *TWO_TABLES,
        "CREATE VIEW v AS SELECT * FROM raw.orders",
        "CREATE VIEW broken AS SELECT * FROM v",
        "DROP VIEW v",
        "CREATE MACRO count(x) AS 7",
        "CREATE SEQUENCE s",
        "UPDATE raw.orders SET amount = 0",
    )
    assert build_fingerprint(str(path)) == "fp-366947d455eb3ce7f3fe868bea67c47c"


def test_rows_that_are_only_in_the_log_count(tmp_path: Path) -> None:
    path = tmp_path / "shop.duckdb"
    with opened_elsewhere(path, *TWO_TABLES) as process:
        process.kill()
        process.wait()
    assert path.with_name("shop.duckdb.wal").exists()
    assert build_fingerprint(str(path)) == "fp-366947d455eb3ce7f3fe868bea67c47c"


def test_a_base_that_is_being_written_names_who_does_it(tmp_path: Path) -> None:
    path = tmp_path / "shop.duckdb"
    with (
        opened_elsewhere(path) as process,
        pytest.raises(UserError, match=f"process {process.pid}"),
    ):
        build_fingerprint(str(path))
