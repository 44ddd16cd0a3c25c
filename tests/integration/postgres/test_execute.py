"""Statements on a branch, one after the other, as an agent would run them."""

from __future__ import annotations

import pytest

from proctor_grader.errors import WarehouseError
from proctor_grader.warehouse.base import StatementResult
from proctor_grader.warehouse.postgres import execute
from tests.integration.postgres.place import Place, Standing


def test_results_of_every_kind_of_statement(place: Place) -> None:
    branch = place.create()
    results = list(
        execute(
            branch.agent_dsn,
            [
                "CREATE TABLE t (a integer, b text)",
                "INSERT INTO t VALUES (1, NULL), (2, ''), (3, 'é')",
                "UPDATE t SET a = a WHERE a > 1",
                "SELECT * FROM t ORDER BY a",
                "INSERT INTO t VALUES (4, 'x') RETURNING a",
                "SELECT * FROM t WHERE false",
                "",
                "SELECT 1 AS a; SELECT 2 AS b",
                "EXPLAIN SELECT 1",
                "DO $$ BEGIN RAISE NOTICE 'x'; END $$",
            ],
        )
    )
    assert results[:8] == [
        StatementResult(),
        StatementResult(row_count=3),
        StatementResult(row_count=2),
        StatementResult(("a", "b"), (("1", None), ("2", ""), ("3", "é")), 3),
        StatementResult(("a",), (("4",),), 1),
        StatementResult(("a", "b"), (), 0),
        StatementResult(),
        StatementResult(("b",), (("2",),), 1),
    ]
    assert results[8].columns == ("QUERY PLAN",)
    assert results[9].error == ""
    place.adapter.drop(place.name)


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        pytest.param("SELEC 1", 'syntax error at or near "SELEC"', id="syntax"),
        pytest.param("SELECT 1/0", "division by zero", id="at-run-time"),
        pytest.param(
            "SELECT a, 1/(3-a) FROM generate_series(1, 9) a", "division", id="in-mid-result"
        ),
        pytest.param("SELECT 1; SELECT 1/0", "division by zero", id="second-of-two"),
        pytest.param("COPY (SELECT 1) TO STDOUT", "COPY from or to the client", id="copy-out"),
        pytest.param("COPY t FROM STDIN", "COPY from or to the client", id="copy-in"),
        pytest.param("SELECT '\x00'", "NUL", id="nul"),
        pytest.param("SELECT '\ud800'", "", id="half-a-character"),
    ],
)
def test_a_failed_statement_leaves_the_session_usable(
    standing: Standing, statement: str, error: str
) -> None:
    made = "CREATE TEMP TABLE t (a integer)"
    _, failed, after = execute(standing.branch.agent_dsn, [made, statement, "SELECT 1 AS one"])
    assert error in failed.error
    assert not error or failed.rows == ()
    assert after == StatementResult(("one",), (("1",),), 1)


def test_statements_share_a_session_and_are_committed_one_by_one(place: Place) -> None:
    branch = place.create()
    results = execute(
        branch.agent_dsn,
        [
            "CREATE TEMP TABLE t (a integer)",
            "SELECT count(*) FROM t",
            "CREATE TABLE kept (a integer)",
        ],
    )
    assert [next(results).error for _ in range(3)] == ["", "", ""]
    with place.session(branch.agent_dsn) as session:
        assert session.execute("SELECT count(*) FROM kept").fetchone() == (0,)
    results.close()  # type: ignore[attr-defined]  # a generator, as every engine's
    place.adapter.drop(place.name)


def test_a_caller_that_stops_asking_stops_the_rest(place: Place) -> None:
    branch = place.create()
    results = execute(branch.agent_dsn, ["SELECT 1", "CREATE TABLE t (a integer)"])
    next(results)
    results.close()  # type: ignore[attr-defined]  # a generator, as every engine's
    with place.adapter.open_reader(branch) as reader:
        assert reader.relations() == ()
    place.adapter.drop(place.name)


def test_very_many_rows_are_counted_and_not_held(place: Place) -> None:
    branch = place.create()
    (result,) = execute(
        branch.agent_dsn, ["SELECT repeat('x', 50) FROM generate_series(1, 300000)"]
    )
    assert (result.row_count, len(result.rows)) == (300_000, 100)
    place.adapter.drop(place.name)


def test_a_lost_connection_is_no_result(place: Place) -> None:
    branch = place.create()
    with pytest.raises(WarehouseError):
        list(
            execute(branch.agent_dsn, ["SELECT pg_terminate_backend(pg_backend_pid())", "SELECT 1"])
        )
    place.adapter.drop(place.name)


def test_a_fenced_branch_lets_nobody_in_and_tells_no_password(place: Place) -> None:
    branch = place.create()
    place.adapter.fence(place.name)
    with pytest.raises(WarehouseError, match="not permitted to log in") as caught:
        list(execute(branch.agent_dsn, ["SELECT 1"]))
    assert not any(secret in str(caught.value) for secret in branch.secrets)
    place.adapter.drop(place.name)
