"""What changed between two runs, and whether it can be chance."""

from __future__ import annotations

import json
from fractions import Fraction
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor_grader.jsontext import dump_json
from proctor_grader.model.result import Cause, UnitResult, Verdict
from proctor_grader.model.run import Fingerprint
from proctor_grader.report.diff import (
    Change,
    conditions_changed,
    diff_runs,
    p_text,
    points_text,
    sign_test,
)
from tests.make.report import make_record, make_result

V = Verdict


def results(*ends: str, variant: str = "default", trial: int = 1) -> list[UnitResult]:
    """`t1+` passed, `t1-` failed, `t1!` lost by the infrastructure, `t1?` ungraded."""
    signs = {
        "+": (V.CORRECT, None),
        "-": (V.OFF, None),
        "!": (V.ERROR, Cause.INFRA),
        "?": (V.UNGRADED, Cause.GRADER),
        "x": (V.CANCELLED, None),
    }
    made = []
    for end in ends:
        verdict, cause = signs[end[-1]]
        made.append(make_result(end[:-1], verdict, cause=cause, variant=variant, trial=trial))
    return made


def changes(a: list[UnitResult], b: list[UnitResult]) -> dict[str, Change]:
    return {task.task: task.change for task in diff_runs(a, b).tasks}


class TestChanges:
    def test_each_task_is_put_beside_itself(self) -> None:
        a = results("kept+", "missed-", "mended-", "spoilt+", "gone+")
        b = results("spoilt-", "mended+", "missed-", "kept+", "new-")
        assert changes(a, b) == {
            "kept": Change.SAME,
            "missed": Change.SAME,
            "mended": Change.FIXED,
            "spoilt": Change.BROKEN,
            "gone": Change.ONLY_A,
            "new": Change.ONLY_B,
        }

    @pytest.mark.parametrize("end", ["!", "?", "x"])
    def test_what_was_not_judged_says_nothing_about_the_agent(self, end: str) -> None:
        assert changes(results("t+"), results(f"t{end}")) == {"t": Change.NOT_COMPARABLE}
        assert changes(results(f"t{end}"), results("t-")) == {"t": Change.NOT_COMPARABLE}

    def test_an_agents_crash_is_a_failure_like_any(self) -> None:
        crashed = [make_result("t", V.ERROR, cause=Cause.AGENT)]
        assert changes(results("t+"), crashed) == {"t": Change.BROKEN}

    def test_partial_and_off_are_both_not_passed(self) -> None:
        diff = diff_runs([make_result("t", V.OFF)], [make_result("t", V.PARTIAL)])
        assert diff.tasks[0].change is Change.SAME
        assert diff.to_json()["tasks"][0]["b"]["verdicts"] == ["PARTIAL"]

    def test_trials_of_a_task_are_put_together(self) -> None:
        a = results("t+") + results("t-", trial=2) + results("t!", trial=3)
        b = results("t+") + results("t+", trial=2) + results("t+", trial=3)
        diff = diff_runs(a, b)
        assert [task.change for task in diff.tasks] == [Change.FIXED]
        assert diff.effect_points == 50
        assert diff.tasks[0].a is not None
        assert diff.tasks[0].a.told() == "1 of 3 passed"

    def test_variants_are_compared_with_themselves(self) -> None:
        a = results("t+", variant="x") + results("t-", variant="y")
        b = results("t-", variant="x") + results("t-", variant="y")
        found = {task.variant: task.change for task in diff_runs(a, b).tasks}
        assert found == {"x": Change.BROKEN, "y": Change.SAME}

    def test_two_runs_of_one_variant_each_are_compared_across_names(self) -> None:
        diff = diff_runs(results("t-", variant="haiku"), results("t+", variant="sonnet"))
        assert diff.across_variants
        assert [task.change for task in diff.tasks] == [Change.FIXED]

    def test_results_are_read_once(self) -> None:
        diff = diff_runs(iter(results("t+")), iter(results("t-")))
        assert diff.count(Change.BROKEN) == 1

    def test_one_trial_is_told_by_its_verdict(self) -> None:
        side = diff_runs(results("t+"), []).tasks[0].a
        assert side is not None
        assert side.told() == "CORRECT"


class TestSignificance:
    @pytest.mark.parametrize(
        ("better", "worse", "p"),
        [
            pytest.param(0, 0, Fraction(1), id="nothing-changed"),
            pytest.param(1, 0, Fraction(1), id="one-change-is-no-evidence"),
            pytest.param(5, 0, Fraction(1, 16), id="five-of-five"),
            pytest.param(6, 0, Fraction(1, 32), id="six-of-six"),
            pytest.param(0, 6, Fraction(1, 32), id="either-way"),
            pytest.param(9, 1, Fraction(11, 512), id="nine-to-one"),
            pytest.param(10, 10, Fraction(1), id="even"),
        ],
    )
    def test_p_is_the_exact_binomial_one(self, better: int, worse: int, p: Fraction) -> None:
        assert sign_test(better, worse) == p

    @given(st.integers(0, 40), st.integers(0, 40))
    def test_p_is_the_sum_of_both_tails(self, better: int, worse: int) -> None:
        n = better + worse
        tails = sum(comb(n, k) for k in range(n + 1) if abs(2 * k - n) >= abs(better - worse))
        assert sign_test(better, worse) == Fraction(tails, 2**n) == sign_test(worse, better)

    def test_thousands_of_changes_stay_exact(self) -> None:
        assert 0 < sign_test(2_000, 3_000) < Fraction(1, 10**40)

    def test_six_mended_of_six_changed_is_shown(self) -> None:
        names = [f"t{i}" for i in range(10)]
        a = results(*(f"{n}-" for n in names[:6]), *(f"{n}+" for n in names[6:]))
        diff = diff_runs(a, results(*(f"{n}+" for n in names)))
        assert diff.difference_shown
        assert diff.conclusion == (
            "difference shown: B passes 60.00 points more (6 fixed, 0 broken, p = 0.0312)"
        )

    def test_six_broken_is_shown_the_other_way(self) -> None:
        names = [f"t{i}" for i in range(6)]
        diff = diff_runs(results(*(f"{n}+" for n in names)), results(*(f"{n}-" for n in names)))
        assert diff.conclusion.startswith("difference shown: B passes 100.00 points fewer")

    def test_too_few_changes_say_so(self) -> None:
        a = results("a-", "b-", "c+")
        diff = diff_runs(a, results("a+", "b+", "c+"))
        assert not diff.difference_shown
        assert diff.conclusion == (
            "no difference shown (2 fixed, 0 broken, p = 0.5000; with 2 changed it can't be "
            "shown, whichever way they go)"
        )

    def test_mixed_changes_are_no_difference(self) -> None:
        names = [f"t{i}" for i in range(8)]
        a = results(*(f"{n}{'+-'[i % 2]}" for i, n in enumerate(names)))
        b = results(*(f"{n}{'-+'[i % 2]}" for i, n in enumerate(names)))
        assert diff_runs(a, b).conclusion == "no difference shown (4 fixed, 4 broken, p = 1.0000)"

    def test_nothing_judged_in_both_is_no_difference(self) -> None:
        diff = diff_runs(results("a+"), results("b+"))
        assert diff.effect_points is None
        assert diff.conclusion == "no difference shown: no task was judged in both runs"


def test_the_document_holds_everything_as_json() -> None:
    document = json.loads(dump_json(diff_runs(results("a+", "b-"), results("a-", "c+")).to_json()))
    assert document == {
        "counts": {
            "fixed": 0,
            "broken": 1,
            "same": 0,
            "not_comparable": 0,
            "only_a": 1,
            "only_b": 1,
        },
        "p_value": 1,
        "difference_shown": False,
        "effect_points": -100,
        "across_variants": False,
        "conclusion": "no difference shown (0 fixed, 1 broken, p = 1.0000; with 1 changed it "
        "can't be shown, whichever way they go)",
        "tasks": [
            {
                "task": "a",
                "variant": "default",
                "change": "broken",
                "a": {"passed": 1, "judged": 1, "verdicts": ["CORRECT"]},
                "b": {"passed": 0, "judged": 1, "verdicts": ["OFF"]},
            },
            {
                "task": "b",
                "variant": "default",
                "change": "only in A",
                "a": {"passed": 0, "judged": 1, "verdicts": ["OFF"]},
                "b": None,
            },
            {
                "task": "c",
                "variant": "default",
                "change": "only in B",
                "a": None,
                "b": {"passed": 1, "judged": 1, "verdicts": ["CORRECT"]},
            },
        ],
    }


@pytest.mark.parametrize(
    ("value", "p", "points"),
    [
        (Fraction(1, 3), "0.3333", "0.33"),
        (Fraction(1, 20_000), "< 0.0001", "0.00"),
        (Fraction(-25, 2), "", "-12.50"),
        (Fraction(1, 8), "0.1250", "0.13"),
    ],
)
def test_figures_are_rounded_for_people(value: Fraction, p: str, points: str) -> None:
    assert points_text(value) == points
    if p:
        assert p_text(value) == p


def test_other_conditions_are_named() -> None:
    runs = results("a+")
    one = make_record(runs)
    other = make_record(
        runs,
        fingerprint=Fingerprint("fp-0"),
        agent={"default": "oracle"},
        versions={"proctor": "0.2.0"},
        commit="",
    )
    assert conditions_changed(one, one) == ()
    assert conditions_changed(one, other) == (
        "commit: 3f1c9e2ab07d4c55b1f0a9d7e6c8b2a4d5e6f708 / unknown",
        "warehouse build: fp-c29371ab86fb181d9de1d3e5b96932f8 / fp-0",
        "agent: command: ./agent.sh / oracle",
        "versions: duckdb 1.5.5, proctor 0.1.0 / proctor 0.2.0",
    )
