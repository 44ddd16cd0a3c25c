"""Memory does not grow with the number of units."""

from __future__ import annotations

from tests.bench.child import run_child
from tests.bench.figures import Bar, Findings

FEW, MANY = 100, 5000
LIMIT = 1.5


def measure() -> Findings:
    """Compare the most memory held at 100 and at 5,000 units."""
    few = run_child("tests.bench.proctor_run", "read", FEW, "none")["peak_mb"]
    many = run_child("tests.bench.proctor_run", "read", MANY, "none")["peak_mb"]
    ratio = many["run"] / few["run"]
    return Findings(
        figures={"mb_at_100": few["run"], "mb_at_5000": many["run"]},
        ratios={"5000_to_100": ratio},
        bars=[Bar("memory at 5,000 units against 100", ratio, LIMIT, "times")],
    )
