"""One line of words about a result."""

from __future__ import annotations

from decimal import Decimal

import pytest

from proctor_grader.model.result import Cause, ItemResult, UnitResult, Verdict
from proctor_grader.report.unit_text import (
    explanation,
    item_line,
    seconds_of,
    tolerance_text,
)
from tests.make.report import make_result, number_item


@pytest.mark.parametrize(
    ("item", "line"),
    [
        pytest.param(
            number_item("It is 120.", "120"),
            "answer: got 120, expected 100 (±15 %)",
            id="a-number-off",
        ),
        pytest.param(
            number_item("", None, value="-12.50", tolerance="0"),
            "answer: got no number, expected -12.5 (exact)",
            id="no-number",
        ),
        pytest.param(ItemResult("grain", False, "2 rows"), "grain: 2 rows", id="with-detail"),
        pytest.param(ItemResult("x", True), "x: passed", id="passed-without-detail"),
        pytest.param(ItemResult("", None), "not judged", id="without-a-name"),
        pytest.param(
            ItemResult("x", False, "", {"value": "abc", "tolerance": 1}), "x: failed", id="no-value"
        ),
    ],
)
def test_an_item_on_one_line(item: ItemResult, line: str) -> None:
    assert item_line(item) == line


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        pytest.param(make_result("t"), "", id="passed-needs-none"),
        pytest.param(
            make_result("t", Verdict.ERROR, cause=Cause.INFRA, message="branch: no room"),
            "branch: no room",
            id="the-harness-speaks-first",
        ),
        pytest.param(
            make_result(
                "t",
                Verdict.OFF,
                items=tuple(number_item("120", "120", name=name) for name in "abcd"),
            ),
            "a: got 120, expected 100 (±15 %); b: got 120, expected 100 (±15 %); and 2 more",
            id="items-that-failed",
        ),
        pytest.param(
            make_result("t", Verdict.ERROR, cause=Cause.INFRA, items=()),
            "caused by the infrastructure",
            id="only-a-cause",
        ),
        pytest.param(make_result("t", Verdict.CANCELLED, items=()), "", id="nothing-known"),
    ],
)
def test_why_a_unit_did_not_pass(result: UnitResult, expected: str) -> None:
    assert explanation(result) == expected


def test_tolerances_are_percentages() -> None:
    gold = Decimal(7)
    texts = [tolerance_text(gold, Decimal(text)) for text in ("0.15", "0", "1", "0.0000001")]
    assert texts == ["±15 %", "exact", "±100 %", "±0.00001 %"]


def test_a_gold_of_zero_takes_no_percentage() -> None:
    assert tolerance_text(Decimal(0), Decimal("0.15")) == "±0.000000001"


def test_seconds_are_those_of_the_stages() -> None:
    assert seconds_of(make_result("t")) == pytest.approx(12.714)
