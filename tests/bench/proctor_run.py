"""Child: one whole run timed by phase: `python -m tests.bench.proctor_run KIND UNITS SANDBOX`.

What a run imports is imported before; prints the costs of the whole run and of its phases, and the
most memory that the process ever held.
"""

from __future__ import annotations

import json
import os
import sys
from itertools import pairwise
from typing import Any

import altair  # noqa: F401 - imported by the report otherwise, a second
import jinja2  # noqa: F401 - likewise
import vl_convert  # noqa: F401 - likewise

from proctor_grader import load_set
from proctor_operator.local.request import RunRequest
from proctor_operator.local.runplan import RunOptions
from proctor_operator.local.session import start_run
from tests.bench.clock import Stopwatch, peak_memory_mb
from tests.bench.sets import NO_OP, PARALLEL, bench_folder, read_set, write_base, write_set


class _Phases:
    """A watcher that notes the time at every phase."""

    def __init__(self) -> None:
        self.marks: list[tuple[str, Stopwatch]] = []
        self.peaks: dict[str, float] = {}
        self.outcomes: dict[str, int] = {}

    def phase(self, text: str) -> None:
        self.peaks[text] = peak_memory_mb()
        self.marks.append((text, Stopwatch()))

    def notice(self, text: str) -> None:
        """Nobody reads it."""

    def begin(self, total: int, done: int = 0) -> None:
        """The total is known."""

    def unit_done(self, unit: Any, result: Any) -> None:
        outcome = "none" if result is None else result.outcome.value
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1

    def stop(self) -> None:
        self.phase("end")

    def costs(self) -> dict[str, Any]:
        """What each phase took, from its mark to the next."""
        spent: dict[str, Any] = {}
        readings = [(name, watch, watch.read()) for name, watch in self.marks]
        for (name, _, since), (_, _, after) in pairwise(readings):
            spent[name] = {"wall": since.wall - after.wall, "cpu": since.cpu - after.cpu}
        return spent


def main(kind: str, units: int, sandbox: str) -> None:
    with bench_folder() as folder:
        os.environ["PROCTOR_STATE_DIR"] = str(folder / "state")
        is_write = kind == "write"
        eval_set = (write_set if is_write else read_set)(folder / "set", units)
        warehouse = f"duckdb:///{write_base(folder)}" if is_write else ""
        loaded = load_set(eval_set).eval_set
        options = RunOptions(agent=f"command:{NO_OP}", sandbox=sandbox, parallel=PARALLEL)
        request = RunRequest(
            eval_set, loaded, options, warehouse_url=warehouse, store_url=str(folder / "store")
        )
        phases = _Phases()
        watch = Stopwatch()
        outcome = start_run(request, phases)
        cost = watch.read()
        assert outcome.record is not None
        assert sum(phases.outcomes.values()) == units, phases.outcomes
        assert phases.outcomes.get("error", 0) == 0, phases.outcomes
        document = {
            "cost": cost.to_json(),
            "phases": phases.costs(),
            "record_seconds": outcome.record.seconds,
            "peak_mb": {"units": phases.peaks["cleaning up"], "run": peak_memory_mb()},
            "outcomes": phases.outcomes,
        }
    print(json.dumps(document))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
