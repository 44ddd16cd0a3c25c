from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor_grader.criteria.rebuilt_table import grade_rebuilt_table, row_count_passes
from proctor_grader.errors import QueryError, WarehouseError
from proctor_grader.jsontext import dump_json
from proctor_grader.model.criterion import ModelExpectation, ModelRebuiltCriterion
from proctor_grader.model.result import ItemResult, Judgement, Verdict
from proctor_grader.warehouse.duckdb import DuckDBWarehouse

TABLE = (
    "CREATE SCHEMA marts",
    "CREATE TABLE marts.t (id INTEGER, region VARCHAR, amt DOUBLE)",
    "INSERT INTO marts.t VALUES (1, 'n', 1), (2, 'n', 2), (3, 's', 3)",
)


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as opened:
        for statement in TABLE:
            opened.execute(statement)
        yield opened


def judge(
    connection: duckdb.DuckDBPyConnection,
    model: str = "marts.t",
    *,
    rows: int | None = None,
    tolerance: str | None = None,
    grain: tuple[str, ...] | None = None,
    columns: tuple[str, ...] | None = None,
) -> Judgement:
    expect = ModelExpectation(
        rows, None if tolerance is None else Decimal(tolerance), grain, columns
    )
    criterion = ModelRebuiltCriterion(model, expect)
    judgement = grade_rebuilt_table(criterion, DuckDBWarehouse(connection, "memory"))
    dump_json([item.to_json() for item in judgement.items])
    dump_json(dict(judgement.details))
    assert judgement.cause is None
    return judgement


def item(judgement: Judgement, name: str) -> ItemResult:
    (found,) = [each for each in judgement.items if each.name == name]
    return found


def test_items_are_in_the_formats_order(connection: duckdb.DuckDBPyConnection) -> None:
    judgement = judge(connection, rows=3, grain=("id",), columns=("amt",))
    assert [each.name for each in judgement.items] == ["exists", "row_count", "grain", "columns"]
    assert judgement.verdict is Verdict.CORRECT
    assert judgement.details == {
        "model": "marts.t",
        "relation": {
            "schema": "marts",
            "name": "t",
            "kind": "table",
            "owner": "",
            "is_computed": False,
        },
    }


def test_a_missing_table_ends_it(connection: duckdb.DuckDBPyConnection) -> None:
    judgement = judge(connection, "marts.u", rows=3, grain=("id",))
    assert judgement.verdict is Verdict.OFF
    assert judgement.items == (ItemResult("exists", False, "there is no table or view 'marts.u'"),)


def test_an_ambiguous_name_lists_what_it_could_be(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("CREATE SCHEMA raw")
    connection.execute("CREATE TABLE raw.t (id INTEGER)")
    judgement = judge(connection, "t", rows=3)
    assert judgement.verdict is Verdict.OFF
    (only,) = judgement.items
    assert only.detail == "'t' is ambiguous: it could be marts.t, raw.t"
    assert only.data == {"candidates": ["marts.t", "raw.t"]}


def test_a_view_counts_and_is_flagged(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("CREATE VIEW marts.v AS SELECT * FROM marts.t")
    judgement = judge(connection, "marts.v", rows=3)
    assert judgement.verdict is Verdict.CORRECT
    exists = item(judgement, "exists")
    assert exists.detail == "marts.v is a view; its rows are computed whenever they are asked for"
    assert exists.data["relation"] == judgement.details["relation"]
    assert judgement.details["relation"]["is_computed"] is True


def test_row_count_tells_both_numbers(connection: duckdb.DuckDBPyConnection) -> None:
    judgement = judge(connection, rows=4)
    assert judgement.verdict is Verdict.OFF
    assert item(judgement, "row_count").detail == "3 rows (expected 4, tolerance 0.01)"
    assert item(judgement, "row_count").data == {
        "actual": 3,
        "expected": 4,
        "tolerance": Decimal("0.01"),
    }


def test_grain_tells_both_counts(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("INSERT INTO marts.t VALUES (NULL, NULL, 4)")
    grain = item(judge(connection, grain=("region",)), "grain")
    assert grain.passed is False
    assert grain.detail == "4 rows, 3 distinct by region, 1 rows with a NULL in it"
    assert grain.data == {"rows": 4, "distinct": 3, "with_null": 1}


@pytest.mark.parametrize(
    ("asked", "passed", "detail"),
    [
        (("ID", "amt"), True, "all there"),
        (("id", "nope", "NIX"), False, "missing: nope, NIX"),
    ],
)
def test_columns(
    connection: duckdb.DuckDBPyConnection, asked: tuple[str, ...], passed: bool, detail: str
) -> None:
    columns = item(judge(connection, columns=asked), "columns")
    assert (columns.passed, columns.detail) == (passed, detail)


def test_a_missing_grain_column_fails_the_item_and_the_next_is_asked(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    judgement = judge(connection, grain=("nope",), columns=("id",))
    assert [(each.name, each.passed) for each in judgement.items] == [
        ("exists", True),
        ("grain", False),
        ("columns", True),
    ]
    assert item(judgement, "grain").detail == "missing: nope"


def test_empty_lists_ask_nothing(connection: duckdb.DuckDBPyConnection) -> None:
    judgement = judge(connection, grain=(), columns=())
    assert [each.name for each in judgement.items] == ["exists"]
    assert judgement.verdict is Verdict.CORRECT


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param({"rows": 3, "columns": ("id",)}, id="row-count-fails-first"),
        pytest.param({"columns": ("id",)}, id="columns-of-a-broken-view-are-not-known"),
        pytest.param({"grain": ("id",)}, id="grain"),
    ],
)
def test_a_broken_view_is_off_with_the_databases_message(
    connection: duckdb.DuckDBPyConnection, asked: dict[str, object]
) -> None:
    connection.execute("CREATE VIEW v AS SELECT * FROM marts.t")
    connection.execute("DROP TABLE marts.t")
    judgement = judge(connection, "v", **asked)  # type: ignore[arg-type]  # a table of arguments
    assert judgement.verdict is Verdict.OFF
    assert [each.name for each in judgement.items] == ["exists", "query"]
    query = item(judgement, "query")
    assert query.passed is False
    assert "does not exist" in query.detail
    assert query.data == {"reason": "QueryFailed"}


def test_items_before_a_failing_query_stay(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("CREATE VIEW v AS SELECT CAST(region AS INTEGER) AS n FROM marts.t")
    judgement = judge(connection, "v", rows=3, grain=("n",), columns=("n",))
    assert [(each.name, each.passed) for each in judgement.items] == [
        ("exists", True),
        ("row_count", True),
        ("query", False),
    ]


def test_a_file_that_cannot_be_read_is_off(connection: duckdb.DuckDBPyConnection) -> None:
    reader = DuckDBWarehouse(connection, "", fault=QueryError("'shop.duckdb' is a pipe"))
    judgement = grade_rebuilt_table(ModelRebuiltCriterion("t", ModelExpectation()), reader)
    assert judgement.verdict is Verdict.OFF
    assert [each.detail for each in judgement.items] == ["'shop.duckdb' is a pipe"]


def test_a_fault_of_ours_is_passed_on(connection: duckdb.DuckDBPyConnection) -> None:
    reader = DuckDBWarehouse(connection, "memory")
    reader.close()
    with pytest.raises(WarehouseError):
        grade_rebuilt_table(ModelRebuiltCriterion("t", ModelExpectation()), reader)


@pytest.mark.parametrize(
    ("actual", "expected", "tolerance", "passes"),
    [
        (1010, 1000, None, True),
        (1011, 1000, None, False),
        (990, 1000, None, True),
        (0, 0, "0.5", True),
        (1, 0, "5", False),
        (749, 700, "0.07", True),
        (750, 700, "0.07", False),
        (9, 9, "0", True),
        (10, 9, "0", False),
        (0, 9, "1", True),
        (10**40 + 1, 10**40, "0.0000000000000000000000000000000000000001", True),
        (10**40 + 2, 10**40, "0.0000000000000000000000000000000000000001", False),
        (5, 3, "1e-308", False),
        (10**9, 1, "1e307", True),
    ],
)
def test_row_count_passes(actual: int, expected: int, tolerance: str | None, passes: bool) -> None:
    given_tolerance = None if tolerance is None else Decimal(tolerance)
    assert row_count_passes(actual, expected, given_tolerance) is passes


@given(
    st.integers(0, 10**6),
    st.integers(1, 10**6),
    st.decimals(0, 3, places=6, allow_nan=False, allow_infinity=False),
)
def test_row_count_is_judged_in_exact_decimals(
    actual: int, expected: int, tolerance: Decimal
) -> None:
    millionths = int(tolerance * 10**6)
    exact = abs(actual - expected) * 10**6 <= millionths * expected
    assert row_count_passes(actual, expected, tolerance) is exact
