"""The summary plots: drawn without a network, in the page's own colours, with words and tables."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from proctor_grader.gates import GateSpec
from proctor_grader.model.result import Cause, Outcome, UnitResult, Verdict
from proctor_grader.model.unit import RunId
from proctor_grader.report.plots import Plot, draw_plots
from proctor_grader.report.summary import HistoryPoint, StageClock
from tests.make.example_run import HISTORY
from tests.make.report import make_record, make_result, stage

V = Verdict


def plots_of(
    results: list[UnitResult], history: list[HistoryPoint] | None = None, **settings: Any
) -> dict[str, Plot]:
    clock = StageClock()
    for result in results:
        clock.add(result)
    verdicts = Counter((result.verdict, result.outcome) for result in results)
    record = make_record(results, GateSpec(Decimal(80)), **settings)
    return {p.id: p for p in draw_plots(record, verdicts, clock.spreads(), history or [])}


def assert_drawn_in_variables(plot: Plot) -> None:
    root = ET.fromstring(plot.svg)
    assert root.attrib["role"] == "img"
    assert root.attrib["aria-label"]
    assert "style" not in {name for element in root.iter() for name in element.attrib}
    fills = set(re.findall(r'(?:fill|stroke)="([^"]+)"', plot.svg))
    assert {colour for colour in fills if not colour.startswith("var(--")} <= {
        "none",
        "transparent",
    }
    assert not re.search(r"<(script|style|image|a|use|foreignObject)\b", plot.svg)
    assert "http" not in plot.svg.replace("http://www.w3.org/", "")


def test_verdicts_are_counted_with_the_agents_errors_apart() -> None:
    results = [make_result(f"t{i}") for i in range(3)]
    results.append(make_result("x", V.ERROR, cause=Cause.AGENT))
    results.append(make_result("y", V.ERROR, cause=Cause.INFRA))
    plot = plots_of(results)["plot-outcomes"]
    assert plot.rows == (("CORRECT", "3"), ("ERROR by the agent", "1"), ("ERROR", "1"))
    assert plot.description == "5 units by verdict; most are CORRECT (3)."
    assert_drawn_in_variables(plot)
    for outcome in (Outcome.PASSED, Outcome.FAILED, Outcome.ERROR):
        assert f"var(--{outcome.value})" in plot.svg


def test_several_variants_are_put_beside_each_other() -> None:
    results = [make_result("t", variant="haiku"), make_result("t", V.OFF, variant="sonnet")]
    plot = plots_of(results)["plot-outcomes"]
    assert plot.title == "Outcomes by variant"
    assert plot.rows == (("haiku", "1", "0", "0", "0", "0"), ("sonnet", "0", "1", "0", "0", "0"))
    assert ">haiku</text>" in plot.svg
    assert_drawn_in_variables(plot)


def test_durations_are_shown_by_stage() -> None:
    results = [
        make_result(f"t{n}", stages={"branch": stage(0), "agent": stage(10.0 * n)})
        for n in range(1, 6)
    ]
    plot = plots_of(results)["plot-durations"]
    assert plot.rows == (
        ("branch", "5", "0 ms", "0 ms", "0 ms", "0 ms"),
        ("agent", "5", "10.0 s", "30.0 s", "50.0 s", "2 min 30 s"),
    )
    assert "Most time went into agent (2 min 30 s in all)" in plot.description
    assert_drawn_in_variables(plot)


def test_history_ends_with_this_run_and_shows_what_was_asked() -> None:
    plot = plots_of([make_result("t")], HISTORY)["plot-history"]
    assert plot.description == (
        "This run and 5 earlier runs of the set. Dashed: the 80 % that this run had to reach."
    )
    assert plot.rows[0] == ("run-20261130-090000-abc123", "2026-11-30 09:00:00 UTC", "100.00 %")
    assert plot.rows[3] == ("run-20261116-070000-000006", "2026-11-16 07:00:00 UTC", "n/a")
    assert len(plot.rows) == 6
    assert "stroke-dasharray" in plot.svg
    assert_drawn_in_variables(plot)


def test_without_a_minimum_no_line_is_drawn_for_it() -> None:
    plot = plots_of([make_result("t")], HISTORY, gates=())["plot-history"]
    assert "Dashed" not in plot.description
    assert "stroke-dasharray" not in plot.svg


def test_variants_of_earlier_runs_keep_their_lines() -> None:
    points = [
        HistoryPoint(RunId("r1"), "2026-11-01T00:00:00Z", {"old": Decimal(10)}),
        HistoryPoint(RunId("r2"), "2026-11-02T00:00:00Z", {"default": Decimal(20)}),
    ]
    plot = plots_of([make_result("t")], points)["plot-history"]
    assert plot.head == ("Run", "Started", "old", "default")
    assert plot.rows[0][2:] == ("n/a", "100.00 %")


@pytest.mark.parametrize(
    "history",
    [
        pytest.param([], id="first-run"),
        pytest.param(
            [HistoryPoint(RunId("r"), "2026-11-01T00:00:00Z", {"default": None})],
            id="nothing-was-graded-before",
        ),
    ],
)
def test_one_point_is_no_history(history: list[HistoryPoint]) -> None:
    assert "plot-history" not in plots_of([make_result("t")], history)


def test_a_long_history_is_cut_to_its_end() -> None:
    points = [
        HistoryPoint(RunId(f"r{n}"), f"2026-10-{n % 28 + 1:02d}T00:00:00Z", {"default": Decimal(n)})
        for n in range(100)
    ]
    plot = plots_of([make_result("t")], points)["plot-history"]
    assert len(plot.rows) == 61
    assert plot.rows[1][0] == "r99"


def test_nothing_run_draws_nothing() -> None:
    assert plots_of([]) == {}


def test_drawing_needs_no_network(bubblewrap_path: Path) -> None:
    program = (
        "from tests.unit.report.test_plots import plots_of, make_result, HISTORY;"
        "assert len(plots_of([make_result('t')], HISTORY)) == 3"
    )
    cut_off = [str(bubblewrap_path), "--unshare-net", "--dev-bind", "/", "/"]
    root = Path(__file__).parents[3]
    env = {"PYTHONPATH": f"{root}:{root / 'grader/src'}", "PATH": "/usr/bin:/bin"}
    subprocess.run([*cut_off, sys.executable, "-c", program], cwd=root, env=env, check=True)


def test_hostile_names_stay_text() -> None:
    name = "</text><script>alert(1)</script>"
    results = [make_result("t", variant=name), make_result("t", variant="b\u202e\x00")]
    for plot in plots_of(results, HISTORY).values():
        assert_drawn_in_variables(plot)
        ET.fromstring(plot.svg)
