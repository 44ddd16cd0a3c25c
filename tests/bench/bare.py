"""Child: the work that no harness can do without. `python -m tests.bench.bare KIND UNITS`.

`process` starts the command and waits for it, `sandbox` runs it in the very sandbox that units get,
`copy` copies a branch's file and removes it; each as often as there are units, on as many threads.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from proctor_grader import contract
from proctor_grader.model.process import Command, View
from proctor_grader.pod.prepare import Layout, base_environment
from proctor_operator.sandbox import Stop, choose_sandbox
from tests.bench.clock import Cost, timed
from tests.bench.sets import NO_OP, PARALLEL, bench_folder, write_base

Unit = Callable[[Path], None]


def run_process(_folder: Path) -> None:
    """The command alone."""
    quiet = subprocess.DEVNULL
    subprocess.Popen([NO_OP], stdin=quiet, stdout=quiet, stderr=quiet).wait()


def main(kind: str, units: int) -> None:
    with bench_folder() as folder:
        if kind == "sandbox":
            cost = _in_sandbox(folder, units)
        elif kind == "copy":
            base = write_base(folder)
            cost = _timed(folder, units, lambda place: _copy(base, place))
        else:
            cost = _timed(folder, units, run_process)
    print(json.dumps(cost.to_json()))


def _timed(folder: Path, units: int, unit: Unit) -> Cost:
    """As many threads as a run has workers, each with a folder of its own."""
    places = []
    for number in range(PARALLEL):
        layout = Layout(folder / str(number))
        layout.make()
        places.append(layout.root)

    def work(place: Path) -> None:
        for _ in range(units // PARALLEL):
            unit(place)

    with ThreadPoolExecutor(PARALLEL) as pool:
        cost, _ = timed(lambda: list(pool.map(work, places)))
    return cost


def _in_sandbox(folder: Path, units: int) -> Cost:
    sandbox, _ = choose_sandbox("bwrap")

    def unit(root: Path) -> None:
        layout = Layout(root)
        command = Command(
            argv=(NO_OP,),
            env=base_environment(layout),
            cwd=layout.work,
            stdout=layout.logs / contract.STDOUT_LOG,
            stderr=layout.logs / contract.STDERR_LOG,
            timeout_seconds=60,
            grace_seconds=0,
            max_output_bytes=contract.MAX_LOG_BYTES,
        )
        view = View(
            writable=(layout.work, layout.output, layout.home),
            readable=(layout.input,),
            tmp=layout.tmp,
        )
        end = sandbox.run(command, view, Stop())
        assert end.is_normal, end

    try:
        return _timed(folder, units, unit)
    finally:
        sandbox.close()


def _copy(base: Path, place: Path) -> None:
    copy = place / base.name
    shutil.copyfile(base, copy)
    os.unlink(copy)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
