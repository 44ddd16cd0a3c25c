"""What the first page says about a run."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from proctor_grader.gates import GateSpec
from proctor_grader.model.result import Cause, Outcome, Verdict
from proctor_grader.model.run import Fingerprint, RunEnd
from proctor_grader.report.summary import (
    Headline,
    LayerCoverage,
    StageClock,
    facts_of,
    headline_of,
    layers_of,
    total_of,
)
from tests.make.example_run import COVERAGE
from tests.make.report import make_record, make_result, stage

GOOD = [make_result("a")]
BAD = [make_result("a"), make_result("b", Verdict.OFF)]


class TestHeadline:
    def test_a_passed_run(self) -> None:
        headline = headline_of(make_record(GOOD))
        assert headline == Headline(Outcome.PASSED, "Passed", ("Every gate holds.",))

    def test_a_missed_gate_is_the_reason(self) -> None:
        headline = headline_of(make_record(BAD, GateSpec(Decimal(80))))
        assert headline == Headline(
            Outcome.FAILED, "Not passed", ("minAccuracy: got 50.00, wanted >= 80",)
        )

    def test_a_cancelled_run_is_neither(self) -> None:
        record = make_record(BAD, end=RunEnd.CANCELLED, message="cancelled by ctrl-c")
        assert headline_of(record) == Headline(
            Outcome.CANCELLED, "Cancelled", ("cancelled by ctrl-c",)
        )

    @pytest.mark.parametrize(
        "end",
        [
            pytest.param({"end": RunEnd.FAILED}, id="failed"),
            pytest.param({"passed": None}, id="never-judged"),
        ],
    )
    def test_a_run_that_was_not_carried_out_says_why(self, end: dict[str, Any]) -> None:
        record = make_record(BAD, reason="FingerprintMismatch", **end)
        assert headline_of(record) == Headline(
            Outcome.ERROR, "Could not be carried out", ("FingerprintMismatch",)
        )


def test_outcomes_are_added_up_over_variants() -> None:
    results = [make_result("a", variant="x"), make_result("a", variant="y")]
    results.append(make_result("b", Verdict.ERROR, cause=Cause.INFRA, variant="y"))
    totals = make_record(results).totals
    assert total_of(totals, Outcome.PASSED) == 2
    assert total_of(totals, Outcome.ERROR) == 1


class TestClock:
    def test_stages_are_spread_in_the_order_in_which_they_run(self) -> None:
        clock = StageClock()
        for seconds in (1.0, 2.0, 3.0, 4.0, 10.0):
            stages = {"grade": stage(0.1), "agent": stage(seconds), "odd": stage(1)}
            clock.add(make_result("t", stages=stages))
        agent, grade, odd = clock.spreads()
        assert (agent.stage, grade.stage, odd.stage) == ("agent", "grade", "odd")
        assert (agent.count, agent.total) == (5, 20.0)
        assert (agent.least, agent.lower, agent.median, agent.upper, agent.most) == (1, 2, 3, 4, 10)

    def test_one_unit_is_its_own_spread(self) -> None:
        clock = StageClock()
        clock.add(make_result("t", stages={"agent": stage(2)}))
        (agent,) = clock.spreads()
        assert (agent.least, agent.median, agent.most) == (2, 2, 2)

    def test_nothing_run_has_none(self) -> None:
        assert StageClock().spreads() == ()


class TestFacts:
    def test_what_is_unknown_is_left_out(self) -> None:
        facts = dict(facts_of(make_record(GOOD, commit="", sandbox="", warehouse="")))
        assert "Commit" not in facts
        assert "Sandbox" not in facts
        assert facts["Warehouse"] == "none"
        assert facts["Agent"] == "command: ./agent.sh"
        assert facts["In parallel"] == "4 units"

    def test_agents_of_several_variants_are_told_apart(self) -> None:
        record = make_record(GOOD, agent={"haiku": "anthropic:h", "sonnet": "anthropic:s"})
        facts = dict(facts_of(record))
        assert (facts["Agent haiku"], facts["Agent sonnet"]) == ("anthropic:h", "anthropic:s")

    @pytest.mark.parametrize(
        ("mark", "text"),
        [
            (Fingerprint("fp-1"), "fp-1"),
            (Fingerprint("fp-1", "fp-1"), "fp-1, as the set expects"),
            (Fingerprint("fp-1", "fp-2"), "fp-1, the set expects fp-2"),
            (Fingerprint(None, "", "no rights"), "not computed: no rights"),
            (Fingerprint(None), "not computed"),
        ],
    )
    def test_the_warehouse_build_is_told(self, mark: Fingerprint, text: str) -> None:
        assert dict(facts_of(make_record(GOOD, fingerprint=mark)))["Warehouse build"] == text


def test_coverage_comes_by_layer() -> None:
    assert layers_of(COVERAGE) == (
        LayerCoverage("staging", 1, 6),
        LayerCoverage("marts", 2, 5),
        LayerCoverage("other", 0, 3),
    )
    assert layers_of({}) == layers_of({"by_layer": None}) == layers_of({"by_layer": {"x": 1}}) == ()
