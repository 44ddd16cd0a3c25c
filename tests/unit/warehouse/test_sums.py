from __future__ import annotations

import math
import random
from decimal import Decimal
from fractions import Fraction

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proctor_grader.warehouse.base import ColumnStats
from proctor_grader.warehouse.duckdb import DuckDBWarehouse
from proctor_grader.warehouse.duckdb.sums import sum_of
from tests.unit.warehouse.duckdbfile import table

SMALLEST = 5e-324
LARGEST = 1.7976931348623157e308


def summed(column_type: str, values: list[str]) -> ColumnStats:
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE t (a {column_type})")
        for value in values:
            connection.execute(f"INSERT INTO t VALUES (CAST('{value}' AS {column_type}))")
        reader = DuckDBWarehouse(connection, "memory")
        return reader.column_stats(table("t"), reader.columns(table("t")))["a"]


WIDEST = str(10**38 - 1)


@pytest.mark.parametrize(
    ("column_type", "values", "expected"),
    [
        ("TINYINT", ["127", "127", "-1"], "253"),
        ("UBIGINT", [str(2**64 - 1)] * 3, str(3 * (2**64 - 1))),
        ("BIGINT", [str(2**63 - 1)] * 2, str(2**64 - 2)),
        ("HUGEINT", [str(2**127 - 1)] * 3, str(3 * (2**127 - 1))),
        ("HUGEINT", [f"-{2**127 - 1}", "-5"], f"-{2**127 + 4}"),
        ("UHUGEINT", [str(2**128 - 1)] * 3, str(3 * (2**128 - 1))),
        ("BIGNUM", [str(10**60), "-1", "12"], str(10**60 + 11)),
        ("DECIMAL(12,2)", ["0.10", "0.20"], "0.30"),
        ("DECIMAL(12,2)", ["1.00", "-1.00"], "0.00"),
        ("DECIMAL(18,0)", ["7", "8"], "15"),
        ("DECIMAL(38,0)", [WIDEST, WIDEST], str(2 * (10**38 - 1))),
        ("DECIMAL(38,10)", ["-0.0000000001", "-0.5"], "-0.5000000001"),
        ("DECIMAL(38,38)", [f"0.{WIDEST}", f"0.{WIDEST}"], f"1.{'9' * 37}8"),
        ("DECIMAL(38,2)", ["1.10", "2.20"], "3.30"),
        ("DOUBLE", ["0.1", "0.2"], "0.30000000000000004"),
        ("DOUBLE", ["0.1"] * 10, "1"),
        ("DOUBLE", ["1e16", "1", "-1e16"], "1"),
        ("DOUBLE", ["1e308", "1e308", "-1e308"], "1" + "0" * 308),
        ("DOUBLE", ["1e308", "1e308"], "inf"),
        ("DOUBLE", ["1e-300", "1"], "1"),
        ("DOUBLE", ["-0.0"], "0"),
        ("DOUBLE", ["inf", "1"], "inf"),
        ("DOUBLE", ["-inf", "1"], "-inf"),
        ("DOUBLE", ["-inf", "inf"], "nan"),
        ("DOUBLE", ["nan", "1", "1e300"], "nan"),
        ("FLOAT", ["0.5", "0.25"], "0.75"),
    ],
)
def test_sums_are_exact(column_type: str, values: list[str], expected: str) -> None:
    assert summed(column_type, values) == ColumnStats(0, expected)


@pytest.mark.parametrize(
    "column_type",
    ["TINYINT", "HUGEINT", "UHUGEINT", "DECIMAL(4,1)", "DECIMAL(38,3)", "DOUBLE", "BIGNUM"],
)
def test_no_values_have_no_sum(column_type: str) -> None:
    assert summed(column_type, []) == ColumnStats(0, None)
    with duckdb.connect() as connection:
        connection.execute(
            f"CREATE TABLE t AS SELECT CAST(NULL AS {column_type}) AS a FROM range(3)"
        )
        reader = DuckDBWarehouse(connection, "memory")
        stats = reader.column_stats(table("t"), reader.columns(table("t")))
    assert stats == {"a": ColumnStats(3, None)}


@pytest.mark.parametrize(
    "column_type",
    ["VARCHAR", "BOOLEAN", "DATE", "INTERVAL", "INTEGER[]", "STRUCT(a DOUBLE)", "BIT", "UUID"],
)
def test_what_is_no_number_has_no_sum(column_type: str) -> None:
    assert sum_of(column_type) is None


# each example makes the table anew
ONE_CONNECTION = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
USUAL = st.decimals(-(10**9), 10**9, places=2).map(float)
EDGES = st.sampled_from(
    [
        sign * math.ldexp(m, e)
        for sign in (1, -1)
        for e in (-47, -7, 33, 73)
        for m in (1, 1 - 2**-53)
    ]
    + [0.0, SMALLEST, LARGEST, -LARGEST]
)


@ONE_CONNECTION
@given(st.lists(st.one_of(FINITE, USUAL, EDGES), min_size=1, max_size=60), st.randoms())
def test_float_sums_are_rounded_once_whatever_the_order(
    connection: duckdb.DuckDBPyConnection, values: list[float], shuffler: random.Random
) -> None:
    exact = sum(map(Fraction, values))
    try:
        nearest = exact.numerator / exact.denominator
    except OverflowError:
        nearest = math.inf if exact > 0 else -math.inf
    shuffler.shuffle(values)
    connection.execute("CREATE OR REPLACE TABLE t AS SELECT unnest(?::DOUBLE[]) AS a", [values])
    reader = DuckDBWarehouse(connection, "memory")
    total = reader.column_stats(table("t"), reader.columns(table("t")))["a"].sum
    assert total is not None
    assert float(total) == nearest
    if math.isfinite(nearest):
        assert Decimal(total) == Decimal(repr(nearest))
        assert "e" not in total.lower()


@ONE_CONNECTION
@given(
    st.lists(st.decimals(-(10**27), 10**27, places=10, allow_nan=False), min_size=1, max_size=40)
)
def test_wide_decimal_sums_are_exact(
    connection: duckdb.DuckDBPyConnection, values: list[Decimal]
) -> None:
    connection.execute(
        "CREATE OR REPLACE TABLE t AS SELECT unnest(?)::DECIMAL(38,10) AS a",
        [[f"{value:f}" for value in values]],
    )
    reader = DuckDBWarehouse(connection, "memory")
    total = reader.column_stats(table("t"), reader.columns(table("t")))["a"].sum
    assert Fraction(total or "") == sum(map(Fraction, values))
