"""Child, in Inspect's own environment: as many samples as units, each starts the same process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time

from inspect_ai import Task, eval  # type: ignore[import-not-found]
from inspect_ai.dataset import MemoryDataset, Sample  # type: ignore[import-not-found]
from inspect_ai.scorer import includes  # type: ignore[import-not-found]
from inspect_ai.solver import solver  # type: ignore[import-not-found]


@solver
def no_op():  # type: ignore[no-untyped-def]
    async def solve(state, generate):  # type: ignore[no-untyped-def]
        subprocess.run(["/bin/true"], check=False, stdin=subprocess.DEVNULL)
        return state

    return solve


def main(samples: int) -> None:
    data = MemoryDataset([Sample(input=f"question {n}", target=str(n)) for n in range(samples)])
    with tempfile.TemporaryDirectory() as logs:
        wall, cpu = time.monotonic(), sum(os.times()[:4])
        task = Task(dataset=data, solver=no_op(), scorer=includes())
        eval(task, model="mockllm/model", max_samples=4, log_dir=logs, display="none")
        wall, cpu = time.monotonic() - wall, sum(os.times()[:4]) - cpu
    print(json.dumps({"wall": wall, "cpu": cpu, "others": 0.0}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
