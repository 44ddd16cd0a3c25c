"""Reading answers and sets is linear; checking a set answers at once."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from proctor_grader import extract_numbers, load_set
from tests.bench.figures import Bar, Findings
from tests.bench.sets import bench_folder, read_set

LIMIT_RATIO = 12.0
CHECK_SECONDS = 0.7
ROUNDS = 5
PROSE = "Revenue rose 12.5% to $1.2 billion in 2025, from 360,618 claims (Q3-2024: 4,711).\n"
ANSWERS = {"prose": PROSE, "dashes": "1-", "groups": "1,", "tokens": "4x4 ", "digits": "1"}


def measure() -> Findings:
    """Compare one size with ten times as much, by processor time."""
    found = Findings()
    for name, piece in ANSWERS.items():
        megabyte = (piece * (1_000_000 // len(piece) + 1))[:1_000_000]
        small = _median(lambda text=megabyte[:100_000]: extract_numbers(text))
        large = _median(lambda text=megabyte: extract_numbers(text))
        _add(found, f"numbers_{name}", small, large)
    with bench_folder() as folder:
        sets = [read_set(folder / str(tasks), tasks) for tasks in (500, 5000)]
        small, large = (_median(lambda path=path: load_set(path)) for path in sets)
        _add(found, "load_set", small, large)
        checked = read_set(folder / "sixteen", 16)
        seconds = statistics.median(_check(checked) for _ in range(ROUNDS))
    found.figures["check_16_tasks_seconds"] = seconds
    found.bars.append(Bar("proctor check on 16 tasks", seconds, CHECK_SECONDS, "s"))
    return found


def _add(found: Findings, name: str, small: float, large: float) -> None:
    found.figures |= {f"{name}_seconds": large}
    found.ratios[f"{name}_10_times"] = large / small
    found.bars.append(Bar(f"{name}: ten times the input", large / small, LIMIT_RATIO, "times"))


def _median(function: Callable[[], object]) -> float:
    return statistics.median(_cpu_seconds(function) for _ in range(ROUNDS))


def _cpu_seconds(function: Callable[[], object]) -> float:
    began = time.process_time()
    function()
    return time.process_time() - began


def _check(eval_set: Path) -> float:
    began = time.monotonic()
    program = Path(sys.executable).with_name("proctor")
    subprocess.run([program, "check", str(eval_set)], check=True, capture_output=True)
    return time.monotonic() - began
