"""What a unit costs beyond the work that no harness can do without."""

from __future__ import annotations

from typing import Any

from tests.bench.child import cost_of, run_child
from tests.bench.clock import Cost, median
from tests.bench.figures import Bar, Findings
from tests.services.part import cache_folder

PAIRS = 3
READ_UNITS = 1000
WRITE_UNITS = 100
LIMIT_MS = 10.0


def measure() -> Findings:
    """Interleave runs and bare work; judge wall time only where the machine was ours."""
    found = Findings()
    for name, bare_kind, run_kind, units, sandbox in (
        ("read_none", "process", "read", READ_UNITS, "none"),
        ("read_bwrap", "sandbox", "read", READ_UNITS, "bwrap"),
        ("write_none", "copy", "write", WRITE_UNITS, "none"),
    ):
        bare, ours, documents = _pairs(bare_kind, run_kind, units, sandbox)
        wall = 1000 * (ours.wall - bare.wall) / units
        cpu = 1000 * (ours.cpu - bare.cpu) / units
        found.figures |= {
            f"{name}_units": units,
            f"{name}_bare_ms": 1000 * bare.wall / units,
            f"{name}_ours_ms": 1000 * ours.wall / units,
            f"{name}_beyond_ms": wall,
            f"{name}_beyond_cpu_ms": cpu,
            f"{name}_finish_ms": 1000 * _phase(documents, "writing results and report") / units,
        }
        found.ratios[f"{name}_ours_to_bare"] = ours.wall / bare.wall
        quiet = ours.is_quiet and bare.is_quiet
        found.bars.append(Bar(f"{name} beyond bare, a unit", wall, LIMIT_MS, "ms", quiet))
    inspect = _inspect(READ_UNITS)
    if inspect is not None:
        ours_ms = float(found.figures["read_none_ours_ms"])
        found.figures["inspect_ms"] = 1000 * inspect.wall / READ_UNITS
        ratio = ours_ms / (1000 * inspect.wall / READ_UNITS)
        found.ratios["read_none_to_inspect"] = ratio
        found.bars.append(Bar("a unit against Inspect's sample", ratio, 1.0, "times"))
    return found


def _pairs(
    bare_kind: str, run_kind: str, units: int, sandbox: str
) -> tuple[Cost, Cost, list[dict[str, Any]]]:
    """Return the medians of bare work and of the units' own phase, taken in turn."""
    bare, ours, documents = [], [], []
    for _ in range(PAIRS):
        bare.append(cost_of(run_child("tests.bench.bare", bare_kind, units)))
        document = run_child("tests.bench.proctor_run", run_kind, units, sandbox)
        documents.append(document)
        running = document["phases"]["running"]
        others = document["cost"]["others"]
        ours.append(Cost(running["wall"], running["cpu"], others))
    return median(bare), median(ours), documents


def _phase(documents: list[dict[str, Any]], name: str) -> float:
    spent = sorted(document["phases"][name]["wall"] for document in documents)
    return float(spent[len(spent) // 2])


def _inspect(samples: int) -> Cost | None:
    """Time Inspect on the same process; None where its environment could not be made."""
    from tests.bench.inspect_env import inspect_python

    python = inspect_python(cache_folder())
    if python is None:
        return None
    return cost_of(run_child("tests.bench.inspect_run", samples, python=python))
