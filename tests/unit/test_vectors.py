"""The eval-json format's vectors: one test for each kind of small question."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from proctor_grader.criteria.number import grade_checks
from proctor_grader.criteria.rebuilt_table import grade_rebuilt_table, row_count_passes
from proctor_grader.model.criterion import ModelExpectation, ModelRebuiltCriterion
from proctor_grader.model.unit import branch_name
from proctor_grader.warehouse.base import Column, TableShape
from proctor_grader.warehouse.duckdb.reading import DuckDBWarehouse
from proctor_grader.warehouse.fingerprint import fingerprint_of
from tests.unit.formats.setfolder import read_cases

if TYPE_CHECKING:
    from collections.abc import Iterator

VECTORS = read_cases("eval-json/vectors.json")
ELSEWHERE = {"set_name", "layer", "coverage"}
"""Kinds that are tested beside what they ask for."""
HERE = {"branch_name", "verdict", "row_count", "rebuilt"}
FINGERPRINTS = {"fingerprint_postgresql", "fingerprint_duckdb"}


def of_kind(kind: str) -> list[Any]:
    return [pytest.param(case, id=case["id"]) for case in VECTORS if case["kind"] == kind]


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as opened:
        yield opened


def run_all(connection: duckdb.DuckDBPyConnection, statements: list[str]) -> DuckDBWarehouse:
    for statement in statements:
        connection.execute(statement)
    return DuckDBWarehouse(connection, "memory")


def test_every_kind_has_a_test() -> None:
    assert {case["kind"] for case in VECTORS} == ELSEWHERE | HERE | FINGERPRINTS


@pytest.mark.parametrize("case", of_kind("branch_name"))
def test_branch_name(case: dict[str, Any]) -> None:
    assert branch_name(**case["input"]) == case["expect"]


@pytest.mark.parametrize("case", of_kind("verdict"))
def test_verdict(case: dict[str, Any]) -> None:
    numbers = case["input"]["numbers"]
    checks = [
        {key: Decimal(value) for key, value in check.items()} for check in case["input"]["checks"]
    ]
    result = grade_checks("\n".join(numbers), checks)
    assert [numeral.value for numeral in result.numbers] == [Decimal(number) for number in numbers]
    assert result.verdict == case["expect"]


@pytest.mark.parametrize("case", of_kind("row_count"))
def test_row_count(case: dict[str, Any]) -> None:
    given = case["input"]
    passed = row_count_passes(given["got"], given["expected"], Decimal(given["tolerance"]))
    assert passed is case["expect"]


@pytest.mark.parametrize("case", of_kind("rebuilt"))
def test_rebuilt(case: dict[str, Any], connection: duckdb.DuckDBPyConnection) -> None:
    warehouse = run_all(connection, case["input"]["sql"])
    expect = dict(case["input"]["expect"])
    tolerance = expect.pop("row_count_tolerance", None)
    for key in ("grain", "columns"):
        if key in expect:
            expect[key] = tuple(expect[key])
    expectation = ModelExpectation(
        **expect, row_count_tolerance=None if tolerance is None else Decimal(tolerance)
    )
    judgement = grade_rebuilt_table(
        ModelRebuiltCriterion(case["input"]["model"], expectation), warehouse
    )
    passed = {item.name: item.passed for item in judgement.items if item.name != "query"}
    assert judgement.verdict == case["expect"]["verdict"]
    assert passed == case["expect"]["results"]
    assert list(passed) == [
        name for name in ("exists", "row_count", "grain", "columns") if name in passed
    ]


@pytest.mark.parametrize("case", of_kind("fingerprint_postgresql"))
def test_fingerprint_of_postgresql_tables(case: dict[str, Any]) -> None:
    shapes = [
        TableShape(
            schema=table["schema"],
            name=table["table"],
            row_count=table["rows"],
            columns=tuple(
                Column(ordinal, name, kind, nullable == "YES")
                for ordinal, name, kind, nullable in table["columns"]
            ),
        )
        for table in case["input"]["tables"]
    ]
    assert fingerprint_of(shapes, "postgres") == case["expect"]


@pytest.mark.parametrize("case", of_kind("fingerprint_duckdb"))
def test_fingerprint_of_a_duckdb_database(
    case: dict[str, Any], connection: duckdb.DuckDBPyConnection
) -> None:
    warehouse = run_all(connection, case["input"]["sql"])
    assert fingerprint_of(warehouse.shapes(), warehouse.engine) == case["expect"]
