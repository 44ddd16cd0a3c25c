"""Numeric checks: spec/numbers.md section 9 by its case file, and what it cannot say."""

from __future__ import annotations

import decimal
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor_grader.criteria.number import grade_checks
from proctor_grader.model.criterion import NumberCriterion
from proctor_grader.model.result import Verdict

CASES = Path(__file__).parents[2] / "cases" / "checks.json"


def cases() -> list[Any]:
    documents = json.loads(CASES.read_text(encoding="utf-8"), parse_float=Decimal)
    return [pytest.param(case, id=case["id"]) for case in documents]


@pytest.mark.parametrize("case", cases())
def test_grades_the_case(case: dict[str, Any]) -> None:
    graded = grade_checks(case["answer"], case["checks"])
    assert graded.verdict == case["verdict"], case["why"]
    assert [result.passed for result in graded.results] == case["passed"], case["why"]
    given_checks = [(check["name"], check["value"], check["tolerance"]) for check in case["checks"]]
    assert [(r.name, r.value, r.tolerance) for r in graded.results] == given_checks
    if "closest" in case:
        expected = [near and (Decimal(near["value"]), near["text"]) for near in case["closest"]]
        closest = [r.closest and (r.closest.value, r.closest.text) for r in graded.results]
        assert closest == expected, case["why"]


def check(value: object, tolerance: object = 0, name: object = "answer") -> dict[str, object]:
    return {"name": name, "value": value, "tolerance": tolerance}


def test_criteria_and_mappings_are_graded_alike() -> None:
    criterion = NumberCriterion("total", Decimal("5"), Decimal("0.1"))
    by_criterion = grade_checks("5.5", [criterion])
    assert by_criterion == grade_checks("5.5", [criterion.to_json()])
    assert by_criterion.verdict is Verdict.CORRECT


def test_absent_keys_have_the_manifests_defaults() -> None:
    (result,) = grade_checks("115", [{"value": 100}]).results
    assert (result.name, result.tolerance, result.passed) == ("answer", Decimal("0.15"), True)


def test_blank_name_is_the_default_name() -> None:
    assert grade_checks("1", [check(1, name=" ")]).results[0].name == "answer"


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(1250, id="int"),
        pytest.param(Decimal("1.25E3"), id="decimal"),
        pytest.param(" 1250.0 ", id="text"),
        pytest.param("+1.25e3", id="text-with-exponent"),
        pytest.param(1250.0, id="float-by-its-literal"),
    ],
)
def test_value_may_be_of_any_exact_type(value: object) -> None:
    (result,) = grade_checks("1,250", [check(value)]).results
    assert result.passed
    assert isinstance(result.value, Decimal)


def test_float_tolerance_counts_as_its_literal() -> None:
    assert grade_checks("414,710.70", [check(360618, 0.15)]).verdict is Verdict.CORRECT


@pytest.mark.parametrize(
    ("given_check", "message"),
    [
        (check(Decimal("NaN"), name="a"), "checks[1].value: check 'a' has no number"),
        (check(Decimal("sNaN")), "checks[1].value: check 'answer' has no number"),
        (check(Decimal("-Infinity")), "checks[1].value: check 'answer' has no number"),
        (check(float("inf")), "checks[1].value: check 'answer' has no number"),
        (check(None), "checks[1].value: check 'answer' has no number"),
        (check(True), "checks[1].value: check 'answer' has no number"),
        (check([1]), "checks[1].value: check 'answer' has no number"),
        (check("12.5B"), "checks[1].value: check 'answer' has no number"),
        (check("１"), "checks[1].value: check 'answer' has no number"),
        (check("9" * 500), "checks[1].value: check 'answer' has a number out of range"),
        (check(10**5000), "checks[1].value: check 'answer' has a number out of range"),
        (check(Decimal("1E-309")), "checks[1].value: check 'answer' has a number out of range"),
        (check(1, "-0.1", "b"), "checks[1].tolerance: check 'b' has a negative tolerance"),
        (check(1, Decimal("NaN")), "checks[1].tolerance: check 'answer' has no number"),
        (check(1, None), "checks[1].tolerance: check 'answer' has no number"),
        ({"name": "c"}, "checks[1].value: check 'c' has no number"),
        (check(1, name=7), "checks[1].name: not a name"),
        (12, "checks[1]: not a check"),
    ],
)
def test_bad_check_is_refused_by_name_and_key(given_check: Any, message: str) -> None:
    with pytest.raises(ValueError, match="expected") as refused:
        grade_checks("1", [check(1), given_check])
    assert str(refused.value).startswith(message)
    assert len(str(refused.value)) < 400


def test_closest_of_equals_is_the_first_in_the_text() -> None:
    answer = "110, 90.0, 110.0, 90"
    near = grade_checks(answer, [check(100), check(91), check(109)]).results
    assert [result.closest and result.closest.start for result in near] == [0, 5, 0]


def test_differences_beyond_every_default_precision_decide() -> None:
    tiny = "0." + "0" * 90 + "1"
    graded = grade_checks(f"{tiny} and {'9' * 100}", [check("1e307"), check("1e-308"), check(0)])
    assert [result.closest and result.closest.text for result in graded.results] == [
        "9" * 100,
        tiny,
        tiny,
    ]


def test_ambient_decimal_context_changes_nothing() -> None:
    checks = [check(360618, "0.15"), check("123456789.123456789", 0)]
    expected = grade_checks("414,710.70 and 123456789.123456789", checks)
    trapped = decimal.Context(prec=1, Emax=1, Emin=-1, traps=list(decimal.Context().flags))
    with decimal.localcontext(trapped):
        assert grade_checks("414,710.70 and 123456789.123456789", checks) == expected
    assert expected.verdict is Verdict.CORRECT


def test_truncated_answer_is_graded_on_what_was_read() -> None:
    graded = grade_checks("7 " * 10_000 + "8", [check(7), check(8)])
    assert graded.truncated
    assert graded.verdict is Verdict.PARTIAL
    assert len(graded.numbers) == 10_000


def test_shows_what_was_skipped() -> None:
    graded = grade_checks("CLM-500 has 7", [check(7)])
    assert [token.text for token in graded.skipped] == ["CLM-500"]
    assert [number.text for number in graded.numbers] == ["7"]


plain = st.decimals(-1000, 1000, places=2)


@given(st.lists(plain, max_size=12), plain, st.decimals(0, 3, places=2))
def test_agrees_with_the_definition(
    numbers: list[Decimal], value: Decimal, tolerance: Decimal
) -> None:
    """Sorting and bisecting give what comparing every number with the check would give."""
    answer = "\n".join(f"x = {number}" for number in numbers)
    (result,) = grade_checks(answer, [check(value, tolerance)]).results
    margin = Decimal("1e-9") if value == 0 else tolerance * abs(value)
    assert result.passed == any(abs(number - value) <= margin for number in numbers)
    nearest = min(numbers, key=lambda number: abs(number - value), default=None)
    assert (result.closest and result.closest.value) == nearest
