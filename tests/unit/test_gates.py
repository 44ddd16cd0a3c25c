"""Counting, accuracy and gates: design.md section 1, cases of datasets.md section 11."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor_grader.errors import UserError
from proctor_grader.gates import (
    GateSpec,
    TallyBuilder,
    accuracy_of,
    add,
    count,
    evaluate_gates,
    gradable,
    parse_gate,
    parse_gates,
    passed,
)
from proctor_grader.model.result import Cause, UnitResult, Verdict
from proctor_grader.model.run import GateResult, Totals
from proctor_grader.model.task import TaskId
from proctor_grader.model.unit import unit_id

CASES = json.loads(
    (Path(__file__).parent.parent / "cases/datasets/gate.json").read_text(encoding="utf-8"),
    parse_float=Decimal,
)
V = Verdict
ENDS = [(verdict, cause) for verdict in Verdict for cause in (None, *Cause)]


def result(
    verdict: Verdict, cause: Cause | None = None, *, variant: str = "default", number: int = 1
) -> UnitResult:
    task = TaskId(f"t{number}")
    return UnitResult(unit_id(task, variant), task, variant, 1, 1, verdict, cause)


def totals_of(*ends: Verdict | tuple[Verdict, Cause | None]) -> Totals:
    totals = Totals()
    for end in ends:
        verdict, cause = end if isinstance(end, tuple) else (end, None)
        totals = add(totals, verdict, cause)
    return totals


def gates_by_name(spec: GateSpec, totals: dict[str, Totals]) -> dict[str, GateResult]:
    return {gate.name: gate for gate in evaluate_gates(spec, totals)}


class TestCounting:
    @pytest.mark.parametrize(
        ("verdict", "cause", "expected"),
        [
            pytest.param(V.CORRECT, None, Totals(1, passed=1), id="correct-is-passed"),
            pytest.param(V.SUCCESS, None, Totals(1, passed=1), id="success-is-passed"),
            pytest.param(V.PARTIAL, None, Totals(1, failed=1), id="partial-is-failed"),
            pytest.param(V.OFF, None, Totals(1, failed=1), id="off-is-failed"),
            pytest.param(V.UNKNOWN, None, Totals(1, failed=1), id="unknown-is-failed"),
            pytest.param(V.TIMEOUT, Cause.AGENT, Totals(1, failed=1), id="time-out-is-failed"),
            pytest.param(V.ERROR, Cause.AGENT, Totals(1, failed=1), id="agent-crash-is-failed"),
            pytest.param(
                V.ERROR, Cause.INFRA, Totals(1, error=1, infra=1), id="lost-node-is-an-infra-error"
            ),
            pytest.param(V.SETUP_FAILED, Cause.SET, Totals(1, error=1), id="setup-is-an-error"),
            pytest.param(
                V.UNGRADED,
                Cause.SET,
                Totals(1, ungraded=1, ungraded_set=1),
                id="task-without-checks-has-nothing-to-grade",
            ),
            pytest.param(
                V.NOT_GRADED,
                Cause.GRADER,
                Totals(1, ungraded=1, ungraded_grader=1),
                id="lost-grader-counts-apart",
            ),
            pytest.param(V.CANCELLED, None, Totals(1, cancelled=1), id="cancelled"),
        ],
    )
    def test_a_unit_counts_by_outcome_and_cause(
        self, verdict: Verdict, cause: Cause | None, expected: Totals
    ) -> None:
        assert add(Totals(), verdict, cause) == expected

    def test_variants_count_apart_in_the_order_they_appear(self) -> None:
        results = [
            result(V.OFF, variant="sonnet"),
            result(V.CORRECT, variant="haiku"),
            result(V.CORRECT, variant="sonnet", number=2),
        ]
        totals = count(results)
        assert list(totals) == ["sonnet", "haiku"]
        assert totals["sonnet"] == Totals(2, passed=1, failed=1)
        assert totals["haiku"] == Totals(1, passed=1)

    def test_results_are_read_once_and_not_kept(self) -> None:
        def stream() -> Iterator[UnitResult]:
            for number in range(50):
                yield result(V.CORRECT, number=number)

        assert count(stream())["default"] == Totals(50, passed=50)

    @given(st.lists(st.tuples(st.sampled_from(["a", "b"]), st.sampled_from(ENDS))))
    def test_the_builder_counts_as_adding_one_by_one_does(
        self, ends: list[tuple[str, tuple[Verdict, Cause | None]]]
    ) -> None:
        tally = TallyBuilder()
        expected: dict[str, Totals] = {}
        for variant, (verdict, cause) in ends:
            tally.add(variant, verdict, cause)
            expected[variant] = add(expected.get(variant, Totals()), verdict, cause)
        assert tally.totals() == expected
        for totals in expected.values():
            assert sum(totals.outcomes().values()) == totals.total


class TestAccuracy:
    @pytest.mark.parametrize(
        ("passed_units", "failed_units", "expected"),
        [
            pytest.param(12, 4, "75.00", id="two-decimals-always"),
            pytest.param(2, 1, "66.67", id="two-thirds-rounds-up"),
            pytest.param(1, 2, "33.33", id="one-third-rounds-down"),
            pytest.param(1, 799, "0.13", id="a-half-rounds-up"),
            pytest.param(3, 797, "0.38", id="a-half-rounds-up-not-to-even"),
            pytest.param(0, 3, "0.00", id="none"),
            pytest.param(3, 0, "100.00", id="all"),
            pytest.param(199_999, 1, "100.00", id="as-shown-may-be-100-though-one-failed"),
        ],
    )
    def test_is_exact_and_half_up(
        self, passed_units: int, failed_units: int, expected: str
    ) -> None:
        totals = Totals(passed_units + failed_units, passed=passed_units, failed=failed_units)
        assert str(accuracy_of(totals).value) == expected

    def test_error_cancelled_and_grader_failures_stay_in_the_denominator(self) -> None:
        totals = totals_of(
            V.CORRECT,
            V.CANCELLED,
            (V.ERROR, Cause.INFRA),
            (V.UNGRADED, Cause.GRADER),
            (V.UNGRADED, Cause.SET),
        )
        assert gradable(totals) == 4
        assert accuracy_of(totals).value == Decimal("25.00")

    def test_measured_leaves_out_what_the_infrastructure_lost(self) -> None:
        totals = totals_of(V.CORRECT, V.OFF, (V.ERROR, Cause.INFRA), (V.SETUP_FAILED, Cause.INFRA))
        assert accuracy_of(totals).value == Decimal("25.00")
        assert accuracy_of(totals).measured == Decimal("50.00")

    def test_is_none_where_there_is_nothing_to_grade(self) -> None:
        assert accuracy_of(totals_of((V.UNGRADED, Cause.SET))).value is None
        assert accuracy_of(Totals()).value is None
        assert accuracy_of(totals_of((V.ERROR, Cause.INFRA))).measured is None


class TestParsing:
    def test_names_and_values_become_a_spec(self) -> None:
        spec = parse_gates(["minAccuracy=82.5", "maxErrors = 2", "maxUngraded=1"])
        assert spec == GateSpec(Decimal("82.5"), max_errors=2, max_ungraded=1)

    def test_nothing_given_is_the_default(self) -> None:
        assert parse_gates([]) == GateSpec(None, 0, 0)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            pytest.param(
                "minAcuracy=80",
                "--gate minAcuracy=80: unknown gate 'minAcuracy' (did you mean 'minAccuracy'?) "
                "(expected one of minAccuracy, maxErrors, maxUngraded)",
                id="a-near-name-is-suggested",
            ),
            pytest.param(
                "zzz=1",
                "--gate zzz=1: unknown gate 'zzz' "
                "(expected one of minAccuracy, maxErrors, maxUngraded)",
                id="a-far-name-is-not",
            ),
            pytest.param(
                "minAccuracy",
                "--gate minAccuracy: gate has no value (expected minAccuracy=VALUE)",
                id="without-a-value",
            ),
            *(
                pytest.param(
                    f"minAccuracy={value}",
                    f"--gate minAccuracy={value}: minAccuracy is a percentage "
                    f"(expected 0 to 100, found '{value}')",
                    id=f"percentage-{name}",
                )
                for value, name in [
                    ("80%", "with-a-sign"),
                    ("nan", "not-a-number"),
                    ("Infinity", "infinite"),
                    ("-1", "negative"),
                    ("100.01", "above-100"),
                    ("1_0", "with-an-underscore"),
                    ("٨٠", "in-other-digits"),
                    ("", "empty"),
                ]
            ),
            *(
                pytest.param(
                    f"maxErrors={value}",
                    f"--gate maxErrors={value}: maxErrors is a number of units "
                    f"(expected 0 or more, found '{value}')",
                    id=f"limit-{name}",
                )
                for value, name in [
                    ("-1", "negative"),
                    ("1.5", "broken"),
                    ("²", "superscript"),
                    ("", "empty"),
                    ("9999999999", "absurd"),
                ]
            ),
        ],
    )
    def test_a_wrong_gate_says_what_was_expected(self, text: str, message: str) -> None:
        with pytest.raises(UserError) as caught:
            parse_gate(text)
        assert str(caught.value) == message

    def test_the_same_gate_twice_is_refused(self) -> None:
        with pytest.raises(UserError, match="gate 'maxErrors' is given twice"):
            parse_gates(["maxErrors=1", "maxErrors=2"])


class TestGates:
    def test_without_a_minimum_every_unit_to_grade_must_pass(self) -> None:
        gates = gates_by_name(GateSpec(), {"default": totals_of(V.CORRECT, V.OFF)})
        assert gates["allPassed"] == GateResult("allPassed", "every unit to grade", "1 of 2", False)
        assert "minAccuracy" not in gates

    @pytest.mark.parametrize(
        ("least", "holds"),
        [
            pytest.param("66.67", True, id="compared-as-shown"),
            pytest.param("66.68", False, id="just-missed"),
            pytest.param("0", True, id="zero-asks-nothing"),
        ],
    )
    def test_a_minimum_is_compared_with_the_accuracy_as_shown(
        self, least: str, holds: bool
    ) -> None:
        totals = {"default": totals_of(V.CORRECT, V.CORRECT, V.OFF)}
        gate = gates_by_name(GateSpec(Decimal(least)), totals)["minAccuracy"]
        assert gate == GateResult("minAccuracy", f">= {least}", "66.67", holds)

    def test_a_minimum_is_shown_as_a_plain_decimal(self) -> None:
        wants = [
            gates_by_name(GateSpec(Decimal(text)), {})["minAccuracy"].want
            for text in ("8E+1", "80.50", "0E+2")
        ]
        assert wants == [">= 80", ">= 80.5", ">= 0"]

    def test_nothing_to_grade_is_not_at_least_a_minimum(self) -> None:
        totals = {"default": totals_of((V.UNGRADED, Cause.SET))}
        gate = gates_by_name(GateSpec(Decimal(0)), totals)["minAccuracy"]
        assert (gate.got, gate.passed) == ("n/a", False)

    def test_nothing_to_grade_is_no_fault_without_a_minimum(self) -> None:
        totals = {"default": totals_of(V.CORRECT, (V.UNGRADED, Cause.SET))}
        assert passed(evaluate_gates(GateSpec(), totals))

    def test_every_variant_must_hold_and_the_worst_is_shown(self) -> None:
        totals = {
            "sonnet": totals_of(V.CORRECT, V.CORRECT),
            "haiku": totals_of(V.CORRECT, (V.ERROR, Cause.INFRA)),
        }
        gates = gates_by_name(GateSpec(Decimal(60)), totals)
        assert (gates["minAccuracy"].got, gates["minAccuracy"].passed) == ("50.00", False)
        assert (gates["maxErrors"].got, gates["maxErrors"].passed) == ("1", False)

    def test_one_variant_without_anything_to_grade_fails_the_minimum(self) -> None:
        totals = {"a": totals_of(V.CORRECT), "b": totals_of((V.UNGRADED, Cause.SET))}
        gate = gates_by_name(GateSpec(Decimal(50)), totals)["minAccuracy"]
        assert (gate.got, gate.passed) == ("n/a", False)

    def test_limits_allow_as_many_as_they_say(self) -> None:
        totals = {
            "default": totals_of(V.CORRECT, (V.ERROR, Cause.INFRA), (V.NOT_GRADED, Cause.GRADER))
        }
        strict = gates_by_name(GateSpec(Decimal(0)), totals)
        assert strict["maxErrors"] == GateResult("maxErrors", "<= 0", "1", False)
        assert strict["maxUngraded"] == GateResult("maxUngraded", "<= 0", "1", False)
        lenient = evaluate_gates(GateSpec(Decimal(0), max_errors=1, max_ungraded=1), totals)
        assert passed(lenient)

    def test_an_allowed_error_still_did_not_pass(self) -> None:
        totals = {"default": totals_of(V.CORRECT, (V.ERROR, Cause.INFRA))}
        assert not passed(evaluate_gates(GateSpec(max_errors=1), totals))

    @pytest.mark.parametrize(
        "end",
        [
            pytest.param((V.CANCELLED, None), id="cancelled"),
            pytest.param((V.TIMEOUT, Cause.AGENT), id="timed-out"),
            pytest.param((V.UNGRADED, Cause.GRADER), id="lost-grader"),
            pytest.param((V.SETUP_FAILED, Cause.SET), id="broken-setup"),
        ],
    )
    def test_whatever_could_have_passed_and_did_not_fails_the_run(
        self, end: tuple[Verdict, Cause | None]
    ) -> None:
        totals = {"default": totals_of(V.CORRECT, end)}
        assert not passed(evaluate_gates(GateSpec(), totals))


def expanded(variant: dict[str, Any]) -> Totals:
    """The units of a case, rows of suites included, counted one by one."""
    ends: list[tuple[Verdict, Cause | None]] = [
        (Verdict(status), None if cause is None else Cause(cause))
        for status, cause in variant["plain"]
    ]
    for suite in variant["suites"]:
        nothing = suite["rows_total"] - suite["rows_to_grade"]
        ends += [(V.SUCCESS, None)] * suite["rows_passed"]
        ends += [(V.FAILURE, None)] * suite["rows_failed"]
        ends += [(V.NOT_GRADED, Cause.SET)] * nothing
        ends += [(V.NOT_GRADED, Cause.GRADER)] * (suite["rows_ungraded"] - nothing)
        ends += [(V.ERROR, Cause.INFRA)] * suite["rows_error"]
        ends += [(V.CANCELLED, None)] * suite["rows_cancelled"]
    return totals_of(*ends)


def spec_of(gates: dict[str, Any]) -> GateSpec:
    least = gates.get("minAccuracy")
    return GateSpec(
        min_accuracy=None if least is None else Decimal(least),
        max_errors=gates.get("maxErrors", 0),
        max_ungraded=gates.get("maxUngraded", 0),
    )


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in CASES])
def test_case(case: dict[str, Any]) -> None:
    """A run whose rows all count one by one: what the cases call `rowsAndSuites`."""
    totals = {str(index): expanded(variant) for index, variant in enumerate(case["variants"])}
    found = [accuracy_of(each).value for each in totals.values()]
    known = [value for value in found if value is not None]
    assert (min(known) if known else None) == case["expect"]["accuracy"]
    suites_hold = all(suite["passed"] for each in case["variants"] for suite in each["suites"])
    if case["expect"]["rowsAndSuites"] in {0, 1}:
        holds = passed(evaluate_gates(spec_of(case["gates"]), totals)) and suites_hold
        assert holds is (case["expect"]["rowsAndSuites"] == 0)
